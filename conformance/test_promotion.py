"""The dtype in which operands meet [PROMO], and which values convert implicitly [IMPL]."""

import operator

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, refuses, run
from conformance.harness.dtype_names import ARITHMETIC, DTYPES, FLOATS, INTEGERS, NUMPY, PROMOTE, RESTRICTED, limits
from conformance.harness.type_probes import binary, look, refused, unaries, unary


def choose(x, y):
    return ct.where(ct.arange(2, dtype=ct.int32) == 1, x, y)


# ------------------------------------------------------------------ two dtypes


@pytest.mark.parametrize("a, b", [pytest.param(a, b, marks=clause(f"PROMO-5.{a}.{b}")) for a, b in PROMOTE])
def test_two_tiles(a, b):
    want = PROMOTE[a, b]
    binary(choose, a, b, want)
    if a in ARITHMETIC and b in ARITHMETIC and (a, b) != ("b1", "b1"):
        binary(operator.add, a, b, want)
    else:
        binary(operator.add, a, b, None)


@clause("PROMO-5.strict")
@pytest.mark.parametrize("a", ARITHMETIC)
def test_strict_constants(a):
    left = DTYPES[a]
    for b in ARITHMETIC:
        right, want = DTYPES[b], PROMOTE[a, b] and DTYPES[PROMOTE[a, b]]

        @ct.kernel
        def mixed():
            d = (left(1) == ct.ones((2,), right)).dtype
            ct.static_assert(d == ct.bool_)
            e = choose(ct.ones((2,), left), right(1)).dtype
            ct.static_assert(e == want)

        if want is None:
            refused("TileTypeError", lambda: left(1) < right(1))
            refused("TileTypeError", lambda: left(1) * right(1))
            refuses("TileTypeError", mixed)
            continue
        accepts(mixed)
        if (a, b) != ("b1", "b1"):
            [(value, dtype)] = look(lambda: left(1) * right(1))
            assert (value, dtype) == (1, want)


@clause("PROMO-6.float", "PROMO-6.int", "PROMO-6.bool", "PROMO-7.truediv")
@pytest.mark.parametrize("a", ARITHMETIC)
def test_true_division(a):
    for b in ARITHMETIC:
        common = PROMOTE[a, b]
        binary(operator.truediv, a, b, common if common in FLOATS else common and "f32")


@clause("PROMO-6.literal")
@pytest.mark.parametrize("a", INTEGERS)
def test_true_division_by_a_literal(a):
    unary(lambda x: x / 2, a, "f32")
    unary(lambda x: 2 / x, a, "f32")
    unary(lambda x: x / 2.5, a, "f32")


@pytest.mark.parametrize("name, f", [pytest.param(n, f, marks=clause(f"PROMO-7.{n}")) for n, f in {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "divmod": lambda x, y: divmod(x, y)[0], "min": ct.minimum, "max": ct.maximum}.items()])
def test_two_bools_have_no_arithmetic(name, f):
    binary(f, "b1", "b1", None)
    binary(f, "b1", "i32", "i32")


@clause("PROMO-7.loose")
def test_bool_tile_with_a_loose_bool():
    for f in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, ct.minimum, ct.maximum):
        unary(lambda x, f=f: f(x, True), "b1", None)
        unary(lambda x, f=f: f(True, x), "b1", None)


@clause("PROMO-7.bitwise")
def test_bitwise_operations_of_bools():
    for f in (operator.and_, operator.or_, operator.xor):
        binary(f, "b1", "b1", "b1")


@clause("PROMO-7.compare")
def test_comparisons_of_bools():
    for f in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        binary(f, "b1", "b1", "b1")


# ------------------------------------------------------------------ a dtype and a loose constant


@clause("PROMO-1.bool.int", "PROMO-4.bool.int32", "PROMO-4.bool.int64", "PROMO-4.bool.uint64")
def test_bool_with_loose_integers():
    for n, want in ((5, "i32"), (-(1 << 31), "i32"), ((1 << 31) - 1, "i32"), (1 << 31, "i64"), (-(1 << 31) - 1, "i64"),
                    ((1 << 63) - 1, "i64"), (1 << 63, "u64"), ((1 << 64) - 1, "u64")):
        unary(lambda x, n=n: x + n, "b1", want)
        unary(lambda x, n=n: n * x, "b1", want)
        unary(lambda x, n=n: choose(x, n), "b1", want)


@clause("PROMO-1.bool.float", "PROMO-4.bool.float32")
def test_bool_with_a_loose_float():
    unary(lambda x: x + 0.5, "b1", "f32")
    unary(lambda x: choose(0.5, x), "b1", "f32")


@clause("PROMO-1.int.float", "PROMO-4.int.float32")
@pytest.mark.parametrize("a", INTEGERS)
def test_integers_with_a_loose_float(a):
    unary(lambda x: x + 0.5, a, "f32")
    unary(lambda x: 0.5 * x, a, "f32")
    unary(lambda x: choose(x, 1.0), a, "f32")


@clause("PROMO-4.int.bool")
@pytest.mark.parametrize("a", INTEGERS)
def test_integers_with_a_loose_bool(a):
    unary(lambda x: x + True, a, a)
    unary(lambda x: choose(False, x), a, a)
    dtype = DTYPES[a]

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.full((4,), 5, dtype) + True)

    assert run(k, np.zeros(4, NUMPY[a])).tolist() == [6] * 4


@clause("PROMO-4.float.int", "PROMO-4.float.bool", "PROMO-3.float", "PROMO-3.left")
@pytest.mark.parametrize("a", FLOATS)
def test_floats_with_loose_constants(a):
    for n in (1, 1 << 40, (1 << 64) - 1, -(1 << 63), True, 0.5, 1e300):
        unaries(a, a, lambda x: x + n, lambda x: n - x, lambda x: choose(x, n))


@clause("PROMO-3.inf")
def test_float_constant_beyond_the_range():
    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.full((2,), 1.0, ct.float16) + 1e10)

    assert run(k, np.zeros(2, np.float16)).tolist() == [np.inf] * 2


@clause("PROMO-3.bool")
def test_bool_with_a_loose_bool():
    unary(lambda x: x & True, "b1", "b1")
    unary(lambda x: choose(x, False), "b1", "b1")
    unary(lambda x: x == True, "b1", "b1")  # noqa: E712


@clause("PROMO-1.restricted", "PROMO-4.restricted")
@pytest.mark.parametrize("a", RESTRICTED)
def test_restricted_floats_with_loose_constants(a):
    unary(lambda x: choose(x, 1), a, a)
    unary(lambda x: choose(x, 1.5), a, a)
    unary(lambda x: choose(True, x), a, a)


@clause("PROMO-4.strict")
def test_strict_constants_are_not_loose():
    unary(lambda x: x + ct.int32(1), "i8", "i32")
    unary(lambda x: x + ct.float64(1), "f16", "f64")
    unary(lambda x: x + ct.int64(1), "u8", None)
    unary(lambda x: x + ct.float16(1), "bf16", None)


@clause("PROMO-3.int", "PROMO-3.left", "PROMO-3.edge", "PROMO-8.literal", "PROMO-9.literal")
@pytest.mark.parametrize("a", INTEGERS)
def test_integers_with_loose_integers_in_range(a):
    low, high = limits(a)
    for n in (low, high):
        unaries(a, a, *(
            lambda x, f=f: f(x, n)
            for f in (operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor, ct.minimum,
                      choose)))
        unaries(a, a, *(
            lambda x, f=f: f(n, x)
            for f in (operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor, ct.maximum,
                      choose)))
    unaries(a, a, lambda x: x << 1, lambda x: x >> 1)
    unaries(a, a, lambda x: 1 << x, lambda x: 1 >> x)
    unaries(a, a, lambda x: x // high, lambda x: x % high)


BINARY = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv,
          "mod": operator.mod, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
          "lshift": operator.lshift, "rshift": operator.rshift, "min": min, "max": max, "where": choose}


@pytest.mark.parametrize("f", [pytest.param(f, id=n, marks=clause(f"PROMO-3.{n}")) for n, f in BINARY.items()])
def test_loose_integers_out_of_range(f):
    for a in INTEGERS:
        low, high = limits(a)
        for n in (low - 1, high + 1):
            if -(1 << 63) <= n < 1 << 64:
                unary(lambda x, n=n: f(x, n), a, None, error="TileValueError")
                unary(lambda x, n=n: f(n, x), a, None, error="TileValueError")


@clause("PROMO-3.compare")
@pytest.mark.parametrize("f", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge])
def test_comparison_with_loose_integers_out_of_range(f):
    for a in ("i8", "u16", "i32"):
        low, high = limits(a)
        unary(lambda x: f(x, high), a, "b1")
        unary(lambda x: f(low, x), a, "b1")
        for n in (low - 1, high + 1):
            unary(lambda x, n=n: f(x, n), a, None, error="TileValueError")
            unary(lambda x, n=n: f(n, x), a, None, error="TileValueError")


@clause("PROMO-3.truediv")
def test_true_division_checks_no_range():
    for a in INTEGERS:
        unary(lambda x: x / ((1 << 63) + 1), a, "f32")
        unary(lambda x: x / -1, a, "f32")

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.full((2,), 100, ct.int8) / 1000)

    assert run(k, np.zeros(2, np.float32)).tolist() == [np.float32(0.1)] * 2


@clause("PROMO-2")
def test_two_loose_constants():
    got = look(lambda: 1 + 2.5, lambda: 300 * 300, lambda: True + 1, lambda: 2147483647 + 1, lambda: 7 / 2)
    assert [(repr(v), d.name) for v, d in got] == [
        ("3.5", "float32"), ("90000", "int32"), ("2", "int32"), ("2147483648", "int64"), ("3.5", "float32")]


# ------------------------------------------------------------------ bitwise operations and shifts


@clause("PROMO-8.same", "PROMO-8.different", "PROMO-8.and", "PROMO-8.or", "PROMO-8.xor")
@pytest.mark.parametrize("f", [operator.and_, operator.or_, operator.xor])
def test_bitwise_operations_need_one_dtype(f):
    for a in ("b1", *INTEGERS):
        for b in ("b1", *INTEGERS):
            binary(f, a, b, a if a == b else None)


@clause("PROMO-8.bool.int", "PROMO-8.int.bool", "PROMO-8.float", "PROMO-8.and.literal", "PROMO-8.or.literal",
        "PROMO-8.xor.literal")
@pytest.mark.parametrize("f", [operator.and_, operator.or_, operator.xor])
def test_bitwise_operations_with_literals(f):
    unary(lambda x: f(x, 1), "b1", "i32")
    unary(lambda x: f(1, x), "b1", "i32")
    for a in INTEGERS:
        unary(lambda x: f(x, True), a, a)
        unary(lambda x: f(False, x), a, a)
        unary(lambda x: f(x, 1.0), a, None)
    for a in FLOATS:
        binary(f, a, a, None)
        binary(f, a, "i32", None)
        unary(lambda x: f(x, 1), a, None)


@clause("PROMO-9.wide", "PROMO-9.mixed", "PROMO-9.left", "PROMO-9.right")
@pytest.mark.parametrize("f", [operator.lshift, operator.rshift])
def test_shifts_promote(f):
    for a in INTEGERS:
        for b in INTEGERS:
            binary(f, a, b, PROMOTE[a, b])


@clause("PROMO-9.bool", "PROMO-9.float")
@pytest.mark.parametrize("f", [operator.lshift, operator.rshift])
def test_shifts_of_integers_only(f):
    for other in ("b1", *FLOATS):
        binary(f, "i32", other, None)
        binary(f, other, "i32", None)
        binary(f, other, other, None)
    unary(lambda x: f(x, True), "i32", None)
    unary(lambda x: f(x, 1.0), "i32", None)
    unary(lambda x: f(1, x), "b1", None)
