from fractions import Fraction

import numpy as np
import pytest

from cutile.dtypes import bfloat16, bool_, float8_e5m2, float16, float32, float64, int8, int32, int64, uint8
from cutile.errors import TileTypeError
from cutile.ops import _numeric, arithmetic, scan
from cutile.ops._constants import strict
from cutile.types import TileType
from tests.ops.combining import CombineBench, apply, function
from tests.ops.ruling import Bench, nearest, same_bits

RNG = np.random.default_rng(2)


def run(op, values, dtype, *args, **kwargs):
    w = Bench()
    return w(op, w.tile(values, dtype), *args, **kwargs)


def in_order(xs, f):
    out = [xs[0]]
    for x in xs[1:]:
        out.append(f(out[-1], x))
    return out


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64])
@pytest.mark.parametrize("op, f", [(scan.cumsum, Fraction.__add__), (scan.cumprod, Fraction.__mul__)])
def test_floats_go_in_order_and_round_at_each_step(dtype, op, f):
    x = _numeric.round_to(dtype, RNG.uniform(0.7, 1.4, 64) * RNG.choice([-1, 1], 64))

    def step(a, b):
        return nearest(f(Fraction(a), Fraction(b)), dtype)

    assert run(op, x, dtype).tolist() == in_order(x.tolist(), step)
    assert run(op, x, dtype, reverse=True).tolist() == in_order(x.tolist()[::-1], step)[::-1]


def test_axes_leading_axes_and_layout():
    x = RNG.standard_normal((2, 1, 3, 4, 8)).astype(np.float32)
    for axis in (0, 1, -1, -2):
        for op in (scan.cumsum, scan.cumprod):
            for dtype in (float32, float16):
                v = _numeric.round_to(dtype, x)
                w = Bench()
                got = w(op, w.tile(v, dtype, (4, 8)), axis)
                turned = np.moveaxis(np.ascontiguousarray(np.moveaxis(v, -1, 0)), 0, -1)
                assert same_bits(w(op, w.tile(turned, dtype, (4, 8)), axis), got)
                for k in np.ndindex(2, 1, 3):
                    assert same_bits(w(op, w.tile(v[k], dtype), axis), got[k])
    assert run(scan.cumsum, [[1, 2], [3, 4]], int32).tolist() == [[1, 2], [4, 6]]
    assert run(scan.cumsum, [[1, 2], [3, 4]], int32, 1, reverse=True).tolist() == [[3, 2], [7, 4]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint64])
@pytest.mark.parametrize("ufunc", [np.add, np.multiply])
def test_short_rows_have_the_bits_of_numpys_accumulate(dtype, ufunc):
    """In every layout, with NaNs, infinities and zeros of both signs. Of two NaNs NumPy may take either."""
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    x = RNG.integers(0, np.iinfo(word).max, (6, 50, 16), word, endpoint=True).view(dtype)
    if np.dtype(dtype).kind == "f":
        x[:2] = RNG.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.0], dtype), (2, 50, 16))
    with np.errstate(all="ignore"):
        for a in (x, x[::-1, :, ::-1], np.asfortranarray(x), np.broadcast_to(x[:1], x.shape), x.transpose(2, 0, 1)):
            for axis in (0, 1, 2, -1):
                want = ufunc.accumulate(a, axis=axis, dtype=a.dtype)
                assert same_bits(scan._stepwise(ufunc, a, axis), want)


def test_integers_wrap_and_booleans_count():
    assert run(scan.cumsum, [100, 100, 100, 0], int8).tolist() == [100, -56, 44, 44]
    assert run(scan.cumprod, [16, 16, 3, 1], uint8).tolist() == [16, 0, 0, 0]
    got = run(scan.cumsum, [True, False, True, True], bool_)
    assert got.dtype == np.int32 and got.tolist() == [1, 1, 2, 3]
    assert run(scan.cumprod, [True, False, True, True], bool_).tolist() == [1, 0, 0, 0]


def test_options():
    up = np.nextafter(np.float32(1), np.float32(2))
    assert run(scan.cumsum, [1, 2.0**-30], float32, rounding_mode="RP").tolist() == [1, up]
    assert run(scan.cumsum, [1, 2.0**-30], float32, rounding_mode="RZ").tolist() == [1, 1]
    assert run(scan.cumsum, [2.0**-127, 2.0**-127], float32).tolist() == [2.0**-127, 2.0**-126]
    assert run(scan.cumsum, [2.0**-127, 2.0**-127], float32, flush_to_zero=True)[1] == 0
    for op in (scan.cumsum, scan.cumprod):
        with pytest.raises(TileTypeError, match="APPROX"):
            run(op, [1.0], float32, rounding_mode="APPROX")
        with pytest.raises(TileTypeError, match="bool_"):
            run(op, [True], bool_, rounding_mode="RZ")
        with pytest.raises(TileTypeError, match="float64"):
            run(op, [1.0], float64, flush_to_zero=True)


def test_first_element_is_flushed_too():
    assert run(scan.cumsum, [2.0**-130, 1.0], float32, flush_to_zero=True)[0] == 0


@pytest.mark.parametrize("axis", [None, (0,), 1, -2, True, 0.0])
def test_bad_axis(axis):
    for op in (scan.cumsum, scan.cumprod):
        with pytest.raises(TileTypeError, match="axis"):
            run(op, [1, 2], int32, axis)


def test_refused():
    for op in (scan.cumsum, scan.cumprod):
        with pytest.raises(TileTypeError, match="axis"):
            run(op, 1.0, float32)
        with pytest.raises(TileTypeError, match="float8_e5m2"):
            run(op, [1.0], float8_e5m2)
        with pytest.raises(TileTypeError, match="reverse"):
            run(op, [1.0], float32, reverse=1)


# ------------------------------------------------------------------ scan with the user's function


def affine(b, a0, c0, a1, c1):
    """x -> a*x + c, first the accumulated one, then the next: associative, not commutative."""
    mul, add = arithmetic.mul, arithmetic.add
    return apply(b, mul, a1, a0), apply(b, add, apply(b, mul, a1, c0), c1)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_passes_the_accumulated_first(reverse):
    a, c = RNG.integers(-3, 4, (2, 4, 8))
    w = CombineBench()
    ga, gc = w(scan.scan, (w.tile(a, int64), w.tile(c, int64)), 1, function(affine), (1, 0), reverse=reverse)
    order = slice(None, None, -1 if reverse else 1)
    for row in range(4):
        want = in_order(list(zip(a[row, order].tolist(), c[row, order].tolist(), strict=True)),
                        lambda p, q: (q[0] * p[0], q[0] * p[1] + q[1]))
        assert list(zip(ga[row, order].tolist(), gc[row, order].tolist(), strict=True)) == want


def test_scan_of_one_tile_ignores_the_identity():
    w = CombineBench()
    got = w(scan.scan, w.tile([1, 10, 100, 1000], int32), 0, function(arithmetic.sub), 5)
    assert got.tolist() == [1, -9, -109, -1109]
    assert w(scan.scan, w.tile([[3], [4]], int32), -1, function(arithmetic.sub), 5).tolist() == [[3], [4]]


def test_captured_values_may_vary_by_block():
    w = CombineBench()
    offset = w.given(np.array([1, 10], np.int32).reshape(2, 1, 1), TileType(int32))

    def plus(b, x, y):
        return apply(b, arithmetic.add, apply(b, arithmetic.add, x, y), offset)

    got = w(scan.scan, w.tile([1, 2, 3, 4], int32), 0, function(plus), 0)
    assert got.shape == (2, 1, 1, 4)
    assert got[:, 0, 0].tolist() == [[1, 4, 8, 13], [1, 13, 26, 40]]


@pytest.mark.parametrize("args, word", [
    (([1, 2], None, function(arithmetic.sub), 0), "axis"), ((1, 0, function(arithmetic.sub), 0), "axis"),
    (([1, 2], 0, 5, 0), "function"), (([1, 2], 0, function(arithmetic.sub), (0,)), "identity"),
    ((([1, 2], [3, 4]), 0, function(affine), (0,)), "identity"),
    (([1, 2], 0, function(lambda b, x, y: 0.5), 0), "implicitly"),
    (([1, 2], 0, function(lambda b, x, y: strict(1.0, float32)), 0), "implicitly"),
])
def test_refused_scans(args, word):
    w = CombineBench()

    def tiles(a):
        return w.tile(a, int32) if isinstance(a, list) else tuple(map(tiles, a)) if isinstance(a, tuple) else a

    x, *rest = args
    with pytest.raises(TileTypeError, match=word):
        w.call(scan.scan, tiles(x), *rest)
    with pytest.raises(TileTypeError, match="reverse"):
        w.call(scan.scan, tiles([1]), 0, function(arithmetic.sub), 0, reverse=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("f, one", [(np.maximum, _numeric.maximum), (np.minimum, _numeric.minimum)])
@pytest.mark.parametrize("reverse", [False, True])
def test_extremes_of_floats_in_one_call(dtype, f, one, reverse):
    """They pass over NaN, tell zeros apart, and have the bits that one step after another has."""
    values = [np.nan, -np.nan, 0.0, -0.0, -1.5, np.inf, -np.inf, 3.0, 1e-40, -1e-40]
    x = RNG.choice(np.array(values, dtype), (3, 5, 64), p=[0.3, 0.3, *[0.05] * 8])
    for at in (x, x[:, :, :40], np.full((1, 2, 9), np.nan, dtype), np.moveaxis(x, 0, -1)):
        steps = at[..., ::-1] if reverse else at
        want = in_order([steps[..., k] for k in range(at.shape[-1])], lambda a, b: one(a, b, False))
        want = np.stack(want[::-1] if reverse else want, -1)
        assert same_bits(scan._extremes(f, at, -1, reverse), want)
