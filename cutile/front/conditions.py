"""Truth of terms, and choices between expressions: `and`, `or`, comparisons in a chain, `x if c else y`."""

from __future__ import annotations

import enum
from collections.abc import Callable

from cutile.dtypes import bool_, info
from cutile.errors import TileTypeError
from cutile.front import special_methods
from cutile.front.context import Context
from cutile.front.term_joins import Join
from cutile.ir.nodes import If, Region, Value, Yield
from cutile.ir.recursion import recursive
from cutile.ir.terms import (
    POISON,
    Closure,
    Const,
    FString,
    Leaf,
    Poison,
    Record,
    Static,
    Term,
    Tuple,
    is_poisoned,
    phrase,
)
from cutile.ops import compare, debug
from cutile.ops._constants import loose
from cutile.ops._promotion import value_of
from cutile.types import TileType


def truth(c: Context, t: Term) -> bool | Value:
    """A term as a condition: a Python bool if it is known at compile time, else a bool_ scalar [COND-1, COND-2]."""
    if (own := special_methods.truth(c, t)) is not None:
        return truth(c, own)
    match t:
        case Poison():
            return Value(TileType(bool_))
        case Const():
            return bool(t.value)
        case Leaf(value=Value(type=TileType(shape=()))):
            if info(t.type.dtype).kind == "p":
                c.report(TileTypeError(f"{phrase(t)} cannot be used as a condition"))
                return Value(TileType(bool_))
            return value_of(c, compare.as_bool(c, t))
        case Static():
            return bool(t.obj) if t.obj is None or isinstance(t.obj, str | enum.Enum) else True
        case Tuple():
            return bool(t.items)
        case FString():
            return not debug.is_empty(c, t)
        case Record() | Closure():
            return True
    is_tile = isinstance(t, Leaf) and isinstance(t.type, TileType)
    c.report(TileTypeError(
        f"{phrase(t)} cannot be used as a condition",
        help="a condition is one scalar: reduce the tile first (ct.max(mask.astype(ct.int32)) > 0 for any), "
             "or choose element by element with ct.where(mask, x, y); & joins masks" if is_tile else None))
    return Value(TileType(bool_))


def truth_term(c: Context, t: Term) -> Term:
    """The truth of a term as a term: a loosely typed bool, or a bool_ scalar. Poison stays poison."""
    if is_poisoned(t):
        return t
    cond = truth(c, t)
    return loose(cond) if isinstance(cond, bool) else Leaf(cond)


@recursive
def short_circuit(c: Context, left: Term, right: Callable[[], Term], stop_at: bool) -> Term:
    """`left and right` (stop_at False) or `left or right` (True): a bool_ scalar [EX-13].

    `right` is typed only where `left` does not decide.
    """
    cond = truth(c, left)
    if isinstance(cond, bool):
        return loose(cond) if cond == stop_at else truth_term(c, right())
    c.need_branch_free("`or`" if stop_at else "`and`", c.span)

    def go_on() -> Term:
        return truth_term(c, right())

    def stop() -> Term:
        return loose(stop_at)

    term = choose(c, cond, *((stop, go_on) if stop_at else (go_on, stop)))
    return term if term is not None else POISON


def choose(c: Context, cond: Value, then: Callable[[], Term], orelse: Callable[[], Term]) -> Term | None:
    """A run-time choice between two expressions. If their types differ: appends an If without results, returns None."""
    sides = []
    for side in (then, orelse):
        with c.into(Region()) as region:
            sides.append((region, side()))
    join = Join(2, promoting=c.elements)
    term = join.merge([t for _, t in sides])
    for i, (region, _) in enumerate(sides):
        with c.into(region):
            c.append(Yield(join.operands(c, i) if term is not None else (), c.span))
    c.append(If(cond, sides[0][0], sides[1][0], tuple(join.results) if term is not None else (), c.span))
    return term
