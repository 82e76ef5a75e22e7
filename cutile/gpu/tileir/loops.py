"""How a loop counts, so that it goes through the numbers of Python's range, whatever its bounds are [LOOP-1].

The machine code of a `for` of Tile IR computes beyond the numbers of the range, in the dtype of the counter: the number
after the last one, and where it loads tiles ahead of their use, also the end less some steps and the start plus some.
Where this passes the first or the last number of the dtype, the loop does not end (docs/assembler-bugs.md). So a loop
counts

    as it is written                    if its bounds are known to lie far enough inside the dtype (analysis/ranges.py)
    as it is written, to max(end, start)     if only an end that is too low is possible
    its rounds, k: start + k * step     elsewhere
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cutile._support.structs import cached, structure
from cutile.analysis.ranges import ANY_GRID, LaunchRanges, Range, ScalarRanges
from cutile.dtypes import int_range
from cutile.gpu.tileir.builder import Builder, Value
from cutile.ir.nodes import For, Kernel
from cutile.passes.structured_exits import has_break
from cutile.types import ArrayType

AHEAD = 120  # steps; in machine code for sm_90 and sm_100 we saw up to 59
SIGNED = {"signedness": "signed"}


@structure(frozen=True, slots=True)
class Counting:
    """What to count with, and how the number of a round is made of its counter."""

    start: Value
    stop: Value
    step: Value
    number: Callable[[Value], Value] = lambda counter: counter


class Loops:
    """The loops of a kernel without frames. `facts`: what is known of each parameter, as `lower` takes it."""

    def __init__(self, kernel: Kernel, facts: Sequence[Any]):
        self._kernel, self._facts = kernel, facts

    def counting(self, b: Builder, n: For, bounds: Sequence[Value]) -> Counting:
        """How a loop is to count from its lowered bounds: start, stop, step. Appends what that needs before the loop.

        A loop with a Break is lowered to a `loop`, whose machine code computes nothing but the number after the last.
        """
        start, stop, step = map(self._ranges.of, (n.start, n.stop, n.step))
        fits = _is_counted_exactly if has_break(n.body) else _stays_inside
        limits = int_range(n.iv.type.dtype)
        if fits(start, stop, step, limits):
            return Counting(*bounds)
        if fits(start, (max(start[0], stop[0]), max(start[1], stop[1])), step, limits):
            return Counting(bounds[0], b.op("maxi", [bounds[1], bounds[0]], **SIGNED), bounds[2])
        return _rounds(b, *bounds, 0 if start[0] >= 0 else limits[0] + AHEAD)

    @cached
    def _ranges(self) -> LaunchRanges:
        shapes = {p: f.shape_constant for p, f in zip(self._kernel.params, self._facts, strict=True)
                  if isinstance(p.type, ArrayType) and f is not None}
        return ScalarRanges(self._kernel).of_launch(ANY_GRID, shapes)


def _is_counted_exactly(start: Range, stop: Range, step: Range, limits: Range) -> bool:
    return stop[1] - 1 + step[1] <= limits[1]


def _stays_inside(start: Range, stop: Range, step: Range, limits: Range) -> bool:
    """Whether AHEAD steps from all bounds on are inside the limits. In steps of 1 the end may be any, if it is so far
    from the start that no loop gets there while it loads tiles ahead.
    """
    reach = AHEAD * step[1]
    is_far = step == (1, 1) and start[1] <= limits[1] // 2
    return limits[0] + reach <= stop[0] and start[1] + reach <= limits[1] and (is_far or stop[1] + reach <= limits[1])


def _rounds(b: Builder, start: Value, stop: Value, step: Value, first: int) -> Counting:
    """Count rounds from `first` on: from 0 if numbers from there on are enough, else from AHEAD above the first number
    of the dtype. There a loop over all numbers of the dtype ends AHEAD rounds early.
    """
    zero, one = (b.constant(start.type, c) for c in (0, 1))
    last = b.op("subi", [b.op("subi", [stop, start]), one])  # a distance from the start, which has no sign
    divisor = b.op("maxi", [step, one], **SIGNED)  # a step of 0 is none in a loop that does not run: see passes/licm.py
    rounds = b.op("addi", [b.op("divi", [last, divisor], signedness="unsigned"), one])
    if first:
        rounds = b.op("mini", [rounds, b.constant(start.type, -1 - AHEAD)], signedness="unsigned")
    runs = b.op("cmpi", [start, stop], comparison_predicate="less_than", **SIGNED)
    rounds = b.op("select", [runs, rounds, zero])
    if not first:
        return Counting(zero, rounds, one, lambda k: b.op("addi", [start, b.op("muli", [k, step])]))
    begin = b.constant(start.type, first)
    base = b.op("subi", [start, b.op("muli", [begin, step])])
    return Counting(begin, b.op("addi", [begin, rounds]), one, lambda k: b.op("addi", [base, b.op("muli", [k, step])]))
