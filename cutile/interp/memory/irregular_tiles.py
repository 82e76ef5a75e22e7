"""Tiles of which each may begin anywhere, and reading and writing them.

Tiles that lie wholly inside the array are read or written together: one overlapping view has a tile at every position
in memory, and the coordinates where the tiles begin index it. Tiles at an edge are read or written one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

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
            return convert(self._positions(memory)[tuple(self.begins)]).reshape(self.shape)
        out = np.full((self.count, *self.tile_shape), fill, carrier)
        if self.inside.size:
            out[self.inside] = convert(self._positions(memory)[self._at(self.inside)])
        for block, part, tile in self._clipped_tiles():
            out[block][part] = convert(tile.of(memory))
        return out.reshape(self.shape)

    def write(self, memory: StridedMemory, value: np.ndarray) -> None:
        """Write storage values of this shape. Where tiles overlap, the value of the last block stays."""
        value = value.reshape(self.count, *self.tile_shape)
        if self.inside.size:
            everywhere = self.inside.size == self.count
            self._positions(memory)[self._at(self.inside)] = value if everywhere else value[self.inside]
        for block, part, tile in self._clipped_tiles():
            tile.of(memory)[...] = value[block][part]

    def _positions(self, memory: StridedMemory) -> np.ndarray:
        """Every position that a tile can have: an overlapping view, position axes first."""
        counts = tuple(int(s[self.inside].max()) - n + 1 for s, n in zip(self.stops, self.tile_shape, strict=True))
        return StridedTile(0, counts + self.tile_shape, self.strides * 2, False).of(memory)

    def _at(self, blocks: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(b[blocks] for b in self.begins)

    def _clipped_tiles(self) -> Iterator[tuple[int, tuple[slice, ...], StridedTile]]:
        """For each block at an edge: its number, the part of its tile that exists, and where that lies."""
        for block in self.clipped.tolist():
            part = [range(int(f[block]), int(e[block])) for f, e in zip(self.first, self.end, strict=True)]
            offset = sum((int(b[block]) + r.start) * s
                         for b, r, s in zip(self.begins, part, self.strides, strict=True))
            tile = StridedTile(offset, tuple(map(len, part)), self.strides, False)
            yield block, tuple(slice(r.start, r.stop) for r in part), tile
