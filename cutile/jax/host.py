"""Runs kernels of a JAX program on a CPU: the interpreter on XLA's buffers. _handlers.c calls `run`."""

from __future__ import annotations

import ctypes
import itertools
import threading
import zlib
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from cutile._support import float_mode
from cutile._support.lru import LruDict
from cutile._support.structs import structure
from cutile.dtypes import INFO, info, lowest
from cutile.errors import TileError
from cutile.interp import CompiledKernel, HostLaunch
from cutile.ir.nodes import Value
from cutile.tracebacks import for_users

LIMIT = 1000  # kernels that are kept; others are read from the program's text again

Buffer = tuple[int, tuple[int, ...]]  # its address and sizes


@structure(eq=False, slots=True)
class _Known:
    """What calls with some key do, which run a kernel on arrays of one layout.

    given   for each parameter the number of its buffer, its rank and its dtype, or the number that it is
    items   for each item of the batch, its offset in bytes in each buffer
    fresh   for each output that begins as no input does, its buffer, its dtype and what its elements begin as
    """

    launch: HostLaunch
    grid: tuple[int, int, int]
    given: Sequence[Any]
    items: Sequence[Sequence[int]]
    fresh: Sequence[tuple[int, np.dtype, Any]]
    used: bool = False  # by a recent call (see LruDict)


_known: LruDict[bytes, _Known] = LruDict(LIMIT)  # by the key of a call, which all its attributes are part of
_kernels: LruDict[bytes, Any] = LruDict(LIMIT)  # CompiledKernels that were made in this process, by the same


def remember(key: bytes, kernel: CompiledKernel) -> None:
    """Find this kernel, with what debuggers show of it, for calls with a key."""
    if key not in _kernels:
        _kernels.keep(key, kernel)


def used() -> bool:
    """Whether kernels ran here or may still run."""
    return bool(_known or _kernels)


_running: set[int] = set()  # threads


def stop() -> None:
    """End the calls that run, each at its next line of Python."""
    for thread in list(_running):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(SystemExit))


def run(attributes: Mapping[str, bytes], buffers: Sequence[Buffer]) -> None:
    """Run a call. `attributes` are those of attributes.py, as bytes. RuntimeError with the text of what goes wrong."""
    me = threading.get_ident()
    _running.add(me)
    try:
        if float_mode.usual():
            _run(attributes, buffers)
        else:  # as in XLA's threads
            float_mode.run(_run, attributes, buffers)
    except Exception as e:
        e = for_users(e) if isinstance(e, TileError) else e
        raise RuntimeError(f"{type(e).__name__}: {e}") from None
    finally:
        _running.discard(me)


def _run(attributes: Mapping[str, bytes], buffers: Sequence[Buffer]) -> None:
    known = _known.get(attributes["key"])
    if known is None:
        known = _understood(attributes, len(buffers))
        _known.keep(attributes["key"], known)
    known.used = True
    for place, dtype, value in known.fresh:
        _array(buffers[place], 0, len(buffers[place][1]), dtype).fill(value)
    for offsets in known.items:
        values = [_array(buffers[g[0]], offsets[g[0]], *g[1:]) if type(g) is tuple else g for g in known.given]
        known.launch.run(known.grid, None, values, False)


# ------------------------------------------------------------------ reading attributes


def _understood(attributes: Mapping[str, bytes], buffers: int) -> _Known:
    kernel = _kernels.get(attributes["key"]) or _from_text(attributes)
    places = np.frombuffer(attributes["places"], np.int32).tolist()
    given = [_number(p, attributes["image"][8 * i:8 * i + 8]) if place < 0 else
             (place, p.type.ndim, INFO[p.type.dtype].storage)
             for i, (p, place) in enumerate(zip(kernel.kernel.params, places, strict=True))]
    x, y, z = np.frombuffer(attributes["grid"], np.int64).tolist()
    dtypes = dict(zip(places, (p.type.dtype for p in kernel.kernel.params), strict=True))
    fresh = [(i, INFO[dtypes[i]].storage, np.asarray(lowest(dtypes[i])).astype(INFO[dtypes[i]].storage))
             for i in np.frombuffer(attributes.get("fresh", b""), np.int32).tolist()]
    return _Known(HostLaunch(kernel, repeatable=True), (x, y, z), given, _items(attributes, buffers), fresh)


def _from_text(attributes: Mapping[str, bytes]) -> CompiledKernel:
    """The kernel of a program that another process made, or that was forgotten here."""
    from cutile.ir.parse import parse

    text = zlib.decompress(attributes["program"]).decode()
    if not text:
        raise RuntimeError("this kernel has a constant that no text can hold, so only the process that made the "
                           "program can run it")
    return CompiledKernel(parse(text))


def _items(attributes: Mapping[str, bytes], buffers: int) -> list[list[int]]:
    batch = np.frombuffer(attributes["batch"], np.int64).tolist()
    steps = np.frombuffer(attributes["steps"], np.int64).reshape(len(batch), buffers)
    return [(np.array(index, np.int64) @ steps).tolist() if batch else [0] * buffers
            for index in itertools.product(*map(range, batch))]


def _number(p: Value, image: bytes) -> int | float:
    kind = ctypes.c_double if info(p.type.dtype).floating else ctypes.c_int64
    return kind.from_buffer_copy(image).value


def _array(buffer: Buffer, offset: int, ndim: int, dtype: np.dtype) -> np.ndarray:
    """One item of a buffer."""
    address, sizes = buffer
    shape = sizes[len(sizes) - ndim:]
    n = prod(shape) * dtype.itemsize
    if n == 0:
        return np.empty(shape, dtype)
    return np.frombuffer((ctypes.c_char * n).from_address(address + offset), np.uint8).view(dtype).reshape(shape)
