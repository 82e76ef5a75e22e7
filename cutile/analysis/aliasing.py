"""Which values of a kernel may be the same memory, and which parameters it may store to.

Slices, list items, branches, loops, calls and foreign pointers pass arrays on. All values that may be the same memory
form one class, by union-find over every node that passes an array on. So the answer may name a parameter too many, but
never one too few. The arguments of a launch may also overlap one another; that is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cutile.analysis.access import Access, accesses
from cutile.dtypes import info
from cutile.ir.nodes import (
    Bind,
    Break,
    Continue,
    For,
    Frame,
    If,
    Kernel,
    Node,
    Op,
    Region,
    Return,
    Value,
    While,
    Yield,
    regions_of,
)
from cutile.ops._op import ATOMIC, READ, WRITE
from cutile.ops.atomics import atomic_xchg, atomic_xchg_offset
from cutile.types import ArrayType, ListType, TileType


def written_params(kernel: Kernel) -> frozenset[Value]:
    """The array and list parameters that a store or atomic may reach."""
    return frozenset(first_writes(kernel))


def first_writes(kernel: Kernel) -> dict[Value, Op]:
    """The array and list parameters that a store or atomic may reach, each with the first op that may."""
    return {p: writes[0].op for p, writes in all_writes(kernel).items()}


def all_writes(kernel: Kernel) -> dict[Value, list[Access]]:
    """The array and list parameters that a store or atomic may reach, each with all that may, in program order."""
    classes = _classes(kernel)
    found: dict[Value, list[Access]] = {}
    for a in accesses(kernel).values():
        if a.effect in (WRITE, ATOMIC):
            found.setdefault(classes.find(a.op.operands[0]), []).append(a)
    return {p: found[c] for p in kernel.params if _is_memory(p) and (c := classes.find(p)) in found}


def read_params(kernel: Kernel) -> frozenset[Value]:
    """The array and list parameters that a load or atomic may reach."""
    classes = _classes(kernel)
    found = {classes.find(a.op.operands[0]) for a in accesses(kernel).values() if a.effect in (READ, ATOMIC)}
    return frozenset(p for p in kernel.params if _is_memory(p) and classes.find(p) in found)


def only_updates(writes: Sequence[Access]) -> Op | None:
    """The first of some writes to an array, if all of them are atomics that read what they change."""
    updates = [a.op for a in writes if a.effect == ATOMIC and a.op.op not in (atomic_xchg, atomic_xchg_offset)]
    return updates[0] if updates and len(updates) == len(writes) else None


def is_written(kernel: Kernel) -> Callable[[Value], bool]:
    """A test for any value of the kernel: whether it may be memory that a store or atomic of the kernel reaches."""
    classes = _classes(kernel)
    stored = {classes.find(a.op.operands[0]) for a in accesses(kernel).values() if a.effect in (WRITE, ATOMIC)}
    return lambda v: _is_memory(v) and classes.find(v) in stored


def memory_classes(kernel: Kernel, together: Iterable[Iterable[Value]] = ()) -> Callable[[Value], Value]:
    """Returns a function from an array, list or pointer value to the representative of its class: two values with
    different representatives are never the same memory.

    `together`: groups of parameters whose arguments may be the same memory.
    """
    return _classes(kernel, together).find


class _Classes:
    """Union-find."""

    def __init__(self) -> None:
        self.parent: dict[Value, Value] = {}

    def find(self, v: Value) -> Value:
        while (p := self.parent.get(v, v)) is not v:
            self.parent[v] = self.parent.get(p, p)
            v = p
        return v

    def unite(self, values: Iterable[Value]) -> None:
        memory = [v for v in values if _is_memory(v)]
        for v in memory[1:]:
            self.parent[self.find(v)] = self.find(memory[0])

    def unite_pairs(self, xs: Iterable[Value], ys: Iterable[Value]) -> None:
        for x, y in zip(xs, ys, strict=False):
            self.unite((x, y))


def _is_memory(v: Value) -> bool:
    t = v.type
    return info(t.dtype).kind == "p" if type(t) is TileType else isinstance(t, (ArrayType, ListType))


def _classes(kernel: Kernel, together: Iterable[Iterable[Value]] = ()) -> _Classes:
    """The classes of values that may be the same memory."""
    classes = _Classes()
    for group in together:
        classes.unite(group)
    # With each region: (params, results) of the innermost loop, results of the innermost frame.
    pending: list[tuple[Region, tuple, tuple]] = [(kernel.body, ((), ()), ())]
    numbers: set[int] = set()  # ids of types that are no memory: many values share one
    while pending:
        region, loop, frame = pending.pop()
        for n in region.nodes:
            kind = type(n)
            if kind is Bind:
                continue
            if kind is Op and n.region is None:  # most are; this is quick
                for v in n.results:
                    if id(v.type) in numbers:
                        continue
                    if not _is_memory(v):
                        numbers.add(id(v.type))
                    elif n.op.effect not in (WRITE, ATOMIC):
                        classes.unite((*n.operands, *n.results))
                continue
            _unite(n, classes, loop, frame)
            pending += ((inner, *_inside(n, loop, frame)) for inner in regions_of(n))
    return classes


def _unite(n: Node, classes: _Classes, loop: tuple, frame: tuple) -> None:
    match n:
        case Op() if n.op.effect not in (WRITE, ATOMIC):
            if any(map(_is_memory, n.results)):
                classes.unite((*n.operands, *n.results))
        case Return():
            classes.unite_pairs(n.operands, frame)
        case Break():
            classes.unite_pairs(n.operands, loop[1])
        case Continue():
            classes.unite_pairs(n.operands, loop[0])
        case For() | While():
            classes.unite_pairs(n.inits, n.params)
            classes.unite_pairs(n.params, n.results)
        case If():
            for side in regions_of(n):
                if isinstance(side.terminator, Yield):
                    classes.unite_pairs(side.terminator.operands, n.results)


def _inside(n: Node, loop: tuple, frame: tuple) -> tuple[tuple, tuple]:
    """For the regions nested in a node: params and results of the innermost loop, results of the innermost frame."""
    if isinstance(n, Frame):
        return ((), ()), n.results
    return ((n.params, n.results) if isinstance(n, For | While) else loop), frame
