"""Array objects of other libraries, in CPU and in GPU memory [ARG-1…3]."""

import ctypes
import sys
import types

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile.runtime import arrays
from cutile.runtime.arguments import array_of
from cutile.runtime.array_ref import ArrayRef
from cutile.runtime.float4_packing import PackedArray


class Interface:
    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


class OnlyDLPack:
    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.device


class Cuda:
    """Memory that says it is on a GPU."""

    def __init__(self, pointer, shape, typestr="<f4", strides=None, read_only=False, **more):
        self.__cuda_array_interface__ = {"shape": shape, "typestr": typestr, "strides": strides, "version": 3,
                                         "data": (pointer, read_only)}
        self.__dict__.update(more)


def test_arrays_of_the_cpu():
    x = np.arange(4, dtype=np.float32)
    for obj in (x, Interface(x), OnlyDLPack(x), OnlyDLPack(x, (3, 0))):  # 3 is pinned memory
        found = array_of(obj)
        assert found.dtype is ct.float32 and np.shares_memory(found.owner, x)
    assert array_of(3) is None and array_of(np.float32(1)) is None and array_of(np.ndarray) is None


class Hostile(np.ndarray):
    """Whatever of it is called or asked for fails."""

    def __getattribute__(self, name):
        raise AssertionError(name)

    __getitem__ = __setitem__ = __array_ufunc__ = __array_function__ = __array_wrap__ = __getattribute__


def test_subclasses_are_memory(tmp_path):
    """What they do themselves when they are asked plays no part [ARG-3]."""
    x = np.arange(4, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    for obj in (x.view(Hostile), x.view(np.matrix), x.view(np.recarray), np.load(tmp_path / "x.npy", mmap_mode="r+")):
        found = array_of(obj)
        assert type(found.owner) is np.ndarray and found.dtype is ct.float32
        found.owner[..., 1] = 7
        assert np.ndarray.view(obj, np.ndarray).reshape(-1)[1] == 7
    with pytest.raises(TypeError, match="no masked arrays"):
        array_of(np.ma.masked_array([1.0]))


def test_the_layout_of_both_sides():
    x = np.zeros((4, 6), np.float16)[::-1, ::2]
    for a in (array_of(x), ArrayRef(x.ctypes.data, (4, 3), (-6, 2), ct.float16, 0)):
        assert a[:4] == (x.ctypes.data, (4, 3), (-6, 2), ct.float16)
        assert (a.ndim, a.size, a.itemsize) == (2, 12, 2)


@pytest.mark.parametrize("typestr, dtype", [
    ("<f4", ct.float32), ("<f2", ct.float16), ("<f8", ct.float64), ("|b1", ct.bool_), ("|i1", ct.int8),
    ("|u1", ct.uint8), ("<i2", ct.int16), ("<u4", ct.uint32), ("<i8", ct.int64), ("<V2", ct.bfloat16),
    ("|V2", ct.bfloat16)])
def test_cuda_array_interface(typestr, dtype):
    item = int(typestr[2:])
    found = array_of(Cuda(4096, (2, 3), typestr))
    assert found == ArrayRef(4096, (2, 3), (3, 1), dtype, None)
    found = array_of(Cuda(4096, (2, 3), typestr, (-4 * item, 0), True))
    assert (found.strides, found.writable, found.itemsize, found.size) == ((-4, 0), False, item, 6)


def test_dtypes_that_the_interface_has_no_name_for():
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        found = array_of(Cuda(4096, (2,), "|V1", dtype=np.dtype(dtype)))
        assert np.dtype(dtype).name == found.dtype.name


@pytest.mark.parametrize("typestr", ["<c8", "|V1", "|V4", ">f4", "<M8"])
def test_dtypes_that_tile_code_lacks(typestr):
    with pytest.raises(TypeError, match="dtype is not supported"):
        array_of(Cuda(4096, (2,), typestr))


def test_strides_between_elements():
    with pytest.raises(TypeError, match="no multiples of its 4-byte elements"):
        array_of(Cuda(4096, (2,), "<f4", (6,)))
    assert array_of(Cuda(4096, (1,), "<f4", (6,))).shape == (1,)


def test_empty_arrays():
    assert array_of(Cuda(0, (0, 3))) == ArrayRef(0, (0, 3), (3, 1), ct.float32, None)
    assert array_of(Cuda(None, (0,))).pointer == 0


def test_where_an_array_says_it_is():
    assert array_of(Cuda(4096, (2,), __dlpack_device__=lambda: (2, 3))).device == 3
    assert array_of(Cuda(4096, (2,), __dlpack_device__=lambda: (13, 1))).device == 1


# ------------------------------------------------------------------ DLPack


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Packet:
    """What DLPack gives of GPU memory, made by hand."""

    def __init__(self, pointer, shape, strides, code, bits, device=(2, 0), lanes=1, offset=0):
        n = len(shape)
        self.device = device
        self.shape = (ctypes.c_int64 * n)(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * n)(*strides)
        long_p = ctypes.POINTER(ctypes.c_int64)
        self.tensor = arrays._Tensor(pointer, *device, n, code, bits, lanes, ctypes.cast(self.shape, long_p),
                                     ctypes.cast(self.strides, long_p) if strides is not None else None, offset)
        self.streams = []

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        return _new_capsule(ctypes.addressof(self.tensor), b"dltensor", None)

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("code, bits, dtype", [
    (0, 8, ct.int8), (0, 32, ct.int32), (0, 64, ct.int64), (1, 16, ct.uint16), (2, 16, ct.float16),
    (2, 32, ct.float32), (2, 64, ct.float64), (4, 16, ct.bfloat16), (6, 8, ct.bool_), (10, 8, ct.float8_e4m3fn),
    (12, 8, ct.float8_e5m2), (14, 8, ct.float8_e8m0fnu)])
def test_dlpack_of_a_gpu(code, bits, dtype):
    p = Packet(4096, (2, 3), (1, -2), code, bits, (2, 1), offset=32)
    assert array_of(p) == ArrayRef(4128, (2, 3), (1, -2), dtype, 1)
    assert p.streams == [-1]


def test_dlpack_packed_empty_and_managed():
    assert array_of(Packet(4096, (2, 3), None, 2, 32)).strides == (3, 1)
    assert array_of(Packet(None, (0,), (1,), 2, 32, offset=8)).pointer == 0
    assert array_of(Packet(4096, (), (), 2, 32, (13, 2))) == ArrayRef(4096, (), (), ct.float32, 2)


@pytest.mark.parametrize("given, says", [
    ((5, 64), "type code 5 with 64 bits"), ((2, 8), "type code 2 with 8 bits"), ((8, 8), "type code 8"),
    ((17, 4), "unpack_from_bytes"), ((17, 4, (2, 0), 2), "unpack_from_bytes"),
    ((2, 32, (2, 0), 4), "4 lane"), ((2, 32, (8, 0)), "device of DLPack type 8")])
def test_dlpack_that_cannot_be_used(given, says):
    with pytest.raises(TypeError, match=says):
        array_of(Packet(4096, (2,), (1,), *given))


def test_dlpack_of_an_array_that_may_not_be_computed_yet():
    """JAX's: it says so, and takes -1 for the handle of a stream."""
    class Later(Packet):
        waited = 0

        def block_until_ready(self):
            assert not self.streams
            self.waited += 1

    p = Later(4096, (2,), (1,), 4, 16)
    assert array_of(p).dtype is ct.bfloat16
    assert p.waited == 1 and p.streams == [None]


def test_libraries_that_another_thread_has_half_imported(monkeypatch):
    """A module stands in sys.modules from the start of its import, without what it will define."""
    for name in ("torch", "cupy"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    assert array_of(object()) is None
    assert array_of(Cuda(4096, (2,))).dtype is ct.float32
    assert arrays.reader_of(Cuda) is arrays.read_other


def test_dlpack_that_refuses():
    class Refusing(Packet):
        def __dlpack__(self, *, stream=None):
            raise BufferError("not today")

    with pytest.raises(TypeError, match="could not be read through DLPack: not today"):
        array_of(Refusing(4096, (2,), (1,), 2, 32))


class OnCPU(Packet):
    """Memory of the CPU, given as those do who know no DLPack but the first."""

    def __init__(self, pairs, shape, strides, lanes, code=17, offset=0):
        super().__init__(pairs.ctypes.data - offset, shape, strides, code, 4, (1, 0), lanes, offset)

    def __dlpack__(self):
        return super().__dlpack__()


PAIRS = np.arange(24, dtype=np.uint8).reshape(4, 6)


@pytest.mark.parametrize("shape, strides, lanes, pairs", [
    ((4, 6), (6, 1), 2, PAIRS), ((4, 6), None, 2, PAIRS), ((2, 6), (12, 1), 2, PAIRS[::2]), ((6,), (1,), 2, PAIRS[0]),
    ((4, 12), (12, 1), 1, PAIRS), ((4, 12), None, 1, PAIRS), ((4, 4), (12, 1), 1, PAIRS[:, :2]),
    ((1, 4), (5, 1), 1, PAIRS[:1, :2]),
    ((3, 12), (0, 1), 1, PAIRS[[0, 0, 0]]), ((0,), (1,), 1, PAIRS[0, :0]), ((4, 0), (0, 1), 2, PAIRS[:, :0])])
def test_dlpack_of_float4_of_the_cpu(shape, strides, lanes, pairs):
    for offset in (0, 32):
        found = array_of(OnCPU(PAIRS, shape, strides, lanes, offset=offset))
        packed = found.owner
        assert isinstance(packed, PackedArray) and found.dtype is ct.float4_e2m1fn
        assert np.array_equal(packed.pairs, pairs) and not packed.pairs.flags.writeable
        assert found.shape == (*pairs.shape[:-1], 2 * pairs.shape[-1])


def test_dlpack_of_float4_stays_while_it_is_used():
    found = array_of(OnCPU(PAIRS, (4, 6), None, 2))
    assert "dltensor" in repr(found.owner.pairs.base.owner)


@pytest.mark.parametrize("shape, strides, lanes, says", [
    ((4, 5), (5, 1), 1, "rows of 5 float4_e2m1fn elements"), ((4, 4), (5, 1), 1, "no whole bytes"),
    ((2, 2), (6, 3), 1, "no whole bytes"), ((4, 3), (1, 4), 2, "not contiguous"), ((), (), 2, "has no axis"),
    ((), (), 1, "has no axis"), ((4,), (1,), 4, "DLPack")])
def test_dlpack_of_float4_that_cannot_be_used(shape, strides, lanes, says):
    with pytest.raises(TypeError, match=says):
        array_of(OnCPU(PAIRS, shape, strides, lanes))
    with pytest.raises(TypeError, match="could not be read through DLPack"):
        array_of(OnCPU(PAIRS, (4,), (1,), 1, code=5))


# ------------------------------------------------------------------ torch, by what its tensors have


@pytest.fixture
def torch(monkeypatch):
    """A stand-in for the module with tensors that say they are on a GPU."""
    module = types.ModuleType("torch")

    class dtype:
        def __init__(self, name):
            self.name = name

        def __repr__(self):
            return f"torch.{self.name}"

    dtype.__module__ = "torch"
    module.strided, module.sparse_coo = "torch.strided", "torch.sparse_coo"

    class Tensor:
        layout, neg, conj = module.strided, False, False

        def __init__(self, pointer, shape, strides, name="float32", device=("cuda", 0)):
            self.pointer, self.shape, self.strides, self.dtype = pointer, shape, strides, dtype(name)
            self.device = types.SimpleNamespace(type=device[0], index=device[1])

        is_cuda = property(lambda self: self.device.type == "cuda")
        get_device = lambda self: self.device.index
        data_ptr = lambda self: self.pointer
        stride = lambda self: self.strides
        is_neg = lambda self: self.neg
        is_conj = lambda self: self.conj
        as_subclass = lambda self, cls: self

    module.Tensor = Tensor
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64", "uint8",
                                  "bool"])
def test_torch_tensors_of_a_gpu(torch, name):
    found = array_of(torch.Tensor(4096, (2, 3), (1, 2), name, ("cuda", 1)))
    assert found == ArrayRef(4096, (2, 3), (1, 2), getattr(ct, "bool_" if name == "bool" else name), 1)


def test_torch_tensors_that_cannot_be_used(torch):
    for change, says in (({"dtype": torch.Tensor(0, (), (), "complex64").dtype}, "complex64"),
                         ({"layout": torch.sparse_coo}, "to_dense"), ({"neg": True}, "resolve_neg"),
                         ({"conj": True}, "resolve_conj"),
                         ({"dtype": torch.Tensor(0, (), (), "float4_e2m1fn_x2").dtype},
                          "in GPU memory.*unpack_from_bytes"),
                         ({"device": types.SimpleNamespace(type="mps", index=0)}, "on device")):
        t = torch.Tensor(4096, (2,), (1,))
        t.__dict__.update(change)
        with pytest.raises(TypeError, match=says):
            array_of(t)
