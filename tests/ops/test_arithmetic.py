"""Arithmetic against exact oracles: big integers and fractions."""

import math
import operator
from fractions import Fraction

import numpy as np
import pytest

from cutile import dtypes as d
from cutile.errors import TileTypeError, TileValueError
from cutile.ir.terms import Const, Leaf, Tuple
from cutile.ops import _numeric
from cutile.ops import arithmetic as ar
from cutile.types import RoundingMode
from tests.ops.ruling import Bench, constant_of, nearest, same_bits

INTS = (d.int8, d.int16, d.int32, d.int64, d.uint8, d.uint16, d.uint32, d.uint64)
FLOATS = (d.float16, d.bfloat16, d.float32, d.float64)
INF, NAN = math.inf, math.nan


def wrap(n: int, dtype) -> int:
    lo, hi = d.int_range(dtype)
    return (n - lo) % (hi - lo + 1) + lo


def some_ints(dtype, n=200, seed=0):
    lo, hi = d.int_range(dtype)
    edge = [v for v in (lo, lo + 1, -2, -1, 0, 1, 2, 3, hi - 1, hi) if lo <= v <= hi]
    rng = np.random.default_rng(seed)
    picked = [edge[i] for i in rng.integers(0, len(edge), n)]
    picked += map(int, rng.integers(lo, hi, n, endpoint=True, dtype=dtype.name))
    rng.shuffle(picked)
    return picked[:256]


def some_floats(dtype, n=256, seed=0):
    """Random bit patterns, finite, so that all exponents and subnormals occur."""
    rng = np.random.default_rng(seed)
    word = np.dtype(f"u{dtype.bitwidth // 8}")
    x = _numeric.from_bits(rng.integers(0, np.iinfo(word).max, 2 * n, endpoint=True, dtype=word), dtype)
    return x[np.isfinite(x)][:n]


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("op, exact", [(ar.add, lambda a, b: a + b), (ar.sub, lambda a, b: a - b),
                                       (ar.mul, lambda a, b: a * b)], ids=["add", "sub", "mul"])
def test_integers_wrap(op, exact, dtype):
    x, y = some_ints(dtype, seed=1), some_ints(dtype, seed=2)
    k = Bench()
    assert k(op, k.tile(x, dtype), k.tile(y, dtype)).tolist() == [wrap(exact(a, b), dtype) for a, b in zip(x, y)]


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integer_division_is_exact_and_rounds_as_named(dtype):
    x = some_ints(dtype, seed=3)
    y = [v or 1 for v in some_ints(dtype, seed=4)]
    k = Bench()
    a, b = k.tile(x, dtype), k.tile(y, dtype)
    assert k(ar.floordiv, a, b).tolist() == [wrap(p // q, dtype) for p, q in zip(x, y)]
    assert k(ar.mod, a, b).tolist() == [p % q for p, q in zip(x, y)]
    assert k(ar.cdiv, a, b).tolist() == [wrap(-(-p // q), dtype) for p, q in zip(x, y)]
    q, r = k(ar.divmod, a, b)
    assert q.tolist() == k(ar.floordiv, a, b).tolist() and r.tolist() == k(ar.mod, a, b).tolist()


def test_integer_division_by_zero_is_deterministic():
    k = Bench()
    x, z = k.tile([5, 0, -5, -1], d.int32), k.tile([0] * 4, d.int32)
    assert k(ar.floordiv, x, z).tolist() == [-1, -1, -2, -2]
    assert k(ar.mod, x, z).tolist() == [-1] * 4
    assert k(ar.cdiv, x, z).tolist() == [0, 0, -1, -1]
    assert k(ar.floordiv, k.tile([7], d.uint8), k.tile([0], d.uint8)).tolist() == [255]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op, exact", [(ar.add, lambda a, b: a + b), (ar.sub, lambda a, b: a - b),
                                       (ar.mul, lambda a, b: a * b), (ar.truediv, lambda a, b: a / b)],
                         ids=["add", "sub", "mul", "truediv"])
def test_floats_round_once(op, exact, dtype):
    x, y = some_floats(dtype, seed=5), some_floats(dtype, seed=6)
    y = y.copy()
    y[:64] = x[:64] * y.dtype.type(0.75)
    y = _numeric.round_to(dtype, y)
    y[y == 0] = 1
    k = Bench()
    got = k(op, k.tile(x, dtype), k.tile(y, dtype))
    want = [nearest(exact(Fraction(float(a)), Fraction(float(b))), dtype) for a, b in zip(x, y)]
    assert (got == np.asarray(want, got.dtype)).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_floordiv_is_the_floor_of_the_rounded_quotient(dtype):
    x, y = some_floats(dtype, seed=7), some_floats(dtype, seed=8)
    y = np.where(y == 0, 1, y).astype(y.dtype)
    k = Bench()
    got = k(ar.floordiv, k.tile(x, dtype), k.tile(y, dtype))
    up = k(ar.cdiv, k.tile(x, dtype), k.tile(y, dtype))
    for a, b, g, c in zip(x, y, got, up):
        q = nearest(Fraction(float(a)) / Fraction(float(b)), dtype)
        assert g == (math.floor(q) if math.isfinite(q) else q)
        assert c == (math.ceil(q) if math.isfinite(q) else q)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_mod_has_the_sign_of_the_divisor(dtype):
    x, y = some_floats(dtype, seed=9), some_floats(dtype, seed=10)
    y = _numeric.round_to(dtype, np.where(np.arange(y.size) % 2, x * x.dtype.type(0.4), y))
    y = np.where(y == 0, 1, y).astype(y.dtype)
    k = Bench()
    got = k(ar.mod, k.tile(x, dtype), k.tile(y, dtype))
    for a, b, g in zip(x, y, got):
        p, q = Fraction(float(a)), Fraction(float(b))
        r = p - q * math.trunc(p / q)
        r = r + q if r != 0 and (r < 0) != (q < 0) else r
        assert g == nearest(r, dtype)


def test_float_mod_special_values():
    k = Bench()
    x = k.tile([1.0, INF, 3.0, -1.0, 1.0], d.float32)
    y = k.tile([0.0, 2.0, INF, INF, -INF], d.float32)
    assert same_bits(k(ar.mod, x, y), [NAN, NAN, 3.0, INF, -INF])


def test_division_of_integers_is_in_float32_and_by_zero_is_ieee():
    k = Bench()
    r = k.call(ar.truediv, k.tile([1, -1, 0, 7], d.int64), k.tile([0, 0, 0, 2], d.int64))
    assert r.type.dtype is d.float32
    assert same_bits(k.value(r), [INF, -INF, NAN, 3.5])
    assert k.call(ar.truediv, k.tile([True], d.bool_), k.tile([True], d.bool_)).type.dtype is d.float32
    assert k(ar.truediv, k.tile([1], d.int8), 1000).tolist() == [np.float32(0.001)]


@pytest.mark.parametrize("mode", ["RZ", "RM", "RP", "RN"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", [ar.add, ar.sub, ar.mul, ar.truediv], ids=lambda o: o.name)
def test_rounding_modes_enclose_the_exact_result(op, dtype, mode):
    x, y = some_floats(dtype, 96, seed=11), some_floats(dtype, 96, seed=12)
    x, y = np.abs(x) % 8 + 1, np.where(y == 0, 1, np.abs(y) % 8 + 1) * np.where(np.arange(96) % 2, 1, -1)
    x, y = (_numeric.round_to(dtype, v.astype(d.info(dtype).carrier)) for v in (x, y))
    k = Bench()
    got = k(op, k.tile(x, dtype), k.tile(y, dtype), rounding_mode=mode)
    exact = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv}[op.name]
    for a, b, g in zip(x, y, got):
        q = exact(Fraction(float(a)), Fraction(float(b)))
        near = nearest(q, dtype)
        unit = Fraction(2) ** (max(math.frexp(near)[1] - 1, d.info(dtype).format.emin) - d.info(dtype).format.mantissa)
        err = Fraction(float(g)) - q
        assert {"RN": abs(err) <= unit / 2, "RM": -unit < err <= 0, "RP": 0 <= err < unit,
                "RZ": abs(err) < unit and (err == 0 or (err > 0) == (q < 0))}[mode]


def test_explicit_nearest_is_the_default_node():
    k = Bench()
    x = k.tile([1.0], d.float32)
    k.call(ar.add, x, x, rounding_mode=RoundingMode.RN)
    assert k.b.region.nodes[-1].attrs == {"rounding_mode": None, "flush_to_zero": False}


def test_options_are_checked_where_they_count():
    k = Bench()
    x, i, h = k.tile([1.0], d.float32), k.tile([1], d.int32), k.tile([1.0], d.float16)
    with pytest.raises(TileTypeError, match="int32"):
        k.call(ar.add, i, i, rounding_mode="RZ")
    with pytest.raises(TileTypeError, match="APPROX"):
        k.call(ar.add, x, x, rounding_mode="APPROX")
    with pytest.raises(TileTypeError, match="float32 result"):
        k.call(ar.truediv, h, h, rounding_mode="FULL")
    with pytest.raises(TileTypeError, match="flush_to_zero"):
        k.call(ar.mul, h, h, flush_to_zero=True)
    with pytest.raises(TileTypeError, match="nearest_even"):
        k.call(ar.add, x, x, rounding_mode="nearest_even")
    with pytest.raises(TileTypeError, match="bool constant"):
        k.call(ar.add, x, x, flush_to_zero=1)
    assert k.call(ar.add, 1, 2, rounding_mode="APPROX", flush_to_zero=True).value == 3
    assert k.call(ar.add, constant_of(1, d.int8), 2, rounding_mode="RZ").value == 3


def test_flush_to_zero_touches_inputs_and_results():
    tiny, small = 2.0**-140, 2.0**-126
    k = Bench()
    x, y = k.tile([tiny, -tiny, small, small], d.float32), k.tile([0.0, -0.0, -small * 0.5, 0.5], d.float32)
    assert same_bits(k(ar.add, x, y, flush_to_zero=True), [0.0, -0.0, small, np.float32(0.5)])
    assert same_bits(k(ar.mul, x, y, flush_to_zero=True), [0.0, 0.0, -0.0, 0.0])
    assert k(ar.mul, x, y)[3] == 2.0**-127
    assert same_bits(k(ar.maximum, x, k.tile([-0.0] * 4, d.float32), flush_to_zero=True), [0.0, -0.0, small, small])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_minimum_and_maximum_of_floats(dtype):
    k = Bench()
    x = k.tile([1.0, NAN, 2.0, NAN, 0.0, -0.0, -INF], dtype)
    y = k.tile([2.0, 5.0, NAN, NAN, -0.0, 0.0, NAN], dtype)
    assert same_bits(k(ar.minimum, x, y), [1.0, 5.0, 2.0, NAN, -0.0, -0.0, -INF])
    assert same_bits(k(ar.maximum, x, y), [2.0, 5.0, 2.0, NAN, 0.0, 0.0, -INF])
    assert same_bits(k(ar.maximum, x, y, propagate_nan=True), [2.0, NAN, NAN, NAN, 0.0, 0.0, NAN])


def test_minimum_of_integers_follows_signedness():
    k = Bench()
    assert k(ar.minimum, k.tile([200, 3], d.uint8), k.tile([100, 255], d.uint8)).tolist() == [100, 3]
    assert k(ar.maximum, k.tile([-1, 3], d.int8), k.tile([0, -128], d.int8)).tolist() == [0, 3]


def test_negative_positive_abs():
    k = Bench()
    assert k(ar.negative, k.tile([-128, 5], d.int8)).tolist() == [-128, -5]
    assert k(ar.negative, k.tile([0, 1, 255], d.uint8)).tolist() == [0, 255, 1]
    assert same_bits(k(ar.negative, k.tile([0.0, -0.0, INF], d.bfloat16)), [-0.0, 0.0, -INF])
    assert k(ar.abs, k.tile([-128, -5, 7], d.int8)).tolist() == [-128, 5, 7]
    assert k(ar.abs, k.tile([200, 1], d.uint8)).tolist() == [200, 1]
    assert same_bits(k(ar.abs, k.tile([-0.0, -INF, -2.0], d.float16)), [0.0, INF, 2.0])
    mask = k.tile([True], d.bool_)
    assert k.call(ar.abs, mask) is mask
    x = k.tile([1], d.int16)
    assert k.call(ar.positive, x) is x


def test_signs_of_a_mask_are_int32():
    k = Bench()
    mask = k.tile([True, False], d.bool_)
    for op, want in ((ar.negative, [-1, 0]), (ar.positive, [1, 0])):
        r = k.call(op, mask)
        assert r.type.dtype is d.int32 and k.value(r).tolist() == want
    assert k.call(ar.negative, constant_of(True, d.bool_)).value == -1


def test_promotion_and_broadcasting():
    k = Bench()
    r = k.call(ar.add, k.tile([[1], [2]], d.int8), k.tile([10, 20, 30, 40], d.int32))
    assert str(r.type) == "i32[2,4]"
    assert k.value(r).tolist() == [[11, 21, 31, 41], [12, 22, 32, 42]]
    assert k.call(ar.add, k.tile([1], d.int8), 0.5).type.dtype is d.float32
    assert k.call(ar.add, k.tile([True], d.bool_), 5).type.dtype is d.int32
    assert k(ar.mul, k.tile([1.0], d.float16), 1e10).tolist() == [INF]
    assert k(ar.mul, k.tile([True, False], d.bool_), 2.5).tolist() == [2.5, 0.0]


@pytest.mark.parametrize("lead", [(), (3,), (2, 1, 3)])
def test_blocks_are_leading_axes(lead):
    k = Bench()
    x = k.tile(np.arange(4 * math.prod(lead)).reshape(*lead, 4), d.int32, (4,))
    y = k.tile([1, 2, 3, 4], d.int32)
    got = k(ar.add, x, y)
    assert got.shape == (*lead, 4) and (got == np.arange(4 * math.prod(lead)).reshape(*lead, 4) + [1, 2, 3, 4]).all()


@pytest.mark.parametrize("x, y, message", [
    (lambda k: k.tile([1], d.int8), lambda k: k.tile([1], d.uint8), "int8 and uint8"),
    (lambda k: k.tile([1.0], d.float16), lambda k: k.tile([1.0], d.bfloat16), "float16 and bfloat16"),
    (lambda k: k.tile([1.0], d.float8_e5m2), lambda k: 1.0, "non-arithmetic dtype float8_e5m2"),
    (lambda k: k.tile([1, 2], d.int8), lambda k: k.tile([1, 2, 3, 4], d.int8), r"\(2,\) and \(4,\)"),
    (lambda k: None, lambda k: 1, "got None"),
    (lambda k: 1, lambda k: "a", "string 'a'"),
    (lambda k: (1, 2), lambda k: 1, "got tuple"),
    (lambda k: k.array(None, d.float32, 2), lambda k: 1, "float32 array of rank 2"),
    (lambda k: k.tile([True], d.bool_), lambda k: True, "two bool_ operands"),
])
@pytest.mark.parametrize("op", [ar.add, ar.mul, ar.floordiv, ar.mod, ar.cdiv, ar.divmod, ar.minimum],
                         ids=lambda o: o.name)
def test_operands_that_do_not_meet(op, x, y, message):
    k = Bench()
    with pytest.raises(TileTypeError, match=message):
        k.call(op, x(k), y(k))


def test_a_mask_times_a_mask_says_what_to_write():
    k = Bench()
    mask = k.tile([True], d.bool_)
    with pytest.raises(TileTypeError) as e:
        k.call(ar.mul, mask, mask)
    for text in ("a & b", "ct.where(mask, x, 0)", "astype"):
        assert text in e.value.help


@pytest.mark.parametrize("op", [ar.add, ar.floordiv, ar.mod, ar.maximum], ids=lambda o: o.name)
def test_a_literal_must_fit_the_integer_tile(op):
    k = Bench()
    with pytest.raises(TileValueError, match="300 does not fit uint8"):
        k.call(op, k.tile([1], d.uint8), 300)


def test_divmodis_for_integers():
    k = Bench()
    with pytest.raises(TileTypeError, match="integers only"):
        k.call(ar.divmod, k.tile([1.0], d.float32), 2)
    q, r = k.call(ar.divmod, 7.5, 2).items
    assert (q.value, r.value) == (3.0, 1.5)
    assert isinstance(k.call(ar.divmod, k.tile([7], d.int32), 2), Tuple)


@pytest.mark.parametrize("op, x, y, want", [
    (ar.add, True, True, 2), (ar.truediv, 7, 2, 3.5), (ar.floordiv, -7, 2, -4), (ar.mod, -7, 2, 1), (ar.cdiv, 7, 2, 4),
    (ar.cdiv, 7.5, 2, 4.0), (ar.minimum, 1, 2.5, 1), (ar.maximum, 1.0, 2, 2), (ar.mul, 1 << 40, 4, 1 << 42),
])
def test_loose_constants_fold_in_python(op, x, y, want):
    r = Bench().call(op, x, y)
    assert isinstance(r, Const) and r.loose and r.value == want and type(r.value) is type(want)


def test_loose_minimum_keeps_pythons_order_with_nan():
    k = Bench()
    assert math.isnan(k.call(ar.minimum, NAN, 1.0).value) and k.call(ar.maximum, 1.0, NAN).value == 1.0


@pytest.mark.parametrize("op, x, y, want, dtype", [
    (ar.add, constant_of(100, d.int8), constant_of(100, d.int8), -56, d.int8),
    (ar.floordiv, constant_of(-128, d.int8), constant_of(-1, d.int8), -128, d.int8),
    (ar.truediv, constant_of(7, d.float16), 2, 3.5, d.float16),
    (ar.truediv, constant_of(7, d.int64), 2, 3.5, d.float32),
    (ar.add, constant_of(0.1, d.float32), 0.2, float(np.float32(0.1) + np.float32(0.2)), d.float32),
    (ar.mul, constant_of(1e4, d.float16), constant_of(1e4, d.float16), INF, d.float16),
])
def test_strict_constants_fold_in_their_dtype(op, x, y, want, dtype):
    k = Bench()
    r = k.call(op, x, y)
    assert isinstance(r, Const) and not r.loose and r.value == want and r.dtype is dtype and not k.ops()


@pytest.mark.parametrize("op", [ar.truediv, ar.floordiv, ar.mod, ar.cdiv, ar.divmod], ids=lambda o: o.name)
@pytest.mark.parametrize("x, y", [(1, 0), (1.0, 0.0), (constant_of(1, d.int8), 0), (constant_of(1, d.float32), 0.0)])
def test_a_constant_zero_divisor_is_refused(op, x, y):
    with pytest.raises(TileValueError, match="division by zero"):
        Bench().call(op, x, y)


def test_constants_beyond_a_dtype():
    k = Bench()
    with pytest.raises(TileValueError):
        k.call(ar.add, constant_of(100, d.int8), 1000)
    with pytest.raises(TileValueError):
        k.call(ar.mul, 1 << 62, 4)
    assert k.call(ar.abs, constant_of(-128, d.int8)).value == -128
    assert k.call(ar.abs, constant_of(200, d.uint8)).value == 200


def test_cdiv_on_the_host():
    assert ar.cdiv(7, 2) == 4 and ar.cdiv(-7, 2) == -3 and ar.cdiv(8, 2) == 4
    with pytest.raises(RuntimeError, match="tile code"):
        ar.add(1, 2)


def fma(k: Bench, x: Leaf, y: Leaf, z: Leaf, mode: str | None) -> Leaf:
    return k.node(ar.fma, x, y, z, result=x.type, rounding_mode=mode and RoundingMode[mode], flush_to_zero=False)


@pytest.mark.parametrize("mode", [None, "RZ", "RM", "RP"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fma_rounds_once(dtype, mode):
    x, y, z = (some_floats(dtype, 200, seed=s) for s in (13, 14, 15))
    z = z.copy()
    with np.errstate(all="ignore"):
        z[:100] = _numeric.round_to(dtype, -(x * y)[:100].astype(z.dtype))
    z = np.where(np.isfinite(z), z, 1).astype(z.dtype)
    k = Bench()
    r = fma(k, k.tile(x, dtype), k.tile(y, dtype), k.tile(z, dtype), mode)
    f, big = d.info(dtype).format, d.info(dtype).format.max
    for a, b, c, g in zip(x, y, z, k.value(r)):
        q = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        near = nearest(q, dtype)
        if mode is None:
            assert g == near
        elif math.isinf(near) or math.isinf(g) or abs(g) == big:
            grows = mode == "RP" and q > 0 or mode == "RM" and q < 0
            assert abs(q) > Fraction(big) * Fraction(1, 2) and (not math.isinf(g) or grows)
        else:
            unit = Fraction(2) ** (max(math.frexp(near)[1] - 1, f.emin) - f.mantissa)
            err = Fraction(float(g)) - q
            assert abs(err) < unit and (err == 0 or (err > 0) == (mode == "RP" or mode == "RZ" and q < 0))


def test_fma_of_scalars_and_zeros():
    k = Bench()
    one, minus, zero = (k.tile(v, d.float64) for v in (1.0, -1.0, -0.0))
    for (x, y, z), mode, want in (((one, one, minus), "RM", -0.0), ((one, one, minus), "RP", 0.0),
                                  ((zero, one, zero), "RP", -0.0)):
        assert same_bits(k.value(fma(k, x, y, z, mode)), want)
