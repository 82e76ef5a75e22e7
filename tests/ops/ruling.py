"""A bench for ops: apply a typing rule as tile code would, then run what it built.

Every result is checked against its type: the carrier's dtype exactly, the tile's shape as the trailing axes.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from cutile.dtypes import DType, info
from cutile.ir.build import Builder
from cutile.ir.nodes import Value
from cutile.ir.terms import Const, Leaf, Static, Term, Tuple
from cutile.ops._constants import carry, const_term, evaluate, strict
from cutile.ops._op import OpDef, Sig
from cutile.spans import Span
from cutile.types import ArrayType, TileType

SPAN = Span("kernel.py", 1, 0, 1, 1, "kernel")


def term(x) -> Term:
    """Python objects as literals and captured objects, terms as they are; tuples element by element."""
    if isinstance(x, Term):
        return x
    if type(x) is tuple:
        return Tuple(tuple(map(term, x)))
    return const_term(x)


class Bench:
    """One straight-line program under construction, with the carriers of its inputs."""

    def __init__(self, ctx=None):
        self.b = Builder(SPAN)
        self.known: dict[Value, object] = {}
        self.ctx = ctx
        self.done = 0

    def tile(self, values, dtype: DType, shape: tuple[int, ...] | None = None) -> Leaf:
        """A run-time tile; `shape` is the tile's shape if `values` have batch axes."""
        x = np.asarray(values, dtype=info(dtype).carrier)
        return self.given(x, TileType(dtype, x.shape if shape is None else shape))

    def given(self, carrier, type) -> Leaf:
        v = Value(type)
        self.known[v] = carrier
        return Leaf(v)

    def array(self, descriptor, dtype: DType, ndim: int) -> Leaf:
        return self.given(descriptor, ArrayType(dtype, ndim))

    def call(self, op: OpDef, *args, **kwargs) -> Term:
        bound = op.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        return op.rule(self.b, op, **{n: term(x) for n, x in bound.arguments.items()})

    def node(self, op: OpDef, *terms: Leaf, result: TileType, **attrs) -> Leaf:
        """A node as passes and other rules make it, without its typing rule."""
        return Leaf(self.b.op1(op, *(t.value for t in terms), result=result, **attrs))

    def ops(self) -> list[str]:
        """Names of the ops built so far."""
        return [n.op.name for n in self.b.region.nodes]

    def value(self, t: Term):
        """The carrier of a term."""
        if isinstance(t, Tuple):
            return tuple(map(self.value, t.items))
        if isinstance(t, Const):
            return carry(t.value, t.dtype)
        self._run()
        if isinstance(t, Static):  # None: what an op without results gives
            return t.obj
        return self.known[t.value]

    def __call__(self, op: OpDef, *args, **kwargs):
        """Apply and run."""
        return self.value(self.call(op, *args, **kwargs))

    def _run(self) -> None:
        for n in self.b.region.nodes[self.done:]:
            sig = Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results))
            xs = n.op.group([self.known[v] for v in n.operands], n.layout)
            y = evaluate(n.op, sig, xs, n.attrs, ctx=self.ctx)
            for v, c in zip(n.results, y if len(n.results) > 1 else (y,), strict=False):
                check_carrier(n.op.name, v.type, c)
                self.known[v] = c
        self.done = len(self.b.region.nodes)


def check_carrier(name: str, type: TileType, c) -> None:
    if not isinstance(type, TileType):  # an array descriptor
        return
    assert c.dtype == info(type.dtype).carrier, f"{name}: carrier {c.dtype} of {type}"
    core = c.shape[c.ndim - type.ndim:]
    assert core == type.shape, f"{name}: carrier of shape {c.shape} for {type}"
    assert c.ndim - type.ndim in (0, 1, 3), f"{name}: leading axes of {c.shape} for {type}"


def constant_of(value, dtype: DType) -> Const:
    return strict(value, dtype)


NONE = Static(None)


def nearest(q: Fraction, dtype: DType) -> float:
    """`q` rounded to nearest even in `dtype`, by exact arithmetic."""
    f = info(dtype).format
    if q == 0:
        return 0.0
    e = abs(q).numerator.bit_length() - abs(q).denominator.bit_length()
    if Fraction(2) ** e > abs(q):
        e -= 1
    unit = Fraction(2) ** (max(e, f.emin) - f.mantissa)
    rounded = round(q / unit) * unit
    if abs(rounded) > Fraction(f.max):
        return float("inf") if q > 0 else float("-inf")
    return float(rounded)


def same_bits(x, y) -> bool:
    """Equal floats, signs of zeros included; NaN equals NaN."""
    x, y = np.asarray(x), np.asarray(y)
    return bool(np.all((x == y) & (np.signbit(x) == np.signbit(y)) | np.isnan(x) & np.isnan(y)))
