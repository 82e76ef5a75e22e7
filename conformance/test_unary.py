"""Mathematical functions: accuracy, special values, dtypes [UN].

References come from Python's math (the C library) and mpmath, in double precision or more.
"""

import functools
import math

import mpmath
import numpy as np
import pytest

from conformance.harness.api import clause, ct
from conformance.harness.code_kernels import apply, made, unary
from conformance.harness.exact_arithmetic import exact
from conformance.harness.number_comparison import assert_within, same_numbers
from conformance.harness.number_formats import FLOATS as ALL_FLOATS
from conformance.harness.number_formats import FORMATS, codes, decoded, encode, values
from conformance.harness.number_samples import sample, specials
from conformance.harness.operand_types import refused, typed

inf, nan = math.inf, math.nan


FLOATS = ("float16", "bfloat16", "float32", "float64")


RESTRICTED = tuple(n for n in ALL_FLOATS if n not in FLOATS)


BOUNDS = {
    "exp": (2, 1),
    "exp2": (3, 1),
    "log": (1, 1),
    "log2": (1, 2),
    "sin": (2, 2),
    "cos": (2, 2),
    "tan": (3, 2),
    "sinh": (3, 2),
    "cosh": (3, 2),
    "tanh": (2, 2),
    "rsqrt": (2, 1),
}


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
    return {
        "exp2": lambda v: mpmath.mpf(2) ** v,
        "rsqrt": lambda v: 1 / mpmath.sqrt(v),
        "log2": lambda v: mpmath.log(v, 2),
    }.get(op, getattr(mpmath, op, None))(mpmath.mpf(x))


def inputs(name):
    """Every value of a 16-bit format; for wider ones specials, any magnitudes, and magnitudes near one."""
    if FORMATS[name].bits == 16:
        return codes(name)
    n = 3000 if name == "float32" else 300
    spread = np.concatenate([np.linspace(-100, 100, n), np.linspace(-3, 3, n), np.linspace(0.9, 1.1, 100)])
    return np.concatenate(
        [
            encode(name, np.array(specials(name))),
            sample(name, n, 1),
            sample(name, n, 2, near=True),
            encode(name, spread),
        ]
    )


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("op", [pytest.param(op, marks=clause(f"UN-4.{op}.f32", f"UN-4.{op}.f16")) for op in BOUNDS])
def test_accuracy(op, name):
    x = inputs(name)
    want = np.array([reference(op, v) for v in values(name, x).tolist()])
    got = values(name, apply(unary(getattr(ct, op), name, name), name, x))
    assert_within(got, want, BOUNDS[op][0] if name == "float32" else 1, name, decoded(name, x))


@pytest.mark.parametrize("op", [pytest.param(op, marks=clause(f"UN-4.{op}.f64")) for op in BOUNDS])
def test_accuracy_of_float64(op):
    x = inputs("float64")
    v = values("float64", x)
    rough = np.array([reference(op, a) for a in v.tolist()])
    got = values("float64", apply(unary(getattr(ct, op), "float64", "float64"), "float64", x))
    plain = np.isfinite(rough) & (rough != 0) & (np.abs(v) < 1e6) & (np.abs(rough) > 1e-300)
    special = np.isfinite(rough) & (rough != 0) == 0
    same_numbers(got[special], rough[special], op, [v[special]])
    unit = np.ldexp(1.0, np.frexp(rough[plain])[1] - 53)
    with mpmath.workdps(50):
        error = [
            float(abs(mpmath.mpf(g) - precise(op, a)) / u)
            for g, a, u in zip(got[plain].tolist(), v[plain].tolist(), unit.tolist(), strict=True)
        ]
    assert max(error) <= BOUNDS[op][1]


@clause("UN-4.rsqrt.f64")
@pytest.mark.parametrize("e", [-400, -100, -10, 0, 10, 100, 400])
def test_rsqrt_where_a_rounded_root_is_not_enough(e):
    """Just above a power of four, the reciprocal of the rounded root misses the bound."""
    v = np.ldexp(1 + np.random.default_rng(3).random(1000) * 0.05, e)
    got = values("float64", apply(unary(ct.rsqrt, "float64", "float64"), "float64", encode("float64", v)))
    with mpmath.workdps(50):
        for g, x in zip(got.tolist(), v.tolist(), strict=True):
            want = precise("rsqrt", x)
            assert abs(mpmath.mpf(g) - want) <= math.ulp(float(want)), x


@clause("UN-4.sqrt.nearest")
@pytest.mark.parametrize("name", FLOATS)
def test_sqrt_is_correctly_rounded(name):
    x = inputs(name)
    if len(x) > 5000:
        x = x[::13]
    want = np.array([exact("sqrt", name, v) for v in values(name, x).tolist()])
    same_numbers(values(name, apply(unary(ct.sqrt, name, name), name, x)), want, name, decoded(name, x))


SPECIAL = [
    ("exp", "ninf", -inf, 0.0),
    ("exp", "inf", inf, inf),
    ("exp", "nan", nan, nan),
    ("exp", "overflow", 1000.0, inf),
    ("exp2", "ninf", -inf, 0.0),
    ("exp2", "inf", inf, inf),
    ("exp2", "nan", nan, nan),
    ("exp2", "overflow", 2000.0, inf),
    ("log", "zero", 0.0, -inf),
    ("log", "zero", -0.0, -inf),
    ("log", "negative", -1.0, nan),
    ("log", "negative", -inf, nan),
    ("log", "inf", inf, inf),
    ("log", "nan", nan, nan),
    ("log", "one", 1.0, 0.0),
    ("log2", "zero", 0.0, -inf),
    ("log2", "zero", -0.0, -inf),
    ("log2", "negative", -1.0, nan),
    ("log2", "negative", -inf, nan),
    ("log2", "inf", inf, inf),
    ("log2", "nan", nan, nan),
    ("log2", "one", 1.0, 0.0),
    ("sin", "inf", inf, nan),
    ("sin", "inf", -inf, nan),
    ("sin", "nan", nan, nan),
    ("sin", "zero", -0.0, -0.0),
    ("sin", "zero", 0.0, 0.0),
    ("cos", "inf", inf, nan),
    ("cos", "inf", -inf, nan),
    ("cos", "nan", nan, nan),
    ("cos", "zero", 0.0, 1.0),
    ("cos", "zero", -0.0, 1.0),
    ("tan", "inf", inf, nan),
    ("tan", "inf", -inf, nan),
    ("tan", "nan", nan, nan),
    ("tan", "zero", -0.0, -0.0),
    ("tan", "zero", 0.0, 0.0),
    ("sinh", "inf", inf, inf),
    ("sinh", "inf", -inf, -inf),
    ("sinh", "nan", nan, nan),
    ("sinh", "zero", -0.0, -0.0),
    ("cosh", "inf", inf, inf),
    ("cosh", "inf", -inf, inf),
    ("cosh", "nan", nan, nan),
    ("cosh", "zero", 0.0, 1.0),
    ("tanh", "inf", inf, 1.0),
    ("tanh", "inf", -inf, -1.0),
    ("tanh", "nan", nan, nan),
    ("tanh", "zero", -0.0, -0.0),
    ("sqrt", "negative", -1.0, nan),
    ("sqrt", "negative", -inf, nan),
    ("sqrt", "zero", -0.0, -0.0),
    ("sqrt", "zero", 0.0, 0.0),
    ("sqrt", "inf", inf, inf),
    ("sqrt", "nan", nan, nan),
    ("rsqrt", "zero", 0.0, inf),
    ("rsqrt", "nzero", -0.0, -inf),
    ("rsqrt", "negative", -1.0, nan),
    ("rsqrt", "negative", -inf, nan),
    ("rsqrt", "inf", inf, 0.0),
    ("rsqrt", "nan", nan, nan),
]


@pytest.mark.parametrize(
    "op, x, want",
    [pytest.param(op, x, w, marks=clause(f"UN-4.{op}.{what}"), id=f"{op}-{what}-{x}") for op, what, x, w in SPECIAL],
)
def test_special_values(op, x, want):
    for name in FLOATS:
        same_numbers(special_results(op, name)[str(x)], np.array([want]), f"{op} of {name}")


@functools.cache
def special_results(op, name):
    """The function's results for all its arguments in the table, by argument."""
    xs = [x for o, _, x, _ in SPECIAL if o == op]
    far = [2 * x if abs(x) >= 1000 and math.isfinite(x) else x for x in xs]  # so that float64 overflows too
    got = values(name, apply(unary(getattr(ct, op), name, name), name, encode(name, far)))
    return {str(x): got[i:i + 1] for i, x in enumerate(xs)}


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


@pytest.mark.parametrize(
    "op",
    [
        *(pytest.param(op, marks=clause(f"UN-1.{op}.restricted")) for op in OPS),
        *(pytest.param(op, marks=clause(f"UN-2.{op}.restricted")) for op in ("floor", "ceil")),
        pytest.param("isnan", marks=clause("UN-3.isnan.restricted")),
    ],
)
def test_restricted_floats(op):
    for name in RESTRICTED:
        refused(getattr(ct, op), name)
