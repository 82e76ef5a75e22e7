import ast

import pytest

from cutile.front.definition import assigned_names
from cutile.front.source_text import definition_of
from tests.front.compiling import cell


def test_locals():
    def f(a, /, b, *c, d, **e):
        g = h = 1
        (i, [j]), k = a
        for n in b:
            with c as o:
                p: int = 1
        q: int

        def r():
            s = 1
        t = [u for u in b]
        v += lambda: w

    assert definition_of(f).locals == set("abcdeghijknoprtv")


def test_assigned_names_leave_out_inner_scopes():
    body = ast.parse("def f():\n x = 1\ny = lambda: (z := 1)\nw = tuple(q for q in p)").body
    assert assigned_names(body) == {"f", "y", "w"}


def test_span_counts_characters_not_bytes():
    space = cell("""
        def k():
            s = "größe: µ"; y = undefined
    """)
    d = definition_of(space["k"])
    name = d.node.body[1].value
    span = d.span(name)
    assert span.source_line()[span.col:span.end_col] == "undefined"


@pytest.mark.parametrize("source", [
    'def k(): s = "größe: µ"; y = undefined\n\n\n\n', 'def k(größe):\n    y = undefined\n\n\n\n',
    'def k():\n    s = "é"; y = undefined\n\n\n\n\n', 'def k():\n    s = "é"; y = undefined',
])
def test_spans_in_text_beyond_ascii_wherever_it_stands(source):
    d = definition_of(cell(source)["k"])
    span = d.span(d.node.body[-1].value)
    assert span.source_line()[span.col:span.end_col] == "undefined"
