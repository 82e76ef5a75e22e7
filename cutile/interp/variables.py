"""Which values the user's variables are known to hold at a point of a function, for the block emitter.

Where paths meet, a variable holds what it holds on all of them. At the header of a loop that is claimed first and shown
while the body is emitted: every way back to the header must keep the claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cutile.ir import nodes as ir
from cutile.ir.nodes import Value

Names = dict[str, frozenset[Value]]  # by variable, the one bound latest last
NOTHING: frozenset[Value] = frozenset()


@dataclass
class Loop:
    """A loop being emitted. `claims`: what each variable that its body assigns holds whenever an iteration begins."""

    node: ir.For | ir.While
    claims: Names
    exits: list[Names] = field(default_factory=list)
    wrong: bool = False  # a claim did not hold: emit again with the rest

    def next(self, names: Names, operands: Sequence[Value]) -> None:
        """Control goes back to the header with these carried values: keep what the claims still say."""
        arriving = renamed(names, operands, self.node.params)
        for name, values in self.claims.items():
            if not values <= arriving.get(name, NOTHING):
                self.claims[name] = values & arriving.get(name, NOTHING)
                self.wrong = True


def renamed(names: Names, old: Sequence[Value], new: Sequence[Value]) -> Names:
    """What variables hold when values arrive under further names: inits as params, operands as results.

    What was called by a new name before is not it: a param of the iteration that ends.
    """
    stale = frozenset(new)
    extra: dict[Value, set[Value]] = {}
    for a, b in zip(old, new, strict=False):
        extra.setdefault(a, set()).add(b)
    return {n: (values - stale).union(*(extra.get(v, ()) for v in values)) for n, values in names.items()}


def common(paths: Sequence[Names]) -> Names:
    """What holds on every path that arrives."""
    first, *rest = paths
    return {n: values & frozenset.intersection(*(p.get(n, NOTHING) for p in rest)) if rest else values
            for n, values in first.items() if all(n in p for p in rest)}


def assigned_in(n: ir.For | ir.While) -> set[str]:
    """The variables of the user that a loop may assign, calls apart."""
    found, pending = set(), [n]
    while pending:
        m = pending.pop()
        if isinstance(m, ir.Bind):
            found.add(m.name)
        if not isinstance(m, ir.Frame | ir.Op):
            pending += (k for b in ir.blocks_of(m) for k in b.nodes)
    return found
