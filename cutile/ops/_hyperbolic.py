"""Hyperbolic sine and tangent of float64, within one unit in the last place.

Both are computed from exp(x) - 1, which is kept as a pair of float64 numbers, whose sum it is (Dekker's arithmetic). So
only the last rounding of a result matters.
"""

from __future__ import annotations

import numpy as np

from cutile.ops._exact import two_prod, two_sum

# The float64 nearest to the natural logarithm of 2, and that logarithm minus it.
_LN2, _LN2_MISSING = float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56")
_HALVINGS = 4  # the series is summed at x / 16
_SERIES = (1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040, 1 / 40320)  # coefficients of x³, x⁴, … in exp(x) − 1


def sinh(x) -> np.ndarray:
    """(e + e / (1 + e)) / 2, where e = exp(|x|) - 1."""
    a, finite = _magnitude(x, 711.0)
    high, low, k = _expm1_scaled(a)
    large = np.ldexp(_total(*_plus(high, low, 1.0)), k - 1)  # exp(|x|) / 2; exp(|x|) itself may overflow
    e = _unscaled(high, low, np.minimum(k, 1000))
    half = _total(*_add(*e, *_divide(*e, *_plus(*e, 1.0)))) * 0.5
    return np.where(finite, np.copysign(np.where(a > 100.0, large, half), x), x)


def tanh(x) -> np.ndarray:
    """e / (e + 2), where e = exp(2 |x|) - 1."""
    a, finite = _magnitude(x, 30.0)
    e = _unscaled(*_expm1_scaled(2.0 * a))
    y = np.copysign(_total(*_divide(*e, *_plus(*e, 2.0))), x)
    return np.where(finite, y, np.where(np.isnan(x), x, np.sign(x)))


def _magnitude(x, top: float) -> tuple[np.ndarray, np.ndarray]:
    """|x| where x is finite, at most `top` (0 elsewhere), and a mask of the finite elements."""
    finite = np.isfinite(x)
    return np.minimum(np.abs(np.where(finite, x, 0.0)), top), finite


def _expm1_scaled(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """exp(r) - 1 as a pair, and k, where a = r + k * log(2) and r is small."""
    k = np.rint(a / _LN2)
    p, e = two_prod(k, _LN2)
    high, low = two_sum(a, -p)
    high, low = _fast(high, low - e - k * _LN2_MISSING)
    high, low = high / 2**_HALVINGS, low / 2**_HALVINGS
    tail = np.zeros_like(high)
    for c in reversed(_SERIES):
        tail = tail * high + c
    square, missing = two_prod(high, high)
    y = _add(high, low, square * 0.5, missing * 0.5 + high * low)
    y = _plus(*y, tail * high * high * high)
    for _ in range(_HALVINGS):  # exp(2r) - 1 = 2y + y*y, where y = exp(r) - 1
        y = _add(2.0 * y[0], 2.0 * y[1], *_multiply(*y, *y))
    return *y, k.astype(np.int64)


def _unscaled(high, low, k):
    """exp(a) - 1 from the results of `_expm1_scaled(a)`."""
    s = np.ldexp(1.0, k)
    return _plus(high * s, low * s, s - 1.0)


# ------------------------------------------------------------------ pairs of float64: (a, b) and (c, d)


def _fast(a, b):
    """a + b and its error, where |a| is not less than |b|."""
    s = a + b
    return s, b - (s - a)


def _total(high, low):
    return high + low


def _plus(high, low, c):
    s, e = two_sum(high, c)
    return _fast(s, e + low)


def _add(a, b, c, d):
    s, e = two_sum(a, c)
    return _fast(s, e + (b + d))


def _multiply(a, b, c, d):
    p, e = two_prod(a, c)
    return _fast(p, e + (a * d + b * c))


def _divide(a, b, c, d):
    q = a / c
    p, e = two_prod(q, c)
    return _fast(q, (((a - p) - e) + b - q * d) / c)
