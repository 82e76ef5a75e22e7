"""Divide many elements by one number with one reciprocal, for the same bits.

    q = e / s        →        r = 1 / s                  once for each s
                              p = e * r
                              m = fma(p, s, -e)          what p lacks, times -s
                              q = fma(m, -r, p)

Three operations for each element take the place of a division, which is about fifteen and a branch. docs/division.md
proves that `q` is the quotient rounded to nearest, signs of zeros included, in the domain that DOMAINS has for each
dtype. That operands are in their domain is found from the program (analysis/float_ranges.py):

- s is in the domain, infinite or NaN: a sum of exp(x - max(x)), a maximum with a constant, a constant. If that is not
  known and s is one number for the whole tile, it is checked at run time; beyond the domain the tile is divided. That
  costs nothing [measured] after a reduction, for which a block waits anyway. Elsewhere the branch keeps accesses to
  memory apart, and a check of several numbers in a tile costs more than the pass gains.
- e is not too large: it was made from narrower floats or integers, or is bounded by s, its sum or its maximum. Where it
  may be infinite, a maximum turns the NaN that `m` becomes into a number.
- e is zero or not too small: it is a multiple of some power of two, or the quotient is converted to what cannot tell so
  small a quotient from zero.

A quotient of float16 is computed in float32. It is the same rounded again, as the interpreter and GPUs compute it.
Dividing by a power of two is multiplying by its inverse, which the assembler does not do by itself.
CUTILE_HINTS=0 turns all of this off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cutile import settings
from cutile._support.structs import replace, structure
from cutile.analysis.float_ranges import FloatRanges, Range, constant_of, implied
from cutile.dtypes import DType, bool_, float8_e4m3fn, float8_e5m2, float16, float32, float64, info
from cutile.ir.build import Builder
from cutile.ir.nodes import If, Kernel, Node, Op, Region, Value, Yield
from cutile.ir.walk import definitions, rewrite, uses, walk
from cutile.ops import arithmetic, bits, compare, convert, create, reduce, shape
from cutile.ops._op import is_plain
from cutile.types import TileType


@structure(frozen=True, slots=True)
class Domain:
    """s from 2**-divisor to 2**divisor; e zero, or from 2**-dividend to below 2**dividend in magnitude."""

    dtype: DType  # in which the quotient is computed
    divisor: int
    dividend: int

    def has_divisor(self, s: Range) -> bool:
        return s.least is not None and s.least >= -self.divisor and s.high <= self.divisor


_FLOAT32 = Domain(float32, 45, 80)
DOMAINS = {float16: _FLOAT32, float32: _FLOAT32, float64: Domain(float64, 100, 800)}
SHARED = 32  # elements for each divisor, from which on the reciprocal pays
TO_ZERO = (float16, float8_e4m3fn, float8_e5m2)  # to which a cast makes zero of any number below 2**TINY
TINY = -30

_PLAIN = {"rounding_mode": None, "flush_to_zero": False}
_PICK = {"flush_to_zero": False, "propagate_nan": False}


def shared_division(kernel: Kernel) -> Kernel:
    """The kernel with such divisions replaced."""
    if not settings.get("HINTS") or not any(isinstance(n, Op) and _is_division(n) for n in walk(kernel.body)):
        return kernel
    find = _Divisions(kernel)
    return rewrite(kernel, lambda old, n: find.replacement(n) if isinstance(n, Op) and _is_division(n) else None)


def _is_division(n: Op) -> bool:
    t = n.result.type if n.op is arithmetic.truediv else None
    return isinstance(t, TileType) and info(t.dtype).floating and t.size >= SHARED and is_plain(n)


def _inverse(power: float, dtype: DType) -> float | None:
    """The inverse of a power of two, if both are normal numbers of the dtype; None for other numbers."""
    mantissa, exponent = math.frexp(power)  # of an infinity or NaN, the mantissa is that
    return 1 / power if abs(mantissa) == 0.5 and abs(1 - exponent) <= -info(dtype).format.emin else None


class _Divisions:
    """What is known of the operands of a kernel's divisions."""

    def __init__(self, kernel: Kernel):
        self.source, self.uses = definitions(kernel.body), uses(kernel.body)
        self.ranges = FloatRanges(self.source)

    def replacement(self, n: Op) -> Sequence[Node] | None:
        """The nodes that replace a division; None if it stays."""
        e, s = n.operands
        s = self._before_broadcast(s)
        c = constant_of(self.source, s)
        inverse = None if c is None else _inverse(c, e.type.dtype)
        if inverse is not None:
            return _by_inverse(n, inverse)
        if e.type.dtype not in DOMAINS or n.result.type.size < SHARED * s.type.size:
            return None
        domain, divisor, dividend = DOMAINS[e.type.dtype], self.ranges.of(s), self.ranges.of(e)
        if domain.has_divisor(divisor) and self._has_dividend(domain, dividend, n.result):
            return _Replacement(n, s, domain, dividend.infinite).always(divisor.infinite)
        if s.type.size == 1 and self._comes_of_reduction(s):
            dividend = FloatRanges(self.source, implied(self.ranges, s, domain.divisor + 1)).of(e)
            if self._has_dividend(domain, dividend, n.result):
                return _Replacement(n, s, domain, dividend.infinite).checked()
        return None

    def _comes_of_reduction(self, v: Value) -> bool:
        seen, pending = set(), [v]
        while pending:
            n = self.source.get(pending.pop())
            if isinstance(n, Op) and n not in seen:
                if n.op.family == reduce.sum.family:
                    return True
                seen.add(n)
                pending += n.operands
        return False

    def _before_broadcast(self, v: Value) -> Value:
        """The tile of which v is a broadcast, or v."""
        n = self.source.get(v)
        while isinstance(n, Op) and n.op is shape.broadcast_to:
            v = n.operand
            n = self.source.get(v)
        return v

    def _has_dividend(self, domain: Domain, e: Range, quotient: Value) -> bool:
        """Whether all dividends are in the domain or infinite. A smaller one gives a quotient that must not matter."""
        return e.high <= domain.dividend and (
            e.low >= -domain.dividend or self._is_lost(quotient, domain.divisor - domain.dividend))

    def _is_lost(self, v: Value, high: int) -> bool:
        """Whether numbers below 2**high might as well be zeros of their sign, wherever v is used."""
        return high <= TINY and all(isinstance(n, Op) and self._loses(n, high) for n in self.uses.get(v, ()))

    def _loses(self, n: Op, high: int) -> bool:
        if n.op in (shape.reshape, shape.broadcast_to, shape.permute, arithmetic.negative):
            return self._is_lost(n.result, high)
        if n.op not in (convert.astype, arithmetic.mul, arithmetic.add, arithmetic.sub) or not is_plain(n):
            return False
        dtype = n.result.type.dtype
        if n.op is convert.astype:
            return dtype in TO_ZERO or info(dtype).integral
        c = next((c for v in n.operands if (c := constant_of(self.source, v)) and math.isfinite(c)), None)
        if c is None:
            return False
        if n.op is arithmetic.mul:
            return self._is_lost(n.result, high + math.frexp(c)[1])
        return abs(c) > 2.0**(high + info(dtype).format.mantissa + 4)  # less than a sixteenth of a unit of the constant


def _by_inverse(n: Op, inverse: float) -> list[Node]:
    """The product that is the quotient by a power of two, for every dividend."""
    b, t = Builder(n.span), n.result.type
    (e, _), factor = n.operands, b.op1(create.constant, result=TileType(t.dtype), value=inverse)
    if t.shape:
        factor = b.op1(shape.broadcast_to, factor, result=t, shape=t.shape)
    b.append(Op(arithmetic.mul, (e, factor), dict(_PLAIN), n.results, n.span))
    return b.region.nodes


class _Replacement(Builder):
    """Builds what replaces a division by s; `infinite`: dividends may be."""

    def __init__(self, division: Op, s: Value, domain: Domain, infinite: bool):
        super().__init__(division.span)
        self.division, self.domain, self.infinite = division, domain, infinite
        self.type = TileType(domain.dtype, division.result.type.shape)
        e, _ = division.operands
        self.e, self.s = self._cast(e, domain.dtype), self._cast(s, domain.dtype)
        self.r = self._make(arithmetic.truediv, self._constant(1.0, s.type.shape), self.s, **_PLAIN)

    def always(self, infinite_divisor: bool) -> list[Node]:
        self._quotient(infinite_divisor)
        *nodes, last = self.region.nodes
        return [*nodes, replace(last, results=self.division.results)]

    def checked(self) -> list[Node]:
        """The corrected product where s is in the domain, a division elsewhere."""
        n, inside = self.division, self._in_domain()
        corrected, full = Region(), Region()
        with self.into(corrected):
            self.append(Yield((self._quotient(False),), n.span))
        with self.into(full):
            self.append(Yield((self._make(arithmetic.truediv, *n.operands, **_PLAIN),), n.span))
        self.append(If(inside, corrected, full, n.results, n.span))
        return self.region.nodes

    def _quotient(self, infinite_divisor: bool) -> Value:
        """The corrected product, which the last node gives."""
        s = self.s
        if infinite_divisor:
            s = self._make(arithmetic.minimum, s, self._constant(2.0**self.domain.divisor, s.type.shape), **_PICK)
        p = self._make(arithmetic.mul, self.e, self._spread(self.r), **_PLAIN)
        m = self._make(arithmetic.fma, p, self._spread(s), self._make(arithmetic.negative, self.e), **_PLAIN)
        if self.infinite:
            lowest = self._constant(-info(self.domain.dtype).format.max, self.type.shape)
            m = self._make(arithmetic.maximum, m, lowest, **_PICK)
        q = self._make(arithmetic.fma, m, self._spread(self._make(arithmetic.negative, self.r)), p, **_PLAIN)
        return self._cast(q, self.division.result.type.dtype)

    def _in_domain(self) -> Value:
        s = self.s
        if s.type.shape:
            s = self._make(shape.reshape, s, result=TileType(s.type.dtype), shape=())
        low, high = (self._constant(2.0**k, ()) for k in (-self.domain.divisor, self.domain.divisor))
        truth = TileType(bool_)
        return self._make(bits.bitwise_and, self._make(compare.greater_equal, s, low, result=truth),
                          self._make(compare.less_equal, s, high, result=truth), result=truth)

    def _make(self, op, x: Value, *others: Value, result: TileType | None = None, **attrs) -> Value:
        return self.op1(op, x, *others, result=result or x.type, **attrs)

    def _cast(self, v: Value, dtype: DType) -> Value:
        if v.type.dtype is dtype:
            return v
        return self._make(convert.astype, v, result=v.type.with_dtype(dtype), rounding_mode=None)

    def _constant(self, value: float, to: tuple[int, ...]) -> Value:
        scalar = self.op1(create.constant, result=TileType(self.domain.dtype), value=value)
        return self._spread(scalar, to)

    def _spread(self, v: Value, to: tuple[int, ...] | None = None) -> Value:
        to = self.type.shape if to is None else to
        if v.type.shape == to:
            return v
        return self._make(shape.broadcast_to, v, result=TileType(v.type.dtype, to), shape=to)
