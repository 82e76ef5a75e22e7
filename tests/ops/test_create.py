"""Factories."""

import math

import numpy as np
import pytest

from cutile import dtypes as d
from cutile.errors import TileTypeError, TileValueError
from cutile.ir.terms import Const, Leaf
from cutile.ops import create as cr
from cutile.ops._promotion import value_of
from tests.ops.ruling import Bench, constant_of

NUMERIC = d.NUMERIC


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
def test_zeros_and_ones(dtype):
    k = Bench()
    zero = 2.0**-127 if dtype is d.float8_e8m0fnu else 0
    assert k(cr.zeros, (2, 4), dtype).tolist() == [[zero] * 4] * 2
    r = k.call(cr.ones, 4, dtype)
    assert r.type.dtype is dtype and k.value(r).tolist() == [1] * 4


@pytest.mark.parametrize("value, dtype, want", [
    (1 << 40, d.int32, 0), (-1, d.uint8, 255), (300, d.int8, 44), (1.5, d.int16, 1), (0.5, d.bool_, True),
    (0.1, d.float64, 0.1), (0.1, d.float32, float(np.float32(0.1))), (1e9, d.float16, math.inf),
    (465.0, d.float8_e4m3fn, math.nan), (5.0, d.float4_e2m1fn, 4.0),
])
def test_a_constant_fill_converts_as_a_constant(value, dtype, want):
    k = Bench()
    np.testing.assert_array_equal(k(cr.full, (2, 2), value, dtype), np.full((2, 2), want))
    c = k.call(cr.full, (), value, dtype)
    assert isinstance(c, Const) and not c.loose and c.dtype is dtype
    assert c.value == want or math.isnan(want) and math.isnan(c.value)


def test_a_run_time_fill_is_cast():
    k = Bench()
    x = k.tile(300.7, d.float32)
    assert k(cr.full, 4, x, d.int16).tolist() == [300] * 4
    r = k.call(cr.full, (), x, d.int32)
    assert isinstance(r, Leaf) and r.type.shape == () and k.value(r) == 300


def test_full_over_blocks():
    k = Bench()
    x = k.tile(np.arange(6).reshape(2, 1, 3), d.int32, ())
    got = k(cr.full, (2, 4), x, d.int32)
    assert (got == np.arange(6).reshape(2, 1, 3, 1, 1) + np.zeros((2, 4), int)).all()


@pytest.mark.parametrize("args, message", [
    ((3, 0, d.int8), "power of two, got 3"), ((0, 0, d.int8), "power of two"), ((2.0, 0, d.int8), "integer constant"),
    ((2, "a", d.int8), '"fill_value".*string'),
    ((2, None, d.int8), '"fill_value"'), ((2, (1, 2), d.int8), '"fill_value"'),
    ((2, 0, 3), "expected a dtype"), ((2, 0, float), "expected a dtype"),
    ((2, 0, d.foreign_pointer_dtype(d.int8)), "numeric dtype"),
])
def test_full_refuses(args, message):
    with pytest.raises(TileTypeError, match=message):
        Bench().call(cr.full, *args)


def test_full_refuses_what_varies():
    k = Bench()
    with pytest.raises(TileTypeError, match="scalar"):
        k.call(cr.full, 2, k.tile([1, 2], d.int8), d.int8)
    with pytest.raises(TileTypeError, match="not constant"):
        k.call(cr.full, k.tile(2, d.int32), 0, d.int8)
    with pytest.raises(TileValueError):
        k.call(cr.full, 2, math.nan, d.int32)
    with pytest.raises(TileValueError):
        k.call(cr.full, 2, -1.0, d.float8_e8m0fnu)


@pytest.mark.parametrize("dtype", [t for t in NUMERIC if t is not d.float8_e8m0fnu], ids=str)
def test_arange_counts(dtype):
    k = Bench()
    r = k.call(cr.arange, 4, dtype=dtype)
    want = {d.bool_: [False, True, True, True]}.get(dtype, [0, 1, 2, 3])
    assert k.value(r).tolist() == want
    assert r.type.dtype is dtype and r.type.shape == (4,)


def test_what_no_cast_reaches_is_refused():
    k = Bench()
    with pytest.raises(TileTypeError, match="int32 cannot be converted to float8_e8m0fnu"):
        k.call(cr.arange, 4, dtype=d.float8_e8m0fnu)


def test_arange_with_start_and_step():
    k = Bench()
    assert k(cr.arange, 4, dtype=np.int32, start=10, step=3).tolist() == [10, 13, 16, 19]
    assert k(cr.arange, 4, dtype=d.float16, start=0.5, step=-2).tolist() == [0.5, -1.5, -3.5, -5.5]
    assert k(cr.arange, 4, dtype=d.int32, start=1.5).tolist() == [1, 2, 3, 4]
    assert k(cr.arange, 4, dtype=d.uint8, start=254).tolist() == [254, 255, 0, 1]
    assert k(cr.arange, 2, dtype=d.int64, start=k.tile(7, d.int8), step=k.tile(2.9, d.float32)).tolist() == [7, 9]
    assert k(cr.arange, 2, dtype=d.int32, start=k.tile([[10], [20]], d.int32)).tolist() == [[10, 11], [20, 21]]


def test_arange_builds_no_more_than_it_must():
    k = Bench()
    k.call(cr.arange, 8, dtype=d.int32, start=0.5, step=1.2)
    assert k.ops() == ["iota"]
    k.call(cr.arange, 8, dtype=d.float32, start=1, step=2)
    assert [n for n in k.ops() if n in ("mul", "add")] == ["mul", "add"]


def test_arange_wraps_in_the_width_of_the_dtype():
    k = Bench()
    assert k(cr.arange, 256, dtype=d.int8).tolist() == [*range(128), *range(-128, 0)]
    assert k(cr.arange, 256, dtype=d.uint8).tolist() == [*range(256)]
    with pytest.raises(TileValueError, match="512"):
        k.call(cr.arange, 512, dtype=d.uint8)


@pytest.mark.parametrize("size, kwargs, message", [
    (3, {"dtype": d.int32}, "power of two"), (4.0, {"dtype": d.int32}, "integer constant"),
    ((4,), {"dtype": d.int32}, "integer constant"), (4, {"dtype": d.bool_, "start": 1}, "bool_"),
    (4, {"dtype": d.float8_e5m2, "step": 2}, "float8_e5m2"), (4, {"dtype": d.int32, "start": "a"}, "string"),
    (4, {"dtype": "int32"}, "expected a dtype"),
])
def test_arange_refuses(size, kwargs, message):
    with pytest.raises(TileTypeError, match=message):
        Bench().call(cr.arange, size, **kwargs)


def test_arange_start_must_broadcast():
    k = Bench()
    with pytest.raises(TileTypeError, match=r"\(4,\) and \(2,\)"):
        k.call(cr.arange, 4, dtype=d.int32, start=k.tile([1, 2], d.int32))


def test_astile():
    k = Bench()
    assert k(cr.astile, ((1, 2), (3, 4)), dtype=d.int8).tolist() == [[1, 2], [3, 4]]
    assert k(cr.astile, (1.5, -1, True, 300), dtype=d.uint8).tolist() == [1, 255, 1, 44]
    r = k.call(cr.astile, ((k.tile(2.5, d.float32), 1),), dtype=d.float16)
    assert str(r.type) == "f16[1,2]" and k.value(r).tolist() == [[2.5, 1.0]]
    c = k.call(cr.astile, 7, dtype=d.int8)
    assert isinstance(c, Const) and c.dtype is d.int8 and not c.loose
    assert k.value(k.call(cr.astile, k.tile(2.9, d.float32), dtype=d.int32)) == 2


@pytest.mark.parametrize("lead", [(3,), (2, 1, 3)])
def test_astile_over_blocks(lead):
    k = Bench()
    v = np.arange(math.prod(lead)).reshape(lead)
    got = k(cr.astile, (k.tile(v, d.int32, ()), 5), dtype=d.int32)
    assert got.shape == (*lead, 2) and (got[..., 0] == v).all() and (got[..., 1] == 5).all()


@pytest.mark.parametrize("value, message", [
    ((), "power of two, got 0"), ((1, 2, 3), "power of two, got 3"), (((1, 2), 3), "expected a tuple"),
    ((1, (2, 3)), "different depths"), (((1, 2), (3,)), "different lengths"), (("a", "b"), "string"),
    (None, "None"),
])
def test_astile_refuses(value, message):
    with pytest.raises(TileTypeError, match=message):
        Bench().call(cr.astile, value, dtype=d.int32)


def test_astile_refuses_tiles_inside():
    k = Bench()
    x = k.tile([1, 2], d.int32)
    for value in ((x, x), x):
        with pytest.raises(TileTypeError, match="scalar"):
            k.call(cr.astile, value, dtype=d.int32)


def test_constants_carry_their_value():
    k = Bench()
    for value, dtype in ((-5, d.int8), (math.nan, d.float16), (True, d.bool_), (2**64 - 1, d.uint64),
                         (-0.0, d.float64)):
        r = Leaf(value_of(k.b, constant_of(value, dtype)))
        got = k.value(r)
        assert repr(got.item()) == repr(value) and r.type.dtype is dtype
