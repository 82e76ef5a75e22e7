"""Statements: assignment, `if`, `return`, `with`; loops are in loops.py [ST-*].

`statements` types statements until control leaves. The sides of a branch work on copies of the scope's variables, and
the copies are joined after it (control_flow.py).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from cutile.errors import TileError, TileSyntaxError
from cutile.front import context_managers, error_recovery, expr, loops, operators, special_methods, static
from cutile.front.assignment import assign
from cutile.front.context import Context
from cutile.front.control_flow import branch, return_value, run_cleanups
from cutile.front.scope import Scope, Var
from cutile.ir.nodes import Bind, Known
from cutile.ir.recursion import recursive
from cutile.ir.terms import NONE


@recursive
def statements(c: Context, s: Scope, body: Iterable[ast.stmt]) -> bool:
    """Type statements in order; False if control cannot reach their end."""
    outer = c.span
    try:
        for node in body:
            start, c.span = len(c.region.nodes), s.span(node)
            falls = True
            try:
                skipped = node in c.refused
                falls = error_recovery.statement(c, s, node) if skipped else STATEMENTS[type(node)](c, s, node)
            except TileError as e:
                c.report(e)
                error_recovery.poison(c, s, node)
            _mark(c, node, start)
            if not falls:
                return False
        return True
    finally:
        c.span = outer


def _mark(c: Context, node: ast.stmt, start: int) -> None:
    """Mark the line of a statement that appended nothing, so that debuggers can stop there and coverage counts it."""
    nodes, line = c.region.nodes, c.span.line
    if len(nodes) > start and nodes[-1].span.line == line:  # as after most; this is quick
        return
    if not _is_docstring(node) and not any(n.span.line == line for n in nodes[start:]):
        nodes.insert(start, Bind("", Known(None), c.span))


# ------------------------------------------------------------------ assignment


def _assign_stmt(c: Context, s: Scope, node: ast.Assign) -> bool:
    only_names = all(isinstance(t, ast.Name) for t in node.targets)
    term = (expr.evaluate_unused if only_names else expr.evaluate)(c, s, node.value)
    for t in node.targets:
        assign(c, s, t, term, s.span(t) if isinstance(t, ast.Subscript) else c.span)
    return True


def _ann_assign(c: Context, s: Scope, node: ast.AnnAssign) -> bool:
    if node.value is not None:
        assign(c, s, node.target, expr.evaluate(c, s, node.value), c.span)
    return True


def _aug_assign(c: Context, s: Scope, node: ast.AugAssign) -> bool:
    load = ast.copy_location(_as_load(node.target), node.target)
    left, right = expr.evaluate(c, s, load), expr.evaluate(c, s, node.value)
    result = special_methods.in_place(c, operators.BINARY[type(node.op)][2], left, right)
    if result is None:
        result = operators.binary(c, type(node.op), left, right)
    assign(c, s, node.target, result, c.span)
    return True


def _as_load(target: ast.AST) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Subscript():
            return ast.Subscript(target.value, target.slice, ast.Load())
    return target


def _expr_stmt(c: Context, s: Scope, node: ast.Expr) -> bool:
    if not _is_docstring(node):
        expr.evaluate_unused(c, s, node.value)
    return True


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _function_def(c: Context, s: Scope, node: ast.FunctionDef) -> bool:
    term = expr.make_closure(c, s, node)
    s.vars[node.name] = Var(term, c.span)
    c.bind(node.name, term, c.span)
    return True


# ------------------------------------------------------------------ if


def _if(c: Context, s: Scope, node: ast.If) -> bool:
    with c.at(s.span(node.test)):
        cond = expr.condition(c, s, node.test)
    if isinstance(cond, bool):
        return statements(c, s, node.body if cond else node.orelse)
    c.need_branch_free("a branch on a run-time value", s.span(node.test))
    return branch(c, s, cond, lambda: statements(c, s, node.body), lambda: statements(c, s, node.orelse))


# ------------------------------------------------------------------ return and raise

# `return` stores its value under this name, so that closures in the value capture variables when context managers end.
_RETURNED = "return"


def _return(c: Context, s: Scope, node: ast.Return) -> bool:
    if s.unrolling:
        c.report(TileSyntaxError("return cannot be used in the body of a static_iter loop",
                                 help="assign to a variable and return it after the loop"))
        return False
    term = NONE if node.value is None else expr.evaluate(c, s, node.value)
    s.vars[_RETURNED] = Var(term, c.span)
    falls = run_cleanups(c, s, 0)
    term = s.vars.pop(_RETURNED).term
    if falls:
        return_value(c, s, term)
    return False


def _raise(c: Context, s: Scope, node: ast.Raise) -> bool:
    static.exception(c, s, node.exc)
    return False


def _with(c: Context, s: Scope, node: ast.With) -> bool:
    return context_managers.enter(c, s, node.items, node.body)


def _pass(c: Context, s: Scope, node: ast.stmt) -> bool:
    return True


STATEMENTS: dict[type[ast.stmt], Callable[[Context, Scope, ast.stmt], bool]] = {
    ast.Assign: _assign_stmt,
    ast.AnnAssign: _ann_assign,
    ast.AugAssign: _aug_assign,
    ast.Expr: _expr_stmt,
    ast.FunctionDef: _function_def,
    ast.If: _if,
    ast.While: loops.while_,
    ast.For: loops.for_,
    ast.Break: loops.break_,
    ast.Continue: loops.continue_,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.With: _with,
    ast.Pass: _pass,
}
