"""Items of terms: `t[key]`, and `x in t`."""

from __future__ import annotations

import ast

from cutile.dtypes import info, int64
from cutile.errors import TileTypeError
from cutile.front import op_calls, operators
from cutile.front.context import Context
from cutile.front.python_objects import python_slice
from cutile.ir.nodes import Value
from cutile.ir.terms import (
    Const,
    Dict,
    Leaf,
    PySlice,
    RawMemory,
    Record,
    Static,
    Term,
    Tuple,
    View,
    call_help,
    is_poisoned,
    is_scalar,
    is_tile,
    phrase,
)
from cutile.ops import bits, memory, select, shape
from cutile.ops._constants import loose
from cutile.ops._promotion import cast
from cutile.types import ArrayType, ListType


def item(c: Context, t: Term, key: Term) -> Term:
    """t[key] [EX-6]."""
    match t:
        case Tuple():
            return _tuple_item(t, key)
        case Dict():
            if not (isinstance(key, Static) and isinstance(key.obj, str)):
                raise TileTypeError(f"a key must be a string constant, not {phrase(key)}")
            if key.obj not in t.items:
                raise TileTypeError(
                    f"no keyword argument {key.obj!r} was passed", help=f"passed: {', '.join(t.items) or 'none'}"
                )
            return t.items[key.obj]
        case Leaf(value=Value(type=ListType())):
            return memory.list_item(c, t, key)
        case Record() if getattr(t.cls, "_cutile_struct", False):  # a struct of cutile.compute: fields by position too
            fields = tuple(t.fields.values())
            if c.elements and isinstance(key, Leaf) and is_scalar(key) and info(key.type.dtype).integral and all(
                    map(is_scalar, fields)):
                return _chosen(c, fields, key)
            return _tuple_item(Tuple(fields), key)
        case Record() if (fn := c.special_method(t.cls, "__getitem__")) is not None:
            return c.call(Static(fn), (t, key))
        case Const() | Leaf() if is_tile(t):
            return shape.index_tile(c, t, key)
        case Leaf(value=Value(type=ArrayType())) if c.elements:
            return c.call(Static(memory.gather), (t, key))
        case Leaf(value=Value(type=ArrayType() as a)):
            raise TileTypeError(
                f"{phrase(t)} cannot be subscripted",
                help="ct.load(array, index, shape) reads a tile, ct.gather(array, indices) single elements, "
                     f"array.slice(axis, start, stop) makes a smaller view (rank {a.ndim})")
        case View():
            raise TileTypeError(f"{phrase(t)} cannot be subscripted", help="view.load(index) reads a tile")
        case RawMemory():
            raise TileTypeError(f"{phrase(t)} cannot be subscripted", help="memory.load_offset(offset) reads elements")
    raise TileTypeError(f"{phrase(t)} cannot be subscripted", help=call_help(t))


def _tuple_item(t: Tuple, key: Term) -> Term:
    if isinstance(key, PySlice):
        return Tuple(t.items[python_slice(key)])
    if isinstance(key, Const) and info(key.dtype).integral:
        if not -len(t.items) <= key.value < len(t.items):
            raise TileTypeError(f"index {key.value} is out of range for a tuple of {len(t.items)} items")
        return t.items[key.value]
    raise TileTypeError(f"a tuple is indexed by an integer constant or a constant slice, not by {phrase(key)}",
                        help="loop with ct.static_iter to visit every item")


def _chosen(c: Context, fields: tuple[Term, ...], key: Term) -> Term:
    """The field of a number that is known at run time, counted from the end where it is negative; the last one where
    there is none. All fields are numbers, which meet in one dtype [ITR-5].
    """
    *others, found = fields
    key = cast(c, key, int64)
    for k, term in reversed(list(enumerate(others))):
        here = [operators.binary(c, ast.Eq, key, loose(n)) for n in (k, k - len(fields))]
        mask = op_calls.apply(c, bits.bitwise_or, dict(zip("xy", here, strict=True)))
        names = op_calls.parameters_of(select.where).positional
        found = op_calls.apply(c, select.where, dict(zip(names, (mask, term, found), strict=True)))
    return found


def contains(c: Context, x: Term, y: Term, positive: bool) -> Term:
    """`x in y` (`positive`), or `x not in y`, for a tuple or a dict of keyword arguments."""
    if isinstance(y, Dict):
        if not (isinstance(x, Static) and isinstance(x.obj, str)):
            return c.report(TileTypeError(f"a key must be a string constant, not {phrase(x)}"))
        return loose((x.obj in y.items) == positive)
    if not isinstance(y, Tuple):
        return c.report(TileTypeError(f"`in` looks into tuples and keyword dicts, not into {phrase(y)}"))
    result: Term = loose(False)
    for candidate in y.items:
        same = operators.binary(c, ast.Eq, x, candidate) if _comparable(x, candidate) else loose(False)
        if is_poisoned(same):
            return same
        if not is_scalar(same):
            return c.report(TileTypeError(
                f"`in` looks for one value, and {phrase(x)} compared with {phrase(candidate)} gives {phrase(same)}",
                help="compare with each item by ==, and join the masks by |"))
        if isinstance(same, Const) and same.value:
            result = loose(True)
            break
        if not isinstance(same, Const):
            known = isinstance(result, Const)
            result = same if known else op_calls.apply(c, bits.bitwise_or, {"x": result, "y": same})
    return result if positive else op_calls.apply(c, bits.bitwise_not, {"x": result})


def _comparable(x: Term, y: Term) -> bool:
    """Whether `x == y` is defined for these terms; if it is not, they count as different."""
    return (is_tile(x) and is_tile(y) or operators.constant_kind(x) == operators.constant_kind(y) != "other"
            or isinstance(x, Record) or isinstance(y, Record))
