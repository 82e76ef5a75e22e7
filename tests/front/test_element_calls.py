"""Functions of math and NumPy, and Python's builtins, in element functions."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.errors import UnsupportedCallError
from cutile.front.element_calls import _handlers, _tables, handler
from tests.elements import applied
from tests.front.compiling import A1, refused

X = np.array([-7.5, -2.5, -1, -0.75, -0.5, -1e-3, 0, 1e-8, 1e-3, 0.25, 0.5, 0.9, 1, 1.5, 2.5, 9], np.float32)
Y = np.array([2, -3, 0.5, 7, -1, 1e-3, 1, 2, 4, -0.25, 3, 0.7, -1, 2, 1.25, -4], np.float32)
INTS = np.array([-12, -7, -1, 0, 1, 2, 3, 5, 6, 9, 12, 18, 25, 30, 31, 77], np.int32)

OF_ONE = ["exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan", "degrees", "radians", "fabs",
          "floor", "ceil", "trunc"]
POSITIVE = ["log", "log2", "log10", "log1p", "sqrt"]
WITHIN_ONE = ["asin", "acos"]
OF_TWO = ["atan2", "copysign", "fmod", "hypot"]


def near(got: np.ndarray, exact: list[float], ulps: int) -> None:
    exact = np.array(exact)
    assert (np.abs(got - exact) <= ulps * np.spacing(np.abs(exact).astype(got.dtype))).all(), (got, exact)


@pytest.mark.parametrize("dtype, ulps", [(np.float32, 4), (np.float64, 6)])
@pytest.mark.parametrize("name", [*OF_ONE, *POSITIVE, *WITHIN_ONE])
def test_functions_of_math(name, dtype, ulps):
    f = getattr(math, name, None)
    if f is None:
        pytest.skip(f"this Python has no math.{name}")
    x = X.astype(dtype)
    x = np.abs(x) + dtype(0.125) if name in POSITIVE else np.clip(x, -1, 1) if name in WITHIN_ONE else x
    near(applied(lambda v: f(v), x, out=dtype), [f(float(v)) for v in x], ulps)


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two(name):
    f = getattr(math, name)
    near(applied(lambda v, w: f(v, w), X, Y), [f(float(v), float(w)) for v, w in zip(X, Y, strict=True)], 3)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_kinds_of_numbers(name):
    f, x = getattr(math, name), np.array([0, 1, -3, np.nan, np.inf, -np.inf, 1e38, -0.0], np.float32)
    assert applied(lambda v: f(v), x, tile=8).tolist() == [f(float(v)) for v in x]


WIDE = {"asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt}


def numbers_of(dtype):
    """Of all sizes, with both signs, and the kinds that are no numbers or the last ones."""
    f, rng = np.finfo(dtype), np.random.default_rng(0)
    sizes = np.concatenate([rng.uniform(f.minexp - 3, f.maxexp, 2000), rng.uniform(-4, 4, 2000)])
    some = np.concatenate([2.0 ** sizes, rng.uniform(0, 1, 1000), 1 + 2.0 ** rng.uniform(-20, 0, 1000)])
    some = np.concatenate([some.astype(dtype), np.array([0, 1, np.inf, np.nan, f.max, f.tiny, f.smallest_subnormal],
                                                        dtype)])
    return np.concatenate([some, -some])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", WIDE)
def test_functions_that_are_composed_within_two_ulp(name, dtype):
    """Whatever the argument, with the sign of a zero; narrow floats are computed as float32 [ELT-14, ELT-16]."""
    f, x = WIDE[name], numbers_of(dtype)
    got = np.zeros_like(x)
    compute.unary_transform(x, got, lambda v: f(v), len(x))
    with np.errstate(all="ignore"):
        exact = f(x.astype(np.longdouble if dtype is np.float64 else np.float64))
        want = exact.astype(dtype)
        same = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
        units = 0.5 + 2.0 ** -9 if dtype is np.float16 else 2
        wrong = ~same & ~(np.abs(got - exact) <= units * np.spacing(np.abs(want)))
    assert not wrong.any(), (x[wrong], got[wrong], want[wrong])


def test_remainder_is_exact():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 3000)) * 10.0 ** rng.integers(-9, 9, (2, 3000))
    x[:14] = 5, -5, 7.5, 2.5, -2.5, 1e30, 0, -0.0, 3, np.inf, np.nan, 1, 1e308, 5e-324
    y[:14] = 3, 3, 5, 1, 1, 7, 2, 2, np.inf, 2, 2, 0, 1.7e308, 1e-320
    got = np.zeros(3000)
    compute.binary_transform(x, y, got, lambda v, w: math.remainder(v, w), 3000)

    def exact(v, w):
        try:
            return math.remainder(v, w)
        except ValueError:
            return math.nan
    want = np.array(list(map(exact, x, y)))
    assert np.array_equal(got, want, equal_nan=True) and np.array_equal(np.signbit(got[:9]), np.signbit(want[:9]))


def test_lcm_and_signs():
    rng = np.random.default_rng(1)
    x, y, got = *rng.integers(-60, 60, (2, 500)), np.zeros(500, np.int64)
    for f in (lambda v, w: math.lcm(v, w), lambda v, w: np.lcm(v, w)):
        compute.binary_transform(x, y, got, f, 500)
        assert np.array_equal(got, np.lcm(x, y))
    z, o = np.array([0, -0.0, 2, -2, np.nan, np.inf, -np.inf], np.float32), np.zeros(7, np.float32)
    compute.unary_transform(z, o, lambda v: np.heaviside(v, 0.5), 7)
    assert np.array_equal(o, np.heaviside(z, np.float32(0.5)), equal_nan=True)
    compute.unary_transform(z, o, lambda v: np.signbit(v), 7)
    assert o.tolist() == np.signbit(z).tolist()


def test_integers_go_to_float64():
    near(applied(lambda v: math.sqrt(v * v + 1), INTS, out=np.float64), [math.sqrt(int(v) ** 2 + 1) for v in INTS], 1)
    assert applied(lambda v: math.floor(v / 4), INTS).tolist() == [math.floor(int(v) / 4) for v in INTS]


def test_gcd():
    assert applied(lambda v: math.gcd(v, 18), INTS, out=np.int32).tolist() == [math.gcd(int(v), 18) for v in INTS]


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "arctan2",
                                  "fmax", "fmin", "maximum", "minimum", "equal", "less", "greater_equal", "logical_or",
                                  "logical_and", "logical_xor", "hypot", "copysign"])
def test_ufuncs_of_two(name):
    f = getattr(np, name)
    near(applied(lambda v, w: f(v, w), X, Y), f(X.astype(float), Y.astype(float)).astype(float), 3)


@pytest.mark.parametrize("name", ["negative", "absolute", "fabs", "square", "sign", "rint", "trunc", "exp", "floor",
                                  "logical_not", "isnan", "isfinite", "deg2rad", "arctan", "expm1"])
def test_ufuncs_of_one(name):
    f = getattr(np, name)
    near(applied(lambda v: f(v), X), f(X.astype(float)).astype(float), 3)


UFUNCS = """abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 bitwise_and bitwise_left_shift bitwise_not
    bitwise_or bitwise_right_shift bitwise_xor cbrt ceil copysign cos cosh deg2rad degrees divide equal exp exp2 expm1 fabs
    float_power floor floor_divide fmax fmin fmod gcd greater greater_equal heaviside hypot invert isfinite isinf isnan
    lcm left_shift less less_equal log log10 log1p log2 logical_and logical_not logical_or logical_xor maximum
    minimum mod multiply negative not_equal positive power rad2deg radians reciprocal remainder right_shift rint
    sign signbit sin sinh sqrt square subtract tan tanh true_divide trunc""".split()
FLOATS = {"floor", "ceil", "trunc", "fmod", "reciprocal"}  # of integers too; some versions of NumPy give integers


@pytest.mark.parametrize("name", UFUNCS)
def test_each_function_of_integers_gives_the_kind_of_number_that_numpy_gives(name):
    f, x, y = getattr(np, name), np.ones(16, np.int32), np.tile(np.int32([1, 2, 3, 4]), 4)
    want = f(x, y) if f.nin == 2 else f(x)
    kind = "f" if name in FLOATS else want.dtype.kind
    dtypes = {"b": (ct.bool_,), "i": (ct.int32,), "f": (ct.float32, ct.float64)}[kind]

    def one(v):
        result = f(v)
        ct.static_assert(result.dtype in dtypes)
        return result

    def two(v, w):
        result = f(v, w)
        ct.static_assert(result.dtype in dtypes)
        return result

    near(applied(*((two, x, y) if f.nin == 2 else (one, x))), want.astype(float), 3)


def test_each_ufunc_is_tried():
    assert {n for n in _tables()[1] if isinstance(getattr(np, n, None), np.ufunc)} <= {*UFUNCS, "arctanh"}


def test_gcd_of_integers_is_one():
    def f(v, w):
        result = math.gcd(v, w)
        ct.static_assert(result.dtype == ct.int32)
        return result

    assert applied(f, INTS, INTS + 6, out=np.int32).tolist() == np.gcd(INTS, INTS + 6).tolist()


def test_ufuncs_propagate_nan_where_numpy_does():
    x, y = np.array([np.nan, 1, np.nan, 3], np.float32), np.array([1, np.nan, np.nan, 2], np.float32)
    for f in (np.maximum, np.fmax, np.minimum, np.fmin):
        assert np.array_equal(applied(lambda v, w: f(v, w), x, y, tile=4), f(x, y), equal_nan=True)
    assert np.array_equal(applied(lambda v: np.clip(v, 2, 4), x, tile=4), np.clip(x, 2, 4), equal_nan=True)


def test_bits_of_integers():
    def f(v):
        return np.bitwise_and(v, 6) + np.left_shift(v, 2) - np.bitwise_xor(v, 3) + np.invert(v)
    assert applied(f, INTS, out=np.int32).tolist() == [f(int(v)) for v in INTS]


def test_builtins():
    def f(v, w):
        return max(v, w, 1) - min((v, w)) + sum((v, w, 2)) + round(v) + pow(v, 2) + abs(w)
    near(applied(f, X, Y), [f(float(v), float(w)) for v, w in zip(X, Y, strict=True)], 4)


def test_int_and_float():
    """int() gives int64 and float() float64, as NumPy names them; a constant stays one."""
    assert applied(lambda v: int(v), X * 1000, out=np.int64).tolist() == [int(v * 1000) for v in X]
    got = applied(lambda v: float(v) / 3 - float("1.5") * int(2.7), INTS, out=np.float64)
    assert got.tolist() == [int(v) / 3 - 3 for v in INTS]


def test_max_is_that_of_the_language():
    """A NaN loses against a number, in whatever order [D-22]."""
    x = np.array([np.nan, 1, np.nan, 3], np.float32)
    assert applied(lambda v: max(v, 2) - max(2, v), x, tile=4).tolist() == [0] * 4
    assert applied(lambda v: max(v, 2), x, tile=4).tolist() == [2, 2, 2, 3]


def test_functions_of_operator():
    def f(v, w):
        return operator.add(v, w) if operator.lt(v, w) else operator.mul(v, operator.neg(w))
    near(applied(f, X, Y), [f(float(v), float(w)) for v, w in zip(X, Y, strict=True)], 1)


def test_only_in_element_functions():
    def kernel(a):
        ct.store(a, (0,), math.sqrt(ct.load(a, (0,), (16,))))

    refused(kernel, A1, cls=UnsupportedCallError, says="cannot be called from tile code")


def test_what_has_no_meaning_is_refused():
    def kernel(a):
        ct.store(a, (0,), ct.elementwise(lambda v: math.erf(v))(ct.load(a, (0,), (16,))))

    refused(kernel, A1, cls=UnsupportedCallError, at="math.erf(v)")


@pytest.mark.parametrize("call, says, instead", [
    (lambda v: math.log(v, 2), "math.log() takes 1 argument in an element function, got 2", "math.log(x) / math.log"),
    (lambda v: round(v, 1), "round() takes 1 argument in an element function, got 2", "round(x * 10) / 10"),
    (lambda v: math.hypot(v, v, v), "math.hypot() takes 2 arguments", "math.hypot(math.hypot(x, y), z)"),
    (lambda v: np.add(v), "np.add() takes 2 arguments in an element function, got 1", ""),
    (lambda v: np.negative(v, v), "np.negative() takes 1 argument in an element function, got 2", ""),
    (lambda v: np.logical_or(v), "np.logical_or() takes 2 arguments", ""),
    (lambda v: np.where(v), "np.where() takes 3 arguments", "np.where(condition, x, y)"),
    (lambda v: math.cbrt(), "math.cbrt() takes 1 argument", ""),
    (lambda v: math.sqrt(v, v), "math.sqrt() takes 1 argument", ""),
    (lambda v: int(v, v), "int() takes 0 or 1 argument in", ""),
    (lambda v: sum((v, v), v, v), "sum() takes 1 or 2 arguments", ""),
    (lambda v: pow(v), "pow() takes 2 arguments", "")])
def test_numbers_of_arguments(call, says, instead):
    def kernel(a):
        ct.store(a, (0,), ct.elementwise(call)(ct.load(a, (0,), (16,))))

    refused(kernel, A1, says=says, help=instead)


def test_every_function_is_found_by_itself():
    assert all(handler(f) is h for f, h in _handlers().values())
    assert handler([]) is None and handler(np.linalg.norm) is None
