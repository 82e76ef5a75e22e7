import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutile import settings
from cutile.dtypes import (
    bfloat16,
    bool_,
    float8_e4m3fn,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint32,
)
from cutile.errors import TileTypeError
from cutile.ir.terms import Const, Leaf
from cutile.ops import _numeric, arithmetic, reduce, select
from cutile.ops import compare as cmp
from cutile.ops._constants import loose, strict
from cutile.types import RoundingMode, TileType
from tests.ops.combining import CombineBench, apply, function
from tests.ops.ruling import Bench, nearest, same_bits

RNG = np.random.default_rng(1)
NAN, INF = math.nan, math.inf


def run(op, values, dtype, *args, **kwargs):
    w = Bench()
    return w(op, w.tile(values, dtype), *args, **kwargs)


def result_type(op, dtype, shape, *args, **kwargs):
    w = Bench()
    return w.call(op, w.given(None, TileType(dtype, shape)), *args, **kwargs).type


# ------------------------------------------------------------------ types


@pytest.mark.parametrize("axis, keepdims, shape", [
    (None, False, ()), (None, True, (1, 1, 1)), (0, False, (4, 8)), (-1, False, (2, 4)), (1, True, (2, 1, 8)),
    ((0, 2), False, (4,)), ((-1, 0), True, (1, 4, 1)), ((), False, (2, 4, 8)), ((), True, (2, 4, 8)),
])
@pytest.mark.parametrize("op", [reduce.sum, reduce.prod, reduce.max, reduce.min])
def test_shapes(op, axis, keepdims, shape):
    assert result_type(op, float32, (2, 4, 8), axis, keepdims=keepdims) == TileType(float32, shape)


@pytest.mark.parametrize("axis, keepdims, shape", [
    (None, False, ()), (None, True, (1, 1)), (0, False, (4,)), (-1, True, (2, 1)),
])
def test_arg_shapes(axis, keepdims, shape):
    for op in (reduce.argmax, reduce.argmin):
        assert result_type(op, float32, (2, 4), axis, keepdims=keepdims) == TileType(int32, shape)


@pytest.mark.parametrize("axis", [2, -3, (0, 0), (0, -2), (0, 2), True, 1.0, "0"])
@pytest.mark.parametrize("op", [reduce.sum, reduce.max])
def test_bad_axis(op, axis):
    with pytest.raises(TileTypeError, match="axis"):
        result_type(op, float32, (2, 4), axis)


def test_axis_must_be_constant_and_single_for_arg():
    w = Bench()
    with pytest.raises(TileTypeError, match="axis"):
        w.call(reduce.sum, w.tile([1.0], float32), w.tile(0, int32))
    for op in (reduce.argmax, reduce.argmin):
        with pytest.raises(TileTypeError, match="axis"):
            result_type(op, float32, (2, 4), (0,))


def test_refused_operands():
    w = Bench()
    for op in (reduce.sum, reduce.prod, reduce.max, reduce.min, reduce.argmax, reduce.argmin):
        with pytest.raises(TileTypeError, match="float8_e4m3fn"):
            result_type(op, float8_e4m3fn, (4,))
        with pytest.raises(TileTypeError, match="array"):
            w.call(op, w.array(None, float32, 1))
        with pytest.raises(TileTypeError, match="tuple"):
            w.call(op, (1, 2))
        with pytest.raises(TileTypeError, match="keepdims"):
            result_type(op, float32, (4,), keepdims=1)


def test_options_are_checked():
    for op in (reduce.sum, reduce.prod):
        with pytest.raises(TileTypeError, match="FULL"):
            result_type(op, float32, (4,), rounding_mode="FULL")
        for d in (int32, bool_):
            with pytest.raises(TileTypeError, match=d.name):
                result_type(op, d, (4,), rounding_mode=RoundingMode.RZ)
    for op in (reduce.sum, reduce.max):
        with pytest.raises(TileTypeError, match="float16"):
            result_type(op, float16, (4,), flush_to_zero=True)
    with pytest.raises(TileTypeError, match="propagate_nan"):
        result_type(reduce.max, float32, (4,), propagate_nan=0)


def test_scalars():
    w = Bench()
    for t in (loose(2.5), strict(3, int8)):
        assert w.call(reduce.sum, t) is t
    x = w.tile(2.5, float32)
    assert w.call(reduce.max, x) is x
    one = w.call(reduce.sum, loose(True))
    assert isinstance(one, Const) and one.dtype is int32 and one.value == 1
    assert w(reduce.argmax, x) == 0
    with pytest.raises(TileTypeError, match="axis"):
        w.call(reduce.sum, x, 0)


# ------------------------------------------------------------------ integers and booleans


def test_integers_wrap():
    assert run(reduce.sum, [100, 100, 1, 0], int8) == -55
    assert run(reduce.prod, [16, 16, 3, 1], uint8) == 0
    assert run(reduce.sum, [2**31, 2**31, 5, 0], uint32) == 5
    assert run(reduce.prod, [2**62, 2, 2, 1], int64) == 0
    assert run(reduce.sum, [[1, 2], [3, 4]], int16, 0).tolist() == [4, 6]


def test_booleans_count_in_int32():
    values = [True, False, True, True]
    for op, want in ((reduce.sum, 3), (reduce.prod, 0), (reduce.max, 1), (reduce.min, 0)):
        got = run(op, values, bool_)
        assert got.dtype == np.int32 and got == want
    assert run(reduce.argmin, values, bool_) == 1


# ------------------------------------------------------------------ order of float sums


def halving(xs, f):
    xs = list(xs)
    while len(xs) > 1:
        n = len(xs) // 2
        xs = [f(a, b) for a, b in zip(xs[:n], xs[n:], strict=True)]
    return xs[0]


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64])
@pytest.mark.parametrize("op, f", [(reduce.sum, Fraction.__add__), (reduce.prod, Fraction.__mul__)])
def test_halving_tree_rounds_at_each_level(dtype, op, f):
    def step(a, b):
        return nearest(f(Fraction(a), Fraction(b)), dtype)

    with settings.override(PORTABLE=True):
        for n in (1, 2, 8, 32):
            x = _numeric.round_to(dtype, RNG.uniform(0.5, 2, n) * RNG.choice([-1, 1], n))
            assert run(op, x, dtype) == halving(x.tolist(), step)


def test_narrow_sums_are_halving_trees_by_default_too():
    x = _numeric.round_to(float16, RNG.standard_normal(64))
    want = halving(x.tolist(), lambda a, b: nearest(Fraction(a) + Fraction(b), float16))
    assert run(reduce.sum, x, float16) == want
    assert run(reduce.sum, np.full(4, 40000), float16) == INF


@pytest.mark.parametrize("portable", [False, True])
@given(st.data())
def test_a_sum_depends_on_its_row_alone(portable, data):
    """Equal bits for any number of batch axes, any memory layout, any neighbours."""
    shape = data.draw(st.sampled_from([(8,), (1024,), (4, 256), (256, 4), (16, 1), (2, 128, 2)]))
    axis = data.draw(st.integers(0, len(shape) - 1))
    dtype = data.draw(st.sampled_from([float32, float64, bfloat16]))
    lead = data.draw(st.sampled_from([(3, 1, 2), (5,), (1, 1, 1), (1,), (2, 4, 1)]))
    x = _numeric.round_to(dtype, RNG.standard_normal(lead + shape))
    with settings.override(PORTABLE=portable):
        w = Bench()
        together = w(reduce.sum, w.tile(x, dtype, shape), axis)
        strided = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, -1, 0)), 0, -1)
        assert strided.strides != x.strides or x.shape[-1] == 1 or strided.size == x.shape[-1]
        assert np.array_equal(w(reduce.sum, w.tile(strided, dtype, shape), axis), together)
        gap = np.repeat(x, 2, axis=-1)[..., ::2]
        assert np.array_equal(w(reduce.sum, w.tile(gap, dtype, shape), axis), together)
        turned = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, len(lead) - 1)), len(lead) - 1, 0)
        assert np.array_equal(w(reduce.sum, w.tile(turned, dtype, shape), axis), together)
        for k in np.ndindex(*lead):
            assert np.array_equal(w(reduce.sum, w.tile(x[k].copy(), dtype), axis), together[k])


@pytest.mark.parametrize("shape, axis", [((1024,), 0), ((64, 64), 0), ((64, 64), None)])
def test_sums_are_accurate(shape, axis):
    x = RNG.standard_normal(shape).astype(np.float32)
    exact = np.sum(x.astype(np.longdouble), axis=axis)
    size = np.sum(np.abs(x).astype(np.longdouble), axis=axis)
    assert np.all(np.abs(run(reduce.sum, x, float32, axis) - exact) <= 3e-7 * size)


def test_axes_one_by_one_in_increasing_order():
    w = Bench()
    w.call(reduce.sum, w.given(None, TileType(float32, (2, 4, 8))), (2, 0), keepdims=True)
    nodes = w.b.region.nodes
    assert [n.op.name for n in nodes] == ["sum", "sum", "reshape"]
    assert [n.attrs["axis"] for n in nodes[:2]] == [-3, -1]
    assert [n.results[0].type.shape for n in nodes] == [(4, 8), (4,), (1, 4, 1)]
    x = RNG.integers(-9, 9, (2, 4, 8))
    assert np.array_equal(run(reduce.sum, x, int32, (2, 0)), x.sum((0, 2)))


def test_rounding_modes():
    x = [1.0, 2.0**-30, 0.0, 0.0]
    assert run(reduce.sum, x, float32) == 1
    assert run(reduce.sum, x, float32, rounding_mode="RP") == np.nextafter(np.float32(1), np.float32(2))
    assert run(reduce.sum, [-v for v in x], float32, rounding_mode="RZ") == -1
    assert run(reduce.sum, [-v for v in x], float32, rounding_mode="RM") == np.nextafter(np.float32(-1), np.float32(-2))
    assert run(reduce.prod, [1 + 2.0**-23] * 2, float32, rounding_mode="RP") == 1 + 2.0**-22 + 2.0**-23


def test_flush_to_zero():
    tiny = 2.0**-130
    assert run(reduce.sum, [tiny] * 4, float32) == 4 * tiny
    assert same_bits(run(reduce.sum, [-tiny] * 2, float32, flush_to_zero=True), np.float32(-0.0))
    assert run(reduce.prod, [2.0**-100, 2.0**-30], float32, flush_to_zero=True) == 0
    assert same_bits(run(reduce.max, [-1.0, -tiny], float32, flush_to_zero=True), np.float32(-0.0))


# ------------------------------------------------------------------ max, min and where they are


@pytest.mark.parametrize("dtype", [float16, float32, float64])
@pytest.mark.parametrize("values, default, propagated", [
    ([1, NAN, 3, 2], 3, NAN), ([NAN, NAN, NAN, NAN], NAN, NAN), ([NAN, -INF], -INF, NAN), ([-0.0, 0.0], 0.0, 0.0),
    ([0.0, -0.0], 0.0, 0.0), ([-0.0, -0.0], -0.0, -0.0), ([-1, -0.0], -0.0, -0.0), ([NAN, -0.0], -0.0, NAN),
    ([-INF, -5], -5, -5), ([INF, NAN], INF, NAN), ([-INF, -INF], -INF, -INF),
])
def test_extremes_of_floats(dtype, values, default, propagated):
    for nan, want in ((False, default), (True, propagated)):
        assert same_bits(run(reduce.max, values, dtype, propagate_nan=nan), want)
        assert same_bits(run(reduce.min, [-v for v in values], dtype, propagate_nan=nan), -want)


def test_extremes_along_axes_agree_with_pairs():
    x = RNG.choice([0.0, -0.0, 1.0, -1.0, NAN, INF, -INF], (3, 1, 2, 8, 4)).astype(np.float32)
    for op, pair in ((reduce.max, _numeric.maximum), (reduce.min, _numeric.minimum)):
        for nan in (False, True):
            for axis in (0, 1):
                w = Bench()
                got = w(op, w.tile(x, float32, (8, 4)), axis, propagate_nan=nan)
                parts = np.moveaxis(x, axis - 2, 0)
                want = parts[0]
                for p in parts[1:]:
                    want = pair(want, p, nan)
                assert same_bits(got, want)


@pytest.mark.parametrize("values, default, propagated", [
    ([1, 3, 3, 2], 1, 1), ([NAN, 1, NAN, 2], 3, 0), ([NAN, NAN], 0, 0), ([NAN, -INF], 1, 0), ([-INF, NAN], 0, 1),
    ([NAN, -INF, -INF, NAN], 1, 0), ([-0.0, 0.0], 0, 0), ([0.0, -0.0], 0, 0), ([5, NAN, 7, NAN], 2, 1),
    ([INF, NAN], 0, 1),
])
def test_arg(values, default, propagated):
    for dtype in (float16, float32, float64):
        for nan, want in ((False, default), (True, propagated)):
            assert run(reduce.argmax, values, dtype, propagate_nan=nan) == want
            assert run(reduce.argmin, [-v for v in values], dtype, propagate_nan=nan) == want


def test_arg_axis_and_flattening():
    x = np.array([[1, 9, 2, 9], [9, 0, -3, 4]])
    assert run(reduce.argmax, x, int32, 1).tolist() == [1, 0]
    assert run(reduce.argmin, x, int32, 0).tolist() == [0, 1, 1, 1]
    assert run(reduce.argmax, x, int32) == 1 and run(reduce.argmin, x, int32) == 6
    lead = np.stack([x, x[::-1]])[:, None, None]
    w = Bench()
    got = w(reduce.argmax, w.tile(lead, int32, (2, 4)))
    assert got.shape == (2, 1, 1) and got.ravel().tolist() == [1, 0]
    nan = np.array([[NAN, 2, NAN, 1]] * 2)
    assert run(reduce.argmax, nan.T, float32, 0).tolist() == [1, 1]


# ------------------------------------------------------------------ reduce with the user's function


def subtract(b, x, y):
    return apply(b, arithmetic.sub, x, y)


def test_user_reduce_is_a_halving_tree():
    w = CombineBench()
    got = w(reduce.reduce, w.tile([1, 10, 100, 1000], int32), 0, function(subtract), 0)
    assert got == (1 - 100) - (10 - 1000) and w.combined == 2
    assert w(reduce.reduce, w.tile([7, 3], int32), 0, function(subtract), 5) == 4
    assert w(reduce.reduce, w.tile([7], int32), 0, function(subtract), 5) == 7


def test_user_reduce_axes_and_keepdims():
    x = RNG.integers(-50, 50, (2, 1, 3, 4, 8))
    w = CombineBench()
    t = w.tile(x, int32, (4, 8))
    assert np.array_equal(w(reduce.reduce, t, 0, function(arithmetic.add), 0), x.sum(-2))
    got = w(reduce.reduce, t, -1, function(arithmetic.maximum), -99, keepdims=True)
    assert np.array_equal(got, x.max(-1, keepdims=True))


def test_reduce_of_a_tuple():
    def better(b, av, ai, bv, bi):
        first = apply(b, cmp.greater, av, bv)
        return apply(b, select.where, first, av, bv), apply(b, select.where, first, ai, bi)

    x = RNG.permutation(32).reshape(4, 8)
    w = CombineBench()
    v, i = w(reduce.reduce, (w.tile(x, int32), w.tile(np.arange(8), int16)), 1, function(better), (0, 0))
    assert np.array_equal(v, x.max(1)) and np.array_equal(i, x.argmax(1)) and i.dtype == np.int16


def test_captured_values_may_vary_by_block():
    w = CombineBench()
    offset = w.given(np.array([1, 10], np.int32).reshape(2, 1, 1), TileType(int32))

    def plus(b, x, y):
        return apply(b, arithmetic.add, apply(b, arithmetic.add, x, y), offset)

    got = w(reduce.reduce, w.tile([1, 2, 3, 4], int32), 0, function(plus), 0)
    assert got.shape == (2, 1, 1) and got.ravel().tolist() == [10 + 3, 10 + 30]
    assert w(reduce.reduce, w.tile([[1, 2], [3, 4]], int32), 0, function(lambda b, x, y: 7), 0).tolist() == [7, 7]


@pytest.mark.parametrize("args, word", [
    (((), 0, function(subtract), 0), "empty tuple"), ((None, 0, function(subtract), 0), "None"),
    (([1, 2], None, function(subtract), 0), "axis"), (([1, 2], (0,), function(subtract), 0), "axis"),
    (([1, 2], 1, function(subtract), 0), "axis"), ((1, 0, function(subtract), 0), "axis"),
    (([1, 2], 0, 5, 0), "function"), (([1, 2], 0, "max", 0), "function"), (([1, 2], 0, None, 0), "function"),
    (([1, 2], 0, function(subtract), (0,)), "identity"), (([1, 2], 0, function(subtract), None), "identity"),
    (([1, 2], 0, function(lambda b, x, y: (x, y)), 0), "one scalar"),
    (([1, 2], 0, function(lambda b, x, y: None), 0), "one scalar"),
    (([1, 2], 0, function(lambda b, x, y: 0.5), 0), "implicitly"),
    (([1, 2], 0, function(lambda b, x, y: strict(1, int64)), 0), "implicitly"),
])
def test_refused_reduces(args, word):
    w = CombineBench()
    args = [w.tile(a, int32) if isinstance(a, list) else a for a in args]
    with pytest.raises(TileTypeError, match=word):
        w.call(reduce.reduce, *args)


def test_refused_tuples():
    w = CombineBench()
    x = w.tile([1, 2], int32)
    with pytest.raises(TileTypeError, match="identity"):
        w.call(reduce.reduce, (x, x), 0, function(subtract), 0)
    with pytest.raises(TileTypeError, match="identity"):
        w.call(reduce.reduce, (x, x), 0, function(subtract), (0, x))
    with pytest.raises(TileTypeError, match="tuple of 2"):
        w.call(reduce.reduce, (x, x), 0, function(lambda b, *a: a[0]), (0, 0))
    with pytest.raises(TileTypeError, match="broadcast"):
        w.call(reduce.reduce, (x, w.tile([1, 2, 3, 4], int32)), 0, function(lambda b, *a: a[:2]), (0, 0))


def test_identity_is_converted_silently():
    for dtype, given_, stored in ((int32, 0.5, 0), (int8, 300, 44), (bool_, 7, True), (float16, 1e9, INF)):
        w = CombineBench()
        w.call(reduce.reduce, w.tile([0, 0], dtype), 0, function(lambda b, x, y: x), given_)
        assert w.b.region.nodes[-1].attrs["identity"] == (stored,)


def test_restricted_floats_may_be_moved():
    w = CombineBench()
    assert w(reduce.reduce, w.tile([1.5, 2.0], float8_e4m3fn), 0, function(lambda b, x, y: y), 0) == 2
    assert isinstance(w.call(reduce.reduce, w.tile([1.5, 2.0], float8_e4m3fn), 0, function(lambda b, x, y: x), 0), Leaf)


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("shape", [(1,), (2,), (8,), (64,), (256,), (4, 8), (8, 4), (2, 1, 16)])
@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
def test_sums_of_negative_zeros(dtype, shape, portable):
    """Whatever the length of a row: NumPy adds no +0 of its own [D-14]."""
    with settings.override(PORTABLE=portable):
        for axis in (None, 0, -1):
            y = np.asarray(run(reduce.sum, np.full(shape, -0.0).tolist(), dtype, axis))
            assert np.signbit(y).all() and not y.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 4, 8, 16, 64, 128, 256, 1024])
def test_sums_element_by_element_have_the_bits_of_packed_rows(dtype, n):
    """Whatever the layout of the rows, and however few elements they have."""
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((40, 3, n)) * np.exp(rng.uniform(-20, 20, (40, 3, n)))).astype(dtype)
    x[0, 0, :n // 2 + 1], x[1, 0], x[2, 0, 0], x[3, 1, n // 2], x[4, 0] = -0.0, -0.0, np.inf, np.nan, -np.inf
    want = np.add.reduce(x, axis=-1, initial=-0.0).tobytes()
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0)
    for y in (x, np.asfortranarray(x), last):
        assert reduce._sum_by_elements(y).tobytes() == reduce._sum_of_rows(y).tobytes() == want


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float32])
@pytest.mark.parametrize("f", [np.add, np.multiply, np.maximum])
@pytest.mark.parametrize("shape, axis", [((5, 1), -1), ((5, 2, 4), -2), ((7, 8), -1), ((3, 8, 2), -2), ((3, 16), -1)])
def test_short_axes_reduce_as_long_ones_do(dtype, f, shape, axis):
    x = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    y = reduce._reduced_by(f, x, axis)
    assert y.dtype == dtype and (y == f.reduce(x, axis=axis, dtype=dtype)).all()
