"""Hyperbolic sine and tangent of float64, within one unit in the last place.

Both are computed from exp(x) - 1, which is kept as a pair of float64 numbers, whose sum it is (Dekker's arithmetic). So
only the last rounding of a result matters. `compiled/functions.c` has the same steps.
"""

from __future__ import annotations

import math

import numpy as np

from cutile.compiled import form
from cutile.ops._exact import two_prod, two_sum

# The natural logarithm of 2: the first 29 bits, whose products with the numbers k are exact, and the rest.
_LN2, _LN2_REST = float.fromhex("0x1.62e42fep-1"), float.fromhex("0x1.f473de6af278fp-30")
_LOG2E = float.fromhex("0x1.71547652b82fep+0")
_TO_INTEGER = 1.5 * 2.0**52  # added to a small number, it leaves the nearest integer in the last bits
_SERIES = tuple(1 / math.factorial(n) for n in range(15, 2, -1))  # coefficients of x^15, ..., x^3 in exp(x) - 1
_TINY = 2.0**-28  # what is smaller is its own sine and tangent


def sinh(x, out: np.ndarray | None = None) -> np.ndarray:
    """The result may go into `out`."""
    compiled = form("sinh float64")
    return compiled(x, _apart(out, x)) if compiled else _sinh(x)


def tanh(x, out: np.ndarray | None = None) -> np.ndarray:
    """As `sinh`."""
    compiled = form("tanh float64")
    return compiled(x, _apart(out, x)) if compiled else _tanh(x)


def _sinh(x) -> np.ndarray:
    """(e + e / (e + 1)) / 2, where e = exp(|x|) - 1."""
    a = _magnitude(x, 711.0)
    high, low, k = _expm1_scaled(a)
    whole, error = _fast(1.0, high)
    large = np.ldexp(whole + (error + low), k - 1)  # exp(|x|) / 2; exp(|x|) itself may overflow
    e, rest = _unscaled(high, low, np.minimum(k, 1000))
    q, missing = _divide(e, rest, 1.0)
    s, error = two_sum(e, q)
    half = (s + (error + (rest + missing))) * 0.5
    return _with_sign(x, a, np.where(a > 100.0, large, half))


def _tanh(x) -> np.ndarray:
    """e / (e + 2), where e = exp(2 |x|) - 1."""
    a = _magnitude(x, 30.0)
    q, missing = _divide(*_unscaled(*_expm1_scaled(2.0 * a)), 2.0)
    return _with_sign(x, a, q + missing)


def _apart(out: np.ndarray | None, x) -> np.ndarray | None:
    """`out` where a compiled form may write to it."""
    return None if out is None or out is not x and np.may_share_memory(out, x) else out


def _magnitude(x, top: float) -> np.ndarray:
    """|x|, at most `top`, which stands for NaN, too."""
    a = np.abs(x)
    return np.where(a < top, a, top)


def _with_sign(x, a: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where((a < _TINY) | np.isnan(x), x, np.copysign(y, x))


def _expm1_scaled(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """exp(r) - 1 as a pair, and k, where a = r + k * log(2) and r is small."""
    k = (a * _LOG2E + _TO_INTEGER) - _TO_INTEGER
    r, rest = _fast(a - k * _LN2, -(k * _LN2_REST))
    tail = np.full_like(r, _SERIES[0])
    for c in _SERIES[1:]:
        tail = tail * r + c
    square, missing = two_prod(r, r)
    s, error = _fast(r, square * 0.5)
    return *_fast(s, error + ((rest + (missing * 0.5 + r * rest)) + tail * r * square)), k.astype(np.int64)


def _unscaled(high, low, k):
    """exp(a) - 1 from the results of `_expm1_scaled(a)`."""
    scale = np.ldexp(1.0, k)
    s, error = two_sum(high * scale, scale - 1.0)
    return _fast(s, error + low * scale)


# ------------------------------------------------------------------ pairs of float64


def _fast(a, b):
    """a + b and its error, where |a| is not less than |b|."""
    s = a + b
    return s, b - (s - a)


def _divide(e, rest, c):
    """The quotient of the pair and itself plus c, as a pair."""
    whole, error = two_sum(e, c)
    inverse = 1.0 / whole
    q = e * inverse
    p, missed = two_prod(q, whole)
    return q, (((e - p) - missed) + (rest - q * (error + rest))) * inverse
