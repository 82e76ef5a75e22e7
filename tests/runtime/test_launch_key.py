"""The key of launches: which arguments may share a plan, and which have no key [SPEC-1]."""

import enum
import math

import numpy as np
import pytest

import cutile as ct
from cutile.runtime import launch_key
from cutile.runtime.annotations import PLAIN, ParameterSpec, spec_of
from cutile.runtime.arguments import array_of, classify, classify_read
from cutile.runtime.array_ref import ArrayRef
from tests.gpu import extension
from tests.gpu.arrays import at
from tests.gpu.extension import CuPyArray
from tests.gpu.fake_driver import installed

CONSTANT = ParameterSpec(constant=True)


def read(value, spec=PLAIN):
    """The key of an argument, and its launch values."""
    key, values = [], []
    launch_key.read([value], [spec], key, values)
    return tuple(key), values


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


def test_launch_values():
    assert read((3, (2.5, True)))[1] == [3, 2.5, True]
    assert read([at(4096, (4,), **here), at(64, (4,), **here)])[1] == [[4096, 64]]
    assert read(x)[1][0] is x
    assert type(read(np.float64(2))[1][0]) is float


def test_constants():
    values = [1, True, 1.0, 0, 0.0, -0.0, False, None, "1", Level.LOW, ct.int8, np.int8(1), np.float32(1), math.inf]
    found = [read(v, CONSTANT) for v in values]
    assert len({k for k, _ in found}) == len(values) and all(v == [] for _, v in found)
    assert read(math.nan, CONSTANT) == read(float("nan"), CONSTANT)
    assert read((1, 2), CONSTANT)[0] != read((1, 3), CONSTANT)[0]
    mixed = spec_of(tuple[ct.Constant[int], int], "p")
    assert read((1, 2), mixed)[0] == read((1, 3), mixed)[0] != read((2, 3), mixed)[0]


@pytest.mark.parametrize("value", [2**63, -2**63 - 1, "a", None, {}, object(), 1j, np.int8(1),
                                   np.ma.masked_array([1.0]), (1, "a"), [x, "a"]])
def test_what_has_no_key(value):
    """These are no arguments; a launch says so."""
    with pytest.raises((LookupError, TypeError, OverflowError)):
        read(value)
    with pytest.raises((TypeError, OverflowError), match=r"Invalid kernel argument #1 \(`b"):
        ct.launch(None, (1,), ct.kernel(lambda a, b: None), (x, value))


@pytest.mark.parametrize("value", [
    x, x.T, (x, 2), [x, x[:2]], at(4096, (4,), (8,), **here), (1, (at(64, (), **here), x))])
def test_arguments_that_were_read_are_what_they_are_when_they_are_read_alone(value):
    key, values = read(value)
    (found,) = classify_read(["a"], [PLAIN], [value], key, values)
    alone = classify(0, "a", value, PLAIN)
    assert (found.arg_type, found.key) == (alone.arg_type, alone.key)
    assert str(found.flat_args) == str(alone.flat_args)


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
    for a, (key, (value,)) in zip(arrays, found, strict=True):
        assert type(value) is np.ndarray and value.ctypes.data == a.ctypes.data and value.strides == a.strides
        assert read(Lent(a.copy(order="K"), protocol))[0] == key or not (a.flags.c_contiguous or a.flags.f_contiguous)
    with pytest.raises(TypeError, match="complex64|DLPack"):
        ct.launch(None, (1,), ct.kernel(lambda a: None), (Lent(np.zeros(3, np.complex64), protocol),))


@pytest.mark.parametrize("protocol", ["__array_interface__", "__dlpack"])
def test_launches_on_them_are_known(protocol):
    @ct.kernel
    def k(a, out):
        ct.store(out, ct.bid(0), ct.load(a, ct.bid(0), 8) + 1)

    for n in (20, 20, 24):
        a, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
        ct.launch(None, (3,), k, (Lent(a, protocol), Lent(out, protocol)))
        assert out.tolist() == (a + 1).tolist()
    assert len(k.plans) == 2


def test_the_gpu_of_an_array_is_asked_of_the_driver_only_if_it_does_not_say(monkeypatch):
    fake = installed(monkeypatch)
    fake.homes = {4096: 1}
    asked = []
    for a in (at(4096, (4,)), at(0, (0,)), at(4096, (4,), **here), CuPyArray(4096, (4,), (1,))):
        ((_, _, _, _, device, _, _),), _ = read(a)
        asked.append((device, fake.names().count("cuPointerGetAttribute")))
    assert asked == [(1, 1), (None, 1), (0, 1), (0, 1)]


# ------------------------------------------------------------------ the libraries that have readers of their own


@pytest.mark.parametrize("cls", [extension.Tensor, extension.CuPyArray])
def test_arrays_of_torch_and_cupy(monkeypatch, cls):
    extension.installed(monkeypatch)
    variants = [cls(4096, (4,), (1,)), cls(4100, (4,), (1,)), cls(4096, (5,), (1,)), cls(4096, (4,), (2,)),
                cls(4096, (4,), (1,), device=1), cls(4096, (4,), (1,), "f2")]
    found = [read(v) for v in variants]
    assert len({k for k, _ in found}) == len(variants)
    assert [v for _, v in found] == [[4096], [4100], *[[4096]] * 4]
    assert read(cls(8192, (4,), (1,)))[0] == found[0][0]


@pytest.mark.parametrize("cls", [extension.Tensor, extension.CuPyArray])
def test_what_is_read_of_torch_and_cupy(monkeypatch, cls):
    """Where there is one element along an axis, the stride of CuPy says nothing."""
    extension.installed(monkeypatch)
    for shape, strides, want in (((2, 3), (3, 1), (3, 1)), ((2, 3), (1, 2), (1, 2)), ((1, 3), (7, 1), (3, 1)),
                                 ((0, 3), (7, 1), (3, 1))):
        a = array_of(cls(4096, shape, strides, "i2", device=1))
        assert a == ArrayRef(4096 if 0 not in shape or cls is extension.Tensor else 0, shape,
                             want if cls is extension.CuPyArray else strides, ct.int16, 1)


def test_tensors_without_a_key(monkeypatch):
    extension.installed(monkeypatch)
    for t in (extension.Tensor(4096, (4,), (1,), neg=True), extension.Tensor(4096, (4,), (1,), "c8"),
              extension.Tensor(4096, (4,), (1,), cuda=False)):
        for _ in range(2):
            with pytest.raises(TypeError):
                read(t)
