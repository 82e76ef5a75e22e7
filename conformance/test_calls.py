# ruff: noqa: B007, F841 -- tile code under test, not code to tidy
"""Calls, closures and recursion."""

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, run
from conformance.harness.tile_code import module, rejects, result, takes
from conformance.harness.type_probes import constant_is, static


def full(a, /, b=2, *rest, c, d=4, **more):
    return a, b, rest, c, d, more.get("e"), more.get("f")


@clause("CALL-1.double_star")
@pytest.mark.parametrize("key", ["0", "n", "None", "('a',)", "f", "ct.int8"])
def test_keys_that_are_no_strings(key):
    f = module(f"def f(n, **more):\n    return more[{key}]\n")["f"]
    rejects("TileTypeError", lambda n: f(n, a=n), 1)


LIMITS = (10, 20)


def defaults(a, b=LIMITS, c=ct.float16, d="text", e=None):
    return a, b, c, d, e


def bad_default(a, b=[1]):  # noqa: B006
    return a


def object_default(a, b=object()):  # noqa: B008
    return a, b


@clause("CALL-1.default", "CALL-1.positional", "CALL-1.keyword", "CALL-1.star", "CALL-1.double_star")
def test_signatures():
    assert static(lambda: full(1, c=3)) == (1, 2, (), 3, 4, None, None)
    assert static(lambda: full(1, 9, 8, 7, c=3, d=5, f=6)) == (1, 9, (8, 7), 3, 5, None, 6)
    assert static(lambda: full(1, b=7, c=3, e="x")) == (1, 7, (), 3, 4, "x", None)
    rejects("TileTypeError", lambda: full(a=1, c=2))
    rejects("TileTypeError", lambda: full(1, 2))


@clause("CALL-1.object")
def test_defaults_of_functions():
    assert static(lambda: defaults(1)) == (1, (10, 20), ct.float16, "text", None)
    assert static(lambda: defaults(1, d="other")) == (1, (10, 20), ct.float16, "other", None)


@clause("CALL-1.unused")
def test_defaults_that_are_no_values():
    takes(lambda n: bad_default(n, 2), 1)
    rejects("TileTypeError", lambda n: bad_default(n), 1)
    takes(lambda n: object_default(n, 2), 1)
    rejects("TileTypeError", lambda n: object_default(n), 1)


@clause("CALL-1.nested")
def test_defaults_of_nested_functions():
    def f(n):
        def g(a=n, *, b=n * 2):
            return a * 100 + b

        h = lambda a=n: a
        n = 9
        return g(), g(b=n), h()

    assert result(f, 3) == [306, 309, 3]


@clause("CALL-2")
def test_constant_arguments():
    def make(shape, dtype, value):
        return ct.full(shape, value, dtype)

    @ct.kernel
    def k(out):
        a, b = make((2,), ct.int8, 1), make((4, 2), ct.float16, 2.5)
        ad, bd, s, t = a.dtype, b.dtype, a.shape, b.shape
        ct.static_assert(ad == ct.int8 and bd == ct.float16)
        ct.static_assert(s == (2,) and t == (4, 2))

    accepts(k, np.zeros(1))
    constant_is(lambda: (lambda a, b: a * b)(3, 4), 12, "int32")


def falls(n):
    n + 1


def two_ints(n):
    if n > 0:
        return n
    return -1


def two_types(n):
    if n > 0:
        return n
    return 1.5


def missing(n):
    if n > 0:
        return n


def by_constant(n, flag):
    if flag:
        return n
    return "text"


def nothing_both(n):
    if n > 0:
        return
    return None


@clause("CALL-3.none")
def test_functions_without_return():
    assert static(lambda: falls(1)) is None
    assert result(lambda n: falls(n) is None, 1) == 1
    takes(lambda n: nothing_both(n) is None, 1)


@clause("CALL-3.same")
def test_several_returns():
    assert result(lambda n: two_ints(n), 5) == 5 and result(lambda n: two_ints(n), -5) == -1


@clause("CALL-3.same")
def test_returns_of_tuples():
    def f(n):
        if n > 0:
            return n, n * 2.0
        return 7, 8.0

    assert result(lambda n: f(n), 3) == [3, 6] and result(lambda n: f(n), -3) == [7, 8]


@clause("CALL-3.differ", "CALL-3.missing")
@pytest.mark.parametrize("f", [two_types, missing])
def test_returns_of_different_types(f):
    rejects("TileTypeError", lambda n: f(n), 1)

    def unused(n):
        f(n)

    rejects("TileTypeError", unused, 1)


@clause("CALL-3.unreached")
def test_returns_that_are_not_reached():
    assert result(lambda n: by_constant(n, True), 4) == 4
    assert static(lambda: by_constant(1, False)) == "text"


def factorial(n):
    return 1 if n == 0 else n * factorial(n - 1)


def depth(n):
    if n == 0:
        return 0
    return 1 + depth(n - 1)


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


def tree(t, level):
    if level == 0:
        return t
    return tree(t * 2, level - 1) + tree(t * 3, level - 1)


@clause("CALL-4.constant")
def test_recursion():
    constant_is(lambda: factorial(10), 3628800, "int32")
    constant_is(lambda: even(7), False, "bool_")
    assert result(lambda n: tree(n, 4), 3) == 3 * 5 ** 4


@clause("CALL-4.constant")
def test_recursion_over_tuples():
    def total(t):
        return 0 if len(t) == 0 else t[0] + total(t[1:])

    assert result(lambda n: total((n, 2, n, 4)), 10) == 26


@clause("CALL-4.hundreds")
def test_hundreds_of_calls():
    constant_is(lambda: depth(400), 400, "int32")
    constant_is(lambda: depth(900), 900, "int32")


@clause("CALL-4.depth")
def test_the_limit_of_depth():
    rejects("TileRecursionError", lambda: depth(1100))


def forever(n):
    return forever(n)


@clause("CALL-4.runtime")
def test_recursion_that_run_time_ends():
    rejects("TileRecursionError", lambda n: depth(n), 3)
    rejects("TileRecursionError", lambda n: forever(n), 3)


@clause("CALL-5.late")
def test_closures_are_late():
    def f(n):
        x = n

        def g():
            return x

        a = g()
        x = x + 1
        b = g()
        for i in range(3):
            x = x + 10
            g()
        return a, b, g()

    assert result(f, 5) == [5, 6, 36]


@clause("CALL-5.loop")
def test_closures_of_a_loop():
    def f(n):
        fs = ()
        for i in ct.static_iter((1, 2, 3)):
            fs = (*fs, lambda: i * n)
        return tuple(g() for g in ct.static_iter(fs))

    assert result(f, 10) == [30, 30, 30]


@clause("CALL-5.after")
def test_closures_after_the_return():
    def make(n):
        x = n
        g = lambda: x
        x = n * 7
        return g

    def f(n):
        a, b = make(n), make(2)
        return a(), b()

    assert result(f, 3) == [21, 14]


@clause("CALL-6.variable", "CALL-6.tuple", "CALL-6.argument", "CALL-6.result")
def test_functions_as_values():
    def twice(g):
        return lambda x: g(g(x))

    def f(n):
        g = two_ints
        fs = (lambda x: x + 1, lambda x: x * 3, g)
        return fs[0](n), fs[1](n), fs[2](-n), twice(fs[1])(n), twice(twice(fs[0]))(n)

    assert result(f, 5) == [6, 15, -1, 45, 9]


@clause("CALL-6.join")
def test_functions_by_path():
    def used(n):
        if n > 0:
            g = two_ints
        else:
            g = falls
        return g(n)

    def unused(n):
        if n > 0:
            g = two_ints
        else:
            g = falls
        return n

    rejects("TileTypeError", used, 1)
    takes(unused, 1)
    assert result(lambda n: (two_ints if True else falls)(n), 4) == 4


@clause("CALL-7.local")
def test_assignments_in_nested_functions():
    def f(n):
        x = n

        def g():
            x = 100
            return x + 1

        return g(), x

    assert result(f, 5) == [101, 5]


@clause("CALL-7.before")
def test_locals_before_their_assignment():
    space = module("""
        def f(n):
            x = n
            def g():
                y = x
                x = 1
                return y
            return g()
    """)
    rejects(("TileSyntaxError", "TileTypeError"), space["f"], 1)


def note(out, v):
    ct.store(out, 0, ct.load(out, 0, 1) * 10 + v)
    return v


@clause("CALL-8.order")
def test_order_of_arguments():
    @ct.kernel
    def k(out):
        full(note(out, 1), note(out, 2), note(out, 3), d=note(out, 4), c=note(out, 5))
        (note(out, 6), note(out, 7))
        note(out, 8) + note(out, 9)

    assert run(k, np.zeros(1, np.int64)).tolist() == [123456789]


@pytest.mark.parametrize("f", [
    pytest.param(lambda: ct.exp2(1.0, True), marks=clause("CALL-8.keyword_only")),
    pytest.param(lambda: ct.sum(ct.zeros((2,), ct.int32), 0, True, 5), marks=clause("CALL-8.keyword_only")),
    pytest.param(lambda: ct.add(1, 2, ct.RoundingMode.RN), marks=clause("CALL-8.keyword_only")),
    pytest.param(lambda: ct.exp(x=1.0), marks=clause("CALL-8.positional_only")),
    pytest.param(lambda: ct.add(x=1, y=2), marks=clause("CALL-8.positional_only"))])
def test_parameters_of_operations(f):
    rejects("TileTypeError", f)
