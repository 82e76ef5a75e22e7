"""Loops that wait for other blocks, and the state in which such a loop would run for ever.

A loop waits if something that other blocks may change decides how long it runs: the result of an atomic, or of a load
from memory that the kernel stores to, reaches the condition of the loop or of a Break, Continue or Return in it. A
plain branch on such a value waits for nobody. Nor does a loop wait because of

* an `atomic_add` of a number known not to be zero: the loop itself changes the memory, for example a counter that
  distributes work;
* a WEAK load, if the loop stores to the same memory: it works in place (a sort, an iteration until convergence), and
  nothing may wait through WEAK accesses [MEM-2].

The state of a waiting loop consists of the carried values that decide what an iteration does: where it branches, which
elements it reads and writes, and the values it writes. If the state repeats and memory has not changed in between, all
later iterations repeat too.

The flow of values is followed through branches, loops and calls without regard to order. So the analysis may report a
loop that does not wait, or too large a state. It never misses one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from cutile._support.structs import field, structure
from cutile.analysis.aliasing import is_written, memory_classes
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
    results_of,
)
from cutile.ir.walk import nodes_of, walk
from cutile.ops import atomics, create, shape
from cutile.ops._op import ATOMIC, PURE, READ, WRITE
from cutile.types import MemoryOrder

Loop = For | While


def waiting_loops(kernel: Kernel) -> dict[Loop, tuple[Value, ...]]:
    """Each loop that waits for other blocks, with the carried values that are its state."""
    flow = _flow(kernel)
    if flow is None:
        return {}
    found: dict[Loop, tuple[Value, ...]] = {}
    for loop, sources in flow.sources.items():
        if not sources.isdisjoint(flow.backward_slice(flow.exits[loop])):
            state = flow.backward_slice([*flow.exits[loop], *flow.acts[loop]])
            found[loop] = tuple(v for v in loop.params if v in state)
    return found


def waited_for(kernel: Kernel) -> set[Value]:
    """What loops wait for: results of ops that other blocks may change, and that decide how long a loop runs."""
    flow = _flow(kernel)
    if flow is None:
        return set()
    return {v for loop, sources in flow.sources.items() for v in sources & flow.backward_slice(flow.exits[loop])}


def _flow(kernel: Kernel) -> _Flow | None:
    """None if no loop can wait."""
    return _Flow(kernel) if any(_may_wait(n) for n in nodes_of(kernel) if type(n) not in _NEVER) else None


_NEVER = frozenset({Op, Bind})  # classes of nodes that do not wait


def _may_wait(n: Node) -> bool:
    """Whether a node can decide how long a loop runs: a While, or an If around a Break, Continue or Return."""
    return isinstance(n, While) or isinstance(n, If) and any(
        isinstance(m, Break | Continue | Return) for region in regions_of(n) for m in region.nodes)


@structure(frozen=True, slots=True)
class _Nesting:
    """The node that holds a region, and the nesting of that node."""

    node: Node | None
    outer: _Nesting | None
    loops: tuple[Loop, ...] = ()  # around the region, those of callers too
    is_cond: bool = False  # the region is the condition of a While

    def inside(self, n: Node) -> Iterator[tuple[Region, _Nesting]]:
        """The regions nested in a node of this region."""
        loops = (*self.loops, n) if isinstance(n, For | While) else self.loops
        for region in regions_of(n):
            yield region, _Nesting(n, self, loops, isinstance(n, While) and region is n.cond)

    def chain(self) -> Iterator[Node]:
        """The nodes around, innermost first."""
        nesting: _Nesting | None = self
        while nesting is not None and nesting.node is not None:
            yield nesting.node
            nesting = nesting.outer


@structure(slots=True)
class _Flow:
    """From which values each value is made, and for each loop the values that decide about it."""

    kernel: Kernel
    made_from: dict[Value, list[Value]] = field(default_factory=lambda: defaultdict(list))
    exits: dict[Loop, list[Value]] = field(default_factory=lambda: defaultdict(list))  # decide how long it runs
    acts: dict[Loop, list[Value]] = field(default_factory=lambda: defaultdict(list))  # decide what an iteration does
    sources: dict[Loop, set[Value]] = field(default_factory=lambda: defaultdict(set))  # other blocks may change these

    def __post_init__(self) -> None:
        written, known, memory = is_written(self.kernel), _nonzero(self.kernel), memory_classes(self.kernel)
        stored: dict[Loop, set[Value]] = defaultdict(set)
        weak: dict[Loop, list[tuple[Value, Op]]] = defaultdict(list)  # memory, load
        pending = [(self.kernel.body, _Nesting(None, None))]
        while pending:
            region, nesting = pending.pop()
            for n in region.nodes:
                self.node(n, nesting)
                if nesting.loops and isinstance(n, Op):
                    if n.op.effect == WRITE:
                        for loop in nesting.loops:
                            stored[loop].add(memory(n.operands[0]))
                    elif _may_change(n, written, known):
                        for loop in nesting.loops:
                            if _is_weak_load(n):
                                weak[loop].append((memory(n.operands[0]), n))
                            else:
                                self.sources[loop].update(n.results)
                pending += nesting.inside(n)
        for loop, loads in weak.items():
            for array, n in loads:
                if array not in stored[loop]:
                    self.sources[loop].update(n.results)

    def backward_slice(self, values: Iterable[Value]) -> set[Value]:
        """These values and all that they are made from."""
        seen: set[Value] = set()
        pending = list(values)
        while pending:
            v = pending.pop()
            if v not in seen:
                seen.add(v)
                pending += self.made_from.get(v, ())
        return seen

    def link(self, made: Iterable[Value], parts: Iterable[Value]) -> None:
        for v, w in zip(made, parts, strict=False):
            self.made_from[v].append(w)

    def all_from(self, made: Iterable[Value], parts: Iterable[Value]) -> None:
        parts = list(parts)
        for v in made:
            self.made_from[v] += parts

    def node(self, n: Node, nesting: _Nesting) -> None:
        match n:
            case Op():
                self.all_from(n.results, n.operands)
                if n.region is not None:
                    self.all_from(n.region.params, n.operands)
                if n.op.effect != PURE:
                    self.matters(n.operands, nesting)
            case If():
                self.all_from(n.results, [n.cond])
                self.matters([n.cond], nesting)
            case For():
                bounds = (n.start, n.stop, n.step)
                self.all_from((n.iv, *n.results), bounds)
                self.link(n.params, n.inits)
                self.link(n.results, n.params)
                self.matters(bounds, nesting)
            case While():
                self.link(n.params, n.inits)
                self.link(n.results, n.params)
            case Yield():
                self.end(n, nesting)
            case Break() | Continue() | Return():
                self.leave(n, nesting)

    def matters(self, values: Iterable[Value], nesting: _Nesting) -> None:
        for loop in nesting.loops:
            self.acts[loop] += values

    def end(self, n: Yield, nesting: _Nesting) -> None:
        if nesting.is_cond:
            self.exits[nesting.node].append(n.operands[0])
            self.all_from(nesting.node.results, n.operands)
            self.matters(n.operands, nesting.outer)
        else:
            self.link(results_of(nesting.node), n.operands)

    def leave(self, n: Break | Continue | Return, nesting: _Nesting) -> None:
        """The operands become values of the loop or call that is left or continued, if the conditions of the Ifs in
        between hold.
        """
        conds: list[Value] = []
        for outer in nesting.chain():
            if isinstance(outer, If):
                conds.append(outer.cond)
            elif isinstance(outer, For | While):
                self.exits[outer] += conds
                if not isinstance(n, Return):
                    to = outer.params if isinstance(n, Continue) else outer.results
                    self.link(to, n.operands)
                    self.all_from((*outer.params, *outer.results), conds)
                    return
                self.all_from(outer.results, conds)
            elif isinstance(outer, Frame):
                self.link(outer.results, n.operands)
                self.all_from(outer.results, conds)
                return


def _may_change(n: Op, written, known: set[Value]) -> bool:
    """Whether other blocks may change what the op returns, so that a loop may wait for them to do so."""
    if n.op.effect == READ:
        return any(written(v) for v in n.operands)
    if n.op.effect != ATOMIC:
        return False
    if n.op in (atomics.atomic_add, atomics.atomic_add_offset):
        array, _, update, *mask = n.op.group(n.operands, n.layout)
        return update not in known or any(m is not None for m in mask)
    return True


def _is_weak_load(n: Op) -> bool:
    return n.op.effect == READ and n.attrs.get("memory_order", MemoryOrder.WEAK) is MemoryOrder.WEAK


def _nonzero(kernel: Kernel) -> set[Value]:
    """Values that are known to be numbers other than zero."""
    found: set[Value] = set()
    for n in walk(kernel.body):
        if isinstance(n, Op) and (n.op is create.constant and n.attrs["value"] != 0
                                  or n.op is shape.broadcast_to and n.operand in found):
            found.update(n.results)
    return found
