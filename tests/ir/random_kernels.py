"""Random valid kernels with every kind of node, nested."""

from __future__ import annotations

from random import Random

from cutile.dtypes import bool_, float32, int32
from cutile.ir.nodes import (
    Bind,
    Break,
    Continue,
    For,
    Frame,
    Group,
    If,
    Kernel,
    Known,
    Op,
    Region,
    Return,
    Shown,
    Value,
    While,
    Yield,
)
from cutile.ops import arithmetic, compare, create, reduce, shape
from cutile.spans import Span
from cutile.types import ArrayType, ListType, RoundingMode, TileType

I32, B1, F32 = TileType(int32), TileType(bool_), TileType(float32, (4,))
LEAVES = (I32, B1, F32)
NAMES = (None, "x", "y", "acc", "p.x", "inf", "1", "größe", "quo'te")


class RandomKernels:
    def __init__(self, rng: Random):
        self.rng = rng
        self.budget = 25
        self.line = 1

    def kernel(self) -> Kernel:
        types = (ArrayType(float32, 2, static_strides=(None, 1)), ListType(ArrayType(int32, 1)), *LEAVES)
        params = tuple(self.value(t) for t in types)
        names = tuple(v.name or "anon" for v in params)
        body = self.region([v for v in params if v.type in LEAVES], None, (), lambda seen: Return((), self.span(None)))
        return Kernel(self.rng.choice(("k", "<lambda>", "spans")), params, names, body, self.span(None))

    def span(self, site: Span | None) -> Span:
        self.line += self.rng.randrange(2)
        return Span(self.rng.choice(("a.py", "C:\\b b'.py")), self.line, 4, self.line, 9, "f.<locals>.g", site)

    def value(self, t) -> Value:
        return Value(t, self.rng.choice(NAMES))

    def pick(self, seen: list[Value], t, nodes: list | None = None) -> Value:
        found = [v for v in seen if v.type == t]
        if found and (nodes is None or self.rng.random() < 0.8):
            return self.rng.choice(found)
        return self.constant(seen, t, nodes)

    def constant(self, seen, t, nodes) -> Value:
        scalar = Value(TileType(t.dtype))
        value = {int32: self.rng.randrange(-9, 9), bool_: True, float32: self.rng.choice((0.1, -0.0, 1e300))}[t.dtype]
        nodes.append(Op(create.constant, (), {"value": value}, (scalar,), self.span(None)))
        if t.shape == ():
            return scalar
        v = self.value(t)
        nodes.append(Op(shape.broadcast_to, (scalar,), {"shape": t.shape}, (v,), self.span(None)))
        return v

    def region(self, seen, loop, leaves, end, params=()) -> Region:
        """A region after the values `seen`.

        loop     (params, results) of the loop around it, or None
        leaves   the values that Return carries
        end      makes the last node
        """
        nodes: list = []
        seen = [*seen, *params]
        for _ in range(self.rng.randrange(1, 5)):
            if self.budget > 0:
                self.budget -= 1
                make = self.rng.choice((self.op, self.op, self.op, self.bind, self.if_, self.for_, self.while_,
                                        self.frame, self.reduce))
                make(nodes, seen, loop, leaves)
        early = self.early(nodes, seen, loop, leaves) if loop is not None else None
        nodes.append(early or end(lambda t: self.pick(seen, t, nodes)))
        return Region(nodes)

    def early(self, nodes, seen, loop, leaves):
        """Sometimes a Break, Continue or Return, else None."""
        kind = self.rng.choice((Break, Continue, Return, None, None, None))
        if kind is None:
            return None
        values = {Break: loop[1], Continue: loop[0], Return: leaves}[kind]
        return kind(tuple(self.pick(seen, v.type, nodes) for v in values), self.span(None))

    def op(self, nodes, seen, loop, leaves) -> None:
        t = self.rng.choice((I32, F32))
        o = self.rng.choice((arithmetic.add, arithmetic.sub, arithmetic.mul, compare.less))
        x, y = self.pick(seen, t, nodes), self.pick(seen, t, nodes)
        attrs = {"rounding_mode": self.rng.choice((None, RoundingMode.RZ)), "flush_to_zero": self.rng.random() < 0.3}
        if o is compare.less:
            t, x, y, attrs = B1, self.pick(seen, I32, nodes), self.pick(seen, I32, nodes), {}
        v = self.value(t)
        nodes.append(Op(o, (x, y), attrs, (v,), self.span(None)))
        seen.append(v)

    def bind(self, nodes, seen, loop, leaves) -> None:
        known = tuple(map(Known, (1, -2.5, float("inf"), True, None, "te'xt", "shown")))
        leaf = self.pick(seen, I32, nodes)
        template = self.rng.choice((
            leaf, self.rng.choice(known), Shown("<module np>"), Group("tuple", (), (leaf,)), Group("tuple", (), ()),
            Group("Point", ("x", "y"), (leaf, Group("tuple", (), known))), Group("a.B", (), (leaf, Shown("f")))))
        nodes.append(Bind(self.rng.choice(("x", "nan", "été")), template, self.span(None), self.rng.random() < 0.2))

    def results(self) -> tuple[Value, ...]:
        return tuple(self.value(self.rng.choice(LEAVES)) for _ in range(self.rng.randrange(3)))

    def if_(self, nodes, seen, loop, leaves) -> None:
        cond, results = self.pick(seen, B1, nodes), self.results()

        def end(pick):
            return Yield(tuple(pick(v.type) for v in results), self.span(None))

        then, orelse = (self.region(seen, loop, leaves, end) for _ in range(2))
        nodes.append(If(cond, then, orelse, results, self.span(None)))
        seen += results

    def for_(self, nodes, seen, loop, leaves) -> None:
        iv, bounds = self.value(I32), [self.pick(seen, I32, nodes) for _ in range(3)]
        results = self.results()
        params = tuple(self.value(v.type) for v in results)
        inits = tuple(self.pick(seen, v.type, nodes) for v in results)
        body = self.region([*seen, iv], (params, results), leaves, self.next(params), params)
        nodes.append(For(iv, *bounds, inits, params, body, results, self.span(None)))
        seen += results

    def next(self, params):
        return lambda pick: Continue(tuple(pick(v.type) for v in params), self.span(None))

    def while_(self, nodes, seen, loop, leaves) -> None:
        results = self.results()
        params = tuple(self.value(v.type) for v in results)
        inits = tuple(self.pick(seen, v.type, nodes) for v in results)
        cond = None
        if self.rng.random() < 0.6:
            self.budget, kept = 0, self.budget
            cond = self.region(seen, None, (), lambda pick: Yield((pick(B1),), self.span(None)), params)
            self.budget = kept
        else:
            results += self.results()
        body = self.region(seen, (params, results), leaves, self.next(params), params)
        nodes.append(While(cond, inits, params, body, results, self.span(None)))
        seen += results

    def frame(self, nodes, seen, loop, leaves) -> None:
        results = self.results()
        body = self.region(seen, None, results,
                          lambda pick: Return(tuple(pick(v.type) for v in results), self.span(self.span(None))))
        nodes.append(Frame("helper", self.span(None), body, results, self.span(None)))
        seen += results

    def reduce(self, nodes, seen, loop, leaves) -> None:
        x, t = self.pick(seen, F32, nodes), TileType(float32)
        a, b, s, r = self.value(t), self.value(t), self.value(t), self.value(t)
        options = {"rounding_mode": None, "flush_to_zero": False}
        add = Op(arithmetic.add, (a, b), options, (s,), self.span(None))
        body = Region([add, Yield((s,), self.span(None))], (a, b))
        nodes.append(Op(reduce.reduce, (x,), {"axis": -1, "identity": (0.0,)}, (r,), self.span(None), (1,), body))
        seen.append(r)


def random_kernel(rng: Random) -> Kernel:
    return RandomKernels(rng).kernel()
