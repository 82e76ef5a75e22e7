"""The order of blocks that releases and acquires make, as vector clocks.

A block's clock counts its releases, from 1. An access happens at the clock of its block. Entry b of a block's vector
says: accesses of block b up to this clock come before the next access of the vector's owner. A release leaves the
vector of its block at the cell that it writes; an acquire takes the vectors that it finds there [MEM-2, MEM-3].

Many blocks need no vectors, because they share nothing. So accesses that order blocks are queued, and processed at the
first question. An access to many elements at once counts for regions of them: a race may then be missed, but none is
invented.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

MAX_BLOCKS = 1 << 13  # for which vectors are kept; in larger grids an acquire orders its block after all others
CLEAN_EVERY = 256  # new vectors at cells; then those that no cell has are dropped
REGION_FROM = 64  # elements of a block in one access, from which on it counts for regions
REGION_BITS = 6  # a region has 2**6 cells
QUEUED_MOST = 1 << 22  # elements that are queued at most before they are processed

# ("cell", number); ("wide", region): releases of wide accesses; ("any", region): all releases
Key = tuple[str, int]


class VectorClocks:
    """The clocks of a launch with a number of blocks, which count from 1."""

    def __init__(self, blocks: int):
        self.blocks = blocks
        self.clocks = np.ones(blocks + 1, np.int64)
        self.acquired = np.zeros(blocks + 1, bool)
        self.vectors: dict[int, np.ndarray] = {}
        self.vector_at: dict[Key, int] = {}  # where a release left a vector, and the number of this vector
        self.released: dict[int, np.ndarray] = {}  # these vectors, by number
        self.made = 0
        self.pending: list[tuple] = []
        self.queued = 0

    def clocks_of(self, owner: np.ndarray) -> np.ndarray:
        return self.clocks[owner]

    def pass_on(self, cells: np.ndarray, owner: np.ndarray, order: Any, changed: np.ndarray | None) -> None:
        """An access to cells by blocks. `cells` are grouped by block. `changed`: where an update changed memory, if not
        everywhere.
        """
        if order.acquires:
            self.acquired[owner] = True
        if self.blocks > MAX_BLOCKS:
            return
        clocks, blocks = self.clocks[owner], np.unique(owner)
        wide = len(cells) > REGION_FROM * len(blocks)
        if wide:
            cells = cells >> REGION_BITS
            first = np.r_[True, (cells[1:] != cells[:-1]) | (owner[1:] != owner[:-1])]
            cells, owner, clocks, changed = cells[first], owner[first], clocks[first], None
        self.pending.append((cells, owner, clocks, order, changed, wide))
        self.queued += len(cells)
        if self.queued > QUEUED_MOST:
            self._work_off()
        if order.releases:
            self.clocks[blocks] += 1

    def ordered(self, before: np.ndarray, owner: np.ndarray, block: int, clock: int) -> np.ndarray:
        """Whether earlier accesses, each an int with block and clock at these bits, come before what `owner` does now.
        """
        if self.blocks > MAX_BLOCKS:
            return self.acquired[owner]
        out = np.zeros(owner.shape, bool)
        asked = np.flatnonzero((before != 0) & self.acquired[owner])
        if not asked.size:
            return out
        self._work_off()
        who, when = before[asked] >> block, before[asked] >> clock & (1 << block - clock) - 1
        mine = owner[asked]
        for b in np.unique(mine).tolist():
            vector = self.vectors.get(b)
            if vector is not None:
                here = mine == b
                out[asked[here]] = vector[who[here]] >= when[here]
        return out

    def _work_off(self) -> None:
        pending, self.pending, self.queued = self.pending, [], 0
        for cells, owner, clocks, order, changed, wide in pending:
            starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]]).tolist()
            for a, z in zip(starts, [*starts[1:], len(owner)], strict=True):
                here = cells[a:z].tolist()
                written = here if changed is None else [c for c, yes in zip(here, changed[a:z], strict=True) if yes]
                self._step(int(owner[a]), int(clocks[a]), here, written, order, wide)

    def _step(self, b: int, clock: int, cells: list[int], written: list[int], order: Any, wide: bool) -> None:
        """One access of one block."""
        if order.acquires:
            self._acquire(b, [("any", c) for c in cells] if wide else
                          [key for c in cells for key in (("cell", c), ("wide", c >> REGION_BITS))])
        if order.releases and written:
            self._release(b, clock, [key for c in written for key in (("wide", c), ("any", c))] if wide else
                          [key for c in written for key in (("cell", c), ("any", c >> REGION_BITS))], order.stores)
        elif order.stores and not wide:
            for c in written:
                self.vector_at.pop(("cell", c), None)

    def _acquire(self, b: int, keys: Iterable[Key]) -> None:
        for number in {self.vector_at[k] for k in keys if k in self.vector_at}:
            found, own = self.released[number], self.vectors.get(b)
            self.vectors[b] = found.copy() if own is None else np.maximum(own, found)

    def _release(self, b: int, clock: int, keys: Iterable[Key], stores: bool) -> None:
        """Leave the vector of a block. A store ends what was released at its cells before, an update adds to it."""
        own = self.vectors.get(b)
        own = np.zeros(self.blocks + 1, np.int32) if own is None else own.copy()
        own[b] = clock
        made: dict[int | None, int] = {}
        for k in keys:
            found = None if stores and k[0] == "cell" else self.vector_at.get(k)
            if found not in made:
                self.made += 1
                made[found] = self.made
                self.released[self.made] = own if found is None else np.maximum(own, self.released[found])
            self.vector_at[k] = made[found]
        if self.made % CLEAN_EVERY < len(made):
            kept = set(self.vector_at.values())
            self.released = {n: v for n, v in self.released.items() if n in kept}
