"""Python that tile code does not have is refused before anything in the function is typed [EX-*, ST-*, LIM-1]."""

import ast
import contextlib

import pytest

import cutile as ct
from cutile.front.program import type_kernel
from cutile.front.syntax import UNSUPPORTED
from tests.front.compiling import I32, cell, refused, typed

# Refused even where control does not get to it: clause, source, the source under the carets, part of the message.
REFUSED = [
    ("ST-5", "n.a = 1", "n.a", "cannot assign to attributes"),
    ("ST-7.del", "del n", "del n", "del"),
    ("ST-7.global", "global q", "global q", "global"),
    ("ST-7.nonlocal", "def g():\n    nonlocal n", "nonlocal n", "nonlocal"),
    ("ST-7.import", "import math", "import math", "import"),
    ("ST-7.from", "from math import pi", "from math import pi", "from … import"),
    ("ST-7.assert", "assert n", "assert n", "assert"),
    ("ST-7.try", "try:\n    pass\nfinally:\n    pass", "try:", "try"),
    ("ST-7.try-star", "try:\n    pass\nexcept* ValueError:\n    pass", "try:", "try"),
    ("ST-7.match", "match n:\n    case 1: pass", "match n:", "match"),
    ("ST-7.class", "class A: pass", "class A: pass", "class"),
    ("ST-7.async-def", "async def g(): pass", "async def g(): pass", "async def"),
    ("ST-8.plain", "raise ValueError", "raise ValueError", "raise"),
    ("ST-8.bare", "raise", "raise", "raise"),
    ("ST-8.from", "raise ct.static_exception(ValueError()) from None",
     "raise ct.static_exception(ValueError()) from None", "raise"),
    ("ST-10.else", "while n > 0:\n    pass\nelse:\n    n = 1", "n = 1", "else on a loop"),
    ("ST-11.else", "for i in range(n):\n    pass\nelse:\n    n = 1", "n = 1", "else on a loop"),
    ("ST-2.starred", "a, *b = (1, 2, 3)", "*b", "starred assignment"),
    ("ST-17.decorator", "@ct.function\ndef g(): pass", "ct.function", "decorators on nested functions"),
    ("ST-17.yield", "yield n", "yield n", "yield"),
    ("ST-17.nested-yield", "def g():\n    yield n", "yield n", "yield"),
    ("EX-3.list", "a = [1]", "[1]", "a list"),
    ("EX-3.dict", "a = {1: 2}", "{1: 2}", "a dict"),
    ("EX-3.set", "a = {1}", "{1}", "a set"),
    ("EX-3.listcomp", "a = [i for i in (1, 2)]", "[i for i in (1, 2)]", "a list comprehension"),
    ("EX-3.dictcomp", "a = {i: 1 for i in (1, 2)}", "{i: 1 for i in (1, 2)}", "a dict comprehension"),
    ("EX-3.setcomp", "a = {i for i in (1, 2)}", "{i for i in (1, 2)}", "a set comprehension"),
    ("EX-3.genexp", "a = (i for i in (1, 2))", "(i for i in (1, 2))", "generator expressions"),
    ("EX-3.tuple-range", "a = tuple(i for i in range(3))", "range(3)", "must loop over ct.static_iter"),
    ("EX-3.tuple-element", "a = tuple([i] for i in ct.static_iter((1, 2)))", "[i]", "a list"),
    ("EX-3.tuple-condition", "a = tuple(i for i in ct.static_iter((1, 2)) if [i])", "[i]", "a list"),
    ("EX-3.lambda", "g = lambda: [1]", "[1]", "a list"),
    ("EX-3.default", "g = lambda a=[1]: 1", "[1]", "a list"),
    ("EX-7.dict-literal", "f(**{'a': 1})", "{'a': 1}", "** of a dict display"),
    ("EX-15.conversion", "a = f'{n!r}'", "{n!r}", "!r, !s, !a or ="),
    ("EX-15.equals", "a = f'{n=}'", "{n=}", "!r, !s, !a or ="),
    ("EX-15.spec", "a = f'{n:{n}}'", "{n:{n}}", "must be literal text"),
    ("EX-16.walrus", "a = (b := 3)", "b := 3", ":="),
    ("SEVAL-1.keyword", "a = ct.static_eval(expr=3)", "ct.static_eval(expr=3)", "plain positional"),
    ("SEVAL-1.count", "a = ct.static_eval(3, 4)", "ct.static_eval(3, 4)", "takes 1 argument, got 2"),
    ("SEVAL-1.assert-count", "ct.static_assert()", "ct.static_assert()", "takes 1 or 2 arguments, got 0"),
    ("SEVAL-4.walrus", "a = ct.static_eval((b := 3))", "b := 3", ":="),
]


def kernel(body: str):
    lines = "\n".join("    " + line for line in body.splitlines())
    return cell(f"def f(a): return a\ndef k(n):\n    if False:\n        pass\n{lines}\n")["k"]


@pytest.mark.parametrize("body,piece,says", [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_refused(body, piece, says):
    if piece[0] == "{" and piece.startswith("{n"):
        piece = None  # before Python 3.12, fields of f-strings have no positions
    refused(kernel(body), I32, cls=ct.TileSyntaxError, at=piece, says=says)


@pytest.mark.parametrize("body,piece,says", [r[1:] for r in REFUSED if not r[0].endswith("nonlocal")],
                         ids=[r[0] for r in REFUSED if not r[0].endswith("nonlocal")])
def test_refused_where_it_is_not_reached(body, piece, says):
    inner = "if False:\n" + "\n".join("    " + line for line in body.splitlines())
    refused(kernel(inner), I32, cls=ct.TileSyntaxError, says=says)
    refused(kernel("return\n" + body), I32, cls=ct.TileSyntaxError, says=says)


def test_starred_argument_of_a_static_construct():  # SEVAL-1
    refused(kernel("ct.static_eval(*n)"), I32, cls=ct.TileSyntaxError, says="plain positional")


def test_every_refused_node_says_what_it_is():
    for node, (what, _) in UNSUPPORTED.items():
        assert issubclass(node, ast.AST) and what


def test_all_of_a_function_in_program_order():
    def k(n):
        a = [1]
        for i in range(n):
            b = {i: a}
        else:
            pass
        assert b

    e = refused(k, I32, cls=ct.TileSyntaxError, says="a list", alone=False)
    assert [x.message.removeprefix("tile code does not support ") for x in e.errors] == [
        "a list", "else on a loop", "a dict", "assert"]


def test_what_a_static_construct_holds_is_python():  # SEVAL-2
    def k(n):
        a = ct.static_eval(sum([i for i in {1: 2} if (lambda: [i])()]))
        for i in ct.static_iter([{1}, {2}] and [1, 2]):
            ct.static_assert(a == 1 and i in [1, 2], f"{a!r}")

    typed(k, I32)


def test_unreached_call_is_not_looked_at():
    def helper():
        return [1]

    def k(n):
        if False:
            helper()

    typed(k, I32)


def test_helper_is_refused_at_its_line_with_the_call_chain():
    def helper():
        return [1]

    def k(n):
        helper()

    e = refused(k, I32, cls=ct.TileSyntaxError, at="[1]")
    assert [s.function for s in e.loc.frames()] == ["k", "helper"]


def test_patterns_are_no_lists():  # ST-2
    def k(n):
        [a, b] = 1, 2
        (c, [d, e]) = 1, (2, 3)
        ct.static_assert((a, b, c, d, e) == (1, 2, 1, 2, 3))

    typed(k, I32)


def test_async_kernel():  # KERN-7
    async def k(n):
        pass

    refused(k, I32, cls=ct.TileSyntaxError, says="async def")


@pytest.mark.parametrize("head", ["*args", "n, **kwargs", "*, n, **kwargs"])
def test_star_parameters_of_a_kernel(head):  # KERN-6
    k = cell(f"def k({head}): pass")["k"]
    with pytest.raises(ct.TileSyntaxError, match="cannot take"):
        type_kernel(k, (I32,))


def test_annotations_are_not_looked_at_but_values_are():
    typed(cell("def k(n):\n    x: [i for i in n] = 1")["k"], I32)
    refused(cell("def k(n):\n    x: int = [i for i in n]")["k"], I32, cls=ct.TileSyntaxError, at="[i for i in n]")


def test_targets_of_with_are_looked_at():
    refused(cell("def k(n):\n    with manager() as n.x:\n        pass", manager=manager)["k"], I32,
            cls=ct.TileSyntaxError, at="n.x", says="cannot assign to attributes")


@contextlib.contextmanager
def manager():
    yield 1
