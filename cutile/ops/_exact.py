"""Arithmetic rounded exactly once: fused multiply-add, and the directed rounding modes.

The exact result is represented as a float64 `y` and the sign of (exact − y), from error-free transformations (Knuth's
two-sum, Dekker's product). For formats narrower than float64 the pair becomes one float64 by rounding to odd: of the
two neighbours that enclose the exact value, it is the one whose last bit is odd. Rounding this to at most 51 bits gives
the same as rounding the exact value, in every mode. For float64 itself the transformations need exponents away from the
ends of the range; other elements are computed one by one with Fraction.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from cutile._support.strides import without_repetition
from cutile.compiled import form
from cutile.dtypes import DType, bfloat16, float16, float32, float64, info
from cutile.ops._rounding import RM, RN, RP, RZ, round_directed, round_to
from cutile.types import RoundingMode

if TYPE_CHECKING:
    from fractions import Fraction

_F32, _F64, _I64 = np.float32, np.float64, np.int64
_HALFWAY = np.iinfo(_I64).min
AT_ONCE, AT_ONCE64 = 1 << 15, 1 << 13  # elements whose float64 values stay in the CPU's cache [measured]
FEW = 1 << 12  # elements that need not be cut into pieces


def two_sum(a, b):
    """The rounded sum and its error, exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _split(a):
    c = a * 134217729.0  # 2**27 + 1
    high = c - (c - a)
    return high, a - high


def two_prod(a, b):
    """The rounded product and its error, exact while neither comes near the ends of the range."""
    p = a * b
    ah, al = _split(a)
    bh, bl = _split(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def to_odd(y: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """`y`, or its neighbour in the direction of `missing` (the exact result minus y), whichever is odd; `y` where
    `missing` is 0 or NaN.
    """
    bits = y.view(_I64)
    even = (bits & 1) == 0
    step = np.where(missing > 0, 1, np.where(missing < 0, -1, 0))
    step = np.where(bits < 0, -step, step)  # magnitudes grow with the bits
    return np.where(even & np.isfinite(y), bits + step, bits).view(_F64)


# ------------------------------------------------------------------ fused multiply-add


def fma(x, y, z, dtype: DType, out: np.ndarray | None = None) -> np.ndarray:
    """x * y + z, rounded once to `dtype` [MEAS-2].

    The result goes into `out` if that fits; it must share no memory with the operands.
    """
    compiled = form(_FMA[dtype])
    return compiled(x, y, z, out) if compiled else _fma(x, y, z, dtype, out)


_FMA = {d: f"fma {d.name}" for d in (float16, bfloat16, float32, float64)}


def _fma(x, y, z, dtype: DType, out: np.ndarray | None) -> np.ndarray:
    """The NumPy form of `fma`. It goes in pieces that stay in the CPU's cache with what is computed of them."""
    x, y, z = map(np.asarray, (x, y, z))
    shape = np.broadcast(x, y, z).shape
    x, y, z = map(without_repetition, (x, y, z))
    there = np.broadcast(x, y, z)
    if out is not None and out.shape != there.shape:
        out = None
    into, carrier, size, temporaries = (_fma64_into, _F64, AT_ONCE64, 10) if dtype is float64 else \
        (functools.partial(_fma_into, dtype), _F32, AT_ONCE, 5)
    if there.size <= FEW:
        out = np.empty(there.shape or (1,), carrier) if out is None or not out.ndim else out
        into(out, x, y, z, np.empty((temporaries, *out.shape)))
    else:
        memory = np.empty((temporaries, min(there.size, size)))
        with np.nditer((x, y, z, out), _PIECES, _ACCESSES, (carrier,) * 4, order="K", buffersize=size) as pieces:
            out = pieces.operands[3]
            for a, b, c, r in pieces:
                into(r, a, b, c, memory[:, :r.size])
    return out if out.shape == shape else np.broadcast_to(out.reshape(there.shape), shape)


_PIECES = ["external_loop", "buffered", "zerosize_ok"]
_ACCESSES = [["readonly"]] * 3 + [["writeonly", "allocate"]]


def _fma_into(dtype: DType, r: np.ndarray, x: np.ndarray, y: np.ndarray, z: np.ndarray, memory: np.ndarray) -> None:
    """`r`: x * y + z of values of a dtype narrower than float64, and so of at most 24 bits.

    The product is exact: at most 48 bits. Rounding the rounded sum s to the dtype is right unless s is halfway between
    two values of the dtype, or at most 2**emin in size, and inexact; there s is first rounded to odd. Minima tell
    whether such elements exist.
    """
    p, s, dropped, missing, scratch = memory
    np.multiply(x, y, p, dtype=_F64)
    np.add(p, z, s, dtype=_F64)
    np.copyto(r, s if dtype is float32 else round_to(dtype, s), casting="same_kind")
    f = info(dtype).format
    bits = np.left_shift(s.view(np.uint64), np.uint64(12 + f.mantissa), dropped.view(np.uint64))  # in the top bits
    halfway = np.minimum.reduce(bits.view(_I64), None) == _HALFWAY if r.size else False
    least = 2.0**f.emin
    if halfway or not _all_beyond(r, least):
        _error_of_sum(p, z, s, missing, scratch)
        if np.count_nonzero(missing):
            wrong = (missing != 0) & ((bits == np.uint64(1 << 63)) | (np.abs(r) <= least))
            if wrong.any():
                r[wrong] = round_to(dtype, to_odd(s[wrong], missing[wrong]))


def _error_of_sum(a: np.ndarray, b: np.ndarray, s: np.ndarray, error: np.ndarray, scratch: np.ndarray) -> None:
    """The `error` of the rounded sum `s`, as `two_sum` finds it."""
    np.subtract(s, a, scratch)
    np.subtract(s, scratch, error)
    np.subtract(a, error, error)
    np.subtract(b, scratch, scratch)
    error += scratch


def _all_beyond(r: np.ndarray, least: float) -> bool:
    """Whether all magnitudes of float32 are greater: the smallest have the smallest bit patterns of either sign."""
    if not r.size:
        return True
    least = int(np.float32(least).view(np.int32))
    low = int(np.minimum.reduce(r.view(np.int32), None))
    return int(np.minimum.reduce(r.view(np.uint32), None)) > least and (low >= 0 or low + (1 << 31) > least)


def _fma64_into(r: np.ndarray, x: np.ndarray, y: np.ndarray, z: np.ndarray, memory: np.ndarray) -> None:
    """`r`: x * y + z of float64.

    The product is p + e and the sum p + z is s + t, exactly. With d = t + e, rounded, s + d rounds to the result unless
    d is inexact and s + d lies halfway between two numbers: their difference from s is a number, past which rounding
    does not carry t + e. There s + d, rounded, misses s + d by a power of two. Such elements, and those that come near
    the ends of the range, are computed by `_fma64`.
    """
    p, e, s, d, *others = memory
    a, al, b, bl, c, t = others
    _split_into(x, a, al, c)
    _split_into(y, b, bl, c)
    np.multiply(x, y, p)
    np.multiply(a, b, e)
    e -= p
    e += np.multiply(a, bl, t)
    e += np.multiply(al, b, t)
    e += np.multiply(al, bl, t)
    np.add(p, z, s)
    _error_of_sum(p, z, s, t, c)
    np.add(t, e, d)
    np.add(s, d, r)
    np.subtract(r, s, t)
    missed = np.subtract(d, t, t)
    zeros = r.size - np.count_nonzero(r)
    if zeros:  # of the sign that the sum has
        np.copyto(r, s, where=(r == 0) & (s == 0))
    fraction_bits = np.left_shift(missed.view(_I64), 12, c.view(_I64))
    powers = np.count_nonzero(missed) != np.count_nonzero(fraction_bits)
    tiny = not np.minimum.reduce(np.abs(p, a), None, initial=np.inf) >= _TINY
    if not (powers or tiny or not math.isfinite(np.add.reduce(missed, None))):
        return
    hard = ~np.isfinite(missed)
    if powers:
        at = np.nonzero((missed != 0) & (fraction_bits == 0))
        _, t = two_sum(p[at], np.broadcast_to(z, r.shape)[at])
        hard[at] |= two_sum(t, e[at])[1] != 0
    if tiny:
        hard |= (a < _TINY) & (x != 0) & (y != 0)
    if hard.any():
        r[hard] = _fma64(*(np.broadcast_to(v, r.shape)[hard] for v in (x, y, z)))


_TINY = 2.0**-900  # smaller products may have errors that float64 cannot hold


def _split_into(x: np.ndarray, high: np.ndarray, low: np.ndarray, scratch: np.ndarray) -> None:
    """`_split`."""
    np.multiply(x, 134217729.0, high)
    np.subtract(high, x, scratch)
    high -= scratch
    np.subtract(x, high, low)


def _fma64(x, y, z) -> np.ndarray:
    """x * y + z of float64, for all operands."""
    uh, ul = two_prod(x, y)
    th, tl = two_sum(z, ul)
    vh, vl = two_sum(uh, th)
    r = np.asarray(vh + to_odd(*map(np.asarray, two_sum(tl, vl))))
    plain = x * y + z
    simple = (x == 0) | (y == 0) | ~np.isfinite(plain)
    r = np.where(simple, plain, r)
    ax, ay, az = np.abs(x), np.abs(y), np.abs(z)
    safe = ((ax < 2.0**500) & (ay < 2.0**500) & (az < 2.0**1000) & (np.abs(uh) > 2.0**-900)
            & ((az > 2.0**-900) | (z == 0)))
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    r = np.where(np.isfinite(x) & np.isfinite(y) & np.isinf(z), z, r)
    hard = finite & ~safe & (x != 0) & (y != 0)
    return _by_fraction(hard, r, lambda a, b, c: _nearest64(fraction(a) * fraction(b) + fraction(c)), x, y, z)


def _by_fraction(where, r, exact, *xs) -> np.ndarray:
    """`r`, in which `exact(*elements of xs)`, called with Python floats, replaces the elements at `where`."""
    if not where.any():
        return r
    r = np.array(r)
    at = np.flatnonzero(where)
    r.flat[at] = [exact(*v) for v in zip(*(np.broadcast_to(x, r.shape).flat[at].tolist() for x in xs), strict=True)]
    return r


def fraction(x: float) -> Fraction:
    """A finite float as an exact number."""
    from fractions import Fraction  # few kernels need it, and its import takes long

    return Fraction(x)


def _nearest64(q: Fraction) -> float:
    try:
        return q.numerator / q.denominator  # correctly rounded, subnormals included
    except OverflowError:
        return math.inf if q > 0 else -math.inf


# ------------------------------------------------------------------ reciprocal root


def rsqrt(x) -> np.ndarray:
    """1 / sqrt(x) of float64, within 0.51 ulp."""
    compiled = form("rsqrt float64")
    return compiled(x) if compiled else _rsqrt(x)


def _rsqrt(x) -> np.ndarray:
    """Root and quotient are corrected by their rounding errors."""
    tiny = x < 2.0**-900  # scaled, so that products of the root keep their errors
    x = np.where(tiny, x * 2.0**200, x)
    s = np.sqrt(x)
    y = 1.0 / s
    p, e = two_prod(s, s)
    q, f = two_prod(y, s)
    root_missed = ((x - p) - e) / (2.0 * s)
    correction = y * (((1.0 - q) - f) - root_missed * y)
    y = np.where(np.isfinite(correction), y + correction, y)
    return np.where(tiny, y * 2.0**100, y)


# ------------------------------------------------------------------ directed rounding


def directed(name: str, mode: RoundingMode, dtype: DType, *xs) -> np.ndarray:
    """add, sub, mul, truediv or sqrt of carriers of `dtype`, rounded once in mode RN, RZ, RM or RP [RM-1]."""
    xs = np.broadcast_arrays(*(np.asarray(x, _F64) for x in xs))
    if name == "sub":
        name, xs = "add", [xs[0], -xs[1]]
    y, missing = _APPROXIMATE[name](*xs)
    y = np.asarray(y)
    if name == "add" and mode is RM:
        # When rounding down, an exact zero is -0, unless both operands are +0.
        positive_zeros = (xs[0] == 0) & (xs[1] == 0) & ~np.signbit(xs[0]) & ~np.signbit(xs[1])
        y = np.where((y == 0) & ~positive_zeros, -0.0, y)
    if dtype is not float64:
        return round_directed(dtype, to_odd(y, np.asarray(missing)), mode)
    return _directed64(mode, y, _missing64(name, y, np.asarray(missing), xs))


def _directed64(mode: RoundingMode, y: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """`y` is the result rounded to nearest. Returns its neighbour where the mode wants that."""
    if mode is RN:
        return y
    down = (missing < 0) if mode is RM else (missing < 0) & (y > 0) if mode is RZ else np.zeros_like(missing, np.bool_)
    up = (missing > 0) if mode is RP else (missing > 0) & (y < 0) if mode is RZ else np.zeros_like(missing, np.bool_)
    target = np.where(up, np.inf, -np.inf)
    return np.where(up | down, np.nextafter(y, target), y)


def _truediv(a, b):
    y = a / b
    p, e = two_prod(y, b)
    r = (a - p) - e
    return y, np.where(b < 0, -r, r)


def _sqrt(a):
    y = np.sqrt(a)
    p, e = two_prod(y, y)
    return y, (a - p) - e


_APPROXIMATE = {"add": two_sum, "mul": two_prod, "truediv": _truediv, "sqrt": _sqrt}
# The sign of (exact value - y), given finite operands and y.
_RESIDUAL = {
    "add": lambda y, a, b: fraction(a) + fraction(b) - fraction(y),
    "mul": lambda y, a, b: fraction(a) * fraction(b) - fraction(y),
    "truediv": lambda y, a, b: fraction(a) / fraction(b) - fraction(y),
    "sqrt": lambda y, a: fraction(a) - fraction(y) ** 2,
}


def _missing64(name: str, y, missing, xs) -> np.ndarray:
    """The sign of (exact − y), also where the transformations underflow or overflow."""
    finite = np.logical_and.reduce([np.isfinite(x) for x in xs])
    over = finite & np.isinf(y)
    if name == "truediv":
        over &= xs[1] != 0
    missing = np.where(over, -np.sign(y), np.where(np.isfinite(y) & finite, missing, 0.0))
    if name == "add":  # two_sum is exact up to its overflow
        hard = finite & ~over & (np.maximum(np.abs(xs[0]), np.abs(xs[1])) > 2.0**1020)
        return _by_fraction(hard, missing, _residual_sign(name), y, *xs)
    low, high = 2.0**-900, 2.0**900
    safe = np.logical_and.reduce([(np.abs(v) > low) & (np.abs(v) < high) for v in (*xs, y)])
    zero = np.logical_or.reduce([x == 0 for x in xs])
    hard = finite & ~over & ~safe & ~zero & ~np.isnan(y)
    return _by_fraction(hard, missing, _residual_sign(name), y, *xs)


def _residual_sign(name: str):
    def sign(*v: float) -> float:
        q = _RESIDUAL[name](*v)
        return float((q > 0) - (q < 0))

    return sign
