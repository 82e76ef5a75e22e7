"""Elements of a buffer by coordinates: range tests, reading and writing, in the order of blocks and elements."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from cutile.interp.memory import atomics
from cutile.interp.memory.buffer import Buffer, all_below
from cutile.interp.memory.tile_access import OUTSIDE, Coord, TileBounds
from cutile.interp.memory.tile_copy import read_only

Coordinates = tuple[np.ndarray, list[np.ndarray]]  # which elements exist; by axis, coordinates, 0 where none does


def coord(c) -> Coord:
    """One value per block as an int where all blocks agree."""
    c = np.asarray(c).astype(np.int64)
    return c if c.size > 1 else int(c.reshape(()))


def shape_of(coords: Sequence[Coord]) -> tuple[int, ...]:
    """The batch axes over which some coordinates differ."""
    return np.broadcast_shapes(*(c.shape for c in coords if isinstance(c, np.ndarray)))


def beside(c: Coord, rank: int):
    """One value per block, next to tiles of `rank` dimensions."""
    return c[(...,) + (None,) * rank] if isinstance(c, np.ndarray) else c


def coordinates(bounds: TileBounds, indices: Sequence[np.ndarray], rank: int) -> Coordinates:
    """The elements of an array at index tiles of `rank` dimensions [GS-3]. One True stands for all if all exist."""
    ok, coords = None, []
    for start, stop, i in zip(bounds.start, bounds.stop, indices, strict=False):
        if isinstance(start, int) and start == 0 and isinstance(stop, int):
            c = np.asarray(i)
            coords.append(c)
            if all_below(c, stop):
                continue
            inside = _below(c, stop)
        else:
            c = _shifted(np.asarray(i), start, rank)
            coords.append(c)
            first = np.maximum(start, 0) if isinstance(start, np.ndarray) else max(start, 0)
            inside = (c >= beside(first, rank)) & (c < beside(stop, rank))
        ok = inside if ok is None else ok & inside
    if ok is None:
        return _every(rank), coords
    if not ok.all():
        coords = [np.where(ok, c, c.dtype.type(0)) for c in coords]
    return ok, coords


@functools.cache
def _every(rank: int) -> np.ndarray:
    return read_only(np.ones((1,) * rank, bool))


def _below(i: np.ndarray, high: int) -> np.ndarray:
    """Which indices lie in 0 … high-1, as unsigned numbers: one comparison."""
    limit = max(high, 0)
    if i.dtype.kind == "i":
        if limit > np.iinfo(i.dtype).max:
            return i >= 0
        i = i.view(f"u{i.dtype.itemsize}")
    elif limit > np.iinfo(i.dtype).max:
        return np.ones(i.shape, bool)
    return np.less(i, i.dtype.type(limit))


def _shifted(i: np.ndarray, start: Coord, rank: int) -> np.ndarray:
    c = i.astype(np.int64, copy=False)
    if isinstance(start, int) and start == 0:
        return c
    return np.where((c < 0) | (c >= OUTSIDE), OUTSIDE, c) + beside(start, rank)


# ------------------------------------------------------------------ moving data


def take(buffer: Buffer, at: Coordinates, mask: np.ndarray | None, fill, tile_shape: tuple[int, ...],
         out: np.ndarray | None = None) -> np.ndarray:
    """The carriers of elements, `fill` where there is none or the mask is False."""
    ok, coords = at
    if mask is None and ok.size == 1 and ok and coords:
        x = buffer.take(buffer.position(coords), coords[0].size, out)
        if x.shape[x.ndim - len(tile_shape):] == tile_shape:
            return x
        return np.broadcast_to(x, np.broadcast_shapes(x.shape, tile_shape))
    keep = ok if mask is None else ok & mask
    shape = np.broadcast_shapes(keep.shape, tile_shape, *(c.shape for c in coords))
    if buffer.array.size == 0 or not keep.any():
        x = np.asarray(fill, buffer.carrier)
        return np.broadcast_to(x, np.broadcast_shapes(shape, x.shape))
    x = buffer.take(buffer.position(coords), keep.size)
    if not keep.all():
        return np.where(keep, x, np.asarray(fill, buffer.carrier))
    return x if x.shape == shape else np.broadcast_to(x, shape)


def put(buffer: Buffer, at: Coordinates, mask: np.ndarray | None, value: np.ndarray,
        tile_shape: tuple[int, ...]) -> None:
    """Store carriers to elements; where several go to one, the last one stays."""
    ok, coords = at
    keep = ok if mask is None else ok & mask
    shape = np.broadcast_shapes(keep.shape, np.shape(value), tile_shape, *(np.shape(c) for c in coords))
    if not keep.any():
        return
    some = None if keep.all() else np.broadcast_to(keep, shape)
    position, value = atomics.chosen(buffer, some, coords, shape), buffer.store(atomics.kept(value, shape, some))
    if isinstance(position, tuple):
        buffer.array[position] = value if position else value[-1]
    else:
        buffer.flat[position] = value


def update(buffer: Buffer, kind: str, at: Coordinates, mask: np.ndarray | None, operands: Sequence[np.ndarray],
           shape: tuple[int, ...], old: bool) -> tuple[np.ndarray, np.ndarray]:
    """Atomic updates, of `shape`: running blocks and elements."""
    ok, coords = at
    return atomics.apply(buffer, kind, ok, mask, coords, operands, shape, old)
