"""How large and how fine the floats of a kernel can be, in powers of two.

`ranges` looks forward, from operands to results. `implied` looks backward: if the elements of a tile are known to be
numbers below a power of two, as a condition at run time may say of a divisor, so are many of those that it was computed
from. A sum of squares bounds each of the numbers that were squared, a maximum of magnitudes every element of its row.

Bounds hold for what any implementation computes, whatever rounding and order a freedom leaves open: each rounding is
taken to double a number, which is far more than it can do. NaN is in every range.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable, Mapping
from typing import Any

from cutile._support.structs import replace, structure
from cutile.dtypes import DType, info
from cutile.ir.nodes import Node, Op, Value
from cutile.ir.recursion import recursive
from cutile.ops import arithmetic, convert, create, math, reduce, select, shape
from cutile.ops._op import is_plain
from cutile.types import TileType


@structure(frozen=True, slots=True)
class Range:
    """Finite values are multiples of 2**low, and less than 2**high in magnitude."""

    low: int
    high: int
    infinite: bool  # whether infinities are among the values
    negative: bool  # whether numbers below zero are
    least: int | None = None  # an exponent k with no number below 2**k

    @property
    def below(self) -> int | None:
        """An exponent with all numbers, infinities included, below 2**below; None if there is none."""
        return None if self.infinite else self.high


def of_dtype(d: DType) -> Range:
    """What holds for every value of a dtype."""
    f = info(d).format
    if f is not None:
        return Range(f.emin - f.mantissa, numbers.frexp(f.max)[1], True, True)
    return Range(0, d.bitwidth + 1, False, info(d).kind == "i")


class FloatRanges:
    """Ranges of the values of a kernel, computed when asked for.

    source   the node that defines each value (`ir.walk.definitions`)
    assumed  exponents h of values known to be NaN or below 2**h in magnitude
    """

    def __init__(self, source: Mapping[Value, Node], assumed: Mapping[Value, int] | None = None):
        self.source, self.assumed = source, assumed or {}
        self._known: dict[Value, Range] = {}

    def of(self, v: Value) -> Range:
        if v not in self._known:
            self._known[v] = self._computed(v)
        return self._known[v]

    @recursive
    def _computed(self, v: Value) -> Range:
        assert isinstance(v.type, TileType)
        n, widest = self.source.get(v), of_dtype(v.type.dtype)
        found = widest
        if isinstance(n, Op) and n.op in _FORWARD and is_plain(n) and info(v.type.dtype).floating:
            found = _within(_FORWARD[n.op](self, n), widest)
        if v in self.assumed:
            found = replace(found, high=min(found.high, self.assumed[v]), infinite=False)
        return found


def _within(r: Range, widest: Range) -> Range:
    """The range after rounding to a dtype; what is beyond the dtype's largest value may become an infinity."""
    infinite = (r.infinite or r.high > widest.high) and widest.infinite
    least = r.least if r.least is None or r.least >= widest.low else None
    return Range(max(r.low, widest.low), min(r.high, widest.high), infinite, r.negative, least)


# ------------------------------------------------------------------ forward


def _same(f: FloatRanges, n: Op) -> Range:
    return f.of(n.operand)


def _union(f: FloatRanges, n: Op) -> Range:
    x, y = map(f.of, n.operands[-2:])  # the first operand of `where` is the mask
    least = None if x.least is None or y.least is None else min(x.least, y.least)
    return Range(min(x.low, y.low), max(x.high, y.high), x.infinite or y.infinite, x.negative or y.negative, least)


def _larger(f: FloatRanges, n: Op) -> Range:
    """At least a constant that it is compared with, also where the other operand is NaN."""
    u = _union(f, n)
    constants = [f.of(v).least for v in n.operands if constant_of(f.source, v) is not None]
    least = max([k for k in (*constants, u.least) if k is not None], default=None)
    return replace(u, negative=u.negative and least is None, least=least)


def _sum_of(x: Range, y: Range) -> Range:
    negative = x.negative or y.negative
    least = None if negative else max([r.least for r in (x, y) if r.least is not None], default=None)
    return Range(min(x.low, y.low), max(x.high, y.high) + 2, x.infinite or y.infinite, negative, least)


def _sum(f: FloatRanges, n: Op) -> Range:
    return _sum_of(*map(f.of, n.operands))


def _difference(f: FloatRanges, n: Op) -> Range:
    return replace(_sum(f, n), negative=True, least=None)


def _product_of(x: Range, y: Range, square: bool) -> Range:
    least = None if x.least is None or y.least is None else x.least + y.least
    return Range(x.low + y.low, x.high + y.high + 1, x.infinite or y.infinite,
                 not square and (x.negative or y.negative), least)


def _product(f: FloatRanges, n: Op) -> Range:
    x, y = n.operands
    return _product_of(f.of(x), f.of(y), x is y)


def _fma(f: FloatRanges, n: Op) -> Range:
    x, y, z = n.operands
    return _sum_of(_product_of(f.of(x), f.of(y), x is y), f.of(z))


def _quotient(f: FloatRanges, n: Op) -> Range:
    """By a constant; by anything else a quotient may be of any size."""
    x, y = map(f.of, n.operands)
    widest, c = of_dtype(n.result.type.dtype), constant_of(f.source, n.operands[1])
    if not c or not numbers.isfinite(c):
        return replace(widest, negative=x.negative or y.negative)
    e = numbers.frexp(c)[1]
    return Range(widest.low, x.high - e + 2, x.infinite, x.negative or c < 0,
                 None if x.least is None or c < 0 else x.least - e)


def _total(f: FloatRanges, n: Op) -> Range:
    """Rounding at most doubles the smaller operand of each addition; over a tree that is the number of terms again."""
    x, terms = f.of(n.operand), n.operand.type.shape[n.attrs["axis"]]
    return replace(x, high=x.high + 2 * terms.bit_length() + 1, least=_of_one(f, n) if x.least is None else x.least)


def _cast(f: FloatRanges, n: Op) -> Range:
    """To a float. A cast to a narrower one may round up to the next power of two."""
    x = f.of(n.operand)
    return replace(x, high=x.high + 1)


def _magnitude(f: FloatRanges, n: Op) -> Range:
    return replace(f.of(n.operand), negative=False)


def _opposite(f: FloatRanges, n: Op) -> Range:
    return replace(f.of(n.operand), negative=True, least=None)


def _root(f: FloatRanges, n: Op) -> Range:
    x = f.of(n.operand)
    return Range(of_dtype(n.result.type.dtype).low, x.high // 2 + 2, x.infinite, False,
                 None if x.least is None else x.least // 2)


def _power(f: FloatRanges, n: Op) -> Range:
    """A power of e or 2. If no exponent is positive, none is above 1 by more than its error."""
    widest = replace(of_dtype(n.result.type.dtype), negative=False)
    return widest if _below_largest(f, n) is None else replace(widest, high=1, infinite=False)


def _below_largest(f: FloatRanges, n: Op) -> int | None:
    """The axis for which the operand is x - max(x, axis), perhaps times a positive constant; None if it is not that."""
    d = f.source.get(n.operand)
    if isinstance(d, Op) and d.op is arithmetic.mul and is_plain(d):
        x, y = d.operands
        d = next((f.source.get(v) for v, w in ((x, y), (y, x)) if f.of(w).least is not None
                  and constant_of(f.source, w) is not None), None)
    if not isinstance(d, Op) or d.op is not arithmetic.sub or not is_plain(d):
        return None
    x, m = d.operands
    spread = f.source.get(m)
    kept = f.source.get(spread.operand) if isinstance(spread, Op) and spread.op is shape.broadcast_to else None
    largest = f.source.get(kept.operand) if isinstance(kept, Op) and kept.op is shape.reshape else None
    if not isinstance(largest, Op) or largest.op is not reduce.max or not is_plain(largest):
        return None
    if largest.operand is not x:
        return None
    axis = largest.attrs["axis"] % len(x.type.shape)
    return axis if kept.result.type.shape == (*x.type.shape[:axis], 1, *x.type.shape[axis + 1:]) else None


def _of_one(f: FloatRanges, n: Op) -> int | None:
    """For the sum of powers of which one is 1 or all are NaN, an exponent that is safely below that of 1."""
    p = f.source.get(n.operand)
    if not isinstance(p, Op) or p.op not in (math.exp, math.exp2) or not is_plain(p):
        return None
    return -1 if _below_largest(f, p) == n.attrs["axis"] % len(n.operand.type.shape) else None


def _constant(f: FloatRanges, n: Op) -> Range:
    value = n.attrs["value"]
    if not numbers.isfinite(value):
        return replace(of_dtype(n.result.type.dtype), negative=not value > 0)
    if value == 0:
        return Range(0, 0, False, False)
    (top, bottom), high = float(value).as_integer_ratio(), numbers.frexp(value)[1]
    return Range((top & -top).bit_length() - bottom.bit_length(), high, False, value < 0,
                 high - 1 if value > 0 else None)


Forward = Callable[[FloatRanges, Op], Range]

_FORWARD: dict[Any, Forward] = {
    create.constant: _constant, create.full: _same, shape.reshape: _same, shape.broadcast_to: _same,
    shape.permute: _same, convert.astype: _cast, reduce.max: _same, reduce.min: _same,
    arithmetic.minimum: _union, arithmetic.maximum: _larger, select.where: _union,
    arithmetic.add: _sum, arithmetic.sub: _difference, arithmetic.mul: _product, arithmetic.fma: _fma,
    arithmetic.truediv: _quotient, reduce.sum: _total, arithmetic.abs: _magnitude, arithmetic.negative: _opposite,
    math.sqrt: _root, math.exp: _power, math.exp2: _power,
}


def constant_of(source: Mapping[Value, Node], v: Value) -> Any:
    """The number that all elements of a tile are; None if that is not known."""
    n = source.get(v)
    while isinstance(n, Op) and n.op in (shape.broadcast_to, shape.reshape, create.full):
        n = source.get(n.operand)
    return n.attrs["value"] if isinstance(n, Op) and n.op is create.constant else None


# ------------------------------------------------------------------ backward


def implied(f: FloatRanges, v: Value, high: int) -> dict[Value, int]:
    """Where all elements of `v` are numbers below 2**high in magnitude: exponents h of values of which all elements are
    NaN or below 2**h.
    """
    found: dict[Value, int] = {}
    pending = [(v, high, True)]
    while pending:
        v, high, number = pending.pop()
        if high >= found.get(v, high + 1):
            continue
        found[v] = high
        n = f.source.get(v)
        if isinstance(n, Op) and n.op in _BACKWARD and is_plain(n) and info(v.type.dtype).floating:
            pending += [(w, h, still) for w, h, still in _BACKWARD[n.op](f, n, high, number)
                        if info(w.type.dtype).floating]
    return found


# For an op whose result is below 2**high: operands, their exponents, and whether their elements are no NaN. `number`
# says so of the result. A NaN may come from infinities, so a rule whose result can make one of them asks for `number`.
Implied = list[tuple[Value, int, bool]]


def _of_same(f: FloatRanges, n: Op, high: int, number: bool) -> Implied:
    return [(n.operand, high, number)]


def _of_cast(f: FloatRanges, n: Op, high: int, number: bool) -> Implied:
    """A float of 8 or 4 bits may stand for one that is too large."""
    return [] if info(n.result.type.dtype).restricted else [(n.operand, _not_rounded(n, high) + 1, number)]


def _not_rounded(n: Op, high: int) -> int:
    """A bound of the exact result: a smaller one may have been rounded to zero."""
    return max(high, of_dtype(n.result.type.dtype).low + 1)


def _of_extreme(f: FloatRanges, n: Op, high: int, number: bool) -> Implied:
    """The largest passes over NaNs, or is NaN where there is one."""
    if n.attrs["propagate_nan"] and not number:
        return []
    return [(v, high, n.attrs["propagate_nan"]) for v in n.operands if not f.of(v).negative]


def _of_total(f: FloatRanges, n: Op, high: int, number: bool) -> Implied:
    """A sum of terms that are not negative is at least each of them, as rounding keeps order."""
    return [(v, high + 1, True) for v in n.operands if number and not f.of(v).negative]


def _of_sum(f: FloatRanges, n: Op, high: int, number: bool) -> Implied:
    x, y = n.operands
    if not number:
        return []
    if n.op is arithmetic.add and not f.of(x).negative and not f.of(y).negative:
        return [(x, high, True), (y, high, True)]
    return [(v, max(high, h) + 2, True) for v, w in ((x, y), (y, x)) if (h := f.of(w).below) is not None]


def _of_product(f: FloatRanges, n: Op, high: int, number: bool) -> Implied:
    x, y = n.operands
    high = _not_rounded(n, high)
    if x is y:
        return [(x, (high + 1) // 2 + 1, number)]
    return [(v, high - numbers.frexp(c)[1] + 2, number) for v, w in ((x, y), (y, x))
            if (c := constant_of(f.source, w)) and numbers.isfinite(c)]


def _of_fma(f: FloatRanges, n: Op, high: int, number: bool) -> Implied:
    x, y, z = n.operands
    if not number or x is not y or f.of(z).negative:
        return []
    return [(x, (_not_rounded(n, high) + 1) // 2 + 1, True), (z, high, True)]


def _of_quotient(f: FloatRanges, n: Op, high: int, number: bool) -> Implied:
    x, y = n.operands
    below = f.of(y).below
    if not number or below is None:
        return []
    return [(x, _not_rounded(n, high) + below + 1, True)]


def _of_root(f: FloatRanges, n: Op, high: int, number: bool) -> Implied:
    x = n.operand
    return [(x, 2 * high + 1, number)] if number or not f.of(x).negative else []


Backward = Callable[[FloatRanges, Op, int, bool], Implied]

_BACKWARD: dict[Any, Backward] = {
    shape.reshape: _of_same, shape.broadcast_to: _of_same, shape.permute: _of_same, convert.astype: _of_cast,
    arithmetic.abs: _of_same, arithmetic.negative: _of_same, reduce.max: _of_extreme, arithmetic.maximum: _of_extreme,
    reduce.sum: _of_total, arithmetic.add: _of_sum, arithmetic.sub: _of_sum, arithmetic.mul: _of_product,
    arithmetic.fma: _of_fma, arithmetic.truediv: _of_quotient, math.sqrt: _of_root,
}
