"""Rewrites syntax to silence warnings that Python gave already, when it compiled the user's file.

Python warns of literals that are compared by `is`, called, subscripted or asserted. It does not warn of `[literal][0]`.
"""

from __future__ import annotations

import ast
import copy
from typing import Any

_LITERALS = (ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp,
             ast.GeneratorExp, ast.Lambda, ast.JoinedStr)


def silent(node: ast.AST) -> Any:
    """The syntax itself or, if Python would warn of it, a copy with the same meaning and without warnings."""
    suspect = _literals(node)
    return _hidden(node, suspect) if suspect else node


def warns(n: ast.AST) -> bool:
    """Whether Python warns of a node each time it compiles the node."""
    match n:
        case ast.Call(func=called):
            return isinstance(called, _LITERALS) and not isinstance(called, ast.Lambda)
        case ast.Subscript(value=ast.Constant(value=v)) if not isinstance(v, str | bytes):
            return True
        case ast.Subscript(value=ast.Set() | ast.SetComp() | ast.GeneratorExp() | ast.Lambda()):
            return True
        case ast.Subscript(value=ast.Constant() | ast.Tuple() | ast.List() | ast.ListComp() | ast.JoinedStr()):
            return isinstance(n.slice, _LITERALS) and not isinstance(getattr(n.slice, "value", None), int)
        case ast.Compare():
            return any(isinstance(o, ast.Is | ast.IsNot) for o in n.ops) and any(
                map(_is_compared_by_value, (n.left, *n.comparators)))
        case ast.Assert():
            return isinstance(n.test, ast.Tuple)
    return False


def _is_compared_by_value(n: ast.expr) -> bool:
    match n:
        case ast.Constant(value=None | bool()):
            return False
        case ast.Constant(value=value):
            return value is not ...
        case ast.Tuple(elts=items):
            return all(isinstance(i, ast.Constant) for i in items)
    return False


def _literals(node: ast.AST) -> set[ast.expr]:
    return {x for n in ast.walk(node) if warns(n) for x in _parts(n) if isinstance(x, _LITERALS)}


def _parts(n: ast.AST) -> list[ast.expr]:
    """The operands that a warning about this node may be about."""
    match n:
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Call(func=called):
            return [called]
        case ast.Subscript(value=value, slice=index):
            return [value, index]
        case ast.Assert(test=test):
            return [test]
    return []


def _hidden(node: Any, suspect: set[ast.expr]) -> Any:
    """A copy of an expression in which each operand `x` in `suspect` is written as `[x][0]`."""
    if isinstance(node, list):
        return [_hidden(n, suspect) for n in node]
    if not isinstance(node, ast.AST):
        return node
    made = copy.copy(node)
    for name, value in ast.iter_fields(node):
        setattr(made, name, _hidden(value, suspect))
    if node not in suspect:
        return made
    listed = ast.Subscript(ast.List([made], ast.Load()), ast.Constant(0), ast.Load())
    return ast.fix_missing_locations(ast.copy_location(listed, node))
