# ruff: noqa: B007, B020, F821 -- tile code under test, not code to tidy
"""static_eval, static_assert, static_iter, static_exception, ensure_constant."""

import dataclasses
import enum
import functools
import math
import operator

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, needs, refuses, run
from conformance.harness.tile_code import body, rejects, result, takes
from conformance.harness.type_probes import constant_is, static

TABLE = {"a": [1, 2], "b": [3]}
static_eval, static_assert, static_iter = ct.static_eval, ct.static_assert, ct.static_iter


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: object = None


def helper(n):
    values = []
    for i in range(n):
        try:
            values.append(1 // i)
        except ZeroDivisionError:
            values.append(-1)
    return tuple(values)


def fails_always(*_):
    raise KeyError("missing")


# ------------------------------------------------------------------ static_eval


@clause("SEVAL-1.name")
def test_names():
    def f():
        a = static_eval(1 + 1)
        b = ct.static_eval(2 + 2)
        static_assert(a == 2)
        for i in static_iter([5]):
            c = i
        return a, b, c

    assert static(f) == (2, 4, 5)


@pytest.mark.parametrize("error, lines", [
    pytest.param(("TileSyntaxError", "TileTypeError", "UnsupportedCallError"), "f = ct.static_eval\nf(1)",
                 marks=clause("SEVAL-1.alias")),
    pytest.param("TileSyntaxError", "ct.static_eval(expr=1)", marks=clause("SEVAL-1.keyword")),
    pytest.param("TileSyntaxError", "ct.static_assert(True, msg='a')", marks=clause("SEVAL-1.keyword")),
    pytest.param("TileSyntaxError", "for i in ct.static_iter(iterable=(1,)): pass", marks=clause("SEVAL-1.keyword")),
    pytest.param("TileSyntaxError", "ct.static_eval(*(1,))", marks=clause("SEVAL-1.star")),
    pytest.param("TileSyntaxError", "ct.static_eval()", marks=clause("SEVAL-1.count")),
    pytest.param("TileSyntaxError", "ct.static_eval(1, 2)", marks=clause("SEVAL-1.count")),
    pytest.param("TileSyntaxError", "ct.static_assert()", marks=clause("SEVAL-1.count")),
    pytest.param("TileSyntaxError", "ct.static_assert(True, 'a', 'b')", marks=clause("SEVAL-1.count")),
    *[pytest.param("TileSyntaxError", lines, marks=clause("SEVAL-1.count")) for lines in (
        "raise ct.static_exception()", "raise ct.static_exception(ValueError(), 1)", "for i in ct.static_iter(): pass",
        "for i in ct.static_iter((1,), 2): pass", "x = tuple(i for i in ct.static_iter((1,), 2))",
        "x = tuple(i for i in ct.static_iter())", "ct.static_eval(1, 2, 3)")],
    pytest.param("TileSyntaxError", "x = ct.static_iter((1, 2))", marks=clause("SEVAL-1.iter")),
    pytest.param("TileSyntaxError", "for i in (ct.static_iter((1, 2)), 1): pass", marks=clause("SEVAL-1.iter")),
    pytest.param("TileSyntaxError", "x = ct.static_exception(ValueError('a'))", marks=clause("SEVAL-1.exception")),
    pytest.param("TileStaticEvalError", "ct.static_eval(ct.static_eval(1))", marks=clause("SEVAL-1.nested")),
    pytest.param("TileStaticEvalError", "ct.static_assert(ct.static_eval(True))", marks=clause("SEVAL-1.nested")),
    pytest.param("TileStaticEvalError", "for i in ct.static_iter(ct.static_eval((1,))): pass",
                 marks=clause("SEVAL-1.nested")),
    pytest.param("TileSyntaxError", "y = 1\nct.static_eval((y := 2))", marks=clause("SEVAL-4.walrus"))])
def test_forms_that_are_refused(error, lines):
    rejects(error, body(lines), 1)


@pytest.mark.parametrize("f, want", [
    pytest.param(lambda: ct.static_eval(sum([i * i for i in range(4)])), 14, marks=clause("SEVAL-2.python")),
    pytest.param(lambda: ct.static_eval(tuple(sorted({"b": 1, "a": 2}))), ("a", "b"), marks=clause("SEVAL-2.python")),
    pytest.param(lambda: ct.static_eval((lambda a, *b: (a, b))(*[1, 2, 3])), (1, (2, 3)),
                 marks=clause("SEVAL-2.python")),
    pytest.param(lambda: ct.static_eval(math.gcd(12, 18)), 6, marks=clause("SEVAL-2.python")),
    pytest.param(lambda: ct.static_eval(len(TABLE["a"]) + len(TABLE)), 4, marks=clause("SEVAL-2.global")),
    pytest.param(lambda: ct.static_eval(5 and 3), 3, marks=clause("SEVAL-2.python")),
    pytest.param(lambda: ct.static_eval(f"{3!r:>4}"), "   3", marks=clause("SEVAL-2.python")),
    pytest.param(lambda: ct.static_eval(helper(3)), (-1, 1, 0), marks=clause("SEVAL-9.function")),
    pytest.param(lambda: ct.static_eval(None), None, marks=clause("SEVAL-4.value")),
    pytest.param(lambda: ct.static_eval(Color.RED), Color.RED, marks=clause("SEVAL-4.value")),
    pytest.param(lambda: ct.static_eval(ct.float16), ct.float16, marks=clause("SEVAL-4.value")),
    pytest.param(lambda: ct.static_eval((1, ("a", 2.5))), (1, ("a", 2.5)), marks=clause("SEVAL-4.value"))])
def test_values_of_static_eval(f, want):
    got = static(f)
    assert got == want and type(got) is type(want)


@pytest.mark.parametrize("make, check", [
    pytest.param(lambda: 7, lambda v: v == 7 and type(v) is int, marks=clause("SEVAL-2.int")),
    pytest.param(lambda: 1 << 40, lambda v: v == 1 << 40 and type(v) is int, marks=clause("SEVAL-2.int")),
    pytest.param(lambda: 2.5, lambda v: v == 2.5 and type(v) is float, marks=clause("SEVAL-2.float")),
    pytest.param(lambda: True, lambda v: v is True, marks=clause("SEVAL-2.bool")),
    pytest.param(lambda: "ab", lambda v: v == "ab" and type(v) is str, marks=clause("SEVAL-2.str")),
    pytest.param(lambda: None, lambda v: v is None, marks=clause("SEVAL-2.none")),
    pytest.param(lambda: (1, ("a",)), lambda v: v == (1, ("a",)) and type(v) is tuple, marks=clause("SEVAL-2.tuple")),
    pytest.param(lambda: Color.RED, lambda v: v is Color.RED, marks=clause("SEVAL-2.enum")),
    pytest.param(lambda: ct.int8, lambda v: v == ct.int8, marks=clause("SEVAL-2.dtype")),
    pytest.param(lambda: helper, lambda v: v is helper, marks=clause("SEVAL-2.function")),
    pytest.param(lambda: Point(3, "a"), lambda v: v == Point(3, "a") and type(v) is Point,
                 marks=clause("SEVAL-2.dataclass")),
    pytest.param(lambda: ct.int8(5), lambda v: v == 5 and type(v) is int, marks=clause("SEVAL-2.strict")),
    pytest.param(lambda: ct.zeros((2, 4), ct.int8), lambda v: isinstance(v, ct.Tile) and v.dtype == ct.int8
                 and v.shape == (2, 4) and v.ndim == 2, marks=clause("SEVAL-2.tile")),
    pytest.param(lambda: ct.bid(0), lambda v: isinstance(v, ct.Tile) and v.dtype == ct.int32 and v.shape == ()
                 and v.ndim == 0, marks=clause("SEVAL-2.tile"))])
@clause("SEVAL-2.local")
def test_what_static_eval_sees(make, check):
    seen = []

    @ct.kernel
    def k():
        v = make()
        ct.static_eval(seen.append(check(v)))

    accepts(k)
    assert seen and all(seen)


OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "/": operator.truediv, "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}


@clause("SEVAL-3.operator")
@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_on_run_time_values(symbol):
    """Also with numbers of Python and of NumPy on either side."""
    f, seven, two = OPERATORS[symbol], np.int32(7), 2

    @ct.kernel
    def k(a, o):
        x, y = ct.load(a, 0, 4), ct.load(a, 1, 4)
        for i, r in ct.static_iter(enumerate((f(x, y), f(seven, y), f(x, two), f(two, y), f(x, seven)))):
            ct.store(o, i, ct.astype(r, o.dtype))

    a = np.array([5, -3, 7, 2, 1, 2, 7, 3], np.int32)
    x, y = a[:4], a[4:]
    if symbol == "**":
        a, x = abs(a), abs(x)
    want = [f(x, y), f(np.int32(7), y), f(x, np.int32(2)), f(np.int32(2), y), f(x, np.int32(7))]
    assert run(k, a, np.zeros(20, np.float32)).tolist() == np.concatenate(want).astype(np.float32).tolist()


@clause("SEVAL-3.operator")
def test_unary_operators_on_run_time_values():
    @ct.kernel
    def k(a, o):
        x = ct.load(a, 0, 4)
        for i, r in ct.static_iter(enumerate((-x, +x, ~x, divmod(x, 3)[0], divmod(20, x)[1]))):
            ct.store(o, i, r)

    x = np.array([5, -3, 7, 2], np.int32)
    assert run(k, x, np.zeros(20, np.int32)).reshape(5, 4).tolist() == [
        (-x).tolist(), x.tolist(), (~x).tolist(), (x // 3).tolist(), (20 % x).tolist()]


@clause("SEVAL-3.operator")
def test_products_of_matrices_of_run_time_values():
    @ct.kernel
    def k(a, o):
        x, y = ct.load(a, (0, 0), (2, 4)), ct.load(a, (0, 0), (4, 2))
        ct.store(o, (0, 0), ct.static_eval(x @ y))

    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    assert run(k, a, np.zeros((2, 2), np.float32)).tolist() == (a[:2] @ a[:, :2]).tolist()


@clause("SEVAL-2.tile")
def test_numpy_reads_shapes_of_run_time_values():
    """np.shape and np.ndim, which need no elements, of a tile alone."""
    def f(n):
        t = ct.zeros((2, 4), ct.int32) + n
        return ct.static_eval(np.shape(t)[1]), ct.static_eval(np.ndim(t)), ct.static_eval(len(np.shape(n)) + np.ndim(n))

    assert result(f, 1) == [4, 2, 0]


@clause("SEVAL-3.other")
def test_numpy_takes_no_run_time_values():
    numbers = np.arange(4)
    for f in (np.exp, lambda t: np.add.reduce(t), lambda t: np.add(numbers, t), lambda t: np.asarray(t),
              lambda t: np.add(t, 1, dtype=np.int8), lambda t: np.concatenate((t, t)), np.sum, np.size,
              np.transpose, lambda t: np.shape([t]), lambda t: np.add(t, t, where=True), lambda t: np.add.outer(t, t)):
        @ct.kernel
        def given(a):
            t = ct.load(a, 0, 4)
            ct.static_eval(f(t))
        refuses(("TileTypeError", "TileStaticEvalError", "StaticException"), given, np.zeros(4, np.int32))


@clause("SEVAL-2.strict")
def test_the_dtype_of_strict_constants_is_lost():
    constant_is(lambda: (lambda v: ct.static_eval(v))(ct.int8(5)), 5, "int32")


@clause("SEVAL-2.array", "SEVAL-2.array.shape")
def test_arrays_in_static_eval():
    seen = []

    @ct.kernel
    def k(a):
        ct.static_eval(seen.append((type(a), isinstance(a, ct.Array), a.dtype, a.ndim, len(a.shape), a.shape[0])))

    accepts(k, np.zeros((3, 4), np.float16))
    kind, is_array, dtype, ndim, n, size = seen[-1]
    assert is_array and dtype == ct.float16 and (ndim, n) == (2, 2) and isinstance(size, ct.Tile)
    assert size.dtype == ct.int32 and size.shape == ()


@pytest.mark.parametrize("make", [
    pytest.param(lambda a, xs: a.tiled_view((2,)), marks=clause("SEVAL-2.view")),
    pytest.param(lambda a, xs: a.get_raw_memory(), marks=clause("SEVAL-2.raw")),
    pytest.param(lambda a, xs: xs, marks=clause("SEVAL-2.list")),
    pytest.param(lambda a, xs: f"{a.ndim} {ct.bid(0)}", marks=clause("SEVAL-2.fstring")),
    pytest.param(lambda a, xs: range(3), marks=clause("SEVAL-2.range"))])
def test_what_static_eval_does_not_see(make):
    @ct.kernel
    def k(a, xs):
        v = make(a, xs)
        ct.static_eval(v)

    refuses("TileTypeError", k, np.zeros(4, np.int32), [np.zeros(4, np.int32)])


@pytest.mark.parametrize("f, args, want", [
    (lambda x, y: ct.static_eval(x + y), (7, 3), 10), (lambda x, y: ct.static_eval(x - 2), (7, 3), 5),
    (lambda x, y: ct.static_eval(2 - x), (7, 3), -5), (lambda x, y: ct.static_eval(x * y), (7, 3), 21),
    (lambda x, y: ct.static_eval(x // y), (-7, 3), -3), (lambda x, y: ct.static_eval(x % y), (-7, 3), 2),
    (lambda x, y: ct.static_eval(x / y) * 2, (7, 2), 7), (lambda x, y: ct.static_eval(x ** 2), (7.0, 2), 49),
    (lambda x, y: ct.static_eval(x & y), (6, 3), 2), (lambda x, y: ct.static_eval(x | y), (6, 3), 7),
    (lambda x, y: ct.static_eval(x ^ y), (6, 3), 5), (lambda x, y: ct.static_eval(x << y), (6, 3), 48),
    (lambda x, y: ct.static_eval(x >> y), (48, 3), 6), (lambda x, y: ct.static_eval(-x), (6, 3), -6),
    (lambda x, y: ct.static_eval(x < y), (6, 3), 0), (lambda x, y: ct.static_eval(x >= y), (6, 3), 1),
    (lambda x, y: ct.static_eval(x == y), (6, 3), 0), (lambda x, y: ct.static_eval(x != y), (6, 3), 1),
    (lambda x, y: ct.static_eval(x <= y), (6, 3), 0), (lambda x, y: ct.static_eval(x > y), (6, 3), 1),
    (lambda x, y: ct.static_eval(sum([x, y, x])), (6, 3), 15)])
@clause("SEVAL-3.operator")
def test_operators_on_tiles(f, args, want):
    assert result(f, *args) == want


@pytest.mark.parametrize("f, want", [
    (lambda x, y: ct.static_eval(ct.add(x, y)), 10), (lambda x, y: ct.static_eval(ct.sub(x, y)), 4),
    (lambda x, y: ct.static_eval(ct.mul(x, y)), 21), (lambda x, y: ct.static_eval(ct.truediv(x, y)) * 3, 7),
    (lambda x, y: ct.static_eval(ct.floordiv(x, y)), 2), (lambda x, y: ct.static_eval(ct.mod(x, y)), 1),
    (lambda x, y: ct.static_eval(ct.pow(x * 1.0, 2)), 49), (lambda x, y: ct.static_eval(ct.minimum(x, y)), 3),
    (lambda x, y: ct.static_eval(ct.maximum(x, y)), 7), (lambda x, y: ct.static_eval(ct.cdiv(x, y)), 3),
    (lambda x, y: ct.static_eval(ct.negative(x)), -7), (lambda x, y: ct.static_eval(ct.less(x, y)), 0),
    (lambda x, y: ct.static_eval(ct.greater_equal(x, y)), 1), (lambda x, y: ct.static_eval(ct.bitwise_and(x, y)), 3),
    (lambda x, y: ct.static_eval(ct.bitwise_not(x)), -8), (lambda x, y: ct.static_eval(ct.bitwise_rshift(x, y)), 0),
    (lambda x, y: ct.static_eval(ct.less_equal(x, y)), 0), (lambda x, y: ct.static_eval(ct.greater(x, y)), 1),
    (lambda x, y: ct.static_eval(ct.equal(x, y)), 0), (lambda x, y: ct.static_eval(ct.not_equal(x, y)), 1),
    (lambda x, y: ct.static_eval(ct.bitwise_or(x, y)), 7), (lambda x, y: ct.static_eval(ct.bitwise_xor(x, y)), 4),
    (lambda x, y: ct.static_eval(ct.bitwise_lshift(x, y)), 56), (lambda x, y: ct.static_eval(divmod(x, y)), [2, 1])])
@clause("SEVAL-3.function")
def test_functions_on_tiles(f, want):
    assert result(f, 7, 3) == want


@clause("SEVAL-3.other")
@pytest.mark.parametrize("f", [lambda n: ct.static_eval(ct.exp(n)), lambda n: ct.static_eval(ct.zeros((2,), ct.int8)),
                               lambda n: ct.static_eval(ct.bid(0)), lambda n: ct.static_eval(ct.sum(n)),
                               lambda n: ct.static_eval(ct.astype(n, ct.int8))])
def test_other_operations(f):
    rejects("TileStaticEvalError", f, 1)


@clause("SEVAL-3.bool", "SEVAL-3.int")
@pytest.mark.parametrize("f", [lambda n: ct.static_eval(bool(n)), lambda n: ct.static_eval(1 if n > 0 else 2),
                               lambda n: ct.static_eval(n and 1), lambda n: ct.static_eval(int(n)),
                               lambda n: ct.static_eval(not n), lambda n: ct.static_eval(range(n))])
def test_numbers_of_tiles(f):
    rejects("StaticException", f, 1)


@pytest.mark.parametrize("error, f", [
    pytest.param("TileTypeError", lambda: ct.static_eval([1, 2]), marks=clause("SEVAL-4.list")),
    pytest.param("TileTypeError", lambda: ct.static_eval((1, [2])), marks=clause("SEVAL-4.list")),
    pytest.param("TileTypeError", lambda: ct.static_eval({"a": 1}), marks=clause("SEVAL-4.dict")),
    pytest.param("TileTypeError", lambda: ct.static_eval(object()), marks=clause("SEVAL-4.object")),
    pytest.param("TileTypeError", lambda: ct.static_eval(np.zeros(3)), marks=clause("SEVAL-4.object")),
    pytest.param(("TileStaticEvalError", "StaticException"), lambda: ct.static_eval(ct.int8(1)),
                 marks=clause("SEVAL-4.dtype"))])
def test_results_that_are_refused(error, f):
    rejects(error, f)


@clause("SEVAL-5.class", "SEVAL-5.cause")
@pytest.mark.parametrize("f, cause", [
    (lambda: ct.static_eval(1 // 0), ZeroDivisionError), (lambda: ct.static_eval({}["a"]), KeyError),
    (lambda: ct.static_eval(fails_always()), KeyError), (lambda: ct.static_eval(nothing_here), NameError),
    (lambda: ct.static_assert(fails_always()), KeyError)])
def test_exceptions(f, cause):
    e = rejects("StaticException", f)
    assert isinstance(e.__cause__, cause)


@clause("SEVAL-9.lambda")
def test_lambdas_from_static_eval():
    def f(n):
        g = ct.static_eval(lambda x: x * 3)
        h = ct.static_eval({"add": lambda a, b: a + b}["add"])
        return g(n), h(n, 1)

    assert result(f, 5) == [15, 6]


# ------------------------------------------------------------------ static_assert


@clause("SEVAL-6.true", "SEVAL-6.false", "SEVAL-6.text", "SEVAL-6.message")
def test_static_assert():
    takes(lambda: ct.static_assert(1 < 2))
    takes(lambda: ct.static_assert(True, "message"))
    e = rejects("TileStaticAssertionError", lambda: ct.static_assert(1 > 2))
    assert e.message == "Static assertion failed"
    e = rejects("TileStaticAssertionError", lambda: ct.static_assert(False, f"n is {1 + 1}"))
    assert e.message == "Static assertion failed: n is 2"
    e = rejects("TileStaticAssertionError", lambda: ct.static_assert(False, 5))
    assert e.message == "Static assertion failed: 5"


@pytest.mark.parametrize("f", [
    pytest.param(lambda n: ct.static_assert(1), marks=clause("SEVAL-6.type")),
    pytest.param(lambda n: ct.static_assert(None), marks=clause("SEVAL-6.type")),
    pytest.param(lambda n: ct.static_assert("a"), marks=clause("SEVAL-6.type")),
    pytest.param(lambda n: ct.static_assert(n > 0), marks=clause("SEVAL-6.runtime"))])
def test_conditions_that_are_refused(f):
    rejects("TileTypeError", f, 1)


@clause("SEVAL-6.lazy", "SEVAL-6.exception")
def test_messages():
    takes(lambda: ct.static_assert(True, fails_always()))
    rejects("StaticException", lambda: ct.static_assert(False, fails_always()))


# ------------------------------------------------------------------ static_iter


@pytest.mark.parametrize("f, want", [
    pytest.param(lambda: tuple(i for i in ct.static_iter((3, 1, 2))), (3, 1, 2), marks=clause("SEVAL-7.order")),
    pytest.param(lambda: tuple(i for i in ct.static_iter([1, "a", None, ct.int8, 2.5])), (1, "a", None, ct.int8, 2.5),
                 marks=clause("SEVAL-7.types")),
    pytest.param(lambda: tuple(i for i in ct.static_iter(range(5, 0, -2))), (5, 3, 1),
                 marks=clause("SEVAL-7.iterable")),
    pytest.param(lambda: tuple(i for i in ct.static_iter({"b": 1, "a": 2})), ("b", "a"),
                 marks=clause("SEVAL-7.iterable")),
    pytest.param(lambda: tuple(a + str(b) for a, b in ct.static_iter(zip("ab", range(2)))), ("a0", "b1"),
                 marks=clause("SEVAL-7.iterable", "SEVAL-7.target"))])
def test_items(f, want):
    assert static(f) == want


@clause("SEVAL-7.iterable")
def test_generators_as_iterables():
    assert static(lambda: tuple(i for i in ct.static_iter(j * 2 for j in "ab"))) == ("aa", "bb")


@clause("SEVAL-7.constant", "SEVAL-7.order", "SEVAL-7.runtime")
def test_bodies():
    def f(n):
        total, k = 0, 3
        for size, v in ct.static_iter([(2, n), (4, n * 2), (8, 1)]):
            total = total * 100 + ct.sum(ct.full((size,), v, ct.int32))
        for k in ct.static_iter(range(k)):
            k = k + 100
        return total, k

    assert result(f, 3) == [62408, 102]


@clause("SEVAL-7.before")
def test_items_are_made_first():
    def f(n):
        t = (1, 2, 3)
        s = 0
        for i in ct.static_iter(t):
            t = (*t, i)
            s = s * 10 + i
        return s, len(t), n

    assert result(f, 1) == [123, 6, 1]


@clause("SEVAL-7.limit")
def test_the_limit_of_items():
    def f():
        s = 0
        for i in ct.static_iter(range(1000)):
            s = s + 1
        return s

    constant_is(f, 1000, "int32")
    rejects("TileStaticEvalError", body("for i in ct.static_iter(range(1001)):\n    pass"), 1)


@pytest.mark.parametrize("error, lines", [
    pytest.param("TileTypeError", "for i in ct.static_iter(5):\n    pass", marks=clause("SEVAL-7.kind")),
    pytest.param("TileTypeError", "for i in ct.static_iter(None):\n    pass", marks=clause("SEVAL-7.kind")),
    pytest.param("TileStaticEvalError", "for i in ct.static_iter([[1], [2]]):\n    pass", marks=clause("SEVAL-7.item")),
    pytest.param("TileStaticEvalError", "for i in ct.static_iter((object(),)):\n    pass",
                 marks=clause("SEVAL-7.item")),
    pytest.param("TileSyntaxError", "for i in ct.static_iter((1, 2)):\n    break", marks=clause("SEVAL-7.break")),
    pytest.param("TileSyntaxError", "for i in ct.static_iter((1, 2)):\n    if n > 0:\n        break",
                 marks=clause("SEVAL-7.break")),
    pytest.param("TileSyntaxError", "for i in ct.static_iter((1, 2)):\n    if i == 1:\n        continue",
                 marks=clause("SEVAL-7.continue")),
    pytest.param("TileSyntaxError", "for i in ct.static_iter((1, 2)):\n    return n", marks=clause("SEVAL-7.return")),
    pytest.param(("TileSyntaxError", "TileTypeError"), "for i in ct.static_iter(()):\n    x = 1\nreturn x",
                 marks=clause("SEVAL-7.empty")),
    pytest.param(("TileSyntaxError", "TileTypeError"), "for i in ct.static_iter(()):\n    x = 1\nreturn i",
                 marks=clause("SEVAL-7.empty")),
    pytest.param("TileTypeError", "for i, j in ct.static_iter((1, 2)):\n    pass", marks=clause("SEVAL-7.target"))])
def test_static_loops_that_are_refused(error, lines):
    rejects(error, body(lines), 1)


@clause("SEVAL-7.inner", "SEVAL-7.survive")
def test_inner_loops():
    def f(n):
        s = 0
        for k in ct.static_iter((10, 1)):
            for i in range(n):
                if i == 1:
                    continue
                if i == 3:
                    break
                s = s + k
            last = s * 100 + i_of(k)
        return s, last, k

    def i_of(k):
        return k

    assert result(f, 9) == [22, 2201, 1]


# ------------------------------------------------------------------ ensure_constant


@clause("SEVAL-8.constant")
@pytest.mark.parametrize("value", [3, 2.5, True, "a", None, (1, ("a", 2.5)), ct.float16, Color.RED], ids=str)
def test_ensure_constant(value):
    assert static(lambda: ct.ensure_constant(value)) == value


@pytest.mark.parametrize("make", [
    pytest.param(lambda n, a: n, marks=clause("SEVAL-8.tile")),
    pytest.param(lambda n, a: n > 0, marks=clause("SEVAL-8.tile")),
    pytest.param(lambda n, a: ct.zeros((2,), ct.int8), marks=clause("SEVAL-8.tile")),
    pytest.param(lambda n, a: a, marks=clause("SEVAL-8.array")),
    pytest.param(lambda n, a: (lambda: n), marks=clause("SEVAL-8.closure")),
    pytest.param(lambda n, a: range(3), marks=clause("SEVAL-8.range")),
    pytest.param(lambda n, a: (1, n), marks=clause("SEVAL-8.tuple"))])
def test_what_is_no_constant(make):
    @ct.kernel
    def k(n, a):
        ct.ensure_constant(make(n, a))

    refuses("TileStaticAssertionError", k, 1, np.zeros(4, np.int32))


@clause("SEVAL-2.local")
def test_static_eval_of_shapes():
    @ct.kernel
    def k(x, out):
        t = ct.load(x, (0, 0), (2, 4))
        n = ct.static_eval(math.prod(t.shape))
        ct.store(out, 0, ct.sum(t.reshape((n,))))

    assert run(k, np.arange(8, dtype=np.int32).reshape(2, 4), np.zeros(1, np.int32)).tolist() == [28]


# ------------------------------------------------------------------ launching


@needs("cpu arrays")
@clause("SEVAL-2.python", "ERR-6")
def test_kernels_that_static_code_launches():
    """Kernels that launch kernels while they are compiled, to some depth; one that launches itself is refused."""
    def launched(k):
        out = np.zeros(1, np.int32)
        ct.launch(None, (1,), k, (out,))
        return int(out[0])

    def above(k):
        @ct.kernel
        def one_more(out):
            ct.store(out, 0, ct.static_eval(launched(k) + 1))

        return one_more

    @ct.kernel
    def last(out):
        ct.store(out, 0, 1)

    @ct.kernel
    def itself(out):
        ct.store(out, 0, ct.static_eval(launched(itself)))

    assert launched(functools.reduce(lambda k, _: above(k), range(20), last)) == 21
    refuses("TileRecursionError", itself, np.zeros(1, np.int32))
