"""The bits of every dtype, and how arrays store its elements.

`to_bits` and `from_bits` are inverses, and so are `to_carrier` and `to_storage`. `x` holds values of the dtype, in its
carrier, of any shape.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from cutile.compiled import form
from cutile.dtypes import DType, bfloat16, bool_, float4_e2m1fn, float16, info, tfloat32
from cutile.ops._rounding import quiet_top

_U32, _F32 = np.uint32, np.float32
_MAGNITUDE = _U32(0x7FFFFFFF)
_EXPONENT = _U32(0x7F800000)

# ------------------------------------------------------------------ bits


def _word(dtype: DType) -> np.dtype:
    return np.dtype(f"u{info(dtype).storage.itemsize}")


def _own_bits(dtype: DType) -> bool:
    """The carrier's bits are the dtype's bits."""
    return info(dtype).carrier == info(dtype).storage and dtype is not tfloat32


def to_bits(x: np.ndarray, dtype: DType) -> np.ndarray:
    """The encoding as unsigned integers of the dtype's width; one code in a byte for float4. NaN payloads are kept."""
    x = np.asarray(x)
    if _own_bits(dtype) or dtype is tfloat32:
        return x.view(_word(dtype))
    f = info(dtype).format
    word = _word(dtype)
    width = dtype.bitwidth
    u = x.view(_U32)
    mag = np.asarray(u & _MAGNITUDE)
    if f.emin > -126:
        # After this scaling the exponent field of float32 equals that of the format, also for subnormals.
        np.multiply(mag.view(_F32), _F32(2.0 ** (-126 - f.emin)), out=mag.view(_F32))
    mag >>= _U32(23 - f.mantissa)
    mag &= _U32((1 << (width - f.signed)) - 1)
    if f.signed:
        sign = np.asarray(u >> _U32(32 - width))
        sign &= _U32(1 << (width - 1))
        mag |= sign
    nan = np.isnan(x)
    if f.has_nan and nan.any():
        mag = np.where(nan, _nan_codes(u, dtype), mag)
    return mag.astype(word)


def _nan_codes(u: np.ndarray, dtype: DType) -> np.ndarray:
    f, width = info(dtype).format, dtype.bitwidth
    if not f.has_inf:
        code = _U32((1 << (width - f.signed)) - 1)
    else:
        fraction = (u >> _U32(23 - f.mantissa)) & _U32((1 << f.mantissa) - 1)
        fraction = np.where(fraction, fraction, _U32(1 << (f.mantissa - 1)))
        code = fraction | _U32(((1 << (width - 1)) - 1) ^ ((1 << f.mantissa) - 1))
    return code | (u >> _U32(32 - width)) & _U32(1 << (width - 1)) if f.signed else code


def from_bits(bits: np.ndarray, dtype: DType) -> np.ndarray:
    """The carrier of the numbers that unsigned integers encode. tfloat32 ignores the low 13 bits of its word."""
    bits = np.asarray(bits)
    if dtype is bool_:
        return bits != 0
    if _own_bits(dtype):
        return bits.view(info(dtype).carrier)
    if dtype is tfloat32:
        cut = bits & _U32(0xFFFFE000)
        nan = np.isnan(bits.view(_F32))
        return (np.where(nan, quiet_top(bits, 13), cut) if nan.any() else np.asarray(cut)).view(_F32)
    if dtype is not bfloat16 and dtype is not float16:
        return _table(dtype).take(bits)
    compiled = form(_DECODE[dtype])
    return compiled(bits) if compiled else _decode(dtype, bits)


def decoder(dtype: DType) -> Callable[[np.ndarray], np.ndarray]:
    """`from_bits` for one dtype under the settings of now."""
    return form(_DECODE.get(dtype)) or functools.partial(from_bits, dtype=dtype)


_DECODE = {d: f"decode {d.name}" for d in (bfloat16, float16)}  # names of compiled forms
_ENCODE = {d: f"encode {d.name}" for d in (bfloat16, float16)}


def _decode(dtype: DType, bits: np.ndarray) -> np.ndarray:
    """What `from_bits` gives, for the formats of 16 bits."""
    if dtype is float16:
        return _decode16(bits)
    u = np.asarray(bits.astype(_U32))
    u <<= _U32(16)
    return u.view(_F32)


def _decode16(bits: np.ndarray) -> np.ndarray:
    """Shift exponent and fraction to where float32 has them, clear the copied sign bits, then correct the bias."""
    w = np.asarray(bits.view(np.int16).astype(np.int32))
    w <<= np.int32(13)
    w &= np.int32(-0x70002000)  # 0x8FFFE000
    y = w.view(_F32)
    special = None
    if bits.size and (bits & np.uint16(0x7FFF)).max() >= 0x7C00:
        special = (w & np.int32(0x0F800000)) == np.int32(0x0F800000)
    y *= _F32(2.0**112)
    if special is not None:
        w[special] |= np.int32(0x7F800000)
    return y


@functools.cache
def _table(dtype: DType) -> np.ndarray:
    """The value of every code of an 8- or 4-bit format. Codes of float4 above 15 read as their low nibble."""
    values = np.array([_value_of(dtype, code) for code in range(1 << dtype.bitwidth)], _F32)
    u = values.view(_U32)
    f = info(dtype).format
    if f.has_inf:  # keep NaN payloads
        codes = np.arange(256, dtype=_U32)
        nan = np.isnan(values)
        u[nan] = (_EXPONENT | (codes & _U32((1 << f.mantissa) - 1)) << _U32(23 - f.mantissa)
                  | (codes >> _U32(7)) << _U32(31))[nan]
    return np.tile(values, 16) if dtype is float4_e2m1fn else values


def _value_of(dtype: DType, code: int) -> float:
    f = info(dtype).format
    sign = -1.0 if f.signed and code >> (dtype.bitwidth - 1) else 1.0
    mag = code & ((1 << (dtype.bitwidth - f.signed)) - 1)
    field, fraction = mag >> f.mantissa, mag & ((1 << f.mantissa) - 1)
    ones = (1 << (dtype.bitwidth - f.signed - f.mantissa)) - 1
    if f.has_inf and field == ones:
        return math.nan if fraction else sign * math.inf
    if f.has_nan and not f.has_inf and mag == (1 << (dtype.bitwidth - f.signed)) - 1:
        return math.copysign(math.nan, sign)
    if not f.has_zero:
        return 2.0 ** (field + f.emin)
    if field == 0:
        return sign * fraction * 2.0 ** (f.emin - f.mantissa)
    return sign * (1 + fraction * 2.0**-f.mantissa) * 2.0 ** (field - 1 + f.emin)


# ------------------------------------------------------------------ storage


def to_carrier(stored: np.ndarray, dtype: DType) -> np.ndarray:
    """The carrier of elements as arrays store them. No copy where the two are the same."""
    stored = np.asarray(stored)
    if _own_bits(dtype):
        return stored
    return from_bits(stored.view(_word(dtype)), dtype)


def to_storage(x: np.ndarray, dtype: DType) -> np.ndarray:
    """The elements as an array stores them; `x` holds values of `dtype`. No copy where the two are the same."""
    x = np.asarray(x)
    if _own_bits(dtype) or dtype is tfloat32:
        return x
    return stored_bits(x, dtype).view(info(dtype).storage)


def stored_bits(x: np.ndarray, dtype: DType) -> np.ndarray:
    """The bits of what `to_storage` gives, for formats that are not stored as carriers. NaNs of float16 become
    quiet.
    """
    if dtype is not bfloat16 and dtype is not float16:
        return to_bits(x, dtype)
    compiled = form(_ENCODE[dtype])
    return compiled(x) if compiled else _encode(dtype, x)


def encoder(dtype: DType) -> Callable[[np.ndarray, np.ndarray], None]:
    """For one dtype, a function (out, x) that puts `stored_bits`, under the settings of now, into an array, to whose
    shape they broadcast.
    """
    return _encoder_by(dtype, form(_ENCODE.get(dtype)))


@functools.cache
def _encoder_by(dtype: DType, compiled: Callable | None) -> Callable[[np.ndarray, np.ndarray], None]:
    def put(out, x):
        if compiled is None:
            out[...] = stored_bits(x, dtype)
        elif (bits := compiled(x, out)) is not out:
            out[...] = bits

    return put


def _encode(dtype: DType, x: np.ndarray) -> np.ndarray:
    """What `stored_bits` gives, for the formats of 16 bits."""
    if dtype is float16:
        return _encode16(x)
    u = x.view(_U32) >> _U32(16)
    return np.asarray(u).astype(np.uint16)


def _encode16(x: np.ndarray) -> np.ndarray:
    """float16 bits. NaN survives the scaling, and a float16 NaN has its payload in the top bits of the float32."""
    u = x.view(_U32)
    mag = np.asarray(u & _MAGNITUDE)
    f = mag.view(_F32)
    f *= _F32(2.0**-112)
    mag >>= _U32(13)
    mag &= _U32(0x7FFF)
    sign = np.asarray(u >> _U32(16))
    sign &= _U32(0x8000)
    mag |= sign
    return mag.astype(np.uint16)


def unpack_f4(packed: np.ndarray) -> np.ndarray:
    """float4 elements, as carriers, from bytes of two: the last axis doubles, the low nibble comes first [PACK-1]."""
    packed = np.asarray(packed)
    codes = np.stack([packed & np.uint8(15), packed >> np.uint8(4)], axis=-1)
    return from_bits(codes.reshape(*packed.shape[:-1], 2 * packed.shape[-1]), float4_e2m1fn)


def pack_f4(x: np.ndarray) -> np.ndarray:
    """The inverse of unpack_f4: the last axis, of even length, halves."""
    codes = to_bits(x, float4_e2m1fn)
    return codes[..., 0::2] | codes[..., 1::2] << np.uint8(4)
