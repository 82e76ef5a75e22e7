"""Items of terms: `t[key]`, and `x in t`."""

from __future__ import annotations

import ast
import enum

from cutile.dtypes import info, int64
from cutile.errors import TileTypeError
from cutile.front import conditions, op_calls, operators, special_methods
from cutile.front.context import Context
from cutile.front.python_objects import python_slice
from cutile.front.term_joins import same_object
from cutile.ir.nodes import Value
from cutile.ir.terms import (
    Const,
    Dict,
    FString,
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
    if type(t) is Tuple and (fn := special_methods.own(c, t, "getitem")) is not None:
        return special_methods.call(c, fn, t, key)
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
    """`x in y` (`positive`), or `x not in y`, for a tuple, keyword arguments, or a class with __contains__."""
    if isinstance(y, Dict):
        if not (isinstance(x, Static) and isinstance(x.obj, str)):
            return c.report(TileTypeError(f"a key must be a string constant, not {phrase(x)}"))
        return loose((x.obj in y.items) == positive)
    if (fn := special_methods.own(c, y, "contains")) is not None:
        found = conditions.truth_term(c, special_methods.call(c, fn, y, x))
        return found if positive else operators.unary(c, ast.Not, found)
    if not isinstance(y, Tuple):
        return c.report(TileTypeError(f"`in` looks into tuples and keyword dicts, not into {phrase(y)}"))
    result: Term = loose(False)
    for candidate in y.items:
        same = _same(c, x, candidate)
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


def _same(c: Context, x: Term, y: Term) -> Term:
    """`x == y`, as `in` compares. Terms of different kinds are different; objects without `==` in tile code, such as
    None and functions, are equal if they are one.
    """
    kinds = [operators.constant_kind(t) for t in (x, y)]
    objects = [isinstance(t, Static) for t in (x, y)]
    if all(objects) and "other" in kinds:
        return loose(same_object(x.obj, y.obj))
    if any(isinstance(t, Record) for t in (x, y)) or is_tile(x) and is_tile(y):
        return operators.binary(c, ast.Eq, x, y)
    if x is y and not is_poisoned(x):
        return loose(True)
    alike = kinds[0] == kinds[1] != "other" or "fstring" in kinds and "str" in kinds
    unknown = type(x) is type(y) and kinds[0] == "other" or "enum" in kinds and _mixes(x, y)
    return operators.binary(c, ast.Eq, x, y) if alike or unknown else loose(False)


def _mixes(x: Term, y: Term) -> bool:
    """Whether one of two terms is a member of an enum that is also of another class, such as float, and the other one
    might equal it.
    """
    for t, other in ((x, y), (y, x)):
        if isinstance(t, Static) and isinstance(t.obj, enum.Enum) and type(t.obj)._member_type_ is not object:
            return is_tile(other) or isinstance(other, Tuple | FString)
    return False
