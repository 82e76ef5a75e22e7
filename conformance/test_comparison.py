"""Comparisons and `not` [CMP, COND-3]."""

import math
import operator

import numpy as np
import pytest

from conformance.harness.api import clause, ct, refuses
from conformance.harness.code_kernels import apply, binary, dtype, made, unary
from conformance.harness.integer_arithmetic import integer_pairs, limits
from conformance.harness.number_formats import FLOATS as ALL_FLOATS
from conformance.harness.number_formats import INTEGERS, values
from conformance.harness.number_samples import pairs, sample
from conformance.harness.operand_types import folds, refused, typed

FLOATS = ("float16", "bfloat16", "float32", "float64")
RESTRICTED = tuple(n for n in ALL_FLOATS if n not in FLOATS)
TABLE = {
    "eq": ct.equal,
    "ne": ct.not_equal,
    "lt": ct.less,
    "le": ct.less_equal,
    "gt": ct.greater,
    "ge": ct.greater_equal,
}
FORMS = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}


def each(*subs):
    return pytest.mark.parametrize(
        "name",
        [pytest.param(n, marks=clause(*(i for i in (s.format(n) for s in subs) if i not in NOT_THERE))) for n in TABLE],
    )


NOT_THERE = {"CMP-2.eq.sign", "CMP-2.ne.sign", *(f"CMP-2.{n}.int" for n in ("lt", "le", "gt", "ge"))}


@each("CMP-2.{}.sign", "CMP-2.{}.int", "CMP-1.{}.operator")
@pytest.mark.parametrize("d", INTEGERS)
def test_integers(name, d):
    x, y = integer_pairs(d)
    want = [getattr(operator, name)(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    for fn in (TABLE[name], FORMS[name]):
        assert (
            apply(binary(fn, d, d, "bool_"), "bool_", x.view(f"u{x.itemsize}"), y.view(f"u{y.itemsize}")).tolist()
            == want
        )


@each("CMP-2.{}.sign", "CMP-2.{}.int")
def test_masks(name):
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    want = [getattr(operator, name)(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert apply(binary(FORMS[name], "bool_", "bool_", "bool_"), "bool_", x, y).tolist() == want


@each("CMP-2.{}.nan", "CMP-2.{}.zero", "CMP-1.{}.operator")
@pytest.mark.parametrize("d", FLOATS)
def test_floats(name, d):
    x, y = pairs(d, 300)
    x, y = np.concatenate([x, x]), np.concatenate([y, x])  # equal ones too
    want = [getattr(operator, name)(a, b) for a, b in zip(values(d, x).tolist(), values(d, y).tolist(), strict=True)]
    for fn in (TABLE[name], FORMS[name]):
        assert apply(binary(fn, d, d, "bool_"), "bool_", x, y).tolist() == want


@each("CMP-1.{}")
def test_dtypes_and_shapes(name):
    for fn in (TABLE[name], FORMS[name]):
        for a, b in (
            ("int8", "int64"),
            ("uint8", "uint16"),
            ("int8", "float16"),
            ("float16", "float64"),
            ("bool_", "int8"),
            ("bool_", "bool_"),
        ):
            typed(fn, a, b, dtype="bool_")
        typed(fn, "int32 (2, 1)", "int32 (4,)", dtype="bool_", shape=(2, 4))
        typed(lambda x: fn(x, 5), "int8", dtype="bool_")
        typed(lambda x: fn(5, x), "int8 ()", dtype="bool_", shape=())
        for a, b in (("int8", "uint8"), ("float16", "bfloat16"), ("int64", "uint64")):
            refused(fn, a, b)
        refused(fn, "int8 (4,)", "int8 (8,)")
        for bad in (None, "1", (1, 2), ct.int32):
            refused(lambda x: fn(x, bad), "int32")


@each("CMP-1.{}")
def test_operands_promote_before_they_compare(name):
    x, y = np.array([-1, 127, 5], np.int8), np.array([-1, 1000, 4], np.int16)
    got = apply(binary(FORMS[name], "int8", "int16", "bool_"), "bool_", x.view(np.uint8), y.view(np.uint16))
    assert got.tolist() == [getattr(operator, name)(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    big = np.array([16777217, 16777216], np.int32)
    flt = np.array([16777216.0, 16777216.0], np.float32)
    got = apply(binary(FORMS[name], "int32", "float32", "bool_"), "bool_", big.view(np.uint32), flt.view(np.uint32))
    assert got.tolist() == [getattr(operator, name)(1, 1)] * 2


@each("CMP-3.{}.restricted")
def test_restricted(name):
    for d in RESTRICTED:
        for fn in (TABLE[name], FORMS[name]):
            refused(fn, d, d)
            refused(lambda x: fn(x, 1), d)


@each("CMP-3.{}.range")
def test_literals_beyond_the_range(name):
    for fn in (TABLE[name], FORMS[name]):
        for d in INTEGERS:
            low, high = limits(d)
            if high < 1 << 63:
                refused(lambda x: fn(x, high + 1), d, error="TileValueError")
            if low > -(1 << 63):
                refused(lambda x: fn(low - 1, x), d, error="TileValueError")
        refused(lambda: fn(ct.int8(1), 200), error="TileValueError")


@each("CMP-3.{}.float")
def test_integers_against_float_literals(name):
    compare = FORMS[name]
    got = made(lambda: compare(ct.arange(4, dtype=ct.int32), 1.5), "bool_", 4)
    assert got.tolist() == [getattr(operator, name)(v, 1.5) for v in range(4)]
    got = made(lambda: compare(ct.arange(4, dtype=ct.int32) + 16777216, 16777216.0), "bool_", 4)
    assert got.tolist() == [getattr(operator, name)(v, 16777216) for v in (16777216, 16777216, 16777218, 16777220)]


@each("CMP-1.{}.const")
def test_constants(name):
    compare = getattr(operator, name)
    for fn in (TABLE[name], FORMS[name]):
        for a, b in ((1, 2), (2, 1), (2, 2), (1.5, 1), (True, 1), (-0.0, 0.0), (1 << 40, 3)):
            folds(lambda: fn(a, b), compare(a, b), "bool_")
        folds(lambda: fn(ct.int8(-1), 1), compare(-1, 1), "bool_")
        folds(lambda: fn(ct.uint8(-1), 1), compare(255, 1), "bool_")
        folds(lambda: fn(ct.float16(2049), 2048), compare(2048, 2048), "bool_")
        folds(lambda: fn(ct.float32(math.nan), 1.0), compare(math.nan, 1.0), "bool_")
        refused(lambda: fn(ct.int8(1), ct.uint8(1)))


# ------------------------------------------------------------------ not


@clause("COND-3.tile", "COND-3.number")
@pytest.mark.parametrize("d", [*INTEGERS, "bool_", *FLOATS])
def test_not(d):
    if d in FLOATS:
        x = sample(d, 200)
        truth = values(d, x) != 0
    elif d == "bool_":
        x = truth = np.array([False, True])
    else:
        x = np.array([0, 1, 2, 0, limits(d)[0], limits(d)[1]], d)
        truth = x != 0
        x = x.view(f"u{x.itemsize}")
    assert (apply(unary(lambda v: not v, d, "bool_"), "bool_", x) == ~truth).all()
    typed(lambda v: not v, f"{d} (2, 2)", dtype="bool_", shape=(2, 2))


@clause("COND-3.other")
def test_not_of_other_things():
    for bad in (None, "a", (), (1, 2), ct.int32, ct.RoundingMode.RN):
        refused(lambda: not bad)

    @ct.kernel
    def k(a):
        not a  # noqa: B018

    refuses("TileTypeError", k, np.zeros(4, np.float32))
    refused(lambda: ct.int8(1) if not None else 0)
    folds(lambda: not 0, True, "bool_")
    folds(lambda: not 2.5, False, "bool_")
    folds(lambda: not dtype("int8")(3), False, "bool_")
