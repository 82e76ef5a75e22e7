"""`with`: context managers made by @contextlib.contextmanager, typed in place [CM-1…3]."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from cutile.errors import TileSyntaxError, TileTypeError
from cutile.front import call, closures, expr, objects, stmt, syntax
from cutile.front.context import Context
from cutile.front.scope import Scope, of_function
from cutile.ir.terms import NONE, POISON, Manager, Term, is_poisoned, phrase

Leave = Callable[[], bool]  # types exit code; whether control gets to its end


def enter(c: Context, s: Scope, items: Sequence[ast.withitem], body: list[ast.stmt]) -> bool:
    """with a, b: … is with a: with b: …"""
    if not items:
        return stmt.block(c, s, body)
    head, *rest = items
    manager = _manager(c, s, head)
    if manager is None:
        return enter(c, s, rest, body)
    leave = _enter_one(c, s, head, manager)
    if leave is None:
        return False
    s.cleanups.append(leave)
    falls = enter(c, s, rest, body)
    s.cleanups.pop()
    return falls and leave()


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


def _enter_one(c: Context, s: Scope, item: ast.withitem, manager: Manager) -> Leave | None:
    """Type the enter code of a manager; what types its exit code. None if control does not get to the yield."""
    inner = _activation(c, s, manager)
    found = _to_the_yield(c, inner, inner.definition.node.body)
    if found is None:
        return None
    yielded, exits = found
    if item.optional_vars is not None:
        stmt.assign(c, s, item.optional_vars, yielded, s.span(item.context_expr))

    def leave() -> bool:
        # The exit code is typed once per way out, each time from the state after the enter code. What the activation's
        # closures see from there on is the state after the exit code.
        saved = dict(inner.vars)
        falls = all(part() for part in reversed(exits))
        if closures.makes_some(inner.definition.node):
            closures.end(inner, _hosts(inner))
        inner.vars = saved
        return falls

    return leave


def _hosts(s: Scope) -> Iterator[Scope]:
    """The scopes that may hold what a context manager yields: that of the with statement; if that is one of a manager's
    activation, the next one too."""
    while s.host is not None:
        s = s.host
        yield s


def _activation(c: Context, s: Scope, manager: Manager) -> Scope:
    """The scope of the generator's activation, with its arguments."""
    fn = manager.func.obj
    definition = c.definition(fn)
    scope = of_function(fn, definition, manager.span)
    scope.host = s
    call.check_syntax(c, scope, manager=True)
    if returns := syntax.own(definition.node.body, ast.Return):
        raise TileSyntaxError("a context manager function cannot return", scope.span(returns[0]),
                              help="let it run to its end: the code after yield is what leaves the with statement")
    defaults = call.python_defaults(fn)
    terms = call.bind(c, definition, manager.args, manager.kwargs, lambda n: objects.capture(c, defaults[n], n))
    for name, term in terms.items():
        stmt.assign(c, scope, ast.Name(name, ast.Store()), term, definition.header_span(manager.span))
    return scope


def _to_the_yield(c: Context, s: Scope, body: list[ast.stmt]) -> tuple[Term, list[Leave]] | None:
    """Type statements up to the yield: its value, and the parts of the exit code, the last one first to run."""
    at = next((i for i, st in enumerate(body) if _holds_yield(st)), None)
    if at is None:
        return _without_yield(c, s, body)
    st, rest = body[at], body[at + 1:]
    if not stmt.block(c, s, body[:at]):
        return None
    if not isinstance(st, ast.With):
        term = NONE if st.value.value is None else expr.evaluate(c, s, st.value.value)
        return term, [lambda: stmt.block(c, s, [*_received(st), *rest])]
    exits: list[Leave] = [lambda: stmt.block(c, s, rest)]
    for item in st.items:
        if (manager := _manager(c, s, item)) is not None:
            if (leave := _enter_one(c, s, item, manager)) is None:
                return None
            exits.append(leave)
    found = _to_the_yield(c, s, st.body)
    return found and (found[0], exits + found[1])


def _without_yield(c: Context, s: Scope, body: list[ast.stmt]) -> tuple[Term, list[Leave]] | None:
    """No statement of the body yields by itself: an error, unless control never gets to the end of it."""
    known = len(c.errors)
    if not stmt.block(c, s, body):
        return None
    if len(c.errors) == known:
        raise TileTypeError(f"the context manager {s.function} must contain exactly one yield, and has none",
                            help="yield where the body of the with statement is to run")
    return POISON, []


def misplaced(c: Context, s: Scope, node: ast.Yield) -> Term:
    """A yield that is reached as a second one, or not as a statement outside of loops and branches [CM-1]."""
    raise TileTypeError(
        f"the context manager {s.function} must contain exactly one yield, outside of loops and branches",
        help="yield in a statement of its own, at the top level of the function or in a with statement there")


def _holds_yield(st: ast.stmt) -> bool:
    """Whether a statement is a yield, or a with statement around one."""
    if isinstance(st, ast.With):
        return any(map(_holds_yield, st.body))
    return isinstance(st, ast.Expr | ast.Assign) and isinstance(st.value, ast.Yield)


def _received(st: ast.stmt) -> list[ast.stmt]:
    """`y = yield x` gives y the value None when the with statement is left."""
    if isinstance(st, ast.Expr):
        return []
    return [ast.copy_location(ast.Assign(st.targets, ast.copy_location(ast.Constant(None), st)), st)]
