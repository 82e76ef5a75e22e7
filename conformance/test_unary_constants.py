"""Mathematical functions of constants [UN-4, LOOSE-5]."""

import math

import pytest

from conformance.harness.api import clause, ct
from conformance.harness.code_kernels import dtype, made
from conformance.harness.number_formats import FORMATS
from conformance.harness.operand_types import folds, refused, typed

inf, nan = math.inf, math.nan


BOUNDS = {
    "exp": (2, 1),
    "exp2": (3, 1),
    "log": (1, 1),
    "log2": (1, 1),
    "sin": (2, 1),
    "cos": (2, 1),
    "tan": (3, 2),
    "sinh": (3, 1),
    "cosh": (3, 1),
    "tanh": (2, 1),
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


@pytest.mark.parametrize(
    "fn",
    [
        *(
            pytest.param(f, marks=clause("LOOSE-5.exp"))
            for f in (lambda: ct.exp(1000.0), lambda: ct.exp(1000), lambda: ct.exp(ct.float64(1000)))
        ),
        *(
            pytest.param(f, marks=clause("LOOSE-5.log"))
            for f in (lambda: ct.log(0), lambda: ct.log(-1.0), lambda: ct.log(ct.float32(0)))
        ),
        *(
            pytest.param(f, marks=clause("LOOSE-5.log2"))
            for f in (lambda: ct.log2(0), lambda: ct.log2(-1.0), lambda: ct.log2(ct.float16(-1)))
        ),
        *(
            pytest.param(f, marks=clause(f"LOOSE-5.{n}"))
            for n, f in (("sin", lambda: ct.sin(inf)), ("cos", lambda: ct.cos(inf)), ("tan", lambda: ct.tan(-inf)))
        ),
        pytest.param(lambda: ct.sinh(1000.0), marks=clause("LOOSE-5.sinh")),
        pytest.param(lambda: ct.cosh(-1000.0), marks=clause("LOOSE-5.cosh")),
        *(
            pytest.param(f, marks=clause("LOOSE-5.sqrt"))
            for f in (lambda: ct.sqrt(-1), lambda: ct.sqrt(-0.5), lambda: ct.sqrt(ct.float32(-1)))
        ),
        *(
            pytest.param(f, marks=clause("LOOSE-5.rsqrt"))
            for f in (lambda: ct.rsqrt(0), lambda: ct.rsqrt(0.0), lambda: ct.rsqrt(ct.float32(0)))
        ),
    ],
)
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
