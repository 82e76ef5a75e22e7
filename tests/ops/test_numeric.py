"""Casts, integer and floating-point arithmetic against exact references."""

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
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    info,
    int8,
    int16,
    int32,
    int64,
    tfloat32,
    uint8,
    uint16,
    uint32,
    uint64,
)
from cutile.ops import _numeric as N
from tests.ops.oracle import (
    INF,
    NAN,
    RA,
    RM,
    RP,
    RZ,
    SPECIAL,
    assert_same,
    floats,
    quotient_of_specials,
    reference,
    rng,
)


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


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
    # float16 holds 2049 as 2048, and 4095 as 4096
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
    edges = [s * (2.0**k + d) for k in range(66) for d in (-1, -0.5, 0, 0.5, 1) for s in (1, -1)]
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
@pytest.mark.parametrize("name", list(DIVIDE))
def test_division_by_one_number(name, dtype):
    """As by an array of it, whatever the shapes."""
    divide, (x, y) = getattr(N, name), pairs(dtype)
    for d in np.unique(y):
        want = divide(x, np.full_like(x, d))
        for one in (d, np.asarray(d), np.full((1, 1), d)):
            got = divide(x, one)
            assert got.dtype == x.dtype and got.shape == np.broadcast_shapes(x.shape, np.shape(one))
            assert got.reshape(-1).tolist() == want.tolist()
    assert divide(x[:1].reshape(()), y[-1]).shape == ()


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


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_shifts_by_one_amount(dtype):
    """An amount that stands everywhere, in arrays that give more or fewer axes than what is shifted, and into one."""
    x, amounts = pairs(dtype)[0], (0, 1, dtype.bitwidth - 1, dtype.bitwidth, dtype.bitwidth + 1)
    for shift, amount in ((f, np.array(k, x.dtype)) for f in (N.shift_left, N.shift_right) for k in amounts):
        want = shift(x, np.full(x.shape, amount))
        for where in (x.shape, (2, *x.shape)):
            got = shift(x, np.broadcast_to(amount, where))
            assert got.dtype == x.dtype and got.shape == where and (got == want).all()
        got = shift(np.stack((x, x)), np.broadcast_to(amount, x.shape), out := np.empty((2, *x.shape), x.dtype))
        assert got.tolist() == [want.tolist()] * 2 and (got is out or amount.item() not in amounts[:3])
        assert shift(x[:1], np.broadcast_to(amount, x.shape)).tolist() == [want[0]] * len(x)


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
    for n in (0, 1, 2, 3, 6, 31):
        for one in (np.array(n, x.dtype), np.full((3, 1), n, x.dtype), np.broadcast_to(x.dtype.type(n), x.shape)):
            got, shape = N.int_pow(x, one), np.broadcast_shapes(x.shape, one.shape)
            assert got.dtype == x.dtype and got.shape == shape
            assert (got == np.array([want(a, n) for a in x.tolist()], x.dtype)).all()


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "int32", "uint64", "float32", "float64"])
@pytest.mark.parametrize("compiled", [False, True])
def test_choice(name, compiled):
    x, y = (rng.integers(0, 2, (5, 40)).astype(name) for _ in range(2))
    cond = rng.integers(0, 2, (1, 40)) > 0
    want = np.where(cond, x, y)
    with settings.override(COMPILED=compiled):
        assert_same_array(N.choice(cond, x, y), want)
        assert_same_array(N.choice(cond, x, y, np.empty_like(x)), want)
        assert_same_array(N.choice(cond[:, :1], x, y[0, 0]), np.where(cond[:, :1], x, y[0, 0]))
        assert_same_array(N.choice(cond, x, y, x), want)
        memory = np.concatenate([y, x]).ravel()  # the result lies one element behind an operand
        behind = memory[1:x.size + 1].reshape(x.shape)
        assert_same_array(N.choice(cond, memory[:x.size].reshape(x.shape), x, behind), np.where(cond, y, x))


def assert_same_array(got: np.ndarray, want: np.ndarray) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape and (got == want).all()


@pytest.mark.parametrize("src, dst", [(int8, float64), (int32, float32), (float32, float64), (float32, int64),
                                      (float64, int32), (float32, int16), (float64, uint64), (float32, uint8),
                                      (int64, int8), (uint8, int32), (int16, bool_), (float64, bool_)], ids=str)
def test_casts_into_memory(src, dst):
    x = np.array([0, 1, 2, 100, 3], info(src).carrier) + x_half(src)
    want = N.convert(x, src, dst)
    for y in (x, np.repeat(x, 3)[::3], np.broadcast_to(x, (2, 5))):
        out = np.empty(y.shape, want.dtype)
        assert N.convert(y, src, dst, out=out) is out and (out == want).all()
        assert (N.convert(y, src, dst, out=np.empty((7, *y.shape), want.dtype)) == want).all()


def x_half(dtype: DType) -> np.ndarray:
    """Something to truncate, of a float."""
    return np.array(0.5 if info(dtype).floating else 0, info(dtype).carrier)


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
            want = [extreme_reference(*v, larger, propagate) for v in zip(a.tolist(), b.tolist(), strict=True)]
            assert_same(got, want)
    if propagate:
        odd_nan = np.array([0xFFC00123], np.uint32).view(np.float32)
        assert N.maximum(odd_nan, np.float32([1]), True).view(np.uint32).tolist() == [0x7FC00000], "canonical"


def test_extremes_of_ints_and_bools():
    x = np.array([-128, 127, 0], np.int8)
    assert N.minimum(x, np.int8(1), False).tolist() == [-128, 1, 0]
    assert N.maximum(np.array([255], np.uint8), np.uint8(1), False).tolist() == [255]
    assert N.maximum(np.array([True, False]), np.array([False, False]), False).tolist() == [True, False]


def test_float_floordiv_floors_the_rounded_quotient():
    own = np.random.default_rng(0)
    x, y = (N.round_to(float16, own.uniform(1, 60, 8000).astype(np.float32)) for _ in range(2))
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
    if dtype in (float16, bfloat16):
        r = pow_reference(v, n, float32)
        return reference(Fraction(r), dtype) or math.copysign(0.0, r) if math.isfinite(r) else r

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
    want = [pow_reference(v, n, dtype) for v, n in zip(x.tolist(), mixed.tolist(), strict=True)]
    assert_same(N.pow_by_squaring(x, mixed, dtype), want)
    assert_same(N.pow_by_squaring(np.array([1.0], x.dtype), np.array([-(2**31)], np.int32), dtype), [1.0])
