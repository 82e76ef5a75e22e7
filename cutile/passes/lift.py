"""Lift element functions over tiles: each op on scalars becomes the op on tiles, so that no `elementwise` node is left.

Both sides of a branch are computed, and a select chooses, by masks: bool tiles that say which elements are where. A
loop runs until no element is live; the values of a dead element stay. Where all elements agree, on a value that depends
on no operand, scalars, branches and counted loops stay as they are.

Code that an element does not run has no effect for it: its divisors are 1, its shifts 0, unless they are constants that
do no harm, and its loads are masked. So a division by zero in the side that is not taken, or an index out of range
there, neither traps nor is reported [ELT-9].

On scalars, outside of combine functions, nothing is lifted: the body takes the place of the node. In a combine function
it has no branches afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from cutile._support.structs import field, replace, structure
from cutile.dtypes import DType, bool_, info, int32, int_range
from cutile.errors import TileInternalError
from cutile.ir.build import Builder
from cutile.ir.nodes import (
    Bind,
    Break,
    Continue,
    For,
    If,
    Kernel,
    Known,
    Node,
    Op,
    Region,
    Value,
    While,
    Yield,
    uses_of,
)
from cutile.ir.walk import rewrite, walk
from cutile.ops import arithmetic, bits, compare, convert, create, debug, reduce, select, shape
from cutile.ops._constants import encode
from cutile.ops._op import ATOMIC, PURE, READ, OpDef
from cutile.ops.elementwise import elementwise
from cutile.passes.flatten_frames import flatten_frames
from cutile.passes.structured_exits import has_break
from cutile.spans import Span
from cutile.types import TileType

Mask = Value | None  # a bool tile: which elements are somewhere; None: all for which the function runs


def lift(kernel: Kernel, masks: Masks | None = None) -> Kernel:
    """The kernel without `elementwise` nodes; the same object if there is none.

    `masks`, if it is given, gets to know which elements run what.
    """
    nodes = [n for n in walk(kernel.body) if isinstance(n, Op) and n.region is not None]
    if not any(n.op is elementwise for n in nodes):
        return kernel
    combining = {inner for n in nodes if n.op is not elementwise for inner in walk(n.region)}
    new: dict[Value, Value] = {}

    def change(old: Node, n: Node) -> list[Node] | None:
        if not (isinstance(n, Op) and n.op is elementwise):
            return None
        operands = n.op.named(n.operands, n.layout)
        given, mask = dict(zip(n.region.params, operands["x"], strict=True)), operands["mask"]
        body = rewrite(replace(kernel, body=replace(n.region, params=())), lambda old, n: None, given)
        if n.results[0].type.shape or mask is not None or old in combining:
            lifting = _Lifting(n.results[0].type.shape, n.span, old in combining, masks)
            body = replace(body, body=lifting.run(flatten_frames(body).body, mask))
        *inside, last = body.body.nodes
        new.update(zip(n.results, last.operands, strict=True))
        return inside

    return rewrite(kernel, change, new)


@structure(slots=True)
class Masks:
    """Which elements run what, in a lifted kernel; ops that make these masks stay there though nothing reads them.

    live  for each value that an op of an element function makes for some elements only, the mask of these
    any   values by which a loop finds out whether any element is left
    """

    live: dict[Value, Value] = field(default_factory=dict)
    any: set[Value] = field(default_factory=set)


@structure(slots=True)
class _Loop:
    """A loop that is being lifted: the elements that leave it or go on, and with which values."""

    breaks: list[tuple[Mask, tuple[Value, ...]]] = field(default_factory=list)
    continues: list[tuple[Mask, tuple[Value, ...]]] = field(default_factory=list)


class _Lifting:
    """Lifts the body of one element function. A value that has no shape afterwards is the same for all elements."""

    def __init__(self, shape: tuple[int, ...], span: Span, combining: bool, masks: Masks | None):
        self.shape, self.combining, self.masks = shape, combining, masks
        self.b = Builder(span)
        self.values: dict[Value, Value] = {}
        self.numbers: dict[Value, Any] = {}  # the constants of the body
        self.loops: list[_Loop] = []

    def run(self, body: Region, mask: Mask) -> Region:
        """The lifted body, which runs for the elements of the mask, and yields tiles with zeros elsewhere."""
        with self.b.into(Region()) as made:
            last, _ = self.region(body, mask)
            results = [self.tile(self.get(v)) for v in last.operands]
            if mask is not None:
                results = [self.select(mask, v, self.constant(v.type.dtype, 0)) for v in results]
            self.b.append(Yield(tuple(results), last.span))
        return without_unused(made, () if self.masks is None else self.masks.live.values())

    # -------------------------------------------------------------- values

    def get(self, v: Value) -> Value:
        return self.values.get(v, v)

    def varies(self, v: Value) -> bool:
        """Whether a lifted value may differ between elements; in a combine function, where each is alone, any value
        counts as one that does.
        """
        return isinstance(v.type, TileType) and (self.combining or v.type.shape != ())

    def tile(self, v: Value) -> Value:
        """A lifted value as a tile of all elements."""
        if not isinstance(v.type, TileType) or v.type.shape == self.shape:
            return v
        return self.b.op1(shape.broadcast_to, v, result=TileType(v.type.dtype, self.shape), shape=self.shape)

    def constant(self, dtype: DType, value: int) -> Value:
        value = encode(bool(value) if dtype is bool_ else value, dtype)
        return self.tile(self.b.op1(create.constant, result=TileType(dtype), value=value))

    def select(self, mask: Mask, x: Value, y: Value) -> Value:
        """x for the elements of the mask, y for others."""
        if x is y or mask is None:
            return x
        x, y = self.tile(x), self.tile(y)
        return self.b.op1(select.where, mask, x, y, result=x.type)

    def both(self, a: Mask, b: Mask) -> Mask:
        if a is None or b is None:
            return b if a is None else a
        return self.b.op1(bits.bitwise_and, a, b, result=a.type)

    def any(self, mask: Value) -> Value:
        """Whether a mask has an element, as a scalar."""
        size = mask.type.size
        if size == 1:
            return self.noted(self.b.op1(shape.reshape, mask, result=TileType(bool_), shape=())) if self.shape else mask
        if len(self.shape) > 1:
            mask = self.noted(self.b.op1(shape.reshape, mask, result=TileType(bool_, (size,)), shape=(size,)))
        ones = self.noted(self.b.op1(convert.astype, mask, result=TileType(int32, (size,)), rounding_mode=None))
        one = self.b.op1(reduce.max, ones, result=TileType(int32), axis=-1, flush_to_zero=False, propagate_nan=False)
        return self.b.op1(convert.astype, one, result=TileType(bool_), rounding_mode=None)

    def noted(self, v: Value) -> Value:
        if self.masks is not None:
            self.masks.any.add(v)
        return v

    # -------------------------------------------------------------- nodes

    def region(self, region: Region, mask: Mask) -> tuple[Yield | None, Mask]:
        """Lift the nodes of a region. Returns the Yield at its end, or None if no element reaches one, and the elements
        that do.
        """
        for n in region.nodes:
            self.b.span = n.span
            match n:
                case Yield():
                    return n, mask
                case Break() | Continue():
                    edges = self.loops[-1].breaks if isinstance(n, Break) else self.loops[-1].continues
                    edges.append((mask, tuple(map(self.get, n.operands))))
                    return None, mask
                case Bind():
                    self.b.append(Bind("", Known(None), n.span))
                case Op():
                    self.op(n, mask)
                case If():
                    reached, mask = self.branch(n, mask)
                    if not reached:
                        return None, mask
                case For() | While():
                    if not self.loop(n, mask):
                        return None, mask
                case _:
                    raise TileInternalError(f"{type(n).__name__} in an element function", n.span)
        return None, mask

    def op(self, n: Op, mask: Mask) -> None:
        if n.op is debug.breakpoint:
            return
        if n.op is create.constant:
            self.numbers[n.result] = n.attrs["value"]
        operands, layout = tuple(map(self.get, n.operands)), n.layout
        guarded = mask is not None and (n.op.effect in (READ, ATOMIC) or self.may_trap(n))
        shape = ()
        if guarded or n.op.effect == ATOMIC or any(map(self.varies, operands)):
            operands, shape = tuple(map(self.tile, operands)), self.shape
        if guarded:
            operands, layout = self.guarded(n, operands, mask)
        results = tuple(Value(TileType(v.type.dtype, shape), v.name) if isinstance(v.type, TileType) else Value(v.type)
                        for v in n.results)
        self.values.update(zip(n.results, results, strict=True))
        if self.masks is not None and mask is not None:
            self.masks.live.update(dict.fromkeys(results, mask))
        attrs = n.attrs
        if guarded and n.op.effect == ATOMIC and "check_bounds" in attrs:
            attrs = {**attrs, "check_bounds": True}
        self.b.append(replace(n, operands=operands, results=results, layout=layout, attrs=attrs))

    def may_trap(self, n: Op) -> bool:
        """Whether an op might trap for elements that do not run it. By a positive constant, elements are divided and
        shifted without harm, in far fewer instructions than by what a mask chooses.
        """
        if _harmless(n) is None:
            return False
        number = self.numbers.get(n.operands[1])
        return number is None or not (number > 0 if n.op.divides else 0 <= number < n.result.type.dtype.bitwidth)

    def guarded(self, n: Op, operands: tuple[Value, ...], mask: Value) -> tuple[tuple[Value, ...], Any]:
        """The operands of an op, and their layout, such that it has no effect for elements outside the mask."""
        named = n.op.named(operands, n.layout)
        if n.op.effect == ATOMIC and "indices" in named:  # without a mask; nothing happens where it is out of range
            first, *others = named["indices"]
            outside = -1 if int_range(first.type.dtype)[0] < 0 else int_range(first.type.dtype)[1]
            named["indices"] = (self.select(mask, first, self.constant(first.type.dtype, outside)), *others)
            return n.op.flatten(list(named.values()))
        if n.op.effect not in (READ, ATOMIC):
            x, y = operands
            return (x, self.select(mask, y, self.constant(y.type.dtype, _harmless(n)))), n.layout
        named["mask"] = self.both(mask, named["mask"])
        return n.op.flatten(list(named.values()))

    def branch(self, n: If, mask: Mask) -> tuple[bool, Mask]:
        """Lift an If. Returns whether elements go on after it, and which."""
        cond = self.get(n.cond)
        if not self.varies(cond) and _falls_through(n.then) and _falls_through(n.orelse):
            self.uniform_branch(n, cond, mask)
            return True, mask
        cond = self.tile(cond)
        opposite = self.b.op1(compare.logical_not, cond, result=cond.type)
        masks = self.both(mask, cond), self.both(mask, opposite)
        ends = [self.region(side, m) for side, m in zip((n.then, n.orelse), masks, strict=True)]
        self.b.span = n.span
        falling = [(last, m) for last, m in ends if last is not None]
        if len(falling) < 2:
            for last, _ in falling:
                self.values.update(zip(n.results, map(self.get, last.operands), strict=True))
            return bool(falling), falling[0][1] if falling else mask
        (then, left), (orelse, right) = falling
        for v, x, y in zip(n.results, then.operands, orelse.operands, strict=True):
            self.values[v] = self.select(cond, self.get(x), self.get(y))
        if (left, right) != masks:  # some elements have left the loop around
            mask = self.b.op1(bits.bitwise_or, left, right, result=left.type)
        return True, mask

    def uniform_branch(self, n: If, cond: Value, mask: Mask) -> None:
        """Lift an If whose condition is the same for all elements, as an If."""
        sides, yielded = [], []
        for side in (n.then, n.orelse):
            with self.b.into(Region()) as made:
                last, _ = self.region(side, mask)
            sides.append((made, last.span))
            yielded.append([self.get(v) for v in last.operands])
        varying = [self.varies(x) or self.varies(y) for x, y in zip(*yielded, strict=True)]
        for (made, span), values in zip(sides, yielded, strict=True):
            with self.b.into(made):
                operands = (self.tile(v) if differs else v for v, differs in zip(values, varying, strict=True))
                self.b.append(Yield(tuple(operands), span))
        results = tuple(self.like(v) if differs else Value(v.type) for v, differs in zip(n.results, varying,
                                                                                       strict=True))
        self.values.update(zip(n.results, results, strict=True))
        self.b.append(If(cond, sides[0][0], sides[1][0], results, n.span))

    def like(self, v: Value) -> Value:
        """A new value for the elements of a scalar."""
        return Value(TileType(v.type.dtype, self.shape), v.name)

    # -------------------------------------------------------------- loops

    def loop(self, n: For | While, mask: Mask) -> bool:
        """Lift a loop. Returns whether it ends."""
        if isinstance(n, While) and n.cond is None and not _edges(n.body, Continue):
            return self.once(n, mask)
        bounds = (n.start, n.stop, n.step) if isinstance(n, For) else ()
        if bounds and not has_break(n.body) and not any(self.varies(self.get(v)) for v in bounds):
            self.counted(n, mask)
        else:
            self.masked(n, mask)
        return True

    def body(self, region: Region, mask: Mask) -> _Loop:
        """Lift the body of a loop; where elements go from there."""
        self.loops.append(_Loop())
        self.region(region, mask)
        return self.loops.pop()

    def once(self, n: While, mask: Mask) -> bool:
        """Lift a loop that runs once: each element leaves it by a Break."""
        self.values.update(zip(n.params, map(self.get, n.inits), strict=True))
        edges = self.body(n.body, mask).breaks
        self.b.span = n.span
        for i, v in enumerate(n.results):
            self.values[v] = self.last_of(edges, i)
        return bool(edges)

    def last_of(self, edges: Sequence[tuple[Mask, tuple[Value, ...]]], i: int) -> Value:
        """Operand i of the edge that an element takes, which is one of these."""
        *others, (_, last) = edges
        value = last[i]
        for mask, operands in others:
            value = self.select(mask, operands[i], value)
        return value

    def counted(self, n: For, mask: Mask) -> None:
        """Lift a For that all elements run equally often."""
        params, results = tuple(map(self.like, n.params)), tuple(map(self.like, n.results))
        inits = tuple(self.tile(self.get(v)) for v in n.inits)
        bounds = [self.get(v) for v in (n.start, n.stop, n.step)]
        iv = Value(n.iv.type, n.iv.name)
        self.values.update(zip((n.iv, *n.params), (iv, *params), strict=True))
        with self.b.into(Region()) as made:
            edges = self.body(n.body, mask).continues
            self.b.span = n.span
            going_on = tuple(self.tile(self.last_of(edges, i)) for i in range(len(params)))
            self.b.append(Continue(going_on, n.span))
        self.b.append(For(iv, *bounds, inits, params, made, results, n.span))
        self.values.update(zip(n.results, results, strict=True))

    def masked(self, n: For | While, mask: Mask) -> None:
        """Lift a loop as one that runs until no element is live. It carries which elements are live, the counter of a
        For, the carried values, and for `while True`, whose results are what its Breaks pass on, these results.
        """
        endless = isinstance(n, While) and n.cond is None
        inits = [self.constant(bool_, True) if mask is None else mask]
        if isinstance(n, For):
            start, stop, step = (self.get(v) for v in (n.start, n.stop, n.step))
            inits.append(self.tile(start) if self.varies(start) or self.varies(step) else start)
        before = len(inits)
        inits += [self.tile(self.get(v)) for v in n.inits]
        after = len(inits) if endless else before
        inits += [self.constant(v.type.dtype, 0) for v in n.results] if endless else []
        params, results = (tuple(Value(v.type) for v in inits) for _ in range(2))
        self.values.update(zip(n.params, params[before:], strict=False))
        live = params[0]
        with self.b.into(Region()) as made:
            if isinstance(n, For):
                self.values[n.iv] = params[1]
                more = self.compared(compare.less, params[1], stop)
                live = self.both(live, self.tile(more))
            elif n.cond is not None:
                last, _ = self.region(n.cond, live)
                cond, = last.operands
                live = self.both(live, self.tile(self.get(cond)))
            self.b.span = n.span
            leave = Region([Break(params, n.span)])
            self.b.append(If(self.any(live), Region([Yield((), n.span)]), leave, (), n.span))
            edges = self.body(n.body, live)
            self.b.span = n.span
            going_on = [self.constant(bool_, False)] if not edges.continues else [self.either(edges.continues)]
            if isinstance(n, For):
                going_on.append(self.compared(arithmetic.add, params[1], step))
                if self.numbers.get(n.step) != 1:  # a sum that wraps around is beyond the range
                    no_wrap = self.compared(compare.less, params[1], going_on[1])
                    going_on[0] = self.both(going_on[0], self.tile(no_wrap))
            left = [] if endless else edges.breaks
            going_on += self.updated(params[before:before + len(n.params)], (*edges.continues, *left))
            going_on += self.updated(params[after:], edges.breaks) if endless else []
            self.b.append(Continue(tuple(going_on), n.span))
        self.b.append(While(None, tuple(inits), params, made, results, n.span))
        self.values.update(zip(n.results, results[after:], strict=True))

    def updated(self, values: Sequence[Value], edges: Sequence[tuple[Mask, tuple[Value, ...]]]) -> list[Value]:
        """The values after an iteration: an element that takes one of these edges gets the operands of the edge."""
        found = []
        for i, value in enumerate(values):
            for mask, operands in edges:
                value = self.select(mask, operands[i], value)
            found.append(self.tile(value))
        return found

    def compared(self, op: OpDef, x: Value, y: Value) -> Value:
        """`op` on two values, on tiles if one of them varies."""
        if self.varies(x) or self.varies(y):
            x, y = self.tile(x), self.tile(y)
        attrs = {} if op is compare.less else {"rounding_mode": None, "flush_to_zero": False}
        return self.b.op1(op, x, y, result=TileType(bool_, x.type.shape) if op is compare.less else x.type, **attrs)

    def either(self, edges: Sequence[tuple[Mask, Any]]) -> Value:
        (first, _), *others = edges
        for mask, _ in others:
            first = self.b.op1(bits.bitwise_or, first, mask, result=first.type)
        return first


def _harmless(n: Op) -> int | None:
    """What takes the place of the second operand for elements that do not run an op, where another one would trap."""
    if n.op in (bits.bitwise_lshift, bits.bitwise_rshift):
        return 0
    return 1 if n.op.divides and info(n.operands[1].type.dtype).integral else None


def _edges(body: Region, kind: type) -> bool:
    """Whether this loop body has a Continue, or Break, of its loop."""
    return any(isinstance(n, kind) for n in walk(body, lambda n: isinstance(n, If)))


def _falls_through(side: Region) -> bool:
    """Whether each element that enters a branch reaches its end."""
    return isinstance(side.nodes[-1], Yield) and not _edges(side, Break) and not _edges(side, Continue)


def without_unused(region: Region, kept: Iterable[Value] = ()) -> Region:
    """The region without pure ops whose results nobody reads, except those with a result that is to be kept."""
    used = Counter(v for n in walk(region) for v in uses_of(n))
    used.update(kept)
    gone: set[Node] = set()
    for n in reversed(list(walk(region))):
        if isinstance(n, Op) and n.op.effect == PURE and n.region is None and not any(used[v] for v in n.results):
            gone.add(n)
            used.subtract(n.operands)
    if not gone:
        return region
    whole = Kernel("", (), (), region, region.nodes[-1].span)
    return rewrite(whole, lambda old, n: [] if old in gone else None).body
