"""Comparisons and truth."""

import math
import operator

import numpy as np
import pytest

from cutile import dtypes as d
from cutile.errors import TileTypeError, TileValueError
from cutile.ir.terms import Const
from cutile.ops import compare as c
from tests.ops.ruling import Bench, constant_of, term

OPS = {c.equal: operator.eq, c.not_equal: operator.ne, c.less: operator.lt, c.less_equal: operator.le,
       c.greater: operator.gt, c.greater_equal: operator.ge}
INF, NAN = math.inf, math.nan
VALUES = {
    "i": [-128, -1, 0, 1, 127], "u": [0, 1, 127, 128, 255], "b": [False, True],
    "f": [-INF, -1.0, -0.0, 0.0, 1.0, INF, NAN],
}


@pytest.mark.parametrize("op", OPS, ids=lambda o: o.name)
@pytest.mark.parametrize("dtype", [d.bool_, d.int8, d.int64, d.uint8, d.float16, d.bfloat16, d.float32, d.float64],
                         ids=str)
def test_every_pair(op, dtype):
    v = VALUES[d.info(dtype).kind]
    k = Bench()
    r = k.call(op, k.tile([v], dtype), k.tile([[x] for x in v], dtype))
    assert r.type.dtype is d.bool_ and r.type.shape == (len(v), len(v))
    assert k.value(r).tolist() == [[OPS[op](x, y) for x in v] for y in v]
    for x in v:
        for y in v:
            folded = k.call(op, constant_of(x, dtype), constant_of(y, dtype))
            assert folded.value is OPS[op](x, y) and folded.dtype is d.bool_ and not folded.loose
            folded = k.call(op, x, y)
            assert folded.value is OPS[op](x, y) and folded.loose


def test_int64_is_compared_exactly():
    k = Bench()
    big = 2**53
    assert k(c.equal, k.tile([big + 1], d.int64), k.tile([big], d.int64)).tolist() == [False]


def test_promotion():
    k = Bench()
    assert k(c.less, k.tile([1, 2], d.int32), 1.5).tolist() == [True, False]
    assert k(c.equal, k.tile([True, False], d.bool_), 1).tolist() == [True, False]
    assert k(c.equal, k.tile([2**24 + 1], d.int32), 2.0**24).tolist() == [True]  # in float32
    for value in (-1, 300):
        with pytest.raises(TileValueError, match="does not fit uint8"):
            k.call(c.greater, k.tile([1], d.uint8), value)
    with pytest.raises(TileValueError):
        k.call(c.equal, constant_of(1, d.int8), 200)
    with pytest.raises(TileTypeError, match="int8 and uint8"):
        k.call(c.equal, k.tile([1], d.int8), k.tile([1], d.uint8))


@pytest.mark.parametrize("op", OPS, ids=lambda o: o.name)
def test_what_cannot_be_compared(op):
    k = Bench()
    with pytest.raises(TileTypeError, match="float8_e4m3fn") as e:
        k.call(op, k.tile([1.0], d.float8_e4m3fn), 1.0)
    assert "astype" in e.value.help
    for x in (None, "a", k.array(None, d.int32, 1), k.tile([0], d.foreign_pointer_dtype(d.int8))):
        with pytest.raises(TileTypeError):
            k.call(op, x, 1)


@pytest.mark.parametrize("dtype", [d.bool_, d.int8, d.uint64, d.float16, d.float64, d.float8_e5m2], ids=str)
def test_truth_and_not(dtype):
    v = [0, 1, 0, 1] if dtype is d.bool_ else [0, 1, 2, 0]
    if d.info(dtype).floating:
        v = [0.0, -0.0, 2.0, NAN]
    k = Bench()
    x = k.tile(v, dtype)
    t = c.as_bool(k.b, x)
    assert k.value(t).tolist() == [bool(i) for i in v]
    n = k.call(c.logical_not, x)
    assert n.type.dtype is d.bool_ and k.value(n).tolist() == [not i for i in v]


def test_truth_of_constants_stays_constant():
    k = Bench()
    for value in (0, 3, 0.0, NAN, True):
        t = c.as_bool(k.b, term(value))
        assert isinstance(t, Const) and t.value is bool(value) and t.loose and t.dtype is d.bool_
        assert k.call(c.logical_not, value).value is (not value)
    t = c.as_bool(k.b, constant_of(-0.0, d.float32))
    assert t.value is False and not t.loose and not k.ops()


@pytest.mark.parametrize("x", [None, "a", ()])
def test_not_is_for_tiles(x):
    with pytest.raises(TileTypeError):
        Bench().call(c.logical_not, x)


def test_blocks_are_leading_axes():
    k = Bench()
    x = k.tile(np.arange(6).reshape(3, 2), d.int32, (2,))
    assert k(c.less, x, k.tile([2, 2], d.int32)).tolist() == [[True, True], [False, False], [False, False]]
