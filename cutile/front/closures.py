"""Closures that are used after the function or context manager that made them has ended [CALL-5].

While a scope is live, a closure looks up its variables there. When the scope ends, each closure that outlives it copies
the last values of those of its variables that it, or a closure that it holds, can read. A captured value may be defined
in the Frame of the ending call; it becomes a result of that Frame. Such a closure holds a table with a level for each
scope that has ended. Closures among the values in the table refer to levels by number, so that functions may hold each
other, and themselves.
"""

from __future__ import annotations

import ast
import functools
import itertools
import operator
import types
from collections.abc import Callable, Iterable
from typing import Any

from cutile._support.structs import cached, replace, structure
from cutile.front.definition import Definition, assigned_names, parameter_names
from cutile.front.scope import Scope, Var
from cutile.ir.terms import Bound, Closure, Dict, FString, Manager, Record, Term, Tuple
from cutile.spans import Span


@structure(frozen=True, eq=False)
class Level:
    """The last state of a scope that has ended. `parent` is the number of another level, or a live scope, or None."""

    definition: Definition
    globals: dict[str, Any]
    cells: dict[str, types.CellType]
    parent: Scope | int | None
    names: frozenset[str]
    vars: dict[str, Term]

    def like(self, other: Level) -> bool:
        """Whether both levels are of the same function, with the same globals, cells, parent and names of variables."""
        return (self.definition.node is other.definition.node and self.globals is other.globals
                and self.parent == other.parent
                and all(other.cells.get(n) is cell for n, cell in self.cells.items())
                and [*self.vars] == [*other.vars])


class Captured:
    """The table of levels of a closure whose scopes have ended.

    A closure may wrap another one, which wraps a third, and so on. So a table keeps what would need a walk over all of
    them, and nothing makes a table anew that stays as it is.
    """

    def __init__(self, levels: tuple[Level, ...]):
        self.levels = levels
        self.time = next(_times)
        self.clean = False  # whether it is known to hold no poison

    def terms(self) -> list[Term]:
        return [t for level in self.levels for t in level.vars.values()]

    def map(self, fn: Callable[[Term], Term]) -> Captured:
        return Captured(tuple(replace(x, vars={n: fn(t) for n, t in x.vars.items()}) for x in self.levels))

    def like(self, other: Captured) -> bool:
        return len(self.levels) == len(other.levels) and all(map(Level.like, self.levels, other.levels))

    @cached
    def live(self) -> frozenset[Scope]:
        """The live scopes to which something in the table refers."""
        pending = [self]
        while pending:  # no recursion, since closures hold each other to any depth
            table = pending[-1]
            inner, found = table._referred()
            unknown = [t for t in inner if "live" not in t.__dict__]
            if unknown:
                pending += unknown
                continue
            for t in inner:
                found = t.live if found <= t.live else found | t.live
            table.__dict__["live"] = found
            pending.pop()
        return found

    def _referred(self) -> tuple[list[Captured], frozenset[Scope]]:
        """The tables of the closures in this one, and the live scopes to which it refers itself."""
        tables, scopes = [], {x.parent for x in self.levels if isinstance(x.parent, Scope)}
        pending = [f for t in self.terms() for f in closures_in(t)]
        for f in pending:
            if f.captured is not None:
                tables.append(f.captured)
            elif isinstance(f.scope, Scope):
                scopes.add(f.scope)
            pending += [g for t in f.defaults.values() for g in closures_in(t)]
        return tables, frozenset(scopes)

    @cached
    def scopes(self) -> list[Scope]:
        """The levels as scopes, in which bodies can be typed."""
        made = [Scope(x.definition, x.globals, x.cells, None, None, names=x.names, revived=True) for x in self.levels]
        for s, level in zip(made, self.levels, strict=True):
            s.parent = made[level.parent] if isinstance(level.parent, int) else level.parent
            s.vars = {n: Var(seeing(t, made), level.definition.header_span()) for n, t in level.vars.items()}
        return made


_times = itertools.count()


def now() -> int:
    """The time before which all tables were made that there are."""
    return next(_times)


def seeing(t: Term, scopes: list[Scope]) -> Term:
    """The term, with scopes in place of the level numbers in its closures."""
    def with_scope(f: Closure) -> Closure:
        if f.captured is not None:
            return f
        defaults = {n: seeing(d, scopes) for n, d in f.defaults.items()}
        return Closure(f.definition, scopes[f.scope] if isinstance(f.scope, int) else f.scope, defaults)

    return _map_closures(t, with_scope)


def scope_of(closure: Closure, call_site: Span | None) -> Scope:
    """A new activation of a function that tile code defined."""
    outer = closure.captured.scopes[closure.scope] if isinstance(closure.scope, int) else closure.scope
    return Scope(closure.definition, outer.globals, outer.cells, outer, call_site)


def default_of(closure: Closure, name: str) -> Term:
    """The default of a parameter of a closure."""
    t = closure.defaults[name]
    return t if closure.captured is None else seeing(t, closure.captured.scopes)


def captured_on_return(t: Term, ending: Scope) -> Term:
    """A term that a function returns as it ends: closures in it capture the variables of the ending scope."""
    return _map_closures(t, lambda f: _ended(f, lambda s: s is ending or s.revived))


def capture_at_exit(ending: Scope, others: Iterable[Scope]) -> None:
    """The activation of a context manager ends: closures in the live scopes `others` capture its variables."""
    def captured(f: Closure) -> Closure:
        return _ended(f, lambda s: s is ending)

    for s in others:
        now = {n: _map_closures(v.term, captured) for n, v in s.vars.items()}
        s.vars = {n: v if now[n] is v.term else Var(now[n], v.span) for n, v in s.vars.items()}


@functools.lru_cache(maxsize=1024)
def defines_functions(node: ast.FunctionDef) -> bool:
    """Whether the body of a function defines functions."""
    return any(isinstance(n, ast.FunctionDef | ast.Lambda) for n in ast.walk(node) if n is not node)


# ------------------------------------------------------------------ capturing

Ends = Callable[[Scope], bool]  # whether a scope ends now


def _ended(f: Closure, ends: Ends) -> Closure:
    """A closure that has captured all it can reach in the ending scopes; the same closure, if it reaches none."""
    return _Table(ends).closure(f) if _reaches(f, ends) else f


def _reaches(f: Closure, ends: Ends) -> bool:
    """Whether a closure can reach variables of an ending scope, itself or through other closures."""
    pending = [f]
    for g in pending:
        if _sees(g.scope, ends) or g.captured is not None and any(_sees(x, ends) for x in g.captured.live):
            return True
        pending += [h for t in g.defaults.values() for h in closures_in(t)]
    return False


def _sees(s: Scope | int | None, ends: Ends) -> bool:
    """Whether a scope or one of its parents ends."""
    while isinstance(s, Scope):
        if ends(s):
            return True
        s = s.parent
    return False


class _Table:
    """The table of levels of one closure while it is built."""

    def __init__(self, ends: Ends):
        self.ends = ends
        self.levels: list[Level] = []
        self.numbers: dict[int, int] = {}  # id of a scope -> its level; id of an imported table -> its first level
        self.kept: list[object] = []  # these scopes and tables, so that their ids stay unique
        self.live: dict[int, Scope] = {}  # level -> the ending scope
        self.wanted: list[tuple[Definition, int]] = []  # functions to look up from a level
        self.imported: list[tuple[Captured, int]] = []  # tables whose variables are still to be imported, to a level

    def closure(self, f: Closure) -> Closure:
        inner = self.put(f, None)
        while self.wanted or self.imported:  # no recursion, since closures hold each other to any depth
            if self.wanted:
                self._look_up(*self.wanted.pop())
            else:
                self._import_variables(*self.imported.pop())
        return Closure(inner.definition, inner.scope, inner.defaults, Captured(tuple(self.levels)))

    def put(self, f: Closure, base: int | None) -> Closure:
        """A closure as it is stored in the table. `base` is added to a level number in `f`; it is None where `f` has
        none.
        """
        if f.captured is not None and not _reaches(f, self.ends):
            return f
        if f.captured is not None:
            base = self._imported(f.captured)
        if isinstance(f.scope, int):
            at: Scope | int = f.scope + base
        else:
            at = self.level(f.scope) if _sees(f.scope, self.ends) else f.scope
        if isinstance(at, int):
            self.wanted.append((f.definition, at))
        return Closure(f.definition, at, {n: self.term(d, base) for n, d in f.defaults.items()})

    def term(self, t: Term, base: int | None) -> Term:
        return _map_closures(t, lambda f: self.put(f, base))

    def level(self, s: Scope) -> int:
        """The number of the level of a scope; the scope itself, or one of its parents, ends."""
        if id(s) not in self.numbers:
            number = self._add(s, Level(s.definition, s.globals, s.cells, None, s.names, {}))
            self.live[number] = s
            if _sees(s.parent, self.ends):
                parent: Scope | int | None = self.level(s.parent)
            else:
                parent = s.parent
            self.levels[number] = replace(self.levels[number], parent=parent)
        return self.numbers[id(s)]

    def _imported(self, table: Captured) -> int:
        """The level in this table where the levels of another closure's table begin."""
        if id(table) not in self.numbers:
            base = len(self.levels)
            for level in table.levels:
                self._add(table if level is table.levels[0] else level, level)
            for i, level in enumerate(table.levels, base):
                parent = level.parent
                if isinstance(parent, int):
                    parent += base
                elif _sees(parent, self.ends):
                    parent = self.level(parent)
                self.levels[i] = replace(level, parent=parent, vars={})
            self.imported.append((table, base))
        return self.numbers[id(table)]

    def _import_variables(self, table: Captured, base: int) -> None:
        for made, level in zip(self.levels[base:], table.levels, strict=False):
            made.vars.update({n: self.term(t, base) for n, t in level.vars.items()})

    def _add(self, of: object, level: Level) -> int:
        self.kept.append(of)
        self.numbers[id(of)] = len(self.levels)
        self.levels.append(level)
        return self.numbers[id(of)]

    def _look_up(self, definition: Definition, at: int) -> None:
        """Capture the variables that the free names of a function denote, from level `at` outwards."""
        for name in sorted(free_names(definition.node)):
            number: Scope | int | None = at
            while isinstance(number, int) and name not in self.levels[number].names:
                number = self.levels[number].parent
            if isinstance(number, int) and number in self.live and name not in self.levels[number].vars:
                if (var := self.live[number].vars.get(name)) is not None:
                    self.levels[number].vars[name] = var.term  # entered first: functions may hold each other
                    self.levels[number].vars[name] = self.term(var.term, None)


def closures_in(t: Term) -> list[Closure]:
    """The closures in a term, without those that these closures hold."""
    found: list[Closure] = []
    _map_closures(t, lambda f: found.append(f) or f)
    return found


def _map_closures(t: Term, fn: Callable[[Closure], Closure]) -> Term:
    """A term with `fn` applied to every closure in it; the term itself if none changes."""
    match t:
        case Closure():
            return fn(t)
        case Tuple():
            parts, make = t.items, lambda new: Tuple(new, t.cls)
        case Record():
            parts, make = t.fields.values(), lambda new: Record(t.cls, dict(zip(t.fields, new, strict=True)))
        case Dict():
            parts, make = t.items.values(), lambda new: Dict(dict(zip(t.items, new, strict=True)))
        case Bound():
            parts, make = (t.func, t.receiver), lambda new: Bound(*new)
        case FString():
            fields = [i for i, p in enumerate(t.parts) if not isinstance(p, str)]
            parts = [t.parts[i][0] for i in fields]
            make = lambda new: FString(tuple(
                (new[fields.index(i)], p[1]) if i in fields else p for i, p in enumerate(t.parts)))
        case Manager():
            n = len(t.args)
            parts = (*t.args, *t.kwargs.values())
            make = lambda new: replace(t, args=new[:n], kwargs=dict(zip(t.kwargs, new[n:], strict=True)))
        case _:
            return t
    parts = tuple(parts)
    new = tuple(_map_closures(i, fn) for i in parts)
    return t if all(map(operator.is_, parts, new)) else make(new)


@functools.lru_cache(maxsize=1024)
def free_names(node: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
    """The names that a function, or a function nested in it, uses and does not assign."""
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
