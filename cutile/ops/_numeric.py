"""The numbers behind the meanings: casts, integer and floating-point arithmetic on carriers.

NumPy carriers of any shape in and out, no knowledge of ops or IR. `_exact` has arithmetic that is exact or
rounded once, `_rounding` and `_encoding` have the formats; meanings reach all of it through this module. Where the
language leaves a result undefined, the value given here is that of the hardware we measured, or one that we chose.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from cutile._support.strides import without_repetition
from cutile.compiled import DOUBTFUL, form
from cutile.dtypes import DType, bfloat16, bool_, float16, float32, float64, info
from cutile.ops._encoding import (
    decoder,
    encoder,
    from_bits,
    pack_f4,
    stored_bits,
    to_bits,
    to_carrier,
    to_storage,
    unpack_f4,
)
from cutile.ops._exact import directed, fma, rsqrt
from cutile.ops._rounding import encode, round_directed, round_to, rounding_to
from cutile.types import RoundingMode

__all__ = [
    "cdiv", "choice", "convert", "decoder", "directed", "encode", "encoder", "float_floordiv", "float_mod", "float_pow",
    "floordiv", "flush", "fma", "from_bits", "int_pow", "inverse_root", "maximum", "minimum", "mod", "pack_f4",
    "pow_by_squaring", "round_to", "rounding_to", "rsqrt", "shift_left", "shift_right", "stored_bits", "to_bits",
    "to_carrier", "to_storage", "unpack_f4", "wide",
]

_F32, _F64 = np.float32, np.float64


def wide(fn: Callable, *xs, out: np.ndarray | None = None, dtype: DType | None = None) -> np.ndarray:
    """`fn` evaluated in float64. The framework then rounds the result to its dtype, once. With `out`, NumPy rounds as
    it writes. Given `dtype`, that of the result, the result may already be rounded to it.
    """
    compiled = form(name) if (name := _FUNCTIONS.get((fn, dtype))) else None
    if compiled:
        if out is not None and any(np.may_share_memory(x, out) for x in xs):
            out = None  # the doubtful results are computed again from the operands, which `out` must not overwrite
        return compiled(*xs, out, functools.partial(_mend, fn, dtype))
    if out is not None and isinstance(fn, np.ufunc):
        return fn(*xs, out=out, dtype=_F64, casting="same_kind")
    return fn(*(np.asarray(x).astype(_F64, copy=False) for x in xs))


def inverse_root(x):
    """1 / sqrt(x). Two roundings in float64 hardly ever show in a narrower result."""
    return 1.0 / np.sqrt(x)


_NAMES = {f: f.__name__ for f in (np.exp, np.exp2, np.log, np.log2, np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh)}
_FUNCTIONS = {(f, d): f"{name} {d.name}" for d in (float16, bfloat16, float32)
              for f, name in {**_NAMES, inverse_root: "rsqrt"}.items()}


def _mend(fn: Callable, dtype: DType, x: np.ndarray, result: np.ndarray) -> None:
    """Set the elements of a compiled form's result that it could not decide."""
    x, result = without_repetition(np.asarray(x))[np.newaxis], result[np.newaxis]
    doubtful = result.view(np.uint32) == np.uint32(DOUBTFUL)
    where = np.unravel_index(np.flatnonzero(doubtful), doubtful.shape)  # few: indices cost less than a mask
    result[where] = round_to(dtype, fn(x[where].astype(_F64)))


def flush(x) -> np.ndarray:
    """Float32 subnormals become zero of the same sign [FTZ-1]; other carriers pass."""
    x = np.asarray(x)
    if x.dtype != _F32:
        return x
    tiny = np.abs(x) < _F32(2.0**-126)
    return np.where(tiny, np.copysign(_F32(0), x), x) if tiny.any() else x


# ------------------------------------------------------------------ casts


def convert(x, src: DType, dst: DType, mode: RoundingMode = RoundingMode.RN,
            out: np.ndarray | None = None) -> np.ndarray:
    """The run-time cast from `src` to `dst` [CAST-1…13]. `mode` is used only between floats.

    The result may go into `out`, which may be `x`.
    """
    x = np.asarray(x)
    if src is dst:
        return x
    s, d = info(src), info(dst)
    if dst is bool_:
        return np.not_equal(x, 0, out=out)  # NaN is True, -0.0 False
    if d.floating:
        return _float_to_float(x, dst, mode, out) if s.floating else _int_to_float(x, dst, out)
    return _float_to_int(x, src, dst, out) if s.floating else _cast(x, d.carrier, out)


def _cast(x: np.ndarray, carrier: np.dtype, out: np.ndarray | None) -> np.ndarray:
    """As NumPy casts, into `out` where that has the shape."""
    if out is None or out.shape != x.shape or out.dtype != carrier:
        return x.astype(carrier)
    np.copyto(out, x, casting="unsafe")
    return out


def _float_to_float(x: np.ndarray, dst: DType, mode: RoundingMode, out: np.ndarray | None) -> np.ndarray:
    if dst is float64:
        return _cast(x, np.dtype(_F64), out) if x.dtype != _F64 else x
    if mode is RoundingMode.RN:
        return round_to(dst, x, out)
    return round_directed(dst, x.astype(_F64, copy=False), mode)


def _int_to_float(x: np.ndarray, dst: DType, out: np.ndarray | None = None) -> np.ndarray:
    """Rounded once. To formats of 8 or fewer bits it goes through float16, as hardware does [CAST-4]."""
    if dst in (float32, float64):
        return _cast(x, info(dst).carrier, out)
    if dst.bitwidth <= 8:
        return round_to(dst, _int_to_float(x, float16))
    if x.dtype.itemsize == 8:
        # The low 12 bits only say on which side of a tie the number is.
        low = x & x.dtype.type(0xFFF)
        fits = np.abs(x.astype(_F64)) < 2.0**53
        sticky = ((x - low) | (low != 0).astype(x.dtype) * x.dtype.type(0x800)).astype(_F64)
        return round_to(dst, np.where(fits, x.astype(_F64), sticky))
    return round_to(dst, x.astype(_F64))


def _float_to_int(x: np.ndarray, src: DType, dst: DType, out: np.ndarray | None = None) -> np.ndarray:
    """Truncation; out of range as hardware does it [CAST-5, D-54, MEAS-11].

    Beyond 16 bits or more   the nearest end of the range
    Beyond 8 bits            the low byte of the nearest end of the range of 16 bits
    NaN                      0; for 64-bit targets, and from float64, only the highest bit set
    """
    signed, width = info(dst).kind == "i", max(dst.bitwidth, 16)
    low, high = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if signed else (0.0, 2.0**width)
    if x.size and x.min() >= low and x.max() < high:  # so no NaN either
        carrier = info(dst).carrier
        if carrier.itemsize >= 4 and (signed or width == 64):  # it holds what is truncated
            return _cast(x, carrier, out)
        return _cast(_truncate(x, width, signed), carrier, out)
    below, above, nan = x < low, x >= high, np.isnan(x)
    wide_dtype = np.dtype(f"{'i' if signed else 'u'}{width // 8}")
    limits = np.iinfo(wide_dtype)
    y = _truncate(np.where(below | above | nan, x.dtype.type(0), x), width, signed).astype(wide_dtype)
    y = np.where(below, wide_dtype.type(limits.min), np.where(above, wide_dtype.type(limits.max), y))
    if width == 64 or src is float64:
        top = limits.min if signed else (limits.max >> 1) + 1
        y = np.where(nan, wide_dtype.type(top), y)
    return y.astype(info(dst).carrier)


def _truncate(x: np.ndarray, width: int, signed: bool) -> np.ndarray:
    """x truncated, in an integer dtype that holds every number of `width` bits."""
    if width == 64:
        return x.astype(np.int64 if signed else np.uint64)
    return x.astype(np.int32 if signed or width == 16 else np.int64)


# ------------------------------------------------------------------ integers


def _zeros(y) -> np.ndarray | None:
    zero = without_repetition(np.asarray(y)) == 0
    return zero if zero.any() else None


def floordiv(x, y) -> np.ndarray:
    """Integer division rounding down.

    By zero: -1 for x >= 0, -2 for x < 0; all bits set for unsigned [D-50]. INT_MIN // -1 is INT_MIN [D-52].
    """
    zero = _zeros(y)
    q = np.floor_divide(x, y)
    if zero is None:
        return q
    of_zero = np.where(np.asarray(x) >= 0, _minus(1, q.dtype), _minus(2, q.dtype))
    return np.where(zero, of_zero, q)


def mod(x, y) -> np.ndarray:
    """Integer remainder with the sign of the divisor. By zero: all bits set, that is -1 [D-51]. INT_MIN % -1 is 0."""
    zero = _zeros(y)
    r = _remainder(x, y)
    return r if zero is None else np.where(zero, _minus(1, r.dtype), r)


def _remainder(x, y) -> np.ndarray:
    """np.remainder of integers. For one divisor NumPy multiplies instead of dividing, but only in floor_divide: by
    that way, remainders take a fifth of the time [measured].
    """
    if np.size(y) > 1:
        return np.remainder(x, y)
    q = np.asarray(np.floor_divide(x, y))
    q *= y
    return np.subtract(x, q, out=q)


def cdiv(x, y) -> np.ndarray:
    """Integer division rounding up. By zero: one more than floordiv gives, 0 or -1 [MEAS-13]."""
    q = floordiv(x, y)
    zero = _zeros(y)
    up = _remainder(x, y) != 0
    return q + (up if zero is None else up | zero).astype(q.dtype)


def choice(cond, x, y, out: np.ndarray | None = None) -> np.ndarray:
    """x where cond is true, y elsewhere."""
    x, y = np.asarray(x), np.asarray(y)
    compiled = form(f"where {x.dtype.name}") if x.dtype == y.dtype and np.size(cond) > 1 else None
    if compiled is None:
        return np.where(cond, x, y)
    return compiled(cond, x, y, _apart(out, cond, x, y))


def _apart(out: np.ndarray | None, *operands: np.ndarray) -> np.ndarray | None:
    """`out` where a compiled form may write to it: it is an operand, or shares no memory with one."""
    return None if out is None or any(x is not out and np.may_share_memory(x, out) for x in operands) else out


def _minus(n: int, dtype: np.dtype):
    return np.array(-n, np.int64).astype(dtype)[()]


def shift_left(x, y, out=None) -> np.ndarray:
    """x << y. The amount is read as unsigned; amounts of the width or more give 0 [BIT-3, D-53]."""
    x = np.asarray(x)
    amount, beyond = _amount(x, y)
    r = np.left_shift(x, amount, out=out)
    return r if beyond is None else np.where(beyond, x.dtype.type(0), r)


def shift_right(x, y, out=None) -> np.ndarray:
    """x >> y, arithmetic for signed. Amounts of the width or more leave only copies of the sign, or 0 [BIT-3, D-53]."""
    x = np.asarray(x)
    amount, beyond = _amount(x, y)
    r = np.right_shift(x, amount, out=out)
    return r if beyond is None or x.dtype.kind == "i" else np.where(beyond, x.dtype.type(0), r)


def _amount(x: np.ndarray, y) -> tuple[np.ndarray, np.ndarray | None]:
    """The shift amounts in the dtype of `x`, at most width - 1, and a mask of those ≥ width, None if there are none."""
    width, y = 8 * x.dtype.itemsize, np.asarray(y)
    if y.size > 1 and not any(y.strides) and np.broadcast_shapes(x.shape, y.shape) == x.shape:
        y = y[(0,) * y.ndim]  # one amount, as of a constant, is looked at once
    # Of a 64-bit amount only the low 32 bits are looked at.
    u = np.asarray(y).astype(np.dtype(f"u{min(x.dtype.itemsize, 4)}"))
    beyond = u >= width
    last = x.dtype.type(width - 1)
    if not beyond.any():
        return u.astype(x.dtype), None
    return np.where(beyond, last, u.astype(x.dtype)), beyond


def int_pow(x, n) -> np.ndarray:
    """x ** n by repeated squaring, wrapping. For negative n the exact power is truncated: 0 unless x is 1 or -1.

    0 ** n is 0 for negative n.
    """
    x, n = np.asarray(x), without_repetition(np.asarray(n))
    if n.size == 1 and n.item() >= 0:
        return _power(x, n.item(), np.broadcast_shapes(x.shape, n.shape))
    x, n = np.broadcast_arrays(x, n)
    one = x.dtype.type(1)
    e, base, r = n.copy(), x.copy(), np.full_like(x, 1)
    negative = e < 0
    e[negative] = 0
    while e.any():
        r = np.where(e & 1, r * base, r)
        base = base * base
        e >>= 1
    if negative.any():
        unit = np.where(x == one, one, np.where((n & 1) != 0, x, one))  # powers of 1 or -1
        is_unit = (x == one) | (x == _minus(1, x.dtype)) if x.dtype.kind == "i" else x == one
        r = np.where(negative, np.where(is_unit, unit, x.dtype.type(0)), r)
    return r


def _power(x: np.ndarray, n: int, shape: tuple[int, ...]) -> np.ndarray:
    """x ** n for one n, not negative. Products that wrap do not depend on their order."""
    r, base = None, x
    while n:
        if n & 1:
            r = base if r is None else np.multiply(r, base)
        n >>= 1
        base = np.multiply(base, base) if n else base
    return np.broadcast_to(np.ones((), x.dtype) if r is None else r, shape)


# ------------------------------------------------------------------ floats


def float_floordiv(x, y, dtype: DType) -> np.ndarray:
    """floor of the quotient rounded to `dtype` [ARITH-5, MEAS-1]."""
    return np.floor(round_to(dtype, np.true_divide(x, y)))


def float_mod(x, y) -> np.ndarray:
    """The exact remainder of truncated division; where the remainder is not zero and its sign is not y's, y is added to
    it [ARITH-7].
    """
    r = np.fmod(x, y)
    add = (r != 0) & (np.signbit(r) != np.signbit(y))
    return np.where(add, r + y, r) if add.any() else r


def minimum(x, y, propagate_nan: bool, out: np.ndarray | None = None) -> np.ndarray:
    """The smaller. Of a NaN and a number: the number, or NaN if `propagate_nan`. -0 < +0 [ARITH-9]."""
    return _extreme("minimum", np.minimum, x, y, propagate_nan, out)


def maximum(x, y, propagate_nan: bool, out: np.ndarray | None = None) -> np.ndarray:
    """The larger. Of a NaN and a number: the number, or NaN if `propagate_nan`. -0 < +0 [ARITH-9]."""
    return _extreme("maximum", np.maximum, x, y, propagate_nan, out)


def _extreme(name: str, of_integers: np.ufunc, x, y, propagate_nan: bool, out: np.ndarray | None) -> np.ndarray:
    x, y = np.asarray(x), np.asarray(y)
    floats = x.dtype.kind == "f"
    compiled = form(f"{name}{' or nan' * (propagate_nan and floats)} {x.dtype.name}") if x.dtype == y.dtype else None
    if compiled is None:
        return _extreme_of_floats(name, x, y, propagate_nan) if floats else of_integers(x, y, out=out)
    return compiled(x, y, _apart(out, x, y))


_OF_FLOATS = {"minimum": (np.minimum, np.fmin, np.bitwise_or), "maximum": (np.maximum, np.fmax, np.bitwise_and)}


def _extreme_of_floats(name: str, x: np.ndarray, y: np.ndarray, propagate_nan: bool) -> np.ndarray:
    """The NumPy form."""
    strict, lenient, of_zeros = _OF_FLOATS[name]
    r = np.asarray((strict if propagate_nan else lenient)(x, y))
    zeros = x == 0
    if zeros.any():
        zeros = zeros & (y == 0)
        if zeros.any():  # two zeros differ in the sign bit only
            word = np.dtype(f"u{x.dtype.itemsize}")
            np.copyto(r.view(word), of_zeros(x.view(word), y.view(word)), where=zeros)
    if propagate_nan:
        nan = np.isnan(r)
        if nan.any():
            r = np.where(nan, x.dtype.type(np.nan), r)
    return r


def float_pow(x, y) -> np.ndarray:
    """x ** y in float64, with the special cases of C's pow [POW-2].

    Every element gets its own exponent: for a shared one NumPy takes shortcuts (a root for 0.5) with other special
    cases, and the bits of a result would depend on the shapes.
    """
    x, y = np.broadcast_arrays(np.asarray(x, _F64), np.asarray(y, _F64))
    return np.power(x.ravel(), y.ravel()).reshape(x.shape)


def pow_by_squaring(x, n, dtype: DType) -> np.ndarray:
    """x ** n for integers n, by the algorithm of POW-1: steps in float32 or wider, the result rounded to `dtype`."""
    if dtype in (float16, bfloat16):
        return round_to(dtype, pow_by_squaring(x, n, float32))
    one_power = without_repetition(n)
    if one_power.size == 1:
        return np.broadcast_to(_squared(x, one_power.item(), dtype), np.broadcast_shapes(x.shape, n.shape))
    x, n = np.broadcast_arrays(x, n)
    e = np.abs(n.astype(np.int64))
    r = np.where(e & 1, x, x.dtype.type(1))
    e >>= 1
    while e.any():
        x = round_to(dtype, x * x)
        r = np.where(e & 1, round_to(dtype, x * r), r)
        e >>= 1
    negative = n < 0
    return np.where(negative, round_to(dtype, x.dtype.type(1) / r), r) if negative.any() else r


def _squared(x: np.ndarray, n: int, dtype: DType) -> np.ndarray:
    """pow_by_squaring for one n."""
    one, e = x.dtype.type(1), abs(n)
    r = x if e & 1 else None
    while e := e >> 1:
        x = round_to(dtype, x * x)
        if e & 1:
            r = x if r is None else round_to(dtype, x * r)
    r = np.full(x.shape, one) if r is None else r
    return round_to(dtype, one / r) if n < 0 else r
