"""What functions of math and NumPy give in element functions: dtypes, all bits of integers, all names."""

import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct, refuses, run, same_bits, within_ulp

WIDE = np.array([(1 << 53) + 1, -(1 << 53) - 3, (1 << 62) + 5, -(1 << 62) - 7, 3, -3, 0, 1], np.int64)
OTHER = np.array([(1 << 53) + 3, (1 << 53) + 5, -(1 << 61) - 1, (1 << 60) + 3, 7, 2, 5, -1], np.int64)
REAL = np.array([0.5, -0.25, 0.875, -0.75, 0.3, -0.1, 0.0, -0.0], np.float32)
POSITIVE = np.abs(REAL) * np.float32(0.75) + np.float32(0.125)


def given(f, dtype, *xs, out=None):
    """f of each element. Its results must have a dtype already."""
    @ct.kernel
    def k(a, b, o):
        x, y = ct.load(a, 0, 8), ct.load(b, 0, 8)
        z = ct.elementwise(f)(x, y)
        ct.static_assert(z.dtype == dtype)
        ct.store(o, 0, z.astype(o.dtype))

    return run(k, xs[0], xs[-1], np.zeros(8, out or dtype.name))


OF_TWO = ("add subtract multiply floor_divide remainder mod bitwise_and bitwise_or bitwise_xor maximum minimum "
          "fmax fmin left_shift right_shift bitwise_left_shift bitwise_right_shift gcd power").split()
OF_ONE = "negative positive invert bitwise_not absolute abs square sign".split()
COMPARISONS = "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor".split()


@clause("ELT-15.numpy")
@pytest.mark.parametrize("name", [n for n in OF_TWO if hasattr(np, n)])
def test_integers_of_64_bits(name):
    """Integers stay integers: all bits count."""
    f = getattr(np, name)
    x, y = WIDE, np.abs(OTHER) % 60 if "shift" in name else OTHER
    x, y = (x % 2000, np.abs(y) % 5) if name == "power" else (x, y)
    with np.errstate(all="ignore"):
        same_bits(given(lambda v, w: f(v, w), ct.int64, x, y), f(x, y))
        same_bits(given(lambda v, w: f(v, w), ct.int32, (x % 1000).astype(np.int32), (y % 9 + 1).astype(np.int32)),
                  f((x % 1000).astype(np.int32), (y % 9 + 1).astype(np.int32)))


@clause("ELT-14.math", "ELT-13.extremes")
def test_other_functions_of_integers_of_64_bits():
    same_bits(given(lambda v, w: math.gcd(v, w), ct.int64, WIDE, OTHER), np.gcd(WIDE, OTHER))
    same_bits(given(lambda v, w: max(v, w), ct.int64, WIDE, OTHER), np.maximum(WIDE, OTHER))
    same_bits(given(lambda v, w: min(v, w, 5), ct.int64, WIDE, OTHER), np.minimum(np.minimum(WIDE, OTHER), 5))
    same_bits(given(lambda v, w: min((v, w)), ct.int64, WIDE, OTHER), np.minimum(WIDE, OTHER))
    same_bits(given(lambda v, w: sum((v, w, 1)), ct.int64, WIDE, OTHER), WIDE + OTHER + 1)
    same_bits(given(lambda v, w: abs(v), ct.int64, WIDE), np.abs(WIDE))
    same_bits(given(lambda v, w: pow(w % 9, 3), ct.int64, WIDE, OTHER), (OTHER % 9) ** 3)
    same_bits(given(lambda v, w: int(v), ct.int64, WIDE), WIDE)
    same_bits(given(lambda v, w: np.clip(v, -9, w), ct.int64, WIDE, np.abs(OTHER)), np.clip(WIDE, -9, np.abs(OTHER)))
    same_bits(given(lambda v, w: np.where(v > w, v, w), ct.int64, WIDE, OTHER), np.maximum(WIDE, OTHER))


@clause("ELT-15.numpy")
@pytest.mark.parametrize("name", OF_ONE)
def test_one_integer_of_64_bits(name):
    f = getattr(np, name)
    same_bits(given(lambda v, w: f(v), ct.int64, WIDE), f(WIDE))


@clause("ELT-15.numpy")
@pytest.mark.parametrize("name", COMPARISONS)
def test_truth_values(name):
    f = getattr(np, name)
    for x, y in ((WIDE, OTHER), (WIDE, WIDE), (WIDE % 2, OTHER % 2), (REAL, POSITIVE), (REAL, np.zeros(8, np.float32))):
        same_bits(given(lambda v, w: f(v, w), ct.bool_, x, y, out=np.int8), f(x, y).astype(np.int8))


MATH = ("trunc fmod copysign degrees radians log10 log1p expm1 asin acos atan hypot exp exp2 log log2 sin cos tan sinh "
        "cosh tanh sqrt floor ceil atan2 pow fabs").split()
OF_PAIRS = ("fmod", "copysign", "hypot", "atan2", "pow", "float_power", "power", "arctan2")


def exactly(f, x, y, two):
    """f of floats, in float64."""
    return np.array([f(float(v), float(w)) if two else f(float(v)) for v, w in zip(x, y, strict=True)], float)


@clause("ELT-16.integer", "ELT-14.math")
@pytest.mark.parametrize("name", [n for n in MATH if hasattr(math, n)])
def test_math_takes_integers_as_floats(name):
    """Of 64 bits: float64 in functions of math, and float32 stays float32."""
    f = getattr(math, name)
    x, y = np.array([1, 1, 1, 1, 1, 1, 1, 1], np.int64), np.array([1, 2, 3, 4, 2, 3, 1, 1], np.int32)
    want = exactly(f, x, y, name in OF_PAIRS)
    g = (lambda v, w: f(v, w)) if name in OF_PAIRS else (lambda v, w: f(v))
    within_ulp(given(g, ct.float64, x, y), want, 4)
    within_ulp(given(g, ct.float64, y - y + 1, y), want, 4)
    within_ulp(given(g, ct.float32, np.ones(8, np.float32), y.astype(np.float32)), want, 4)


NAMES = {  # functions of NumPy that are those of math, or others of NumPy, under several names
    "trunc": math.trunc, "fmod": math.fmod, "copysign": math.copysign, "degrees": math.degrees, "rad2deg": math.degrees,
    "radians": math.radians, "deg2rad": math.radians, "log10": math.log10, "log1p": math.log1p, "expm1": math.expm1,
    "arcsin": math.asin, "arccos": math.acos, "arctan": math.atan, "hypot": math.hypot, "arctan2": math.atan2,
    "power": math.pow, "float_power": math.pow, "exp": math.exp, "log": math.log, "log2": math.log2,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh,
    "sqrt": math.sqrt, "floor": math.floor, "ceil": math.ceil, "fabs": math.fabs, "absolute": abs, "divide": None,
    "true_divide": None, "reciprocal": lambda x: 1 / x, "square": lambda x: x * x, "exp2": lambda x: 2**x,
    "asin": math.asin, "acos": math.acos, "atan": math.atan, "atan2": math.atan2, "pow": math.pow, "abs": abs,
}


@clause("ELT-15.numpy")
@pytest.mark.parametrize("name", [n for n in NAMES if hasattr(np, n)])
def test_names_of_numpy(name):
    f, exact = getattr(np, name), NAMES[name] or (lambda x, y: x / y)
    two = name in OF_PAIRS or "div" in name or name == "pow"
    y = POSITIVE[::-1].copy()
    want = exactly(exact, POSITIVE, y, two)
    got = given((lambda v, w: f(v, w)) if two else (lambda v, w: f(v)), ct.float32, POSITIVE, y)
    within_ulp(got, want, 4)


@clause("ELT-15.numpy")
def test_floats_that_are_no_numbers():
    """NaN wins in maximum and minimum, and loses in fmax and fmin."""
    x, y = np.array([np.nan, 1, np.nan, 2] * 2, np.float32), np.array([1, np.nan, np.nan, 3] * 2, np.float32)
    for f in (np.maximum, np.minimum, np.fmax, np.fmin):
        same_bits(given(lambda v, w: f(v, w), ct.float32, x, y), f(x, y))
    for f in (np.isnan, np.isinf, np.isfinite):
        z = np.array([np.nan, np.inf, -np.inf, 0, 1, -1, 3e38, -0.0], np.float32)
        same_bits(given(lambda v, w: f(v), ct.bool_, z, out=np.int8), f(z).astype(np.int8))


@clause("ELT-4.dtype", "ELT-4.conditional", "ELT-4.literal", "ELT-7.dtype")
def test_dtypes_of_values_that_meet():
    """In either order: after a branch, a return, a conditional expression, in tuples, and in loops."""
    def branch(v, w):
        if v > 1:
            x = v
        else:
            x = w
        return x

    def returned(v, w):
        if v > 1:
            return v
        return w

    def pair(v, w):
        if v > 1:
            t = (v, (w, 1))
        else:
            t = (w, (v, 2.5))
        return t[0] + t[1][0] * t[1][1]

    def loop(v, w):
        x = v
        for _ in range(2):
            x = x + w
        return x

    i, j, f, d = np.arange(8, dtype=np.int16), np.arange(8, dtype=np.int32) * 2, np.arange(8, dtype=np.float32) / 2, \
        np.arange(8) / 4
    for g in (branch, returned, lambda v, w: v if v > 1 else w):
        for x, y, t in ((i, j, ct.int32), (j, i, ct.int32), (f, d, ct.float64), (d, f, ct.float64), (j, f, ct.float32),
                        (f, i, ct.float32), (i, i, ct.int16)):
            same_bits(given(g, t, x, y), np.where(x > 1, x, y).astype(t.name))
    for x, y, t in ((i, f, ct.float32), (f, d, ct.float64), (d, j, ct.float64)):
        same_bits(given(loop, t, x, y), (x + y * 2.0).astype(t.name))
    same_bits(given(lambda v, w: v if v > 1 else 5, ct.int16, i), np.where(i > 1, i, 5).astype(np.int16))
    same_bits(given(lambda v, w: 5.0 if v > 1 else v, ct.float32, f), np.where(f > 1, 5, f).astype(np.float32))
    same_bits(given(pair, ct.float32, i, j), np.where(i > 1, i + j, j + i * 2.5).astype(np.float32))


@clause("ELT-3.undefined", "ELT-1.number", "ELT-4.dtype", "ELT-1.array")
def test_values_that_do_not_meet():
    def kernel(f):
        @ct.kernel
        def k(a, o):
            ct.store(o, 0, ct.elementwise(lambda v: f(v, a))(ct.load(a, 0, 8)).astype(o.dtype))

        return k

    def one(v, a):
        if v > 1:
            x = a
        else:
            x = 1
        return x + v

    def returns(v, a):
        if v > 1:
            return v
        return a

    def text(v, a):
        x = "a" if v > 1 else v
        return x + v

    def length(v, a):
        t = (v, 1) if v > 1 else (v,)
        return t[0]

    def nothing(v, a):
        if v > 1:
            return v

    for f in (one, returns, text, length, nothing, lambda v, a: (a if v > 1 else v) + 1,
              lambda v, a: (v if v > 1 else a) + 1):
        refuses("TileTypeError", kernel(f), np.zeros(8, np.float32), np.zeros(8, np.float32))


@clause("ELT-14.math", "ELT-15.numpy", "ERR-4.binding")
def test_wrong_numbers_of_arguments():
    def kernel(f):
        @ct.kernel
        def k(a, o):
            ct.store(o, 0, ct.elementwise(f)(ct.load(a, 0, 8)).astype(o.dtype))

        return k

    for f in (math.sqrt, np.sqrt, math.fmod, np.add, np.maximum, math.gcd, np.where, np.negative, np.logical_and,
              math.pow, np.less, np.clip, np.power, math.atan2, np.sign, np.logical_not):
        for g in (lambda v: f(), lambda v: f(v, v, v, v)):
            refuses("TileTypeError", kernel(g), np.ones(8, np.float32), np.ones(8, np.float32))
    for g in (lambda v: max(v) + max(), lambda v: max((v,)) + max(()), lambda v: sum(v, v, v), lambda v: int(v, v),
              lambda v: round()):
        refuses(("TileTypeError", "UnsupportedCallError"), kernel(g), np.ones(8, np.float32), np.ones(8, np.float32))
