"""Form fused multiply-adds, as the language does [MACH-7].

A float `add` or `sub` is replaced if one of its operands is the product of a `mul` that nothing else uses:

[MACH-7.add]  x*y + z and z + x*y become fma(x, y, z)
[MACH-7.sub]  x*y - z becomes fma(x, y, -z)
[MACH-7.rsub]  z - x*y becomes fma(-x, y, z)
[MACH-7.left]  if both operands qualify, the left one is fused

The exact conditions, where `add` stands for `sub` too:

[MACH-7.dtype]  float16, bfloat16, float32 and float64 are fused, integers never
[MACH-7.options]  `mul` and `add` have equal rounding mode (None is RN) and flush_to_zero
[MACH-7.direct]  the operand is the product itself: no cast, reshape or broadcast in between, and no result of an If or
    a loop
[MACH-7.single]  nothing else uses the product. Every operand position that reads it counts, also those of Yield,
    Continue, Break and Return. Two positions of one node are two uses. A Bind is no use
[MACH-7.dead]  uses that the kernel does not need for what it stores or prints are none (`analysis/live.py`), unless
    all are such
[MACH-7.region]  the product is visible to the `add`: the `mul` stands in the same region or an enclosing one, also
    outside a loop that holds the `add`
[MACH-7.call]  a call is as if inlined: `mul` or `add` may stand in a callee whose only Return ends its body. That
    such a Return returns a value is no use of it; uses of the call's result count as uses of it

A fused `mul` is removed, unless dead code uses its product or a Bind shows it to the debugger.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import chain

from cutile._support.structs import field, replace, structure
from cutile.analysis.live import Live
from cutile.dtypes import bfloat16, float16, float32, float64
from cutile.ir.nodes import Bind, Frame, Kernel, Node, Op, Region, Return, Value, inner_of, results_of, uses_of
from cutile.ir.walk import nodes_of, regions, returns, rewrite, shown_values, walk
from cutile.ops import arithmetic
from cutile.types import RoundingMode, TileType

FUSED = (float16, bfloat16, float32, float64)
_FUSING = frozenset({arithmetic.mul, arithmetic.add, arithmetic.sub})


def fma(kernel: Kernel) -> Kernel:
    """The kernel with fused multiply-adds; the same object if there is nothing to fuse."""
    plan = _plan(kernel)
    return rewrite(kernel, plan.change) if plan.fusions else kernel


@structure(slots=True)
class _Plan:
    """What to change at each node."""

    fusions: dict[Op, tuple[int, Value, Value]] = field(default_factory=dict)  # add → side of the product, factors
    gone: set[Op] = field(default_factory=set)  # muls to remove
    frame_of: dict[Return, Frame] = field(default_factory=dict)  # Return → its frame, if the frame changes
    dropped: dict[Frame, set[int]] = field(default_factory=lambda: defaultdict(set))  # positions of removed results
    # New results of a frame: factor inside it → result.
    extra: dict[Frame, dict[Value, Value]] = field(default_factory=lambda: defaultdict(dict))

    def change(self, old: Node, n: Node) -> list[Node] | None:
        if old in self.fusions:
            return _fused(n, *self.fusions[old])
        if old in self.gone:
            return []
        if isinstance(n, Frame) and (old in self.dropped or old in self.extra):
            return [replace(n, results=self.passed(n.results, old, self.extra[old].values()))]
        if old in self.frame_of:
            frame = self.frame_of[old]
            return [replace(n, operands=self.passed(n.operands, frame, self.extra[frame].keys()))]
        return None

    def passed(self, values: tuple[Value, ...], frame: Frame, factors: Iterable[Value]) -> tuple[Value, ...]:
        """The results of a frame, or the operands of its Return, after the change: those that are not
        dropped, then the factors.
        """
        return (*(v for i, v in enumerate(values) if i not in self.dropped[frame]), *factors)


def _fused(add: Node, side: int, x: Value, y: Value) -> list[Node]:
    """The nodes that replace an add or sub whose operand `side` is x*y. They define the same result value."""
    nodes: list[Node] = []

    def negative(v: Value) -> Value:
        minus = Value(v.type)
        nodes.append(Op(arithmetic.negative, (v,), {}, (minus,), add.span))
        return minus

    z = add.operands[1 - side]
    if add.op is arithmetic.sub:
        if side == 0:
            z = negative(z)
        else:
            x = negative(x)
    nodes.append(Op(arithmetic.fma, (x, y, z), dict(add.attrs), add.results, add.span))
    return nodes


class _Uses:
    """Where values are made and how often they are used, as if straight frames were inlined: a frame is straight if its
    only Return ends its body.
    """

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.defined: dict[Value, Node] = {}
        self.home: dict[Value, Region] = {}  # of results
        self.bound: set[Value] = set()  # what some Bind shows
        self.straight: dict[Frame, Return] = {}
        nodes: list[Node] = []
        for region, _ in regions(kernel.body):  # one walk, since every first launch fuses
            for n in region.nodes:
                kind = type(n)
                if kind is Bind:
                    if type(n.template) is Value:  # as of most
                        self.bound.add(n.template)
                    else:
                        self.bound.update(shown_values(n.template))
                    continue
                nodes.append(n)
                for v in n.results if kind is Op else results_of(n):
                    self.defined[v], self.home[v] = n, region
                if kind is not Op or n.region is not None:
                    self.defined.update((v, n) for v in inner_of(n))
                if kind is Frame and (r := _only_return(n)) is not None:
                    self.straight[n] = r
        self.returned = {v for frame in self.straight for v in frame.results}
        self.count = self._counted(uses_of, nodes)
        self.aliases: dict[Value, list[tuple[Frame, Value]]] = defaultdict(list)
        for frame in self.straight:
            for v in frame.results:
                self.aliases[self.origin(v)[0]].append((frame, v))

    def _counted(self, uses: Callable[[Node], Iterable[Value]], nodes: Iterable[Node]) -> Counter[Value]:
        if not self.straight:
            return Counter(chain.from_iterable(map(uses, nodes)))
        handed_out = set(self.straight.values())
        return Counter([self.origin(v)[0] if v in self.returned else v
                        for n in nodes if n not in handed_out for v in uses(n)])

    @functools.cached_property
    def live(self) -> Live:
        return Live(self.kernel)

    @functools.cached_property
    def live_count(self) -> Counter[Value]:
        return self._counted(self.live.uses, walk(self.kernel.body))

    def origin(self, v: Value) -> tuple[Value, list[Frame]]:
        """The value that straight frames return as `v`, and these frames, innermost first."""
        frames: list[Frame] = []
        while (n := self.defined.get(v)) in self.straight:
            frames.append(n)
            v = self.straight[n].operands[n.results.index(v)]
        frames.reverse()
        return v, frames

    def product(self, v: Value, add: Op) -> tuple[Op | None, list[Frame]]:
        """The `mul` that makes the operand `v` of `add`, if only `add` uses its product, once, else None; and the
        frames that return the product on the way.
        """
        root, frames = self.origin(v)
        n = self.defined.get(root)
        return n if isinstance(n, Op) and n.op is arithmetic.mul and self._once(root, add) else None, frames

    def _once(self, product: Value, add: Op) -> bool:
        return self.count[product] == 1 or self.live_count[product] == 1 and self.live.needs(add)


def _only_return(frame: Frame) -> Return | None:
    """The Return of a straight frame; None for other frames."""
    found = returns(frame.body)
    return found[0] if len(found) == 1 and found[0] is frame.body.nodes[-1] else None


def _plan(kernel: Kernel) -> _Plan:
    plan = _Plan()
    ops = [n for n in nodes_of(kernel) if type(n) is Op and n.op in _FUSING and n.result.type.dtype in FUSED]
    adds = [n for n in ops if n.op is not arithmetic.mul]
    if not adds or len(adds) == len(ops):
        return plan
    uses = _Uses(kernel)
    for add in adds:
        for side in (0, 1):
            mul, frames = uses.product(add.operands[side], add)
            if mul is not None and _alike(mul, add):
                plan.fusions[add] = side, *(_visible_factor(plan, v, frames, uses) for v in mul.operands)
                _remove(plan, mul, uses)
                break
    return plan


def _alike(mul: Op, add: Op) -> bool:
    def options(n: Op) -> tuple:
        return n.attrs.get("rounding_mode") or RoundingMode.RN, bool(n.attrs.get("flush_to_zero"))

    t = add.result.type
    assert isinstance(t, TileType)
    return mul.result.type == t and options(mul) == options(add)


def _visible_factor(plan: _Plan, v: Value, frames: list[Frame], uses: _Uses) -> Value:
    """A factor as the add sees it: for each frame on the way that defines it, a new result of that frame."""
    for frame in frames:
        if uses.home.get(v) is not frame.body:
            continue
        plan.frame_of[uses.straight[frame]] = frame
        factors = plan.extra[frame]
        if v not in factors:
            factors[v] = Value(v.type, v.name)
            uses.home[factors[v]] = uses.home[frame.results[0]]
        v = factors[v]
    return v


def _remove(plan: _Plan, mul: Op, uses: _Uses) -> None:
    """Remove a fused product, unless dead code uses it or a Bind shows it, inside a frame or as the result of one."""
    aliases = uses.aliases[mul.result]
    if uses.count[mul.result] == 1 and uses.bound.isdisjoint((mul.result, *(v for _, v in aliases))):
        plan.gone.add(mul)
        for frame, v in aliases:
            plan.frame_of[uses.straight[frame]] = frame
            plan.dropped[frame].add(frame.results.index(v))
