"""Arithmetic on fractions, rounded once to a format in any mode: the oracle for arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

from conformance.harness.number_formats import FORMATS, value


def nearest(name: str, q: Fraction, mode: str = "RN", zero: float = 0.0) -> float:
    """An exact number rounded to a format with infinities; 0 becomes `zero`."""
    f = FORMATS[name]
    if q == 0:
        return zero
    sign, m = (-1, -q) if q < 0 else (1, q)
    e = m.numerator.bit_length() - m.denominator.bit_length()
    e -= m < Fraction(2) ** e
    unit = Fraction(2) ** (max(e, f.emin) - f.fraction)
    k, rest = divmod(m, unit)
    half = unit / 2
    k += {
        "RN": rest > half or rest == half and k % 2 == 1,
        "RZ": False,
        "RP": rest > 0 and sign > 0,
        "RM": rest > 0 and sign < 0,
        "RA": rest >= half,
    }[mode]
    y = k * unit
    largest = Fraction(value(name, f.top))
    if y > largest:
        away = {"RN": True, "RA": True, "RZ": False, "RP": sign > 0, "RM": sign < 0}[mode]
        return sign * (math.inf if away else float(largest))
    return math.copysign(float(y), sign)


def exact(op: str, name: str, *xs: float, mode: str = "RN") -> float:
    """add, sub, mul, truediv, fma or sqrt of numbers of a format, rounded once; IEEE 754's special cases."""
    if any(x != x for x in xs):
        return math.nan
    if op == "sqrt":
        return _sqrt(name, *xs, mode)
    if op == "sub":
        op, xs = "add", (xs[0], -xs[1])
    a, b = xs[:2]
    if op == "truediv":
        if b == 0 or math.isinf(a) or math.isinf(b):
            return (
                math.nan
                if a == b == 0 or math.isinf(a) and math.isinf(b)
                else _signed(a, b, 0.0 if math.isinf(b) else math.inf)
            )
        return _signed(a, b, 0.0) if a == 0 else nearest(name, Fraction(a) / Fraction(b), mode)
    if op == "add":
        a, b, c = a, 1.0, b
    else:
        c = xs[2] if op == "fma" else None
    if any(map(math.isinf, (a, b))) or a == 0 or b == 0:
        product = a * b  # these do not round
        if c is None or math.isinf(product) or math.isnan(product):
            return product if c is None else product + c
    elif c is None:
        return nearest(name, Fraction(a) * Fraction(b), mode)
    if math.isinf(c):
        return c
    q = Fraction(a) * Fraction(b) + Fraction(c)
    if q:
        return nearest(name, q, mode)
    if _signed(a, b, 1.0) == math.copysign(1.0, c) and (a == 0 or b == 0):
        return c
    return -0.0 if mode == "RM" else 0.0


def _signed(a: float, b: float, x: float) -> float:
    return math.copysign(1.0, a) * math.copysign(1.0, b) * x


def _sqrt(name: str, x: float, mode: str) -> float:
    if x == 0 or x == math.inf:
        return x
    if x < 0:
        return math.nan
    q = Fraction(x)
    shift = 2 * max(0, 130 - q.numerator.bit_length() + q.denominator.bit_length()) + 2 * q.denominator.bit_length()
    scaled = (q.numerator << shift) // q.denominator  # exact: denominators are powers of two
    root = math.isqrt(scaled)
    odd = root * root != scaled  # only whether a rest is missing matters, not its size
    return nearest(name, Fraction(2 * root + odd, 2 << (shift // 2)), mode)


def flushed(x: float) -> float:
    """Float32 subnormals as zeros."""
    return math.copysign(0.0, x) if abs(x) < 2.0**-126 else x


def chosen(a, b, smaller, propagate):
    """minimum (`smaller`) or maximum of two floats; a NaN wins if `propagate`, else the other operand."""
    if a != a or b != b:
        return math.nan if propagate else b if a != a else a
    if a == b == 0:
        negative = [math.copysign(1, v) < 0 for v in (a, b)]
        return -0.0 if (any(negative) if smaller else all(negative)) else 0.0
    return min(a, b) if smaller else max(a, b)
