"""Streams of other libraries as the driver's handles [LAUNCH-2]."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from operator import attrgetter, index
from typing import Any

from cutile.errors import refusal

TAKEN = ("None (the default stream), a stream of PyTorch, CuPy, Numba or cuda.core, an object with __cuda_stream__, "
         "or an int handle")


def _numba(stream: Any) -> int:
    """The handle of a stream of Numba: a ctypes pointer, whose value is None if it is null."""
    return int(getattr(stream.handle, "value", stream.handle) or 0)


def _protocol(stream: Any) -> int:
    given = stream.__cuda_stream__
    version, handle = given() if callable(given) else given  # cuda.core once had it as an attribute
    if version != 0:
        raise refusal(TypeError(f"__cuda_stream__ of {type(stream).__name__} has version {version}; version 0 is "
                                f"understood"))
    return int(handle)


# How streams are read, by the attribute that tells their kind; the first attribute that a stream has decides.
_READERS: tuple[tuple[str, Callable[[Any], int]], ...] = (
    ("cuda_stream", attrgetter("cuda_stream")),  # PyTorch
    ("__cuda_stream__", _protocol),  # cuda.core, and others with its protocol
    ("ptr", attrgetter("ptr")),  # like a stream of CuPy
    ("handle", _numba),
)

by_type: dict[type, Callable[[Any], int]] = {  # classes met so far
    int: lambda stream: stream,
    type(None): lambda stream: 0,
}


def handle(stream: Any) -> int:
    """The handle of a stream; 0 is the default stream. TypeError if it is no stream."""
    read = by_type.get(type(stream))
    if read is None:
        read = by_type[type(stream)] = _reader(stream)
    number = int(read(stream))
    if number < 0:
        raise refusal(TypeError(f"a stream's handle cannot be negative, got {number}"))
    if number >> 64:
        raise refusal(TypeError(f"a stream's handle has 64 bits, got {number}"))
    return number


def check_on_host(stream: Any) -> None:
    """TypeError for what is no stream, for work in CPU memory, which has no need of one. Streams that PyTorch has for
    CPUs are ones here.
    """
    if stream is not None and type(stream).__module__ != "torch.cpu":
        handle(stream)


def _reader(stream: Any) -> Callable[[Any], int]:
    if type(stream).__module__.partition(".")[0] == "cupy":
        return attrgetter("ptr")  # takes a third of the time of `__cuda_stream__`
    if not isinstance(stream, bool | Enum):
        for name, read in _READERS:
            if hasattr(stream, name):
                return read
        if type(stream).__name__ == "CUstream":  # of cuda.bindings
            return int
        if hasattr(stream, "__index__"):
            return _number
    raise _no_stream(stream)


def _number(stream: Any) -> int:
    try:
        return index(stream)
    except TypeError:  # of NumPy's arrays, some are numbers
        raise _no_stream(stream) from None


def _no_stream(stream: Any) -> Exception:
    return refusal(TypeError(f"an object of type {type(stream).__name__} is no stream; a stream is {TAKEN}"))
