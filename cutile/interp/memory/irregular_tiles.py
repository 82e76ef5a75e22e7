"""Tiles that may each begin anywhere: reading and writing them.

Tiles of which the same part exists are read or written together: those wholly inside the array, and those that an edge
cuts alike. One overlapping view has such a part at every position in memory, and the coordinates where the parts begin
index it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from cutile.interp.memory.strided_tile import StridedMemory, StridedTile


class IrregularTiles:
    """For each dimension of the tile: the coordinate where each block's tile begins (`begins`) and the end of the array
    for this block (`stops`), both int64 arrays over the batch axes; and the bytes from one element to the next.
    """

    def __init__(self, begins: Sequence[np.ndarray], stops: Sequence[np.ndarray], strides: tuple[int, ...],
                 tile_shape: tuple[int, ...]):
        self.batch_shape = np.broadcast_shapes(*(x.shape for x in (*begins, *stops)))
        self.count, self.tile_shape, self.strides = prod(self.batch_shape), tile_shape, strides
        self.begins, self.stops = ([np.broadcast_to(x, self.batch_shape).reshape(-1) for x in group]
                                   for group in (begins, stops))
        # The elements first … end-1 of a tile exist.
        self.first = [np.maximum(-b, 0) for b in self.begins]
        self.end = [np.minimum(s - b, n) for b, s, n in zip(self.begins, self.stops, tile_shape, strict=True)]
        inside, some = np.ones(self.count, bool), np.ones(self.count, bool)
        for first, end, n in zip(self.first, self.end, tile_shape, strict=True):
            inside &= (first == 0) & (end == n)
            some &= first < end
        self.inside, self.clipped = np.flatnonzero(inside), np.flatnonzero(some & ~inside)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.batch_shape + self.tile_shape

    def read(self, memory: StridedMemory, fill, carrier: np.dtype, convert: Callable) -> np.ndarray:
        """The tiles, with `fill` for elements outside the array."""
        if self.inside.size == self.count:
            found = self._positions(memory, self.begins, self.tile_shape)[tuple(self.begins)]
            return convert(found).reshape(self.shape)
        out = np.full((self.count, *self.tile_shape), fill, carrier)
        for part in self._parts():
            found = self._positions(memory, part.begins, tuple(map(len, part.elements)))[tuple(part.begins)]
            out[part.key(self.count)] = convert(found)
        return out.reshape(self.shape)

    def write(self, memory: StridedMemory, value: np.ndarray) -> None:
        """Write storage values of this shape. Where tiles overlap, the value of the last block stays."""
        value = value.reshape(self.count, *self.tile_shape)
        for part in self._parts():
            there = self._positions(memory, part.begins, tuple(map(len, part.elements)))
            there[tuple(part.begins)] = value[part.key(self.count)]

    def _positions(self, memory: StridedMemory, begins: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """Every position up to the last one in use that a part of this shape can have: an overlapping view, position
        axes first.
        """
        counts = tuple(int(b.max()) + 1 for b in begins)
        return StridedTile(0, counts + shape, self.strides * 2, False).of(memory)

    def _parts(self) -> Iterator[_Part]:
        """The tiles wholly inside the array, and those at an edge in groups that are cut alike."""
        if self.inside.size:
            whole = tuple(map(range, self.tile_shape))
            yield _Part(self.inside, whole, [b[self.inside] for b in self.begins])
        if not self.clipped.size:
            return
        cuts, rank = np.stack([x[self.clipped] for x in (*self.first, *self.end)]), len(self.tile_shape)
        order = np.lexsort(cuts)  # blocks of one cut become neighbours and stay in order
        cuts = cuts[:, order]
        differ = np.flatnonzero((cuts[:, 1:] != cuts[:, :-1]).any(axis=0)) + 1
        for at, cut in zip(np.split(order, differ), cuts[:, [0, *differ.tolist()]].T.tolist(), strict=True):
            blocks = self.clipped[at]
            yield _Part(blocks, tuple(map(range, cut[:rank], cut[rank:])),
                        [b[blocks] + first for b, first in zip(self.begins, cut, strict=False)])


class _Part(NamedTuple):
    """Blocks whose tiles have the same existing elements, and for each dimension the coordinates where these begin."""

    blocks: np.ndarray
    elements: tuple[range, ...]
    begins: Sequence[np.ndarray]

    def key(self, count: int) -> tuple:
        """The part as an index of a value with one batch axis of `count` blocks."""
        blocks = slice(None) if self.blocks.size == count else self.blocks
        return (blocks, *(slice(r.start, r.stop) for r in self.elements))
