"""`with`: the body of a function decorated with @contextlib.contextmanager is typed in place [CM-1…3].

Its statements before the yield are the enter code. Those after it are the exit code, typed once for
each path that leaves the with body.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from cutile.errors import TileSyntaxError, TileTypeError
from cutile.front import closures, expr, functions, syntax
from cutile.front.assignment import assign
from cutile.front.context import Context
from cutile.front.python_objects import capture
from cutile.front.scope import Scope, of_function
from cutile.ir.terms import NONE, POISON, Manager, Term, is_poisoned, phrase

Leave = Callable[[], bool]  # types exit code; False if control cannot reach its end


def enter(c: Context, s: Scope, items: Sequence[ast.withitem], body: list[ast.stmt]) -> bool:
    """Type a with statement: `with a, b: …` is `with a: with b: …`. False if control cannot reach its end."""
    if not items:
        return c.statements(s, body)
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
    """The context manager of a with statement; for anything else an error, poison for what it binds, and None."""
    term = expr.evaluate(c, s, item.context_expr)
    where = s.span(item.context_expr)
    if not isinstance(term, Manager):
        if not is_poisoned(term):
            c.report(TileTypeError("`with` needs a call of a function decorated with @contextlib.contextmanager, not "
                                   f"{phrase(term)}"), where)
        if item.optional_vars is not None:
            assign(c, s, item.optional_vars, POISON, where)
        return None
    if again := term.uses & c.used:
        entered = next(u.entered for u in again)
        c.report(TileTypeError("this context manager has been used already",
                               notes=[("here it is used", entered)] if entered is not None else [],
                               help="call the function again for a new one"), where)
    for use in term.uses:
        use.entered = where
    c.used |= term.uses
    return term


def _enter_one(c: Context, s: Scope, item: ast.withitem, manager: Manager) -> Leave | None:
    """Type the enter code of a manager. Returns a function that types the exit code; None
    if control does not reach the yield.
    """
    inner = _activation(c, s, manager)
    found = _to_the_yield(c, inner, inner.definition.node.body)
    if found is None:
        return None
    yielded, exits = found
    if item.optional_vars is not None:
        assign(c, s, item.optional_vars, yielded, s.span(item.context_expr))

    def leave() -> bool:
        # Each exit path starts from the variables at the yield. Afterwards, closures of this activation see the
        # variables as the exit code left them.
        saved = dict(inner.vars)
        falls = all(part() for part in reversed(exits))
        if closures.defines_functions(inner.definition.node):
            closures.capture_at_exit(inner, _with_scopes(inner))
        inner.vars = saved
        return falls

    return leave


def _with_scopes(s: Scope) -> Iterator[Scope]:
    """The scopes of the with statements around the yield, innermost first. Each may hold the yielded value."""
    while s.with_scope is not None:
        s = s.with_scope
        yield s


def _activation(c: Context, s: Scope, manager: Manager) -> Scope:
    """A new scope for the body of a context manager, with its arguments."""
    fn = manager.func.obj
    definition = c.definition(fn)
    scope = of_function(fn, definition, manager.span)
    scope.with_scope = s
    functions.check_syntax(c, scope, manager=True)
    if returns := syntax.own(definition.node.body, ast.Return):
        raise TileSyntaxError("a context manager function cannot return", scope.span(returns[0]),
                              help="let it run to its end: the code after yield is what leaves the with statement")
    defaults = functions.python_defaults(fn)
    terms = functions.bind(c, definition, manager.args, manager.kwargs, lambda n: capture(c, defaults[n], n))
    for name, term in terms.items():
        assign(c, scope, ast.Name(name, ast.Store()), term, definition.header_span(manager.span))
    return scope


def _to_the_yield(c: Context, s: Scope, body: list[ast.stmt]) -> tuple[Term, list[Leave]] | None:
    """Type statements up to the yield. Returns the yielded term, and functions that type what runs after
    the yield, the outermost first: the rest of each body, and the exit code of each manager around the yield. Run them
    in reverse.
    """
    at = next((i for i, st in enumerate(body) if _holds_yield(st)), None)
    if at is None:
        return _without_yield(c, s, body)
    st, rest = body[at], body[at + 1:]
    if not c.statements(s, body[:at]):
        return None
    if not isinstance(st, ast.With):
        term = NONE if st.value.value is None else expr.evaluate(c, s, st.value.value)
        return term, [lambda: c.statements(s, [*_received(st), *rest])]
    exits: list[Leave] = [lambda: c.statements(s, rest)]
    for item in st.items:
        if (manager := _manager(c, s, item)) is not None:
            if (leave := _enter_one(c, s, item, manager)) is None:
                return None
            exits.append(leave)
    found = _to_the_yield(c, s, st.body)
    return found and (found[0], exits + found[1])


def _without_yield(c: Context, s: Scope, body: list[ast.stmt]) -> tuple[Term, list[Leave]] | None:
    """The body has no yield at its top level: an error, unless control never reaches the end of the body."""
    known = len(c.errors)
    if not c.statements(s, body):
        return None
    if len(c.errors) == known:
        raise TileTypeError(f"the context manager {s.function} must contain exactly one yield, and has none",
                            help="yield where the body of the with statement is to run")
    return POISON, []


def _holds_yield(st: ast.stmt) -> bool:
    """Whether a statement is a yield, or a with statement that holds one."""
    if isinstance(st, ast.With):
        return any(map(_holds_yield, st.body))
    return isinstance(st, ast.Expr | ast.Assign) and isinstance(st.value, ast.Yield)


def _received(st: ast.stmt) -> list[ast.stmt]:
    """`y = yield x` gives y the value None when the with statement is left."""
    if isinstance(st, ast.Expr):
        return []
    return [ast.copy_location(ast.Assign(st.targets, ast.copy_location(ast.Constant(None), st)), st)]
