"""`with`: context managers made by @contextlib.contextmanager, typed in place [CM-1…3]."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cutile.errors import TileSyntaxError, TileTypeError
from cutile.front import call, expr, objects, stmt, syntax
from cutile.front.context import Context
from cutile.front.scope import Scope, of_function
from cutile.ir.terms import NONE, Manager, Term, is_poisoned, phrase


def enter(c: Context, s: Scope, items: Sequence[ast.withitem], body: list[ast.stmt]) -> bool:
    """with a, b: … is with a: with b: …"""
    if not items:
        return stmt.block(c, s, body)
    head, *rest = items
    manager = expr.evaluate(c, s, head.context_expr)
    where = s.span(head.context_expr)
    if not isinstance(manager, Manager):
        if not is_poisoned(manager):
            c.report(TileTypeError("`with` needs a call of a function decorated with @contextlib.contextmanager, not "
                                   f"{phrase(manager)}"), where)
        return enter(c, s, rest, body)
    if manager.used:
        c.report(
            TileTypeError("this context manager has been used already", help="call the function again for a new one"),
            where,
        )
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
    definition = c.definition(fn)
    scope = of_function(fn, definition, manager.span)
    call.check_syntax(c, scope, manager=True)
    body = definition.node.body
    at = _the_yield(scope, body)
    defaults = call.python_defaults(fn)
    terms = call.bind(c, definition, manager.args, manager.kwargs, lambda n: objects.capture(c, defaults[n], n))
    for name, term in terms.items():
        stmt.assign(c, scope, ast.Name(name, ast.Store()), term, definition.header_span(manager.span))
    return scope, body[:at], body[at].value.value, [*_received(body[at]), *body[at + 1:]]


def _the_yield(s: Scope, body: list[ast.stmt]) -> int:
    """Where in the body the one yield stands [CM-1]."""
    if returns := syntax.own(body, ast.Return):
        raise TileSyntaxError("a context manager function cannot return", s.span(returns[0]),
                              help="let it run to its end: the code after yield is what leaves the with statement")
    found = syntax.own(body, ast.Yield)
    at = [i for i, st in enumerate(body) if isinstance(st, ast.Expr | ast.Assign) and isinstance(st.value, ast.Yield)]
    odd = next((y for y in found if not any(body[i].value is y for i in at)), None) or (
        found[1] if len(found) > 1 else None
    )
    if not found:
        raise TileTypeError(f"the context manager {s.function} must contain exactly one yield, and has none",
                            help="yield where the body of the with statement is to run")
    if odd is not None:
        raise TileTypeError(
            f"the context manager {s.function} must contain exactly one yield, outside of loops and branches",
            s.span(odd),
            help="yield in a statement of its own, at the top level of the function",
        )
    return at[0]


def _received(st: ast.stmt) -> list[ast.stmt]:
    """`y = yield x` gives y the value None when the with statement is left."""
    if isinstance(st, ast.Expr):
        return []
    return [ast.copy_location(ast.Assign(st.targets, ast.copy_location(ast.Constant(None), st)), st)]


def _enter_code(c: Context, inner: Scope, before: list[ast.stmt], value: ast.expr | None) -> Term:
    stmt.block(c, inner, before)
    return NONE if value is None else expr.evaluate(c, inner, value)
