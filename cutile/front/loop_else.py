"""`else` of loops in element functions: each element that leaves the loop otherwise than by break runs it [ELT-7].

Such a loop is written anew as one without end, in Python's syntax: what ends it is its first branch, and the other side
of that branch is the `else`. So variables are known after it that either a break or the `else` assigns.

    while test:                 while True:
        body                        if test: pass
    else:                           else: tail; break
        tail                        body

A `tail` that leaves or continues a loop around it stands behind the loop instead, under a flag that says how it ended.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from cutile.front.context import Context
from cutile.front.scope import Scope, Var
from cutile.ir.terms import Term


def type_while(c: Context, s: Scope, node: ast.While) -> bool:
    """Type a `while` with an `else`; whether control can go past it."""
    return _typed(c, s, node, node.test, [])


def type_for(c: Context, s: Scope, node: ast.For, bounds: Sequence[Term]) -> bool:
    """The same for a `for` over a range of these bounds: start, stop and step."""
    names = [f"__{what}_{node.lineno}_{node.col_offset}" for what in ("next", "stop", "step")]
    s.names |= set(names)
    for name, term in zip(names, bounds, strict=True):
        s.vars[name] = Var(term, c.span)
    following, stop, step = names
    more = ast.Compare(_read(following), [ast.Lt()], [_read(stop)])
    after, same = (ast.BinOp(_read(following), ast.Add(), _read(step)) for _ in range(2))
    no_wrap = ast.Compare(_read(following), [ast.Lt()], [after])  # a sum that wraps around is beyond the range
    advanced = ast.IfExp(no_wrap, same, _read(stop))
    return _typed(c, s, node, more, [ast.Assign([node.target], _read(following)), _assign(following, advanced)])


def _typed(c: Context, s: Scope, node: ast.For | ast.While, more: ast.expr, first: list[ast.stmt]) -> bool:
    """Type a loop that goes on while `more` holds, each time with the statements `first`."""
    tail, behind = node.orelse, []
    if any(map(_jumps, tail)):
        flag = f"__done_{node.lineno}_{node.col_offset}"
        s.names |= {flag}
        tail, behind = [_assign(flag, ast.Constant(True))], [ast.If(_read(flag), node.orelse, [])]
        first_of_all = [_assign(flag, ast.Constant(False))]
    else:
        first_of_all = []
    test = ast.If(more, first or [ast.Pass()], [*tail, ast.Break()])
    loop = ast.While(ast.Constant(True), [test, *node.body], [])
    made = [*first_of_all, loop, *behind]
    for statement in made:
        _place(statement, node)
    return c.statements(s, made)


def _jumps(node: ast.AST) -> bool:
    """Whether a statement may leave or continue the loop around it."""
    if isinstance(node, ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return False
    inner: Iterable[ast.AST] = node.orelse if isinstance(node, ast.For | ast.While) else ast.iter_child_nodes(node)
    return any(map(_jumps, inner))


def _read(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _place(node: ast.AST, where: ast.AST) -> None:
    """Give new pieces of syntax, which have no place, that of the loop's head."""
    if hasattr(node, "lineno"):
        return
    if "lineno" in node._attributes:
        node.lineno, node.col_offset = where.lineno, where.col_offset
        node.end_lineno, node.end_col_offset = where.lineno, where.end_col_offset
    for child in ast.iter_child_nodes(node):
        _place(child, where)
