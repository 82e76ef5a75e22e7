"""Protocols of arrays: what an object says wrongly of its memory is told under the parameter and the field [ARG-1]."""

import numpy as np
import pytest

import cutile as ct

MEMORY = np.arange(8, dtype=np.float32)
FIELDS = {"shape": (8,), "typestr": "<f4", "data": (MEMORY.ctypes.data, False), "version": 3}


class Array:
    def __init__(self, name, value):
        setattr(self, name, value)


def without(field):
    return {k: v for k, v in FIELDS.items() if k != field}


@ct.kernel
def copy(x, y):
    ct.store(y, 0, ct.load(x, 0, 8))


def refused(x):
    with pytest.raises(TypeError, match=r"Invalid kernel argument #0 \(`x`\)") as e:
        ct.launch(None, (1,), copy, (x, np.zeros(8, np.float32)))
    return str(e.value)


@pytest.mark.parametrize(("fields", "says"), [
    (5, "no dictionary"), (without("shape"), "no 'shape'"), (without("typestr"), "no 'typestr'"),
    (without("data"), "no 'data'"), ({**FIELDS, "typestr": None}, "typestr is None"),
    ({**FIELDS, "typestr": "f4"}, "typestr is 'f4'"), ({**FIELDS, "shape": 8}, "shape is 8"),
    ({**FIELDS, "shape": (-1,)}, "shape is (-1,)"), ({**FIELDS, "shape": (8.0,)}, "shape is (8.0,)"),
    ({**FIELDS, "shape": ("8",)}, "shape is ('8',)"), ({**FIELDS, "shape": None}, "shape is None"),
    ({**FIELDS, "strides": (4, 4)}, "strides are (4, 4)"), ({**FIELDS, "strides": "x"}, "strides is 'x'"),
    ({**FIELDS, "data": 5}, "data is 5"), ({**FIELDS, "data": (1.5, False)}, "data is (1.5, False)")],
    ids=lambda v: v if isinstance(v, str) else "given")
def test_what_is_said_wrongly_of_gpu_memory(fields, says):
    assert "Array is malformed: " in (text := refused(Array("__cuda_array_interface__", fields))) and says in text


@pytest.mark.parametrize("fields", [
    5, without("shape"), without("typestr"), {**FIELDS, "typestr": "<f3"}, {**FIELDS, "shape": (-1,)},
    {**FIELDS, "shape": (1 << 62,)}, {**FIELDS, "shape": (1 << 70,)}, {**FIELDS, "strides": (4, 4)},
    {**FIELDS, "data": (0, False)}, {**FIELDS, "data": None}], ids=map(str, range(10)))
def test_what_is_said_wrongly_of_cpu_memory(fields):
    assert "the __array_interface__ of an object of type" in refused(Array("__array_interface__", fields))


@pytest.mark.parametrize("device", [None, 5, (), ("x", 0)], ids=repr)
def test_what_is_said_wrongly_of_a_device(device):
    class Producer:
        def __dlpack_device__(self):
            return device

        def __dlpack__(self, **_):
            raise AssertionError

    assert "__dlpack_device__() of an object of type" in (text := refused(Producer())) and repr(device) in text


def test_what_is_no_capsule():
    class Producer:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            return None

    assert "could not be read through DLPack" in refused(Producer())


@pytest.mark.parametrize(("value", "says"), [
    (b"abcd", "; np.frombuffer(x, dtype) makes an array of its bytes"),
    (bytearray(4), "; np.frombuffer(x, dtype) makes an array of its bytes"),
    (memoryview(bytes(4)), "; np.frombuffer(x, dtype) makes an array of its bytes"),
    (object(), "arrays and tuples of these")], ids=lambda v: type(v).__name__)
def test_what_an_array_can_be_made_of(value, says):
    assert refused(value).endswith(says)


def test_what_converts_to_an_array():
    class Series:
        def __array__(self, dtype=None, copy=None):
            return MEMORY

    assert refused(Series()).endswith("np.asarray(x) makes an array of it")
