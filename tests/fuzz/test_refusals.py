"""A valid kernel with one refused piece has that error and no other: errors that follow from it are not reported."""

from __future__ import annotations

import ast
import copy
from random import Random

import pytest

import cutile as ct
from tests.fuzz import corpus
from tests.fuzz.outcomes import build, source_of

PIECES = 30  # pieces of one kernel


def replaced(tree: ast.FunctionDef, rng: Random) -> ast.FunctionDef:
    """The kernel with one expression, or one statement that does not leave a loop, wrapped in Python that tile code
    lacks.

    Conditions stay: if one is lost, nobody knows whether it was constant, and code is typed that was not typed before.
    """
    tree = copy.deepcopy(tree)
    static = {id(m) for n in ast.walk(tree) if isinstance(n, ast.Call) and "static_" in ast.unparse(n.func)
              for m in ast.walk(n)}
    parents = {c: n for st in tree.body for n in ast.walk(st) for c in ast.iter_child_nodes(n)}
    pieces = [n for n in parents if isinstance(n, ast.expr) and isinstance(getattr(n, "ctx", ast.Load()), ast.Load)
              and not isinstance(n, ast.Starred) and not isinstance(parents[n], ast.FormattedValue | ast.JoinedStr)]
    conditions = {id(m) for n in [tree, *parents] for test in (getattr(n, "test", None), *getattr(n, "ifs", ()))
                  if test is not None for m in ast.walk(test)}
    pieces = [n for n in pieces if id(n) not in conditions]
    pieces += [n for n in parents if isinstance(n, ast.Assign | ast.Expr | ast.AugAssign | ast.AnnAssign)]
    piece = rng.choice([n for n in pieces if id(n) not in static])
    parent = parents[piece]
    if isinstance(piece, ast.expr):
        walrus = ast.NamedExpr(ast.Name("new", ast.Store()), piece)
        made = rng.choice([ast.List([piece], ast.Load()), ast.Set([piece]), walrus])
    else:
        made = ast.Try([piece], [], [], [ast.Pass()])
    for name, value in ast.iter_fields(parent):
        if value is piece:
            setattr(parent, name, made)
        elif isinstance(value, list) and piece in value:
            value[value.index(piece)] = made
    return ast.fix_missing_locations(tree)


@pytest.mark.parametrize("kernel", corpus.FUNCTIONS, ids=lambda f: f.__name__)
def test_what_follows_from_a_refusal_is_not_reported(kernel):
    helpers = "\n\n".join(ast.unparse(source_of(f)) for f in corpus.HELPERS)
    for seed in range(PIECES):
        text = ast.unparse(replaced(source_of(kernel), Random(f"{kernel.__name__} {seed}")))
        fn = build(f"{helpers}\n\n{text}", kernel.__name__, seed)
        if fn is None:
            continue
        grid, args = corpus.arguments(kernel)
        with pytest.raises(ct.TileSyntaxError) as caught:
            ct.launch(None, grid, ct.kernel(fn), tuple(args))
        assert all("tile code does not support" in e.message or ":=" in e.message for e in caught.value.errors), (
            f"{text}\n\n{caught.value}")
