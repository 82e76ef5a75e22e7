"""Calls of one function with arguments of equal types: its body is typed once, and copied for the calls after it.

A copy has values of its own, and spans with its own call site, so that the program is the one that typing each call
gives. What typing a body reads from outside is only changed by static code. So nothing is copied over a run of that.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from cutile._support.structs import replace, structure
from cutile.front.closures import free_names
from cutile.front.context import CALL_LIMIT, Context
from cutile.front.scope import Scope, home_of
from cutile.ir.nodes import Bind, For, Frame, Group, If, Node, Op, Region, Template, Value, While
from cutile.ir.terms import Closure, Const, Leaf, Record, Static, Term, Tuple, number_key
from cutile.spans import Span

HEIGHT = 20  # most calls in calls inside a body that is copied


@structure(slots=True)
class Call:
    """What the typed body of a call depends on: `key`, which is equal for calls with equal bodies, and the run-time
    values that the body may read, in the order in which the key numbers them.
    """

    key: Hashable
    values: tuple[Value, ...]


@structure(slots=True)
class TypedCall:
    """A call whose body is typed, and what copies of it need."""

    call: Call
    scope: Scope  # so that the objects which the key names by their ids stay
    terms: dict[str, Term]
    frame: Frame
    term: Term  # that the call gives
    height: int  # how many calls in calls are in the body
    static_runs: int  # how often static code had run


def described(c: Context, s: Scope, terms: dict[str, Term]) -> Call | None:
    """The call of a function whose scope is `s`, with its arguments; None if its body cannot be copied."""
    if c.errors or c.combining or c.elements or c.static is not None:
        return None
    keys = _Keys()
    try:
        own = [(name, keys.term(t)) for name, t in terms.items()]
        free = () if s.parent is None else tuple(keys.free(s.definition.node, s.parent))
    except _Unknown:
        return None
    outside = id(s.definition.node), id(s.globals), *map(id, s.cells.values())
    return Call((outside, *own, *free), tuple(keys.values))


class _Unknown(Exception):
    """A term that no key describes."""


class _Keys:
    """Keys of terms. Run-time values count as equal if their types are, and if they are equal at the same places."""

    def __init__(self) -> None:
        self.values: dict[Value, int] = {}
        self.closures: dict[int, int] = {}
        self.depth = 0  # how many closures hold each other here

    def term(self, t: Term) -> Hashable:
        kind = type(t)
        if kind is Leaf:
            v = t.value
            return self.values.setdefault(v, len(self.values)), v.type
        if kind is Const:
            return number_key(t.value), t.dtype, t.loose, t.member and id(t.member)
        if kind is Static:
            return "static", t.obj if type(t.obj) is str else id(t.obj)
        if kind is Tuple:
            return "tuple", t.cls, *map(self.term, t.items)
        if kind is Record:
            return "record", t.cls, *t.fields, *map(self.term, t.fields.values())
        if kind is Closure and t.captured is None and isinstance(t.scope, Scope):
            number = self.closures.get(id(t))
            if number is not None:
                return "closure", number
            if self.depth >= HEIGHT:  # likely, calls nest as deep in the body, which is not copied then
                raise _Unknown
            self.closures[id(t)] = len(self.closures)
            self.depth += 1
            key = ("closure", id(t.definition.node), id(t.scope.globals), *map(id, t.scope.cells.values()),
                   *((n, self.term(d)) for n, d in t.defaults.items()), *self.free(t.definition.node, t.scope))
            self.depth -= 1
            return key
        raise _Unknown

    def free(self, node: Hashable, scope: Scope) -> Iterator[Hashable]:
        """The keys of the variables of tile code that a function which is defined in `scope` may read."""
        for name in sorted(free_names(node)):
            home = home_of(scope, name)
            if home is not None:
                var = home.vars.get(name)
                yield name, None if var is None else self.term(var.term)


def again(c: Context, call: Call) -> Term | None:
    """The term of a call whose body was typed before; a copy of the frame is appended. None: the body must be typed."""
    found = c.typed_calls.get(call.key)
    if found is None or found.static_runs != c.static_runs or c.call_depth + found.height >= CALL_LIMIT:
        return None
    c.deepest = max(c.deepest, c.call_depth + found.height)
    copy = _Copy(found, call.values, c.span)
    c.append(copy.node(found.frame))
    return copy.term(found.term)


def remember(c: Context, s: Scope, terms: dict[str, Term], call: Call, frame: Frame, term: Term, height: int,
             static_runs: int) -> None:
    """The body of a call was typed. `static_runs`: how often static code had run before it."""
    if c.errors or c.static_runs != static_runs or height > HEIGHT or not _copies(term):
        return
    free = free_names(s.definition.node) if s.cells else ()
    if all(c.dependencies.includes(cell) for n, cell in s.cells.items() if n in free and home_of(s, n) is None):
        c.typed_calls[call.key] = TypedCall(call, s, terms, frame, term, height, static_runs)


def _copies(t: Term) -> bool:
    return type(t) in (Leaf, Const, Static) or type(t) is Tuple and all(map(_copies, t.items)) \
        or type(t) is Record and all(map(_copies, t.fields.values()))


class _Copy:
    """Copies the frame of a typed call for another one."""

    def __init__(self, typed: TypedCall, values: Iterable[Value], site: Span):
        self.new = dict(zip(typed.call.values, values, strict=True))
        self.spans = {id(typed.frame.span): site}

    def term(self, t: Term) -> Term:
        kind = type(t)
        if kind is Leaf:
            return Leaf(self.new.get(t.value, t.value))
        if kind is Tuple:
            return Tuple(tuple(map(self.term, t.items)), t.cls)
        return Record(t.cls, {n: self.term(f) for n, f in t.fields.items()}) if kind is Record else t

    def node(self, n: Node) -> Node:
        kind, span = type(n), self.spans.get(id(n.span)) or self.span(n.span)
        if kind is Op:
            region = None if n.region is None else self.region(n.region)
            return Op(n.op, self.read(n.operands), n.attrs, self.defined(n.results), span, n.layout, region)
        if kind is Bind:
            return Bind(n.name, self.template(n.template), span, n.free)
        if kind is If:
            cond = self.new.get(n.cond, n.cond)
            return If(cond, self.region(n.then), self.region(n.orelse), self.defined(n.results), span)
        if kind is For:
            start, stop, step, *inits = self.read((n.start, n.stop, n.step, *n.inits))
            (iv,), params = self.defined((n.iv,)), self.defined(n.params)
            return For(iv, start, stop, step, tuple(inits), params, self.region(n.body), self.defined(n.results), span)
        if kind is While:
            inits, params = self.read(n.inits), self.defined(n.params)
            cond = None if n.cond is None else self.region(n.cond)
            return While(cond, inits, params, self.region(n.body), self.defined(n.results), span)
        if kind is Frame:
            return Frame(n.function, self.span(n.def_span), self.region(n.body), self.defined(n.results), span)
        return kind(self.read(n.operands), span)

    def region(self, region: Region) -> Region:
        params = self.defined(region.params)
        return Region([self.node(n) for n in region.nodes], params)

    def read(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        new = self.new
        return tuple([new.get(v, v) for v in values])

    def defined(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        made = []
        for v in values:
            w = self.new[v] = Value(v.type, v.name)
            made.append(w)
        return tuple(made)

    def template(self, t: Template) -> Template:
        if type(t) is Value:
            return self.new.get(t, t)
        return replace(t, items=tuple(map(self.template, t.items))) if type(t) is Group else t

    def span(self, span: Span) -> Span:
        """The span with the new call site in its chain of calls."""
        chain = []
        while span is not None and id(span) not in self.spans:
            chain.append(span)
            span = span.call_site
        new = None if span is None else self.spans[id(span)]
        for old in reversed(chain):
            new = old if new is old.call_site else Span(
                old.filename, old.line, old.col, old.end_line, old.end_col, old.function, new)
            self.spans[id(old)] = new
        return new
