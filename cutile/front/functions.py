"""Calls of Python functions: their bodies are typed for each call, in place [CALL-1…3]."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from cutile._support.structs import replace
from cutile.dtypes import DType
from cutile.errors import TileRecursionError, TileSyntaxError, TileTypeError
from cutile.front import closures, error_recovery, syntax
from cutile.front.context import CALL_LIMIT, Context, StopCompiling, template_of
from cutile.front.control_flow import join_returns, return_value
from cutile.front.definition import Definition
from cutile.front.python_objects import capture
from cutile.front.scope import Scope, Var, home_of, of_function
from cutile.front.static_names import construct_of
from cutile.ir.nodes import Bind, Frame, Group, Known, Region, Template
from cutile.ir.terms import NONE, POISON, Closure, Dict, Static, Term, Tuple, Unusable, is_poisoned

_DEFAULT = object()  # in signatures, for a default, which is captured only if a call uses it


@functools.lru_cache(maxsize=1024)
def _signature(definition: Definition) -> inspect.Signature:
    """The signature that the syntax of a function says."""
    a = definition.node.args
    P = inspect.Parameter
    out: list[inspect.Parameter] = []
    positional = [(p, P.POSITIONAL_ONLY) for p in a.posonlyargs] + [(p, P.POSITIONAL_OR_KEYWORD) for p in a.args]
    first_default = len(positional) - len(a.defaults)
    for i, (p, kind) in enumerate(positional):
        out.append(P(p.arg, kind, default=_DEFAULT if i >= first_default else P.empty))
    if a.vararg:
        out.append(P(a.vararg.arg, P.VAR_POSITIONAL))
    for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        out.append(P(p.arg, P.KEYWORD_ONLY, default=P.empty if d is None else _DEFAULT))
    if a.kwarg:
        out.append(P(a.kwarg.arg, P.VAR_KEYWORD))
    return inspect.Signature(out)


def bind(c: Context, definition: Definition, args, kwargs, default: Callable[[str], Term]) -> dict[str, Term]:
    """The arguments of a call by parameter; `default(name)` gives a parameter's default.

    TileTypeError if the arguments do not fit.
    """
    signature = _signature(definition)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as e:
        raise TileTypeError(f"{definition.name}(): {e}", notes=[
            (f"it is defined as {definition.name}{_readable(signature)}", definition.header_span())]) from None
    terms: dict[str, Term] = {}
    for name, p in signature.parameters.items():
        if p.kind is p.VAR_POSITIONAL:
            terms[name] = Tuple(tuple(map(c.usable, bound.arguments.get(name, ()))))
        elif p.kind is p.VAR_KEYWORD:
            terms[name] = Dict({k: c.usable(t) for k, t in bound.arguments.get(name, {}).items()})
        else:
            terms[name] = bound.arguments[name] if name in bound.arguments else default(name)
    return terms


def _readable(signature: inspect.Signature) -> str:
    """A signature with … for defaults."""
    class Dots:
        def __repr__(self):
            return "…"
    return str(signature.replace(parameters=[
        p.replace(default=Dots()) if p.default is _DEFAULT else p for p in signature.parameters.values()]))


def call_function(c: Context, fn: types.FunctionType, args, kwargs) -> Term:
    """A call of a Python function that the user wrote."""
    definition = c.definition(fn)
    defaults = python_defaults(fn)
    terms = bind(c, definition, args, kwargs, lambda name: capture(c, defaults[name], name))
    return _inline(c, of_function(fn, definition, c.span), terms)


def python_defaults(fn: types.FunctionType) -> dict[str, Any]:
    """The defaults of a Python function, by parameter."""
    code, given = fn.__code__, fn.__defaults__ or ()
    names = code.co_varnames[:code.co_argcount]
    return {**dict(zip(names[len(names) - len(given):], given, strict=True)), **(fn.__kwdefaults__ or {})}


def call_closure(c: Context, closure: Closure, args, kwargs) -> Term:
    """A call of a function that tile code defines."""
    terms = c.attempt(bind, c, closure.definition, args, kwargs, functools.partial(closures.default_of, closure))
    if not isinstance(terms, dict):
        return POISON
    return _inline(c, closures.scope_of(closure, c.span), terms)


def _inline(c: Context, s: Scope, terms: dict[str, Term]) -> Term:
    """Type the body of a function for one call, as a Frame in the place of the call [CALL-2]."""
    from cutile.front import repeated_calls  # loaded when it is needed

    span = c.span
    if c.call_depth >= CALL_LIMIT:
        if c.errors:  # one of them may be about the condition that ends the recursion
            raise StopCompiling
        raise TileRecursionError(
            f"calls are nested more than {CALL_LIMIT} deep", span,
            help="every call is compiled in place, so recursion must end at compile time: make its condition constant")
    check_syntax(c, s)
    call = repeated_calls.described(c, s, terms)
    if call is not None and (copied := repeated_calls.again(c, call)) is not None:
        return copied
    since = closures.now()
    static_runs, deepest, c.deepest = c.static_runs, c.deepest, c.call_depth
    with c.into(Region()) as body, c.at(s.definition.header_span(span)):
        _show_enclosing(c, s)
        c.call_depth += 1
        run_body(c, s, terms)
        c.deepest = max(c.deepest, c.call_depth)
        c.call_depth -= 1
    height, c.deepest = c.deepest - c.call_depth, max(c.deepest, deepest)
    if any(is_poisoned(p.term) for p in s.returns):
        return POISON
    term, results = join_returns(c, s, since)
    frame = Frame(s.function, s.definition.header_span(span), body, results, span)
    c.append(frame)
    if call is not None:
        repeated_calls.remember(c, s, terms, call, frame, term, height, static_runs)
    return term


def check_syntax(c: Context, s: Scope, *, manager: bool = False) -> None:
    """Report all Python in the body that tile code does not have, before anything in it is typed.

    Typing then skips the refused parts (error_recovery.py). A context manager (`manager`) with such parts is not typed.
    """
    node = s.definition.node
    key = node, c.elements
    if key not in c.checked:
        found, parts = syntax.refused(s.definition, lambda n: construct_of(s, n), manager=manager, elements=c.elements)
        for e in found:
            c.report(TileSyntaxError(e.message, replace(e.loc, call_site=s.call_site), help=e.help), once=True)
        if node in parts or found and manager:
            raise StopCompiling
        c.refused |= parts
        c.checked[key] = frozenset().union(*map(error_recovery.names, parts))
    error_recovery.declare(s, c.checked[key])


def run_body(c: Context, s: Scope, terms: dict[str, Term]) -> None:
    """Give the parameters their terms and type the body. Falling off its end returns None."""
    for name, term in terms.items():
        s.vars[name] = Var(term, c.span)
        if not isinstance(term, Unusable):
            c.bind(name, term, c.span)
    head = len(c.region.nodes)
    body = s.definition.node.body
    if not isinstance(body, list):
        term = c.evaluate(s, body)
        with c.at(s.span(body)):
            return_value(c, s, term)
    elif c.statements(s, body):
        with c.at(s.span(body[-1])):
            return_value(c, s, NONE)
    _show_cells(c, s, head)


def _show_enclosing(c: Context, s: Scope) -> None:
    """Show debuggers, in the frame of a closure, its free variables that an enclosing function in tile code assigns."""
    for name in sorted(closures.free_names(s.definition.node)) if s.parent is not None else ():
        home = home_of(s.parent, name)
        var = home.vars.get(name) if home is not None else None
        if var is not None and not isinstance(var.term, Unusable) and not is_poisoned(var.term):
            c.append(Bind(name, template_of(var.term), c.span, free=True))


def _show_cells(c: Context, s: Scope, head: int) -> None:
    """Show debuggers, from node `head` of the body on, the free variables that a Python function outside tile code
    assigns. Only those that the program depends on: it is typed again if they change.
    """
    names = sorted(closures.free_names(s.definition.node)) if s.cells else ()
    free = [(n, s.cells[n]) for n in names if n in s.cells and home_of(s, n) is None]
    shown = [(n, _template(cell.cell_contents)) for n, cell in free if c.dependencies.includes(cell)]
    c.region.nodes[head:head] = [Bind(n, t, c.span, free=True) for n, t in shown if t is not None]


def _template(obj: Any) -> Template | None:
    """What a debugger shows for a Python object; None for what tile code only reads while it is compiled. No code of a
    subclass runs.
    """
    if isinstance(obj, tuple):
        items = tuple(map(_template, tuple.__iter__(obj)))
        return None if None in items else Group("tuple", (), items)
    if type(obj) in (bool, int, float):
        return Known(obj)
    if isinstance(obj, str | DType | types.FunctionType):
        return template_of(Static(str.__str__(obj) if isinstance(obj, str) else obj))
    return None
