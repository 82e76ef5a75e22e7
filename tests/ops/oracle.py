"""Exact arithmetic to compare numerics with: fractions and whole numbers, never NumPy's own rounding."""

from __future__ import annotations

import functools
import math
import struct
from fractions import Fraction

import numpy as np

from cutile.dtypes import (
    DType,
    bfloat16,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e5m2,
    float8_e5m3fnu,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    info,
    tfloat32,
)
from cutile.ops import _numeric as N
from cutile.types import RoundingMode

RN, RZ, RM, RP, RA = (RoundingMode[n] for n in ("RN", "RZ", "RM", "RP", "RA"))
INF, NAN = math.inf, math.nan

# Fraction bits, smallest normal exponent, largest value: written here again, from the formats' definitions.
FORMATS: dict[DType, tuple[int, int, Fraction]] = {
    float16: (10, -14, Fraction(65504)),
    bfloat16: (7, -126, Fraction(255) * 2**120),
    tfloat32: (10, -126, Fraction(2047) * 2**117),
    float32: (23, -126, Fraction(2**24 - 1) * 2**104),
    float64: (52, -1022, Fraction(2**53 - 1) * 2**971),
    float8_e4m3fn: (3, -6, Fraction(448)),
    float8_e5m2: (2, -14, Fraction(57344)),
    float8_e5m3fnu: (3, -14, Fraction(114688)),
    float8_e8m0fnu: (0, -127, Fraction(2) ** 127),
    float4_e2m1fn: (1, 0, Fraction(6)),
}
NARROW = [float8_e4m3fn, float8_e5m2, float8_e5m3fnu, float8_e8m0fnu, float4_e2m1fn]
rng = np.random.default_rng(20261127)


def nearest_even(q: Fraction) -> int:
    return round(q)  # Python rounds fractions half to even


def half_away(q: Fraction) -> int:
    n = math.floor(abs(q) + Fraction(1, 2))
    return n if q >= 0 else -n


TO_INT = {RN: nearest_even, RZ: math.trunc, RM: math.floor, RP: math.ceil, RA: half_away}


def exponent(q: Fraction) -> int:
    e = abs(q).numerator.bit_length() - abs(q).denominator.bit_length()
    return e - 1 if Fraction(2) ** e > abs(q) else e


def reference(q: Fraction, dtype: DType, mode: RoundingMode = RN, saturating: bool | None = None) -> float:
    """`q` rounded to `dtype`; a result of 0 has the sign of q."""
    m, emin, top = FORMATS[dtype]
    if q == 0:
        return 0.0
    unit = Fraction(2) ** (max(exponent(q), emin) - m)
    r = TO_INT[mode](q / unit) * unit
    if abs(r) > top:
        keeps = {RN: False, RA: False, RZ: True, RM: q > 0, RP: q < 0}[mode]
        if dtype in NARROW if saturating is None else saturating:
            keeps = True
        return (1 if q > 0 else -1) * (float(top) if keeps else INF)
    return float(r) or (0.0 if q > 0 else -0.0)


def bits64(x: float) -> int:
    return struct.unpack("<q", struct.pack("<d", x))[0]


def assert_same(got, want, context=""):
    """Equal as floats: signs of zeros count, any NaN equals any NaN."""
    got = np.asarray(got)
    for i, (g, w) in enumerate(zip(got.reshape(-1).tolist(), list(want), strict=True)):
        g, w = float(g), float(w)
        assert (math.isnan(g) and math.isnan(w)) or bits64(g) == bits64(w), f"{context}[{i}]: got {g!r}, want {w!r}"


def floats(n: int, dtype: DType = float32) -> np.ndarray:
    """Random bits: all exponents, some NaN and infinities, as carriers of `dtype`."""
    if dtype is float64:
        return rng.integers(0, 2**64, n, dtype=np.uint64).view(np.float64)
    if dtype is float32:
        return rng.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)
    return N.from_bits(rng.integers(0, 2**16, n, dtype=np.uint16), dtype)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.5, -2.0, 3.0, INF, -INF, NAN]


@functools.cache
def value_of_code(dtype: DType, code: int) -> float:
    m, emin, _ = FORMATS[dtype]
    i = info(dtype)
    signed = i.format.signed
    width = dtype.bitwidth
    sign = -1.0 if signed and code >> (width - 1) else 1.0
    code &= (1 << (width - signed)) - 1
    field, frac = code >> m, code & ((1 << m) - 1)
    ones = (1 << (width - signed - m)) - 1
    if dtype in (float16, bfloat16, float8_e5m2) and field == ones:
        return NAN if frac else sign * INF
    if dtype in (float8_e4m3fn, float8_e5m3fnu, float8_e8m0fnu) and code == (1 << (width - signed)) - 1:
        return NAN
    if dtype is float8_e8m0fnu:
        return 2.0 ** (field - 127)
    if field == 0:
        return sign * math.ldexp(frac, emin - m)
    return sign * math.ldexp((1 << m) + frac, field - 1 + emin - m)


def codes(dtype: DType) -> np.ndarray:
    return np.arange(1 << dtype.bitwidth, dtype=np.uint16 if dtype.bitwidth == 16 else np.uint8)


def quotient_of_specials(a: float, b: float) -> float:
    sign = math.copysign(1, a) * math.copysign(1, b)
    if math.isnan(a) or math.isnan(b) or a == b == 0 or math.isinf(a) and math.isinf(b):
        return NAN
    return sign * 0.0 if math.isinf(b) else sign * INF
