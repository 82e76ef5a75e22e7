"""Tiles that may each begin anywhere: reading and writing them.

Tiles of which the same part exists are read or written together: those wholly inside the array, and those that an edge
cuts alike. One overlapping view holds, for every position, the part that begins there; it is indexed with the parts'
first coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        self.tile_shape, self.strides, self.begins = tile_shape, strides, begins
        # The elements first … end-1 of a tile exist.
        self.first = [np.maximum(-b, 0) for b in begins]
        self.end = [np.minimum(s - b, n) for b, s, n in zip(begins, stops, tile_shape, strict=True)]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.batch_shape + self.tile_shape

    def read(self, memory: StridedMemory, fill, carrier: np.dtype, convert: Callable) -> np.ndarray:
        """The tiles, with `fill` for elements outside the array."""
        parts = self._parts()
        if len(parts) == 1 and parts[0].blocks is None and parts[0].shape == self.tile_shape:
            x = convert(self._there(memory, parts[0]))
            return x if x.shape == self.shape else np.broadcast_to(x, self.shape)
        out = np.full(self.shape, fill, carrier)
        for part in parts:
            part.of(out, self)[part.key] = convert(self._there(memory, part))
        return out

    def write(self, memory: StridedMemory, value: np.ndarray) -> None:
        """Write storage values of this shape. Where tiles overlap, the value of the last block stays."""
        for part in self._parts():
            at = part.at if part.blocks is not None else [np.broadcast_to(b, self.batch_shape) for b in part.at]
            self._positions(memory, part)[tuple(at)] = part.of(value, self)[part.key]

    def _there(self, memory: StridedMemory, part: _Part) -> np.ndarray:
        return self._positions(memory, part)[part.at]

    def _positions(self, memory: StridedMemory, part: _Part) -> np.ndarray:
        """An overlapping view: for every position up to the last one in use, the part of this shape that begins there.
        The axes of positions come first.
        """
        counts = tuple(int(b.max()) + 1 for b in part.at)
        return StridedTile(0, counts + part.shape, self.strides * 2, False).of(memory)

    def _parts(self) -> list[_Part]:
        """The tiles in groups that the edges of the array cut alike."""
        rank = len(self.tile_shape)
        cut = [_one(x) for x in (*self.first, *self.end)]
        if None in cut:
            return self._groups(cut)
        elements = tuple(map(range, cut[:rank], cut[rank:]))
        at = tuple([b + r.start if r.start else b for b, r in zip(self.begins, elements, strict=True)])
        return [_Part(None, elements, at)] if all(elements) else []

    def _groups(self, cut: list[int | None]) -> list[_Part]:
        rank, zero = len(self.tile_shape), np.zeros(self.batch_shape, np.int64)
        rows = [k for k, c in enumerate(cut) if c is None]  # the ends that differ between blocks
        cuts = np.stack([(x + zero).reshape(-1) for x in map((*self.first, *self.end).__getitem__, rows)])
        order = np.lexsort(cuts)  # blocks whose tiles are cut alike become neighbours and stay in order
        cuts, begins = cuts[:, order], [(b + zero).reshape(-1) for b in self.begins]
        bounds = [0, *(np.flatnonzero((cuts[:, 1:] != cuts[:, :-1]).any(axis=0)) + 1).tolist(), len(order)]
        parts = []
        for start, stop in zip(bounds, bounds[1:], strict=False):
            for k, c in zip(rows, cuts[:, start].tolist(), strict=True):
                cut[k] = c
            elements, blocks = tuple(map(range, cut[:rank], cut[rank:])), order[start:stop]
            if all(elements):
                parts.append(_Part(blocks, elements, tuple([b[blocks] + r.start
                                                            for b, r in zip(begins, elements, strict=True)])))
        return parts


def _one(x: np.ndarray) -> int | None:
    """The number that all elements are."""
    first = x.item(0)
    return first if x.size == 1 or (x == first).all() else None


class _Part(NamedTuple):
    """Blocks whose tiles have the same existing elements, by number in row-major order; None for all blocks. `at`: for
    each dimension the coordinates where these elements begin.
    """

    blocks: np.ndarray | None
    elements: tuple[range, ...]
    at: tuple[np.ndarray, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.elements))

    @property
    def key(self) -> tuple:
        """The index of the part in what `of` gives."""
        return (... if self.blocks is None else self.blocks, *(slice(r.start, r.stop) for r in self.elements))

    def of(self, value: np.ndarray, tiles: IrregularTiles) -> np.ndarray:
        """A value of all tiles: as it is, or with one batch axis for all blocks."""
        return value if self.blocks is None else value.reshape(prod(tiles.batch_shape), *tiles.tile_shape)
