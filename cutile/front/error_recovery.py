"""Skipping Python that syntax.py refused, so that the other errors of a kernel are found too.

The value of a skipped part, and the variables that it assigns, are poison, so that no consequence of it is reported.
"""

from __future__ import annotations

import ast

from cutile.front.context import Context, StopCompiling
from cutile.front.scope import ReturnPoint, Scope, Var
from cutile.ir.nodes import Return
from cutile.ir.terms import POISON, Term

_LEAVING = (ast.Return, ast.Break, ast.Continue)


def expression(c: Context, s: Scope, node: ast.expr) -> Term:
    """Skip a refused expression."""
    poison(c, s, node)
    if isinstance(node, ast.Yield | ast.YieldFrom):  # so the function is a generator: its result becomes poison
        s.returns.append(ReturnPoint(POISON, c.region, Return((), c.span), c.span))
    return POISON


def statement(c: Context, s: Scope, node: ast.stmt) -> bool:
    """Skip a refused statement. Returns False after a raise. Typing stops if the statement may leave a loop."""
    if any(isinstance(n, _LEAVING) for n in ast.walk(node)):
        raise StopCompiling
    poison(c, s, node)
    return not isinstance(node, ast.Raise)


def declare(s: Scope, assigned: frozenset[str]) -> None:
    """Make names assigned in refused parts local, and silence errors about them."""
    s.names |= assigned
    s.unknown |= assigned


def poison(c: Context, s: Scope, node: ast.AST) -> None:
    """Give poison to all names that a part with an error assigns."""
    for name in names(node):
        s.vars[name] = Var(POISON, c.span)


def names(node: ast.AST) -> frozenset[str]:
    """All names that a piece of Python may assign: by assignment, import, declaration or pattern."""
    found: set[str | None] = set()
    for n in ast.walk(node):
        match n:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                found.add(n.id)
            case ast.alias():
                found.add(n.asname or n.name.partition(".")[0])
            case ast.Global() | ast.Nonlocal():
                found.update(n.names)
            case ast.MatchMapping():
                found.add(n.rest)
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar() | ast.ClassDef() | ast.FunctionDef() | (
                    ast.AsyncFunctionDef()):
                found.add(n.name)
    return frozenset(filter(None, found))
