"""Form fused multiply-adds, as the language does [MACH-7].

A float add or sub is replaced where one of its operands is the product of a `mul` that nothing else uses:

[MACH-7.add]  x*y + z and z + x*y become fma(x, y, z)
[MACH-7.sub]  x*y - z becomes fma(x, y, -z)
[MACH-7.rsub]  z - x*y becomes fma(-x, y, z)
[MACH-7.left]  if both operands qualify, the left one is fused

The exact conditions:

[MACH-7.dtype]  float16, bfloat16, float32 and float64 are fused, integers never
[MACH-7.options]  `mul` and add have equal rounding mode (None is RN) and flush_to_zero
[MACH-7.direct]  the operand is the product itself: no cast, reshape or broadcast in between, and no result of an If or
    a loop
[MACH-7.single]  nothing else uses the product. Every operand position that reads it counts, Yield, Continue, Break and
    Return included, also in code whose own result is unused; two positions of one node are two uses. A Bind is none
[MACH-7.block]  the product is visible to the add, so the `mul` stands in the same block or an enclosing one, also
    outside a loop that holds the add
[MACH-7.call]  a call is as if inlined: `mul` or add may stand in a callee whose only Return ends its body. On its way
    out, the product must be used by that Return alone

A product that some Bind shows stays, for the debugger alone; any other fused `mul` is removed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from cutile.dtypes import bfloat16, float16, float32, float64
from cutile.ir.nodes import Block, Frame, Kernel, Node, Op, Return, Value, uses_of
from cutile.ir.walk import bound_values, definitions, homes, returns, rewrite, walk
from cutile.ops import arithmetic
from cutile.types import RoundingMode, TileType

FUSED = (float16, bfloat16, float32, float64)


def fma(kernel: Kernel) -> Kernel:
    """The kernel with fused multiply-adds; the same object if there is nothing to fuse."""
    plan = _plan(kernel)
    return rewrite(kernel, plan.change) if plan.fusions else kernel


@dataclass(slots=True)
class _Product:
    """A product that an add may absorb: its `mul`, and the frames that it leaves on its way, innermost first."""

    mul: Op
    passed: list[tuple[Frame, Return, int]]  # with the place of the product among the frame's results


@dataclass(slots=True)
class _Plan:
    """What `change` does at each node."""

    fusions: dict[Op, tuple[int, Value, Value]] = field(default_factory=dict)  # add -> side of the product, factors
    gone: set[Op] = field(default_factory=set)  # muls whose product nobody reads or shows any more
    frames: dict[Frame, Return] = field(default_factory=dict)  # those that a product passes
    dropped: dict[Frame, set[int]] = field(default_factory=lambda: defaultdict(set))  # their results that are gone
    # Factors that a frame newly hands out.
    extra: dict[Frame, dict[Value, Value]] = field(default_factory=lambda: defaultdict(dict))  # inside -> outside
    frame_of: dict[Return, Frame] = field(default_factory=dict)

    def change(self, old: Node, n: Node) -> list[Node] | None:
        if old in self.fusions:
            return _fused(n, *self.fusions[old])
        if old in self.gone:
            return []
        if old in self.frames:
            return [replace(n, results=self.passed(n.results, old, self.extra[old].values()))]
        if old in self.frame_of:
            frame = self.frame_of[old]
            return [replace(n, operands=self.passed(n.operands, frame, self.extra[frame].keys()))]
        return None

    def passed(self, values: tuple[Value, ...], frame: Frame, factors: Iterable[Value]) -> tuple[Value, ...]:
        """What the frame hands out now: without products that are gone, with factors at the end."""
        return (*(v for i, v in enumerate(values) if i not in self.dropped[frame]), *factors)


def _fused(add: Node, side: int, x: Value, y: Value) -> list[Node]:
    """The nodes that stand for an add or sub whose operand `side` is x*y. The result keeps its value."""
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


def _plan(kernel: Kernel) -> _Plan:
    plan = _Plan()
    ops = [n for n in walk(kernel.body) if isinstance(n, Op)]
    if not any(n.op is arithmetic.mul for n in ops):
        return plan
    count = Counter(v for n in walk(kernel.body) for v in uses_of(n))
    defined, home, bound = definitions(kernel.body), homes(kernel.body), bound_values(kernel.body)
    for add in ops:
        if add.op not in (arithmetic.add, arithmetic.sub) or add.results[0].type.dtype not in FUSED:
            continue
        for side in (0, 1):
            p = _product(add.operands[side], count, defined)
            if p is not None and _alike(p.mul, add):
                _fuse(plan, add, side, p, home, bound)
                break
    return plan


def _product(v: Value, count: Mapping[Value, int], defined: Mapping[Value, Node]) -> _Product | None:
    """The product that `v` is, if nothing else uses it, seen through the frames that return it."""
    passed: list[tuple[Frame, Return, int]] = []
    while count[v] == 1:
        n = defined.get(v)
        if isinstance(n, Op) and n.op is arithmetic.mul:
            return _Product(n, passed[::-1])
        if not isinstance(n, Frame) or (r := _only_return(n)) is None:
            break
        i = n.results.index(v)
        passed.append((n, r, i))
        v = r.operands[i]
    return None


def _only_return(frame: Frame) -> Return | None:
    """The Return of a frame that can be inlined as straight code."""
    found = returns(frame.body)
    return found[0] if len(found) == 1 and found[0] is frame.body.nodes[-1] else None


def _alike(mul: Op, add: Op) -> bool:
    def options(n: Op) -> tuple:
        return n.attrs.get("rounding_mode") or RoundingMode.RN, bool(n.attrs.get("flush_to_zero"))

    t = add.results[0].type
    assert isinstance(t, TileType)
    return mul.results[0].type == t and options(mul) == options(add)


def _fuse(plan: _Plan, add: Op, side: int, p: _Product, home: dict[Value, Block], bound: set[Value]) -> None:
    for frame, r, _ in p.passed:
        plan.frames[frame], plan.frame_of[r] = r, frame
    if bound.isdisjoint((*p.mul.results, *(frame.results[i] for frame, _, i in p.passed))):
        plan.gone.add(p.mul)
        for frame, _, i in p.passed:
            plan.dropped[frame].add(i)
    plan.fusions[add] = side, *(_brought_out(plan, v, p, home) for v in p.mul.operands)


def _brought_out(plan: _Plan, v: Value, p: _Product, home: dict[Value, Block]) -> Value:
    """A factor as the add sees it: a new result of each frame that it is defined in."""
    for frame, _, _ in p.passed:
        if home.get(v) is not frame.body:
            continue
        factors = plan.extra[frame]
        if v not in factors:
            factors[v] = Value(v.type, v.name)
            home[factors[v]] = home[frame.results[0]]
        v = factors[v]
    return v
