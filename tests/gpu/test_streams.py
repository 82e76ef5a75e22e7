"""Streams of every library [LAUNCH-2]."""

import ctypes
import types

import numpy as np
import pytest

import cutile as ct
from cutile import compute
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
    (None, 0), (0, 0), (1, 1), (12345, 12345), (np.int64(9), 9), (np.array(10), 10), ((1 << 64) - 1, (1 << 64) - 1),
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


@pytest.mark.parametrize("stream", [
    object(), "0", 1.0, True, [], (0,), np.zeros(3), np.zeros((1, 1), int), np.float64(0), compute.OpKind.PLUS,
    compute.OpKind])
def test_what_is_no_stream(stream):
    with pytest.raises(TypeError, match=f"an object of type {type(stream).__name__} is no stream; a stream is None"):
        handle(stream)


def test_handles_that_cannot_be():
    with pytest.raises(TypeError, match="negative"):
        handle(-1)
    with pytest.raises(TypeError, match="64 bits"):
        handle(1 << 64)
    with pytest.raises(TypeError, match="version 1"):
        handle(Protocol(1, 5))


# ------------------------------------------------------------------ in CPU memory, where none is needed


@ct.kernel
def copied(x, y):
    ct.store(y, 0, ct.load(x, 0, 4))


X, Y = np.arange(4), np.zeros(4, int)
copy = ct.jit(copied, grid=(1,), out=ct.Out(like="x"), name="copy")
nothing = ct.jit(copied, grid=(0,), out=ct.Out(like="x"), name="nothing")
prepared = ct.prepare(copied, (1,), (X, Y))


@ct.kernel
def silent(n):
    pass


CALLS = {"launch": lambda s: ct.launch(s, (1,), copied, (X, Y)), "prepare": lambda s: ct.prepare(copied, (1,), (X, Y),
         stream=s), "launch over nothing": lambda s: ct.launch(s, (0,), copied, (X, Y)), "prepared": prepared,
         "function": lambda s: copy(X, stream=s), "given output": lambda s: copy(X, out=Y, stream=s),
         "function over nothing": lambda s: nothing(X, stream=s),
         "algorithm": lambda s: compute.reduce_into(X, Y, 4, compute.OpKind.PLUS, np.array([5]), stream=s)}


class CpuStream:
    """As torch.cpu.current_stream() gives it: it has no handle."""

    __module__ = "torch.cpu"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_streams_of_work_in_cpu_memory(call):
    for _ in range(3):  # the first time, and where C code knows it
        for stream in (None, 0, 2**63, CpuStream(), a(cuda_stream=5), 7):
            call(stream)
        for stream in ("abc", 1.0, True, [], (0,), object(), "0"):
            with pytest.raises(TypeError, match=f"an object of type {type(stream).__name__} is no stream; a stream is"):
                call(stream)
        with pytest.raises(TypeError, match="negative"):
            call(-1)


def test_streams_without_arrays(monkeypatch):
    monkeypatch.setenv("CUTILE_BACKEND", "interp")
    ct.launch(7, (1,), silent, (3,))
    with pytest.raises(TypeError, match="an object of type str is no stream"):
        ct.launch("abc", (1,), silent, (3,))
