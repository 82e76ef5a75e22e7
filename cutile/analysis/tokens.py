"""Which memory accesses wait for which, within a block [MEM-4].

Memory falls into classes (`aliasing.memory_classes`): two accesses of different classes never meet. Program order is
kept

[MEM-4.load]  between a load and every earlier store or atomic of its class
[MEM-4.store]  between a store or atomic and every earlier access of its class
[MEM-4.acquire]  between any access and the latest earlier acquire
[MEM-4.release]  between a release and all earlier accesses
[MEM-4.print]  between all accesses and an op that prints or is a barrier between grids

It is not kept

[MEM-4.loads]  between two loads
[MEM-4.assert]  between an assert and any access
[MEM-4.apart]  between the stores of different iterations of an innermost loop, if each goes to a tile of its own

A back end carries one token for each `Key`. `Tokens` says which of them an access waits for, and which it joins or
becomes. Branches and loops carry the tokens that something in them changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from cutile._support.structs import field, structure
from cutile.analysis.access import Access, accesses
from cutile.analysis.aliasing import memory_classes
from cutile.ir.nodes import For, Kernel, Op, Region, Value, While, regions_of
from cutile.ir.walk import definitions, regions, walk
from cutile.ops import debug, grid
from cutile.ops._op import ATOMIC, READ, WRITE
from cutile.types import MemoryOrder

ACQUIRES = (MemoryOrder.ACQUIRE, MemoryOrder.ACQ_REL)
RELEASES = (MemoryOrder.RELEASE, MemoryOrder.ACQ_REL)
FENCES = (debug.emit_text, grid.grid_dependency_control_wait, grid.grid_dependency_control_launch_dependents)

# ("any", class): all accesses so far · ("write", class): all stores and atomics so far · ("acquire", None)
Key = tuple[str, Value | None]
ACQUIRE: Key = ("acquire", None)


@structure(frozen=True, slots=True)
class Tokens:
    """What a node does with tokens.

    waits    tokens that the node needs
    joins    tokens that it is added to
    becomes  tokens that it replaces
    """

    waits: tuple[Key, ...]
    joins: tuple[Key, ...]
    becomes: tuple[Key, ...]


NONE = Tokens((), (), ())


@structure(slots=True)
class Ordering:
    """The tokens of one kernel without frames."""

    tokens: dict[Op, Tokens] = field(default_factory=dict)
    apart: dict[For, dict[Op, Value]] = field(default_factory=dict)  # stores that need not wait for each other
    _changed: dict[Region, tuple[Key, ...]] = field(default_factory=dict)

    def of(self, n: Op) -> Tokens:
        return self.tokens.get(n, NONE)

    def changed(self, inside: Iterable[Region]) -> tuple[Key, ...]:
        """The tokens that some node in these regions changes, in a fixed order."""
        return tuple(dict.fromkeys(k for region in inside for k in self._changed[region]))

    def _find_changed(self, root: Region) -> None:
        for region, _ in reversed(list(regions(root))):  # inner ones first
            found: dict[Key, None] = {}
            for n in region.nodes:
                if isinstance(n, Op):
                    a = self.of(n)
                    found.update(dict.fromkeys((*a.joins, *a.becomes)))
                for inner in regions_of(n):
                    found.update(dict.fromkeys(self._changed[inner]))
            self._changed[region] = tuple(found)


def ordering(kernel: Kernel, together: Sequence[Sequence[Value]] = (), overlapping: Sequence[Value] = ()) -> Ordering:
    """The tokens of a kernel.

    `together`: groups of parameters that may be the same memory; `overlapping`: parameters in which two elements may be
    the same memory.
    """
    class_of = memory_classes(kernel, together)
    ops = [n for n in walk(kernel.body)
           if isinstance(n, Op) and (n.op.effect in (READ, WRITE, ATOMIC) or n.op in FENCES)]
    written = {class_of(n.operands[0]) for n in ops if n.op.effect in (WRITE, ATOMIC)}
    fenced = any(n.op in FENCES or _order(n) in (*ACQUIRES, *RELEASES) for n in ops)
    classes = list(dict.fromkeys(class_of(n.operands[0]) for n in ops if n.op not in FENCES))
    tracked = [memory for memory in classes if fenced or memory in written]
    found = Ordering()
    for n in ops:
        if n.op in FENCES:
            found.tokens[n] = _fence(tracked)
        elif (memory := class_of(n.operands[0])) in tracked:
            found.tokens[n] = _access(n, memory, tracked)
    found._find_changed(kernel.body)
    overlapping_classes = {class_of(v) for v in overlapping}
    for loop in [n for n in walk(kernel.body) if isinstance(n, For)]:
        if stores := _stores_apart(loop, found, class_of, overlapping_classes, accesses(kernel)):
            found.apart[loop] = stores
    return found


def _order(n: Op) -> MemoryOrder:
    return n.attrs.get("memory_order", MemoryOrder.WEAK)


def _fence(classes: Sequence[Value]) -> Tokens:
    """A fence waits for everything before it, and everything after waits for it."""
    return Tokens((*(("any", k) for k in classes), ACQUIRE), (), (ACQUIRE,))


def _access(n: Op, memory: Value, classes: Sequence[Value]) -> Tokens:
    order, reads = _order(n), n.op.effect == READ
    waits: tuple[Key, ...] = (("write" if reads else "any", memory), ACQUIRE)
    if order in RELEASES:
        waits = (*(("any", k) for k in classes), ACQUIRE)
    acquires = (ACQUIRE,) if order in ACQUIRES else ()
    if reads:
        return Tokens(waits, (("any", memory),), acquires)
    return Tokens(waits, (), (("any", memory), ("write", memory), *acquires))


# ------------------------------------------------------------------ stores of different iterations


def _stores_apart(loop: For, order: Ordering, class_of, overlapping: set[Value],
                  described: Mapping[Op, Access]) -> dict[Op, Value]:
    """The stores of an innermost loop that go to another tile in each iteration, with their classes: such a store is
    the only access of its class in the loop, its array comes from outside, and its tile index moves with the counter.

    `overlapping`: classes in which two elements may be the same memory.
    """
    nodes = list(walk(loop.body))
    if any(isinstance(n, For | While) for n in nodes):
        return {}
    found = [n for n in nodes if isinstance(n, Op) and n in order.tokens]
    if any(ACQUIRE in order.tokens[n].becomes for n in found):  # fences too: each access waits for the latest one
        return {}
    counts = Counter(class_of(n.operands[0]) for n in found)
    inside = {*definitions(loop.body), *loop.params}
    return {n: memory for n in found
            if n.op.effect == WRITE and counts[memory := class_of(n.operands[0])] == 1 and memory not in overlapping
            and _order(n) is MemoryOrder.WEAK and n.operands[0] not in inside
            and _moves(described[n], loop, inside)}


def _moves(access: Access, loop: For, inside: set[Value]) -> bool:
    """Whether some tile index is the counter, or minus the counter, plus a number that is the same in each iteration,
    and tiles do not overlap along that axis.
    """
    return any(abs(i.coefficient(loop.iv)) == 1 and inside.isdisjoint(i.without(loop.iv).variables) and step >= n
               for i, step, n in zip(access.index, access.steps, access.shape, strict=False))


__all__ = ["ACQUIRE", "Key", "Ordering", "Tokens", "ordering"]
