"""Which memory accesses wait for which, within a block [MEM-4].

Memory falls into classes: two accesses of different classes never meet. Program order is kept

[MEM-4.load]  between a load and every earlier store or atomic of its class
[MEM-4.store]  between a store or atomic and every earlier access of its class
[MEM-4.acquire]  between any access and the latest earlier acquire
[MEM-4.release]  between a release and all earlier accesses
[MEM-4.print]  between what prints, or waits for other grids, and all accesses
[MEM-4.loads]  but not between two loads
[MEM-4.assert]  nor around an assert
[MEM-4.apart]  nor between the stores of different iterations of an innermost loop, if each goes to a tile of its own

A back end carries one token for each `Key`: what comes later waits for the tokens that `before` names, and becomes
part of those that `after` names. Carried through branches and loops are the tokens that something in them changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from cutile._support.structs import field, structure
from cutile.analysis.memory_effects import memory_classes
from cutile.ir.nodes import For, Kernel, Node, Op, Region, Value, While, regions_of
from cutile.ir.walk import definitions, regions, walk
from cutile.ops import arithmetic, debug, grid
from cutile.ops._op import ATOMIC, READ, WRITE
from cutile.types import MemoryOrder

ACQUIRES = (MemoryOrder.ACQUIRE, MemoryOrder.ACQ_REL)
RELEASES = (MemoryOrder.RELEASE, MemoryOrder.ACQ_REL)
FENCES = (debug.emit_text, grid.grid_dependency_control_wait, grid.grid_dependency_control_launch_dependents)

# ("any", class): all accesses so far · ("write", class): all stores and atomics so far · ("acquire", None)
Key = tuple[str, Value | None]
ACQUIRE: Key = ("acquire", None)


@structure(frozen=True, slots=True)
class Access:
    """How a node takes part. `joins` gain the node's token, `becomes` are then its token alone."""

    waits: tuple[Key, ...]
    joins: tuple[Key, ...]
    becomes: tuple[Key, ...]


NONE = Access((), (), ())


@structure(slots=True)
class Ordering:
    """The plan for one kernel without frames."""

    access: dict[Op, Access] = field(default_factory=dict)
    apart: dict[For, dict[Op, Value]] = field(default_factory=dict)  # stores that need not wait for each other
    _changed: dict[Region, tuple[Key, ...]] = field(default_factory=dict)

    def of(self, n: Op) -> Access:
        return self.access.get(n, NONE)

    def changed(self, inside: Iterable[Region]) -> tuple[Key, ...]:
        """The tokens that some node in these regions changes, in a fixed order."""
        return tuple(dict.fromkeys(k for b in inside for k in self._changed[b]))

    def _find_changed(self, root: Region) -> None:
        for b, _ in reversed(list(regions(root))):  # inner ones first
            found: dict[Key, None] = {}
            for n in b.nodes:
                if isinstance(n, Op):
                    a = self.of(n)
                    found.update(dict.fromkeys((*a.joins, *a.becomes)))
                for inner in regions_of(n):
                    found.update(dict.fromkeys(self._changed[inner]))
            self._changed[b] = tuple(found)


def ordering(kernel: Kernel, together: Sequence[Sequence[Value]] = (), overlapping: Sequence[Value] = ()) -> Ordering:
    """`together`: parameters that may be the same memory. `overlapping`: those of which two elements may be."""
    class_of = memory_classes(kernel, together)
    ops = [n for n in walk(kernel.body)
           if isinstance(n, Op) and (n.op.effect in (READ, WRITE, ATOMIC) or n.op in FENCES)]
    written = {class_of(n.operands[0]) for n in ops if n.op.effect in (WRITE, ATOMIC)}
    fenced = any(n.op in FENCES or _order(n) in (*ACQUIRES, *RELEASES) for n in ops)
    classes = list(dict.fromkeys(class_of(n.operands[0]) for n in ops if n.op not in FENCES))
    tracked = [c for c in classes if fenced or c in written]
    plan = Ordering()
    for n in ops:
        if n.op in FENCES:
            plan.access[n] = _fence(tracked)
        elif (c := class_of(n.operands[0])) in tracked:
            plan.access[n] = _access(n, c, tracked)
    plan._find_changed(kernel.body)
    apart = {class_of(v) for v in overlapping}
    for loop in walk(kernel.body):
        if isinstance(loop, For) and (found := _apart(loop, plan, class_of, apart)):
            plan.apart[loop] = found
    return plan


def _order(n: Op) -> MemoryOrder:
    return n.attrs.get("memory_order", MemoryOrder.WEAK)


def _fence(classes: Sequence[Value]) -> Access:
    """Waits for all, and all wait for it."""
    return Access((*(("any", c) for c in classes), ACQUIRE), (), (ACQUIRE,))


def _access(n: Op, c: Value, classes: Sequence[Value]) -> Access:
    order, reads = _order(n), n.op.effect == READ
    waits: tuple[Key, ...] = (("write" if reads else "any", c), ACQUIRE)
    if order in RELEASES:
        waits = (*(("any", k) for k in classes), ACQUIRE)
    acquires = (ACQUIRE,) if order in ACQUIRES else ()
    if reads:
        return Access(waits, (("any", c),), acquires)
    return Access(waits, (), (("any", c), ("write", c), *acquires))


# ------------------------------------------------------------------ stores of different iterations


def _apart(loop: For, plan: Ordering, class_of, overlapping: set[Value]) -> dict[Op, Value]:
    """The stores of an innermost loop that never meet one another, with their classes: such a store is the only access
    of its class in the loop, its array comes from outside, and its tile index moves with the counter."""
    nodes = list(walk(loop.body))
    if any(isinstance(n, For | While) for n in nodes):
        return {}
    accesses = [n for n in nodes if isinstance(n, Op) and n in plan.access]
    if any(ACQUIRE in plan.access[n].becomes for n in accesses):  # fences too: each access waits for the latest one
        return {}
    counts = Counter(class_of(n.operands[0]) for n in accesses)
    inside = {**definitions(loop.body), **dict.fromkeys(loop.params, loop)}
    return {n: c for n in accesses
            if n.op.name in ("store", "view_store") and counts[c := class_of(n.operands[0])] == 1
            and c not in overlapping and _order(n) is MemoryOrder.WEAK and n.operands[0] not in inside
            and _moves(n, loop, inside)}


def _moves(n: Op, loop: For, inside: dict[Value, Node]) -> bool:
    """Some tile index is the counter plus or minus something that stays the same, and tiles do not overlap."""
    index, shape = n.op.group(n.operands, n.layout)[1], n.operands[-1].type.shape
    steps = n.attrs.get("steps", shape)
    return any(_is_counter(v, loop, inside) and (not shape or s >= d)
               for v, s, d in zip(index, steps or (1,) * len(index), shape or (1,) * len(index), strict=True))


def _is_counter(v: Value, loop: For, inside: dict[Value, Node]) -> bool:
    if v is loop.iv:
        return True
    d = inside.get(v)
    if not isinstance(d, Op) or d.op not in (arithmetic.add, arithmetic.sub):
        return False
    fixed = [x not in inside and x is not loop.iv or _constant(inside.get(x)) for x in d.operands]
    return sum(fixed) == 1 and _is_counter(d.operands[fixed.index(False)], loop, inside)


def _constant(n: Node | None) -> bool:
    return isinstance(n, Op) and n.op.name == "constant"


__all__ = ["ACQUIRE", "Access", "Key", "Ordering", "ordering"]
