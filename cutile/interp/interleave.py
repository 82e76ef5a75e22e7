"""Blocks that take turns: the interleave schedule, for kernels whose blocks wait for each other.

Each block is a generator that pauses before every access to global memory. Which block goes on then is drawn from a
seeded generator of random numbers, so a launch repeats exactly under the same seed.

A block that went round a waiting loop with the same state, while memory stayed as it was, is parked: whatever it does
next it has done already, until some block changes memory. When all are parked, no block will ever go on. A loop whose
state never repeats (a counter that decides when to try again) is given up after `PATIENCE` iterations of all blocks in
which none changed memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from random import Random

from cutile.errors import Span, TileAssertionError, TileDeadlockError
from cutile.interp.running import Launch, Turn
from cutile.interp.running import Block as Coordinates
from cutile.interp.show import Tile

RESIDENT = 512  # blocks that have begun; more begin, in order, when some have finished or none of them gets on
PATIENCE = 50_000
COMPARED = 1 << 18  # bytes: stores to larger arrays count as changes, unless the block seems to spin
SHOWN = 8  # blocks that an error names for each line


class Access:
    """A pause before an access to memory."""

    __slots__ = ("span",)

    def __init__(self, span: Span):
        self.span = span


class Spin:
    """One run of a waiting loop of one block: the state of its latest iteration, and the version of memory then."""

    __slots__ = ("span", "state", "version", "repeats")

    def __init__(self, span: Span):
        self.span, self.state, self.version, self.repeats = span, None, -1, 0

    def stuck(self, values: Sequence, version: int) -> bool:
        """Whether the iteration that ended came back to where it began, with memory as it was."""
        state = tuple(x.carrier.tobytes() if isinstance(x, Tile) else x for x in values)
        same = self.state is not None and all(map(_same, state, self.state))
        stuck = same and version == self.version
        self.repeats = self.repeats + 1 if same else 0
        self.state, self.version = state, version
        return stuck


def _same(a, b) -> bool:
    return a is b or isinstance(a, bytes) and a == b


class Block:
    """A block that has begun."""

    def __init__(self, function: Callable, launch: Launch, coordinates: Coordinates, args: Sequence):
        self.coordinates = coordinates
        self.steps: Iterator[tuple] = function(Turn(launch, coordinates), coordinates, *args)
        self.at: Span | None = None  # of the access that comes next, or came last
        self.changing: Sequence = ()  # arrays that it may change
        self.spin: Spin | None = None
        self.idle = 0  # iterations of waiting loops since memory changed


class _Run:
    """A launch under way."""

    def __init__(self, blocks: Iterable[Block], launch: Launch, seed: int):
        self.coming, self.launch, self.random = iter(blocks), launch, Random(seed)
        self.ready: list[Block] = []
        self.parked: list[Block] = []
        self.version = 0  # of memory
        self.idle = 0  # iterations of waiting loops of all blocks since memory changed
        self.finished = 0

    def all(self) -> None:
        self.begin(RESIDENT)
        while self.ready:
            i = self.random.randrange(len(self.ready))
            block = self.ready[i]
            if not self.turn(block):
                self.ready[i] = self.ready[-1]
                self.ready.pop()
            if not self.ready or self.idle > PATIENCE and self.nobody_gets_on():
                self.begin(RESIDENT)
        if self.launch.failed:
            raise self.launch.failed[min(self.launch.failed)]
        if self.parked:
            raise self.deadlock()

    def begin(self, n: int) -> None:
        self.ready += islice(self.coming, n)

    def turn(self, block: Block) -> bool:
        """Let a block make its next access, and run on to the one after; whether it is still ready."""
        before = self.content(block)
        going = self.run(block)
        if before is not None and before != self.content(block):
            self.changed()
        ...
        return going
