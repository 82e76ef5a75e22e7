"""The tiles that a load reads in all iterations of a loop, as one view of the array: its first axis is the iteration.
So tiles are located once for the whole loop. The memory must hold carriers and must not change during the loop.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from cutile.interp.memory.strided_index import StridedIndex
from cutile.ir.nodes import Op
from cutile.ops._op import Sig

if TYPE_CHECKING:
    from cutile.interp.memory.array_view import ArrayView

NONE = repeat(None)


class LoopTiles:
    """One load in the body of a loop that has the same iterations for all blocks. `growth`: by how much each tile index
    grows when the counter grows by one.
    """

    __slots__ = ("view", "size", "scalar", "growth")

    def __init__(self, n: Op, growth: Sequence[int]):
        self.growth = growth
        sig = Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results))
        self.view = functools.partial(n.op.view, sig=sig, **n.attrs)
        self.size, self.scalar = sig.result.size, not sig.result.ndim

    def tiles(self, array: ArrayView, indices: Sequence[np.ndarray | StridedIndex],
              trips: range) -> Iterable[np.ndarray | None]:
        """The tile of each iteration, or None for a tile that the body has to load itself. The loop's counter runs
        through `trips`; `indices` are the tile indices for a counter of 0.
        """
        rank = 0  # how many batch axes strided indices have
        size = self.size * len(trips)  # elements that are read
        for j in indices:
            if type(j) is StridedIndex:
                rank, size = len(j.shape), size * prod(j.shape)
            elif j.ndim:
                return NONE
        if self.scalar and not rank or not array.bounds.fixed or not array.buffer.ensure_constant_carriers(size):
            return NONE
        v = self.view(array, _over_iterations(indices, self.growth, trips, rank))
        if v is not None:
            return v
        # Perhaps only the last iteration's tile is clipped.
        v = self.view(array, _over_iterations(indices, self.growth, trips[:-1], rank))
        return NONE if v is None else chain(v, NONE)


def _over_iterations(indices: Sequence[np.ndarray | StridedIndex], growth: Sequence[int], trips: range,
                     rank: int) -> list[np.ndarray | StridedIndex]:
    """Tile indices with one more axis in front, the iteration."""
    out: list[np.ndarray | StridedIndex] = []
    for j, g in zip(indices, growth, strict=True):
        if type(j) is StridedIndex:
            j = StridedIndex(j.start + g * trips.start, (g * trips.step, *j.steps), (len(trips) if g else 1, *j.shape))
        elif g:
            j = StridedIndex(int(j) + g * trips.start, (g * trips.step, *(0,) * rank), (len(trips), *(1,) * rank))
        out.append(j)
    return out
