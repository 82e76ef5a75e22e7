"""Reading and writing the tiles of many blocks, wherever `tile_locations.locate` says that they lie.

Elements outside the array are never read or written: a read returns `fill` for them, a write drops their values.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutile.interp.memory.strided_tile import StridedMemory
from cutile.interp.memory.tile_locations import Clipped, Full, Location


def read(memory: StridedMemory, where: Location, fill, carrier: np.dtype, convert: Callable | None,
         copy: bool) -> np.ndarray:
    """The tiles, converted by `convert` if given. Without copy=True they may be a read-only view of memory."""
    if isinstance(where, Full):
        v = where.tile.of(memory)
        return convert(v) if convert else v.copy() if copy else make_read_only(v)
    convert = convert or _identity
    if not isinstance(where, Clipped):
        return where.read(memory, fill, carrier, convert)
    out = np.full(where.shape, fill, carrier)
    for part, tile in where.parts:
        out[part] = convert(tile.of(memory))
    return out


def write(memory: StridedMemory, where: Location, value: np.ndarray, tile_rank: int) -> None:
    """Write storage values with batch axes. Where tiles overlap, the value of the last block in row-major order stays.
    """
    shape = where.tile.shape if isinstance(where, Full) else where.shape
    value = _last_of(value, shape[:len(shape) - tile_rank], tile_rank)
    if isinstance(where, Full):
        where.tile.of(memory)[...] = value
    elif isinstance(where, Clipped):
        for part, tile in where.parts:
            tile.of(memory)[...] = value[part]
    else:
        where.write(memory, np.broadcast_to(value, shape))


def make_read_only(v: np.ndarray) -> np.ndarray:
    v.setflags(write=False)
    return v


def _identity(v: np.ndarray) -> np.ndarray:
    return v


def _last_of(value: np.ndarray, batch_shape: tuple[int, ...], tile_rank: int) -> np.ndarray:
    """A value with the batch axes of its destination. If several blocks write to one place, the value of the last one
    is taken.
    """
    axes = value.shape[:value.ndim - tile_rank]
    if axes == batch_shape:
        return value
    if len(axes) > len(batch_shape):
        value = value[(-1,) * (len(axes) - len(batch_shape))]
        axes = value.shape[:value.ndim - tile_rank]
    beside = batch_shape[len(batch_shape) - len(axes):]
    if any(n > d for n, d in zip(axes, beside, strict=True)):
        value = value[tuple(slice(-1, None) if n > d else slice(None) for n, d in zip(axes, beside, strict=True))]
    return np.broadcast_to(value, batch_shape + value.shape[value.ndim - tile_rank:])
