"""`with`: context managers made by @contextlib.contextmanager, typed in place [CM-1…3]."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cutile.errors import TileSyntaxError, TileTypeError, UnsupportedCallError
from cutile.front import call, expr, objects, stmt
from cutile.front.context import Context
from cutile.front.scope import Scope, of_function
from cutile.front.source import Definition, definition_of
from cutile.ir.terms import NONE, Manager, Static, Term, describe, is_poisoned


def enter(c: Context, s: Scope, items: Sequence[ast.withitem], body: list[ast.stmt]) -> bool:
    """with a, b: … is with a: with b: …"""
    if not items:
        return stmt.block(c, s, body)
    head, *rest = items
    manager = expr.evaluate(c, s, head.context_expr)
    where = s.definition.span(head.context_expr, s.call_site)
    if not isinstance(manager, Manager):
        if not is_poisoned(manager):
            cls = UnsupportedCallError if isinstance(manager, Static) else TileTypeError
            c.report(cls(f"`with` needs a function decorated with @contextlib.contextmanager, not a {describe(manager)}"), where)
        return enter(c, s, rest, body)
    if manager.used:
        c.report(TileTypeError("this context manager has been used already", help="call the function again for a new one"), where)
    manager.used = True
    inner, before, value, after = _split(c, manager)
    yielded = _enter_code(c, inner, before, value)
    if head.optional_vars is not None:
        stmt.assign(c, s, head.optional_vars, yielded, where)

    def leave() -> None:
        # The exit code is typed once per way out, each time from the state after the enter code.
        saved = dict(inner.vars)
        stmt.block(c, inner, after)
        inner.vars = saved

    s.cleanups.append(leave)
    falls = enter(c, s, rest, body)
    s.cleanups.pop()
    if falls:
        leave()
    return falls


def _split(c: Context, manager: Manager) -> tuple[Scope, list[ast.stmt], ast.expr | None, list[ast.stmt]]:
    """The scope of the generator's activation, and its code around the one yield."""
    fn = manager.func.obj
    definition = definition_of(fn)
    scope = of_function(fn, definition, manager.span)
    scope.unrolling = 1  # no return, break or continue
    call.check_syntax(c, scope)
    defaults = call.python_defaults(fn)
    terms = call.bind(c, definition, manager.args, manager.kwargs, lambda n: objects.capture(c, defaults[n], n))
    for name, term in terms.items():
        stmt.assign(c, scope, ast.Name(name, ast.Store()), term, definition.header_span(manager.span))
    body = definition.node.body
    at = [i for i, st in enumerate(body) if _is_yield(st)]
    if len(at) != 1 or _yields(body) != 1:
        raise TileTypeError(f"the context manager {definition.name} must contain exactly one yield, at the top level of its body",
                            definition.header_span(manager.span))
    st = body[at[0]]
    target, value = _yield_parts(definition, st)
    if target is not None:
        raise TileSyntaxError("the value of yield cannot be used", definition.span(st, manager.span))
    return scope, body[:at[0]], value, body[at[0] + 1:]


def _enter_code(c: Context, inner: Scope, before: list[ast.stmt], value: ast.expr | None) -> Term:
    stmt.block(c, inner, before)
    return NONE if value is None else expr.evaluate(c, inner, value)


def _is_yield(st: ast.stmt) -> bool:
    return isinstance(st, ast.Expr | ast.Assign) and isinstance(st.value, ast.Yield)


def _yields(body: list[ast.stmt]) -> int:
    return sum(isinstance(n, ast.Yield | ast.YieldFrom) for st in body for n in ast.walk(st))


def _yield_parts(definition: Definition, st: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    return (st.targets[0] if isinstance(st, ast.Assign) else None), st.value.value

