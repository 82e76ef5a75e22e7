"""Comparisons that hold where an op runs, because of the branches and loops around it and of early exits before it."""

from __future__ import annotations

from cutile._support.structs import structure
from cutile.ir.nodes import For, If, Kernel, Node, Op, Value, While, Yield, regions_of
from cutile.ir.walk import definitions, walk
from cutile.ops import bits, compare, create


@structure(frozen=True, slots=True)
class Guard:
    """lower + gap <= upper, of two values of one dtype."""

    lower: Value
    upper: Value
    gap: int


# For each comparison: what it implies if it is true, and if it is false, as (swap the operands?, gap).
_COMPARISONS = {
    compare.less: ((False, 1), (True, 0)), compare.less_equal: ((False, 0), (True, 1)),
    compare.greater: ((True, 1), (False, 0)), compare.greater_equal: ((True, 0), (False, 1)),
}


def guards(kernel: Kernel) -> dict[Op, tuple[Guard, ...]]:
    """The guards of each op that accesses memory. Calls are looked into."""
    found: dict[Op, tuple[Guard, ...]] = {}
    if not any(isinstance(n, If | For) for n in walk(kernel.body)):
        return found
    source = definitions(kernel.body)
    pending: list[tuple] = [(kernel.body, ())]
    for region, known in pending:
        for n in region.nodes:
            if isinstance(n, Op) and n.op.accesses:
                found[n] = known
            elif isinstance(n, If):
                true, false = (tuple(_implied(n.cond, truth, source)) for truth in (True, False))
                pending += [(n.then, known + true), (n.orelse, known + false)]
                if not _goes_on(n.then):
                    known += false
                elif not _goes_on(n.orelse):
                    known += true
            elif isinstance(n, While) and n.cond is not None and isinstance(n.cond.nodes[-1], Yield):
                inside = tuple(_implied(n.cond.nodes[-1].operands[0], True, source))
                pending += [(n.cond, known), (n.body, known + inside)]
            elif isinstance(n, For):
                pending.append((n.body, (*known, Guard(n.iv, n.stop, 1))))
            else:
                pending += [(region, known) for region in regions_of(n)]
    return found


def _goes_on(branch) -> bool:
    return bool(branch.nodes) and isinstance(branch.nodes[-1], Yield)


def _implied(condition: Value, truth: bool, source: dict[Value, Node]) -> list[Guard]:
    """What holds if a bool scalar is True, or is False."""
    implied: list[Guard] = []
    pending = [(condition, truth)]
    for v, true in pending:
        n = source.get(v)
        if isinstance(n, If):
            pending += _of_branches(n, v, true, source)
        elif not isinstance(n, Op):
            continue
        elif n.op in _COMPARISONS:
            turned, gap = _COMPARISONS[n.op][not true]
            x, y = reversed(n.operands) if turned else n.operands
            implied.append(Guard(x, y, gap))
        elif n.op in (compare.equal, compare.not_equal) and true == (n.op is compare.equal):
            x, y = n.operands
            implied += [Guard(x, y, 0), Guard(y, x, 0)]
        elif n.op is compare.logical_not or n.op is bits.bitwise_not:
            pending.append((n.operands[0], not true))
        elif n.op is (bits.bitwise_and if true else bits.bitwise_or):
            pending += [(x, true) for x in n.operands]
    return implied


def _of_branches(n: If, v: Value, truth: bool, source: dict[Value, Node]) -> list[tuple[Value, bool]]:
    """Conditions that follow from the result `v` of an If, which is how `and` and `or` are written: if only one branch
    can have this result, that branch was taken.
    """
    at = n.results.index(v)
    possible = []
    for branch, taken in ((n.then, True), (n.orelse, False)):
        if _goes_on(branch):
            given = branch.nodes[-1].operands[at]
            known = source.get(given)
            if not (isinstance(known, Op) and known.op is create.constant and bool(known.attrs["value"]) != truth):
                possible.append((given, taken))
    if len(possible) != 1:
        return []
    ((given, taken),) = possible
    return [(n.cond, taken), (given, truth)]
