"""Element-wise arithmetic at the default rounding [ARITH], and the fused multiply-add [MACH-7]."""

import math
from fractions import Fraction

import numpy as np
import pytest

from conformance.api import clause, ct, needs, run
from conformance.numbers import (
    INTEGERS, apply, binary, dtype, encode, exact, made, nearest, numbers_of, pairs, same_numbers, sample, specials, ternary,
    unary, values, width,
)
from conformance.typing import folds, refused, strict, typed, varies

inf, nan = math.inf, math.nan
FLOATS = ("float16", "bfloat16", "float32", "float64")
RESTRICTED = ("tfloat32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu", "float4_e2m1fn")


def limits(name):
    w = dtype(name).bitwidth
    return (-(1 << (w - 1)), (1 << (w - 1)) - 1) if name[0] == "i" else (0, (1 << w) - 1)


def wrap(x, name):
    w = dtype(name).bitwidth
    x %= 1 << w
    return x - (1 << w) if name[0] == "i" and x >> (w - 1) else x


def integer_pairs(name):
    low, high = limits(name)
    if high < 256:
        xs = np.arange(low, high + 1)
    else:
        rng = np.random.default_rng(7)
        some = {low, low + 1, low // 2, -1, 0, 1, 2, 3, 7, 10, high // 2, high - 1, high, *(1 << k for k in range(0, 63, 5))}
        some |= {int(v) for v in rng.integers(low, high, 40, np.dtype(name), endpoint=True)} | {-v for v in list(some)}
        xs = np.array(sorted(v for v in some if low <= v <= high), name)
    xs = xs.astype(name)
    return np.repeat(xs, len(xs)), np.tile(xs, len(xs))


def of_integers(fn, name, x, y):
    return numbers_of(name, apply(binary(fn, name, name, name), name, x.view(f"u{x.itemsize}"), y.view(f"u{y.itemsize}")))


def floor_div(a, b):
    return a // b


def ceil_div(a, b):
    return -(-a // b)


# function, form in which users write it, exact result of integers
INTEGER_OPS = [
    pytest.param(ct.add, lambda x, y: x + y, lambda a, b: a + b, id="add", marks=clause("ARITH-1.int", "ARITH-1.operator")),
    pytest.param(ct.sub, lambda x, y: x - y, lambda a, b: a - b, id="sub", marks=clause("ARITH-2.int", "ARITH-2.operator")),
    pytest.param(ct.mul, lambda x, y: x * y, lambda a, b: a * b, id="mul", marks=clause("ARITH-3.int", "ARITH-3.operator")),
    pytest.param(ct.floordiv, lambda x, y: x // y, floor_div, id="floordiv",
                 marks=clause("ARITH-5.signed", "ARITH-5.unsigned", "ARITH-5.wrap", "ARITH-5.zero", "ARITH-5.operator")),
    pytest.param(ct.mod, lambda x, y: x % y, lambda a, b: a - b * (a // b), id="mod",
                 marks=clause("ARITH-7.signed", "ARITH-7.unsigned", "ARITH-7.zero", "ARITH-7.operator")),
    pytest.param(ct.cdiv, lambda x, y: ct.cdiv(x, y), ceil_div, id="cdiv",
                 marks=clause("ARITH-6.signed", "ARITH-6.unsigned", "ARITH-6.zero")),
    pytest.param(ct.minimum, lambda x, y: min(x, y), min, id="minimum", marks=clause("ARITH-9.min.int", "ARITH-9.min.builtin")),
    pytest.param(ct.maximum, lambda x, y: max(x, y), max, id="maximum", marks=clause("ARITH-9.max.int", "ARITH-9.max.builtin")),
    pytest.param(lambda x, y: ct.divmod(x, y)[0], lambda x, y: divmod(x, y)[0], floor_div, id="divmod0",
                 marks=clause("ARITH-8.signed", "ARITH-8.unsigned", "ARITH-8.builtin")),
    pytest.param(lambda x, y: ct.divmod(x, y)[1], lambda x, y: divmod(x, y)[1], lambda a, b: a - b * (a // b), id="divmod1",
                 marks=clause("ARITH-8.signed", "ARITH-8.unsigned", "ARITH-8.builtin")),
]
DIVIDES = {floor_div, ceil_div}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("function, form, oracle", INTEGER_OPS)
def test_integers(function, form, oracle, name, request):
    x, y = integer_pairs(name)
    defined = y != 0 if any(w in request.node.name for w in ("div", "mod")) else np.ones(y.shape, bool)
    want = [wrap(oracle(a, b), name) for a, b in zip(x[defined].tolist(), y[defined].tolist(), strict=True)]
    for fn in (function, form):
        assert of_integers(fn, name, x, y)[defined].tolist() == want  # division by zero may give anything


@needs("measured")
@clause("ARITH-5.zero.measured", "ARITH-6.zero.measured", "ARITH-7.zero.measured")
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_division_by_zero(name):
    low, high = limits(name)
    x = np.array([0, 1, 5, high, low, low + 1], name)
    y = np.zeros(6, name)
    quotient = [-1 if v >= 0 else -2 for v in x.tolist()]
    assert of_integers(ct.floordiv, name, x, y).tolist() == [wrap(q, name) for q in quotient]
    assert of_integers(ct.cdiv, name, x, y).tolist() == [wrap(q + 1, name) for q in quotient]
    assert of_integers(ct.mod, name, x, y).tolist() == [wrap(-1, name)] * 6
    assert of_integers(lambda a, b: ct.divmod(a, b)[0], name, x, y).tolist() == [wrap(q, name) for q in quotient]
    assert of_integers(lambda a, b: ct.divmod(a, b)[1], name, x, y).tolist() == [wrap(-1, name)] * 6


# ------------------------------------------------------------------ floats


def of_floats(fn, name, x, y):
    return values(name, apply(binary(fn, name, name, name), name, x, y))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op, fn", [
    pytest.param("add", lambda x, y: x + y, marks=clause("ARITH-1.float")),
    pytest.param("sub", lambda x, y: x - y, marks=clause("ARITH-2.float")),
    pytest.param("mul", lambda x, y: x * y, marks=clause("ARITH-3.float")),
    pytest.param("truediv", lambda x, y: x / y, marks=clause("ARITH-4.float", "ARITH-4.zero", "ARITH-4.zeros", "ARITH-4.operator")),
])
def test_floats(op, fn, name):
    x, y = pairs(name)
    want = [exact(op, name, a, b) for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)]
    for form in (fn, getattr(ct, op)):
        same_numbers(of_floats(form, name, x, y), np.array(want), f"{op} of {name}")


def floored(x):
    return x if not math.isfinite(x) or x == 0 else float(math.floor(x)) if x >= 1 or x < 0 else 0.0


@clause("ARITH-5.float", "ARITH-5.operator")
@pytest.mark.parametrize("name", FLOATS)
def test_float_floordiv(name):
    x, y = pairs(name)
    q = [exact("truediv", name, a, b) for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)]
    for form in (ct.floordiv, lambda a, b: a // b):
        same_numbers(of_floats(form, name, x, y), np.array(list(map(floored, q))), name)


@clause("ARITH-6.float")
@pytest.mark.parametrize("name", FLOATS)
def test_float_cdiv(name):
    x, y = pairs(name)
    q = [exact("truediv", name, a, b) for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)]
    same_numbers(of_floats(ct.cdiv, name, x, y), np.array([-floored(-v) if v == v else v for v in q]), name)


def exact_mod(name, a, b):
    if a != a or b != b or math.isinf(a) or b == 0:
        return nan
    if math.isinf(b):
        return a if a == 0 or (a < 0) == (b < 0) else b
    q = Fraction(a) / Fraction(b)
    r = Fraction(a) - Fraction(b) * math.trunc(q)
    if r == 0:
        return math.copysign(0.0, a)
    return nearest(name, r if (r < 0) == (b < 0) else r + Fraction(b))


@clause("ARITH-7.float", "ARITH-7.float.zero", "ARITH-7.float.inf", "ARITH-7.float.mod_inf", "ARITH-7.operator")
@pytest.mark.parametrize("name", FLOATS)
def test_float_mod(name):
    x, y = pairs(name, 300)
    want = [exact_mod(name, a, b) for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)]
    for form in (ct.mod, lambda a, b: a % b):
        same_numbers(of_floats(form, name, x, y), np.array(want), name)


def chosen(a, b, smaller, propagate):
    if a != a or b != b:
        return nan if propagate else b if a != a else a
    if a == b == 0:
        negative = [math.copysign(1, v) < 0 for v in (a, b)]
        return -0.0 if (any(negative) if smaller else all(negative)) else 0.0
    return min(a, b) if smaller else max(a, b)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op, forms, smaller, propagate", [
    pytest.param("min", (ct.minimum, lambda x, y: min(x, y)), True, False,
                 marks=clause("ARITH-9.min.float", "ARITH-9.min.nan", "ARITH-9.min.zero", "ARITH-9.min.builtin")),
    pytest.param("max", (ct.maximum, lambda x, y: max(x, y)), False, False,
                 marks=clause("ARITH-9.max.float", "ARITH-9.max.nan", "ARITH-9.max.zero", "ARITH-9.max.builtin")),
    pytest.param("min", (lambda x, y: ct.minimum(x, y, propagate_nan=True),), True, True,
                 marks=clause("ARITH-9.min.propagate", "ARITH-9.min.zero")),
    pytest.param("max", (lambda x, y: ct.maximum(x, y, propagate_nan=True),), False, True,
                 marks=clause("ARITH-9.max.propagate", "ARITH-9.max.zero"))])
def test_minimum_and_maximum(op, forms, smaller, propagate, name):
    x, y = pairs(name)
    want = [chosen(a, b, smaller, propagate) for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)]
    for fn in forms:
        same_numbers(of_floats(fn, name, x, y), np.array(want), f"{op} of {name}")


# ------------------------------------------------------------------ dtypes and shapes

BINARY = {"ARITH-1": (ct.add, "add"), "ARITH-2": (ct.sub, "sub"), "ARITH-3": (ct.mul, "mul"), "ARITH-5": (ct.floordiv, "floordiv"),
          "ARITH-6": (ct.cdiv, "cdiv"), "ARITH-7": (ct.mod, "mod"), "ARITH-9.min": (ct.minimum, "minimum"),
          "ARITH-9.max": (ct.maximum, "maximum")}


@pytest.mark.parametrize("fn", [pytest.param(f, marks=clause(f"{i}.dtype"), id=n) for i, (f, n) in BINARY.items()])
def test_dtype_and_shape(fn):
    for a, b, d in (("int8", "int16", "int16"), ("uint8", "uint64", "uint64"), ("bool_", "int8", "int8"), ("int64", "float16", "float16"),
                    ("float16", "float32", "float32"), ("bfloat16", "float64", "float64"), ("float32", "float32", "float32")):
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
    for a, b, d in (("int8", "int8", "float32"), ("int64", "int64", "float32"), ("bool_", "bool_", "float32"), ("uint8", "float16", "float16"),
                    ("float64", "int8", "float64"), ("bfloat16", "bfloat16", "bfloat16"), ("bool_", "int16", "float32")):
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
    got = apply(binary(lambda a, b: a / b, "int32", "int32", "float32"), "float32", x.view(np.uint32), y.view(np.uint32))
    want = [exact("truediv", "float32", nearest("float32", Fraction(int(a))), nearest("float32", Fraction(int(b))))
            for a, b in zip(x, y, strict=True)]
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


@pytest.mark.parametrize("fn", [pytest.param(f, marks=clause(f"ARITH-15.{n}"), id=n) for f, n in (
    *BINARY.values(), (ct.divmod, "divmod"))])
def test_two_masks(fn):
    refused(fn, "bool_", "bool_")
    refused(lambda x: fn(x, True), "bool_")
    refused(lambda x: fn(ct.bool_(True), x), "bool_")
    refused(lambda: fn(ct.bool_(True), ct.bool_(True)))
    typed(lambda x, y: ct.astype(x, ct.int32) + y, "bool_", "bool_", dtype="int32")


@pytest.mark.parametrize("fn", [pytest.param(f, marks=clause(f"{i}.restricted"), id=n) for i, (f, n) in (
    *BINARY.items(), ("ARITH-4", (ct.truediv, "truediv")), ("ARITH-8", (ct.divmod, "divmod")))])
@pytest.mark.parametrize("name", RESTRICTED)
def test_restricted_floats(fn, name):
    refused(fn, name, name)
    refused(lambda x: fn(x, 1), name)
    refused(lambda x: fn(1.0, x), name)


@pytest.mark.parametrize("fn", [pytest.param(ct.negative, marks=clause("ARITH-12.restricted")),
                                pytest.param(lambda x: +x, marks=clause("ARITH-13.restricted")),
                                pytest.param(ct.abs, marks=clause("ARITH-14.restricted"))])
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
    for fn in (ct.negative, lambda v: -v):
        assert (apply(unary(fn, name, name), name, c) == c ^ sign).all()
    for fn in (ct.abs, lambda v: abs(v)):
        got = values(name, apply(unary(fn, name, name), name, c))
        same_numbers(got, np.array([math.fabs(v) for v in values(name, c)]), name)
    assert (apply(unary(lambda v: +v, name, name), name, c) == c).all()


@clause("ARITH-12.bool", "ARITH-13.bool", "ARITH-14.dtype", "ARITH-13.other")
def test_masks_alone():
    mask = lambda: ct.arange(4, dtype=ct.int32) > 1  # noqa: E731
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


# ------------------------------------------------------------------ fused multiply-add


@clause("MACH-7.once")
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("fn, signs", [(lambda x, y, z: x * y + z, (1, 1)), (lambda x, y, z: x * y - z, (1, -1)),
                                       (lambda x, y, z: z - x * y, (-1, 1)), (lambda x, y, z: z + x * y, (1, 1))])
def test_fused_multiply_add(fn, signs, name):
    n = 400
    rng = np.random.default_rng(11)
    s = encode(name, np.array(specials(name)))
    x = np.concatenate([sample(name, n, 1, near=True), sample(name, n, 2), rng.choice(s, n)])
    y = np.concatenate([sample(name, n, 3, near=True), sample(name, n, 4)[::-1], rng.choice(s, n)])
    product = [exact("mul", name, a, b) for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)]
    cancelling = encode(name, -np.array(product))  # where the rounding of the product shows
    z = np.concatenate([cancelling[:n // 2], sample(name, n - n // 2, 5, near=True), cancelling[n:n + n // 2],
                        sample(name, n - n // 2, 6), rng.choice(s, n)])
    want = [exact("fma", name, signs[0] * a, b, signs[1] * c) for a, b, c in
            zip(*(values(name, v).tolist() for v in (x, y, z)), strict=True)]
    same_numbers(values(name, apply(ternary(fn, name), name, x, y, z)), np.array(want), name)


@clause("MACH-7.once")
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("mode", ["RZ", "RM", "RP"])
def test_fused_multiply_add_with_a_mode(name, mode):
    def fn(x, y, z):
        return ct.add(ct.mul(x, y, rounding_mode=mode), z, rounding_mode=mode)

    n = 200
    x, y = sample(name, n, 1, near=True), sample(name, n, 3, near=True)
    x = np.concatenate([x, sample(name, n, 8)])
    y = np.concatenate([y, sample(name, n, 9)[::-1]])
    a, b = values(name, x).tolist(), values(name, y).tolist()
    product = encode(name, [-exact("mul", name, p, q) for p, q in zip(a, b, strict=True)])
    z = np.where(np.arange(2 * n) % 2, product, sample(name, 2 * n, 7))
    want = [exact("fma", name, p, q, r, mode=mode) for p, q, r in zip(a, b, values(name, z).tolist(), strict=True)]
    same_numbers(values(name, apply(ternary(fn, name), name, x, y, z)), np.array(want), f"{name} {mode}")


@clause("MACH-7.once")
def test_fused_multiply_add_with_flushing():
    def fn(x, y, z):
        return ct.add(ct.mul(x, y, flush_to_zero=True), z, flush_to_zero=True)

    tiny = 2.0**-127
    rows = [(tiny, 2.0, 0.0, 0.0), (2.0**-126, 0.5, 0.0, 0.0), (1.0, 1.0, tiny, 1.0), (2.0**-100, -(2.0**-27), 0.0, -0.0),
            (3.0, 5.0, 7.0, 22.0), (2.0**-126, 1.0, -tiny, 2.0**-126)]
    x, y, z, want = (np.array(c) for c in zip(*rows, strict=True))
    got = apply(ternary(fn, "float32"), "float32", *(encode("float32", v) for v in (x, y, z)))
    same_numbers(values("float32", got), want)


@clause("ARITH-1.dtype")
def test_operators_of_scalars_and_arrays():
    @ct.kernel
    def k(a, out, i, f: float):
        x = ct.load(a, 0, 4)
        ct.store(out, 0, i - x)
        ct.store(out, 1, x * f)

    out = run(k, np.arange(4, dtype=np.float32), np.zeros(8, np.float32), 10, 0.5)
    assert list(out) == [10, 9, 8, 7, 0, 0.5, 1, 1.5]
