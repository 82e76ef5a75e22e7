"""Joins: what a variable denotes where paths of control meet [JOIN-1…6].

Terms are compared as trees, whose leaves are run-time values and constant scalars. A leaf that is the same constant on
all paths stays constant. Other leaves of one type become a new run-time value. All else must be the same on all paths.
"""

from __future__ import annotations

import enum
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence

from cutile.dtypes import DType, bool_, promote
from cutile.errors import TileError, TileTypeError
from cutile.ir.build import Builder
from cutile.ir.leaves import leaves, rebuild
from cutile.ir.nodes import Value
from cutile.ir.terms import (
    POISON,
    Bound,
    Closure,
    Const,
    Dict,
    FString,
    IndexSlice,
    Leaf,
    Manager,
    PySlice,
    Range,
    RawMemory,
    Record,
    Static,
    Term,
    Tuple,
    Unusable,
    View,
    article,
    describe,
    is_poisoned,
    is_scalar,
    is_tile,
    parts_of,
)
from cutile.ops._promotion import cast, common_dtype, value_of
from cutile.spans import Span
from cutile.types import LeafType, TileType


def same_structure(a: Term, b: Term) -> bool:
    """Whether two terms are equal, apart from the values of their leaves."""
    if isinstance(a, Const | Leaf) and isinstance(b, Const | Leaf):
        return a.type == b.type
    if type(a) is not type(b):
        return False
    match a:
        case Static():
            return same_object(a.obj, b.obj)
        case Record():
            return a.cls is b.cls and _pairwise(a, b)
        case Dict():
            return list(a.items) == list(b.items) and _pairwise(a, b)
        case View():
            return (a.tile_shape, a.steps, a.padding_mode) == (b.tile_shape, b.steps, b.padding_mode) and _pairwise(
                a, b
            )
        case Range():
            return a.dtype is b.dtype and _pairwise(a, b)
        case FString():
            key = [[p if isinstance(p, str) else p[1] for p in t.parts] for t in (a, b)]
            return key[0] == key[1] and _pairwise(a, b)
        case Closure():
            return a is b or (
                a.definition.node is b.definition.node
                and a.scope == b.scope
                and (a.captured is b.captured or a.captured and b.captured and a.captured.like(b.captured))
                and _pairwise(a, b))
        case Manager():
            return (
                a is b
                or a.func.obj is b.func.obj
                and list(a.kwargs) == list(b.kwargs)
                and (a.uses == b.uses or not (a.entered or b.entered))
                and (_pairwise(a, b))
            )
        case Tuple() | Bound() | PySlice() | RawMemory() | IndexSlice():
            return _pairwise(a, b)
        case _:
            return a is b


def _pairwise(a: Term, b: Term) -> bool:
    pa, pb = list(parts_of(a)), list(parts_of(b))
    return len(pa) == len(pb) and all(map(same_structure, pa, pb))


def _managers(t: Term) -> Iterator[Manager]:
    """The context managers in a term, apart from those that closures have captured."""
    if isinstance(t, Manager):
        yield t
    if not isinstance(t, Closure):
        for part in parts_of(t):
            yield from _managers(part)


def same_object(a, b) -> bool:
    """Whether two Python objects are the same compile-time value: identical, or equal strings."""
    if isinstance(a, DType | enum.Enum) or isinstance(b, DType | enum.Enum):
        return a is b
    return a is b or type(a) is type(b) and isinstance(a, str) and a == b


class Join:
    """A point where paths of control meet.

    `merge` joins the terms of one variable on all paths. Afterwards, `results` are the new run-time values, and
    `operands(i)` the values that path i gives for them.
    """

    def __init__(self, paths: int, *, inside: bool = False, since: int = 0, promoting: bool = False):
        """`inside`: the paths' values are not visible after the join; equal ones need a result too, except those that
        closures captured before the time `since`.
        `promoting`: scalars of different dtypes join in the dtype in which they meet, as in element functions [ELT-4].
        """
        self.inside, self.since, self.promoting = inside, since, promoting
        self.results: list[Value] = []
        self.columns: list[list[Const | Leaf]] = [[] for _ in range(paths)]

    def merge(self, terms: Sequence[Term]) -> Term | None:
        """The joined term of a variable, or None if its types differ."""
        if any(map(is_poisoned, terms)):
            return POISON
        first = terms[0]
        if not all(same_structure(first, t) for t in terms[1:]):
            if not self.promoting or not all(meets(first, t) for t in terms[1:]):
                return None
        since = self.since if all(t is first for t in terms) else 0
        rows = zip(*(list(leaves(t, since)) for t in terms), strict=True)
        joined = rebuild(first, iter([self._leaf(row) for row in rows]), since)
        if not isinstance(first, Const | Leaf):
            for m, *others in zip(_managers(joined), *map(_managers, terms), strict=True):
                m.uses = frozenset().union(*(o.uses for o in others))
        return joined

    def _leaf(self, row: Sequence[Const | Leaf]) -> Term:
        first = row[0]
        if self.promoting:
            first = functools.reduce(met, sorted(row, key=is_loose))
        if isinstance(first, Const) and all(isinstance(t, Const) and t.same(first) for t in row):
            return without_member(row)
        if (
            not self.inside
            and isinstance(first, Leaf)
            and len(row) > 1
            and all(isinstance(t, Leaf) and t.value is first.value for t in row)
        ):
            return first
        v = Value(first.type)
        self.results.append(v)
        for column, t in zip(self.columns, row, strict=True):
            column.append(t)
        return Leaf(v)

    @property
    def types(self) -> list[LeafType]:
        return [v.type for v in self.results]

    def operands(self, b: Builder, path: int) -> tuple[Value, ...]:
        """The values that a path gives for the results; constants are appended to the current region."""
        found = []
        for v, t in zip(self.results, self.columns[path], strict=True):
            found.append(value_of(b, cast(b, t, v.type.dtype) if self.promoting and is_scalar(t) else t))
        return tuple(found)


def without_member(row: Sequence[Const]) -> Const:
    """One of several constants that are the same number; no member of an enum unless all are that member."""
    first = row[0]
    if all(t.member is first.member for t in row):
        return first
    return Const(first.value, first.dtype, first.loose)


def meets(a: Term, b: Term) -> bool:
    """Whether two terms are equal, apart from the values of their leaves and from dtypes of scalars that meet in a
    common dtype.
    """
    if not same_structure(*(rebuild(t, itertools.repeat(_SOME)) for t in (a, b))):
        return False
    return all(met(x, y) is not None for x, y in zip(leaves(a), leaves(b), strict=True))


def met(a: Const | Leaf, b: Const | Leaf) -> Leaf | None:
    """A scalar of the dtype in which two scalars meet; None if there is none."""
    if a.type == b.type:
        return a if isinstance(a, Leaf) else b
    if not (is_scalar(a) and is_scalar(b)):
        return None
    try:
        return Leaf(Value(TileType(common_dtype(a, b))))
    except TileError:
        return None


def is_loose(t: Const | Leaf) -> bool:
    return isinstance(t, Const) and t.loose


_SOME = Leaf(Value(TileType(bool_)))


def conflict(name: str, terms: Sequence[Term], spans: Sequence[Span]) -> Unusable:
    """The term of a variable with different types on different paths: an error if it is used [JOIN-2]."""
    paths = sorted(zip(terms, spans, strict=True), key=lambda path: (path[1].line, path[1].col))
    message = f"Type of `{name}` depends on path taken: {versus([t for t, _ in paths])}"

    def error(span: Span) -> TileTypeError:
        return TileTypeError(
            message,
            span,
            notes=[(f"here `{name}` is {article(type_text(t))}", s) for t, s in paths],
            help=conflict_help(terms),
        )

    return Unusable(error)


def versus(terms: Sequence[Term]) -> str:
    """The types of terms that differ, in words. If they read alike, as those of two lambdas in one line or of two
    instances of a class, all of them, and which of their parts differ.
    """
    texts = list(map(type_text, terms))
    different = list(dict.fromkeys(texts))
    if len(different) > 1:
        return " vs. ".join(different)
    where, first, other = _apart(terms)
    told = [_beside_parts(t) for t in (first, other)]
    if type_text(first) != type_text(other):
        told = [(where, type_text(t)) for t in (first, other)]
    elif where:
        told = [(f"{what} of {where}", text) for what, text in told]
    more = f", where {told[0][0]} is {told[0][1]} vs. {told[1][1]}" if told[0] != told[1] else ""
    return " vs. ".join(texts) + more


def _apart(terms: Sequence[Term]) -> tuple[str, Term, Term]:
    """Where the first of the terms and one that differs from it differ, and what they have there: the outermost parts
    that do not read alike or else, if there are none, the innermost that differ.
    """
    where, first = "", terms[0]
    other = next((t for t in terms[1:] if not same_structure(first, t)), first)
    while type_text(first) == type_text(other):
        of_first, of_other = (dict(_named_parts(t)) for t in (first, other))
        at = next((n for n, x in of_first.items() if n in of_other and not same_structure(x, of_other[n])), None)
        if at is None:
            break
        where += at if at[0] in ".[" or not where else f", {at}"
        first, other = of_first[at], of_other[at]
    return where, first, other


def _named_parts(t: Term) -> Iterable[tuple[str, Term]]:
    """The parts of a term that may make it another type, each with its name, which follows that of the term."""
    match t:
        case Tuple():
            return [(f"[{i}]", x) for i, x in enumerate(t.items)]
        case Record():
            return [(f".{name}", x) for name, x in t.fields.items()]
        case Dict():
            return [(f"[{name!r}]", x) for name, x in t.items.items()]
        case PySlice():
            return [(".start", t.start), (".stop", t.stop), (".step", t.step)]
        case FString():
            return [(f"field {i}", p[0]) for i, p in enumerate(p for p in t.parts if not isinstance(p, str))]
        case Bound():
            return _named_parts(t.receiver)
        case Closure():
            levels = t.captured.levels if t.captured else ()
            return [*((f"the default of {name}", x) for name, x in t.defaults.items()),
                    *((f"its variable {name}", x) for v in levels for name, x in v.vars.items())]
        case _:
            return ()


def _beside_parts(t: Term) -> tuple[str, str]:
    """The name of what tells two terms with equal parts apart, and the term's, in words."""
    match t:
        case View():
            return "its padding mode", t.padding_mode.name
        case Record():
            return "its class", f"{t.cls.__module__}.{t.cls.__qualname__}"
        case Range():
            return "its dtype", t.dtype.name
        case FString():
            return "its text", repr("".join(p if isinstance(p, str) else f"{{:{p[1]}}}" for p in t.parts))
        case _:
            return "", ""


def type_text(t: Term) -> str:
    """The type of a term in words: "int32 scalar" also for a constant."""
    match t:
        case Const():
            return t.type.describe()
        case Tuple():
            return "tuple (" + ", ".join(map(type_text, t.items)) + ("," if len(t.items) == 1 else "") + ")"
        case _:
            return describe(t)


def conflict_help(terms: Sequence[Term]) -> str:
    """How to give a variable one type on all paths."""
    if not all(map(is_tile, terms)):
        terms = _apart(terms)[1:]
    dtypes = [t.type.dtype for t in terms if is_tile(t)]
    shapes = {t.type.shape for t in terms if is_tile(t)}
    d = functools.reduce(lambda a, b: a and promote(a, b), dtypes) or dtypes[0] if dtypes else None
    if len(dtypes) == len(terms) and len(shapes) == 2 and () in shapes:
        return f"give it one type on every path: begin with a tile, ct.full({max(shapes, key=len)}, …, ct.{d.name})"
    if len(dtypes) == len(terms) and len(set(dtypes)) > 1:
        return (f"give it one type on every path; for example convert with ct.{d.name}(…) or .astype(ct.{d.name}), "
                f"or write literals alike (1.0 instead of 1)")
    return "give it one type on every path, or use different names"


def undefined(name: str, why: str = "it is not assigned on every path that leads here") -> Unusable:
    """The term of a variable that some path does not define: an error if it is used [JOIN-3]."""
    def error(span: Span) -> TileTypeError:
        return TileTypeError(f"Use of potentially undefined variable `{name}`: {why}", span,
                             help=f"assign `{name}` before the branch or loop")
    return Unusable(error)
