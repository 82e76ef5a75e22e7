"""An array value that differs by block: an item of a list at an index that does, or an array that depends on the path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from cutile.dtypes import info
from cutile.interp.memory.array import Array, ArrayBase
from cutile.interp.memory.buffer import Buffer

Operand = tuple[np.ndarray | None, int]  # a value with batch axes, and the rank of its tiles


def of_blocks(x: np.ndarray | None, rank: int, batch_shape: tuple[int, ...], blocks: np.ndarray) -> np.ndarray | None:
    """The part of a value for some blocks, as one batch axis. `blocks` are their numbers in row-major order of
    `batch_shape`. A value without batch axes stays as it is.
    """
    if x is None or x.ndim == rank:
        return x
    axes = x.shape[:x.ndim - rank]
    at = np.unravel_index(blocks, batch_shape)[len(batch_shape) - len(axes):]
    return x[tuple(np.zeros_like(i) if n == 1 else i for i, n in zip(at, axes, strict=True))]


class PerBlockArray(ArrayBase):
    """An array for each block: `views[which]`, where `which` has batch axes. For a number out of range the array has no
    elements. Each method
    calls that of every view, for the blocks that have this view.
    """

    def __init__(self, views: Sequence[Array], which: np.ndarray):
        self.views, self.which = tuple(views), which
        first = self.views[0]
        self.dtype, self.index_dtype, self.ndim = first.dtype, first.index_dtype, first.ndim
        self.carrier = info(self.dtype).carrier

    def __repr__(self) -> str:
        return f"one of {len(self.views)} {info(self.dtype).short} arrays of rank {self.ndim} per block"

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.which.shape, *(v.batch_shape for v in self.views))

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return tuple(b for v in self.views for b in v.buffers)

    @property
    def writable(self) -> bool:
        return all(v.writable for v in self.views)

    @property
    def name(self) -> str:
        return ", ".join(dict.fromkeys(v.name for v in self.views))

    @property
    def present(self) -> np.ndarray:
        """For which blocks there is a view, a carrier of a scalar."""
        return (self.which >= 0) & (self.which < len(self.views))

    # -- dispatch

    def _each(self, ask: Callable, operands: Sequence[Operand], results: Sequence[np.ndarray] | None = None,
              batch_shape: tuple[int, ...] | None = None) -> list[np.ndarray]:
        """Call `ask(view, operands, batch shape)` for each view, all narrowed to the blocks that have it.

        `results`: for each result the value of blocks without a view, its dtype and its tile shape. `batch_shape` is
        that of the blocks; None means the shape to which `which`, the operands and the views broadcast.
        """
        if batch_shape is None:
            batch_shape = np.broadcast_shapes(
                self.which.shape, *(x.shape[:x.ndim - r] for x, r in operands if x is not None),
                *(v.batch_shape for v in self.views))
        count = prod(batch_shape)
        out = [_filled(*result, batch_shape) for result in results or ()]
        which = np.broadcast_to(self.which, batch_shape).reshape(-1)
        for k in np.unique(which).tolist():
            if not 0 <= k < len(self.views):
                continue
            blocks = np.flatnonzero(which == k)

            def narrow(x, rank, blocks=blocks):
                return of_blocks(x, rank, batch_shape, blocks)

            got = ask(self.views[k].for_blocks(narrow), [narrow(x, r) for x, r in operands],
                      (len(blocks),) if batch_shape else ())
            for whole, part in zip(out, got if len(out) > 1 else (got,), strict=False):
                whole[blocks] = part
        assert all(len(x) == count for x in out)
        return [x.reshape(batch_shape + x.shape[1:]) for x in out]

    def _sizes(self, get: Callable) -> tuple[np.ndarray, ...]:
        index = info(self.index_dtype).carrier
        return tuple(self._each(lambda v, _, __, k=k: get(v)[k], (), [(0, index, ())])[0] for k in range(self.ndim))

    @property
    def shape(self) -> tuple[np.ndarray, ...]:
        return self._sizes(lambda v: v.shape)

    @property
    def strides(self) -> tuple[np.ndarray, ...]:
        return self._sizes(lambda v: v.strides)

    # -- arrays made from this one

    def for_blocks(self, take) -> PerBlockArray:
        which = take(self.which, 0) if self.which.ndim else self.which
        return PerBlockArray([v.for_blocks(take) for v in self.views], which)

    def slice(self, axis, start, stop) -> PerBlockArray:
        return PerBlockArray([v.slice(axis, start, stop) for v in self.views], self.which)

    def over(self, memory) -> PerBlockArray:
        return PerBlockArray([v.over(memory) for v in self.views], self.which)

    @property
    def raw(self) -> PerBlockArray:
        return PerBlockArray([v.raw for v in self.views], self.which)

    def pointer(self, encode) -> np.ndarray:
        return self._each(lambda v, _, __: v.pointer(encode), (), [(0, np.dtype(np.uint64), ())])[0]

    # -- tiles

    def view(self, origin, shape, order, steps=None) -> None:
        return None

    def target(self, origin, shape, order, batch_shape) -> None:
        return None

    def tile(self, origin, shape, order, fill, steps=None) -> np.ndarray:
        return self._each(lambda v, o, _: v.tile(o, shape, order, fill, steps), [(j, 0) for j in origin],
                          [(fill, self.carrier, tuple(shape))])[0]

    def put(self, origin, tile, shape, order, steps=None) -> None:
        self._each(lambda v, x, _: v.put(x[:-1], x[-1], shape, order, steps),
                   [*((j, 0) for j in origin), (tile, len(shape))])

    # -- elements

    def exists(self, indices, rank) -> np.ndarray:
        shape = np.broadcast_shapes((1,) * rank, *(np.shape(i)[np.ndim(i) - rank:] for i in indices))
        return self._each(lambda v, x, _: v.exists(x, rank), [(i, rank) for i in indices],
                          [(False, np.dtype(bool), shape)])[0]

    def gather(self, indices, mask, fill, tile_shape, out=None) -> np.ndarray:
        rank = len(tile_shape)
        return self._each(lambda v, x, _: v.gather(x[:-2], x[-2], x[-1], tile_shape),
                          [(x, rank) for x in (*indices, mask, fill)], [(fill, self.carrier, tile_shape)])[0]

    def scatter(self, indices, value, mask, tile_shape) -> None:
        rank = len(tile_shape)
        self._each(lambda v, x, _: v.scatter(x[:-2], x[-2], x[-1], tile_shape),
                   [(x, rank) for x in (*indices, value, mask)])

    def update(self, kind, indices, operands, mask, tile_shape, batch_shape, old=True):
        n, rank = len(indices), len(tile_shape)
        return tuple(self._each(
            lambda v, x, blocks: v.update(kind, x[:n], x[n:-1], x[-1], tile_shape, blocks, old),
            [(x, rank) for x in (*indices, *operands, mask)],
            [(False, np.dtype(bool), tile_shape), (0, self.carrier, tile_shape)], batch_shape))


def _filled(fill, dtype: np.dtype, tile_shape: tuple[int, ...], batch_shape: tuple[int, ...]) -> np.ndarray:
    """A new array for a result, filled with `fill`, with one batch axis for all blocks."""
    out = np.empty((prod(batch_shape), *tile_shape), dtype)
    if np.ndim(fill) > len(tile_shape):
        tile = fill.shape[fill.ndim - len(tile_shape):]
        fill = np.broadcast_to(fill, batch_shape + tile).reshape(-1, *tile)
    out[...] = fill
    return out


# ------------------------------------------------------------------ lists and joins


class ArrayList(tuple):
    """A list parameter: its arrays, in order."""

    __slots__ = ()

    def pick(self, index: np.ndarray) -> Array:
        """Item `index`, which may differ by block. For an index out of range, an array without elements [D-70]."""
        i = np.asarray(index)
        if i.ndim == 0 and 0 <= int(i) < len(self):
            return self[int(i)]
        i = i.astype(np.int64)
        return PerBlockArray(self, np.where((i < 0) | (i >= len(self)), -1, i))


def join(batch_shape: tuple[int, ...], parts: Sequence[tuple]) -> Array:
    """One array for blocks of that shape, from parts (selector, array, flat): `selector` selects the blocks of the part
    from all blocks in row-major order; `flat(carrier, 0)` returns a value of the part with one element per block.
    """
    views: list[Array] = []
    n = prod(batch_shape)
    which = np.full(n, -1)
    for selector, part, flat in parts:
        def spread(x, rank, selector=selector, flat=flat):
            if x.ndim == rank:
                return x
            out = np.zeros(n, x.dtype)
            out[selector] = flat(x, rank)
            return out.reshape(batch_shape)

        part = part.for_blocks(spread)
        if isinstance(part, PerBlockArray):
            which[selector] = np.broadcast_to(part.which, batch_shape).reshape(-1)[selector] + len(views)
            views += part.views
        else:
            which[selector] = len(views)
            views.append(part)
    if all(v is views[0] for v in views):
        return views[0]
    return PerBlockArray(views, which.reshape(batch_shape))
