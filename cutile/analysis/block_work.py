"""What a block of a launch does, in the mean of all blocks: bytes, arithmetic, turns of loops, tiles held.

It is an estimate, made without running anything. A loop makes as many turns as the middles of the ranges of its bounds
say; one whose bounds depend on data, and a `while`, make one. Both arms of a branch count half. Tiles count whole, also
beyond the end of an array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil

from cutile._support.structs import field, structure
from cutile.analysis.access import accesses
from cutile.analysis.cost import MATRIX, OTHER, Work, operations
from cutile.analysis.ranges import LaunchRanges, Range, ScalarRanges, Shapes
from cutile.ir.nodes import For, If, Kernel, Op, Region, Value, While, regions_of
from cutile.ops._op import PRODUCT, READ, WRITE
from cutile.types import TileType

MOST_TURNS = 1 << 31  # a range up to here says nothing about a loop


@structure
class BlockWork:
    """operations     arithmetic that is not of matrices, by kind and dtype
    products       operations of products of matrices, by dtype and rows of the left factor
    read, written  bytes
    turns          of all loops
    held           bytes of tiles that a loop carries, and of the largest that its body makes: what registers hold
    """

    operations: Counter[Work] = field(default_factory=Counter)
    products: Counter[tuple[Work, int]] = field(default_factory=Counter)
    read: float = 0.0
    written: float = 0.0
    turns: float = 0.0
    held: int = 0


def block_work(kernel: Kernel, grid: Sequence[int], shapes: Shapes, numbers: Mapping[Value, int]) -> BlockWork:
    """The work of a block of a kernel without frames.

    shapes   as in analysis/ranges.py;  numbers: the values of integer parameters
    """
    found = ScalarRanges(kernel).of_launch([(n, n) for n in grid], shapes, numbers)
    known, total = accesses(kernel), BlockWork()
    stack: list[tuple[Region, float, int]] = [(kernel.body, 1.0, 0)]
    while stack:
        region, times, carried = stack.pop()
        for n in region.nodes:
            if isinstance(n, Op):
                _add(total, n, times, n in known and known[n].effect)
                total.held = max(total.held, carried + max(map(_size, n.results), default=0))
                continue
            inner, kept = times, carried
            if isinstance(n, For | While):
                inner = times * (_turns(n, found) if isinstance(n, For) else 1.0)
                total.turns += inner
                kept += sum(map(_size, n.params))
            elif isinstance(n, If):
                inner = times / 2
            stack.extend((r, inner, kept) for r in regions_of(n))
    return total


def _add(total: BlockWork, n: Op, times: float, effect: str | bool) -> None:
    for work, count in operations(n).items():
        if work.unit == MATRIX and n.op.accumulates == PRODUCT:
            total.products[work, n.operands[0].type.shape[-2]] += count * times  # type: ignore[assignment]
        else:
            total.operations[Work(OTHER, work.dtype)] += count * times  # type: ignore[assignment]
    if effect:
        moved = max([_size(v) for v in (*n.operands, *n.results)], default=0) * times
        total.read += moved if effect != WRITE else 0
        total.written += moved if effect != READ else 0


def _size(v: Value) -> int:
    return v.type.size * v.type.dtype.bitwidth // 8 if isinstance(v.type, TileType) and v.type.shape else 0


def _turns(n: For, found: LaunchRanges) -> float:
    start, stop, step = map(found.of, (n.start, n.stop, n.step))
    if max(stop[1], -start[0]) >= MOST_TURNS - 1 or step[0] < 1:
        return 1.0
    by = _middle(step)
    distance = max(_middle(stop) - _middle(start), 0.0)
    last = (by - 1) / 2  # the last turn is a whole one, and where it begins differs from block to block
    return float(ceil(distance / by)) if start[0] == start[1] and stop[0] == stop[1] else (distance + last) / by


def _middle(r: Range) -> float:
    return (r[0] + r[1]) / 2
