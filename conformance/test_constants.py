"""Loosely and strictly typed constants [LOOSE, STRICT]."""

import math

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, run
from conformance.harness.type_probes import constant_is, look, refused, static

NAN, INF = math.nan, math.inf
BOOL, INT, WHOLE, FLOAT = True, 5, 1 << 40, 0.1
DOUBLE = np.float64(0.1)


def row(id, f, value, dtype=None):
    return pytest.param(f, value, dtype, id=id, marks=clause(id))


# ------------------------------------------------------------------ loose


@pytest.mark.parametrize("f, value, dtype", [
    row("LOOSE-1.bool", lambda: True, True, "bool_"),
    row("LOOSE-1.int", lambda: 5, 5, "int32"),
    row("LOOSE-1.float", lambda: 2.5, 2.5, "float32"),
    row("LOOSE-1.captured", lambda: BOOL, True, "bool_"),
    row("LOOSE-1.captured", lambda: INT, 5, "int32"),
    row("LOOSE-1.captured", lambda: FLOAT, 0.1, "float32"),
    row("LOOSE-1.ndim", lambda: ct.zeros((2, 4), ct.int8).ndim, 2, "int32"),
    row("LOOSE-1.shape", lambda: ct.zeros((2, 4), ct.int8).shape[1], 4, "int32"),
    row("LOOSE-1.len", lambda: len((1, 2, 3)), 3, "int32"),
    row("LOOSE-2.int32", lambda: 2147483647, (1 << 31) - 1, "int32"),
    row("LOOSE-2.int32", lambda: -2147483648, -(1 << 31), "int32"),
    row("LOOSE-2.int64", lambda: 2147483648, 1 << 31, "int64"),
    row("LOOSE-2.int64", lambda: -2147483649, -(1 << 31) - 1, "int64"),
    row("LOOSE-2.int64", lambda: 9223372036854775807, (1 << 63) - 1, "int64"),
    row("LOOSE-2.int64", lambda: -9223372036854775807 - 1, -(1 << 63), "int64"),
    row("LOOSE-2.uint64", lambda: 9223372036854775808, 1 << 63, "uint64"),
    row("LOOSE-2.uint64", lambda: 18446744073709551615, (1 << 64) - 1, "uint64"),
    row("LOOSE-3.fold", lambda: 0.1 + 0.2, 0.1 + 0.2, "float32"),
    row("LOOSE-3.strict", lambda: ct.float64(0.1), 0.1, "float64"),
    row("LOOSE-3.astype", lambda: ct.astype(0.1, ct.float64), 0.1, "float64"),
    row("LOOSE-3.full", lambda: ct.full((), 0.1, ct.float64), 0.1, "float64"),
    row("LOOSE-3.numpy", lambda: DOUBLE, 0.1, "float64"),
    row("LOOSE-3.numpy", lambda: DOUBLE + DOUBLE, 0.2, "float64"),
    row("LOOSE-3.f32", lambda: ct.float32(1e39), INF, "float32"),
    row("LOOSE-3.f32", lambda: ct.float32(0.1), 0.10000000149011612, "float32"),
    row("LOOSE-3.inf", lambda: 1e400, INF, "float32"),
    row("LOOSE-4.truediv", lambda: 7 / 2, 3.5, "float32"),
    row("LOOSE-4.truediv", lambda: 6 / 2, 3.0, "float32"),
    row("LOOSE-4.floordiv", lambda: -7 // 2, -4, "int32"),
    row("LOOSE-4.floordiv", lambda: 7 // 2, 3, "int32"),
    row("LOOSE-4.floordiv", lambda: 7.5 // 2, 3.0, "float32"),
    row("LOOSE-4.mod", lambda: -7 % 3, 2, "int32"),
    row("LOOSE-4.mod", lambda: 7 % -3, -2, "int32"),
    row("LOOSE-4.mod", lambda: -7.5 % 2, 0.5, "float32"),
    row("LOOSE-4.pow.int", lambda: 3 ** 4, 81, "int32"),
    row("LOOSE-4.pow.int", lambda: 2 ** 40, 1 << 40, "int64"),
    row("LOOSE-4.pow.int", lambda: (-2) ** 63, -(1 << 63), "int64"),
    row("LOOSE-4.pow.negative", lambda: 2 ** -1, 0.5, "float32"),
    row("LOOSE-4.lshift", lambda: 3 << 4, 48, "int32"),
    row("LOOSE-4.lshift", lambda: 1 << 40, 1 << 40, "int64"),
    row("LOOSE-4.rshift", lambda: -9 >> 1, -5, "int32"),
    row("LOOSE-4.rshift", lambda: 9 >> 70, 0, "int32"),
    row("LOOSE-4.bitwise.bool", lambda: True & False, False, "bool_"),
    row("LOOSE-4.bitwise.bool", lambda: True | False, True, "bool_"),
    row("LOOSE-4.bitwise.bool", lambda: True ^ True, False, "bool_"),
    row("LOOSE-4.bitwise.int", lambda: 12 & 10, 8, "int32"),
    row("LOOSE-4.bitwise.int", lambda: 12 | 10, 14, "int32"),
    row("LOOSE-4.bitwise.int", lambda: -12 ^ 10, -12 ^ 10, "int32"),
    row("LOOSE-4.bitwise.mixed", lambda: 5 & True, 1, "int32"),
    row("LOOSE-4.bool", lambda: True + True, 2, "int32"),
    row("LOOSE-4.add", lambda: 2147483647 + 1, 1 << 31, "int64"),
    row("LOOSE-4.sub", lambda: 5 - 7, -2, "int32"),
    row("LOOSE-4.mul", lambda: 100000 * 100000, 10**10, "int64"),
    row("LOOSE-4.mixed", lambda: 1 + 2.5, 3.5, "float32"),
    row("LOOSE-4.mixed", lambda: True * 0.5, 0.5, "float32"),
    row("LOOSE-4.compare", lambda: 1 < 2, True, "bool_"),
    row("LOOSE-4.compare", lambda: 1 >= 2.5, False, "bool_"),
    row("LOOSE-4.compare", lambda: 1 == 1.0, True, "bool_"),
    row("LOOSE-4.compare", lambda: 2 != 2, False, "bool_"),
    row("LOOSE-4.compare", lambda: 2 <= 1, False, "bool_"),
    row("LOOSE-4.compare", lambda: 2 > 1, True, "bool_"),
    row("LOOSE-4.compare", lambda: 18446744073709551615 > -1, True, "bool_"),
    row("LOOSE-4.neg", lambda: -(5), -5, "int32"),
    row("LOOSE-4.neg", lambda: -(True), -1, "int32"),
    row("LOOSE-4.neg", lambda: -(0.0), -0.0, "float32"),
    row("LOOSE-4.pos", lambda: +True, 1, "int32"),
    row("LOOSE-4.pos", lambda: +2.5, 2.5, "float32"),
    row("LOOSE-4.invert", lambda: ~5, -6, "int32"),
    row("LOOSE-4.abs", lambda: abs(-5), 5, "int32"),
    row("LOOSE-4.abs", lambda: abs(-2.5), 2.5, "float32"),
    row("LOOSE-4.min", lambda: min(1, 2.5), 1, "int32"),
    row("LOOSE-4.min", lambda: min(2.5, 1.0), 1.0, "float32"),
    row("LOOSE-4.min", lambda: ct.minimum(3, 2), 2, "int32"),
    row("LOOSE-4.max", lambda: max(1.0, 2), 2, "int32"),
    row("LOOSE-4.max", lambda: ct.maximum(3, 2.5), 3, "int32"),
    row("LOOSE-5.bitwise_not", lambda: ct.bitwise_not(True), False, "bool_"),
    row("LOOSE-5.bitwise_not", lambda: ct.bitwise_not(5), -6, "int32"),
    row("LOOSE-5.rsqrt.value", lambda: ct.rsqrt(4), 0.5, "float32"),
    row("LOOSE-5.exp2", lambda: ct.exp2(3), 8, "int32"),
    row("LOOSE-5.exp2", lambda: ct.exp2(0), 1, "int32"),
    row("LOOSE-5.exp2", lambda: ct.exp2(40), 1 << 40, "int64"),
    row("LOOSE-5.exp2", lambda: ct.exp2(-1), 0.5, "float32"),
    row("LOOSE-5.exp2", lambda: ct.exp2(3.0), 8.0, "float32"),
    row("LOOSE-5.floor", lambda: ct.floor(2.5), 2, "int32"),
    row("LOOSE-5.floor", lambda: ct.floor(-2.5), -3, "int32"),
    row("LOOSE-5.ceil", lambda: ct.ceil(2.5), 3, "int32"),
    row("LOOSE-5.ceil", lambda: ct.ceil(-2.5), -2, "int32"),
    row("LOOSE-5.minimum.nan", lambda: ct.minimum(NAN, 1.0), NAN, "float32"),
    row("LOOSE-5.maximum.nan", lambda: ct.maximum(1.0, NAN), 1.0, "float32"),
    row("LOOSE-6.rounding", lambda: ct.add(1, 2, rounding_mode="RZ"), 3, "int32"),
    row("LOOSE-6.rounding", lambda: ct.add(0.1, 0.2, rounding_mode=ct.RoundingMode.RZ), 0.1 + 0.2, "float32"),
    row("LOOSE-6.ftz", lambda: ct.mul(1e-40, 1, flush_to_zero=True), 1e-40, "float32"),
    row("LOOSE-6.ftz", lambda: ct.add(1, 2, flush_to_zero=True), 3, "int32"),
    row("LOOSE-6.nan", lambda: ct.maximum(1.0, NAN, propagate_nan=True), 1.0, "float32"),
    row("LOOSE-7.nan", lambda: NAN, NAN, "float32"),
    row("LOOSE-7.nan", lambda: float("nan"), NAN, "float32"),
    row("LOOSE-7.inf", lambda: INF, INF, "float32"),
    row("LOOSE-7.inf", lambda: -math.inf, -INF, "float32"),
])
def test_loose_constants(f, value, dtype):
    constant_is(f, value, dtype)


def error(id, f, cls):
    return pytest.param(f, cls, id=id, marks=clause(id))


@pytest.mark.parametrize("f, cls", [
    error("LOOSE-2.beyond", lambda: 18446744073709551616, "TileValueError"),
    error("LOOSE-2.beyond", lambda: 2 ** 64, "TileValueError"),
    error("LOOSE-2.beyond", lambda: -9223372036854775808 - 1, "TileValueError"),
    error("LOOSE-2.beyond", lambda: 1 << 200, "TileValueError"),
    error("LOOSE-2.between", lambda: 2 ** 70 - 2 ** 70, "TileValueError"),
    error("LOOSE-2.between", lambda: (18446744073709551615 + 1) // 2, "TileValueError"),
    error("LOOSE-4.pow.complex", lambda: (-8) ** 0.5, "TileTypeError"),
    error("LOOSE-4.shift.negative", lambda: 1 << -1, "TileValueError"),
    error("LOOSE-4.shift.negative", lambda: 1 >> -1, "TileValueError"),
    error("LOOSE-5.truediv.zero", lambda: 1 / 0, "TileValueError"),
    error("LOOSE-5.truediv.zero", lambda: 1.0 / 0.0, "TileValueError"),
    error("LOOSE-5.floordiv.zero", lambda: 1 // 0, "TileValueError"),
    error("LOOSE-5.floordiv.zero", lambda: 1 // 0.0, "TileValueError"),
    error("LOOSE-5.mod.zero", lambda: 1 % 0, "TileValueError"),
    error("LOOSE-5.invert", lambda: ~True, "TileTypeError"),
    error("LOOSE-5.shift.float", lambda: 1.0 << 1, "TileTypeError"),
    error("LOOSE-5.shift.float", lambda: 1 >> 1.0, "TileTypeError"),
    error("LOOSE-5.int.inf", lambda: int(INF), "TileValueError"),
    error("LOOSE-5.exp", lambda: ct.exp(1000.0), "TileValueError"),
    error("LOOSE-5.log", lambda: ct.log(0), "TileValueError"),
    error("LOOSE-5.log", lambda: ct.log(-1.0), "TileValueError"),
    error("LOOSE-5.log2", lambda: ct.log2(0.0), "TileValueError"),
    error("LOOSE-5.log2", lambda: ct.log2(-2), "TileValueError"),
    error("LOOSE-5.sin", lambda: ct.sin(INF), "TileValueError"),
    error("LOOSE-5.cos", lambda: ct.cos(-INF), "TileValueError"),
    error("LOOSE-5.tan", lambda: ct.tan(INF), "TileValueError"),
    error("LOOSE-5.sinh", lambda: ct.sinh(1000.0), "TileValueError"),
    error("LOOSE-5.cosh", lambda: ct.cosh(-1000), "TileValueError"),
    error("LOOSE-5.sqrt", lambda: ct.sqrt(-1), "TileValueError"),
    error("LOOSE-5.rsqrt", lambda: ct.rsqrt(0), "TileValueError"),
    error("LOOSE-5.rsqrt", lambda: ct.rsqrt(0.0), "TileValueError"),
    error("LOOSE-5.int.inf", lambda: int(NAN), "TileValueError"),
])
def test_loose_expressions_without_value(f, cls):
    refused(cls, f)


@clause("LOOSE-4.divmod")
def test_divmod():
    got = look(lambda: divmod(-7, 2)[0], lambda: divmod(-7, 2)[1], lambda: divmod(7.5, 2)[0])
    assert [(repr(v), d.name) for v, d in got] == [("-4", "int32"), ("1", "int32"), ("3.0", "float32")]


@clause("LOOSE-1.literal", "LOOSE-1.result")
def test_literals_adapt():
    """A loose constant takes the dtype of the tile it is combined with; a strict one would not."""
    dtypes = look(lambda: (ct.zeros((2,), ct.int8) + 5).dtype == ct.int8 and 1,
                  lambda: (ct.zeros((2,), ct.int8) + (2 + 3) * 2).dtype == ct.int8 and 1,
                  lambda: (ct.zeros((2,), ct.float16) + min(1.5, 2)).dtype == ct.float16 and 1,
                  lambda: (ct.zeros((2,), ct.int8) + (-1)).dtype == ct.int8 and 1)
    assert all(bool(v) for v, _ in dtypes)
    refused("TileValueError", lambda: ct.zeros((2,), ct.int8) + (100 + 100))


@clause("LOOSE-1.shape", "LOOSE-1.ndim", "LOOSE-1.len")
def test_attributes_are_loose():
    def same_dtype(f):
        assert static(f) is True

    same_dtype(lambda: (ct.zeros((2,), ct.int8) + ct.zeros((2, 4), ct.int8).shape[1]).dtype == ct.int8)
    same_dtype(lambda: (ct.zeros((2,), ct.int8) + ct.zeros((2, 4), ct.int8).ndim).dtype == ct.int8)
    same_dtype(lambda: (ct.zeros((2,), ct.int8) + len((1, 2))).dtype == ct.int8)


@clause("LOOSE-1.parameter")
def test_constant_parameters_are_loose():
    @ct.kernel
    def k(n: ct.Constant, x: ct.Constant[float], flag: ct.Constant[bool]):
        a = (ct.zeros((n,), ct.int8) + n).dtype
        b = (ct.zeros((2,), ct.float16) * x).dtype
        c = (ct.zeros((2,), ct.int16) + flag).dtype
        ct.static_assert(a == ct.int8 and b == ct.float16 and c == ct.int16)
        ct.static_assert(n == 4 and x == 0.1 and flag is True)

    accepts(k, 4, 0.1, True)


@clause("LOOSE-1.static")
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_static_sizes_are_strict(index):
    from typing import Annotated

    wanted = getattr(ct, index)
    static = ct.ArrayAnnotation(index_dtype=wanted, static_shape_dims=(0,), static_stride_dims=(0,))

    @ct.kernel
    def k(x: Annotated[object, static]):
        n, m = x.shape[0], x.slice(0, 2, 8).shape[0]
        d = (ct.zeros((2,), ct.int8) + n).dtype
        e = (ct.zeros((2,), ct.int8) + x.strides[0]).dtype
        f = (ct.zeros((2,), ct.int8) + m).dtype
        ct.static_assert(n == 8 and d == wanted)
        ct.static_assert(x.strides[0] == 1 and e == wanted)
        ct.static_assert(m == 6 and f == wanted)

    accepts(k, np.zeros(8, np.float32))


@clause("LOOSE-3.keep")
def test_variables_keep_doubles():
    @ct.kernel
    def k(out):
        x = 0.1
        ct.static_assert(x == 0.1)
        same = x == 0.1
        ct.static_assert(same)
        y = x + 0.2
        ct.static_assert(y == 0.30000000000000004)
        ct.store(out, 0, y)

    assert run(k, np.zeros(1)).tolist() == [0.30000000000000004]


@clause("LOOSE-3.f64", "LOOSE-3.full", "LOOSE-3.numpy")
def test_doubles_meet_float64():
    @ct.kernel
    def k(a, b, c):
        ct.store(a, 0, ct.ones((2,), ct.float64) * 0.1)
        ct.store(b, 0, ct.full((2,), 0.1, ct.float64))
        ct.store(c, 0, ct.ones((2,), ct.float32) * DOUBLE)

    a, b, c = np.zeros(2), np.zeros(2), np.zeros(2)
    launch(k, a, b, c)
    assert a.tolist() == b.tolist() == c.tolist() == [0.1, 0.1]


@clause("LOOSE-3.f32")
def test_literals_round_to_float32():
    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.ones((2,), ct.float32) * 0.1)
        ct.store(out, 1, ct.ones((2,), ct.float32) * 1e39)

    assert run(k, np.zeros(4, np.float32)).tolist() == [np.float32(0.1)] * 2 + [INF] * 2
