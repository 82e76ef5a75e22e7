"""Rounding to the floating-point formats, and conversion of Python numbers to constants.

Everything works on carriers of any shape and knows nothing of ops. A format with `m` fraction bits and smallest normal
exponent `emin` has, among values of exponent `e`, the integer multiples k * 2**(max(e, emin) - m). So
rounding means choosing k. Where the carrier, with p fraction bits, is wider than the format, rounding adds
1.5 * 2**(max(e, emin) + p - m) and subtracts it again. The last place of the sum is that of the format, so the addition
itself rounds to nearest even, also to subnormals.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from cutile.compiled import form
from cutile.dtypes import INFO, DType, bfloat16, float16, float32, float64, info, tfloat32
from cutile.types import RoundingMode

RN, RZ, RM, RP, RA = (RoundingMode[n] for n in ("RN", "RZ", "RM", "RP", "RA"))

_U32, _F32, _F64 = np.uint32, np.float32, np.float64
_EXPONENT = _U32(0x7F800000)

# ------------------------------------------------------------------ rounding


def round_to(dtype: DType, x, out: np.ndarray | None = None) -> np.ndarray:
    """Round to the values of `dtype`, nearest even, once. `x` is the dtype's carrier or float64.

    Overflow gives infinity, and saturates in the 8- and 4-bit formats [CAST-6, CAST-7]. The result may go into `out`,
    which may be `x`.
    """
    x = np.asarray(x)
    i = info(dtype)
    if i.kind != "f" or dtype is float64:
        if x.dtype != i.carrier:
            raise TypeError(f"a result of dtype {dtype.name} must be carried in {i.carrier}, not {x.dtype}")
        return x
    if x.dtype != _F32 and x.dtype != _F64:
        raise TypeError(f"a result of dtype {dtype.name} must be float32 or float64 before rounding, not {x.dtype}")
    if dtype is float32:
        return x.astype(_F32, copy=False)
    compiled = form(_FORMS[dtype, x.dtype.char])
    if compiled:
        return compiled(x, None if out is None or out.dtype != _F32 else out)
    return _round(dtype, x, out)


def rounding_to(dtype: DType) -> Callable:
    """`round_to` for one dtype under the settings of now, which is quicker: emitted code calls it after each op."""
    return _rounding_by(dtype, form(_FORMS.get((dtype, "f"))))


@functools.cache
def _rounding_by(dtype: DType, compiled: Callable | None) -> Callable:
    if compiled is None:
        return functools.partial(round_to, dtype)
    carrier = np.dtype(_F32)

    def rounded(x):
        if type(x) is np.ndarray and x.dtype is carrier:
            return compiled(x)
        return round_to(dtype, x)

    return rounded


# The names of the compiled forms, by the format and the dtype that is rounded.
_FORMS = {(d, t): f"round {t} to {d.name}" for d, i in INFO.items() if i.kind == "f" and d not in (float32, float64)
          for t in "fd"}


def _round(dtype: DType, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """What `round_to` gives, for the formats that float32 carries."""
    if dtype in (bfloat16, tfloat32):
        # Same exponents as float32: overflow and subnormals need no care.
        if x.dtype == _F32:
            return _drop_bits(x, 23 - info(dtype).format.mantissa)
        return _nearest(x, dtype)[0].astype(_F32)
    if dtype is float16:
        y, large = _nearest(x, dtype, out)
        y = y.astype(_F32, copy=False)
        return _overflow16(y) if large else y
    y, large = _nearest(x.astype(_F64, copy=False), dtype)
    return saturate(dtype, y) if large or not info(dtype).format.signed else y.astype(_F32)


def _drop_bits(x: np.ndarray, n: int) -> np.ndarray:
    """Round float32 to nearest even with `n` fraction bits less."""
    u = x.view(_U32)
    r = u >> _U32(n)
    r = np.asarray(r)
    r &= _U32(1)
    r += _U32((1 << (n - 1)) - 1)
    r += u
    r &= _U32(0xFFFFFFFF << n & 0xFFFFFFFF)
    nan = np.isnan(x)
    if nan.any():  # rounding could carry out of the fraction of a NaN, into its exponent
        r = np.where(nan, quiet_top(u, n), r)
    return r.view(_F32)


def quiet_top(u: np.ndarray, n: int) -> np.ndarray:
    """The bits of NaNs without the last `n` of their fraction. If the others are 0 the quiet bit is set, so that the
    value stays a NaN.
    """
    cut = u & _U32(0xFFFFFFFF << n & 0xFFFFFFFF)
    return np.where(cut & _U32(0x007FFFFF), cut, cut | _U32(0x00400000))


def _nearest(x: np.ndarray, dtype: DType, out: np.ndarray | None = None) -> tuple[np.ndarray, bool]:
    """Round float32 or float64 to the last place of the format, nearest even. Values too large for it stay so: the
    caller treats overflow.

    Also returns whether any value is too large, infinite or NaN. The result goes into `out` if that has the shape and
    dtype of `x`.
    """
    f = info(dtype).format
    top = math.frexp(f.max)[1]  # one more than the exponent of the largest value
    if x.dtype == _F32:
        u, mask, bits, bias, word = x.view(_U32), _EXPONENT, 23, 127, _U32
    else:
        u, mask, bits, bias, word = x.view(np.uint64), np.uint64(0x7FF << 52), 52, 1023, np.uint64
    sign = word(1 << (8 * x.dtype.itemsize - 1))
    peak = u.max()
    signed = peak >= sign
    if signed:
        peak = (u & (sign - word(1))).max()
    large = bool(peak >= x.dtype.type(f.max + 2.0 ** (top - 2 - f.mantissa)).view(word))
    added = np.asarray(u & mask)  # what is added and subtracted; first as bits
    np.maximum(added, word((f.emin + bias) << bits), out=added)
    if large:
        np.minimum(added, word((top + bias) << bits), out=added)
    added += word(((bits - f.mantissa) << bits) | (1 << (bits - 1)))
    added = added.view(x.dtype)
    negative = u & sign if signed else None
    fits = out is not None and (out.shape, out.dtype) == (x.shape, x.dtype)
    r = np.asarray(np.add(x, added, out=out if fits else None))
    r -= added
    if negative is not None:
        w = r.view(word)
        w |= negative  # the sign of -0, and of what rounds to it, is lost by then
    return r, large


def _overflow16(x: np.ndarray) -> np.ndarray:
    """Magnitudes of 65536 and more become infinite, because scaled by 2**112 they overflow float32."""
    x *= _F32(2.0**112)
    x *= _F32(2.0**-112)
    return x


def saturate(dtype: DType, x: np.ndarray) -> np.ndarray:
    """Clamp to the finite range of an 8- or 4-bit format.

    NaN stays NaN; in float4, which has none, it becomes the largest value. In the unsigned formats zeros and what
    underflows become the smallest value; negative numbers become 0 in float8_e5m3fnu and NaN in float8_e8m0fnu, which
    has no zero [CAST-12, D-72].
    """
    f = info(dtype).format
    low = -f.max if f.signed else 0.0 if f.has_zero else 2.0**f.emin
    y = np.asarray(np.clip(x, low, f.max), dtype=_F32)
    if not f.signed:
        y = np.abs(y)
    if not f.has_zero:
        y = np.where(x < 0, _F32(np.nan), y)
    if not f.has_nan:
        y = np.where(np.isnan(x), _F32(f.max), y)
    return y


def round_directed(dtype: DType, x: np.ndarray, mode: RoundingMode) -> np.ndarray:
    """Round float64 to `dtype` in any mode, once [CAST-9]. Infinities stay, except in formats that saturate."""
    if mode is RN:
        return round_to(dtype, x)
    if dtype is float64:
        return x
    f = info(dtype).format
    e = np.frexp(x)[1] - 1
    shift = np.maximum(e, f.emin) - f.mantissa
    y = np.asarray(np.ldexp(_TO_INTEGER[mode](np.ldexp(x, -shift)), shift))
    if not (f.has_inf or dtype is tfloat32):
        return saturate(dtype, np.where(x < 0, -1.0, y) if not f.has_zero else y)
    over = (np.abs(y) > f.max) & np.isfinite(x)
    stays_finite = {RZ: True, RM: y > 0, RP: y < 0, RA: False}[mode]
    y = np.where(over, np.copysign(np.where(stays_finite, f.max, np.inf), y), y)
    return y.astype(_F32)


def _half_away(k: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(k) + 0.5), k)


_TO_INTEGER = {RZ: np.trunc, RM: np.floor, RP: np.ceil, RA: _half_away}

# ------------------------------------------------------------------ constants


def encode(value: bool | int | float, dtype: DType) -> bool | int | float:
    """A Python number as a constant of `dtype` [ENC-1…3]. ValueError where the format cannot express it."""
    kind = info(dtype).kind
    if kind == "b":
        return value != 0
    if kind in "iup":
        return _encode_int(value, dtype)
    if dtype is float64:
        return _float(value)
    return _encode_float(value, dtype)


def _encode_int(value: bool | int | float, dtype: DType) -> int:
    """Truncate toward zero, then wrap [ENC-3]."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} has no integer value")
    n = int(value) & ((1 << dtype.bitwidth) - 1)
    return n - (1 << dtype.bitwidth) if info(dtype).kind == "i" and n >> (dtype.bitwidth - 1) else n


def _float(value: bool | int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _encode_float(value: bool | int | float, dtype: DType) -> float:
    f = info(dtype).format
    v = _float(_sticky(value) if isinstance(value, int) else value)
    if not f.has_nan and math.isnan(v):
        raise ValueError("the format has no NaN")
    if not f.signed and math.copysign(1.0, v) < 0 and not math.isnan(v):
        raise ValueError("the format has no negative values" + (" and no -0.0" if v == 0 else ""))
    with np.errstate(all="ignore"):
        if dtype.bitwidth == 8:  # these saturate at run time, but not as constants [D-20]
            return _overflowing(v, dtype)
        return float(round_to(dtype, np.float64(v)))


def _overflowing(v: float, dtype: DType) -> float:
    """Round to an 8-bit format; overflow gives infinity if there is one, else NaN [ENC-1]."""
    f = info(dtype).format
    y = float(_nearest(np.asarray(v, _F64), dtype)[0]) if math.isfinite(v) else v
    if abs(y) > f.max:
        return math.copysign(math.inf, y) if f.has_inf else math.nan
    return y if f.has_zero or not y < 2.0**f.emin else 2.0**f.emin


def _sticky(n: int) -> int:
    """An integer of at most 53 significant bits that rounds to every narrower format as `n` does."""
    drop = abs(n).bit_length() - 53
    if drop <= 0:
        return n
    top, rest = abs(n) >> drop, abs(n) & ((1 << drop) - 1)
    top = (top | (rest != 0)) << drop
    return -top if n < 0 else top
