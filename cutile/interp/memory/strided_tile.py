"""Tiles that lie inside an array for every block, at tile indices that are numbers or lines: the usual case.

Where they lie depends on nothing but sizes, strides and indices. Launches come again with the same ones, and so do the
chunks of blocks and the loops in them, so the answers are kept.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cutile.interp.memory.tile_access import StridedBuffer, StridedIndex

KEPT = 4096  # answers


class StridedTile(NamedTuple):
    """The tiles of all blocks in a place as one view: bytes from coordinate 0, sizes and strides.

    `alone`: no two blocks, and no two elements of a tile, have a place in common.
    """

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    alone: bool

    def of(self, place: StridedBuffer) -> np.ndarray:
        return np.ndarray(self.shape, place.dtype, place.buffer, place.base + self.offset, self.strides)


def find(strides: tuple[int, ...], start: tuple[int, ...], high: tuple[int, ...],
         origin: Sequence[np.ndarray | StridedIndex],
         shape: tuple[int, ...], order: Sequence[int], steps: Sequence[int] | None) -> StridedTile | None:
    """Tiles at tile indices `origin`, `shape` elements large; dimension i runs along axis order[i], tiles begin every
    steps[i] elements from `start` on and must end below `high`. None where one does not, or an index is of another
    kind.
    """
    indices: list[int | StridedIndex] = []
    for j in origin:
        if type(j) is not StridedIndex:
            if j.ndim:
                return None
            j = int(j)
        indices.append(j)
    return _find(strides, start, high, tuple(indices), shape, order, steps or shape)


@functools.lru_cache(maxsize=KEPT)
def _find(strides: tuple[int, ...], start: tuple[int, ...], high: tuple[int, ...],
          origin: tuple[int | StridedIndex, ...],
          shape: tuple[int, ...], order: Sequence[int], steps: tuple[int, ...]) -> StridedTile | None:
    offset, inner = 0, tuple(strides[k] for k in order)
    lead = tuple(map(max, zip(*(j.shape for j in origin if type(j) is StridedIndex), strict=True)))
    across, moving, alone = [0] * len(lead), [], 0 not in inner
    for j, n, step, k, stride in zip(origin, shape, steps, order, inner, strict=True):
        line = j if type(j) is StridedIndex else StridedIndex(j, (), ())
        ways = [(a, d, m) for a, (d, m) in enumerate(zip(line.steps, line.shape, strict=True)) if d]
        least = line.c + sum(min(d * (m - 1), 0) for _, d, m in ways)
        most = line.c + sum(max(d * (m - 1), 0) for _, d, m in ways)
        if least < 0 or start[k] + least * step < 0 or start[k] + most * step + n > high[k]:
            return None
        offset += (start[k] + line.c * step) * stride
        for a, d, _ in ways:
            across[a] += d * step * stride
            moving.append(a)
        alone = alone and len(ways) <= 1 and step >= n
    alone = alone and len(moving) == len(set(moving)) == sum(m > 1 for m in lead)
    return StridedTile(offset, lead + shape, (*across, *inner), alone)
