"""fma and directed rounding against fractions: ties, cancellation, both ends of the range, special values."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import settings as cutile_settings
from cutile.dtypes import DType, bfloat16, float16, float32, float64, info
from cutile.ops import _exact
from cutile.ops import _numeric as N
from cutile.types import RoundingMode
from tests.ops.oracle import (
    FORMATS,
    INF,
    NAN,
    RM,
    RN,
    RP,
    RZ,
    SPECIAL,
    assert_same,
    exponent,
    floats,
    quotient_of_specials,
    reference,
    rng,
)


@pytest.fixture(autouse=True, params=[True, False], ids=["compiled", "numpy"])
def form(request):
    with np.errstate(all="ignore"), cutile_settings.override(COMPILED=request.param):
        yield


# ------------------------------------------------------------------ fma


def near_ties(dtype: DType, n: int):
    """Triples whose exact result lies at, or a hair beside, the middle between two values of the dtype."""
    m, _, _ = FORMATS[dtype]
    x = N.round_to(dtype, (rng.integers(1 << m, 2 << m, n) * 2.0 ** -m).astype(info(dtype).carrier))
    y = N.round_to(dtype, (rng.integers(1 << m, 2 << m, n) * 2.0 ** -m).astype(info(dtype).carrier))
    shift = rng.choice([-m - 1, m + 1, 2 * m, -2 * m, 0, -3 * m if m < 20 else -m], n)
    z = N.round_to(dtype, np.ldexp(rng.choice([1.0, -1.0, 1.5, 3.0], n), shift).astype(info(dtype).carrier))
    return x, y, z


def scaled(dtype: DType, exponents) -> np.ndarray:
    return N.round_to(dtype, np.ldexp(rng.standard_normal(400), exponents).astype(info(dtype).carrier))


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


def test_single_numbers_at_the_ends_of_the_range():
    tiny, one = np.float64(2.0**-1000), np.float64(1)
    assert N.fma(tiny, tiny, one, float64) == one and N.fma(tiny, one, tiny, float64) == 2 * tiny
    assert N.directed("mul", RP, float64, tiny, tiny) == 5e-324


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
def test_fma_rounds_once(dtype):
    triples = [near_ties(dtype, 1500), tuple(floats(1000, dtype) for _ in range(3))]
    small = [scaled(dtype, rng.integers(-8, 8, 400)) for _ in range(2)]
    tiny = scaled(dtype, FORMATS[dtype][1] - 3)
    triples += [(*small, tiny), (tiny, small[0], tiny[::-1]), (tiny, tiny, tiny)]
    for x, y, z in triples:
        got = N.fma(x, y, z, dtype)
        assert got.dtype == info(dtype).carrier
        want = [fma_reference(*v, dtype) for v in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)]
        assert_same(got, want, dtype)


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
def test_fma_special_values(dtype):
    top = float(FORMATS[dtype][2])
    values = [*SPECIAL, top, -top]
    grid = np.array(np.meshgrid(values, values, values), info(dtype).carrier).reshape(3, -1)
    want = [fma_reference(*v, dtype) for v in zip(*grid.tolist(), strict=True)]
    assert_same(N.fma(*grid, dtype), want)


def test_fma_beside_a_tie_between_subnormals():
    """The product lies 2**-46 of itself below half a unit, which float64 cannot tell beside z."""
    x, y = (np.float32((1 + s * 2.0**-23) * 2.0**-75) for s in (-1, 1))
    z = np.array([(2**19 + 1) * 2.0**-149, (2**19 + 2) * 2.0**-149], np.float32)
    for sign in (1, -1):
        got = N.fma(np.full(2, x * np.float32(sign)), y, z * np.float32(sign), float32)
        want = [fma_reference(float(x) * sign, float(y), float(v) * sign, float32) for v in z]
        assert want == [sign * float(v) for v in z]
        assert_same(got, want)


@pytest.mark.parametrize("dtype", [float16, float32], ids=str)
@pytest.mark.parametrize("shapes", [[(5, 1, 9, 32)] * 3, [(5, 1, 9, 32), (32,), (9, 1)], [(1, 7, 32), (5, 1, 1), ()]],
                         ids=str)
def test_fma_of_much_goes_part_by_part(monkeypatch, dtype, shapes):
    """With ties, subnormals and repeated axes; the result is that of all at once, also in `out`."""
    x, y, z = (np.resize(v, shape) for v, shape in zip(near_ties(dtype, 2000), shapes))
    x = np.where(np.resize([True] * 6 + [False], x.shape), x, np.ldexp(x, FORMATS[dtype][1])).astype(np.float32)
    y = np.broadcast_to(y, np.broadcast_shapes(y.shape, (9, 32) if y.ndim == 1 else y.shape))
    whole = N.fma(x, y, z, dtype)
    monkeypatch.setattr(_exact, "FEW", 0)
    monkeypatch.setattr(_exact, "AT_ONCE", 64)
    monkeypatch.setattr(_exact, "AT_ONCE64", 64)
    out = np.empty(whole.shape, np.float32)
    assert N.fma(x, y, z, dtype, out) is out
    assert_same(out, whole.ravel().tolist())
    assert_same(N.fma(x, y, z, dtype), whole.ravel().tolist())


@pytest.fixture(params=[0, _exact.FEW], ids=["in pieces", "at once"])
def few(request, monkeypatch):
    """Small arrays are computed as large ones are, or as small ones."""
    monkeypatch.setattr(_exact, "FEW", request.param)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("dtype", [float32, float16], ids=str)
@pytest.mark.parametrize("every", [1, 3, 100])
def test_fma_finds_few_ties_and_many(dtype, every):
    """1 + half a unit in the last place, a little more or less: what the sum in float64 loses decides."""
    m = info(dtype).format.mantissa
    x = np.full((20, 1, 40), np.float32(1.5))
    z = np.ones((20, 1, 40), np.float32)
    y = np.full(40, np.float32(2.0**-m))  # 1.5 units: no tie
    x.reshape(-1)[::every] = np.float32(1 + 2.0**-10)
    z.reshape(-1)[::every] = np.float32(2.0**24)
    y[::every] = np.float32(0.5)
    x.reshape(-1)[::2 * every] = np.float32(2.0**-30)  # and what vanishes beside it, of both signs
    x.reshape(-1)[::4 * every] *= -1
    z[0, 0, ::every] = np.float32(2.0**-m + 1) if dtype is float16 else np.float32(0)
    want = [fma_reference(*v, dtype) for v in zip(x.ravel().tolist(), np.broadcast_to(y, x.shape).ravel().tolist(),
                                                  z.ravel().tolist(), strict=True)]
    assert_same(N.fma(x, y, z, dtype).ravel(), want)
    out = np.full(x.shape, NAN, np.float32)
    assert_same(N.fma(x, y, z, dtype, out=out if dtype is float32 else None).ravel(), want)


@pytest.mark.usefixtures("few")
def test_fma_mends_ties_in_a_large_array():
    a, b = np.float32(1 + 2.0**-12), np.float32(1 - 2.0**-12)  # a * a is half a unit above 1 + 2**-11
    z = np.zeros(4096, np.float32)
    z[7::1000] = [2.0**-80, -2.0**-80, 2.0**-80, -2.0**-80, 0]
    x, out = np.full(4096, np.float32(3)), np.empty(4096, np.float32)
    y = np.full(4096, b)
    x[7::1000] = y[7::1000] = a
    got = N.fma(x, y, z, float32, out=out)
    assert got is out
    low, high = 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-23
    assert got[7::1000].tolist() == [high, low, high, low, low]
    assert (np.delete(got, np.arange(7, 4096, 1000)) == np.float32(3) * b).all()


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


@given(st.floats(width=32), st.floats(width=32), st.floats(width=32))
@settings(max_examples=200, deadline=None)
def test_fma_property(a, b, c):
    with np.errstate(all="ignore"):
        got = N.fma(*(np.array([v], np.float32) for v in (a, b, c)), float32)
    assert_same(got, [fma_reference(a, b, c, float32)])
