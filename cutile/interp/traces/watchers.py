"""Puts ops into a program that tell a watcher what each block does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from cutile._support.structs import replace, structure
from cutile.analysis.access import Access, accesses
from cutile.analysis.cost import Work, operations
from cutile.interp.exec.block_set import BlockSet
from cutile.interp.sanitize.reach import Place
from cutile.interp.sanitize.sites import check_op
from cutile.ir.nodes import Bind, For, Frame, If, Kernel, Node, Op, Region, Value, While, regions_of, uses_of
from cutile.ir.walk import named_tiles, run_recursive, walk, with_regions
from cutile.ops._op import PURE, Sig
from cutile.spans import Span
from cutile.types import TileType


@structure(frozen=True, eq=False, slots=True)
class Stretch:
    """Ops of one line that always run together.

    span        of the first one; the line and the calls that lead to it count
    ops         how many there are; none where control only comes to the line
    operations  that one run is in one block
    program     that it is part of
    """

    span: Span
    ops: int
    operations: Mapping[Work, int]
    program: Kernel


class Watcher:
    """What is told of a launch. All methods are called in the order of the program, for sets of running blocks.

    arguments, assignments  whether `given` and `assigned` are to be called
    """

    arguments = assignments = False

    def given(self, parameter: int, array: Any) -> None:
        """A parameter that is an Array or an ArrayList. Called before `begins`."""

    def begins(self, ctx: BlockSet) -> None:
        """Blocks begin to run the kernel."""

    def ran(self, stretch: Stretch, ctx: BlockSet) -> None:
        """Blocks have run all ops of a stretch."""

    def accessed(self, access: Access, place: Place, ctx: BlockSet) -> None:
        """Blocks have accessed memory, at that place."""

    def assigned(self, span: Span, name: str, t: TileType, x: np.ndarray, ctx: BlockSet) -> None:
        """Blocks have assigned a tile, with that carrier, to a variable of the user or to a part of one."""


def watched(kernel: Kernel, watcher: Watcher) -> Kernel:
    """The program with ops that tell the watcher. The program computes what it did."""
    made = _Watching(kernel, watcher)
    body = run_recursive(made.region(kernel.body, None))
    # An op for each array: alias analysis takes the operands of one op to be one memory.
    begin = [Op(_GIVEN, (p,), {"watcher": watcher, "parameter": i}, (), kernel.span)
             for i, p in enumerate(kernel.params) if watcher.arguments and not isinstance(p.type, TileType)]
    begin.append(Op(_BEGINS, (), {"watcher": watcher}, (), kernel.span))
    return replace(kernel, body=replace(body, nodes=[*begin, *body.nodes]))


class _Watching:
    def __init__(self, kernel: Kernel, watcher: Watcher):
        self.kernel, self.watcher = kernel, watcher
        self.described, self.needed = accesses(kernel), _needed(kernel)

    def region(self, region: Region, header: Span | None,
               carried: Sequence[Value] = ()) -> Generator[Generator, Region, Region]:
        """The region with ops. `header`: of the branch, loop or call that it belongs to, which has run when it begins;
        `carried`: the values that the loop carries.
        """
        out: list[Node] = [] if header is None else [self.ran([], header)]
        group: list[Op] = []  # of the stretch that has not ended
        last = region.nodes[-1] if region.nodes else None
        assigned = self.assignments(region, carried)
        for n in region.nodes:
            if group and not (isinstance(n, Op) and _same_line(group[0].span, n.span)
                              or isinstance(n, Bind) and n not in assigned):
                out.append(self.ran(group, group[0].span))
                group = []
            if isinstance(n, Op):
                group.append(n)
                out += [n, self.access(n)] if n in self.described else [n]
            elif isinstance(n, If | For | While | Frame):
                inner, carried = [], n.params if isinstance(n, For | While) else ()
                for r in regions_of(n):
                    inner.append((yield self.region(r, n.span, carried)))
                out.append(with_regions(n, inner))
                if n is not last:  # control may reach its end
                    out.append(self.ran([], n.span))
            else:
                out += [n, *self.assignment(n)] if n in assigned else [n]
        return replace(region, nodes=out)

    def assignments(self, region: Region, carried: Sequence[Value]) -> set[Node]:
        """The Binds of a region that are assignments: not those after a branch or loop that say what a variable holds
        there, not those at the begin of a loop's body, of the values that it carries, and no free variables.
        """
        found: set[Node] = set()
        merged_until = 0  # a line
        for n in region.nodes if self.watcher.assignments else ():
            if isinstance(n, Bind):
                if n.name and n.span.line > merged_until and not n.free and n.template not in carried:
                    found.add(n)
            else:
                merged_until = n.span.end_line if isinstance(n, If | For | While) else 0
        return found

    def ran(self, group: Sequence[Op], span: Span) -> Op:
        total: Counter[Work] = Counter()
        for n in group:
            if n in self.needed:
                total.update(operations(n))
        stretch = Stretch(span, len(group), dict(total), self.kernel)
        return Op(_RAN, (), {"watcher": self.watcher, "stretch": stretch}, (), span)

    def access(self, n: Op) -> Op:
        return Op(_ACCESSED, n.operands, {"watcher": self.watcher, "access": self.described[n]}, (), n.span,
                  (len(n.operands),))

    def assignment(self, n: Bind) -> list[Op]:
        return [Op(_ASSIGNED, (v,), {"watcher": self.watcher, "span": n.span, "name": name}, (), n.span)
                for name, v in named_tiles(n.name, n.template)]


def _needed(kernel: Kernel) -> Set[Op]:
    """The ops that have an effect, or whose results something reads. Binds do not read: a product that is part of a
    fused multiply-add is computed for debuggers alone.
    """
    nodes = list(walk(kernel.body))
    reads = Counter(v for n in nodes for v in uses_of(n))
    found: set[Op] = set()
    for n in reversed(nodes):
        if isinstance(n, Op):
            if n.op.effect != PURE or any(reads[v] for v in n.results):
                found.add(n)
            else:
                reads.subtract(uses_of(n))
    return found


def _same_line(a: Span, b: Span) -> bool:
    return a.line == b.line and a.filename == b.filename and a.call_site == b.call_site


# ------------------------------------------------------------------ meanings of the ops


def _given(array: Any, /, *, watcher: Watcher, parameter: int) -> None:
    watcher.given(parameter, array)


def _begins(*, watcher: Watcher, ctx: BlockSet) -> None:
    watcher.begins(ctx)


def _ran(*, watcher: Watcher, stretch: Stretch, ctx: BlockSet) -> None:
    watcher.ran(stretch, ctx)


def _accessed(operands: Sequence, /, *, watcher: Watcher, access: Access, ctx: BlockSet) -> None:
    watcher.accessed(access, Place.of(access, operands), ctx)


def _assigned(x: np.ndarray, /, *, watcher: Watcher, span: Span, name: str, sig: Sig, ctx: BlockSet) -> None:
    watcher.assigned(span, name, sig.x, x, ctx)


_GIVEN, _BEGINS, _RAN = check_op(_given, "array"), check_op(_begins, ""), check_op(_ran, "")
_ACCESSED, _ASSIGNED = check_op(_accessed, "*operands"), check_op(_assigned, "x")
