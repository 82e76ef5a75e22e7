"""Functions that outlive the function that made them [CALL-5].

While a scope is live, a closure looks its variables up in it. When the scope ends, the closures that leave it take the
last values of what they use along: these may be values of the ending Frame, so they must be handed out as its results.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable

from cutile.errors import Span
from cutile.front.scope import Scope, Var
from cutile.front.source import assigned_names, parameter_names
from cutile.ir.terms import Bound, Closure, Dict, Manager, Record, Term, Tuple
from cutile.structs import replace

_SELF = object()  # the scope of a captured function that ended together with the one that captured it


def scope_of(closure: Closure, call_site: Span | None) -> Scope:
    """A fresh activation of a function that tile code defined."""
    outer: Scope = closure.scope
    if closure.captured is not None:
        outer = Scope(
            closure.definition, outer.globals, outer.cells, outer.parent, None, names=frozenset(closure.captured)
        )
        outer.vars = {
            n: Var(_anchored(t, outer), closure.definition.header_span()) for n, t in closure.captured.items()
        }
    return Scope(closure.definition, outer.globals, outer.cells, outer, call_site)


def leaving(t: Term, ending: Scope) -> Term:
    """A term that leaves a scope which ends: its closures carry their variables along."""
    return _map_closures(t, lambda closure: _frozen(closure, ending))


def _frozen(closure: Closure, ending: Scope) -> Closure:
    chain = _ended(closure, ending)
    if not chain:
        return closure
    captured: dict[str, Term] = {}
    wanted = [closure]

    def inner(other: Closure) -> Closure:
        """A closure among the captured values: it finds its variables where this one has them."""
        if not _ended(other, ending):
            return other
        if other.captured is not None:
            return _frozen(other, ending)
        wanted.append(other)
        return Closure(other.definition, _SELF, other.defaults)

    while wanted:
        for name in sorted(
            free_names(wanted.pop().definition.node) - captured.keys() - (closure.captured or {}).keys()
        ):
            home = next((s for s in chain if name in s.names), None)
            if home is not None and name in home.vars:
                captured[name] = _map_closures(home.vars[name].term, inner)
    rest = replace(ending, vars={}, loops=[], cleanups=[], returns=[])
    return Closure(closure.definition, rest, closure.defaults, {**captured, **(closure.captured or {})})


def _ended(closure: Closure, ending: Scope) -> list[Scope]:
    """The scopes that a closure sees and that end with `ending`, innermost first; none if it does not see that one."""
    chain: list[Scope] = []
    s = None if closure.scope is _SELF else closure.scope
    while s is not None:
        chain.append(s)
        if s is ending:
            return chain
        s = s.parent
    return []


def _anchored(t: Term, scope: Scope) -> Term:
    return _map_closures(t, lambda f: replace(f, scope=scope) if f.scope is _SELF else f)


def _map_closures(t: Term, fn: Callable[[Closure], Closure]) -> Term:
    """A term with `fn` applied to every closure in it."""
    def on(items: Iterable[Term]) -> tuple[Term, ...]:
        return tuple(_map_closures(i, fn) for i in items)

    match t:
        case Closure():
            return fn(t)
        case Tuple():
            return Tuple(on(t.items), t.cls)
        case Record():
            return Record(t.cls, dict(zip(t.fields, on(t.fields.values()), strict=True)))
        case Dict():
            return Dict(dict(zip(t.items, on(t.items.values()), strict=True)))
        case Bound():
            return Bound(*on((t.func, t.receiver)))
        case Manager():
            return replace(t, args=on(t.args), kwargs=dict(zip(t.kwargs, on(t.kwargs.values()), strict=True)))
        case _:
            return t


def same_outside(a: Scope, b: Scope) -> bool:
    """Two ended activations of one function, made in the same surroundings."""
    return (a.definition.node is b.definition.node and a.globals is b.globals and a.parent is b.parent
            and all(b.cells.get(n) is cell for n, cell in a.cells.items()))


@functools.lru_cache(maxsize=1024)
def free_names(node: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
    """Names that a function uses and does not assign, those of functions nested in it included."""
    body = node.body if isinstance(node.body, list) else [node.body]
    own = frozenset(parameter_names(node.args)) | assigned_names(node.body if isinstance(node.body, list) else [])
    return frozenset(n for part in body for n in _used(part)) - own


def _used(node: ast.AST) -> Iterable[str]:
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        yield from free_names(node)
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            yield from _used(default)
        return
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _used(child)

