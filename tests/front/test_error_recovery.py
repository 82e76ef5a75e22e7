"""Refused Python is skipped: other errors are reported with it, and no consequences of it."""

from __future__ import annotations

import textwrap

import pytest

import cutile as ct
from cutile.front.program import type_kernel
from tests.front.compiling import A1, I32, cell, refused
from tests.front.test_syntax import REFUSED

HEAD = "def f(a): return a\ndef k(x, n):\n"


def kernel(*parts: str):
    return cell(HEAD + textwrap.indent("\n".join(parts), "    "))["k"]


def errors(fn, *kinds) -> list[ct.TileError]:
    with pytest.raises(ct.TileError) as caught:
        type_kernel(fn, kinds)
    return list(caught.value.errors)


LEAVES = {"ST-8.plain", "ST-8.bare", "ST-8.from"}  # control does not get past them
TOO = [pytest.param(body, id=i) for i, body, _, _ in REFUSED if i not in LEAVES | {"ST-7.nonlocal"}]


@pytest.mark.parametrize("body", TOO)
def test_errors_before_and_behind_come_too(body):
    found = errors(kernel("ct.exp('before')", body, "y = ct.load(x, (0, 0), 4)"), A1, I32)
    assert isinstance(found[0], ct.TileSyntaxError), "what is refused comes first, and decides the class"
    assert ["exp" in str(e.message) for e in found[1:]] == [True, False], "\n".join(e.message for e in found)
    assert 'argument "index" of load()' in found[2].message


# The value of each is used in many ways; all errors about that are consequences.
USES = ["b = {0} + 1", "ct.store(x, 0, {0})", "c, d = {0}", "{0}(n)", "e = {0}.shape[{0}]", "for i in range({0}): n = {0}",
        "while {0}: n += {0}", "h = lambda t: t + {0}\nh(1)", "if {0}: z = 1\nelse: z = 2.0", "return {0}", "f({0})[0]",
        "print(f'{{{0}}}')", "w = ct.reduce({0}, 0, lambda p, q: p, 0)", "y = ct.static_eval({0})", "{0}[0] = 1"]
VALUES = ["[1]", "{1: 2}", "{1}", "[i for i in (1, 2)]", "(i for i in (1, 2))", "tuple(i for i in range(3))",
          "f(**{'a': 1})", "f'{n!r}'", "(b := 3)", "ct.static_eval(3, 4)", "(yield n)"]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("value", VALUES)
def test_a_lost_value_is_no_further_error(value, use):
    refused(kernel(f"a = {value}", use.format("a")), A1, I32, cls=ct.TileSyntaxError)


@pytest.mark.parametrize("code, name", [
    ("import colorsys", "colorsys"), ("import os.path as q", "q"), ("from os import walk as q", "q"),
    ("class q: pass", "q"), ("global q", "q"), ("try:\n    q = 1\nexcept ValueError as r:\n    pass", "q"),
    ("try:\n    q = 1\nexcept ValueError as r:\n    pass", "r"), ("match n:\n    case q: pass", "q"),
    ("match x:\n    case [*q]: pass", "q"), ("match x:\n    case {1: 2, **q}: pass", "q"), ("q, *r = (1, 2)", "r"),
    ("async def q(): pass", "q"), ("@ct.function\ndef q(): pass", "q"), ("f((q := 1))", "q"), ("del n", "n"),
    ("while n > 0:\n    q = 1\nelse:\n    r = 2", "r"), ("for q.a in range(3):\n    r = 1", "r"),
    ("for i in ct.static_iter(1, 2):\n    q = 1", "q"), ("n = 1.5\nfor n, *q in range(3): pass", "n"),
])
@pytest.mark.parametrize("use", USES)
def test_a_lost_name_is_no_further_error(code, name, use):
    refused(kernel(code, use.format(name)), A1, I32, cls=ct.TileSyntaxError)


def test_what_a_helper_gives_is_lost_with_its_yield():
    def numbers(n):
        yield n

    def k(n):
        for i in numbers(n):
            n = n + i

    refused(k, I32, cls=ct.TileSyntaxError, says="yield")


def test_a_raise_ends_its_path():
    def helper(n):
        if n > 0:
            return 1.5
        raise ValueError

    def k(x, n):
        ct.store(x, 0, helper(n))
        ct.store(x, 0, helper(n) + "")

    assert [type(e) for e in errors(k, A1, I32)] == [ct.TileSyntaxError, ct.TileTypeError]


@pytest.mark.parametrize("leaves", ["return 1", "return", "break", "continue"])
def test_a_statement_that_may_leave_ends_the_search(leaves):
    """It is unknown whether control reaches the rest, and with which values."""
    body = f"while n > 0:\n    try:\n        {leaves}\n    finally:\n        n = ''"
    assert len(errors(kernel(body, "ct.exp('behind')"), A1, I32)) == 1


def test_a_context_manager_is_refused_as_a_whole():
    import contextlib

    @contextlib.contextmanager
    def manager():
        try:
            yield 1
        finally:
            pass

    def k(n):
        with manager() as m:
            ct.exp(m + "")

    refused(k, I32, cls=ct.TileSyntaxError, says="try")


def test_a_helper_that_is_called_often_is_refused_once_and_its_names_stay_lost():
    def helper(n):
        import colorsys

        return colorsys.x + n

    def k(n):
        a = helper(n) + helper(n + 1)
        ct.exp(a + "")
        ct.exp("")

    found = errors(k, I32)
    assert [e.message for e in found[:1]] == ["tile code does not support import"] and len(found) == 2


def test_an_async_helper_ends_the_search():
    async def helper(n):
        return n

    def k(n):
        helper(n) + ""

    refused(k, I32, cls=ct.TileSyntaxError, says="async def")
