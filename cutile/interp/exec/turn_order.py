"""Which block takes the next turn under the interleave schedule: drawn at random, or as a list of steps says."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from random import Random
from typing import Any, NamedTuple, Protocol

from cutile.spans import Span

Dim3 = tuple[int, int, int]  # the coordinates of a block


class Ready(Protocol):
    """A block that can go on. `at` is the position of the access that it makes next; None at its beginning."""

    coordinates: Dim3
    at: Span | None


class TurnOrder(Protocol):
    """Decides which block goes on."""

    def pick(self, ready: Sequence[Any]) -> int:
        """The position, among the blocks that can go on, of the one that does."""


class Drawn:
    """Every block that can go on is equally likely."""

    def __init__(self, seed: int):
        self._random = Random(seed)

    def pick(self, ready: Sequence[Ready]) -> int:
        return self._random.randrange(len(ready))


class Listed:
    """First the listed blocks, a turn for each; those that cannot go on are left out. Then the block that went last
    goes on until it ends or waits, and the first block in grid order follows.
    """

    def __init__(self, blocks: Sequence[Dim3]):
        self._blocks = iter(blocks)
        self._last: Dim3 | None = None

    def pick(self, ready: Sequence[Ready]) -> int:
        at = {b.coordinates: i for i, b in enumerate(ready)}
        self._last = next((b for b in self._blocks if b in at), self._last if self._last in at else min(at))
        return at[self._last]


class Step(NamedTuple):
    """A turn that a block has taken, and the access that it made first; None at its beginning."""

    block: Dim3
    at: Span | None


class Recorded:
    """Another order, with the steps that it led to."""

    def __init__(self, order: TurnOrder):
        self._order = order
        self.steps: list[Step] = []

    def pick(self, ready: Sequence[Ready]) -> int:
        i = self._order.pick(ready)
        self.steps.append(Step(ready[i].coordinates, ready[i].at))
        return i


# What orders turns in this context; None: a seed does, that of CUTILE_SEED.
chosen: ContextVar[TurnOrder | None] = ContextVar("cutile_turn_order", default=None)
