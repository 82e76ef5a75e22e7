# ruff: noqa: F821, F841 -- tile code under test, not code to tidy
"""Expressions: the value of each, and which are refused."""

import dataclasses
import math

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, refuses, run
from conformance.harness.tile_code import body, rejects, result, takes
from conformance.harness.type_probes import constant, constant_is, static

len_of_module = 3
ONE, NOTHING, PAIR, WORD = 1, None, (1, 2), "a"


@pytest.mark.parametrize("f, value, dtype", [
    pytest.param(lambda: 5, 5, "int32", marks=clause("EX-1.int")),
    pytest.param(lambda: 0x10, 16, "int32", marks=clause("EX-1.int")),
    pytest.param(lambda: 5_000_000_000, 5000000000, "int64", marks=clause("EX-1.int")),
    pytest.param(lambda: 0.5, 0.5, "float32", marks=clause("EX-1.float")),
    pytest.param(lambda: 1e300, 1e300, "float32", marks=clause("EX-1.float")),
    pytest.param(lambda: True, True, "bool_", marks=clause("EX-1.bool")),
    pytest.param(lambda: False, False, "bool_", marks=clause("EX-1.bool")),
    pytest.param(lambda: 1 + 2 * 3 ** 2, 19, "int32", marks=clause("EX-8.precedence")),
    pytest.param(lambda: (1 + 2) * 3, 9, "int32", marks=clause("EX-8.precedence")),
    pytest.param(lambda: -2 ** 2, -4, "int32", marks=clause("EX-8.precedence")),
    pytest.param(lambda: 2 ** 3 ** 2, 512, "int32", marks=clause("EX-8.precedence")),
    pytest.param(lambda: 10 - 4 - 3, 3, "int32", marks=clause("EX-8.precedence")),
    pytest.param(lambda: 1 | 6 & 3 ^ 5, 7, "int32", marks=clause("EX-8.precedence")),
    pytest.param(lambda: 1 << 2 + 1, 8, "int32", marks=clause("EX-8.precedence")),
    pytest.param(lambda: not 1 == 2, True, "bool_", marks=clause("EX-8.precedence")),
    pytest.param(lambda: 5 and 3, True, "bool_", marks=clause("EX-13.constant")),
    pytest.param(lambda: 0 or 7, True, "bool_", marks=clause("EX-13.constant")),
    pytest.param(lambda: 0 and 7, False, "bool_", marks=clause("EX-13.constant")),
    pytest.param(lambda: 0 or 0.0, False, "bool_", marks=clause("EX-13.constant")),
    pytest.param(lambda: 1 and 2 and 0, False, "bool_", marks=clause("EX-13.constant")),
    pytest.param(lambda: None or "a", True, "bool_", marks=clause("EX-13.constant")),
    pytest.param(lambda: 1 < 2 < 3, True, "bool_", marks=clause("EX-10.chain")),
    pytest.param(lambda: 1 < 3 < 2, False, "bool_", marks=clause("EX-10.chain")),
    pytest.param(lambda: 3 > 2 != 2, False, "bool_", marks=clause("EX-10.chain")),
    pytest.param(lambda: None is None, True, "bool_", marks=clause("EX-11.is", "EX-11.constant")),
    pytest.param(lambda: ONE is None, False, "bool_", marks=clause("EX-11.is", "EX-11.constant")),
    pytest.param(lambda: None is not None, False, "bool_", marks=clause("EX-11.is_not", "EX-11.constant")),
    pytest.param(lambda: WORD is not None, True, "bool_", marks=clause("EX-11.is_not", "EX-11.constant")),
    pytest.param(lambda: 2 in (1, 2), True, "bool_", marks=clause("EX-12.tuple")),
    pytest.param(lambda: 3 in (1, 2), False, "bool_", marks=clause("EX-12.tuple")),
    pytest.param(lambda: WORD in (1, None, ct.int8), False, "bool_", marks=clause("EX-12.tuple")),
    pytest.param(lambda: None not in (1, WORD, 2.5), True, "bool_", marks=clause("EX-12.not")),
    pytest.param(lambda: 2 not in (1, 2), False, "bool_", marks=clause("EX-12.not")),
    pytest.param(lambda: 3 not in (1, 2), True, "bool_", marks=clause("EX-12.not")),
    pytest.param(lambda: 3 if True else None, 3, "int32", marks=clause("EX-14.constant")),
    pytest.param(lambda: None if 0 else 2.5, 2.5, "float32", marks=clause("EX-14.constant"))])
def test_constant_expressions(f, value, dtype):
    constant_is(f, value, dtype)


@pytest.mark.parametrize("f, want", [
    pytest.param(lambda: "ab", "ab", marks=clause("EX-1.str")),
    pytest.param(lambda: None, None, marks=clause("EX-1.none")),
    pytest.param(lambda: ..., ..., marks=clause("EX-1.ellipsis")),
    pytest.param(lambda: (1, "a", None), (1, "a", None), marks=clause("EX-2.tuple")),
    pytest.param(lambda: (), (), marks=clause("EX-2.tuple")),
    pytest.param(lambda: (1, *(2, 3), 4, *()), (1, 2, 3, 4), marks=clause("EX-2.star")),
    pytest.param(lambda: tuple(x * x for x in ct.static_iter((1, 2, 3))), (1, 4, 9), marks=clause("EX-3.tuple")),
    pytest.param(lambda: tuple((x, y) for x in ct.static_iter(range(3)) if x != 1 for y in ct.static_iter("ab")),
                 ((0, "a"), (0, "b"), (2, "a"), (2, "b")), marks=clause("EX-3.tuple.nested")),
    pytest.param(lambda: tuple(x for x in ct.static_iter(())), (), marks=clause("EX-3.tuple")),
    pytest.param(lambda: (1, 2, 3)[0], 1, marks=clause("EX-6.tuple")),
    pytest.param(lambda: (1, 2, 3)[-1], 3, marks=clause("EX-6.tuple")),
    pytest.param(lambda: (1, 2, 3)[-3], 1, marks=clause("EX-6.tuple")),
    pytest.param(lambda: (1, 2, 3, 4)[1:3], (2, 3), marks=clause("EX-6.tuple.slice")),
    pytest.param(lambda: (1, 2, 3, 4)[:], (1, 2, 3, 4), marks=clause("EX-6.tuple.slice")),
    pytest.param(lambda: (1, 2, 3, 4)[::-2], (4, 2), marks=clause("EX-17.step")),
    pytest.param(lambda: (1, 2, 3, 4)[2:9], (3, 4), marks=clause("EX-6.tuple.slice")),
    pytest.param(lambda: ct.zeros((2, 4), ct.int8)[None].shape, (1, 2, 4), marks=clause("EX-6.tile")),
    pytest.param(lambda: ct.zeros((2, 4), ct.int8)[..., None].shape, (2, 4, 1), marks=clause("EX-6.tile")),
    pytest.param(lambda: ct.zeros((2, 4), ct.int8)[:, None, :].shape, (2, 1, 4), marks=clause("EX-6.tile")),
    pytest.param(lambda: ct.zeros((2, 4), ct.int8).shape, (2, 4), marks=clause("EX-5.read")),
    pytest.param(lambda: math.pi, math.pi, marks=clause("EX-5.read")),
    pytest.param(lambda: "y" if False else "x", "x", marks=clause("EX-14.short"))])
def test_other_constant_expressions(f, want):
    got = static(f)
    assert got == want and type(got) is type(want)


@pytest.mark.parametrize("error, f", [
    pytest.param("TileTypeError", lambda: b"a", marks=clause("EX-1.bytes")),
    pytest.param("TileTypeError", lambda: 1j, marks=clause("EX-1.complex")),
    pytest.param("TileTypeError", lambda: (1, *2), marks=clause("EX-2.star.kind")),
    pytest.param("TileTypeError", lambda: (*"ab",), marks=clause("EX-2.star.kind")),
    pytest.param("TileTypeError", lambda: (*ct.zeros((2,), ct.int8),), marks=clause("EX-2.star.kind")),
    pytest.param("TileSyntaxError", lambda: no_such_name, marks=clause("EX-4.undefined")),
    pytest.param("TileSyntaxError", lambda: no_such_name(1), marks=clause("EX-4.undefined")),
    pytest.param("TileTypeError", lambda: ONE.nothing, marks=clause("EX-5.unknown")),
    pytest.param("TileTypeError", lambda: ct.zeros((2,), ct.int8).nothing, marks=clause("EX-5.unknown")),
    pytest.param("TileTypeError", lambda: (1, 2).count, marks=clause("EX-5.unknown")),
    pytest.param("TileTypeError", lambda: "a".upper, marks=clause("EX-5.unknown")),
    pytest.param("TileTypeError", lambda: NOTHING.nothing, marks=clause("EX-5.unknown")),
    pytest.param(("TileValueError", "TileTypeError"), lambda: (1, 2)[2], marks=clause("EX-6.tuple.range")),
    pytest.param(("TileValueError", "TileTypeError"), lambda: (1, 2)[-3], marks=clause("EX-6.tuple.range")),
    pytest.param(("TileValueError", "TileTypeError"), lambda: ()[0], marks=clause("EX-6.tuple.range")),
    pytest.param("TileTypeError", lambda: PAIR["a"], marks=clause("EX-6.tuple")),
    pytest.param("TileTypeError", lambda: PAIR[0.0], marks=clause("EX-6.tuple")),
    pytest.param("TileTypeError", lambda: (1, 2)[ct.bid(0)], marks=clause("EX-6.tuple.runtime")),
    pytest.param("TileTypeError", lambda: ct.zeros((2,), ct.int8)[0], marks=clause("EX-6.tile.number")),
    pytest.param("TileTypeError", lambda: ct.zeros((2,), ct.int8)[0:1], marks=clause("EX-6.tile.number")),
    pytest.param("TileTypeError", lambda: ONE[0], marks=clause("EX-6.other")),
    pytest.param("TileTypeError", lambda: NOTHING[0], marks=clause("EX-6.other")),
    pytest.param("TileTypeError", lambda: WORD[0], marks=clause("EX-6.other")),
    pytest.param("TileTypeError", lambda: rejects[0], marks=clause("EX-6.other")),
    pytest.param("TileTypeError", lambda: (1, 2)[ct.bid(0):], marks=clause("EX-17.constant")),
    pytest.param("TileTypeError", lambda: PAIR[::0.5], marks=clause("EX-17.constant")),
    pytest.param("TileTypeError", lambda: ONE is ONE, marks=clause("EX-11.other")),
    pytest.param("TileTypeError", lambda: WORD is not PAIR, marks=clause("EX-11.other")),
    pytest.param("TileTypeError", lambda: 1 in 5, marks=clause("EX-12.other")),
    pytest.param("TileTypeError", lambda: 1 in ct.zeros((2,), ct.int32), marks=clause("EX-12.other")),
    pytest.param("TileTypeError", lambda: 1 not in range(3), marks=clause("EX-12.other")),
    pytest.param("TileTypeError", lambda: 1 and ct.zeros((2,), ct.int8), marks=clause("EX-13.kind")),
    pytest.param("TileTypeError", lambda: ct.zeros((1,), ct.bool_) or 1, marks=clause("EX-13.kind")),
    pytest.param("TileTypeError", lambda: range(3) and 1, marks=clause("EX-13.kind")),
    pytest.param("TileTypeError", lambda: 1 + None, marks=clause("EX-8.kind")),
    pytest.param("TileTypeError", lambda: ct.float32 * 2, marks=clause("EX-8.kind")),
    pytest.param("TileTypeError", lambda: "a" - "b", marks=clause("EX-8.kind")),
    pytest.param("TileTypeError", lambda: (1, 2) < (1, 3), marks=clause("EX-8.kind")),
    pytest.param("TileTypeError", lambda: -None, marks=clause("EX-8.kind")),
    pytest.param("TileTypeError", lambda: ~(1, 2), marks=clause("EX-8.kind"))])
def test_expressions_that_are_refused(error, f):
    rejects(error, f)


@clause("EX-4.local", "EX-4.global", "EX-4.builtin")
def test_resolution_of_names():
    def f(n):
        len_of_module_ = len_of_module
        abs = n + 1
        return len_of_module_, abs, min(n, 2), max(n, 2)

    def g(n):
        len_of_module = n

        def h():
            return len_of_module
        return h()

    assert result(f, 9) == [3, 10, 2, 9]
    assert result(g, 9) == 9


@clause("EX-4.reached")
def test_undefined_names_that_are_not_reached():
    takes(body("return n if True else nothing"), 1)
    takes(body("return False and nothing"), 1)
    takes(body("return True or nothing"), 1)
    rejects("TileSyntaxError", body("return n if n else nothing"), 1)


@pytest.mark.parametrize("f, args, want", [
    pytest.param(lambda x, y: x + y, (7, 3), 10, marks=clause("EX-8.add")),
    pytest.param(lambda x, y: x - y, (7, 3), 4, marks=clause("EX-8.sub")),
    pytest.param(lambda x, y: x * y, (7, 3), 21, marks=clause("EX-8.mul")),
    pytest.param(lambda x, y: x / y * 2, (7, 2), 7, marks=clause("EX-8.truediv")),
    pytest.param(lambda x, y: (x // y, -x // y), (7, 3), [2, -3], marks=clause("EX-8.floordiv")),
    pytest.param(lambda x, y: (x % y, -x % y), (7, 3), [1, 2], marks=clause("EX-8.mod")),
    pytest.param(lambda x, y: x ** y, (2.0, 3.0), 8, marks=clause("EX-8.pow")),
    pytest.param(lambda x, y: x & y, (6, 3), 2, marks=clause("EX-8.and")),
    pytest.param(lambda x, y: x | y, (6, 3), 7, marks=clause("EX-8.or")),
    pytest.param(lambda x, y: x ^ y, (6, 3), 5, marks=clause("EX-8.xor")),
    pytest.param(lambda x, y: x << y, (6, 3), 48, marks=clause("EX-8.lshift")),
    pytest.param(lambda x, y: (x >> y, -x >> y), (6, 2), [1, -2], marks=clause("EX-8.rshift")),
    pytest.param(lambda x: -x, (6,), -6, marks=clause("EX-9.neg")),
    pytest.param(lambda x: +x, (6,), 6, marks=clause("EX-9.pos")),
    pytest.param(lambda x: ~x, (6,), -7, marks=clause("EX-9.invert")),
    pytest.param(lambda x: (not x, not x - 6), (6,), [0, 1], marks=clause("EX-9.not")),
    pytest.param(lambda x, y: (x < y, y < x, x < x), (1, 2), [1, 0, 0], marks=clause("EX-10.lt")),
    pytest.param(lambda x, y: (x <= y, y <= x, x <= x), (1, 2), [1, 0, 1], marks=clause("EX-10.le")),
    pytest.param(lambda x, y: (x == y, x == x), (1, 2), [0, 1], marks=clause("EX-10.eq")),
    pytest.param(lambda x, y: (x != y, x != x), (1, 2), [1, 0], marks=clause("EX-10.ne")),
    pytest.param(lambda x, y: (x > y, y > x, x > x), (1, 2), [0, 1, 0], marks=clause("EX-10.gt")),
    pytest.param(lambda x, y: (x >= y, y >= x, x >= x), (1, 2), [0, 1, 1], marks=clause("EX-10.ge")),
    pytest.param(lambda x, y: (x < y < 5, x < y < 2, x < 1 < y, x < y > x), (1, 2), [1, 0, 0, 1],
                 marks=clause("EX-10.chain")),
    pytest.param(lambda x, y: (x in (1, y), x in (5, y), x + 1 in (5, y)), (1, 2), [1, 0, 1],
                 marks=clause("EX-12.runtime")),
    pytest.param(lambda x, y: (x not in (1, y), x not in (5, y)), (1, 2), [0, 1], marks=clause("EX-12.runtime")),
    pytest.param(lambda x, y: (x and y, x and 0, 0 and x, y and x), (5, 3), [1, 0, 0, 1], marks=clause("EX-13.and")),
    pytest.param(lambda x, y: (x and y, y and x, x or y, y or x, y or y), (5, 0), [0, 0, 1, 1, 0],
                 marks=clause("EX-13.and", "EX-13.or")),
    pytest.param(lambda x, y: (x or y, y or 0, 0 or x), (0, 0), [0, 0, 0], marks=clause("EX-13.or")),
    pytest.param(lambda x, y: (x if x > y else y, x if x < y else y), (5, 3), [5, 3], marks=clause("EX-14.value")),
    pytest.param(lambda x, y: (x is None, x is not None, (None if True else x) is None), (5, 3), [0, 1, 1],
                 marks=clause("EX-11.is", "EX-11.is_not")),
    pytest.param(lambda x, y: (x, *(y, x * 2)), (5, 3), [5, 3, 10], marks=clause("EX-2.star")),
    pytest.param(lambda x: tuple(x + i for i in ct.static_iter((1, 2))), (5,), [6, 7], marks=clause("EX-3.tuple")),
    pytest.param(lambda x: (lambda y: x - y)(2), (5,), 3, marks=clause("EX-18"))])
def test_run_time_expressions(f, args, want):
    assert result(f, *args) == want


@clause("EX-8.matmul")
def test_matmul():
    def f(x):
        a = ct.arange(4, dtype=ct.float32).reshape((2, 2)) + x
        y = a @ ct.arange(4, dtype=ct.float32).reshape((2, 2))
        return tuple(ct.extract(y, (i, j), (1, 1)).item() for i, j in ct.static_iter([(0, 0), (0, 1), (1, 0), (1, 1)]))

    # (1 2; 3 4) @ (0 1; 2 3)
    assert result(f, 1.0) == [4, 7, 8, 15]


@clause("EX-13.and", "EX-13.or", "EX-14.value")
def test_dtype_of_and_or():
    @ct.kernel
    def k(x, y):
        a, b = x and y, x or y
        ad, bd = a.dtype, b.dtype
        ct.static_assert(ad == ct.bool_)
        ct.static_assert(bd == ct.bool_)

    accepts(k, 1, 2.0)


def noting(out, i, v):
    ct.store(out, i, ct.load(out, i, 1) + 1)
    return v


@clause("EX-13.short", "EX-10.short", "EX-10.once", "EX-14.short")
def test_what_is_evaluated():
    @ct.kernel
    def k(x, out):
        a = x > 0 and noting(out, 0, True)
        b = x > 0 or noting(out, 1, True)
        c = noting(out, 2, x) < noting(out, 3, x + 1) < noting(out, 4, x + 2)
        d = noting(out, 5, x) > noting(out, 6, x + 1) > noting(out, 7, x)
        e = noting(out, 8, 1) if x > 0 else noting(out, 9, 2)
        f = x < 0 and x > 0 or noting(out, 10, True)

    assert run(k, 3, np.zeros(11, np.int32)).tolist() == [1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1]
    assert run(k, -3, np.zeros(11, np.int32)).tolist() == [0, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1]


@clause("EX-13.untaken")
def test_operands_that_are_not_checked():
    constant_is(lambda: False and ct.exp(None), False, "bool_")
    constant_is(lambda: True or nothing, True, "bool_")
    rejects("TileTypeError", lambda: True and ct.exp(None))
    rejects("TileTypeError", lambda n: n and ct.exp(None), 0)


@clause("EX-14.type")
def test_ternaries_of_two_types():
    rejects("TileTypeError", lambda n: (1 if n else 1.0) + 1, 1)
    rejects("TileTypeError", lambda n: ct.exp(ct.zeros((2,), ct.float32) if n else ct.zeros((4,), ct.float32)), 1)
    rejects("TileTypeError", lambda n: (n if n else None) + 1, 1)

    def unused(n):
        x = 1 if n else None
        return n

    takes(unused, 1)


@clause("EX-6.list")
def test_items_of_lists():
    @ct.kernel
    def k(xs, i, out):
        ct.store(out, 0, ct.load(xs[i], 0, 1) * 10 + ct.load(xs[0], 0, 1))

    assert run(k, [np.full(1, v, np.int32) for v in (3, 4, 5)], 2, np.zeros(1, np.int32)).tolist() == [53]

    @ct.kernel
    def floats(xs):
        xs[0.5]

    refuses("TileTypeError", floats, [np.zeros(1)])


@dataclasses.dataclass(frozen=True)
class Table:
    scale: int

    def __getitem__(self, i):
        return self.scale * i


@clause("EX-6.dataclass")
def test_items_of_dataclasses():
    assert result(lambda n: (Table(3)[n], Table(n)[4]), 5) == [15, 20]


def digits(a, b, c=3, /, d=4, *, e=5):
    return a * 10000 + b * 1000 + c * 100 + d * 10 + e


def more(*args, **kw):
    return digits(*args, **kw)


@pytest.mark.parametrize("f, want", [
    pytest.param(lambda n: digits(n, 2, e=7), 12347, marks=clause("EX-7.keyword")),
    pytest.param(lambda n: digits(n, 2, e=7, d=1), 12317, marks=clause("EX-7.keyword")),
    pytest.param(lambda n: digits(*(n, 9)), 19345, marks=clause("EX-7.star")),
    pytest.param(lambda n: digits(n, *(8, 7), *(6,)), 18765, marks=clause("EX-7.star")),
    pytest.param(lambda n: more(n, 2, d=9, e=8), 12398, marks=clause("EX-7.double_star"))])
def test_ways_to_pass_arguments(f, want):
    assert result(f, 1) == want


@pytest.mark.parametrize("f", [
    pytest.param(lambda: digits(*5), marks=clause("EX-7.star.kind")),
    pytest.param(lambda: digits(1, *"ab"), marks=clause("EX-7.star.kind")),
    pytest.param(lambda: digits(1), marks=clause("EX-7.missing")),
    pytest.param(lambda: digits(), marks=clause("EX-7.missing")),
    pytest.param(lambda: digits(1, 2, 3, 4, 5), marks=clause("EX-7.many")),
    pytest.param(lambda: digits(1, 2, f=3), marks=clause("EX-7.unexpected")),
    pytest.param(lambda: digits(1, 2, 3, 4, d=4), marks=clause("EX-7.twice")),
    pytest.param(lambda: digits(1, b=2), marks=clause("EX-7.positional")),
    pytest.param(lambda: (lambda *, a: a)(1), marks=clause("EX-7.keyword_only")),
    pytest.param(lambda: (lambda a: a)(), marks=clause("EX-7.missing")),
    pytest.param(lambda: (lambda *, a: a)(), marks=clause("EX-7.missing"))])
def test_arguments_that_do_not_fit(f):
    rejects("TileTypeError", f)


def knows(name, **kw):
    return name in kw, name not in kw


@clause("EX-12.dict")
def test_in_of_dicts():
    assert static(lambda: knows("a", a=1, b=2)) == (True, False)
    assert static(lambda: knows("c", a=1, b=2)) == (False, True)


@clause("EX-15.value")
def test_formatted_strings(capfd):
    @ct.kernel
    def k(n):
        text = f"n is {n}, twice {n * 2}"
        print(text)

    launch(k, 4)
    assert "n is 4, twice 8" in capfd.readouterr().out


@clause("EX-11.constant", "EX-12.tuple")
def test_answers_that_are_constants():
    def f(n):
        a = n is None
        ct.static_assert(a == False)  # noqa: E712
        return ct.zeros((2 if n is not None else 3,), ct.int32)

    takes(f, 1)
    assert constant(lambda: "a" in ("a", "b"))[0] is True
