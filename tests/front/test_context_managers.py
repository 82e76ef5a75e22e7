"""Context managers [CM-*, ST-16]."""

import contextlib
from textwrap import dedent, indent

import numpy as np
import pytest

import cutile as ct
from cutile.errors import UnsupportedCallError
from tests.front.compiling import AI, I32, cell, refused, result, typed


@contextlib.contextmanager
def logged(x, i):
    """Counts entries in x[i] and exits in x[i + 1]."""
    n = ct.gather(x, i) + 1
    ct.scatter(x, i, n)
    yield n
    ct.scatter(x, i + 1, ct.gather(x, i + 1) + 1)


@contextlib.contextmanager
def plain():
    yield


@contextlib.contextmanager
def numbered(x):
    yield x


def test_enter_body_exit():  # CM-2
    def f(x):
        with logged(x, 0) as n, logged(x, 2):
            m = ct.gather(x, 0) * 10 + ct.gather(x, 1) + ct.gather(x, 2) * 100
        with plain() as p:
            ct.static_assert(p is None)
        with plain():
            pass
        return m * 10 + n

    x = np.zeros(4, np.int32)
    assert result(f, x) == 1101
    assert x.tolist() == [1, 1, 1, 1]


def test_tuple_targets():
    @contextlib.contextmanager
    def pair(a):
        yield a, (a + 1, 2)

    def f(n):
        with pair(n) as (a, (b, c)):
            return a * 100 + b * 10 + c

    assert result(f, 4) == 452


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_exit_code_runs_on_every_way_out(n):  # CM-2
    def reference(x, n):
        for i in range(10):
            x[0] += 1
            x[1] += 1
            if i == n:
                x[2] += 1
                x[3] += 1
                if n == 1:
                    return i
                if n == 2:
                    return 77
                continue
            if i == 4:
                return i

    def kernel(x, n):
        i = -1
        for i in range(10):
            with logged(x, 0):
                if i == n:
                    with logged(x, 2):
                        if n == 1:
                            break
                        if n == 2:
                            return 77
                        continue
                if i == 4:
                    break
        return i

    got, want = np.zeros(4, np.int32), [0] * 4
    assert result(kernel, got, n) == reference(want, n)
    assert got.tolist() == want


def test_return_value_is_evaluated_before_the_exit():  # CM-2
    def f(x):
        with logged(x, 0):
            return ct.gather(x, 1)

    assert result(f, np.zeros(2, np.int32)) == 0


def test_managers_are_values_used_once():  # CM-3
    def make(x, n):
        i = n * 2
        return logged(x, i)

    def f(x, n):
        with make(x, n) as a:
            return a

    assert result(f, np.zeros(4, np.int32), 1) == 1

    def twice(x):
        m = logged(x, 0)
        with m:
            pass
        with m:
            pass

    refused(twice, AI, at="m", says="has been used already")


ONCE = {  # code that uses `m` once on each path
    "in both branches": """
        if n > 0:
            with m as y: r = y
        else:
            with m as y: r = y * 2
    """,
    "in a branch that returns": """
        if n > 0:
            with m as y: return y
        with m as y: r = y * 2
    """,
    "in an iteration that leaves the loop": """
        r = 10
        for i in range(9):
            if i == n:
                with m as y: r = y
                break
            r = r * 2
    """,
    "in an iteration that returns": """
        for i in range(9):
            if i == n:
                with m as y: return y
        with m as y: r = y * 2
    """,
    "in a helper, on both paths": """
        def use(x):
            if n > 0:
                with x as y: return y
            else:
                with x as y: return y * 2
        r = use(m)
    """,
    "for one of two": """
        k = numbered(7)
        if n > 0:
            k = m
        with k as y: r = y
    """,
}
WANT = {"in an iteration that leaves the loop": (5, 10 * 2**9), "for one of two": (5, 7)}


@pytest.mark.parametrize("code", ONCE)
def test_managers_are_used_once_on_each_path(code):  # CM-3
    lines = indent(dedent(ONCE[code]), "    ")
    f = cell(f"def f(n):\n    m = numbered(5)\n{lines}\n    return r\n", numbered=numbered)["f"]
    assert (result(f, 3), result(f, -3)) == WANT.get(code, (5, 10))


def test_where_a_manager_is_used_again():  # CM-3
    def loop(n):
        m = plain()
        for i in range(n):
            if i > 2:
                with m:
                    pass

    def branches(n):
        m = plain()
        if n > 0:
            with m:
                pass
        with m:
            pass

    def kept(n):
        m = plain()
        for _ in range(n):
            m = plain()
            with m:
                pass

    e = refused(loop, I32, at="m", says="made outside the loop, and each iteration may use it")
    assert "call the function again" in e.help and e.loc.line == loop.__code__.co_firstlineno + 4
    e = refused(branches, I32, at="m", says="has been used already")
    (text, span), = e.notes
    assert text == "here it is used" and (span.line, e.loc.line) == tuple(
        branches.__code__.co_firstlineno + k for k in (3, 5))
    refused(kept, I32, says="context manager vs. used context manager")


def test_reductions_use_a_manager_again():  # CM-3
    def f(x):
        m = plain()

        def add(a, b):
            with m:
                return a + b

        ct.store(x, 0, ct.reduce(ct.load(x, 0, 8), 0, add, 0))

    refused(f, AI, at="m", says="outside the function given to reduce(), and each of its calls may use it")


def test_received_value_of_yield_is_none():
    @contextlib.contextmanager
    def receives(x):
        got = yield 1
        ct.scatter(x, 0, 5 if got is None else 6)

    def f(x):
        with receives(x):
            pass
        return ct.gather(x, 0)

    assert result(f, np.zeros(1, np.int32)) == 5


def test_functions_inside_managers():  # CM-1: a nested function may return
    @contextlib.contextmanager
    def with_helper(a):
        def h(b):
            return a + b
        yield h

    def f(n):
        with with_helper(n) as h:
            m = h(1)
        return m + h(2)

    assert result(f, 10) == 23


MANAGERS = {
    "conditional": ("if a:\n        yield a", ct.TileTypeError, "yield a", "exactly one yield"),
    "loop": ("for i in range(a):\n        yield a", ct.TileTypeError, "yield a", "exactly one yield"),
    "two": ("yield 1\n    yield 2", ct.TileTypeError, "yield 2", "exactly one yield"),
    "in an expression": ("b = 1 + (yield a)", ct.TileTypeError, "yield a", "exactly one yield"),
    "try": ("try:\n        yield a\n    finally:\n        pass", ct.TileSyntaxError, "try:", "try"),
    "return": ("yield a\n    return", ct.TileSyntaxError, "return", "cannot return"),
    "early return": ("if a:\n        return\n    yield a", ct.TileSyntaxError, "return", "cannot return"),
    "yield from": ("yield from a", ct.TileSyntaxError, "yield from a", "yield from"),
}


@pytest.mark.parametrize("name", MANAGERS)
def test_generators_that_are_no_managers(name):  # CM-1
    body, cls, at, says = MANAGERS[name]
    k = cell(f"""
import contextlib
@contextlib.contextmanager
def manager(a):
    {body}
def k(n):
    with manager(n):
        pass
""")["k"]
    refused(k, I32, cls=cls, at=at, says=says)


class Classic:
    def __enter__(self):
        pass

    def __exit__(self, *args):
        pass


def test_other_managers():  # CM-3
    space = {"contextlib": contextlib, "Classic": Classic, "plain": plain}
    for source, cls in (("contextlib.nullcontext()", UnsupportedCallError), ("Classic()", UnsupportedCallError),
                        ("n", ct.TileTypeError), ("f'{n}'", ct.TileTypeError), ("plain", ct.TileTypeError)):
        refused(cell(f"def k(n):\n    with {source}: pass", **space)["k"], I32, cls=cls, at=source)


def test_a_manager_without_yield():  # CM-1
    @contextlib.contextmanager
    def without():
        pass

    refused(cell("def k():\n    with cm(): pass", cm=without)["k"], says="has none")


def test_wrong_arguments():
    k = cell("def k():\n    with plain(1): pass", plain=plain)["k"]
    refused(k, says="plain(): too many positional arguments")


def test_errors_inside_show_the_call_chain():
    @contextlib.contextmanager
    def broken():
        nothing
        yield

    def k():
        with broken():
            pass

    e = refused(k, cls=ct.TileSyntaxError, at="nothing")
    assert [s.function for s in e.loc.frames()] == ["k", "broken"]


def test_loops_in_managers():
    @contextlib.contextmanager
    def summing(n):
        total = 0
        for i in range(n):
            if i == 4:
                break
            total += i
        yield total

    def f(n):
        with summing(n) as t:
            return t

    assert result(f, 3) == 3
    assert result(f, 9) == 6
    typed(lambda: None)


@contextlib.contextmanager
def logged_twice(x):
    with logged(x, 0) as n, logged(x, 2):
        yield n
        last = 5
    ct.scatter(x, 4, ct.gather(x, 4) + last)


@pytest.mark.parametrize("way", [0, 1, 2])
def test_a_yield_inside_a_with_statement(way):  # CM-1
    def kernel(x, way):
        for i in range(3):
            with logged_twice(x) as n:
                ct.static_assert(n.dtype == ct.int32)
                if way == 1:
                    break
                if way == 2:
                    continue
                ct.scatter(x, 5, n)
        return 0

    x = np.zeros(6, np.int32)
    result(kernel, x, way)
    rounds = 1 if way == 1 else 3
    assert x.tolist() == [rounds] * 4 + [5 * rounds, 3 if way == 0 else 0]


def test_two_yields_in_with_statements_are_refused():  # CM-1
    @contextlib.contextmanager
    def twice():
        with plain():
            yield 1
        with plain():
            yield 2

    refused(cell("def k():\n    with cm(): pass", cm=twice)["k"], at="yield 2", says="exactly one yield")


# ------------------------------------------------------------------ unreachable yields [CM-1]


@contextlib.contextmanager
def behind_break(n):
    for i in ct.static_iter(range(4)):
        if i == 2:
            break
            yield 1
        n = n + 1
    yield n


@contextlib.contextmanager
def behind_continue(n):
    yield n
    for i in ct.static_iter(range(3)):
        with plain():
            continue
            yield n
        yield 4


@contextlib.contextmanager
def in_branches(n):
    if not _ON:
        yield 1
    else:
        n = n + 1
    yield n
    while False:
        yield 2
    b = 1 if _ON else (yield 3)


@contextlib.contextmanager
def behind_an_error(n):
    yield n
    if not _ON:
        raise ct.static_exception(ValueError)
        yield 2


@contextlib.contextmanager
def in_a_loop_that_is_left(n):
    for i in range(n):
        n = n + i
        break
        yield i
    yield n


_ON = True


@pytest.mark.parametrize("manager", [behind_break, behind_continue, in_branches, behind_an_error,
                                     in_a_loop_that_is_left])
def test_yields_that_are_not_reached(manager):
    def f(n):
        with manager(n) as v:
            r = v * 10
        return r + 1

    assert result(f, 5) == f(5)


def test_only_yields_that_are_not_reached():
    @contextlib.contextmanager
    def never(a):
        if not _ON:
            yield a

    refused(cell("def k(n):\n    with cm(n): pass", cm=never)["k"], I32, says="has none")


def test_a_second_yield_is_found_where_it_is_reached():
    @contextlib.contextmanager
    def again(a):
        yield a
        if a > 1:
            yield 2

    k = cell("def k(n):\n    for i in range(n):\n        with cm(n): break\n", cm=again)["k"]
    refused(k, I32, at="yield 2", says="exactly one yield")


def test_code_that_never_comes_to_the_yield_or_the_end():
    @contextlib.contextmanager
    def stuck(n):
        if _ON:
            while True:
                n = n + 1
        yield n

    @contextlib.contextmanager
    def never_ends():
        yield
        while True:
            pass

    def k(x, n):
        if n > 1:
            with stuck(n) as v:
                ct.scatter(x, 0, v)
        elif n > 0:
            with never_ends():
                return
        ct.scatter(x, 0, 7)

    typed(k, AI, I32)


@pytest.mark.parametrize("leave", ["break", "continue"])
def test_static_loops_of_managers_are_left_at_compile_time_only(leave):
    """Outside context managers, static loops have no break or continue [SEVAL-7]."""
    source = f"""
import contextlib
@contextlib.contextmanager
def by_condition(n):
    for i in ct.static_iter(range(3)):
        if n > i:
            {leave}
    yield
def k(n):
    with by_condition(n):
        pass
"""
    refused(cell(source)["k"], I32, cls=ct.TileSyntaxError, at=leave, says="cannot be used in the body of a static_iter")
