"""A program under construction: what is in scope, the arrays, and ways to get a tile of a wanted type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import log2, prod
from random import Random
from typing import Any

import numpy as np

from conformance.generate import meaning
from conformance.generate.dtypes import ARITHMETIC, DTYPES, FLOATS, INTS, SM100, T, span
from conformance.generate.tree import Def, Expr, Let, Param, Var, variable

SHAPES = ((), (1,), (2,), (4,), (8,), (16,), (32,), (1, 4), (2, 2), (2, 8), (4, 4), (8, 2), (4, 16), (2, 2, 2),
          (1, 2, 4),
          (4, 1, 2), (2, 4, 4))
CAP = {"f16": 12, "e4m3": 8, "e5m2": 12, "e2m1": 2, "e5m3": 12}  # log2 of what a value should not exceed; else 40
NP = {"b1": "bool", "bf16": "ml_dtypes.bfloat16", "e4m3": "ml_dtypes.float8_e4m3fn", "e5m2": "ml_dtypes.float8_e5m2",
      "e8m0": "ml_dtypes.float8_e8m0fnu", "e2m1": "ml_dtypes.float4_e2m1fn"}
MEMORY, PURE = "memory", "pure"


@dataclass
class Options:
    """What programs may contain.

    official   leave out what is known to fail in the official implementation, and what the GPU at hand lacks
    statements about how many statements the kernel has at its top level
    """

    official: bool = False
    sm_100: bool = True
    statements: int = 4


@dataclass(eq=False)
class Arr:
    """An array parameter. `special`: its data hold infinities, NaN and the like."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    special: bool = False


class Gen:
    """A program under construction. `out`: the statements being written; `scope`: the variables that they can read."""

    def __init__(self, rng: Random, options: Options):
        self.rng, self.options = rng, options
        self.params: list[Param] = []
        self.arrays: list[Arr] = []
        self.helpers: list[Def] = []
        self.scope: list[Var] = []
        self.out: list = []
        self.unused: set[str] = set()
        self.last = ""  # the variable that was read last
        self.features: set[str] = set()
        self.counters: list[Var] = []  # of the loops around
        self.joined: list[Var] = []  # variables that branches and loops assign
        self.memory = True  # arrays can be reached
        self.trips = 1  # how often the code being written runs, at most
        self.depth = 0
        self.names = 0
        self.only = ""  # the dtype that was asked for, if one was
        self.grid = self.pick(((1,), (2,), (3,), (4,), (5,), (2, 2), (3, 2), (1, 3), (2, 1, 2)))
        self.blocks = prod(self.grid)
        self.block = Var("b", (), T("i32"), None)  # the number of the block

    # -------------------------------------------------------------- choices

    def pick(self, xs: Sequence) -> Any:
        return xs[self.rng.randrange(len(xs))]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def fresh(self, stem: str = "v") -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def shape(self, least: int = 0, most: int = 3) -> tuple[int, ...]:
        """Often that of a tile in scope, so that values meet."""
        least = max(least, int(self.chance(0.85)))
        seen = [v.t.shape for v in self.scope if isinstance(v.t, T) and least <= len(v.t.shape) <= most]
        if seen and self.chance(0.7):
            return self.pick(seen)
        return self.pick([s for s in SHAPES if least <= len(s) <= most])

    def dtype(self, among: Sequence[str]) -> str:
        """Often that of a tile in scope; never one that few GPUs have, unless `only` asks for it."""
        if self.only in among:
            return self.only
        among = [d for d in among if d not in SM100]
        seen = [v.t.dtype for v in self.scope[-12:] if isinstance(v.t, T) and v.t.dtype in among]
        return self.pick(seen) if seen and self.chance(0.5) else self.pick(among)

    # -------------------------------------------------------------- building

    def let(self, e: Expr, kind: str = "assign") -> Var:
        """Name a value; a tuple gets several names, the first of which is given back."""
        ts = e.t if isinstance(e.t, tuple) else (e.t,)
        made = [variable(self.fresh(), e, t) for t in ts]
        self.out.append(Let(tuple(v.text for v in made), e, None, kind if len(ts) == 1 else "unpack"))
        self.scope += made
        self.unused.update(v.text for v in made)
        return made[0]

    def use(self, v: Var) -> Var:
        self.unused.discard(v.text)
        self.last = v.text
        return v

    @contextmanager
    def inside(self, trips: int = 1):
        """A nested list of statements: its variables end with it."""
        n, out, unused = len(self.scope), self.out, self.unused
        self.out, self.trips, self.depth = [], self.trips * trips, self.depth + 1
        try:
            yield self.out
        finally:
            gone = {v.text for v in self.scope[n:]}
            del self.scope[n:]
            self.out, self.trips, self.depth = out, self.trips // trips, self.depth - 1
            self.unused = unused - gone

    # -------------------------------------------------------------- tiles of a wanted type

    def want(self, dtype: str, shape: tuple[int, ...], clean: bool = False, mag: float | None = None,
             tile: bool = False) -> Expr:
        """A tile of that type. `clean`: the language fixes its value; `mag`: log2 of the largest magnitude;
        `tile`: not a constant, even if it is a scalar.
        """
        clean = clean and not self.chance(0.02)
        e = self.find(dtype, shape, clean, tile) or self.convert(dtype, shape, clean, tile) or self.make(dtype, shape)
        if tile and e.constant:
            e = item(self.constant(dtype, (1,)))
        return self.tame(e, mag) if mag is not None else e

    def find(self, dtype: str, shape: tuple[int, ...], clean: bool, tile: bool) -> Expr | None:
        t = T(dtype, shape)
        found = [v for v in self.scope if v.t == t and not (clean and v.soft or tile and v.constant)]
        if not found or self.chance(0.1):
            return None
        found = [v for v in found if v.text != self.last] or found  # another one than a moment ago
        fresh = [v for v in found if v.text in self.unused]
        return self.use(self.pick(fresh if fresh and self.chance(0.75) else found[-6:]))

    def convert(self, dtype: str, shape: tuple[int, ...], clean: bool, tile: bool) -> Expr | None:
        """A tile in scope, cast, reshaped or broadcast."""
        ways = []
        for v in self.scope[-24:]:
            t = v.t
            if clean and v.soft or tile and v.constant or not isinstance(t, T):
                continue
            if t.shape == shape and castable(t.dtype, dtype) and not (DTYPES[dtype].kind in "iu" and v.soft):
                ways.append((v, self.cast))
            if t.dtype == dtype and t.size == prod(shape):
                ways.append((v, lambda e, _: reshape(e, shape)))
            elif t.dtype == dtype and broadcasts(t.shape, shape):
                ways.append((v, lambda e, _: broadcast(e, shape)))
        if not ways or self.chance(0.15):
            return None
        v, how = self.pick(ways)
        return how(self.use(v), dtype)

    def make(self, dtype: str, shape: tuple[int, ...]) -> Expr:
        if dtype in SM100:
            from conformance.generate import narrow

            return narrow.made(self, dtype, shape)
        if self.memory and DTYPES[dtype].arrays and not self.chance(0.1):
            from conformance.generate import loads

            return loads.any_load(self, dtype, shape)
        return self.filled(dtype, shape)

    def filled(self, dtype: str, shape: tuple[int, ...]) -> Expr:
        """A tile that is not loaded: full, zeros, ones, an arange or the block's number, cast."""
        d, ct = DTYPES[dtype], f"ct.{DTYPES[dtype].name}"
        text = shape_text(shape)
        if dtype in INTS and len(shape) == 1 and self.chance(0.6):
            return Expr(f"ct.arange({shape[0]}, dtype={ct})", (), T(dtype, shape),
                        lambda _: np.arange(shape[0]).astype(d.host), (("arange", dtype),), 5)
        if self.memory and d.kind != "b" and dtype != "e8m0" and self.chance(0.4):  # not a constant
            return Expr(f"ct.full({text}, {{0}}, {ct})", (self.block,), T(dtype, shape),
                        lambda _, n: np.full(shape, meaning.convert(n, DTYPES["i32"], d)), (("full", dtype),), 3)
        if self.chance(0.3):
            name = self.pick(("zeros", "ones") if dtype != "e8m0" else ("ones",))
            return Expr(f"ct.{name}({text}, {ct})", (), T(dtype, shape),
                        lambda _: np.full(shape, d.host.type(name == "ones"), d.host), ((name, dtype),), 0,
                        constant=shape == ())
        return self.constant(dtype, shape)

    def constant(self, dtype: str, shape: tuple[int, ...]) -> Expr:
        d, value = DTYPES[dtype], self.literal(dtype)
        return Expr(f"ct.full({shape_text(shape)}, {value!r}, ct.{d.name})", (), T(dtype, shape),
                    lambda _: np.full(shape, np.asarray(value).astype(d.host), d.host), (("full", dtype),), 3,
                    constant=shape == ())

    def literal(self, dtype: str) -> Any:
        """A number that the dtype represents."""
        d = DTYPES[dtype]
        if d.kind == "b":
            return self.chance(0.5)
        if d.kind == "f":
            powers = (0.5, 1.0, 2.0, 4.0)
            return self.pick(powers if dtype in ("e8m0", "e5m3") else (0.5, 1.0, 1.5, 2.0, 3.0, -0.5, -2.0, 0.0))
        return self.pick([n for n in (0, 1, 2, 3, 5, 7, 100, -1, -3, -100) if n >= span(dtype)[0]])

    # -------------------------------------------------------------- casts and taming

    def cast(self, e: Expr, dtype: str, mode: str | None = None) -> Expr:
        a, b = e.t.d, DTYPES[dtype]
        if a is b:
            return e
        if a.kind == "f" and b.kind in "iu":
            e = self.bounded(e, dtype)
        arg = "" if mode is None else f", rounding_mode=ct.RoundingMode.{mode}"
        text = self.pick((f"{{0}}.astype(ct.{b.name}{arg})", f"ct.astype({{0}}, ct.{b.name}{arg})"))
        if mode is None and e.t.shape == () and not b.bits == 4 and self.chance(0.5):
            text = f"ct.{b.name}({{0}})"
        if mode is None and e.t.shape == () and dtype == "b1" and self.chance(0.5):
            text = "bool({0})"
        return Expr(text, (e,), T(dtype, e.t.shape), lambda _, x: meaning.convert(x, a, b, mode or "RN"),
                    (("astype", dtype), ("astype from", a.short)), min(e.mag, CAP.get(dtype, 40)), e.soft)

    def bounded(self, e: Expr, dtype: str) -> Expr:
        """A float tile whose elements fit an integer dtype."""
        if e.t.d.restricted:
            e = self.cast(e, "f32")
        low, high = (0.0, 100.0) if dtype[0] == "u" else (-100.0, 100.0)
        d, fill = e.t.d, self.pick((1.0, 2.0, 7.0))
        x = e if isinstance(e, Var) else self.let(e)

        def fn(_, x, y, z):
            x = x.astype(np.float64)
            return np.where((x >= low) & (x <= high), x, fill).astype(d.host)

        return Expr(f"ct.where(({{0}} >= {low}) & ({{1}} <= {high}), {{2}}, {fill})", (self.use(x),) * 3, e.t, fn,
                    tuple((o, d.short) for o in ("greater_equal", "less_equal", "where")) + (("bitwise_and", "b1"),),
                    7, e.soft)

    def tame(self, e: Expr, mag: float) -> Expr:
        """Clamped, if it may be larger than 2**mag."""
        mag = min(mag, CAP.get(e.t.dtype, 40))
        if e.t.d.kind != "f" or e.mag <= mag or e.t.d.restricted:
            return e
        d, limit = e.t.d, 2.0**int(mag)
        low, high = meaning.extreme(d, -1), meaning.extreme(d, 1)
        at, to = np.asarray(-limit).astype(d.host), np.asarray(limit).astype(d.host)
        text = self.pick((f"ct.minimum(ct.maximum({{0}}, {-limit}), {limit})", f"min(max({{0}}, {-limit}), {limit})"))
        return Expr(text, (e,), e.t, lambda _,
                    x: low(high(x, np.broadcast_to(at, x.shape)), np.broadcast_to(to, x.shape)),
                    (("minimum", d.short), ("maximum", d.short)), int(mag), e.soft)

    # -------------------------------------------------------------- scalars

    def index(self, n: int) -> Expr:
        """An int32 scalar of 0 … n-1."""
        if n == 1:
            return number(0)
        if self.chance(0.3):
            return number(self.rng.randrange(n))
        scalars = [v for v in self.scope if v.t == T("i32") and not v.soft]
        if not scalars and not self.memory:
            return number(self.rng.randrange(n))
        v = self.pick(scalars) if scalars and (self.chance(0.6) or not self.memory) else self.block
        return Expr(f"({{0}} % {n})", (v,), T("i32"), lambda _, x: x % np.int32(n), (("mod", "i32"),))

    def condition(self) -> Expr:
        """A bool_ scalar: of a loop's counter, of the block's number, or of data."""
        if self.counters and self.chance(0.5):
            i, limit = self.pick(self.counters), self.pick((self.block, number(1), number(2)))
            name, sign = self.pick((("less", "<"), ("less_equal", "<="), ("greater_equal", ">="), ("greater", ">")))
            limit = limit if self.memory else number(1)
            return Expr(f"({{0}} {sign} {{1}})", (i, limit), T("b1"), lambda _, x, y: meaning.COMPARE[name](x, y),
                        ((name, "i32"),))
        kind = self.rng.randrange(3)
        if kind == 0 or not self.memory:
            v, n = self.want("i32", (), clean=True), self.pick((0, 1, 2))
            name, sign = self.pick((("equal", "=="), ("less", "<"), ("greater_equal", ">="), ("not_equal", "!=")))
            return Expr(f"({{0}} % 3 {sign} {n})", (v,), T("b1"),
                        lambda _, x: meaning.COMPARE[name](x % np.int32(3), np.int32(n)),
                        ((name, "i32"), ("mod", "i32")))
        if kind == 1:
            return self.want("b1", (), clean=True)
        dtype = self.pick((*FLOATS, *INTS))
        x = self.want(dtype, (), clean=True)
        name, sign = self.pick((("less", "<"), ("greater", ">")))
        lit = self.literal(dtype)
        return Expr(f"({{0}} {sign} {lit!r})", (x,), T("b1"),
                    lambda _, x: meaning.compare(name, DTYPES[dtype])(
                        x, np.asarray(lit).astype(DTYPES[dtype].host)), ((name, dtype),), 0, x.soft)


# ------------------------------------------------------------------ expressions that need no choice


def number(n: int | float, dtype: str = "i32") -> Expr:
    """A literal, as a value of the dtype that it gets."""
    value = np.asarray(n).astype(DTYPES[dtype].host)
    return Expr(f"({n})" if n < 0 else repr(n), (), T(dtype), lambda _: value, constant=True)


def item(e: Expr) -> Expr:
    """The scalar of a tile of one element."""
    return Expr("{0}.item()", (e,), T(e.t.dtype), lambda _, x: x.reshape(()), (("item", e.t.dtype),), e.mag, e.soft)


def shape_text(shape: tuple[int, ...]) -> str:
    return repr(tuple(shape))


def castable(a: str, b: str) -> bool:
    return a != b and not {a, b} & set(SM100) and not (DTYPES[a].restricted and DTYPES[b].kind in "iub")


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether shape a can be broadcast to b."""
    return len(a) <= len(b) and all(x in (1, y) for x, y in zip(a[::-1], b[::-1], strict=False))


def reshape(e: Expr, shape: tuple[int, ...]) -> Expr:
    text = f"ct.reshape({{0}}, {shape_text(shape)})" if prod(shape) % 4 else f"{{0}}.reshape({shape_text(shape)})"
    return Expr(text, (e,), T(e.t.dtype, shape), lambda _, x: x.reshape(shape), (("reshape", e.t.dtype),), e.mag,
                e.soft)


def broadcast(e: Expr, shape: tuple[int, ...]) -> Expr:
    return Expr(f"ct.broadcast_to({{0}}, {shape_text(shape)})", (e,), T(e.t.dtype, shape),
                lambda _, x: np.broadcast_to(x, shape), (("broadcast_to", e.t.dtype),), e.mag, e.soft)


def lifted(f: Callable, d: str, *ts: T) -> Callable:
    """f on operands converted to one dtype."""
    to = DTYPES[d]
    return lambda _, *xs: f(*(meaning.convert(x, t.d, to) for x, t in zip(xs, ts, strict=True)))


def summed(mag: float, n: int) -> float:
    return mag + log2(max(n, 1))


ALL = (*ARITHMETIC, "tf32", "e4m3", "e5m2")
EVERY = (*ALL, *SM100)
