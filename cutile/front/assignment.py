"""Assignment of a term to a target: a name, a pattern of targets, or an item [ST-2]."""

from __future__ import annotations

import ast

from cutile.errors import TileTypeError, TileValueError
from cutile.front.context import Context
from cutile.front.scope import Scope, Var
from cutile.ir.terms import (
    POISON,
    Dict,
    Leaf,
    Poison,
    RawMemory,
    Record,
    Static,
    Term,
    Tuple,
    Unusable,
    View,
    is_poisoned,
    is_tile,
    phrase,
)
from cutile.spans import Span


def assign(c: Context, s: Scope, target: ast.AST, term: Term, span: Span) -> None:
    """Assign a term to a target, which may be a nested pattern [ST-2]."""
    match target:
        case ast.Name(id=name):
            s.vars[name] = Var(term, span)
            if not is_poisoned(term) and not isinstance(term, Unusable):
                c.bind(name, term, span)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for t, item in zip(targets, _unpack(c, len(targets), term, span), strict=True):
                assign(c, s, t, item, span)
        case ast.Subscript():
            _assign_item(c, s, target, term, span)


def _unpack(c: Context, n: int, term: Term, span: Span) -> tuple[Term, ...]:
    if isinstance(term, Poison):
        return (POISON,) * n
    if not isinstance(term, Tuple):
        c.report(TileTypeError(f"cannot unpack {phrase(term)}: only tuples can be unpacked"), span)
        return (POISON,) * n
    if len(term.items) != n:
        few = "not enough" if len(term.items) < n else "too many"
        c.report(TileValueError(f"{few} values to unpack: expected {n}, got {len(term.items)}"), span)
        return (POISON,) * n
    return term.items


def _assign_item(c: Context, s: Scope, target: ast.Subscript, term: Term, span: Span) -> None:
    obj = c.evaluate(s, target.value)
    if isinstance(obj, Poison):
        return
    if isinstance(obj, Record) and (fn := c.special_method(obj.cls, "__setitem__")) is not None:
        c.call(Static(fn), (obj, c.evaluate(s, target.slice), term))
        return
    if is_tile(obj):
        help = "tiles are immutable: ct.where(mask, x, y) chooses by element, ct.insert(x, index, value) puts a part"
    elif isinstance(obj, Leaf):
        help = "write to memory with ct.store(array, index, tile) or ct.scatter(array, indices, value)"
    elif isinstance(obj, View | RawMemory):
        help = "view.store(index, tile) writes a tile" if isinstance(obj, View) else (
            "memory.store_offset(offset, value) writes elements")
    else:
        help = "tuples and dicts are immutable: build a new one" if isinstance(obj, Tuple | Dict) else None
    c.report(TileTypeError(f"{phrase(obj)} cannot be assigned to by item", help=help), span)
