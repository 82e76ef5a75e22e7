"""What is walked of emitted syntax is all that has a position."""

from __future__ import annotations

import ast
from collections import Counter

from cutile.interp.codegen.py_ast import nodes_of

EMITTED = """
a, b = f(x, *y, k=z[0].shape)
while True:
    acc = g(a if b else -c) + {1: h(acc, key=(b,))}[1]
    for i in range(3):
        if i < acc <= 9 and not a:
            break
    else:
        del a, b
try:
    return h(1, "text", None)
except Error as e:
    raise Other(e)
with m as n:
    pass
"""


def test_nodes_of_statements_are_all_that_have_positions():
    body = ast.parse(f"def f():\n{''.join('    ' + line + chr(10) for line in EMITTED.splitlines())}").body[0].body
    want = Counter(id(n) for s in body for n in ast.walk(s) if hasattr(n, "lineno"))
    assert len(want) > 60
    assert Counter(id(n) for n in nodes_of(body) if hasattr(n, "lineno")) == want
