"""Numerics against exact arithmetic: fractions and whole numbers, never NumPy's own rounding.

8- and 16-bit formats are tested over their whole domains, ties and their neighbours included; wider ones on samples over all
exponents and on special values.
"""

from __future__ import annotations

import functools
import math
import operator
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile.dtypes import (
    DType, bfloat16, bool_, float4_e2m1fn, float8_e4m3fn, float8_e5m2, float8_e5m3fnu, float8_e8m0fnu, float16, float32,
    float64, info, int8, int16, int32, int64, tfloat32, uint8, uint16, uint32, uint64,
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


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


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


# ------------------------------------------------------------------ codes and storage


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


@pytest.mark.parametrize("dtype", [float16, bfloat16, *NARROW], ids=str)
def test_every_code_decodes_and_encodes_back(dtype):
    c = codes(dtype)
    x = N.from_bits(c, dtype)
    assert x.dtype == np.float32
    assert_same(x, [value_of_code(dtype, int(k)) for k in c])
    back = N.to_bits(x, dtype)
    assert back.dtype == c.dtype
    assert (back == c).all(), "NaN payloads and signs survive"


@pytest.mark.parametrize("dtype", [float16, bfloat16, *NARROW], ids=str)
def test_every_stored_element_survives(dtype):
    stored = codes(dtype).view(info(dtype).storage)
    x = N.to_carrier(stored, dtype)
    assert_same(x, [value_of_code(dtype, int(k)) for k in codes(dtype)])
    back = N.to_storage(x, dtype)
    assert back.dtype == info(dtype).storage
    finite = ~np.isnan(x)
    assert (back.view(codes(dtype).dtype) == codes(dtype))[finite].all()
    assert np.isnan(N.to_carrier(back, dtype)[~finite]).all()


@pytest.mark.parametrize("dtype", [bool_, int8, uint16, int32, uint64, float32, float64], ids=str)
def test_own_storage_is_not_copied(dtype):
    x = np.array([0, 1], info(dtype).storage)
    assert N.to_carrier(x, dtype) is x
    assert N.to_storage(x, dtype) is x
    assert N.from_bits(N.to_bits(x, dtype), dtype).tolist() == x.tolist()


def test_tfloat32_words_lose_their_low_bits_but_stay_nan():
    bits = np.array([0x3F801FFF, 0x7F800001, 0xFF801000, 0x7FC00000], np.uint32)
    assert N.to_bits(N.from_bits(bits, tfloat32), tfloat32).tolist() == [0x3F800000, 0x7FC00000, 0xFFC00000, 0x7FC00000]


def test_float4_pairs_low_nibble_first():
    packed = np.arange(256, dtype=np.uint8).reshape(2, 128)
    x = N.unpack_f4(packed)
    assert x.shape == (2, 256)
    assert_same(x[..., 0::2], [value_of_code(float4_e2m1fn, k & 15) for k in range(256)])
    assert_same(x[..., 1::2], [value_of_code(float4_e2m1fn, k >> 4) for k in range(256)])
    assert (N.pack_f4(x) == packed).all()


@pytest.mark.parametrize("shape", [(), (1,), (2, 1, 3, 4)])
def test_shapes_survive(shape):
    for dtype in (float16, bfloat16, tfloat32, float8_e4m3fn, float32):
        x = N.round_to(dtype, np.full(shape, 1.25, np.float32))
        assert x.shape == shape and x.dtype == np.float32 and (x == 1.25).all()
        assert N.to_carrier(N.to_storage(x, dtype), dtype).shape == shape
        assert N.from_bits(N.to_bits(x, dtype), dtype).shape == shape


# ------------------------------------------------------------------ rounding


def around_ties(dtype: DType, carrier: type) -> tuple[np.ndarray, list[float]]:
    """Every non-negative value, the midpoint to the next and its neighbours, with what they round to."""
    half = 1 << (dtype.bitwidth - info(dtype).format.signed)
    values = [v for k in range(half) if math.isfinite(v := value_of_code(dtype, k))]  # ascending, and even codes are even
    top, m = values[-1], FORMATS[dtype][0]
    low, up = np.array(values), np.array([*values[1:], top + 2.0 ** (exponent(Fraction(top)) - m)])
    to = np.array([*values[1:], INF if dtype in (float16, bfloat16) else top])
    even = np.where(np.arange(len(values)) % 2 == 0, low, to)
    mid = ((low + up) / 2).astype(carrier)  # exact: one bit more than the format has
    x = np.concatenate([low.astype(carrier), np.nextafter(mid, carrier(-INF)), mid, np.nextafter(mid, carrier(INF))])
    return x, [*low, *low, *even, *to]


@pytest.mark.parametrize("carrier", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [float16, bfloat16, float8_e4m3fn, float8_e5m2, float8_e5m3fnu, float4_e2m1fn], ids=str)
def test_round_to_at_every_tie(dtype, carrier):
    x, want = around_ties(dtype, carrier)
    assert_same(N.round_to(dtype, x), want)
    if info(dtype).format.signed:
        assert_same(N.round_to(dtype, -x), [-w for w in want])


@pytest.mark.parametrize("carrier", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [float16, bfloat16, tfloat32, float32, *NARROW], ids=str)
def test_round_to_on_a_sample(dtype, carrier):
    x = floats(4000, float32 if carrier is np.float32 else float64)
    x = np.concatenate([x, (rng.standard_normal(4000) * 10.0 ** rng.integers(-6, 6, 4000)).astype(carrier)])
    x = x[np.isfinite(x)]
    if not info(dtype).format.signed:
        x = np.abs(x)
    want = [reference(Fraction(v), dtype) or math.copysign(0.0, v) for v in x.tolist()]
    if dtype is float8_e8m0fnu:
        want = [max(w, 2.0**-127) for w in want]
    assert_same(N.round_to(dtype, x), want)


@pytest.mark.parametrize("dtype", [float16, bfloat16, tfloat32, float32], ids=str)
def test_round_to_keeps_special_values(dtype):
    for carrier in (np.float32, np.float64):
        assert_same(N.round_to(dtype, np.array(SPECIAL, carrier)), SPECIAL)


@pytest.mark.parametrize("dtype", [float16, bfloat16, tfloat32], ids=str)
def test_no_nan_turns_into_a_number(dtype):
    nan = np.array([0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF800001, 0x7FC00000, 0x7F801000], np.uint32).view(np.float32)
    assert np.isnan(N.round_to(dtype, nan)).all()


def test_round_to_narrow_special_values():
    x = np.array([INF, -INF, NAN, -0.0, 0.0, 1e30, -1e30], np.float32)
    assert_same(N.round_to(float8_e4m3fn, x), [448, -448, NAN, -0.0, 0.0, 448, -448])
    assert_same(N.round_to(float8_e5m2, x), [57344, -57344, NAN, -0.0, 0.0, 57344, -57344])
    assert_same(N.round_to(float4_e2m1fn, x), [6, -6, 6, -0.0, 0.0, 6, -6])
    assert_same(N.round_to(float8_e5m3fnu, x), [114688, 0.0, NAN, 0.0, 0.0, 114688, 0.0])
    assert_same(N.round_to(float8_e8m0fnu, x), [2.0**127, NAN, NAN, 2.0**-127, 2.0**-127, 2.0**100, NAN])


def test_a_wrong_carrier_is_refused():
    with pytest.raises(TypeError, match="int32 must be carried in int32"):
        N.round_to(int32, np.zeros(2, np.int64))
    with pytest.raises(TypeError, match="float32 or float64"):
        N.round_to(float16, np.zeros(2, np.int32))


# ------------------------------------------------------------------ casts


@pytest.mark.parametrize("src", [float32, float64, bfloat16, float16], ids=str)
@pytest.mark.parametrize("mode", [RZ, RM, RP, RA], ids=str)
@pytest.mark.parametrize("dst", [float16, bfloat16, tfloat32, float32], ids=str)
def test_directed_casts(src, dst, mode):
    x = np.concatenate([floats(1000, src), N.round_to(src, rng.standard_normal(500).astype(info(src).carrier))])
    x = np.concatenate([x[np.isfinite(x)], np.array([0.0, -0.0, 0.5, 65519.0, 65520.0, -65520.0], x.dtype)])
    x = N.round_to(src, x)
    want = [reference(Fraction(v), dst, mode) or math.copysign(0.0, v) if math.isfinite(v) else v for v in x.tolist()]
    y = N.convert(x, src, dst, mode)
    assert y.dtype == info(dst).carrier
    assert_same(y, want if src is not dst else x.tolist())


@pytest.mark.parametrize("mode", [RZ, RP], ids=str)
def test_casts_to_e8m0(mode):
    x = np.abs(floats(3000))
    x = x[np.isfinite(x) & (x > 0)]
    want = [max(reference(Fraction(v), float8_e8m0fnu, mode), 2.0**-127) for v in x.tolist()]
    assert_same(N.convert(x, float32, float8_e8m0fnu, mode), want)
    special = np.array([0.0, -0.0, -1.0, -1e-40, INF, NAN, 1e300], np.float64)
    assert_same(N.convert(special, float64, float8_e8m0fnu, mode),
                [2.0**-127, 2.0**-127, NAN, NAN, 2.0**127, NAN, 2.0**127])


@pytest.mark.parametrize("src", [int8, uint8, int16, uint16, int32, uint32, int64, uint64, bool_], ids=str)
@pytest.mark.parametrize("dst", [float16, bfloat16, tfloat32, float32, float64], ids=str)
def test_int_to_float_rounds_once(src, dst):
    x = some_ints(src)
    y = N.convert(x, src, dst)
    assert y.dtype == info(dst).carrier
    assert_same(y, [reference(Fraction(int(v)), dst) for v in x.tolist()])


def some_ints(dtype: DType) -> np.ndarray:
    if dtype is bool_:
        return np.array([False, True])
    limits = np.iinfo(info(dtype).carrier)
    picked = {limits.min, limits.max, 0, 1}
    for k in range(dtype.bitwidth):
        base = 1 << k
        for low in (0, 1, -1, base >> 8, (base >> 8) + 1, base >> 11, base >> 24, (base >> 24) + 1, base >> 25,
                    base >> 53, (base >> 53) + 1, base + (base >> 9), (base >> 9) + (base >> 53)):
            picked |= {base + low, -base - low, base * 2 - 1 - low}
    rand = [int(v) for v in rng.integers(limits.min, limits.max, 300, dtype=info(dtype).carrier, endpoint=True)]
    return np.array(sorted({*rand, *(v for v in picked if limits.min <= v <= limits.max)}), info(dtype).carrier)


def test_the_number_that_rounds_wrong_when_rounded_twice():
    x = np.array([-512753678], np.int32)
    assert N.convert(x, int32, bfloat16).tolist() == [-513802240.0]  # MEAS-9


def test_int_to_narrow_floats_goes_through_float16():
    x = np.array([0, 1, 17, 449, 70000, -70000, 2**31 - 1], np.int32)
    assert_same(N.convert(x, int32, float8_e4m3fn), [0, 1, 16, 448, 448, -448, 448])
    assert_same(N.convert(x, int32, float4_e2m1fn), [0, 1, 6, 6, 6, -6, 6])
    # 4095 is 4096 in float16... and 2049 is 2048, which e5m2 then holds
    assert_same(N.convert(np.array([2049, 4095], np.int32), int32, float8_e5m2), [2048, 4096])


def float_to_int(v: float, src: DType, dst: DType) -> int:
    """The table of MEAS-11, in whole numbers."""
    signed = info(dst).kind == "i"
    width = max(16, dst.bitwidth)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    if math.isnan(v):
        n = (low if signed else 1 << (width - 1)) if width == 64 or src is float64 else 0
    elif math.isinf(v):
        n = high if v > 0 else low
    else:
        n = min(max(math.trunc(v), low), high)
    n &= (1 << dst.bitwidth) - 1
    return n - (1 << dst.bitwidth) if signed and n >> (dst.bitwidth - 1) else n


@pytest.mark.parametrize("src", [float16, bfloat16, float32, float64], ids=str)
@pytest.mark.parametrize("dst", [int8, uint8, int16, uint16, int32, uint32, int64, uint64], ids=str)
def test_float_to_int(src, dst):
    edges = [s * (2.0**k + d) for k in range(0, 66) for d in (-1, -0.5, 0, 0.5, 1) for s in (1, -1)]
    x = np.concatenate([floats(500, src), np.array([*SPECIAL, *edges], info(src).carrier)])
    x = N.round_to(src, x)
    y = N.convert(x, src, dst)
    assert y.dtype == info(dst).carrier
    assert y.tolist() == [float_to_int(v, src, dst) for v in x.tolist()]
    inside = x[[math.isfinite(v) and math.trunc(v) == float_to_int(v, src, dst) for v in x.tolist()]]
    assert N.convert(inside, src, dst).tolist() == [math.trunc(v) for v in inside.tolist()]


def test_known_out_of_range_conversions():
    x = np.array([300.0, INF, -INF, NAN], np.float32)
    assert N.convert(x, float32, int8).tolist() == [44, -1, 0, 0]
    assert N.convert(x, float32, uint8).tolist() == [44, 255, 0, 0]
    assert N.convert(x, float32, int64).tolist() == [300, 2**63 - 1, -(2**63), -(2**63)]
    assert N.convert(x, float32, uint64).tolist() == [300, 2**64 - 1, 0, 2**63]


def test_to_bool_and_between_ints():
    x = np.array([0.0, -0.0, NAN, 1e-45, INF], np.float32)
    assert N.convert(x, float32, bool_).tolist() == [False, False, True, True, True]
    assert N.convert(np.array([0, 2, -1], np.int8), int8, bool_).tolist() == [False, True, True]
    assert N.convert(np.array([-1, 300, 70000], np.int32), int32, uint8).tolist() == [255, 44, 112]
    assert N.convert(np.array([-1], np.int8), int8, uint64).tolist() == [2**64 - 1]
    assert N.convert(np.array([255], np.uint8), uint8, int32).tolist() == [255]
    assert N.convert(np.array([True, False]), bool_, int16).tolist() == [1, 0]


def test_float64_narrows_in_one_rounding():
    just_above_tie = 1 + 2.0**-8 + 2.0**-40  # float32 would make it the tie, which goes to even
    assert N.convert(np.array([just_above_tie]), float64, bfloat16).tolist() == [1 + 2.0**-7]


# ------------------------------------------------------------------ constants


@pytest.mark.parametrize("dtype", list(FORMATS), ids=str)
def test_encode_floats(dtype):
    _, _, top = FORMATS[dtype]
    xs = [abs(float(v)) for v in rng.standard_normal(300) * 10.0 ** rng.integers(-9, 9, 300)]
    xs += [abs(float(v)) for v in floats(300, float64) if math.isfinite(v)]
    for v in xs:
        w = reference(Fraction(v), dtype, saturating=dtype is float4_e2m1fn)
        if math.isinf(w) and not info(dtype).format.has_inf:
            w = NAN
        if dtype is float8_e8m0fnu and not math.isnan(w):
            w = max(w, 2.0**-127)
        assert_same(np.array(N.encode(v, dtype)), [w], v)


@pytest.mark.parametrize("value, dtype, want", [
    (464, float8_e4m3fn, 448), (465, float8_e4m3fn, NAN), (INF, float8_e4m3fn, NAN), (61440, float8_e5m2, INF),
    (61439, float8_e5m2, 57344), (3, float8_e8m0fnu, 4), (0, float8_e8m0fnu, 2.0**-127), (INF, float8_e8m0fnu, NAN),
    (5, float4_e2m1fn, 4), (INF, float4_e2m1fn, 6), (-1e9, float4_e2m1fn, -6), (1e9, float16, INF), (1e39, float32, INF),
    (NAN, float8_e8m0fnu, NAN), (-0.0, float8_e4m3fn, -0.0), (True, float16, 1.0), (2**64, float32, 2.0**64),
    (2**24 + 1, float32, 2.0**24), (2**60 + 2**36 + 1, float32, 2.0**60 + 2.0**37), (10**400, float64, INF),
    (1e30, float8_e5m3fnu, NAN), (0.1, float64, 0.1),
])
def test_encode_float_examples(value, dtype, want):
    assert_same(np.array(N.encode(value, dtype)), [want])


@pytest.mark.parametrize("value, dtype, want", [
    (300, int8, 44), (-1, uint8, 255), (1 << 40, int32, 0), (1.9, int32, 1), (-1.9, int32, -1), (2.0**31, int32, -(2**31)),
    (True, int8, 1), (0.5, bool_, True), (NAN, bool_, True), (0, bool_, False), (-0.0, bool_, False), (2**63, uint64, 2**63),
])
def test_encode_integers(value, dtype, want):
    got = N.encode(value, dtype)
    assert got == want and type(got) is type(want)


@pytest.mark.parametrize("value, dtype", [
    (NAN, float4_e2m1fn), (-1.0, float8_e8m0fnu), (-0.0, float8_e8m0fnu), (-0.0, float8_e5m3fnu), (-3, float8_e5m3fnu),
    (NAN, int32), (INF, uint8), (-INF, int64),
])
def test_encode_refuses(value, dtype):
    with pytest.raises(ValueError):
        N.encode(value, dtype)


# ------------------------------------------------------------------ fma


def near_ties(dtype: DType, n: int):
    """Triples whose exact result lies at, or a hair beside, the middle between two values of the dtype."""
    m, _, _ = FORMATS[dtype]
    x = N.round_to(dtype, (rng.integers(1 << m, 2 << m, n) * 2.0 ** -m).astype(info(dtype).carrier))
    y = N.round_to(dtype, (rng.integers(1 << m, 2 << m, n) * 2.0 ** -m).astype(info(dtype).carrier))
    shift = rng.choice([-m - 1, m + 1, 2 * m, -2 * m, 0, -3 * m if m < 20 else -m], n)
    z = N.round_to(dtype, np.ldexp(rng.choice([1.0, -1.0, 1.5, 3.0], n), shift).astype(info(dtype).carrier))
    return x, y, z


def fma_reference(a: float, b: float, c: float, dtype: DType) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        if math.isfinite(a) and math.isfinite(b):
            return c
        if math.isinf(a) and b == 0 or math.isinf(b) and a == 0:
            return NAN
        return a * b + c  # infinities and NaN only: no rounding takes part
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        negative = math.copysign(1, a) * math.copysign(1, b) < 0
        product_is_zero = a == 0 or b == 0
        return -0.0 if product_is_zero and negative and math.copysign(1, c) < 0 else 0.0
    return reference(exact, dtype)


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
def test_fma_rounds_once(dtype):
    triples = [near_ties(dtype, 1500), tuple(floats(1000, dtype) for _ in range(3))]
    small = tuple(N.round_to(dtype, np.ldexp(rng.standard_normal(400), rng.integers(-8, 8, 400)).astype(info(dtype).carrier))
                  for _ in range(2))
    tiny = np.ldexp(rng.standard_normal(400), FORMATS[dtype][1] - 3).astype(info(dtype).carrier)
    tiny = N.round_to(dtype, tiny)
    triples += [(*small, tiny), (tiny, small[0], tiny[::-1]), (tiny, tiny, tiny)]
    for x, y, z in triples:
        got = N.fma(x, y, z, dtype)
        assert got.dtype == info(dtype).carrier
        assert_same(got, [fma_reference(*v, dtype) for v in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)], dtype)


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
def test_fma_special_values(dtype):
    top = float(FORMATS[dtype][2])
    values = [*SPECIAL, top, -top]
    grid = np.array(np.meshgrid(values, values, values), info(dtype).carrier).reshape(3, -1)
    want = [fma_reference(*v, dtype) for v in zip(*grid.tolist(), strict=True)]
    assert_same(N.fma(*grid, dtype), want)


def test_fma_broadcasts_and_differs_from_two_roundings():
    x = np.float32(1 + 2.0**-12)
    got = N.fma(np.full((2, 3), x), x, np.full((3,), np.float32(-1 - 2.0**-11)), float32)
    assert got.shape == (2, 3) and (got == np.float32(2.0**-24)).all()


# ------------------------------------------------------------------ directed rounding

EXACT = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv}


def directed_reference(name: str, mode: RoundingMode, dtype: DType, a: float, b: float) -> float:
    special = {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b}
    if not (math.isfinite(a) and math.isfinite(b)) or name == "truediv" and b == 0:
        if name != "truediv":
            return special[name]()
        return quotient_of_specials(a, b)
    exact = EXACT[name](Fraction(a), Fraction(b))
    if exact == 0:
        if name in ("add", "sub"):
            c = b if name == "add" else -b
            same = math.copysign(1, a) == math.copysign(1, c) and a == 0
            return a if same else -0.0 if mode is RM else 0.0
        return math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b))
    return reference(exact, dtype, mode)


def quotient_of_specials(a: float, b: float) -> float:
    sign = math.copysign(1, a) * math.copysign(1, b)
    if math.isnan(a) or math.isnan(b) or a == b == 0 or math.isinf(a) and math.isinf(b):
        return NAN
    return sign * 0.0 if math.isinf(b) else sign * INF


@pytest.mark.parametrize("name", list(EXACT))
@pytest.mark.parametrize("mode", [RN, RZ, RM, RP], ids=str)
@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
def test_directed(name, mode, dtype):
    top = float(FORMATS[dtype][2])
    values = [*SPECIAL, top, -top, 2.0 ** FORMATS[dtype][1], -(2.0 ** (FORMATS[dtype][1] - FORMATS[dtype][0]))]
    grid = np.array(np.meshgrid(values, values), info(dtype).carrier).reshape(2, -1)
    close = N.round_to(dtype, rng.standard_normal((2, 400)).astype(info(dtype).carrier))
    for x, y in (grid, floats(800, dtype).reshape(2, -1), close):
        got = N.directed(name, mode, dtype, x, y)
        assert got.dtype == info(dtype).carrier
        want = [directed_reference(name, mode, dtype, *v) for v in zip(x.tolist(), y.tolist(), strict=True)]
        assert_same(got, want, f"{name} {mode}")


def root_reference(v: float, dtype: DType, mode: RoundingMode) -> float:
    if not v > 0 or math.isinf(v):
        return v if v == 0 or v == INF or math.isnan(v) else NAN
    m = FORMATS[dtype][0]
    q = Fraction(v)
    unit = Fraction(2) ** (exponent(q) // 2 - m)
    ratio = q / unit**2
    k = math.isqrt(math.floor(ratio))  # the root is in [k, k + 1) units
    if mode is RP:
        k += k * k != ratio
    elif mode is RN:
        k += ratio > (Fraction(2 * k + 1, 2)) ** 2
    return float(k * unit)


@pytest.mark.parametrize("mode", [RN, RZ, RM, RP], ids=str)
@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
def test_directed_sqrt(mode, dtype):
    x = np.concatenate([np.abs(floats(1500, dtype)), np.arange(100, dtype=info(dtype).carrier),
                        np.array(SPECIAL, info(dtype).carrier)])
    x = N.round_to(dtype, x)
    assert_same(N.directed("sqrt", mode, dtype, x), [root_reference(v, dtype, mode) for v in x.tolist()])


# ------------------------------------------------------------------ integers

DIVIDE = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "cdiv": lambda x, y: -((-x) // y),
}
BY_ZERO = {  # signed x >= 0, signed x < 0, unsigned
    "floordiv": (-1, -2, -1), "mod": (-1, -1, -1), "cdiv": (0, -1, 0),
}


def wrap(n: int, dtype: DType) -> int:
    n &= (1 << dtype.bitwidth) - 1
    return n - (1 << dtype.bitwidth) if info(dtype).kind == "i" and n >> (dtype.bitwidth - 1) else n


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of 8-bit numbers; of wider ones, the ends, small numbers and a random sample."""
    limits = np.iinfo(info(dtype).carrier)
    if dtype.bitwidth == 8:
        values = np.arange(limits.min, limits.max + 1, dtype=info(dtype).carrier)
    else:
        small = [v for v in range(-5, 70, 3) if v >= limits.min]
        rand = rng.integers(limits.min, limits.max, 40, dtype=info(dtype).carrier, endpoint=True).tolist()
        values = np.array([0, limits.min, limits.max, limits.min + 1, *small, *rand], info(dtype).carrier)
        if limits.min < 0:
            values = np.append(values, values.dtype.type(-1))
    x, y = np.meshgrid(values, values)
    return x.reshape(-1), y.reshape(-1)


INTS = [int8, uint8, int16, int32, uint32, int64, uint64]


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("name", list(DIVIDE))
def test_integer_division(name, dtype):
    x, y = pairs(dtype)
    got = getattr(N, name)(x, y)
    assert got.dtype == info(dtype).carrier
    signed = info(dtype).kind == "i"

    def want(a: int, b: int) -> int:
        if b == 0:
            return BY_ZERO[name][2 if not signed else a < 0]
        return DIVIDE[name](a, b)

    assert got.tolist() == [wrap(want(a, b), dtype) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_shifts(dtype):
    x, y = pairs(dtype)
    width = dtype.bitwidth
    left, right = [], []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        amount = b % (1 << min(width, 32))
        left.append(wrap(a << amount, dtype) if amount < width else 0)
        right.append(a >> min(amount, width))
    for got, want in ((N.shift_left(x, y), left), (N.shift_right(x, y), right)):
        assert got.dtype == info(dtype).carrier
        assert got.tolist() == want


@pytest.mark.parametrize("dtype", [int8, uint8, int32, int64, uint64], ids=str)
def test_int_pow(dtype):
    x, y = pairs(dtype)
    got = N.int_pow(x, y)
    assert got.dtype == info(dtype).carrier

    def want(a: int, n: int) -> int:
        if n >= 0:
            return wrap(pow(a, n, 1 << dtype.bitwidth), dtype)
        return {1: 1, -1: -1 if n % 2 else 1}.get(a, 0)

    assert got.tolist() == [want(a, n) for a, n in zip(x.tolist(), y.tolist(), strict=True)]


# ------------------------------------------------------------------ floats


def extreme_reference(a: float, b: float, larger: bool, propagate: bool) -> float:
    if math.isnan(a) or math.isnan(b):
        return NAN if propagate or math.isnan(a) and math.isnan(b) else b if math.isnan(a) else a
    key = [(v, math.copysign(1, v)) for v in (a, b)]
    return (max if larger else min)(key)[0]


@pytest.mark.parametrize("propagate", [False, True])
def test_minimum_and_maximum(propagate):
    values = [*SPECIAL, -NAN, 1e-45, -1e-45]
    x, y = np.array(np.meshgrid(values, values), np.float32).reshape(2, -1)
    for fn, larger in ((N.minimum, False), (N.maximum, True)):
        for a, b in ((x, y), (x.astype(np.float64), y.astype(np.float64))):
            got = fn(a, b, propagate)
            assert got.dtype == a.dtype
            assert_same(got, [extreme_reference(*v, larger, propagate) for v in zip(a.tolist(), b.tolist(), strict=True)])
    if propagate:
        odd_nan = np.array([0xFFC00123], np.uint32).view(np.float32)
        assert N.maximum(odd_nan, np.float32([1]), True).view(np.uint32).tolist() == [0x7FC00000], "canonical"


def test_extremes_of_ints_and_bools():
    x = np.array([-128, 127, 0], np.int8)
    assert N.minimum(x, np.int8(1)).tolist() == [-128, 1, 0]
    assert N.maximum(np.array([255], np.uint8), np.uint8(1)).tolist() == [255]
    assert N.maximum(np.array([True, False]), np.array([False, False])).tolist() == [True, False]


def test_float_floordiv_floors_the_rounded_quotient():
    x, y = (N.round_to(float16, rng.uniform(1, 60, 20000).astype(np.float32)) for _ in range(2))
    exact = [Fraction(a) / Fraction(b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    want = [math.floor(reference(q, float16)) for q in exact]
    assert want != [math.floor(q) for q in exact], "the sample shows the difference"
    assert N.float_floordiv(x, y, float16).tolist() == want
    special = N.float_floordiv(np.array([1, -1, 0, INF], np.float32), np.array([0, 0, 0, 2], np.float32), float32)
    assert_same(special, [INF, -INF, NAN, INF])


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
def test_float_mod(dtype):
    x, y = floats(1500, dtype).reshape(2, -1)
    x2, y2 = N.round_to(dtype, rng.standard_normal((2, 500)).astype(info(dtype).carrier))
    for a, b in ((x, y), (x2, y2)):
        keep = np.isfinite(a) & np.isfinite(b) & (b != 0)
        a, b = a[keep], b[keep]
        got = N.round_to(dtype, N.float_mod(a, b))
        want = []
        for u, v in zip(a.tolist(), b.tolist(), strict=True):
            r = Fraction(u) - math.trunc(Fraction(u) / Fraction(v)) * Fraction(v)
            if r and (r < 0) != (v < 0):
                r += Fraction(v)
                want.append(reference(r, dtype))
            else:
                want.append(float(r) or math.copysign(0.0, u))
        assert_same(got, want)


def test_float_mod_special_values():
    x = np.array([1, INF, -1, 1, 5, -5, 5, -0.0], np.float32)
    y = np.array([0, 2, INF, INF, 3, 3, -3, 2], np.float32)
    assert_same(N.float_mod(x, y), [NAN, NAN, INF, 1, 2, 1, -1, -0.0])


def test_flush():
    x = np.array([1e-45, -1e-45, 2.0**-126, -(2.0**-126), 0.0, -0.0, NAN, INF, 1.1e-38], np.float32)
    assert_same(N.flush(x), [0.0, -0.0, 2.0**-126, -(2.0**-126), 0.0, -0.0, NAN, INF, 0.0])
    assert N.flush(np.array([5e-324])).tolist() == [5e-324]
    assert N.flush(np.array([3], np.int32)).tolist() == [3]


def test_wide_gives_float64():
    assert N.wide(np.add, np.float32([1]), np.float32([2.0**-40])).tolist() == [1 + 2.0**-40]


def pow_reference(v: float, n: int, dtype: DType) -> float:
    def times(a: float, b: float) -> float:
        if not (math.isfinite(a) and math.isfinite(b)):
            return a * b
        q = Fraction(a) * Fraction(b)
        return reference(q, dtype) or math.copysign(0.0, a) * math.copysign(1.0, b)

    r, e = (v if n & 1 else 1.0), abs(n) >> 1
    while e:
        v = times(v, v)
        if e & 1:
            r = times(v, r)
        e >>= 1
    if n >= 0:
        return r
    return quotient_of_specials(1.0, r) if r == 0 or not math.isfinite(r) else reference(1 / Fraction(r), dtype)


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
def test_pow_by_squaring(dtype):
    x = np.concatenate([floats(150, dtype), rng.standard_normal(300).astype(info(dtype).carrier),
                        np.array(SPECIAL, info(dtype).carrier)])
    x = N.round_to(dtype, x)
    for n in (0, 1, 2, 3, 7, 10, -1, -2, -5, 31):
        want = [pow_reference(v, n, dtype) for v in x.tolist()]
        assert_same(N.pow_by_squaring(x, np.array(n, np.int32), dtype), want, n)
        assert_same(N.pow_by_squaring(x, np.full(x.shape, n, np.int32), dtype), want, n)
    mixed = rng.integers(-9, 9, x.shape).astype(np.int8)
    assert_same(N.pow_by_squaring(x, mixed, dtype), [pow_reference(v, int(n), dtype) for v, n in zip(x.tolist(), mixed, strict=True)])
    assert_same(N.pow_by_squaring(np.array([1.0], x.dtype), np.array([-(2**31)], np.int32), dtype), [1.0])


@given(st.floats(width=32), st.floats(width=32), st.floats(width=32))
@settings(max_examples=200, deadline=None)
def test_fma_property(a, b, c):
    with np.errstate(all="ignore"):
        got = N.fma(*(np.array([v], np.float32) for v in (a, b, c)), float32)
    assert_same(got, [fma_reference(a, b, c, float32)])


@pytest.mark.deep
def test_every_float32_rounds_to_float16_and_bfloat16_monotonically():
    """All 2**32 patterns in chunks: results are values of the format, and order is kept."""
    for start in range(0, 1 << 31, 1 << 22):
        x = np.arange(start, start + (1 << 22), dtype=np.uint32).view(np.float32)
        for dtype in (float16, bfloat16):
            y = N.round_to(dtype, x)
            assert (np.isnan(x) == np.isnan(y)).all()
            y = y[~np.isnan(y)]
            assert (np.diff(y[np.isfinite(y)]) >= 0).all()
            assert_values = N.from_bits(N.to_bits(y, dtype), dtype)
            assert (assert_values == y).all()
