"""Bitwise operations and shifts against Python's integers."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutile import dtypes as d
from cutile.errors import TileTypeError, TileValueError
from cutile.ir.terms import Const
from cutile.ops import bits
from tests.ops.ruling import Bench, constant_of

INTS = (d.int8, d.int16, d.int32, d.int64, d.uint8, d.uint16, d.uint32, d.uint64)


def wrap(n, dtype):
    lo, hi = d.int_range(dtype)
    return (n - lo) % (hi - lo + 1) + lo


@st.composite
def operands(draw):
    dtype = draw(st.sampled_from(INTS))
    lo, hi = d.int_range(dtype)
    value = st.integers(lo, hi)
    return dtype, draw(value), draw(value), draw(st.integers(0, dtype.bitwidth + 3))


@given(operands())
def test_against_python(given):
    dtype, x, y, amount = given
    k = Bench()
    a, b, n = k.tile([x], dtype), k.tile([y], dtype), k.tile([amount], dtype)
    for op, exact in ((bits.bitwise_and, operator.and_), (bits.bitwise_or, operator.or_),
                      (bits.bitwise_xor, operator.xor)):
        assert k(op, a, b).tolist() == [wrap(exact(x, y), dtype)]
    assert k(bits.bitwise_not, a).tolist() == [wrap(~x, dtype)]
    assert k(bits.bitwise_lshift, a, n).tolist() == [wrap(x << amount, dtype)]
    assert k(bits.bitwise_rshift, a, n).tolist() == [x >> amount]


def test_masks():
    k = Bench()
    a, b = k.tile([True, True, False, False], d.bool_), k.tile([True, False, True, False], d.bool_)
    assert k(bits.bitwise_and, a, b).tolist() == [True, False, False, False]
    assert k(bits.bitwise_or, a, b).tolist() == [True, True, True, False]
    assert k(bits.bitwise_xor, a, b).tolist() == [False, True, True, False]
    assert k(bits.bitwise_not, a).tolist() == [False, False, True, True]
    assert k(bits.bitwise_and, a, True).dtype == np.bool_


def test_a_literal_adapts():
    k = Bench()
    assert k.call(bits.bitwise_and, k.tile([True], d.bool_), 1).type.dtype is d.int32
    assert k.call(bits.bitwise_or, k.tile([4], d.int32), True).type.dtype is d.int32
    assert k.call(bits.bitwise_xor, k.tile([4], d.uint8), 255).type.dtype is d.uint8
    with pytest.raises(TileValueError, match="256 does not fit uint8"):
        k.call(bits.bitwise_xor, k.tile([4], d.uint8), 256)


@pytest.mark.parametrize("x, y", [(d.int8, d.int16), (d.bool_, d.int8), (d.int32, d.uint32)])
def test_two_tiles_must_have_one_dtype(x, y):
    k = Bench()
    with pytest.raises(TileTypeError, match=f"{x.name} and {y.name}") as e:
        k.call(bits.bitwise_and, k.tile([1], x), k.tile([1], y))
    assert "astype" in e.value.help


@pytest.mark.parametrize("op", [bits.bitwise_and, bits.bitwise_lshift], ids=lambda o: o.name)
def test_floats_are_refused(op):
    k = Bench()
    for x, y in ((k.tile([1.0], d.float32), 1), (k.tile([1], d.int32), 1.0), (1.0, 1), (None, 1)):
        with pytest.raises(TileTypeError):
            k.call(op, x, y)
    with pytest.raises(TileTypeError, match="float16") as e:
        k.call(bits.bitwise_not, k.tile([1.0], d.float16))
    assert "bitcast" in e.value.help


def test_shifts_refuse_masks_and_promote():
    k = Bench()
    for x, y in ((k.tile([True], d.bool_), 1), (k.tile([1], d.int32), True)):
        with pytest.raises(TileTypeError, match="integer operands"):
            k.call(bits.bitwise_lshift, x, y)
    r = k.call(bits.bitwise_lshift, k.tile([1], d.int32), k.tile([40], d.int64))
    assert r.type.dtype is d.int64 and k.value(r).tolist() == [1 << 40]
    with pytest.raises(TileTypeError, match="int32 and uint8"):
        k.call(bits.bitwise_rshift, k.tile([1], d.int32), k.tile([1], d.uint8))


def test_shift_amounts_count_as_unsigned():
    k = Bench()
    x, u = k.tile([-8, 8], d.int32), k.tile([200], d.uint8)
    assert k(bits.bitwise_rshift, x, -1).tolist() == [-1, 0]
    assert k(bits.bitwise_lshift, x, -1).tolist() == [0, 0]
    assert k(bits.bitwise_rshift, u, 8).tolist() == [0]
    with pytest.raises(TileValueError):
        k.call(bits.bitwise_rshift, u, -1)
    # Of a 64-bit amount only the low half counts.
    assert k(bits.bitwise_lshift, k.tile([1], d.int64), k.tile([(1 << 32) + 3], d.int64)).tolist() == [8]


@pytest.mark.parametrize("op, x, y, want", [
    (bits.bitwise_and, True, False, False), (bits.bitwise_and, 5, True, 1), (bits.bitwise_or, 5, 2, 7),
    (bits.bitwise_lshift, 1, 40, 1 << 40), (bits.bitwise_rshift, -5, 1, -3),
])
def test_loose_constants_fold_in_python(op, x, y, want):
    r = Bench().call(op, x, y)
    assert isinstance(r, Const) and r.loose and r.value == want and type(r.value) is type(want)


def test_constants_without_a_value():
    k = Bench()
    for x, y in ((1, -1), (1, 64), (1, 1 << 62), (constant_of(1, d.int8), -1)):
        with pytest.raises(TileValueError):
            k.call(bits.bitwise_lshift, x, y)
    with pytest.raises(TileValueError):
        k.call(bits.bitwise_rshift, 1, -1)
    assert k.call(bits.bitwise_lshift, 0, 1 << 62).value == 0


def test_strict_constants_fold_in_their_dtype():
    k = Bench()
    assert k.call(bits.bitwise_lshift, constant_of(1, d.int8), 7).value == -128
    assert k.call(bits.bitwise_not, constant_of(1, d.uint8)).value == 254
    assert not k.ops()


def test_complement_of_constants():
    k = Bench()
    assert k.call(bits.bitwise_not, True).value is False and k.call(bits.bitwise_not, 5).value == -6
    assert k.call(bits.bitwise_not, constant_of(True, d.bool_)).value is False
