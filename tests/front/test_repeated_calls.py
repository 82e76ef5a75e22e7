"""Calls whose typed bodies are copied: the program is the one that typing each call gives."""

import dataclasses
import types

import pytest

import cutile as ct
from cutile.front import repeated_calls
from cutile.front.program import type_kernel
from cutile.ir.check import check
from cutile.ir.text import to_text
from cutile.ir.walk import walk
from tests.front.compiling import A1, F32, I32, C, cell, refused


@pytest.fixture
def copies(monkeypatch):
    """Counts the calls that were copied."""
    found = []

    def counted(c, call):
        term = again(c, call)
        if term is not None:
            found.append(term)
        return term

    again = repeated_calls.again
    monkeypatch.setattr(repeated_calls, "again", counted)
    return found


def described(kernel):
    """All that a program says, with spans and call sites."""
    nodes = [(type(n).__name__, n.span, getattr(n, "def_span", None), [v.name for v in getattr(n, "results", ())])
             for n in walk(kernel.body)]
    return to_text(kernel), nodes


def same(fn, *kinds):
    """Check that copying calls gives the program that typing them gives."""
    kernel = type_kernel(fn, kinds).kernel
    check(kernel)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeated_calls, "again", lambda c, call: None)
        assert described(kernel) == described(type_kernel(fn, kinds).kernel)


# ------------------------------------------------------------------ bodies of all kinds


def straight(x, y):
    z = x * y
    return z + x, (y, 3)


def nested(x, y):
    a, (b, n) = straight(x, y)
    return straight(b, a)[0] * n


def branching(n, x):
    if n > 3:
        x = x + 1
    return x if n > 4 else x * 2


def early(n):
    if n == 0:
        return 7
    if n == 1:
        return n + 1
    return n * n


def looping(n, total):
    for i in range(0, n, 2):
        if i == 5:
            break
        total += i
    while total > 3:
        total -= n
        if total == n:
            continue
    while True:
        total += 1
        if total > 0:
            return total


def reducing(x, n):
    t = ct.full((8,), 1, ct.int32) + n
    return ct.reduce(t, 0, lambda a, b: ct.maximum(a, b) + n, 0) + x


def printing(x):
    ct.printf("%d", x)
    ct.assert_(x > 0, "positive")
    return x


def falls_off(x):
    ct.printf("%d", x)


@pytest.mark.parametrize(("f", "count"), [
    (straight, 2), (nested, 3), (branching, 2), (early, None), (looping, 2), (reducing, 2), (printing, None),
    (falls_off, None)])
def test_a_copy_is_what_typing_gives(copies, f, count):
    def two(n):
        f(n, n + 1)
        f(n + 2, n + 3)
        f(n, n * 2)

    def one(n):
        f(n)
        f(n + 1)

    same(one if count is None else two, I32)
    assert len(copies) >= (count or 1)


def helper(x, y=2):
    return x * y + x


@dataclasses.dataclass(frozen=True)
class Pair:
    a: object
    b: object


@dataclasses.dataclass(frozen=True)
class Other:
    a: object
    b: object

    def scaled(self):
        return self.a * 5


@dataclasses.dataclass(frozen=True)
class Scaled(Other):
    def scaled(self):
        return self.a * 7


def of_pair(p):
    return Pair(p.b * p.b, p.a)


def scaled(p):
    return p.scaled()


def test_calls_that_differ_are_typed(copies):
    """Types, constants, kinds of constants, strict dtypes, dtypes, defaults, equal values at other places."""
    def k(n, x):
        helper(n)
        helper(x)
        helper(n, 3)
        helper(n, True)
        helper(n, ct.int32(3))
        helper(n, ct.int64(3))
        helper(x, 0.0)
        helper(x, -0.0)
        helper(n, n)
        helper(n, n + 1)
        of_pair(Pair(n, n))
        of_pair(Pair(n, n + 1))
        of_pair(Pair(n, 2))
        scaled(Other(n, 2))
        scaled(Scaled(n, 2))

    same(k, I32, F32)
    assert not copies


def test_equal_calls_are_copied(copies):
    def k(n, x):
        for y in (n + 1, n + 2):
            helper(y)
            helper(y, 2)
            helper(y, 3)
            of_pair(of_pair(Pair(y, n)))

    def unrolled(n, x):
        a = helper(n), helper(n + 1), helper(a_global), helper(a_global)
        of_pair(of_pair(Pair(n, n + 1)))
        return None if a else None

    same(unrolled, I32, F32)
    assert len(copies) == 3
    refused(k, I32, F32, cls=ct.TileTypeError)


a_global = 5


def test_arrays_and_one_value_at_two_places(copies):
    def move(source, target, i):
        ct.store(target, i, ct.load(source, i, 8) + 1)

    def k(x, y, n):
        move(x, y, n)
        move(y, x, n)  # copied
        move(x, x, n)
        move(y, y, n + 1)  # copied

    same(k, A1, A1, I32)
    assert len(copies) == 2


# ------------------------------------------------------------------ closures


def test_a_closure_sees_what_its_variables_are_now(copies):
    def k(n, x):
        scale = n
        def f(y):
            return y * scale
        def g(y):
            return f(y) + f(y + 1)
        f(n)  # y and scale are one value
        f(n + 1)
        scale = n + 7
        f(n)  # copied: other value, same type
        g(n)  # both calls of f in it are copied
        scale = 3
        g(n)  # the second f in it is copied
        scale = x
        g(n)  # the second f in it is copied
        g(n + 1)  # copied

    same(k, I32, F32)
    assert len(copies) == 1 + 2 + 1 + 1 + 1


def test_functions_that_differ_by_what_they_capture(copies):
    def make(m):
        def f(x):
            return x * m
        return f

    two, three = make(2), make(3)

    def k(n):
        two(n)
        three(n)
        two(n + 1)  # copied
        make(2)(n)
        make(2)(n)  # functions whose scopes have ended are typed again
        (lambda y: y + n)(n)
        (lambda y: y + n)(n)

    same(k, I32)
    assert len(copies) == 2  # and the second make(2)


def called(f, x):
    return f(x)


def test_functions_of_one_code_with_other_globals(copies):
    two = cell("def f(x):\n    g = lambda y: y * SCALE\n    return called(g, x)\n", SCALE=2, called=called)["f"]
    three = types.FunctionType(two.__code__, {**two.__globals__, "SCALE": 3})

    def k(n):
        two(n)
        three(n)

    same(k, I32)
    assert not copies


def test_recursion_with_constants(copies):
    def power(x, n):
        return x if n == 1 else power(x, n - 1) * x

    def k(x):
        power(x, 4)
        power(x, 3)  # copied
        power(x + 1, 5)  # power(…, 4) in it is copied

    same(k, I32)
    assert len(copies) == 2


# ------------------------------------------------------------------ what forbids a copy


def test_static_code_runs_for_each_call(copies):
    """In a module of few globals: `globals()` makes all of them dependencies."""
    k = cell("""
        state, setting = [1], 2

        def reads_state(x):
            return x * ct.static_eval(state[0])

        def of_setting(x):
            return x * setting

        def change_setting(value):
            globals()["setting"] = value

        def k(x):
            reads_state(x)
            reads_state(x)
            of_setting(x)
            ct.static_eval(change_setting(3))
            of_setting(x)
            of_setting(x)  # copied
    """)["k"]
    kernel = type_kernel(k, (I32,)).kernel
    assert [n.attrs["value"] for n in walk(kernel.body) if getattr(n, "op", None) and n.op.name == "constant"] == [
        1, 1, 2, 3, 3]
    assert len(copies) == 1


def wrong(x):
    return x + "a"


def test_no_call_is_copied_after_an_error(copies):
    def k(x, y):
        helper(x)
        wrong(x)
        helper(x)
        wrong(y)

    with pytest.raises(ct.TileTypeError) as e:
        type_kernel(k, (I32, F32))
    assert [error.loc.call_site.line - k.__code__.co_firstlineno for error in e.value.errors] == [2, 4]
    assert not copies


def deep(x, n):
    return x if n == 0 else deep(x, n - 1) + 1


def test_a_copy_does_not_pass_the_limit_of_nested_calls(copies):
    def chain(x, n):
        return deep(x, 10) if n == 0 else chain(x, n - 1)

    def k(x, N):
        deep(x, 10)
        chain(x, N)

    same(k, I32, C(987))
    assert copies
    refused(k, I32, C(990), cls=ct.TileRecursionError)
