"""Dtypes, shapes, single operands and constants of arithmetic [ARITH]."""

import math
from fractions import Fraction

import numpy as np
import pytest

from conformance.harness.api import clause, ct
from conformance.harness.code_kernels import apply, binary, dtype, made, numbers_of, unary
from conformance.harness.exact_arithmetic import exact, nearest
from conformance.harness.integer_arithmetic import integer_pairs, limits, wrap
from conformance.harness.number_comparison import same_numbers
from conformance.harness.number_formats import INTEGERS, values, width
from conformance.harness.number_samples import sample
from conformance.harness.operand_types import folds, refused, strict, typed, varies

inf, nan = math.inf, math.nan


FLOATS = ("float16", "bfloat16", "float32", "float64")


RESTRICTED = ("tfloat32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu", "float4_e2m1fn")


# ------------------------------------------------------------------ dtypes and shapes

BINARY = {
    "ARITH-1": (ct.add, "add"),
    "ARITH-2": (ct.sub, "sub"),
    "ARITH-3": (ct.mul, "mul"),
    "ARITH-5": (ct.floordiv, "floordiv"),
    "ARITH-6": (ct.cdiv, "cdiv"),
    "ARITH-7": (ct.mod, "mod"),
    "ARITH-9.min": (ct.minimum, "minimum"),
    "ARITH-9.max": (ct.maximum, "maximum"),
}


@pytest.mark.parametrize("fn", [pytest.param(f, marks=clause(f"{i}.dtype"), id=n) for i, (f, n) in BINARY.items()])
def test_dtype_and_shape(fn):
    for a, b, d in (
        ("int8", "int16", "int16"),
        ("uint8", "uint64", "uint64"),
        ("bool_", "int8", "int8"),
        ("int64", "float16", "float16"),
        ("float16", "float32", "float32"),
        ("bfloat16", "float64", "float64"),
        ("float32", "float32", "float32"),
    ):
        typed(fn, a, b, dtype=d)
        typed(fn, b, a, dtype=d)
    typed(fn, "int32 (2, 1)", "int32 (4,)", dtype="int32", shape=(2, 4))
    typed(fn, "int8 ()", "int8 (4,)", dtype="int8", shape=(4,))
    typed(lambda x: fn(x, 1), "int8", dtype="int8")
    typed(lambda x: fn(x, 1.5), "int8", dtype="float32")
    typed(lambda x: fn(2, x), "float16", dtype="float16")
    for a, b in (("int8", "uint8"), ("float16", "bfloat16"), ("int64", "uint64")):
        refused(fn, a, b)
    refused(lambda x: fn(x, 300), "int8", error="TileValueError")
    refused(lambda x: fn(-1, x), "uint8", error="TileValueError")
    for bad in (None, "1", (1, 2), ct.int32):
        refused(lambda x: fn(x, bad), "int32")
        refused(lambda x: fn(bad, x), "int32")
    refused(fn, "int32 (4,)", "int32 (8,)")


@clause("ARITH-4.dtype", "ARITH-15.truediv")
def test_division_gives_a_float():
    for a, b, d in (
        ("int8", "int8", "float32"),
        ("int64", "int64", "float32"),
        ("bool_", "bool_", "float32"),
        ("uint8", "float16", "float16"),
        ("float64", "int8", "float64"),
        ("bfloat16", "bfloat16", "bfloat16"),
        ("bool_", "int16", "float32"),
    ):
        typed(ct.truediv, a, b, dtype=d)
    typed(lambda x: x / 2, "int8 (2, 1)", dtype="float32", shape=(2, 1))
    typed(lambda x: x / 300, "int8", dtype="float32")
    typed(ct.truediv, "int8 (2, 1)", "int8 (4,)", dtype="float32", shape=(2, 4))
    assert list(made(lambda: ct.arange(4, dtype=ct.bool_) / ct.ones(4, ct.bool_), "float32", 4)) == [0, 1, 1, 1]
    refused(ct.truediv, "int8", "uint8")


@clause("ARITH-4.int")
def test_division_converts_integers_first():
    x = np.array([16777217, 16777219, 7, -7, (1 << 31) - 1], np.int32)
    y = np.array([1, 1, 2, 2, 3], np.int32)
    got = apply(
        binary(lambda a, b: a / b, "int32", "int32", "float32"), "float32", x.view(np.uint32), y.view(np.uint32)
    )
    want = [
        exact("truediv", "float32", nearest("float32", Fraction(int(a))), nearest("float32", Fraction(int(b))))
        for a, b in zip(x, y, strict=True)
    ]
    assert list(values("float32", got)) == want
    assert want[0] == 16777216.0


@clause("ARITH-3.mask")
@pytest.mark.parametrize("name", ["int8", "int64", "uint16", "float16", "float32", "float64"])
def test_a_mask_times_a_number(name):
    d = dtype(name)
    x = made(lambda: (ct.arange(4, dtype=ct.int32) > 1) * ct.full(4, 7, d), name, 4)
    assert list(x) == [0, 0, 7, 7]
    assert list(made(lambda: (ct.arange(4, dtype=ct.int32) > 1) * 7, "int32", 4)) == [0, 0, 7, 7]


@clause("ARITH-8.pair")
def test_divmod_is_a_pair():
    def fn(x, y):
        pair = ct.divmod(x, y)
        ct.static_assert(len(pair) == 2)
        a, b = pair
        same = a.dtype == b.dtype and a.shape == b.shape
        ct.static_assert(same)
        return b

    typed(fn, "int8 (2, 1)", "int16 (4,)", dtype="int16", shape=(2, 4))
    typed(lambda x: divmod(x, 3)[0], "uint8", dtype="uint8")
    refused(fn, "int8", "uint8")


@clause("ARITH-8.float")
def test_divmod_of_floats():
    for d in FLOATS:
        refused(lambda x: ct.divmod(x, 2), d)
        refused(lambda x: divmod(x, x), d)
    refused(lambda x: divmod(x, 2.0), "int32")


@pytest.mark.parametrize(
    "fn", [pytest.param(f, marks=clause(f"ARITH-15.{n}"), id=n) for f, n in (*BINARY.values(), (ct.divmod, "divmod"))]
)
def test_two_masks(fn):
    refused(fn, "bool_", "bool_")
    refused(lambda x: fn(x, True), "bool_")
    refused(lambda x: fn(ct.bool_(True), x), "bool_")
    refused(lambda: fn(ct.bool_(True), ct.bool_(True)))
    typed(lambda x, y: ct.astype(x, ct.int32) + y, "bool_", "bool_", dtype="int32")


@pytest.mark.parametrize(
    "fn",
    [
        pytest.param(f, marks=clause(f"{i}.restricted"), id=n)
        for i, (f, n) in (*BINARY.items(), ("ARITH-4", (ct.truediv, "truediv")), ("ARITH-8", (ct.divmod, "divmod")))
    ],
)
@pytest.mark.parametrize("name", RESTRICTED)
def test_restricted_floats(fn, name):
    refused(fn, name, name)
    refused(lambda x: fn(x, 1), name)
    refused(lambda x: fn(1.0, x), name)


@pytest.mark.parametrize(
    "fn",
    [
        pytest.param(ct.negative, marks=clause("ARITH-12.restricted")),
        pytest.param(lambda x: +x, marks=clause("ARITH-13.restricted")),
        pytest.param(ct.abs, marks=clause("ARITH-14.restricted")),
    ],
)
@pytest.mark.parametrize("name", RESTRICTED)
def test_restricted_floats_alone(fn, name):
    refused(fn, name)


# ------------------------------------------------------------------ one operand


def alone(fn, name, x):
    return numbers_of(name, apply(unary(fn, name, name), name, x.view(f"u{x.itemsize}")))


def one_of_each(name):
    low, high = limits(name)
    return np.arange(low, high + 1).astype(name) if high < 256 else np.unique(integer_pairs(name)[0])


@clause("ARITH-12.int")
@pytest.mark.parametrize("name", INTEGERS)
def test_negative_integers(name):
    x = one_of_each(name)
    for fn in (ct.negative, lambda v: -v):
        assert alone(fn, name, x).tolist() == [wrap(-v, name) for v in x.tolist()]


@clause("ARITH-14.signed", "ARITH-14.unsigned", "ARITH-14.builtin")
@pytest.mark.parametrize("name", INTEGERS)
def test_abs_integers(name):
    x = one_of_each(name)
    for fn in (ct.abs, lambda v: abs(v)):
        assert alone(fn, name, x).tolist() == [wrap(abs(v), name) for v in x.tolist()]


@clause("ARITH-12.float", "ARITH-14.float", "ARITH-13.other")
@pytest.mark.parametrize("name", FLOATS)
def test_signs_of_floats(name):
    c = sample(name, 500)
    sign = np.array(1 << (width(name) - 1), c.dtype)
    number = ~np.isnan(values(name, c))
    for fn in (ct.negative, lambda v: -v):
        got = apply(unary(fn, name, name), name, c)
        assert (got == c ^ sign)[number].all() and np.isnan(values(name, got)[~number]).all()
    for fn in (ct.abs, lambda v: abs(v)):
        got = values(name, apply(unary(fn, name, name), name, c))
        same_numbers(got, np.array([math.fabs(v) for v in values(name, c)]), name)
    assert (apply(unary(lambda v: +v, name, name), name, c) == c).all()


@clause("ARITH-12.bool", "ARITH-13.bool", "ARITH-14.dtype", "ARITH-13.other")
def test_masks_alone():
    mask = lambda: ct.arange(4, dtype=ct.int32) > 1
    assert list(made(lambda: -mask(), "int32", 4)) == [0, 0, -1, -1]
    assert list(made(lambda: +mask(), "int32", 4)) == [0, 0, 1, 1]
    assert list(made(lambda: abs(mask()), "bool_", 4)) == [False, False, True, True]
    for name in (*INTEGERS, *FLOATS):
        typed(lambda x: +x, name, dtype=name)
        typed(lambda x: -x, name, dtype=name)
        typed(lambda x: abs(x), name, dtype=name)
        x = np.array([0, 1, 2, 3])
        assert list(made(lambda: +ct.arange(4, dtype=dtype(name)), name, 4)) == list(x)


# ------------------------------------------------------------------ constants


@clause("ARITH-4.const", "ARITH-5.const", "ARITH-6.const", "ARITH-7.const", "ARITH-8.const.zero")
def test_constant_division_by_zero():
    for fn in (ct.truediv, ct.floordiv, ct.mod, ct.cdiv, ct.divmod):
        for zero in (0, 0.0, False):
            refused(lambda: fn(1, zero), error="TileValueError")
        refused(lambda: fn(ct.int32(1), 0), error="TileValueError")
        refused(lambda: fn(1, ct.int8(0)), error="TileValueError")
        refused(lambda: fn(ct.float32(1), ct.float32(0)), error="TileValueError")
        refused(lambda: fn(1.5, ct.float16(0)), error="TileValueError")


@clause("ARITH-6.host", "ARITH-6.const")
def test_cdiv_of_constants():
    assert [ct.cdiv(7, 2), ct.cdiv(-7, 2), ct.cdiv(8, 4), ct.cdiv(1, 100)] == [4, -3, 2, 1]
    assert ct.cdiv(7.5, 2) == 4.0
    with pytest.raises(ZeroDivisionError):
        ct.cdiv(1, 0)
    folds(lambda: ct.cdiv(7, 2), 4, "int32")
    folds(lambda: ct.cdiv(-7, 2), -3, "int32")
    strict(lambda: ct.cdiv(ct.int8(7), 2), "int8", 4)
    folds(lambda: ct.cdiv(ct.float32(7), 2), 4, "float32")


@clause("ARITH-8.const")
def test_divmod_of_constants():
    folds(lambda: divmod(-7, 2)[0], -4, "int32")
    folds(lambda: divmod(-7, 2)[1], 1, "int32")
    folds(lambda: ct.divmod(7.5, 2)[0], 3.0, "float32")
    folds(lambda: ct.divmod(7.5, 2)[1], 1.5, "float32")
    strict(lambda: ct.divmod(ct.int8(-128), -1)[0], "int8", -128)
    folds(lambda: ct.divmod(ct.float32(7.5), 2)[1], 1.5, "float32")


@clause("ARITH-12.const", "ARITH-13.const", "ARITH-14.const")
def test_constants_alone():
    folds(lambda: -5, -5, "int32")
    folds(lambda: ct.negative(5), -5, "int32")
    folds(lambda: -True, -1, "int32")
    folds(lambda: +True, 1, "int32")
    strict(lambda: -ct.int8(-128), "int8", -128)
    strict(lambda: ct.negative(ct.uint8(3)), "uint8", 253)
    strict(lambda: -ct.bool_(True), "int32", -1)
    strict(lambda: +ct.bool_(True), "int32", 1)
    strict(lambda: +ct.int8(5), "int8", 5)
    strict(lambda: abs(ct.int8(-128)), "int8", -128)
    strict(lambda: abs(ct.uint8(200)), "uint8", 200)
    folds(lambda: ct.abs(-7), 7, "int32")
    folds(lambda: abs(-2.5), 2.5, "float32")
    folds(lambda: ct.abs(ct.float16(-2.5)), 2.5, "float16")
    folds(lambda: ct.abs(ct.bool_(True)), True, "bool_")


@clause("ARITH-1.int", "ARITH-2.int", "ARITH-3.int", "ARITH-5.wrap", "ARITH-7.signed")
def test_strict_constants_wrap():
    strict(lambda: ct.int8(100) + ct.int8(100), "int8", -56)
    strict(lambda: ct.uint8(3) - 4, "uint8", 255)
    strict(lambda: ct.int8(100) * 3, "int8", 44)
    strict(lambda: ct.int8(-128) // ct.int8(-1), "int8", -128)
    strict(lambda: ct.int8(-7) % 4, "int8", 1)
    strict(lambda: ct.minimum(ct.int8(-7), 4), "int8", -7)
    strict(lambda: max(ct.int8(-7), 4), "int8", 4)
    folds(lambda: ct.int64(7) / 2, 3.5, "float32")
    folds(lambda: ct.float16(1) / 3, float(np.float16(1 / 3)), "float16")
    varies(lambda x: x + 1, "int32 ()")
