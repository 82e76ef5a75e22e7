"""The tiles that a loop loads, one in each iteration, as one view of the array: its first axis counts the iterations.

Where they lie, and whether they lie inside the array, is then found out once for the loop. That needs memory that no
one writes to meanwhile, and that holds elements as they are computed with.
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
    """One load in the body of a loop that all blocks run through alike."""

    __slots__ = ("view", "size", "scalar")

    def __init__(self, n: Op):
        sig = Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results))
        self.view = functools.partial(n.op.view, sig=sig, **n.attrs)
        self.size, self.scalar = sig.result.size, not sig.result.ndim

    def tiles(self, array: ArrayView, indices: Sequence[np.ndarray | StridedIndex | None],
              trips: range) -> Iterable[np.ndarray | None]:
        """The tile of each iteration, None where it has to be loaded when it is wanted. `indices` are the tile indices,
        None where it is the loop's, which runs through `trips`.
        """
        rank, size = 0, self.size * len(trips)  # of the lines; of what is read
        for j in indices:
            if type(j) is StridedIndex:
                rank, size = len(j.shape), size * prod(j.shape)
            elif j is not None and j.ndim:
                return NONE
        if self.scalar and not rank or not array.bounds.fixed or not array.buffer.stays(size):
            return NONE
        v = self.view(array, _along(indices, trips, rank))
        if v is not None:
            return v
        v = self.view(array, _along(indices, trips[:-1], rank))  # the last tile may be the one that reaches too far
        return NONE if v is None else chain(v, NONE)


def _along(indices: Sequence[np.ndarray | StridedIndex | None], trips: range,
           rank: int) -> list[np.ndarray | StridedIndex]:
    """Tile indices over one more axis, that of the iterations."""
    line = StridedIndex(trips.start, (trips.step, *(0,) * rank), (len(trips), *(1,) * rank))
    return [line if j is None else StridedIndex(j.start, (0, *j.steps), (1, *j.shape)) if type(j) is StridedIndex else j
            for j in indices]
