"""Which values the user's variables are known to hold at a point of a function, for the block emitter.

Where paths meet, a variable holds the values that it holds on all of them. For the header of a loop these are assumed
first, and checked while the body is emitted: they must still hold on every path back to the header. A path records its
changes only, so that the cost of a branch depends on how much it assigns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cutile._support.structs import field, structure
from cutile.ir import nodes as ir
from cutile.ir.nodes import Value

NOTHING: frozenset[Value] = frozenset()


class Binding(NamedTuple):
    """The values that a variable holds, and when it was bound. If several variables hold a value, code reads the one
    that was bound last.
    """

    time: int
    values: frozenset[Value]


Path = dict[str, Binding | None]  # for each variable that a path changes: its binding at the end


class Variables:
    """The variables of one function, at the point that is emitted."""

    def __init__(self):
        self._held: dict[str, Binding] = {}
        self._holders: dict[Value, set[str]] = {}
        self._changes: list[tuple[str, Binding | None]] = []  # each with the binding before it
        self._time = 0

    def __getitem__(self, name: str) -> frozenset[Value]:
        held = self._held.get(name)
        return NOTHING if held is None else held.values

    def holder(self, v: Value) -> str | None:
        """The variable that was bound last, among those that hold a value."""
        return max(self._holders.get(v, ()), key=lambda name: self._held[name].time, default=None)

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Names by the time at which they were bound."""
        return sorted(names, key=lambda name: self._held[name].time if name in self._held else 0)

    def bind(self, name: str, values: Iterable[Value] = ()) -> None:
        """The variable is assigned, and known to hold these values."""
        self._time += 1
        values = frozenset(values)
        self._set(name, Binding(self._time, values) if values else None)

    def rename(self, old: Sequence[Value], new: Sequence[Value]) -> None:
        """Where a variable holds old[i], let it hold new[i] too: `old` are inits and `new` params, or operands and
        results. A variable that held an earlier new[i], a param of the iteration that ends, holds it no longer.
        """
        extra: dict[str, set[Value]] = {name: set() for b in new for name in self._holders.get(b, ())}
        for a, b in zip(old, new, strict=False):
            for name in self._holders.get(a, ()):
                extra.setdefault(name, set()).add(b)
        stale = frozenset(new)
        for name, more in extra.items():
            time, values = self._held[name]
            values = values - stale | more
            self._set(name, Binding(time, values) if values else None)

    def _set(self, name: str, held: Binding | None) -> None:
        before = self._held.get(name)
        self._changes.append((name, before))
        self._replace(name, before, held)

    def _replace(self, name: str, before: Binding | None, held: Binding | None) -> None:
        for v in before.values if before else ():
            self._holders[v].discard(name)
        for v in held.values if held else ():
            self._holders.setdefault(v, set()).add(name)
        if held is None:
            self._held.pop(name, None)
        else:
            self._held[name] = held

    # -------------------------------------------------------------- paths

    def mark(self) -> int:
        """A point for `undo`."""
        return len(self._changes)

    def undo(self, mark: int) -> None:
        """Go back to a mark: the variables hold what they held there."""
        while len(self._changes) > mark:
            name, before = self._changes.pop()
            self._replace(name, self._held.get(name), before)

    def path(self, mark: int, old: Sequence[Value] = (), new: Sequence[Value] = ()) -> Path:
        """The changes since a mark, with a rename of these values at the end."""
        here = self.mark()
        self.rename(old, new)
        changed = {name: self._held.get(name) for name, _ in self._changes[mark:]}
        self.undo(here)
        return changed

    def meet(self, paths: Sequence[Path]) -> None:
        """Paths from this point meet: keep what holds on all of them."""
        for name in dict.fromkeys(name for p in paths for name in p):
            held = [p.get(name, self._held.get(name)) for p in paths]
            if None in held:
                self._set(name, None)
            else:
                values = frozenset.intersection(*(h.values for h in held))
                self._set(name, Binding(held[0].time, values) if values else None)


@structure
class OpenLoop:
    """A loop that is being emitted. `claims` says, for each variable that its body assigns, what it is assumed to hold
    when an iteration begins.
    """

    node: ir.For | ir.While
    claims: dict[str, frozenset[Value]]
    mark: int  # before the loop
    normal: list[Path] = field(default_factory=list)  # on which the loop ends normally
    breaks: list[Path] = field(default_factory=list)  # on which a Break ends it
    wrong: bool = False  # a claim was false: emit the body again with the claims that are left

    def begin(self, variables: Variables) -> None:
        """An iteration begins."""
        for name, values in self.claims.items():
            variables.bind(name, values)

    def next(self, variables: Variables, operands: Sequence[Value]) -> None:
        """Control goes back to the header with these carried values: drop claims that are false here."""
        here = variables.mark()
        variables.rename(operands, self.node.params)
        for name, values in self.claims.items():
            if not values <= variables[name]:
                self.claims[name] = values & variables[name]
                self.wrong = True
        variables.undo(here)


def claimed(variables: Variables, n: ir.For | ir.While) -> dict[str, frozenset[Value]]:
    """The first claims about a loop: a variable that it may assign is claimed to hold param i if it holds init i before
    the loop.
    """
    here, params = variables.mark(), frozenset(n.params)
    variables.rename(n.inits, n.params)
    claims = {name: variables[name] & params for name in variables.in_order(assigned_in(n))}
    variables.undo(here)
    return claims


def assigned_in(n: ir.For | ir.While) -> set[str]:
    """The user's variables that a loop may assign, outside the calls in it."""
    found, pending = set(), [n]
    while pending:
        m = pending.pop()
        if isinstance(m, ir.Bind):
            found.add(m.name)
        if not isinstance(m, ir.Frame | ir.Op):
            pending += (inner for region in ir.regions_of(m) for inner in region.nodes)
    return found
