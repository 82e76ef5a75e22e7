"""The dtype in which operands meet [PROMO], and which values convert implicitly [IMPL]."""

import operator
from fractions import Fraction

import numpy as np
import pytest

from conformance.api import accepts, clause, ct, refuses, run
from conformance.probing import (
    ARITHMETIC, DTYPES, FLOATS, INTEGERS, NAMES, NUMPY, RESTRICTED, binary, look, on_target, refused, unaries, unary,
)

TABLE = """
     b1   i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64  tf32 e4m3 e5m2 e8m0 e5m3 e2m1
b1   b1   i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64  -    -    -    -    -    -
i8   i8   i8   i16  i32  i64  -    -    -    -    f16  bf16 f32  f64  -    -    -    -    -    -
i16  i16  i16  i16  i32  i64  -    -    -    -    f16  bf16 f32  f64  -    -    -    -    -    -
i32  i32  i32  i32  i32  i64  -    -    -    -    f16  bf16 f32  f64  -    -    -    -    -    -
i64  i64  i64  i64  i64  i64  -    -    -    -    f16  bf16 f32  f64  -    -    -    -    -    -
u8   u8   -    -    -    -    u8   u16  u32  u64  f16  bf16 f32  f64  -    -    -    -    -    -
u16  u16  -    -    -    -    u16  u16  u32  u64  f16  bf16 f32  f64  -    -    -    -    -    -
u32  u32  -    -    -    -    u32  u32  u32  u64  f16  bf16 f32  f64  -    -    -    -    -    -
u64  u64  -    -    -    -    u64  u64  u64  u64  f16  bf16 f32  f64  -    -    -    -    -    -
f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  -    f32  f64  -    -    -    -    -    -
bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 -    bf16 f32  f64  -    -    -    -    -    -
f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  -    -    -    -    -    -
f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  -    -    -    -    -    -
tf32 -    -    -    -    -    -    -    -    -    -    -    -    -    tf32 -    -    -    -    -
e4m3 -    -    -    -    -    -    -    -    -    -    -    -    -    -    e4m3 -    -    -    -
e5m2 -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    e5m2 -    -    -
e8m0 -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    e8m0 -    -
e5m3 -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    e5m3 -
e2m1 -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    e2m1
"""
_head, *_rows = (line.split() for line in TABLE.strip().splitlines())
PROMOTE = {(row[0], column): cell if cell != "-" else None
           for row in _rows for column, cell in zip(_head, row[1:], strict=True)}

def choose(x, y):
    return ct.where(ct.arange(2, dtype=ct.int32) == 1, x, y)


def limits(short):
    """Smallest and largest value of an integer dtype."""
    width = int(short[1:])
    return (-(1 << width - 1), (1 << width - 1) - 1) if short[0] == "i" else (0, (1 << width) - 1)


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
            for f in (operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor, ct.minimum, choose)))
        unaries(a, a, *(
            lambda x, f=f: f(n, x)
            for f in (operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor, ct.maximum, choose)))
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


# ------------------------------------------------------------------ implicit conversion


def zeros(short, n=1):
    return np.zeros(n, NUMPY[short])


@pytest.mark.parametrize("target", [pytest.param(t, marks=clause(f"IMPL-1.{t}")) for t in NAMES if t in NUMPY])
def test_implicit_conversion(target):
    out = zeros(target, 2)
    for source in NAMES:
        dtype = DTYPES[source]

        @ct.kernel
        def k(out):
            ct.store(out, 0, ct.ones((2,), dtype))

        if PROMOTE[source, target] == target:
            with on_target(source, target):
                accepts(k, out)
        else:
            refuses("TileTypeError", k, out)


@pytest.mark.parametrize("target", [pytest.param(t, marks=clause(f"IMPL-1.{t}")) for t in ("tf32", "e5m3")])
def test_implicit_conversion_to_dtypes_without_arrays(target):
    to = DTYPES[target]
    for source in NAMES:
        dtype = DTYPES[source]

        @ct.kernel
        def k():
            x = ct.ones((2,), to)
            ct.reduce(x, 0, lambda a, b: ct.astype(a, dtype), 1)

        @ct.kernel
        def same():
            x = ct.ones((2,), to)
            ct.reduce(x, 0, lambda a, b: a, 1)

        if source == target:
            with on_target(target):
                accepts(same)
        elif source in ("f32", "f64", "f16", "bf16"):
            refuses("TileTypeError", k)
        else:
            @ct.kernel
            def constant_result():
                x = ct.ones((2,), to)
                y = ct.full((), 1, dtype)
                ct.reduce(x, 0, lambda a, b: y, 1)

            refuses("TileTypeError", constant_result)


@clause("IMPL-1.strict")
def test_strict_constants_convert_as_tiles_do():
    for target in ("b1", "i8", "u32", "f16", "f64", "e4m3"):
        for source in ARITHMETIC:
            dtype = DTYPES[source]

            @ct.kernel
            def k(out):
                ct.store(out, 0, dtype(1))

            if PROMOTE[source, target] == target:
                accepts(k, zeros(target))
            else:
                refuses("TileTypeError", k, zeros(target))


PLACES = {}


def place(name):
    def add(f):
        PLACES[name] = f
        return f
    return add


@place("scatter")
def _(dtype):
    @ct.kernel
    def k(out):
        ct.scatter(out, ct.arange(2, dtype=ct.int32), ct.ones((2,), dtype))
    return k


@place("atomic")
def _(dtype):
    @ct.kernel
    def k(out):
        ct.atomic_add(out, ct.arange(2, dtype=ct.int32), ct.ones((2,), dtype))
    return k


@place("padding")
def _(dtype):
    @ct.kernel
    def k(out):
        ct.gather(out, ct.arange(2, dtype=ct.int32), padding_value=ct.ones((2,), dtype))
    return k


@place("reduce")
def _(dtype):
    @ct.kernel
    def k(out):
        ct.reduce(ct.load(out, 0, 2), 0, lambda a, b: ct.ones((), dtype), 0)
    return k


@place("scan")
def _(dtype):
    @ct.kernel
    def k(out):
        ct.scan(ct.load(out, 0, 2), 0, lambda a, b: ct.ones((), dtype), 0)
    return k


@place("view")
def _(dtype):
    @ct.kernel
    def k(out):
        out.tiled_view(2).store(0, ct.ones((2,), dtype))
    return k


@place("raw")
def _(dtype):
    @ct.kernel
    def k(out):
        out.get_raw_memory().store_offset(ct.arange(2, dtype=ct.int32), ct.ones((2,), dtype))
    return k


@pytest.mark.parametrize("make", [pytest.param(f, id=n, marks=clause(f"IMPL-1.{n}")) for n, f in PLACES.items()])
def test_implicit_conversion_everywhere(make):
    for target in ("i32", "u32", "f32", "f64"):
        for source in ARITHMETIC:
            k = make(DTYPES[source])
            if PROMOTE[source, target] == target:
                accepts(k, zeros(target, 2))
            else:
                refuses("TileTypeError", k, zeros(target, 2))


def stores(value, target, error=None):
    @ct.kernel
    def k(out):
        ct.store(out, 0, value)

    if error:
        refuses(error, k, zeros(target))
        return None
    return run(k, zeros(target))[0]


@clause("IMPL-2.bool", "IMPL-2.bool.int", "IMPL-2.bool.float")
def test_loose_constants_to_bool():
    assert [bool(stores(v, "b1")) for v in (0, 1, False, True)] == [False, True, False, True]
    for v in (2, -1, 255, 0.0, 1.0, float("nan")):
        stores(v, "b1", "TileTypeError")


@clause("IMPL-2.int", "IMPL-2.int.range", "IMPL-2.int.bool", "IMPL-2.int.float")
@pytest.mark.parametrize("target", INTEGERS)
def test_loose_constants_to_integers(target):
    low, high = limits(target)
    assert [int(stores(v, target)) for v in (low, high, 0, True)] == [low, high, 0, 1]
    for v in (low - 1, high + 1):
        if -(1 << 63) <= v < 1 << 64:
            stores(v, target, "TileValueError")
    for v in (1.0, 0.5, float("inf")):
        stores(v, target, "TileTypeError")


@clause("IMPL-2.float")
@pytest.mark.parametrize("target, big", [
    ("f16", np.inf), ("bf16", 2.0**40), ("f32", 2.0**40), ("f64", 2.0**40), ("e4m3", np.nan), ("e5m2", np.inf),
    ("e8m0", 2.0**40), ("e2m1", 6.0)])
def test_loose_constants_to_floats(target, big):
    with on_target(target):
        got = [float(stores(v, target)) for v in (True, 2, 0.5, 1 << 40)]
    assert np.array_equal(got, [1, 2, 0.5, big], equal_nan=True)


@clause("IMPL-3.int")
def test_integers_are_rounded_to_nearest():
    numbers = [0, 1, -1, 2049, 2051, -2049, -2051, 4097, 4098, 4102, 65519, 65520, 16777217, 16777219]

    @ct.kernel
    def k(x, half, single):
        t = ct.load(x, 0, 16)
        ct.store(half, 0, t)
        ct.store(single, 0, t)

    x = np.array([*numbers, 0, 0], np.int32)
    half, single = np.zeros(16, np.float16), np.zeros(16, np.float32)
    run(k, x, half, single)
    assert half.tolist() == [nearest(n, 11, 65504) for n in x.tolist()]
    assert single.tolist() == [nearest(n, 24, 2**127) for n in x.tolist()]


def nearest(n, bits, largest):
    """An integer rounded to `bits` significant bits, ties to even."""
    drop = max(abs(n).bit_length() - bits, 0)
    k = round(Fraction(n, 1 << drop))  # Python rounds ties to even
    return float(k << drop) if abs(k << drop) <= largest else float("inf") * (1 if n > 0 else -1)


@clause("IMPL-3.float")
def test_floats_keep_their_value():
    @ct.kernel
    def k(x, single, double):
        t = ct.load(x, 0, 8)
        ct.store(single, 0, t)
        ct.store(double, 0, t)

    values = [0.0, -0.0, 1.5, -65504.0, 6e-8, 0.333251953125, float("inf"), float("-inf")]
    x, single, double = np.array(values, np.float16), np.zeros(8, np.float32), np.zeros(8)
    run(k, x, single, double)
    assert [repr(float(v)) for v in single] == [repr(float(v)) for v in double] == [repr(float(v)) for v in x]


@clause("IMPL-3.bool")
@pytest.mark.parametrize("target", [*INTEGERS, *FLOATS])
def test_bools_become_numbers(target):
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.load(x, 0, 2))

    assert run(k, np.array([False, True]), zeros(target, 2)).tolist() == [0, 1]

