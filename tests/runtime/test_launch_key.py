"""The cheap key: what may share a plan, and what has none [SPEC-1]."""

import enum
import math
import sys
import types

import numpy as np
import pytest

import cutile as ct
from cutile.runtime import launch_key
from cutile.runtime.annotations import PLAIN, ParameterSpec, spec_of
from cutile.runtime.arrays import DeviceArray
from tests.gpu.arrays import Tracked, at, autograd

CONSTANT = ParameterSpec(constant=True)


def read(value, spec=PLAIN):
    key, words = [], []
    launch_key.read([value], [spec], key, words)
    return tuple(key), words


class Level(enum.IntEnum):
    LOW = 1


x = np.zeros((4, 6), np.float32)
here = {"__dlpack_device__": lambda: (2, 0)}
DIFFERENT = [
    True, 1, 2**31, 1.0, (1,), (1, 1), ((1,), 1), (1, (1,)), ((1, 1),), (), x, x.T, x[:2], x.astype(np.float16), [x],
    [x, x], (x,), [x, x.T], at(4096, (4,), **here), at(4100, (4,), **here), at(4096, (5,), **here),
    at(4096, (4,), (8,), **here), at(4096, (4,), typestr="<i4", **here), at(4096, (4, 1), **here),
    at(4096, (4,), __dlpack_device__=lambda: (2, 1))]


def test_different():
    found = [read(v)[0] for v in DIFFERENT]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("a, b", [
    (1, -5), (2**31 - 1, -2**31), (2**31, -2**63), (1.0, math.nan), (1.0, np.float64(3)), (True, False),
    (x, np.ones((4, 6), np.float32)), ([x, x], [x, x + 1]), ((1, (2.0,)), (3, (4.0,))),
    (at(4096, (4,), **here), at(8192, (4,), **here))])
def test_equal(a, b):  # SPEC-4
    assert read(a)[0] == read(b)[0]


def test_words():
    assert read((3, (2.5, True)))[1] == [3, 2.5, True]
    assert read([at(4096, (4,), **here), at(64, (4,), **here)])[1] == [[4096, 64]]
    assert read(x)[1][0] is x
    assert type(read(np.float64(2))[1][0]) is float


def test_constants():
    values = [1, True, 1.0, 0, 0.0, -0.0, False, None, "1", Level.LOW, ct.int8, np.int8(1), np.float32(1), math.inf]
    found = [read(v, CONSTANT) for v in values]
    assert len({k for k, _ in found}) == len(values) and all(w == [] for _, w in found)
    assert read(math.nan, CONSTANT) == read(float("nan"), CONSTANT)
    assert read((1, 2), CONSTANT)[0] != read((1, 3), CONSTANT)[0]
    mixed = spec_of(tuple[ct.Constant[int], int], "p")
    assert read((1, 2), mixed)[0] == read((1, 3), mixed)[0] != read((2, 3), mixed)[0]


@pytest.mark.parametrize("value", [2**63, -2**63 - 1, "a", None, {}, object(), 1j, np.int8(1),
                                   np.ma.masked_array([1.0]), (1, "a"), [x, "a"]])
def test_what_has_no_key(value):
    """Most of these are no arguments at all; what is one is understood anew at each launch."""
    with pytest.raises(LookupError):
        read(value)


class Lent:
    """An array that another library has in CPU memory."""

    def __init__(self, a, protocol):
        self.a = a
        self.protocol = protocol

    def __getattr__(self, name):
        if name.startswith(self.protocol):
            return getattr(self.a, name)
        raise AttributeError(name)


@pytest.mark.parametrize("protocol", ["__array_interface__", "__dlpack"])
def test_arrays_of_other_libraries_in_cpu_memory(protocol):
    arrays = [x, x.T, x[:2], x[:, ::2], x.astype(np.float16), x.astype(np.int32)]
    found = [read(Lent(a, protocol)) for a in arrays]
    assert len({k for k, _ in found}) == len(arrays)
    for a, (key, (word,)) in zip(arrays, found, strict=True):
        assert type(word) is np.ndarray and word.ctypes.data == a.ctypes.data and word.strides == a.strides
        assert read(Lent(a.copy(order="K"), protocol))[0] == key or not (a.flags.c_contiguous or a.flags.f_contiguous)
    with pytest.raises(LookupError):
        read(Lent(np.zeros(3, np.complex64), protocol))


@pytest.mark.parametrize("protocol", ["__array_interface__", "__dlpack"])
def test_launches_on_them_are_known(protocol):
    @ct.kernel
    def k(a, out):
        ct.store(out, ct.bid(0), ct.load(a, ct.bid(0), 8) + 1)

    for n in (20, 20, 24):
        a, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
        ct.launch(None, (3,), k, (Lent(a, protocol), Lent(out, protocol)))
        assert out.tolist() == (a + 1).tolist()
    assert len(k.remembered.plans) == 2


def test_the_gpu_of_an_array_is_asked_of_the_driver_only_if_it_does_not_say():
    for device, pointer in ((None, 0), (3, 4096)):
        a = DeviceArray(pointer, (4,), (1,), ct.float32, device)
        assert launch_key.device_of(a) == device


# ------------------------------------------------------------------ the libraries that have readers of their own


@pytest.fixture
def libraries(monkeypatch):
    """Stand-ins for torch and CuPy, with the attributes that are read."""

    class Array(Tracked):
        def __init__(self, pointer, shape, strides, device=0, dtype="f4", cuda=True, neg=False):
            self.shape, self.dtype, self._ = shape, dtype, (pointer, strides, device, neg)
            self.is_cuda = cuda

        data_ptr = lambda self: self._[0]
        stride = lambda self: self._[1]
        get_device = lambda self: self._[2]
        is_neg = lambda self: self._[3]

    class ndarray(Array):
        data = property(lambda self: types.SimpleNamespace(ptr=self._[0], device_id=self._[2]))
        strides = property(lambda self: self._[1])

    torch = types.SimpleNamespace(Tensor=type("Tensor", (Array,), {}), nn=types.SimpleNamespace(Parameter=None))
    monkeypatch.setitem(sys.modules, "torch", autograd(torch))
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(ndarray=ndarray))
    monkeypatch.setattr(launch_key, "_READERS", dict(launch_key._READERS))
    return torch.Tensor, ndarray


def test_arrays_of_torch_and_cupy(libraries):
    for cls in libraries:
        variants = [cls(4096, (4,), (1,)), cls(4100, (4,), (1,)), cls(4096, (5,), (1,)), cls(4096, (4,), (2,)),
                    cls(4096, (4,), (1,), 1), cls(4096, (4,), (1,), 0, "f2")]
        found = [read(v) for v in variants]
        assert len({k for k, _ in found}) == len(variants)
        assert [w for _, w in found] == [[4096], [4100], *[[4096]] * 4]
        assert read(cls(8192, (4,), (1,)))[0] == found[0][0]


def test_tensors_without_a_key(libraries):
    tensor, _ = libraries
    assert read(tensor(4096, (4,), (1,), neg=True))[0] != read(tensor(4096, (4,), (1,)))[0]
    with pytest.raises((LookupError, TypeError)):
        read(type("Sub", (tensor,), {})(4096, (4,), (1,)))
