"""Python warns of code exactly if `warns` says so, and never of what `silent` makes of it, which means the same."""

from __future__ import annotations

import ast
import warnings

import pytest

from cutile.front.syntax_warnings import silent, warns

VALUES = ("None", "True", "...", "1", "2.5", "'a'", "b'a'", "()", "(1, 2)", "[1, 2]", "{1}", "{1: 2}", "f'{x}'",
          "[i for i in x]", "{i for i in x}", "{i: i for i in x}", "(i for i in x)", "(lambda: 1)", "x")
PIECES = (
    *(f"{v}(0)" for v in VALUES), *(f"{v}[{i}]" for v in VALUES for i in ("0", "'a'", "(0, 1)", "x", "1.5", "None")),
    *(f"x {op} {v}" for v in VALUES for op in ("is", "is not")), *(f"{v} is x" for v in VALUES), "1 < x is 2 < 3",
)


def warned(tree: ast.Module) -> list:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        compile(ast.fix_missing_locations(tree), "<piece>", "exec")
    return [w for w in found if issubclass(w.category, SyntaxWarning)]


@pytest.mark.parametrize("piece", (*PIECES, "assert (x, 'text')"))
def test_pieces(piece):
    tree = ast.parse(piece)
    assert not warned(tree) or any(map(warns, ast.walk(tree)))
    assert not warned(silent(tree))


def test_nothing_is_said_to_warn_that_does_not():
    wrong = [p for p in PIECES if not warned(ast.parse(p)) and any(map(warns, ast.walk(ast.parse(p))))]
    assert wrong == []


@pytest.mark.parametrize("piece", [p for p in PIECES if not p.endswith("(0)")])
def test_silent_pieces_mean_the_same(piece):
    def value(tree):
        try:
            found = eval(compile(ast.fix_missing_locations(tree), "<piece>", "eval"), {"x": [4, 5]})
            return repr(found) if not hasattr(found, "__next__") and not callable(found) else type(found)
        except Exception as e:
            return type(e)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        assert value(silent(ast.parse(piece, mode="eval"))) == value(ast.parse(piece, mode="eval"))
