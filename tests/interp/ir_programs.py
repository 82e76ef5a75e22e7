"""Programs of IR for tests, by hand and at random: integers, every kind of control flow, and a trace of what ran."""

from __future__ import annotations

from contextlib import contextmanager
from random import Random

from cutile.dtypes import bool_, int32
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
)
from cutile.ops import arithmetic, compare, create, debug, grid, reduce, shape
from cutile.spans import Span
from cutile.types import TileType

I32, B1, PAIR = TileType(int32), TileType(bool_), TileType(int32, (2,))


class Code:
    """A block under construction; every node gets a line of its own."""

    def __init__(self, function: str = "kernel", lines: list[int] | None = None):
        self.function, self.lines, self.nodes = function, lines or [1], []

    def span(self) -> Span:
        self.lines[0] += 1
        return Span("<program>", self.lines[0], 0, self.lines[0], 4, self.function)

    def add(self, n: Node) -> Node:
        self.nodes.append(n)
        return n

    def op(self, op, *operands: Value, result: TileType | None = None, layout=None, **attrs) -> Value | None:
        results = () if result is None else (Value(result),)
        self.add(Op(op, operands, attrs, results, self.span(), layout))
        return results[0] if results else None

    def const(self, x: int) -> Value:
        return self.op(create.constant, result=I32, value=x)

    def add_(self, a: Value, b: Value) -> Value:
        return self.op(arithmetic.add, a, b, result=a.type, rounding_mode=None, flush_to_zero=False)

    def mod(self, a: Value, n: int) -> Value:
        return self.op(arithmetic.mod, a, self.const(n), result=I32)

    def less(self, a: Value, b: Value) -> Value:
        return self.op(compare.less, a, b, result=B1)

    def equal(self, a: Value, b: Value) -> Value:
        return self.op(compare.equal, a, b, result=B1)

    def bid(self, axis: int) -> Value:
        return self.op(grid.bid, result=I32, axis=axis)

    def pair(self, a: Value) -> Value:
        return self.op(shape.broadcast_to, a, result=PAIR, shape=(2,))

    def total(self, p: Value) -> Value:
        return self.op(reduce.sum, p, result=I32, axis=-1, rounding_mode=None, flush_to_zero=False)

    def show(self, text: str, *values: Value) -> None:
        parts = [text]
        for k in range(len(values)):
            parts += [" ", (k, "%d")]
        self.op(debug.emit_text, *values, layout=(len(values),), parts=(*parts, "\n"))

    def bind(self, name: str, v: Value) -> None:
        self.add(Bind(name, v, self.span()))

    @contextmanager
    def block(self, *params: Value, function: str | None = None):
        """Build a nested block: yields (code, block)."""
        code, block = Code(function or self.function, self.lines), Region(params=params)
        yield code, block
        block.nodes = code.nodes

    def kernel(self, *params: tuple[str, Value]) -> Kernel:
        return Kernel(self.function, tuple(v for _, v in params), tuple(n for n, _ in params), Region(self.nodes),
                      Span("<program>", 1, 0, 1, 4, self.function))


class RandomKernel:
    """A random structured program over the block coordinates. Every loop ends, and every path leaves a trace."""

    def __init__(self, rng: Random, size: int = 24):
        self.rng, self.left, self.labels = rng, size, 0

    def make(self) -> Kernel:
        c = Code()
        n = Value(I32)
        seen = [c.bid(0), c.bid(1), c.bid(2), n, c.const(3)]
        self.statements(c, seen, None, (), 10)
        c.show("end", *seen[-3:])
        c.add(Return((), c.span()))
        return c.kernel(("n", n))

    def pick(self, seen: list[Value]) -> Value:
        return self.rng.choice(seen[-6:] if self.rng.random() < 0.7 else seen)

    def small(self, c: Code, seen: list[Value]) -> Value:
        """A number from 0 to 3, from something that varies or does not."""
        return c.mod(self.pick(seen), 4)

    def truth(self, c: Code, seen: list[Value]) -> Value:
        a = c.mod(self.pick(seen), self.rng.choice((2, 3)))
        return c.less(a, c.const(1)) if self.rng.random() < 0.5 else c.equal(a, c.const(1))

    def label(self) -> str:
        self.labels += 1
        return f"p{self.labels}"

    def statements(self, c: Code, seen: list[Value], loop: tuple | None, returned: tuple, count: int = 3) -> None:
        c.show(self.label(), self.pick(seen))
        for _ in range(self.rng.randint(1, count)):
            if self.left <= 0:
                return
            self.left -= 1
            kind = self.rng.choice((self.arithmetic, self.arithmetic, self.bind, self.trace, self.tile, self.if_,
                                    self.if_, self.for_, self.while_, self.forever, self.frame))
            kind(c, seen, loop, returned)

    def arithmetic(self, c, seen, loop, returned):
        seen.append(c.mod(c.add_(self.pick(seen), self.pick(seen)), self.rng.choice((5, 7, 11))))

    def tile(self, c, seen, loop, returned):
        seen.append(c.total(c.add_(c.pair(self.pick(seen)), c.pair(self.pick(seen)))))

    def bind(self, c, seen, loop, returned):
        c.bind(self.rng.choice("abc"), self.pick(seen))

    def trace(self, c, seen, loop, returned):
        c.show(self.label(), self.pick(seen), self.pick(seen))

    def several(self, n: int, seen: list[Value]) -> tuple[Value, ...]:
        return tuple(self.pick(seen) for _ in range(n))

    def leave(self, c: Code, seen: list[Value], loop: tuple | None, returned: tuple) -> bool:
        """End the block by leaving it sideways, now and then."""
        if self.rng.random() < 0.6:
            return False
        kind = self.rng.choice((Break, Continue, Return) if loop else (Return,))
        count = {Break: len(loop[1]) if loop else 0, Continue: len(loop[0]) if loop else 0, Return: len(returned)}[kind]
        values = self.several(count, seen)
        if kind is Continue and loop[2] is not None:  # the loop's own counter goes on
            values = (c.add_(loop[2], c.const(1)), *values[1:])
        c.add(kind(values, c.span()))
        return True

    def if_(self, c, seen, loop, returned):
        cond = self.truth(c, seen)
        results = tuple(Value(I32) for _ in range(self.rng.randrange(3)))
        span, sides = c.span(), []
        for _ in range(2):
            with c.block() as (inner, block):
                here = list(seen)
                self.statements(inner, here, loop, returned)
                if not self.leave(inner, here, loop, returned):
                    inner.add(Yield(self.several(len(results), here), inner.span()))
            sides.append(block)
        c.add(If(cond, *sides, results, span))
        seen += results

    def for_(self, c, seen, loop, returned):
        some = self.rng.random
        start = c.const(self.rng.randrange(3)) if some() < 0.7 else self.small(c, seen)
        stop = self.small(c, seen)
        step = c.const(self.rng.choice((1, 2))) if some() < 0.8 else c.add_(c.mod(self.pick(seen), 2), c.const(1))
        params = tuple(Value(I32) for _ in range(self.rng.randrange(3)))
        results = tuple(Value(I32) for _ in params)
        iv, inits, span = Value(I32), self.several(len(params), seen), c.span()
        with c.block() as (inner, block):
            here = [*seen, *params, iv]
            self.statements(inner, here, (params, results, None), returned)
            if not self.leave(inner, here, (params, results, None), returned):
                inner.add(Continue(self.several(len(params), here), span))
        c.add(For(iv, start, stop, step, inits, params, block, results, span))
        seen += results

    def while_(self, c, seen, loop, returned):
        limit = self.small(c, seen)
        params = tuple(Value(I32) for _ in range(1 + self.rng.randrange(2)))
        results = tuple(Value(I32) for _ in params)
        inits, span = (c.const(0), *self.several(len(params) - 1, seen)), c.span()
        with c.block() as (inner, cond):
            inner.add(Yield((inner.less(params[0], limit),), span))
        with c.block() as (inner, block):
            here = [*seen, *params]
            mine = (params, results, params[0])
            self.statements(inner, here, mine, returned)
            if not self.leave(inner, here, mine, returned):
                inner.add(Continue((inner.add_(params[0], inner.const(1)), *self.several(len(params) - 1, here)), span))
        c.add(While(cond, inits, params, block, results, span))
        seen += results

    def forever(self, c, seen, loop, returned):
        """while True: the break carries more than the carried values."""
        limit = self.small(c, seen)
        params = tuple(Value(I32) for _ in range(1 + self.rng.randrange(2)))
        results = tuple(Value(I32) for _ in range(len(params) + self.rng.randrange(2)))
        inits, span = (c.const(0), *self.several(len(params) - 1, seen)), c.span()
        mine = (params, results, params[0])
        with c.block() as (inner, block):
            here = [*seen, *params]
            stop = inner.less(limit, params[0])
            at = inner.span()
            with inner.block() as (last, then):
                last.add(Break(self.several(len(results), here), last.span()))
            with inner.block() as (_, orelse):
                orelse_end = Yield((), at)
            orelse.nodes.append(orelse_end)
            inner.add(If(stop, then, orelse, (), at))
            self.statements(inner, here, mine, returned)
            if not self.leave(inner, here, mine, returned):
                inner.add(Continue((inner.add_(params[0], inner.const(1)), *self.several(len(params) - 1, here)), span))
        c.add(While(None, inits, params, block, results, span))
        seen += results

    def frame(self, c, seen, loop, returned):
        results = tuple(Value(I32) for _ in range(self.rng.randrange(3)))
        name, span = self.rng.choice(("helper", "<lambda>")), c.span()
        with c.block(function=name) as (inner, block):
            here = list(seen)
            inner.bind(self.rng.choice("abc"), self.pick(here))
            self.statements(inner, here, None, results)
            inner.add(Return(self.several(len(results), here), inner.span()))
        c.add(Frame(name, span, block, results, span))
        seen += results
