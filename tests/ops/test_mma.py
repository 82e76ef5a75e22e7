from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutile import settings
from cutile.dtypes import (
    NUMERIC,
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
    int16,
    int32,
    tfloat32,
    uint8,
)
from cutile.errors import TileTypeError
from cutile.ops import _numeric, mma
from cutile.types import TileType
from tests.ops.ruling import Bench, nearest, same_bits

RNG = np.random.default_rng(4)
PAIRS = [(d, d, a) for d, accs in mma.ACCUMULATORS.items() for a in accs] + [(int8, uint8, int32), (uint8, int8, int32)]


def values(dtype, shape, scale=1.0):
    if info(dtype).integral:
        lo, hi = (-128, 128) if dtype is int8 else (0, 256) if dtype is uint8 else (-2**31, 2**31)
        return RNG.integers(lo, hi, shape).astype(info(dtype).carrier)
    x = RNG.standard_normal(shape) * scale
    return _numeric.round_to(dtype, x)


def product(x, y, acc, dx, dy, da, **kwargs):
    w = Bench()
    return w(mma.mma, w.tile(x, dx), w.tile(y, dy), w.tile(acc, da), **kwargs)


def exact(x, y, acc):
    """x @ y + acc in exact arithmetic, and the sum of magnitudes that bounds its rounding."""
    x, y, acc = (np.vectorize(Fraction, otypes=[object])(np.asarray(a, dtype=float)) for a in (x, y, acc))
    return x @ y + acc, abs(x) @ abs(y) + abs(acc)


# ------------------------------------------------------------------ values


@pytest.mark.parametrize("dx, dy, da", PAIRS)
def test_small_integers_are_exact_in_every_format(dx, dy, da):
    low = 0 if uint8 in (dx, dy) else -2
    x, y, acc = RNG.integers(low, 3, (4, 8)), RNG.integers(low, 3, (8, 2)), RNG.integers(-9, 9, (4, 2))
    got = product(x, y, acc, dx, dy, da)
    assert got.tolist() == (x @ y + acc).tolist()


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("dx, dy, da", [p for p in PAIRS if info(p[2]).floating])
def test_floats_are_within_the_error_of_the_sum(dx, dy, da, portable):
    x, y, acc = values(dx, (4, 32)), values(dy, (32, 8)), values(da, (4, 8))
    with settings.override(PORTABLE=portable):
        got = product(x, y, acc, dx, dy, da)
    want, size = exact(x, y, acc)
    inner = Fraction(2) ** (-52 if da is float64 else -23) * 34
    last = Fraction(2) ** -(info(da).format.mantissa + 1)
    for g, v, s in zip(got.ravel(), want.ravel(), size.ravel(), strict=True):
        assert abs(Fraction(float(g)) - v) <= s * inner + (abs(v) + s * inner) * last


@pytest.mark.parametrize("dx, dy, da", [p for p in PAIRS if info(p[2]).floating and p[2] is not float64])
def test_portable_sums_exact_products_in_k_order(dx, dy, da):
    x, y, acc = values(dx, (2, 16), 2.0), values(dy, (16, 4), 2.0), values(da, (2, 4))
    with settings.override(PORTABLE=True):
        got = product(x, y, acc, dx, dy, da)
    for m, n in np.ndindex(2, 4):
        total = 0.0
        for k in range(16):
            total += float(x[m, k]) * float(y[k, n])
        assert got[m, n] == nearest(Fraction(total + float(acc[m, n])), da)


@pytest.mark.parametrize("k", [16, 256, 2048])
@pytest.mark.parametrize("dx, dy", [(int8, int8), (uint8, uint8), (int8, uint8), (uint8, int8)])
def test_integers_are_exact_and_wrap(dx, dy, k):
    x, y, acc = values(dx, (2, k)), values(dy, (k, 4)), values(int32, (2, 4))
    x[0], y[:, 0] = (255 if dx is uint8 else -128), (255 if dy is uint8 else -128)
    acc[0, 0] = 2**31 - 1
    want = x.astype(object) @ y.astype(object) + acc.astype(object)
    want = (want + 2**31) % 2**32 - 2**31
    assert product(x, y, acc, dx, dy, int32).tolist() == want.tolist()


def test_float32_is_not_demoted_and_tfloat32_is_what_it_says():
    x, one = np.full((1, 1), 1 + 2.0**-20), np.ones((1, 1))
    assert product(x, one, 0 * one, float32, float32, float32) == 1 + 2.0**-20


def test_float16_accumulator_rounds_and_overflows():
    big = np.full((1, 1), 300.0)
    assert product(big, big, 0 * big, float16, float16, float16) == np.inf
    assert product(big, big, 0 * big, float16, float16, float32) == 90000
    assert product(np.ones((1, 2)), [[2048.0], [1.0]], np.zeros((1, 1)), float16, float16, float16) == 2048


def test_nan_and_infinity_come_through():
    x = [[np.inf, 0.0], [1.0, np.nan]]
    got = product(x, np.zeros((2, 2)), np.zeros((2, 2)), float32, float32, float32)
    assert np.isnan(got).all()


# ------------------------------------------------------------------ shapes, blocks and memory


@given(st.data())
def test_bits_depend_on_the_operands_alone(data):
    """Not on batch axes, broadcasting or memory layout."""
    m, n, k = (data.draw(st.sampled_from([1, 2, 8, 32])) for _ in range(3))
    x, y = values(float32, (3, 1, 1, m, k)), values(float32, (1, 2, 1, k, n))
    acc = values(float32, (m, n))

    def odd(a):
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, -1, 0)), 0, -1)

    def strange(a):  # NumPy ignores the strides of axes of size 1 when it says contiguous
        strides = [7 * a.itemsize if d == 1 else s for d, s in zip(a.shape, a.strides, strict=True)]
        return np.lib.stride_tricks.as_strided(a, a.shape, strides)

    w = Bench()
    grid = w(mma.mma, w.tile(x, float32, (m, k)), w.tile(y, float32, (k, n)), w.tile(acc, float32))
    assert grid.shape == (3, 2, 1, m, n)
    def spaced(a):  # rows of a wider matrix
        return np.concatenate([a, values(float32, (*a.shape[:-1], 3))], axis=-1)[..., :a.shape[-1]]

    for change in (odd, strange, spaced):
        again = w(mma.mma, w.tile(change(x), float32, (m, k)), w.tile(change(y), float32, (k, n)), w.tile(acc, float32))
        assert same_bits(again, grid)
    for i, j in np.ndindex(3, 2):
        assert same_bits(product(x[i, 0, 0].copy(), y[0, j, 0].copy(), acc, float32, float32, float32), grid[i, j, 0])


def test_batches_broadcast():
    x, y = RNG.integers(-5, 5, (4, 2, 8)), RNG.integers(-5, 5, (1, 8, 2))
    got = product(x, y, np.zeros((4, 2, 2)), float32, float32, float32)
    assert np.array_equal(got, x @ y)
    assert np.array_equal(product(x, y[0], np.ones((4, 2, 2)), float32, float32, float32), x @ y[0] + 1)
    lead = RNG.integers(-5, 5, (3, 1, 1, 2, 8))
    w = Bench()
    got = w(mma.mma, w.tile(lead, float16, (2, 8)), w.tile(np.broadcast_to(y, (4, 8, 2)), float16),
            w.tile(np.zeros((4, 2, 2)), float32))
    assert np.array_equal(got, lead[:, :, :, None] @ np.broadcast_to(y, (4, 8, 2)))


def test_acc_may_vary_where_the_product_does_not():
    w = Bench()
    acc = np.arange(12).reshape(3, 1, 1, 2, 2)
    one = np.ones((2, 2))
    got = w(mma.mma, w.tile(one, float32), w.tile(one, float32), w.tile(acc, float32, (2, 2)))
    assert np.array_equal(got, acc + 2)


def test_operands_are_left_alone():
    x = values(float32, (4, 4))
    acc = values(float32, (4, 4))
    before = acc.copy()
    product(x, x, acc, float32, float32, float32)
    assert np.array_equal(acc, before)


# ------------------------------------------------------------------ refusals


def refused(op, *types, match, **kwargs):
    w = Bench()
    with pytest.raises(TileTypeError, match=match):
        w.call(op, *(w.given(None, TileType(d, s)) for d, s in types), **kwargs)


M = (4, 4)


@pytest.mark.parametrize("x, y, acc, match", [
    ((4,), M, M, "rank 2 or 3"), (M, (4,), M, "rank 2 or 3"), ((2, 2, 4, 4), M, M, "rank 2 or 3"),
    ((), M, M, "rank 2 or 3"),
    ((4, 8), M, M, "K is 8"), ((2, 4, 4), (4, 4, 4), (4, 4, 4), "batch"), (M, M, (), "shape of the product"),
    (M, M, (1, 4), "shape of the product"), (M, M, (1, 4, 4), "shape of the product"),
])
def test_refused_shapes(x, y, acc, match):
    refused(mma.mma, (float32, x), (float32, y), (float32, acc), match=match)


def test_dtype_table():
    good = set(PAIRS)
    for dx in NUMERIC:
        for dy in NUMERIC:
            for da in (float16, bfloat16, float32, float64, int32, int16):
                w = Bench()
                args = [w.given(None, TileType(d, M)) for d in (dx, dy, da)]
                if (dx, dy, da) in good:
                    assert w.call(mma.mma, *args).type == TileType(da, M)
                else:
                    with pytest.raises(TileTypeError):
                        w.call(mma.mma, *args)


def test_fast_accumulation():
    f8 = [(float8_e5m2, M), (float8_e5m2, M), (float32, M)]
    w = Bench()
    w.call(mma.mma, *(w.given(None, TileType(d, s)) for d, s in f8), use_fast_acc=True)
    assert w.b.region.nodes[-1].attrs == {"use_fast_acc": True}
    refused(mma.mma, (float16, M), (float16, M), (float32, M), match="use_fast_acc", use_fast_acc=True)
    refused(mma.mma, *f8, match="use_fast_acc", use_fast_acc=1)


# ------------------------------------------------------------------ matmul


@pytest.mark.parametrize("x, y", [((8,), (8,)), ((8,), (8, 4)), ((2, 8), (8,)), ((2, 8), (8, 4)), ((8,), (4, 8, 2)),
                                  ((4, 2, 8), (8,)), ((4, 2, 8), (1, 8, 2)), ((2, 8), (4, 8, 2))])
def test_matmul_shapes_are_numpys(x, y):
    a, b = RNG.integers(-5, 5, x), RNG.integers(-5, 5, y)
    w = Bench()
    got = w(mma.matmul, w.tile(a, float32), w.tile(b, float32))
    assert got.shape == (a @ b).shape and np.array_equal(got, a @ b)


def matmul(x, y, dx, dy):
    w = Bench()
    t = w.call(mma.matmul, w.tile(x, dx), w.tile(y, dy))
    return t.type.dtype, w.value(t), w.ops()


def test_matmul_accumulates_in_the_first_accumulator():
    ones = np.ones((1, 2))
    assert matmul(ones, [[2048.0], [1.0]], float16, float16)[:2] == (float16, 2048)
    dtype, got, ops = matmul(ones * 256, np.full((2, 1), 256.0), float8_e5m2, float8_e5m2)
    assert dtype is float8_e5m2 and got == 57344 and ops[-2:] == ["mma", "astype"]
    assert matmul(ones, [[256.0], [1.0]], bfloat16, bfloat16)[:2] == (bfloat16, 256)
    assert matmul(ones * 100, [[100], [3]], int8, int8)[:2] == (int8, (10300 + 128) % 256 - 128)


def test_matmul_promotes():
    assert matmul([[2]], [[1.5]], int8, float16)[:2] == (float16, 3)
    assert matmul([[True]], [[-7]], bool_, int8)[:2] == (int8, -7)
    assert matmul([[1.0]], [[1.5]], float16, float32)[:2] == (float32, 1.5)


@pytest.mark.parametrize("dx, dy", [
    (int16, int16), (int32, int8), (bool_, bool_), (int8, uint8), (float8_e5m2, float16), (float16, bfloat16),
    (float4_e2m1fn, float4_e2m1fn),
])
def test_matmul_refuses_dtypes(dx, dy):
    refused(mma.matmul, (dx, M), (dy, M), match=dx.name)


def test_matmul_refuses_scalars_arrays_and_ranks():
    refused(mma.matmul, (float32, ()), (float32, M), match="rank 1, 2 or 3")
    refused(mma.matmul, (float32, M), (float32, (1, 1, 4, 4)), match="rank 1, 2 or 3")
    refused(mma.matmul, (float32, M), (float32, (8, 4)), match="K is 4")
    w = Bench()
    with pytest.raises(TileTypeError, match="array"):
        w.call(mma.matmul, w.array(None, float32, 2), w.tile(np.ones(M), float32))
    with pytest.raises(TileTypeError, match="rank"):
        w.call(mma.matmul, w.tile(np.ones(M), float32), 2.0)


# ------------------------------------------------------------------ mma_scaled


@pytest.mark.parametrize("d, s, block", [(d, s, n) for (d, s), blocks in mma.SCALE_BLOCKS.items() for n in blocks])
def test_scaled(d, s, block):
    x, y = values(d, (2, 64)), values(d, (64, 4))
    scales = [2.0**-3, 1.0, 4.0] if s is float8_e8m0fnu else [0.5, 1.5, 3.0]
    sx, sy = RNG.choice(scales, (2, 64 // block)), RNG.choice(scales, (64 // block, 4))
    acc = values(float32, (2, 4))
    want, size = exact(x.astype(float) * np.repeat(sx, block, 1), y.astype(float) * np.repeat(sy, block, 0), acc)
    for portable in (False, True):
        w = Bench()
        with settings.override(PORTABLE=portable):
            got = w(mma.mma_scaled, w.tile(x, d), w.tile(sx, s), w.tile(y, d), w.tile(sy, s), w.tile(acc, float32))
        for g, v, t in zip(got.ravel(), want.ravel(), size.ravel(), strict=True):
            assert abs(Fraction(float(g)) - v) <= abs(v) * Fraction(2) ** -24 + t * Fraction(2) ** -45


def test_scales_beyond_float32_do_not_overflow_on_the_way():
    w = Bench()
    big, tiny = np.full((1, 1), 2.0**127), np.full((1, 1), 2.0**-127)
    x = np.ones((1, 32))
    got = w(mma.mma_scaled, w.tile(x * 448, float8_e4m3fn), w.tile(big, float8_e8m0fnu), w.tile(x.T, float8_e4m3fn),
            w.tile(tiny, float8_e8m0fnu), w.tile([[1.0]], float32))
    assert got == 448 * 32 + 1


def test_scaled_batches():
    x, y = RNG.integers(-2, 3, (4, 2, 32)), RNG.integers(-2, 3, (32, 2))
    w = Bench()
    got = w(mma.mma_scaled, w.tile(x, float8_e5m2), w.tile(np.full((4, 2, 1), 2.0), float8_e8m0fnu),
            w.tile(y, float8_e5m2), w.tile(np.ones((1, 2)), float8_e8m0fnu), w.tile(np.zeros((4, 2, 2)), float32))
    assert np.array_equal(got, 2 * (x @ y))


E4, E8 = float8_e4m3fn, float8_e8m0fnu
GOOD = [(E4, (2, 64)), (E8, (2, 2)), (E4, (64, 4)), (E8, (2, 4)), (float32, (2, 4))]


@pytest.mark.parametrize("k, change, match", [
    (0, (float8_e5m2, (2, 64)), "dtype of x"), (1, (float8_e5m3fnu, (2, 2)), "dtype of x_scale"),
    (1, (E8, (2, 4)), "32 elements"),
    (1, (E8, (1, 2)), "32 elements"), (1, (E8, (1, 2, 2)), "32 elements"), (3, (E8, (4, 2)), "32 elements"),
    (4, (float16, (2, 4)), "float32"), (4, (float32, (4, 2)), "shape of the product"), (0, (E4, (64,)), "rank 2 or 3"),
    (2, (E4, (32, 4)), "K is 64"),
])
def test_refused_scales(k, change, match):
    types = list(GOOD)
    types[k] = change
    refused(mma.mma_scaled, *types, match=match)


def test_refused_scale_pairs():
    for d, s in ((float16, E8), (E4, E4), (float8_e5m2, float8_e5m3fnu), (float4_e2m1fn, float8_e5m2)):
        types = [(d, (2, 64)), (s, (2, 2)), (d, (64, 4)), (s, (2, 4)), (float32, (2, 4))]
        refused(mma.mma_scaled, *types, match="no product")
    mixed = [(float4_e2m1fn, (2, 64)), (E8, (2, 2)), (float4_e2m1fn, (64, 4)), (E8, (4, 4)), (float32, (2, 4))]
    refused(mma.mma_scaled, *mixed, match="as many scales")


def test_tfloat32_products_are_exact():
    x, y = values(tfloat32, (1, 1)), values(tfloat32, (1, 1))
    got = product(x, y, np.zeros((1, 1)), tfloat32, tfloat32, float32)
    assert float(got[0, 0]) == float(x[0, 0]) * float(y[0, 0])
