"""Blocks that take turns: the interleave schedule, for kernels whose blocks wait for each other.

Each block is a generator that pauses before every access to global memory. A turn order (turn_order.py) picks the block
that goes on then, usually by a seed. A launch with the same seed runs in the same order if all arrays begin with the
same contents. Contents matter because a store that changes nothing wakes no block.

If an iteration of a waiting loop ends in the state in which it began, and memory has not changed, the loop would repeat
it for ever. The block is then parked until some block changes memory. If all blocks are parked, that is a deadlock. A
waiting loop whose state never repeats, because it counts its attempts, is a deadlock too once all blocks together have
made more than `PATIENCE` iterations of waiting loops since memory changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

from cutile.errors import TileAssertionError, TileDeadlockError
from cutile.interp.exec.block_set import Dim3 as Coordinates
from cutile.interp.exec.block_set import Launch, Turn
from cutile.interp.exec.turn_order import TurnOrder
from cutile.interp.progress_bar import Progress
from cutile.interp.show import Tile
from cutile.spans import Span

RESIDENT = 512  # blocks that have begun; more begin, in order, when some have finished or all of them are parked
PATIENCE = 50_000  # iterations of waiting loops, of all blocks, without a change of memory
COMPARED = 1 << 18  # bytes: a store to larger arrays is taken for a change of memory, unless the block seems to spin
SPINNING = 16  # after so many iterations without a change a block seems to spin
SHOWN = 8  # most blocks that an error names for one line


class Pause:
    """A pause before an access to memory."""

    __slots__ = ("span",)

    def __init__(self, span: Span):
        self.span = span


class Spin:
    """A waiting loop that a block runs: its state before the latest iteration, and the version of memory then."""

    __slots__ = ("span", "state", "version", "repeats")

    def __init__(self, span: Span):
        self.span, self.state, self.version, self.repeats = span, None, -1, 0

    def stuck(self, values: Sequence, version: int) -> bool:
        """Note the state before the next iteration. Returns whether the iteration before began in the same state, and
        memory has not changed.
        """
        state = tuple(x.carrier.tobytes() if isinstance(x, Tile) else x for x in values)
        same = self.state is not None and all(map(_equal, state, self.state))
        stuck = same and version == self.version
        self.repeats = self.repeats + 1 if same else 0
        self.state, self.version = state, version
        return stuck


def _equal(a, b) -> bool:
    return a is b or isinstance(a, bytes) and a == b


class Block:
    """A block of the launch, and how far it has come."""

    __slots__ = ("coordinates", "begin", "steps", "at", "changing", "repeats", "idle", "version")

    def __init__(self, function: Callable, launch: Launch, coordinates: Coordinates, args: Sequence):
        self.coordinates = coordinates
        self.begin = partial(function, Turn(launch, coordinates), coordinates, *args)
        self.steps: Iterator[tuple] | None = None
        self.at: Span | None = None  # the position of the next access, or of the last one
        self.changing: Sequence = ()  # arrays that the next access may change
        self.repeats = 0  # iterations in a row after which its waiting loop was in the same state
        self.idle, self.version = 0, 0  # iterations of waiting loops at this version of memory

    def content(self) -> list[bytes] | None:
        """The contents of the arrays that the next access may change; None if they are too large to be compared."""
        arrays = [buffer.array for a in self.changing for buffer in a.buffers]
        if self.repeats < SPINNING and sum(a.nbytes for a in arrays) > COMPARED:
            return None
        return [a.tobytes() for a in arrays]


class _Run:
    """A running launch."""

    def __init__(self, blocks: Iterable[Block], launch: Launch, order: TurnOrder, progress: Progress):
        self.coming, self.launch, self.order, self.progress = iter(blocks), launch, order, progress
        self.ready: list[Block] = []
        self.parked: list[Block] = []
        self.version = 0  # of memory: counts its changes
        self.idle = 0  # iterations of waiting loops of all blocks since memory changed
        self.finished = 0

    def all(self) -> None:
        """Run every block to its end. TileDeadlockError if all that remain wait."""
        while self.begin(RESIDENT):
            while self.ready and not self.hopeless():
                i = self.order.pick(self.ready)
                if self.turn(self.ready[i]):
                    continue
                last = self.ready.pop()
                if i < len(self.ready):
                    self.ready[i] = last
        if self.launch.failed:
            raise self.launch.failed[min(self.launch.failed)]
        if self.ready or self.parked:
            raise self.deadlock()

    def begin(self, n: int) -> bool:
        """Let `n` more blocks begin. False if there are none."""
        new = list(islice(self.coming, n))
        self.ready += new
        return bool(new)

    def turn(self, block: Block) -> bool:
        """Let a block make its next access and run up to the one after it. Returns whether the block is then ready; it
        is not if it has ended or been parked.
        """
        before = block.content()
        event = self.step(block)
        if block.changing and (before is None or before != block.content()):
            self.changed()
        block.changing = ()
        while event is not None:
            why, *values = event
            if isinstance(why, Pause):
                block.at, block.changing = why.span, values
                return True
            if self.record_iteration(block, why, values):
                self.parked.append(block)
                return False
            event = self.step(block)
        self.finished += 1
        self.progress.add(1)
        self.begin(1)
        return False

    def step(self, block: Block) -> tuple | None:
        """Run a block up to its next yield, and return what it yields; None at the end of the block."""
        try:
            if block.steps is None:
                block.steps = block.begin() or iter(())  # a kernel without accesses has ended: it is no generator
            return next(block.steps, None)
        except TileAssertionError:
            if block.coordinates not in self.launch.failed:
                raise
            return None  # the other blocks go on: the error of the first failed block in grid order is raised

    def changed(self) -> None:
        self.version += 1
        self.idle = 0
        self.ready += self.parked
        self.parked.clear()

    def record_iteration(self, block: Block, spin: Spin, values: Sequence) -> bool:
        """Note that a block begins an iteration of a waiting loop. Returns whether to park it."""
        stuck = spin.stuck(values, self.version)
        block.repeats = spin.repeats
        block.idle = block.idle + 1 if block.version == self.version else 0
        block.version = self.version
        self.idle += 1
        return stuck

    def hopeless(self) -> bool:
        """Whether all ready blocks spin in waiting loops, and no block has changed memory for PATIENCE iterations."""
        if self.idle <= PATIENCE:
            return False
        self.idle = 0
        return all(block.version == self.version and block.idle > SPINNING for block in self.ready)

    def deadlock(self) -> TileDeadlockError:
        lines: dict[Span, list[Coordinates]] = defaultdict(list)
        for block in sorted([*self.ready, *self.parked], key=lambda block: block.coordinates):
            lines[block.at].append(block.coordinates)
        waiting = sum(map(len, lines.values()))
        notes = [(f"{_listed(blocks)} here", span) for span, blocks in lines.items()]
        return TileDeadlockError(
            f"deadlock: {_count(waiting, 'block')} for memory that no block changes; {self.finished} finished",
            next(iter(lines)), notes=notes,
            help="release a lock, or set a flag, on every path; a block can wait only for blocks of the same launch")


def _count(n: int, what: str) -> str:
    return f"{n} {what} waits" if n == 1 else f"{n} {what}s wait"


def _listed(blocks: Sequence[Coordinates]) -> str:
    names = ", ".join(map(str, blocks[:SHOWN]))
    more = len(blocks) - SHOWN
    return ("block " if len(blocks) == 1 else "blocks ") + names + (f" and {more} more" if more > 0 else "") + (
        " waits" if len(blocks) == 1 else " wait")


def run(blocks: Iterable[Block], launch: Launch, order: TurnOrder, progress: Progress) -> None:
    """Run blocks in turns. TileDeadlockError if the remaining ones wait for each other."""
    _Run(blocks, launch, order, progress).all()
