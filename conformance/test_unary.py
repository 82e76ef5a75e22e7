"""Mathematical functions of one tile, and atan2 [UN, ARITH-11, LOOSE-5].

References come from Python's math (the C library) and mpmath, in double precision or more.
"""

import math

import mpmath
import numpy as np
import pytest

from conformance.api import clause, ct
from conformance.numbers import (
    FLOATS as ALL_FLOATS,
)
from conformance.numbers import (
    FORMATS, apply, binary, codes, dtype, encode, exact, made, same_numbers, sample, specials, unary, values,
)
from conformance.typing import folds, refused, typed

inf, nan = math.inf, math.nan
FLOATS = ("float16", "bfloat16", "float32", "float64")
RESTRICTED = tuple(n for n in ALL_FLOATS if n not in FLOATS)
BOUNDS = {"exp": (2, 1), "exp2": (3, 1), "log": (1, 1), "log2": (1, 1), "sin": (2, 1), "cos": (2, 1), "tan": (3, 2), "sinh": (3, 1),
          "cosh": (3, 1), "tanh": (2, 1), "rsqrt": (2, 1)}
OPS = (*BOUNDS, "sqrt")


def reference(op, x):
    """The function of a double, with C's special values."""
    if x != x:
        return nan
    try:
        if op == "rsqrt":
            return 1 / math.sqrt(x) if x > 0 else nan if x < 0 else math.copysign(inf, x)
        if op in ("log", "log2") and x == 0:
            return -inf
        return 2.0**x if op == "exp2" else getattr(math, op)(x)
    except OverflowError:
        return -inf if op == "sinh" and x < 0 else inf
    except ValueError:
        return nan


def precise(op, x):
    """The function of a double in many digits."""
    return {"exp2": lambda v: mpmath.mpf(2) ** v, "rsqrt": lambda v: 1 / mpmath.sqrt(v), "log2": lambda v: mpmath.log(v, 2)}.get(
        op, getattr(mpmath, op, None))(mpmath.mpf(x))


def assert_within(got, want, bound, name):
    """Within `bound` units in the last place of finite references; specials, and what overflows, exactly."""
    f = FORMATS[name]
    top = math.ldexp(2 - 2.0**-f.fraction, -f.emin + 1)
    unit = np.ldexp(1.0, np.maximum(np.frexp(want)[1] - 1, f.emin) - f.fraction)
    plain = np.isfinite(want) & (np.abs(want) < top) & (want != 0)
    with np.errstate(all="ignore"):
        error = np.abs(got - want) / unit
    bad = np.flatnonzero(plain & ~(error <= bound))
    assert not len(bad), f"{error[bad[0]]} ulp at {bad[0]}: {got[bad[0]]!r} for {want[bad[0]]!r}"
    huge = np.isfinite(want) & (np.abs(want) >= top * (1 + 2.0**-f.fraction))
    same_numbers(got[huge], np.copysign(inf, want[huge]))
    rest = ~np.isfinite(want) | (want == 0)
    same_numbers(got[rest], want[rest], name)


def inputs(name):
    """Every value of a 16-bit format; for the others specials, any magnitudes, and near ones."""
    if FORMATS[name].bits == 16:
        return codes(name)
    n = 3000 if name == "float32" else 300
    spread = np.concatenate([np.linspace(-100, 100, n), np.linspace(-3, 3, n), np.linspace(0.9, 1.1, 100)])
    return np.concatenate([encode(name, np.array(specials(name))), sample(name, n, 1), sample(name, n, 2, near=True), encode(name, spread)])


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("op", [pytest.param(op, marks=clause(f"UN-4.{op}.f32", f"UN-4.{op}.f16")) for op in BOUNDS])
def test_accuracy(op, name):
    x = inputs(name)
    want = np.array([reference(op, v) for v in values(name, x).tolist()])
    got = values(name, apply(unary(getattr(ct, op), name, name), name, x))
    assert_within(got, want, BOUNDS[op][0] if name == "float32" else 1, name)


@pytest.mark.parametrize("op", [pytest.param(op, marks=clause(f"UN-4.{op}.f64")) for op in BOUNDS])
def test_accuracy_of_float64(op):
    x = inputs("float64")
    v = values("float64", x)
    rough = np.array([reference(op, a) for a in v.tolist()])
    got = values("float64", apply(unary(getattr(ct, op), "float64", "float64"), "float64", x))
    plain = np.isfinite(rough) & (rough != 0) & (np.abs(v) < 1e6) & (np.abs(rough) > 1e-300)
    special = np.isfinite(rough) & (rough != 0) == 0
    same_numbers(got[special], rough[special])
    unit = np.ldexp(1.0, np.frexp(rough[plain])[1] - 53)
    with mpmath.workdps(50):
        error = [float(abs(mpmath.mpf(g) - precise(op, a)) / u) for g, a, u in
                 zip(got[plain].tolist(), v[plain].tolist(), unit.tolist(), strict=True)]
    assert max(error) <= BOUNDS[op][1]


@clause("UN-4.sqrt.nearest")
@pytest.mark.parametrize("name", FLOATS)
def test_sqrt_is_correctly_rounded(name):
    x = inputs(name)
    if len(x) > 5000:
        x = x[::13]
    want = np.array([exact("sqrt", name, v) for v in values(name, x).tolist()])
    same_numbers(values(name, apply(unary(ct.sqrt, name, name), name, x)), want, name)


SPECIAL = [
    ("exp", "ninf", -inf, 0.0), ("exp", "inf", inf, inf), ("exp", "nan", nan, nan), ("exp", "overflow", 1000.0, inf),
    ("exp2", "ninf", -inf, 0.0), ("exp2", "inf", inf, inf), ("exp2", "nan", nan, nan), ("exp2", "overflow", 2000.0, inf),
    ("log", "zero", 0.0, -inf), ("log", "zero", -0.0, -inf), ("log", "negative", -1.0, nan), ("log", "negative", -inf, nan),
    ("log", "inf", inf, inf), ("log", "nan", nan, nan), ("log", "one", 1.0, 0.0),
    ("log2", "zero", 0.0, -inf), ("log2", "zero", -0.0, -inf), ("log2", "negative", -1.0, nan), ("log2", "negative", -inf, nan),
    ("log2", "inf", inf, inf), ("log2", "nan", nan, nan), ("log2", "one", 1.0, 0.0),
    ("sin", "inf", inf, nan), ("sin", "inf", -inf, nan), ("sin", "nan", nan, nan), ("sin", "zero", -0.0, -0.0), ("sin", "zero", 0.0, 0.0),
    ("cos", "inf", inf, nan), ("cos", "inf", -inf, nan), ("cos", "nan", nan, nan), ("cos", "zero", 0.0, 1.0), ("cos", "zero", -0.0, 1.0),
    ("tan", "inf", inf, nan), ("tan", "inf", -inf, nan), ("tan", "nan", nan, nan), ("tan", "zero", -0.0, -0.0), ("tan", "zero", 0.0, 0.0),
    ("sinh", "inf", inf, inf), ("sinh", "inf", -inf, -inf), ("sinh", "nan", nan, nan), ("sinh", "zero", -0.0, -0.0),
    ("cosh", "inf", inf, inf), ("cosh", "inf", -inf, inf), ("cosh", "nan", nan, nan), ("cosh", "zero", 0.0, 1.0),
    ("tanh", "inf", inf, 1.0), ("tanh", "inf", -inf, -1.0), ("tanh", "nan", nan, nan), ("tanh", "zero", -0.0, -0.0),
    ("sqrt", "negative", -1.0, nan), ("sqrt", "negative", -inf, nan), ("sqrt", "zero", -0.0, -0.0), ("sqrt", "zero", 0.0, 0.0),
    ("sqrt", "inf", inf, inf), ("sqrt", "nan", nan, nan),
    ("rsqrt", "zero", 0.0, inf), ("rsqrt", "nzero", -0.0, -inf), ("rsqrt", "negative", -1.0, nan), ("rsqrt", "negative", -inf, nan),
    ("rsqrt", "inf", inf, 0.0), ("rsqrt", "nan", nan, nan)]


@pytest.mark.parametrize("op, x, want", [pytest.param(op, x, w, marks=clause(f"UN-4.{op}.{what}"), id=f"{op}-{what}-{x}")
                                         for op, what, x, w in SPECIAL])
def test_special_values(op, x, want):
    for name in FLOATS:
        if x in (1000.0, 2000.0) and name == "float64":
            x *= 2
        got = values(name, apply(unary(getattr(ct, op), name, name), name, encode(name, [x])))
        same_numbers(got, np.array([want]), f"{op} of {name}")


@pytest.mark.parametrize("op", [pytest.param(op, marks=clause(f"UN-1.{op}.dtype")) for op in OPS])
def test_dtypes(op):
    f = getattr(ct, op)
    for name in ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        typed(f, f"{name} (2, 2)", dtype="float32", shape=(2, 2))
    for name in FLOATS:
        typed(f, f"{name} ()", dtype=name, shape=())
    got = made(lambda: f(ct.arange(4, dtype=ct.int64) + 16777217), "float32", 4)
    want = made(lambda: f((ct.arange(4, dtype=ct.int64) + 16777217).astype(ct.float32)), "float32", 4)
    same_numbers(got, want, op)
    got = made(lambda: f(ct.arange(2, dtype=ct.bool_)), "float32", 2)
    assert_within(got, np.array([reference(op, v) for v in (0.0, 1.0)]), 3, "float32")
    for bad in (None, "1", (1, 2), ct.int32):
        refused(lambda: f(bad))
    refused(lambda x: f(x, x), "float32")


@pytest.mark.parametrize("op", [*(pytest.param(op, marks=clause(f"UN-1.{op}.restricted")) for op in OPS),
                                *(pytest.param(op, marks=clause(f"UN-2.{op}.restricted")) for op in ("floor", "ceil")),
                                pytest.param("isnan", marks=clause("UN-3.isnan.restricted"))])
def test_restricted_floats(op):
    for name in RESTRICTED:
        refused(getattr(ct, op), name)


# ------------------------------------------------------------------ constants


@pytest.mark.parametrize("op", [pytest.param(op, marks=clause(f"UN-4.{op}.const")) for op in OPS])
def test_constants(op):
    f = getattr(ct, op)
    want = reference(op, 0.75)
    folds(lambda: f(0.75), 0.75**-0.5 if op == "rsqrt" else want, "float32")
    for name in ("float32", "float16", "float64"):
        d = dtype(name)
        x = made(lambda: ct.full(4, f(d(0.75)), d), name, 4)[0]
        assert abs(x - want) <= 2 * abs(want) * 2.0 ** -FORMATS[name].fraction
        folds(lambda: f(d(0.75)) != 0, True)
        typed(lambda: f(d(1)), dtype=name, shape=())
    typed(lambda: f(ct.int8(1)), dtype="float32", shape=())
    if op != "exp2":
        typed(lambda: f(1), dtype="float32", shape=())


@pytest.mark.parametrize("fn", [
    *(pytest.param(f, marks=clause("LOOSE-5.exp")) for f in (lambda: ct.exp(1000.0), lambda: ct.exp(1000), lambda: ct.exp(ct.float64(1000)))),
    *(pytest.param(f, marks=clause("LOOSE-5.log")) for f in (lambda: ct.log(0), lambda: ct.log(-1.0), lambda: ct.log(ct.float32(0)))),
    *(pytest.param(f, marks=clause("LOOSE-5.log2")) for f in (lambda: ct.log2(0), lambda: ct.log2(-1.0), lambda: ct.log2(ct.float16(-1)))),
    *(pytest.param(f, marks=clause(f"LOOSE-5.{n}")) for n, f in (("sin", lambda: ct.sin(inf)), ("cos", lambda: ct.cos(inf)),
                                                                 ("tan", lambda: ct.tan(-inf)))),
    pytest.param(lambda: ct.sinh(1000.0), marks=clause("LOOSE-5.sinh")), pytest.param(lambda: ct.cosh(-1000.0), marks=clause("LOOSE-5.cosh")),
    *(pytest.param(f, marks=clause("LOOSE-5.sqrt")) for f in (lambda: ct.sqrt(-1), lambda: ct.sqrt(-0.5), lambda: ct.sqrt(ct.float32(-1)))),
    *(pytest.param(f, marks=clause("LOOSE-5.rsqrt")) for f in (lambda: ct.rsqrt(0), lambda: ct.rsqrt(0.0), lambda: ct.rsqrt(ct.float32(0))))])
def test_constants_without_a_value(fn):
    refused(fn, error="TileValueError")


@clause("LOOSE-5.exp2")
def test_exp2_of_integer_literals():
    folds(lambda: ct.exp2(3), 8, "int32")
    folds(lambda: ct.exp2(0), 1, "int32")
    folds(lambda: ct.exp2(40), 1 << 40, "int64")
    folds(lambda: ct.exp2(-1), 0.5, "float32")
    folds(lambda: ct.exp2(3.0), 8.0, "float32")
    typed(lambda: ct.exp2(ct.int8(3)), dtype="float32", shape=())
    refused(lambda: ct.exp2(100), error="TileValueError")


# ------------------------------------------------------------------ floor, ceil, isnan


@pytest.mark.parametrize("op, oracle", [
    pytest.param("floor", math.floor, marks=clause("UN-2.floor.value", "UN-2.floor.special")),
    pytest.param("ceil", math.ceil, marks=clause("UN-2.ceil.value", "UN-2.ceil.special", "UN-2.ceil.nzero"))])
@pytest.mark.parametrize("name", FLOATS)
def test_floor_and_ceil(op, oracle, name):
    x = inputs(name)
    v = values(name, x)
    want = np.array([a if not math.isfinite(a) else math.copysign(float(oracle(a)), a) for a in v.tolist()])
    same_numbers(values(name, apply(unary(getattr(ct, op), name, name), name, x)), want, name)


@pytest.mark.parametrize("op", [pytest.param("floor", marks=clause("UN-2.floor.dtype", "UN-2.floor.int", "UN-2.floor.strict", "LOOSE-5.floor")),
                                pytest.param("ceil", marks=clause("UN-2.ceil.dtype", "UN-2.ceil.int", "UN-2.ceil.strict", "LOOSE-5.ceil"))])
def test_floor_and_ceil_dtypes(op):
    f = getattr(ct, op)
    for name in FLOATS:
        typed(f, name, dtype=name)
        folds(lambda: f(dtype(name)(2.5)), {"floor": 2, "ceil": 3}[op], name)
    for name in ("int8", "int64", "uint32", "bool_"):
        refused(f, name)
    refused(lambda: f(ct.int32(2)))
    folds(lambda: f(2.5), {"floor": 2, "ceil": 3}[op], "int32")
    folds(lambda: f(-2.5), {"floor": -3, "ceil": -2}[op], "int32")
    folds(lambda: f(7), 7, "int32")
    refused(lambda: f(nan), error="TileValueError")
    refused(lambda: f(None))


@clause("UN-3.isnan")
@pytest.mark.parametrize("name", FLOATS)
def test_isnan(name):
    x = inputs(name)
    got = apply(unary(ct.isnan, name, "bool_"), "bool_", x)
    assert (got == (values(name, x) != values(name, x))).all()
    typed(ct.isnan, f"{name} (2, 2)", dtype="bool_", shape=(2, 2))


@clause("UN-3.isnan.int", "UN-3.isnan.loose", "UN-3.isnan.strict")
def test_isnan_of_other_things():
    for name in ("int8", "int64", "uint32", "bool_"):
        refused(ct.isnan, name)
    refused(lambda: ct.isnan(ct.int32(2)))
    folds(lambda: ct.isnan(5), False, "bool_")
    folds(lambda: ct.isnan(nan), True, "bool_")
    folds(lambda: ct.isnan(2.5), False, "bool_")
    folds(lambda: ct.isnan(ct.float16(nan)), True, "bool_")
    folds(lambda: ct.isnan(ct.float64(1)), False, "bool_")


# ------------------------------------------------------------------ atan2


@clause("ARITH-11.error", "ARITH-11.range", "ARITH-11.zero", "ARITH-11.inf", "ARITH-11.nan")
@pytest.mark.parametrize("name", FLOATS)
def test_atan2(name):
    s = encode(name, np.array(specials(name)))
    y = np.concatenate([np.repeat(s, len(s)), sample(name, 2000, 1, near=True), sample(name, 2000, 2)])
    x = np.concatenate([np.tile(s, len(s)), sample(name, 2000, 3, near=True), sample(name, 2000, 4)])
    want = np.array([nan if a != a or b != b else math.atan2(a, b) for a, b in
                     zip(values(name, y).tolist(), values(name, x).tolist(), strict=True)])
    got = values(name, apply(binary(ct.atan2, name, name, name), name, y, x))
    assert_within(got, want, 2 if name == "float32" else 1, name)
    assert (np.abs(got[~np.isnan(got)]) <= float(values(name, encode(name, [math.pi]))[0])).all()


@clause("ARITH-11.zero", "ARITH-11.inf")
def test_atan2_special_values():
    rows = [(0.0, -1.0, math.pi), (-0.0, -1.0, -math.pi), (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (inf, -inf, 3 * math.pi / 4),
            (-inf, inf, -math.pi / 4), (1.0, 0.0, math.pi / 2), (-1.0, 0.0, -math.pi / 2), (1.0, inf, 0.0)]
    y, x, want = (np.array(c) for c in zip(*rows, strict=True))
    got = values("float64", apply(binary(ct.atan2, "float64", "float64", "float64"), "float64", encode("float64", y), encode("float64", x)))
    same_numbers(got, want)


@clause("ARITH-11.dtype", "ARITH-11.int", "ARITH-11.restricted", "ARITH-11.const")
def test_atan2_dtypes():
    typed(ct.atan2, "float16 (2, 1)", "float32 (4,)", dtype="float32", shape=(2, 4))
    typed(ct.atan2, "int32", "float16", dtype="float16")
    typed(lambda y: ct.atan2(y, 1), "bfloat16", dtype="bfloat16")
    typed(lambda y: ct.atan2(y, 1.0), "int8", dtype="float32")
    for a, b in (("int32", "int32"), ("int8", "bool_"), ("float16", "bfloat16"), ("bool_", "bool_")):
        refused(ct.atan2, a, b)
    refused(lambda y: ct.atan2(y, 1), "int32")
    for name in RESTRICTED:
        refused(ct.atan2, name, name)
    folds(lambda: ct.atan2(1.0, 1.0), math.atan2(1, 1), "float32")
    folds(lambda: ct.atan2(1, 2), math.atan2(1, 2), "float32")
    folds(lambda: ct.atan2(ct.float64(1), 2.0), math.atan2(1, 2), "float64")
    refused(lambda: ct.atan2(ct.int32(1), ct.int32(2)))
    refused(lambda y: ct.atan2(y, None), "float32")
