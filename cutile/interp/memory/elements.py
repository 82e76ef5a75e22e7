"""Reads and writes elements of a buffer at coordinates, in the order of blocks and elements, and tests which exist."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from cutile._support.strides import without_repetition
from cutile.compiled import form
from cutile.interp.memory import atomics
from cutile.interp.memory.buffer import Buffer, all_below
from cutile.interp.memory.tile_copy import make_read_only
from cutile.interp.memory.tile_locations import OUTSIDE, Coord, TileBounds

Coordinates = tuple[np.ndarray, list[np.ndarray]]  # which elements exist; coordinates by axis, 0 where none does


def coord(c) -> Coord:
    """One value per block as a Coord: an int if there is one element only."""
    c = np.asarray(c).astype(np.int64)
    return c if c.size > 1 else int(c.reshape(()))


def shape_of(coords: Sequence[Coord]) -> tuple[int, ...]:
    """Lengths of the batch axes over which some of the coordinates differ."""
    return np.broadcast_shapes(*(c.shape for c in coords if isinstance(c, np.ndarray)))


def beside(c: Coord, rank: int):
    """One value per block, with axes of length 1 added so that it broadcasts against tiles of `rank` dimensions."""
    return c[(...,) + (None,) * rank] if isinstance(c, np.ndarray) else c


def coordinates(bounds: TileBounds, indices: Sequence[np.ndarray], rank: int) -> Coordinates:
    """The elements of an array at index tiles of `rank` dimensions [GS-3]. If all exist, the mask is a single True.

    Coordinates have length 1 along axes along which they are the same.
    """
    ok, coords = None, []
    for start, stop, i in zip(bounds.start, bounds.stop, indices, strict=False):
        c = without_repetition(np.asarray(i))
        if isinstance(start, int) and start == 0 and isinstance(stop, int):
            if all_below(c, stop):
                coords.append(c)
                continue
            inside = _below(c, stop)
        else:
            c = _shifted(c, start, rank)
            first = np.maximum(start, 0) if isinstance(start, np.ndarray) else max(start, 0)
            inside = (c >= beside(first, rank)) & (c < beside(stop, rank))
        coords.append(c if inside.all() else np.where(inside, c, c.dtype.type(0)))
        ok = inside if ok is None else ok & inside
    return _every(rank) if ok is None else ok, coords


@functools.cache
def _every(rank: int) -> np.ndarray:
    return make_read_only(np.ones((1,) * rank, bool))


def _below(i: np.ndarray, high: int) -> np.ndarray:
    """Which indices lie in 0 … high-1. Reads them as unsigned, so that one comparison is enough."""
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


# ------------------------------------------------------------------ in one pass, where there are compiled forms


def gathered(buffer: Buffer, bounds: TileBounds, indices: Sequence[np.ndarray], mask: np.ndarray | None, fill,
             tile_shape: tuple[int, ...], out: np.ndarray | None) -> np.ndarray | None:
    """What `take` gives at `coordinates(bounds, indices)`. None, like the next ones, where no compiled form does it."""
    source = buffer.array if buffer.plain else buffer.carriers
    if source is None or (compiled := _form("gather", bounds, indices)) is None:
        return None
    x = compiled(source, _limits(bounds), tuple(indices), mask, np.asarray(fill, buffer.carrier), out)
    if x.shape[x.ndim - len(tile_shape):] == tile_shape:
        return x
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tile_shape))


def scattered(buffer: Buffer, bounds: TileBounds, indices: Sequence[np.ndarray], mask: np.ndarray | None,
              value: np.ndarray) -> bool | None:
    """What `put` does; True where it is done."""
    if (compiled := _form("scatter", bounds, indices)) is None:
        return None
    compiled(_words(buffer.array), _limits(bounds), tuple(indices), mask, _words(np.asarray(buffer.store(value))))
    return True


def updated(buffer: Buffer, kind: str, bounds: TileBounds, indices: Sequence[np.ndarray], mask: np.ndarray | None,
            operands: Sequence[np.ndarray], shape: tuple[int, ...], old: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """What `update` gives."""
    if not old and mask is None and atomics.ufunc_at_suffices(buffer.dtype, kind) \
            or (compiled := _form(f"atomic {kind} {buffer.dtype.name}", bounds, indices)) is None:
        return None
    memory = buffer.array if buffer.plain else buffer.array.view(np.uint16)
    done, before = compiled(memory, _limits(bounds), tuple(indices), mask, operands[0], operands[-1], shape)
    return done, before if old else atomics.filled_with(0, buffer.carrier, shape)


MOST_AXES = 8  # of an array, in the compiled forms


def _form(name: str, bounds: TileBounds, indices: Sequence[np.ndarray]) -> Callable | None:
    return form(name) if bounds.fixed and len(indices) <= MOST_AXES else None


def _limits(bounds: TileBounds) -> tuple[int, ...]:
    """Where the view begins and ends along each axis, as the compiled forms take it."""
    return tuple(itertools.chain.from_iterable(zip(bounds.start, bounds.stop, strict=True)))


def _words(a: np.ndarray) -> np.ndarray:
    """The array; elements of which only ml_dtypes knows the dtype as integers."""
    return a if a.dtype.isbuiltin == 1 else a.view(f"u{a.dtype.itemsize}")


# ------------------------------------------------------------------ moving data


def take(buffer: Buffer, at: Coordinates, mask: np.ndarray | None, fill, tile_shape: tuple[int, ...],
         out: np.ndarray | None = None) -> np.ndarray:
    """The carriers of elements; `fill` where an element does not exist or the mask is False. The result may be written
    to `out`, which is then returned.
    """
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
    """Store carriers to elements. Of several for one element, the last one stays."""
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
    """`atomics.apply` to the elements at these coordinates."""
    ok, coords = at
    return atomics.apply(buffer, kind, ok, mask, coords, operands, shape, old)
