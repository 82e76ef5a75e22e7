"""Rounding and constants: every tie of the narrow formats and its neighbours, samples of the wide ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cutile import settings
from cutile.dtypes import (
    DType,
    bfloat16,
    bool_,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e5m2,
    float8_e5m3fnu,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    info,
    int8,
    int32,
    int64,
    tfloat32,
    uint8,
    uint64,
)
from cutile.ops import _numeric as N
from tests.ops.oracle import (
    FORMATS,
    INF,
    NAN,
    NARROW,
    SPECIAL,
    assert_same,
    exponent,
    floats,
    reference,
    rng,
    value_of_code,
)


@pytest.fixture(autouse=True, params=[True, False], ids=["compiled", "numpy"])
def form(request):
    with np.errstate(all="ignore"), settings.override(COMPILED=request.param):
        yield


# ------------------------------------------------------------------ rounding


def around_ties(dtype: DType, carrier: type) -> tuple[np.ndarray, list[float]]:
    """Every non-negative value, the midpoint to the next and its neighbours, with what they round to."""
    half = 1 << (dtype.bitwidth - info(dtype).format.signed)
    values = [v for k in range(half) if math.isfinite(v := value_of_code(dtype, k))]
    # Codes ascend with the values, and the even ones stand for even multiples of the unit.
    top, m = values[-1], FORMATS[dtype][0]
    low, up = np.array(values), np.array([*values[1:], top + 2.0 ** (exponent(Fraction(top)) - m)])
    to = np.array([*values[1:], INF if dtype in (float16, bfloat16) else top])
    even = np.where(np.arange(len(values)) % 2 == 0, low, to)
    mid = ((low + up) / 2).astype(carrier)  # exact: one bit more than the format has
    x = np.concatenate([low.astype(carrier), np.nextafter(mid, carrier(-INF)), mid, np.nextafter(mid, carrier(INF))])
    return x, [*low, *low, *even, *to]


@pytest.mark.parametrize("carrier", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [float16, bfloat16, *(d for d in NARROW if d is not float8_e8m0fnu)], ids=str)
def test_round_to_at_every_tie(dtype, carrier):
    x, want = around_ties(dtype, carrier)
    assert_same(N.round_to(dtype, x), want)
    if info(dtype).format.signed:
        assert_same(N.round_to(dtype, -x), [-w for w in want])


@pytest.mark.parametrize("carrier", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [float16, bfloat16, tfloat32, float32, *NARROW], ids=str)
def test_round_to_on_a_sample(dtype, carrier):
    x = floats(2000, float32 if carrier is np.float32 else float64)
    x = np.concatenate([x, (rng.standard_normal(2000) * 10.0 ** rng.integers(-6, 6, 2000)).astype(carrier)])
    x = x[np.isfinite(x)]
    if not info(dtype).format.signed:
        x = np.abs(x)
    want = [reference(Fraction(v), dtype) or math.copysign(0.0, v) for v in x.tolist()]
    if dtype is float8_e8m0fnu:
        want = [max(w, 2.0**-127) for w in want]
    assert_same(N.round_to(dtype, x), want)


@pytest.mark.parametrize("carrier", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [float16, bfloat16, tfloat32, float32, *NARROW], ids=str)
def test_round_to_in_place(dtype, carrier):
    """Negative numbers keep their signs, which are read before they are written over; large ones overflow."""
    for x in (floats(500, float32).astype(carrier), np.array([1e-9, -1e-9, 7e4, -0.0, NAN, INF, -3], carrier)):
        want = N.round_to(dtype, x)
        assert_same(N.round_to(dtype, x, out=x), want.tolist())


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
    (5, float4_e2m1fn, 4), (INF, float4_e2m1fn, 6), (-1e9, float4_e2m1fn, -6), (1e9, float16, INF),
    (1e39, float32, INF), (NAN, float8_e8m0fnu, NAN), (-0.0, float8_e4m3fn, -0.0), (True, float16, 1.0),
    (2**64, float32, 2.0**64),
    (2**24 + 1, float32, 2.0**24), (2**60 + 2**36 + 1, float32, 2.0**60 + 2.0**37), (10**400, float64, INF),
    (1e30, float8_e5m3fnu, NAN), (0.1, float64, 0.1),
])
def test_encode_float_examples(value, dtype, want):
    assert_same(np.array(N.encode(value, dtype)), [want])


@pytest.mark.parametrize("value, dtype, want", [
    (300, int8, 44), (-1, uint8, 255), (1 << 40, int32, 0), (1.9, int32, 1), (-1.9, int32, -1),
    (2.0**31, int32, -(2**31)), (True, int8, 1), (0.5, bool_, True), (NAN, bool_, True), (0, bool_, False),
    (-0.0, bool_, False),
    (2**63, uint64, 2**63),
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


@pytest.mark.deep
def test_every_positive_float32_rounds_in_order():
    """All 2**31 patterns, in chunks: results are values of the format, and order is kept."""
    for start in range(0, 1 << 31, 1 << 22):
        x = np.arange(start, start + (1 << 22), dtype=np.uint32).view(np.float32)
        for dtype in (float16, bfloat16):
            y = N.round_to(dtype, x)
            assert (np.isnan(x) == np.isnan(y)).all()
            y = y[~np.isnan(y)]
            assert (y[1:] >= y[:-1]).all()
            assert (N.from_bits(N.to_bits(y, dtype), dtype) == y).all()
