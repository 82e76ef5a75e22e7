"""Strictly typed constants [STRICT]."""

import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct, refuses, run
from conformance.harness.dtype_names import DTYPES, INTEGERS
from conformance.harness.type_probes import constant_is, is_constant, look, refused, static

NAN, INF = math.nan, math.inf


def row(id, f, value, dtype):
    return pytest.param(f, value, dtype, id=id, marks=clause(id))


def error(id, f, cls):
    return pytest.param(f, cls, id=id, marks=clause(id))


@pytest.mark.parametrize("f, value, dtype", [
    row("STRICT-1.call", lambda: ct.int16(5), 5, "int16"),
    row("STRICT-1.call", lambda: ct.float16(2.5), 2.5, "float16"),
    row("STRICT-1.call", lambda: ct.bool_(1), True, "bool_"),
    row("STRICT-1.call", lambda: ct.uint64(18446744073709551615), (1 << 64) - 1, "uint64"),
    row("STRICT-1.empty", lambda: ct.int32(), 0, "int32"),
    row("STRICT-1.empty", lambda: ct.float64(), 0.0, "float64"),
    row("STRICT-1.empty", lambda: ct.bool_(), False, "bool_"),
    row("STRICT-1.string.int", lambda: ct.int32("5"), 5, "int32"),
    row("STRICT-1.string.int", lambda: ct.int8(" -7 "), -7, "int8"),
    row("STRICT-1.string.float", lambda: ct.float32("inf"), INF, "float32"),
    row("STRICT-1.string.float", lambda: ct.float64("0.1"), 0.1, "float64"),
    row("STRICT-1.string.bool", lambda: ct.bool_(""), False, "bool_"),
    row("STRICT-1.string.bool", lambda: ct.bool_("0"), True, "bool_"),
    row("STRICT-2.wrap", lambda: ct.uint8(-3), 253, "uint8"),
    row("STRICT-2.wrap", lambda: ct.int8(200), -56, "int8"),
    row("STRICT-2.round", lambda: ct.float16(0.1), 0.0999755859375, "float16"),
    row("STRICT-2.round", lambda: ct.float16(1e10), INF, "float16"),
    row("STRICT-2.round", lambda: ct.bfloat16(257), 256.0, "bfloat16"),
    row("STRICT-2.round", lambda: ct.float32(16777217), 16777216.0, "float32"),
    row("STRICT-2.e4m3", lambda: ct.float8_e4m3fn(1e9), NAN, "float8_e4m3fn"),
    row("STRICT-2.trunc", lambda: ct.int32(-2.9), -2, "int32"),
    row("STRICT-2.trunc", lambda: ct.uint8(2.9), 2, "uint8"),
    row("STRICT-2.bool", lambda: ct.bool_(0.5), True, "bool_"),
    row("STRICT-2.bool", lambda: ct.bool_(NAN), True, "bool_"),
    row("STRICT-2.bool", lambda: ct.bool_(-0.0), False, "bool_"),
    row("STRICT-2.reconvert", lambda: ct.int32(ct.int8(200)), -56, "int32"),
    row("STRICT-2.reconvert", lambda: ct.float64(ct.float32(0.1)), 0.10000000149011612, "float64"),
    row("STRICT-3.wrap", lambda: ct.int8(100) + ct.int8(100), -56, "int8"),
    row("STRICT-3.wrap", lambda: ct.uint8(3) - 5, 254, "uint8"),
    row("STRICT-3.wrap", lambda: ct.int32(65536) * 65536, 0, "int32"),
    row("STRICT-3.floordiv", lambda: ct.int8(-128) // ct.int8(-1), -128, "int8"),
    row("STRICT-3.floordiv", lambda: ct.int8(-7) // 2, -4, "int8"),
    row("STRICT-3.abs", lambda: abs(ct.int8(-128)), -128, "int8"),
    row("STRICT-3.abs", lambda: abs(ct.int8(-5)), 5, "int8"),
    row("STRICT-3.neg", lambda: -ct.int8(-128), -128, "int8"),
    row("STRICT-3.neg", lambda: -ct.uint8(1), 255, "uint8"),
    row("STRICT-3.float", lambda: ct.float16(7) / 2, 3.5, "float16"),
    row("STRICT-3.float", lambda: ct.float16(7) * 0.5, 3.5, "float16"),
    row("STRICT-3.literal", lambda: ct.int8(1) + 2, 3, "int8"),
    row("STRICT-3.literal", lambda: 2 - ct.int8(1), 1, "int8"),
    row("STRICT-3.literal", lambda: ct.int8(1) + 0.5, 1.5, "float32"),
    row("STRICT-4.promote", lambda: ct.int8(1) + ct.int16(2), 3, "int16"),
    row("STRICT-4.promote", lambda: ct.int64(1) + ct.float16(2), 3.0, "float16"),
    row("STRICT-4.truediv", lambda: ct.int64(6) / 2, 3.0, "float32"),
    row("STRICT-4.truediv", lambda: ct.int8(1) / ct.int8(3), float(np.float32(1 / 3)), "float32"),
    row("STRICT-4.pow", lambda: ct.int32(2) ** -1, 0, "int32"),
    row("STRICT-4.pow", lambda: ct.int32(3) ** 4, 81, "int32"),
    row("STRICT-5.round", lambda: ct.float32(0.1) + ct.float32(0.2), 0.30000001192092896, "float32"),
    row("STRICT-5.round", lambda: ct.float16(2048) + 1, 2048.0, "float16"),
    row("STRICT-5.round", lambda: ct.float16(2048) + 3, 2052.0, "float16"),
    row("STRICT-5.round", lambda: ct.bfloat16(1) / 3, 0.333984375, "bfloat16"),
    row("STRICT-5.over", lambda: ct.float16(60000) + ct.float16(10000), INF, "float16"),
    row("STRICT-6.kept.arithmetic", lambda: (ct.int8(3) * 2 - 1) // 2 % 2, 0, "int8"),
    row("STRICT-6.kept.compare", lambda: ct.int8(3) > 2, True, "bool_"),
    row("STRICT-6.kept.compare", lambda: ct.uint8(255) < ct.uint8(0), False, "bool_"),
    row("STRICT-6.kept.astype", lambda: ct.astype(ct.int8(3), ct.float16), 3.0, "float16"),
    row("STRICT-6.kept.astype", lambda: ct.int32(300).astype(ct.int8), 44, "int8"),
    row("STRICT-6.kept.full", lambda: ct.full((), 7, ct.int16), 7, "int16"),
    row("STRICT-6.kept.astile", lambda: ct.astile(7, dtype=ct.int16), 7, "int16"),
    row("STRICT-6.kept.reshape", lambda: ct.reshape(ct.int8(7), ()), 7, "int8"),
    row("STRICT-6.kept.tuple", lambda: ((ct.int8(1), 2) + (3, 4))[1:][-1], 4, "int32"),
    row("STRICT-6.kept.tuple", lambda: (ct.int8(1), 2)[0], 1, "int8"),
    row("STRICT-6.kept.attribute", lambda: ct.int8(7).ndim, 0, "int32"),
])
def test_strict_constants(f, value, dtype):
    constant_is(f, value, dtype)


@pytest.mark.parametrize("f, cls", [
    error("STRICT-1.count", lambda: ct.int32(1, 2), "TileTypeError"),
    error("STRICT-1.none", lambda: ct.int32(None), "TileTypeError"),
    error("STRICT-1.tuple", lambda: ct.int32((1,)), "TileTypeError"),
    error("STRICT-1.tile", lambda: ct.int32(ct.zeros((1,), ct.int32)), "TileTypeError"),
    error("STRICT-1.string.other", lambda: ct.int32("a"), "TileTypeError"),
    error("STRICT-1.string.other", lambda: ct.int32("1.5"), "TileTypeError"),
    error("STRICT-1.string.other", lambda: ct.float32("one"), "TileTypeError"),
    error("STRICT-1.e2m1", lambda: ct.float4_e2m1fn(1), "TileTypeError"),
    error("STRICT-3.range", lambda: ct.int8(100) + 1000, "TileValueError"),
    error("STRICT-3.range", lambda: ct.uint8(1) - (-1), "TileValueError"),
    error("STRICT-3.compare", lambda: ct.int8(1) == 200, "TileValueError"),
    error("STRICT-4.refuse", lambda: ct.int8(1) + ct.uint8(1), "TileTypeError"),
    error("STRICT-4.refuse", lambda: ct.float16(1) + ct.bfloat16(1), "TileTypeError"),
    error("STRICT-6.isnan", lambda: ct.isnan(ct.int32(1)), "TileTypeError"),
])
def test_strict_constants_that_cannot_be(f, cls):
    refused(cls, f)


@clause("STRICT-1.array")
def test_no_constant_of_an_array():
    @ct.kernel
    def k(x):
        ct.float32(x)

    refuses("TileTypeError", k, np.zeros(1, np.float32))


@clause("STRICT-1.runtime")
def test_run_time_scalars_are_cast():
    @ct.kernel
    def k(n, x, out, half):
        a = ct.int8(n)
        d = a.dtype
        ct.static_assert(d == ct.int8)
        ct.store(out, 0, a)
        ct.store(out, 1, ct.int8(x))
        ct.store(half, 0, ct.float16(x))

    out, half = np.zeros(2, np.int8), np.zeros(1, np.float16)
    run(k, 300, -2.9, out, half)
    assert out.tolist() == [44, -2] and half.tolist() == [float(np.float16(-2.9))]


@pytest.mark.parametrize("f", [pytest.param(f, id=id, marks=clause(id)) for id, f in [
    ("STRICT-6.power", lambda: ct.float32(2) ** 3),
    ("STRICT-6.power", lambda: ct.float16(2) ** ct.int32(3)),
    ("STRICT-6.where", lambda: ct.where(True, 1, 2)),
    ("STRICT-6.bitcast", lambda: ct.bitcast(ct.int32(1), ct.float32)),
    ("STRICT-6.full", lambda: ct.full((1,), 1, ct.int32)),
    ("STRICT-6.zeros", lambda: ct.zeros((1,), ct.int32)),
    ("STRICT-6.zeros", lambda: ct.ones((2,), ct.int32)),
    ("STRICT-6.arange", lambda: ct.arange(1, dtype=ct.int32)),
    ("STRICT-6.astile", lambda: ct.astile((1,), dtype=ct.int32)),
    ("STRICT-6.reshape", lambda: ct.reshape(ct.int32(1), (1,))),
    ("STRICT-6.broadcast", lambda: ct.broadcast_to(ct.int32(1), (2,))),
]])
def test_not_constant(f):
    [(value, _)] = look(f)
    assert not is_constant(value)
    refused("TileStaticAssertionError", lambda: ct.ensure_constant(f()))


@clause("LOOSE-5.exp", "LOOSE-5.log", "LOOSE-5.log2", "LOOSE-5.sin", "LOOSE-5.cos", "LOOSE-5.tan", "LOOSE-5.sinh",
        "LOOSE-5.cosh", "LOOSE-5.sqrt", "LOOSE-5.rsqrt")
def test_values_of_loose_functions():
    """Inside its domain, a function of a loose constant gives the result of Python's math."""
    cases = [
        (lambda: ct.exp(1), math.exp(1)), (lambda: ct.exp(700.0), math.exp(700)), (lambda: ct.log(10.0), math.log(10)),
        (lambda: ct.log2(8), 3.0), (lambda: ct.sin(1.0), math.sin(1)), (lambda: ct.cos(1.0), math.cos(1)),
        (lambda: ct.tan(1), math.tan(1)), (lambda: ct.sinh(2.0), math.sinh(2)), (lambda: ct.cosh(2.0), math.cosh(2)),
        (lambda: ct.tanh(0.5), math.tanh(0.5)), (lambda: ct.sqrt(2), math.sqrt(2)), (lambda: ct.rsqrt(4.0), 0.5)]
    for f, want in cases:
        constant_is(f, want, "float32")


@clause("STRICT-2.constant")
def test_constants_as_operands():
    """A constant beside a run-time operand takes its value in the dtype of that operand."""
    @ct.kernel
    def k(x, a, b):
        ct.store(a, 0, ct.load(x, 0, 2) * 0.1)
        ct.store(b, 0, ct.load(x, 0, 2) + ct.int8(200))

    a, b = np.zeros(2, np.float16), np.zeros(2, np.float16)
    run(k, np.array([1, 1024], np.float16), a, b)
    assert a.tolist() == [0.0999755859375, 102.375] and b.tolist() == [-55, 968]


@clause("STRICT-6.kept.arithmetic")
@pytest.mark.parametrize("short", INTEGERS)
def test_constants_can_be_shapes(short):
    dtype = DTYPES[short]
    assert static(lambda: ct.zeros((dtype(3) + 1, 2), ct.int8).shape) == (4, 2)
