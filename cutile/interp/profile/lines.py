"""Measures a launch line by line: how long each line takes, the bytes that it moves, the operations that it is.

Time goes to the line that has just ended, so that it is right under every schedule: also where blocks take turns in the
middle of a line. The time that measuring takes itself counts for no line.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping

from cutile._support.locks import Lock
from cutile._support.structs import field, structure
from cutile.analysis.access import Access
from cutile.analysis.cost import Work
from cutile.interp.exec.block_set import BlockSet
from cutile.interp.sanitize.reach import Place
from cutile.interp.traces.elements import reached
from cutile.interp.traces.watchers import Stretch, Watcher
from cutile.ir.nodes import Kernel
from cutile.ops._op import READ, WRITE
from cutile.spans import Span

Line = tuple[tuple[str, str, int], ...]  # (function, file, line) of the kernel and of each call up to the line


@structure(slots=True)
class Cost:
    """What a line has cost so far, in all blocks.

    seconds                    in the interpreter
    bytes_read, bytes_written  of elements of arrays that accesses have reached; an atomic counts as both
    operations                 of arithmetic, by unit and dtype (analysis/cost.py)
    """

    seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    operations: Counter[Work] = field(default_factory=Counter)
    runs: Counter[Stretch] = field(default_factory=Counter)

    @property
    def times(self) -> int:
        """How often blocks have run the line, in all calls that lead to it.

        In one run, a line may have several stretches. Those with ops begin at different places of the line: where some
        begin at one place, a loop has been unrolled.
        """
        counts: dict[tuple[Kernel, Span | None], Counter] = defaultdict(Counter)
        for stretch, n in self.runs.items():
            s = stretch.span
            begin = (s.line, s.col, s.end_line, s.end_col) if stretch.ops else stretch
            counts[stretch.program, s.call_site][begin] += n
        return sum(max(of_call.values()) for of_call in counts.values())

    def add(self, other: Cost) -> None:
        self.seconds += other.seconds
        self.bytes_read += other.bytes_read
        self.bytes_written += other.bytes_written
        self.operations += other.operations
        self.runs += other.runs


class KernelProfile(Watcher):
    """The costs of the launches of a kernel. Threads may share it.

    launches, blocks   how many have begun
    lines              the cost of each line
    """

    def __init__(self, name: str, span: Span):
        self.name, self.span = name, span
        self._lock = Lock()
        self._empty()

    def _empty(self) -> None:
        self.launches, self.blocks = 0, 0
        self.lines: dict[Line, Cost] = {}
        self._of_span: dict[Span, Cost] = {}

    def take(self) -> KernelProfile:
        """What has been measured so far; this profile is empty then."""
        taken = KernelProfile(self.name, self.span)
        with self._lock.here():
            taken.launches, taken.blocks, taken.lines = self.launches, self.blocks, self.lines
            self._empty()
        return taken

    def begins(self, ctx: BlockSet) -> None:
        with self._lock.here():
            self.launches += not hasattr(ctx.launch, "clock")
            self.blocks += ctx.count
        ctx.launch.clock = time.perf_counter()

    def ran(self, stretch: Stretch, ctx: BlockSet) -> None:
        now, launch = time.perf_counter(), ctx.launch
        with self._lock.here():
            cost = self._cost(stretch.span)
            cost.seconds += now - launch.clock
            cost.runs[stretch] += ctx.count
            _add(cost.operations, stretch.operations, ctx.count)
        launch.clock = time.perf_counter()

    def accessed(self, access: Access, place: Place, ctx: BlockSet) -> None:
        begin = time.perf_counter()
        count = reached(place, ctx) * place.array.dtype.bitwidth // 8
        with self._lock.here():
            cost = self._cost(access.op.span)
            cost.bytes_read += count if access.effect != WRITE else 0
            cost.bytes_written += count if access.effect != READ else 0
        ctx.launch.clock += time.perf_counter() - begin

    def _cost(self, span: Span) -> Cost:
        found = self._of_span.get(span)
        if found is None:
            line = tuple((s.function, str(s.filename), s.line) for s in span.frames())
            found = self._of_span[span] = self.lines.setdefault(line, Cost())
        return found


def _add(total: Counter[Work], more: Mapping[Work, int], times: int) -> None:
    for work, count in more.items():
        total[work] += count * times
