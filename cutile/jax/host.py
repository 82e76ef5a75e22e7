"""Runs kernels of a JAX program on a CPU: the interpreter on XLA's buffers. _handlers.c calls `run`."""

from __future__ import annotations

import ctypes
import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from cutile._support import float_mode
from cutile._support.lru import LruDict
from cutile._support.structs import structure
from cutile.dtypes import INFO, info
from cutile.errors import TileError, for_users
from cutile.interp import CompiledKernel, HostLaunch
from cutile.ir.nodes import Value
from cutile.types import ArrayType

LIMIT = 1000  # kernels that are kept; others are read from the program's text again

Buffer = tuple[int, tuple[int, ...]]  # its address and sizes


@structure(eq=False, slots=True)
class _Known:
    """A kernel that calls with some key run on arrays of one layout."""

    launch: HostLaunch
    params: Sequence[Value]
    used: bool = False  # by a recent call (see LruDict)


_known: LruDict[bytes, _Known] = LruDict(LIMIT)


def remember(key: bytes, kernel: CompiledKernel) -> None:
    """Find this kernel, with what debuggers show of it, for calls with a key."""
    if _known.get(key) is None:
        _keep(key, kernel)


def _keep(key: bytes, kernel: CompiledKernel) -> _Known:
    found = _Known(HostLaunch(kernel, repeatable=True), kernel.kernel.params)
    _known.keep(key, found)
    return found


def run(attributes: Mapping[str, bytes], buffers: Sequence[Buffer]) -> None:
    """Run a call. `attributes` are those of attributes.py, as bytes. RuntimeError with the text of what goes wrong."""
    try:
        if float_mode.usual():
            _run(attributes, buffers)
        else:  # as in XLA's threads
            float_mode.run(_run, attributes, buffers)
    except Exception as e:
        e = for_users(e) if isinstance(e, TileError) else e
        raise RuntimeError(f"{type(e).__name__}: {e}") from None


def _run(attributes: Mapping[str, bytes], buffers: Sequence[Buffer]) -> None:
    known = _known.get(attributes["key"])
    if known is None:
        known = _from_text(attributes)
    known.used = True
    x, y, z = _numbers(attributes, "grid")
    places = np.frombuffer(attributes["places"], np.int32).tolist()
    for offsets in _items(attributes, len(buffers)):
        values = [_value(p, buffers[place], offsets[place]) if place >= 0 else
                  _number(p, attributes["image"][8 * i:8 * i + 8])
                  for i, (p, place) in enumerate(zip(known.params, places, strict=True))]
        known.launch.run((x, y, z), None, values, False)


def _from_text(attributes: Mapping[str, bytes]) -> _Known:
    """The kernel of a program that another process made, or that was forgotten here."""
    from cutile.ir.parse import parse

    text = zlib.decompress(attributes["program"]).decode()
    if not text:
        raise RuntimeError("this kernel has a constant that no text can hold, so only the process that made the "
                           "program can run it")
    return _keep(attributes["key"], CompiledKernel(parse(text)))


def _items(attributes: Mapping[str, bytes], buffers: int) -> Iterator[list[int]]:
    """For each item of the batch, its offset in bytes in each buffer."""
    batch = _numbers(attributes, "batch")
    steps = np.frombuffer(attributes["steps"], np.int64).reshape(len(batch), buffers)
    for index in itertools.product(*map(range, batch)):
        yield (np.array(index, np.int64) @ steps).tolist() if batch else [0] * buffers


def _numbers(attributes: Mapping[str, bytes], name: str) -> list[int]:
    return np.frombuffer(attributes[name], np.int64).tolist()


def _value(p: Value, buffer: Buffer, offset: int) -> np.ndarray:
    """One item of a buffer as an array."""
    assert isinstance(p.type, ArrayType)
    address, sizes = buffer
    shape, dtype = sizes[len(sizes) - p.type.ndim:], INFO[p.type.dtype].storage
    n = prod(shape) * dtype.itemsize
    if n == 0:
        return np.empty(shape, dtype)
    return np.frombuffer((ctypes.c_char * n).from_address(address + offset), np.uint8).view(dtype).reshape(shape)


def _number(p: Value, image: bytes) -> int | float:
    kind = ctypes.c_double if info(p.type.dtype).floating else ctypes.c_int64
    return kind.from_buffer_copy(image).value
