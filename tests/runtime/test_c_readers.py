"""C code reads arrays by functions of their libraries, if these say what the public attributes say."""

import ctypes
import random
import struct
import sys
import types

import numpy as np
import pytest

import cutile as ct
from cutile.runtime import c_readers, launch_cache, launch_key
from cutile.runtime.annotations import PLAIN
from tests.gpu import extension
from tests.gpu.extension import CuPyArray, Tensor
from tests.gpu.fake_driver import installed
from tests.gpu.fields_in_c import HEAD, FieldsArray, MemoryPointer, UnownedMemory, array, put, with_room


@pytest.fixture
def c(monkeypatch):
    extension.installed(monkeypatch)
    offers(monkeypatch, FieldsArray)
    module = extension.built()
    monkeypatch.setattr(launch_cache, "extension", lambda: module)
    return module




def offers(monkeypatch, cls, memory=UnownedMemory):
    """Let cupy have arrays of a class."""
    monkeypatch.setattr(sys.modules["cupy"], "ndarray", cls)
    monkeypatch.setattr(sys.modules["cupy"], "cuda", types.SimpleNamespace(
        UnownedMemory=memory, MemoryPointer=MemoryPointer), raising=False)


def signatures(c, cls, kind, values):
    cache = c.LaunchCache(constants=bytes(1), watch=(), host_watch=(), grid_limit=1, capacity=1)
    cache.kinds[cls] = kind
    return [cache.signature((v,)) for v in values]


def key_of(value):
    key, values = [], []
    launch_key.read((value,), [PLAIN], key, values)
    return tuple(key), values


# ------------------------------------------------------------------ CuPy

A = array(4096, (48,), (1,))


def test_arrays_are_read_where_their_objects_have_their_fields(c):
    assert c_readers.c_reader(c, A) == c.CUPY_FIELDS
    assert c_readers.c_reader(c, CuPyArray(4096, (48,), (1,))) is None  # not the class that is called cupy.ndarray


def test_equal_signatures_mean_equal_keys(c):
    """And the other way round, with axes of every kind."""
    r = random.Random(1)
    arrays = []
    for _ in range(6000):
        shape = tuple(r.choice((0, 1, 2, 3)) for _ in range(r.randrange(5)))
        packed = tuple(int(np.prod(shape[i + 1:])) for i in range(len(shape)))
        strides = packed if r.random() < 0.6 else tuple(r.choice((s, 1, 2, 6, -1)) for s in packed)
        arrays.append(array(r.choice((4096, 4100, 2**47)), shape, strides, r.choice(("f4", "i4", "f2")),
                            r.choice((0, 0, 1))))
    by_signature, by_key = {}, {}
    for a, (signature, value) in zip(arrays, signatures(c, FieldsArray, c_readers.c_reader(c, A), arrays), strict=True):
        key, values = key_of(a)
        assert by_signature.setdefault(signature, key) == key
        assert by_key.setdefault(key, signature) == signature
        assert int.from_bytes(value, sys.byteorder) == values[0]
    assert len(by_key) > 1000


def test_arrays_as_arguments_of_algorithms(c):
    """Signatures have numbers of dtypes, so that nothing need be kept; a dtype without one is left to Python."""
    float32, int32 = (array(4096, (7,), (1,), d) for d in ("f4", "i4"))
    kinds = {FieldsArray: c_readers.c_reader(c, A), float32.dtype: 0, int32.dtype: 1 << 40}
    again = array(4096, (7,), (1,), "f4")
    found = [c.array_on_gpu(kinds, a) for a in (float32, int32, again)]
    assert found[0] == found[2] != found[1] and [pointer for _, pointer in found] == [4096] * 3
    assert [int.from_bytes(part[8:16], sys.byteorder) for part, _ in found] == [0, 1 << 40, 0]
    unusual = array(4096, (7,), (1,))
    memory = type("Other", (MemoryPointer,), {})(UnownedMemory(8192, 1, None, 0), 0)
    unusual._is["data"] = memory
    put(unusual, 72, id(memory))
    for a in (array(4096, (7,), (1,), "c8"), array(4096, (7,), (1,), "f8"), unusual, 5):
        assert c.array_on_gpu(kinds, a) is NotImplemented


def no_sizes(self, *_):
    put(self, 8, 0, 0, 0)


def no_room(self, shape, *_):  # vectors of another length
    put(self, 40, self._vectors[1] and 8)


def other_dtype(self, *_):
    put(self, 64, 1)


def strides_twice(self, *_):
    put(self, 0, *(ctypes.addressof(self._vectors[1]) + 8 * n * len(self.shape) for n in (0, 1)))


def other_sizes(self, *_):
    self._vectors[0][0] += 1


def no_array(self, *_):
    raise RuntimeError("no GPU")


@pytest.mark.parametrize("change", [no_sizes, no_room, other_dtype, strides_twice, other_sizes, no_array])
def test_fields_that_are_not_found(c, monkeypatch, change):
    class Changed(FieldsArray):
        def __init__(self, *given):
            super().__init__(*given)
            change(self, *given)

    a = array(4096, (48,), (1,), cls=Changed) if change is not no_array else A
    offers(monkeypatch, Changed)
    Changed.__module__ = "cupy"
    assert c_readers._has_fields(c, Changed) is False
    assert change is no_array or c_readers.c_reader(c, a) == c.CUPY


def test_memory_that_is_not_where_it_should_be(c, monkeypatch):
    class Same(FieldsArray):
        pass

    offers(monkeypatch, Same, lambda ptr, size, owner, device_id: UnownedMemory(ptr, size, owner, 0))
    assert c_readers._has_fields(c, Same) is False  # a zero stands in many places


def test_subclasses_are_left_to_python(c):
    plain = type("Plain", (FieldsArray,), {"__module__": "cupy"})
    assert c_readers.c_reader(c, array(4096, (48,), (1,), cls=plain)) is None


def test_memory_of_another_class_is_read_by_its_attributes(c):
    a, other = array(4096, (48,), (1,)), type("Other", (MemoryPointer,), {})
    kind = c_readers.c_reader(c, a)
    fast, value = signatures(c, FieldsArray, kind, [a])[0]
    a._is["data"] = memory = other(UnownedMemory(8192, 1, None, 0), 0)
    put(a, 72, id(memory))
    slow, moved = signatures(c, FieldsArray, kind, [a])[0]
    assert slow == signatures(c, FieldsArray, c.CUPY, [a])[0][0] != fast
    assert [int.from_bytes(v, sys.byteorder) for v in (value, moved)] == [4096, 8192]


def test_vectors_that_are_none(c):
    """Nothing is read behind what a vector may have."""
    kind = c_readers.c_reader(c, A)
    for at, values in ((16, (1 << 40,)), (16, (0,)), (40, (1 << 40,)), (8, (8, 8, 8))):
        a = array(4096, (48,), (1,))
        put(a, at, *values)
        assert signatures(c, FieldsArray, kind, [a]) == [NotImplemented]


@pytest.mark.parametrize("place, at", [(0, 8), (0, -12), (1, HEAD + 1), (2, -4), (3, 0), (4, -4), (5, 0), (5, -3),
                                       (0, sys.maxsize - 7), (5, sys.maxsize - 3)])
def test_no_field_is_outside_of_its_object(c, place, at):
    """Places that are not positive here are counted from the end."""
    places = [HEAD + n for n in (8, 32, 64, 72, 0, 8)]
    size = (FieldsArray if place < 4 else MemoryPointer).__basicsize__
    places[place] = at if at > 0 else size + at
    with pytest.raises(ValueError, match=f"field {place} is not inside"):
        c.cupy_fields(FieldsArray, MemoryPointer, tuple(places))


def test_launches_repeat(c, monkeypatch):
    @ct.kernel
    def k(x, y):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 16))

    gpu = installed(monkeypatch)
    gpu.contexts[:] = [0x1000]
    for x, y in ((A, array(8192, (3, 16), (16, 1))[1]), (A[::2], A), (A, A[:32])):
        del gpu.launches[:]
        for _ in range(3):
            ct.launch(7, (1,), k, (x, y))
        assert "cuLaunchKernel in C" in gpu.names() and gpu.launches[0]["parameters"] == gpu.launches[2]["parameters"]


def test_arrays_of_cupy():
    """They are made without a GPU, and nothing looks at their memory."""
    cupy = pytest.importorskip("cupy")
    c = extension.built()
    memory = cupy.cuda.UnownedMemory(1 << 40, 1 << 20, None, 3)
    x = cupy.ndarray((2, 3, 4), np.float32, cupy.cuda.MemoryPointer(memory, 16))
    assert c_readers.c_reader(c, x) == c.CUPY_FIELDS
    arrays = [x, x.T, x[1:], x[:, ::2], x[..., 1], x[0, 0, 0], x[:0], x[None], x.view(np.int32), x.reshape(4, 6)]
    for a, (signature, value) in zip(arrays, signatures(c, cupy.ndarray, c.CUPY_FIELDS, arrays), strict=True):
        first, dtype, *dims = np.frombuffer(signature, np.int64).tolist()
        assert (first >> 32, first >> 16 & 255, first >> 8 & 255) == (3, a.ndim, a.data.ptr & 15)
        assert (dtype, *dims) == (id(a.dtype), *a.shape, *a.strides)
        assert int.from_bytes(value, sys.byteorder) == a.data.ptr


# ------------------------------------------------------------------ PyTorch


PLACE = object.__basicsize__
CLASSES = (ctypes.c_size_t * 2)(77, 78)  # first words of objects of C++: of the plain class, and of another one


class Described(with_room("Impl", 8), Tensor):
    """A tensor that functions of C describe. Behind its start is a pointer to an object of C++."""

    def __init__(self, *args, cls=0, **more):
        super().__init__(*args, **more)
        ctypes.c_size_t.from_address(id(self) + PLACE).value = ctypes.addressof(CLASSES) + 8 * cls


def shims(tensors):
    """Functions as the C interface of PyTorch has them, for these tensors; the GPU is 5, the CPU 0."""
    by_place = {id(t) + PLACE: t for t in tensors}
    kept = {id(t): [(ctypes.c_int64 * 4)(*n) for n in (t.shape, t.stride())] for t in tensors}

    def of(ctype, answer):
        @ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctype))
        def shim(place, out):
            value = answer(by_place[place])
            if value is None:
                return 1
            out[0] = value
            return 0
        return shim

    negated = ctypes.PYFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(lambda place: by_place[place].is_neg())
    conjugated = ctypes.PYFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(lambda place: by_place[place].is_conj())
    return [negated, conjugated, of(ctypes.c_int64, lambda t: len(t.shape)),
            of(ctypes.c_void_p, lambda t: ctypes.addressof(kept[id(t)][0])),
            of(ctypes.c_void_p, lambda t: ctypes.addressof(kept[id(t)][1])),
            of(ctypes.c_int32, lambda t: {"c8": 9, "c16": 10}.get(t.dtype.str[1:]) or (
                "iuf".index(t.dtype.kind) + 8 * t.dtype.itemsize)),
            of(ctypes.c_int32, lambda t: {"cuda": 5, "xpu": 9, "cpu": 0}[t.device.type]),
            of(ctypes.c_int32, lambda t: t.get_device()),
            of(ctypes.c_size_t, lambda t: t.data_ptr())], kept


def test_tensors_are_read_by_the_functions_of_their_library(c):
    r = random.Random(2)
    tensors = [Described(r.choice((4096, 4100)), shape, tuple(r.choice((1, 4)) for _ in shape), r.choice(("f4", "i4")),
                         r.choice((0, 1)), neg=r.random() < 0.1, cuda=r.random() < 0.9)
               for shape in ((), (3,), (4, 4), (2, 3, 4)) for _ in range(150)]
    tensors[0], tensors[1] = Described(4096, (3,), (1,), cls=1), Described(4096, (3,), (1,))
    ctypes.c_size_t.from_address(id(tensors[1]) + PLACE).value = 0  # it has lost its object of C++
    functions, kept = shims(tensors)
    c.torch_shims(tuple(ctypes.cast(f, ctypes.c_void_p).value for f in functions), PLACE, CLASSES[0], 0, 5)
    by_signature = {}
    for t, found in zip(tensors, signatures(c, Described, c.TORCH_SHIM, tensors), strict=True):
        on_gpu = c.array_on_gpu({Described: c.TORCH_SHIM}, t)
        if t.is_neg() or not t.is_cuda or t in tensors[:2]:
            assert found is NotImplemented is on_gpu
            continue
        assert on_gpu == (found[0], t.data_ptr())
        key = (t.dtype, t.shape, t.stride(), t.get_device(), t.data_ptr() & 15)
        assert by_signature.setdefault(found[0], key) == key
        assert int.from_bytes(found[1], sys.byteorder) == t.data_ptr()
    assert len(by_signature) == len(set(by_signature.values())) > 100 and kept


def test_complex_tensors_that_are_conjugated(c):
    """They are left to Python, which refuses them; others are read."""
    tensors = [Described(4096, (3,), (1,), dtype) for dtype in ("c8", "c16", "c8", "f4")]
    tensors[2].is_conj = tensors[3].is_conj = lambda: True  # only complex ones are asked
    functions, kept = shims(tensors)
    c.torch_shims(tuple(ctypes.cast(f, ctypes.c_void_p).value for f in functions), PLACE, CLASSES[0], 0, 5)
    found = [c.array_on_gpu({Described: c.TORCH_SHIM}, t) for t in tensors]
    assert found[2] is NotImplemented and [p[1] for p in (*found[:2], found[3])] == [4096] * 3
    assert len({p[0] for p in (*found[:2], found[3])}) == 3 and kept


def test_tensors_in_cpu_memory_that_was_given_back(c):
    tensors = [Described(pointer, (3,), (1,)) for pointer in (4096, 0)]
    for t in tensors:
        t.device = types.SimpleNamespace(type="cpu", index=-1)
    functions, kept = shims(tensors)
    c.torch_shims(tuple(ctypes.cast(f, ctypes.c_void_p).value for f in functions), PLACE, CLASSES[0], 0, 5)
    usual, gone = signatures(c, Described, c.TORCH_SHIM, tensors)
    assert usual is not NotImplemented and gone is NotImplemented and kept


class _Lent(ctypes.Structure):
    """What DLPack says of a tensor."""

    _fields_ = [("data", ctypes.c_size_t), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_size_t), ("strides", ctypes.c_size_t),
                ("offset", ctypes.c_uint64)]


def lending(**said):
    """The address of a function that lends a tensor in GPU memory, and what must be kept for it."""
    sizes = (ctypes.c_int64 * 2)(7, 1)

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Lent))
    def lend(tensor, out):
        at = ctypes.addressof(sizes)
        given = {"data": 4096, "device_type": 2, "device": 1, "rank": 1, "code": 2, "bits": 32, "lanes": 1, "shape": at,
                 "strides": at + 8, "offset": 8, **said}
        for name, value in given.items():
            setattr(out[0], name, value)
        return 0
    return ctypes.cast(lend, ctypes.c_void_p).value, lend


@pytest.mark.parametrize("said, right", [({}, True), ({"device_type": 1}, False), ({"code": 5, "bits": 64}, False)])
def test_tensors_on_a_gpu_that_are_lent(c, said, right):
    """Those in CPU memory and complex ones, which may be conjugated lazily, are left to Python."""
    lender, kept = lending(**said)
    found = c.array_on_gpu({Tensor: lender}, Tensor(4096, (7,), (1,)))
    assert found[1] == 4104 if right else found is NotImplemented
    assert c.array_on_gpu({Tensor: lender}, Tensor(4096, (7,), (1,), neg=True)) is NotImplemented
    with pytest.raises(TypeError, match="array_on_gpu"):
        c.array_on_gpu({})
    assert kept


def test_arguments_of_algorithms(c):
    """Tensors in GPU memory, ints and None are read where an argument may be one, and all else by its reader."""
    lender, kept = lending()
    t, negated, every = Tensor(4096, (7,), (1,)), Tensor(4096, (7,), (1,), neg=True), c.MAY_BE_ARRAY | c.MAY_BE_INT \
        | c.MAY_BE_NONE
    signature, address = c.array_on_gpu({Tensor: lender}, t)
    numpy, large = np.zeros(3), 1 << 70

    def read(value, key, roots):
        key.append(("by Python", value))
        roots.append("by Python")
    for how, arg, part, root in ((every, t, signature, [address]), (every, None, None, []), (every, 5, 5, []),
                                 (c.MAY_BE_INT, large, large, []), (c.MAY_BE_ARRAY | c.MAY_BE_NONE, None, None, [])):
        assert c.read_roles({Tensor: lender}, bytes([how]), (read,), "first", (arg,)) == (("first", part), root)
    for how, arg in ((every, True), (every, negated), (every, numpy.reshape(3, 1)), (every, numpy.tolist()),
                     (every, 2.0), (0, t), (c.MAY_BE_ARRAY, None),
                     (c.MAY_BE_ARRAY, 5), (c.MAY_BE_NONE, 5), (c.MAY_BE_INT, None)):
        key, roots = c.read_roles({Tensor: lender}, bytes([how]), (read,), "first", (arg,))
        assert key[1][1] is arg and roots == ["by Python"]
    assert c.read_roles({}, bytes([every]), (read,), "first", (t,))[1] == ["by Python"]
    two = c.read_roles({Tensor: lender}, bytes([every, 0, every]), (read,) * 3, "first", (t, "x", 3))
    assert two == (("first", signature, ("by Python", "x"), 3), [address, "by Python"]) and kept


@pytest.mark.parametrize("dtype", ["int8", "float64", "complex64", "bfloat16", [("a", "i4"), ("b", "f2")], "M8[s]"])
def test_numpy_arrays_of_algorithms(c, dtype):
    """Those with one axis are read as their own reader reads them, if they are written only where they may be."""
    class Other(np.ndarray):
        pass

    def read(value, key, roots):
        raise LookupError
    a = np.zeros(12, dtype)
    locked, there = a[::-2], bytes([c.MAY_BE_ARRAY])
    locked.flags.writeable = False
    for x in (a, a[3:3], a[1:], a[::2], locked):
        key, roots = c.read_roles({}, there, (read,), "first", (x,))
        assert key == ("first", ("host", x.dtype, x.shape, x.strides)) and len(roots) == 1 and roots[0] is x
        if x is not locked and np.dtype(dtype).kind in "ifc":
            assert c.read_roles({}, bytes([c.MAY_BE_ARRAY | c.IS_WRITTEN]), (read,), 1, (x,))[1][0] is x
    for how, x in ((c.MAY_BE_ARRAY | c.IS_WRITTEN, locked), (c.MAY_BE_ARRAY, a.view(Other)), (c.IS_WRITTEN, a),
                   (c.MAY_BE_ARRAY, a.reshape(3, 4)), (c.MAY_BE_ARRAY, a[0].reshape(()) if dtype == "int8" else 5)):
        with pytest.raises(LookupError):
            c.read_roles({}, bytes([how]), (read,), "first", (x,))


def test_whether_lines_are_apart(c):
    """The same of addresses and of arrays that begin there; what has no address is left to Python."""
    a, b = np.zeros(100, np.int8), np.zeros(100, np.int8)
    apart, alike = (struct.pack("9q", 0, 1, same, 0, -10, 10, 0, 1, -1) for same in (0, 1))
    for right, pairs, x, y in ((True, apart, a, b), (True, apart, a, a[10:]), (True, apart, a[10:], a),
                               (False, apart, a, a[9:]), (False, apart, a, a), (True, alike, a, a),
                               (False, alike, a, a[1:]), (False, apart, a[9:][::-1], a[::-1])):
        at = [v.__array_interface__["data"][0] for v in (x, y)]
        assert c.apart(pairs, [x, y]) == c.apart(pairs, at) == c.apart(pairs, [x, at[1]]) == right
    assert not c.apart(apart, [a, 2.0]) and not c.apart(apart, [a]) and c.apart(b"", [])
    with pytest.raises(TypeError, match="apart"):
        c.apart(apart, (a, b))


def test_what_a_reader_of_an_argument_raises(c):
    def read(value, key, roots):
        raise LookupError(value)
    with pytest.raises(LookupError, match="x"):
        c.read_roles({}, bytes(2), (read,) * 2, (), ("x", "y"))
    with pytest.raises(ValueError, match="takes 2 arguments, and a reader for each"):
        c.read_roles({}, bytes(2), (read,) * 2, (), ("x",))
    with pytest.raises(TypeError, match="takes kinds, how, readers, first, arguments"):
        c.read_roles({}, bytes(2), (read,) * 2, ())


def test_a_tensor_that_the_library_does_not_describe(c):
    t = Described(None, (3,), (1,))
    functions, kept = shims([t])
    c.torch_shims(tuple(ctypes.cast(f, ctypes.c_void_p).value for f in functions), PLACE, CLASSES[0], 0, 5)
    assert signatures(c, Described, c.TORCH_SHIM, [t]) == [NotImplemented] and kept


def test_the_number_of_functions(c):
    with pytest.raises(ValueError, match="addresses of 9 functions"):
        c.torch_shims((1,), PLACE, CLASSES[0], 0, 5)


def test_another_library_has_no_such_functions(c):
    assert c_readers.c_reader(c, Tensor(4096, (48,), (1,))) == c.TORCH  # torch is a stand-in here


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    c = extension.built()
    assert c_readers.c_reader(c, torch.ones(3)) == c.TORCH_SHIM
    x = torch.arange(24, dtype=torch.float32)
    tensors = [x, x.view(4, 6), x.view(4, 6).t(), x[1:], x[::2], x.view(2, 3, 4)[:, None], x[:0], x.to(torch.float16),
               x.to(torch.bfloat16), x.to(torch.int64), x > 3, torch.tensor(1.0), x.expand(2, 24), x.clone()]
    found = signatures(c, torch.Tensor, c.TORCH_SHIM, tensors)
    by_key = {}
    for t, one in zip(tensors, found, strict=True):
        if t.data_ptr() == 0:
            assert one is NotImplemented
            continue
        key = (t.dtype, t.shape, t.stride(), t.data_ptr() & 15)
        assert by_key.setdefault(one[0], key) == key and int.from_bytes(one[1], sys.byteorder) == t.data_ptr()
    assert len(by_key) == len(set(by_key.values()))


def test_tensors_of_pytorch_without_memory(capfd):
    torch = pytest.importorskip("torch")
    c = extension.built()
    freed, inside = torch.ones(8), []
    freed.untyped_storage().resize_(0)
    torch.vmap(lambda t: inside.extend(signatures(c, torch.Tensor, c.TORCH_SHIM, [t])) or t)(torch.ones(3, 2))
    torch.func.grad(lambda t: inside.extend(signatures(c, torch.Tensor, c.TORCH_SHIM, [t])) or t.sum())(torch.ones(3))
    wrong = [torch.ones(3, 3).to_sparse(), torch.ones(3, device="meta"), freed, torch._neg_view(torch.ones(3)),
             torch._efficientzerotensor(3), *([torch.ones(3, 3).to_mkldnn()] if torch.backends.mkldnn.is_available()
                                              else [])]
    assert c_readers.c_reader(c, torch.ones(3)) == c.TORCH_SHIM
    assert signatures(c, torch.Tensor, c.TORCH_SHIM, wrong) == [NotImplemented] * len(wrong)
    assert inside == [NotImplemented] * 2 and capfd.readouterr() == ("", "")
