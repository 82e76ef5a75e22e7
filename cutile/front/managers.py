"""`with`: context managers made by @contextlib.contextmanager, typed in place [CM-1…3]."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

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
    manager = _manager(c, s, head)
    if manager is None:
        return enter(c, s, rest, body)
    leave = _enter_one(c, s, head, manager)
    s.cleanups.append(leave)
    falls = enter(c, s, rest, body)
    s.cleanups.pop()
    if falls:
        leave()
    return falls


def _manager(c: Context, s: Scope, item: ast.withitem) -> Manager | None:
    """The context manager of a with statement; None, and an error, for anything else."""
    term = expr.evaluate(c, s, item.context_expr)
    where = s.span(item.context_expr)
    if not isinstance(term, Manager):
        if not is_poisoned(term):
            c.report(TileTypeError("`with` needs a call of a function decorated with @contextlib.contextmanager, not "
                                   f"{phrase(term)}"), where)
        return None
    if term.used:
        c.report(
            TileTypeError("this context manager has been used already", help="call the function again for a new one"),
            where,
        )
    term.used = True
    return term


def _enter_one(c: Context, s: Scope, item: ast.withitem, manager: Manager) -> Callable[[], None]:
    """Type the enter code of a manager; what types its exit code."""
    yielded, leave = _open(c, manager)
    if item.optional_vars is not None:
        stmt.assign(c, s, item.optional_vars, yielded, s.span(item.context_expr))
    return leave


def _open(c: Context, manager: Manager) -> tuple[Term, Callable[[], None]]:
    """Type the code before the yield: what it yields, and what types the code behind it."""
    inner = _activation(c, manager)
    yielded, exits = _to_the_yield(c, inner, inner.definition.node.body)

    def leave() -> None:
        # The exit code is typed once per way out, each time from the state after the enter code.
        saved = dict(inner.vars)
        for part in reversed(exits):
            part()
        inner.vars = saved

    return yielded, leave


def _activation(c: Context, manager: Manager) -> Scope:
    """The scope of the generator's activation, with its arguments."""
    fn = manager.func.obj
    definition = c.definition(fn)
    scope = of_function(fn, definition, manager.span)
    call.check_syntax(c, scope, manager=True)
    _check_yield(scope, definition.node.body)
    defaults = call.python_defaults(fn)
    terms = call.bind(c, definition, manager.args, manager.kwargs, lambda n: objects.capture(c, defaults[n], n))
    for name, term in terms.items():
        stmt.assign(c, scope, ast.Name(name, ast.Store()), term, definition.header_span(manager.span))
    return scope


def _to_the_yield(c: Context, s: Scope, body: list[ast.stmt]) -> tuple[Term, list[Callable[[], object]]]:
    """Type statements up to the yield: its value, and the parts of the exit code, the last one first to run."""
    at = next(i for i, st in enumerate(body) if _yields_in([st]))
    st, rest = body[at], body[at + 1:]
    stmt.block(c, s, body[:at])
    if not isinstance(st, ast.With):
        term = NONE if st.value.value is None else expr.evaluate(c, s, st.value.value)
        return term, [lambda: stmt.block(c, s, [*_received(st), *rest])]
    exits: list[Callable[[], object]] = [lambda: stmt.block(c, s, rest)]
    for item in st.items:
        if (manager := _manager(c, s, item)) is not None:
            exits.append(_enter_one(c, s, item, manager))
    term, inner = _to_the_yield(c, s, st.body)
    return term, exits + inner


def _check_yield(s: Scope, body: list[ast.stmt]) -> None:
    """There is one yield, a statement of its own, outside of loops and branches [CM-1]."""
    if returns := syntax.own(body, ast.Return):
        raise TileSyntaxError("a context manager function cannot return", s.span(returns[0]),
                              help="let it run to its end: the code after yield is what leaves the with statement")
    found, right = syntax.own(body, ast.Yield), _yields_in(body)
    if not found:
        raise TileTypeError(f"the context manager {s.function} must contain exactly one yield, and has none",
                            help="yield where the body of the with statement is to run")
    odd = next((y for y in found if y not in right), None) or (found[1] if len(found) > 1 else None)
    if odd is not None:
        raise TileTypeError(
            f"the context manager {s.function} must contain exactly one yield, outside of loops and branches",
            s.span(odd),
            help="yield in a statement of its own, at the top level of the function or in a with statement there",
        )


def _yields_in(body: list[ast.stmt]) -> list[ast.Yield]:
    """The yields that stand as statements at the top level, or in with statements there."""
    found: list[ast.Yield] = []
    for st in body:
        if isinstance(st, ast.With):
            found += _yields_in(st.body)
        elif isinstance(st, ast.Expr | ast.Assign) and isinstance(st.value, ast.Yield):
            found.append(st.value)
    return found


def _received(st: ast.stmt) -> list[ast.stmt]:
    """`y = yield x` gives y the value None when the with statement is left."""
    if isinstance(st, ast.Expr):
        return []
    return [ast.copy_location(ast.Assign(st.targets, ast.copy_location(ast.Constant(None), st)), st)]
