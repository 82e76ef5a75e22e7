"""where."""

import math

import numpy as np
import pytest

from cutile import dtypes as d
from cutile.errors import TileTypeError, TileValueError
from cutile.ir.terms import Leaf
from cutile.ops.select import where
from tests.ops.ruling import Bench, constant_of, same_bits


def test_chooses_and_broadcasts():
    k = Bench()
    mask = k.tile([[True], [False]], d.bool_)
    r = k.call(where, mask, k.tile([1, 2, 3, 4], d.int32), 9)
    assert str(r.type) == "i32[2,4]" and k.value(r).tolist() == [[1, 2, 3, 4], [9, 9, 9, 9]]
    x, y = k.tile([1, 2], d.int8), k.tile([[5], [6]], d.int8)
    assert k(where, k.tile(True, d.bool_), x, y).tolist() == [[1, 2], [1, 2]]
    assert k(where, k.tile(False, d.bool_), x, y).tolist() == [[5, 5], [6, 6]]


def test_a_condition_is_what_is_not_zero():
    k = Bench()
    cond = k.tile([0.0, -0.0, math.nan, 2.0], d.float32)
    assert k(where, cond, 1, 0).tolist() == [0, 0, 1, 1]
    assert k(where, k.tile([0, -3], d.int8), 1, 0).tolist() == [0, 1]


@pytest.mark.parametrize("x, y, want", [
    (1, 2.5, d.float32), (True, False, d.bool_), (1, True, d.int32), (1, 1 << 40, d.int64),
    (constant_of(1, d.int16), 2, d.int16), (constant_of(1, d.int16), constant_of(1.0, d.float16), d.float16),
])
def test_dtype_of_constants(x, y, want):
    k = Bench()
    r = k.call(where, k.tile([True, False], d.bool_), x, y)
    assert r.type.dtype is want


def test_literals_adapt_to_tiles():
    k = Bench()
    cond = k.tile([True, False], d.bool_)
    with pytest.raises(TileValueError, match="300 does not fit uint8"):
        k.call(where, cond, k.tile([1, 2], d.uint8), 300)
    r = k.call(where, cond, k.tile([1.0, 2.0], d.float8_e4m3fn), 464)
    assert r.type.dtype is d.float8_e4m3fn and k.value(r).tolist() == [1.0, 448.0]


def test_values_pass_unchanged():
    k = Bench()
    cond = k.tile([True, False, True], d.bool_)
    x = k.tile([-0.0, 1.0, math.nan], d.float16)
    assert same_bits(k(where, cond, x, k.tile([5.0, -math.inf, 1.0], d.float16)), [-0.0, -math.inf, math.nan])
    p = d.foreign_pointer_dtype(d.float32)
    assert k(where, cond, k.tile([1, 2, 3], p), k.tile([4, 5, 6], p)).tolist() == [1, 5, 3]


def test_never_constant():
    k = Bench()
    r = k.call(where, True, 1, 2)
    assert isinstance(r, Leaf) and k.value(r) == 1


def test_refusals():
    k = Bench()
    cond, x = k.tile([True, False], d.bool_), k.tile([1, 2], d.int32)
    with pytest.raises(TileTypeError, match=r"\(2,\) and \(4,\)"):
        k.call(where, cond, x, k.tile([1] * 4, d.int32))
    with pytest.raises(TileTypeError, match="no implicit promotion"):
        k.call(where, cond, k.tile([1.0], d.float8_e5m2), k.tile([1.0], d.float8_e4m3fn))
    with pytest.raises(TileTypeError, match='"y" of where'):
        k.call(where, cond, x, None)
    with pytest.raises(TileTypeError, match='"cond" of where'):
        k.call(where, k.array(None, d.int32, 1), x, x)
    p = k.tile([1, 2], d.foreign_pointer_dtype(d.int8))
    with pytest.raises(TileTypeError, match="truth value"):
        k.call(where, p, x, x)
    with pytest.raises(TileTypeError, match="no common dtype"):
        k.call(where, cond, p, 0)


@pytest.mark.parametrize("lead", [(3,), (2, 1, 2)])
def test_blocks_are_leading_axes(lead):
    k = Bench()
    cond = np.arange(math.prod(lead)).reshape(*lead) % 2 == 0
    got = k(where, k.tile(cond, d.bool_, ()), k.tile([1, 2], d.int32), k.tile([3, 4], d.int32))
    assert (got == np.where(cond[..., None], [1, 2], [3, 4])).all()
