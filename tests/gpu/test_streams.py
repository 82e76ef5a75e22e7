"""Streams of every library [LAUNCH-2]."""

import ctypes
import types

import numpy as np
import pytest

from cutile.gpu.streams import handle


def a(cls_name="Stream", **attributes):
    """An object of a new class with these attributes of its own, as most libraries have them."""
    obj = type(cls_name, (), {})()
    obj.__dict__.update(attributes)
    return obj


class Protocol:
    def __init__(self, version, number):
        self.answer = version, number

    def __cuda_stream__(self):
        return self.answer


class CUstream:
    def __int__(self):
        return 77


@pytest.mark.parametrize("stream, number", [
    (None, 0), (0, 0), (1, 1), (12345, 12345), (np.int64(9), 9),
    (a(cuda_stream=11), 11),  # torch
    (a(ptr=12), 12),  # CuPy
    (a(handle=ctypes.c_void_p(13)), 13), (a(handle=ctypes.c_void_p(None)), 0),  # Numba
    (a(handle=types.SimpleNamespace(value=14)), 14),
    (Protocol(0, 15), 15), (a(__cuda_stream__=(0, 16)), 16), (CUstream(), 77)])
def test_streams(stream, number):
    assert handle(stream) == number
    assert handle(stream) == number


def test_each_stream_of_a_class_has_its_own_handle():
    class Stream:
        def __init__(self, n):
            self.cuda_stream = n

    assert [handle(Stream(n)) for n in (5, 0, 6)] == [5, 0, 6]


@pytest.mark.parametrize("stream", [object(), "0", 1.0, True, [], (0,)])
def test_what_is_no_stream(stream):
    with pytest.raises(TypeError, match=f"an object of type {type(stream).__name__} as its stream; it takes None"):
        handle(stream)


def test_handles_that_cannot_be():
    with pytest.raises(TypeError, match="negative"):
        handle(-1)
    with pytest.raises(TypeError, match="version 1"):
        handle(Protocol(1, 5))
