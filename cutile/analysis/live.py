"""Which values and nodes a kernel needs for what it does to memory or prints [MACH-6].

Needed are ops with an effect, the nodes that hold them, and whatever these need: operands, conditions, bounds of loops.
A carried value is needed only if something outside its own cycle needs it. An If that may jump is needed if the loop,
call or kernel that the jump leaves or goes on with is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from cutile.ir.nodes import (
    LOOPS,
    TERMINATORS,
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
    inner_of,
    results_of,
    uses_of,
)
from cutile.ir.walk import regions
from cutile.ops._op import PURE, READ
from cutile.types import MemoryOrder


def removable(n: Node) -> bool:
    """Whether a node is an op that is needed for its results only: a pure op, or a weak or relaxed load [LOAD-8]."""
    return isinstance(n, Op) and (n.op.effect == PURE or n.op.effect == READ
                                  and n.attrs.get("memory_order", MemoryOrder.WEAK) is not MemoryOrder.ACQUIRE)


class Live:
    """What a kernel needs."""

    def __init__(self, kernel: Kernel):
        self._holder: dict[Node, Node | None] = {}  # of each node, the node around it
        self._target: dict[Node, Node | None] = {}  # of each terminator, the node that it ends or goes on with
        self._jumps: dict[Node | None, list[Node]] = defaultdict(list)  # to each node; None is the kernel
        self._sources: dict[Value, list[Value]] = defaultdict(list)  # what a value becomes needed for
        self._makers: dict[Value, Node] = {}
        self._nodes: set[Node | None] = {None}
        self._values: set[Value] = set()
        self._pending: list[Node | Value] = []
        effects = self._collect(kernel.body)
        self._need(*effects, *self._jumps[None])
        while self._pending:
            x = self._pending.pop()
            if isinstance(x, Value):
                self._need(self._makers.get(x), *self._sources.get(x, ()))
            else:
                self._need(self._holder[x], *self._jumps.get(x, ()), *self._read_always(x))

    def needs(self, n: Node) -> bool:
        """Whether a node that is no terminator does something, or something needs what it computes."""
        return n in self._nodes

    def uses(self, n: Node) -> Iterable[Value]:
        """The values that a node reads itself, as `uses_of` gives them, if something needs that it reads them."""
        if isinstance(n, TERMINATORS):
            return (v for v, to in self._handed(n) if not self._values.isdisjoint(to) or not to and n in self._nodes)
        if not self.needs(n):
            return ()
        if isinstance(n, LOOPS):
            carried = (v for v, to in zip(n.inits, self._carried(n), strict=True) if not self._values.isdisjoint(to))
            return (*_bounds(n), *carried)
        return uses_of(n)

    # -------------------------------------------------------------- collecting

    def _collect(self, body: Region) -> list[Node]:
        """Fill the tables, outer regions first; returns the ops with an effect."""
        effects = []
        for region, holder in regions(body):
            for n in region.nodes:
                self._holder[n] = holder
                if isinstance(n, TERMINATORS):
                    self._hand_out(n, holder)
                    continue
                self._makers.update(dict.fromkeys((*results_of(n), *inner_of(n)), n))
                if isinstance(n, Op) and not removable(n):
                    effects.append(n)
                elif isinstance(n, LOOPS):
                    for v, to in zip(n.inits, self._carried(n), strict=True):
                        self._note(v, to)
        return effects

    def _hand_out(self, n: Node, holder: Node | None) -> None:
        left = {Yield: (Op, If, While), Return: (Frame,)}.get(type(n), LOOPS)
        target = holder
        while target is not None and not isinstance(target, left):
            target = self._holder[target]
        self._target[n] = target
        if not isinstance(n, Yield) and holder is not target or target is None:
            self._jumps[target].append(n)
        for v, to in self._handed(n):
            self._note(v, to)

    def _handed(self, n: Node) -> list[tuple[Value, tuple[Value, ...]]]:
        """Each operand of a terminator with the values that it becomes. The condition of a While becomes none."""
        target = self._target[n]
        if isinstance(target, Op):
            return [(v, target.results) for v in n.operands]
        if isinstance(n, Yield) and isinstance(target, While):
            return [(v, ()) for v in n.operands]
        if isinstance(n, Continue):
            return list(zip(n.operands, self._carried(target), strict=True))
        return [(v, (r,)) for v, r in zip(n.operands, results_of(target), strict=True)] if target is not None else []

    @staticmethod
    def _carried(n: For | While) -> list[tuple[Value, ...]]:
        """What each carried value is: a parameter and, unless only a Break gives the results, a result."""
        if isinstance(n, While) and n.cond is None:
            return [(p,) for p in n.params]
        return list(zip(n.params, n.results, strict=True))

    def _note(self, v: Value, becomes: Iterable[Value]) -> None:
        for to in becomes:
            self._sources[to].append(v)

    # -------------------------------------------------------------- following

    def _need(self, *found: Node | Value | None) -> None:
        for x in found:
            known = self._values if isinstance(x, Value) else self._nodes
            if x not in known:
                known.add(x)
                self._pending.append(x)

    @staticmethod
    def _read_always(n: Node) -> tuple[Node | Value, ...]:
        """What a needed node reads whichever of its results is needed."""
        if isinstance(n, TERMINATORS):
            return ()
        if isinstance(n, LOOPS):
            condition = n.cond.terminator if isinstance(n, While) and n.cond is not None else None
            return _bounds(n) if condition is None else (condition, *uses_of(condition))
        return uses_of(n)


def _bounds(n: For | While) -> tuple[Value, ...]:
    return (n.start, n.stop, n.step) if isinstance(n, For) else ()
