"""Operators on any two terms: tiles, tuples, strings, dtypes, dataclasses [EX-8…10, CV-1…5, DC-3].

An operator on tiles and scalars is an application of its op. On all other terms it is computed while the kernel is
compiled.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable
from functools import partial

from cutile.dtypes import bool_, from_foreign, info
from cutile.errors import TileTypeError
from cutile.front import conditions, op_calls, special_methods
from cutile.front.context import Context
from cutile.front.op_calls import Spans
from cutile.front.term_joins import same_object
from cutile.ir.terms import (
    POISON,
    Const,
    FString,
    Leaf,
    Record,
    Static,
    Term,
    Tuple,
    call_help,
    describe,
    is_poisoned,
    is_tile,
)
from cutile.ops import arithmetic, bits, compare, mma
from cutile.ops import math as math_ops
from cutile.ops._arguments import is_none, load_first
from cutile.ops._constants import loose
from cutile.ops._op import OpDef
from cutile.types import ArrayType

# AST operator → (symbol, op, name of the dunder that a dataclass may define).
BINARY: dict[type[ast.operator | ast.cmpop], tuple[str, OpDef, str]] = {
    ast.Add: ("+", arithmetic.add, "add"),
    ast.Sub: ("-", arithmetic.sub, "sub"),
    ast.Mult: ("*", arithmetic.mul, "mul"),
    ast.Div: ("/", arithmetic.truediv, "truediv"),
    ast.FloorDiv: ("//", arithmetic.floordiv, "floordiv"),
    ast.Mod: ("%", arithmetic.mod, "mod"),
    ast.Pow: ("**", math_ops.pow, "pow"),
    ast.MatMult: ("@", mma.matmul, "matmul"),
    ast.BitAnd: ("&", bits.bitwise_and, "and"),
    ast.BitOr: ("|", bits.bitwise_or, "or"),
    ast.BitXor: ("^", bits.bitwise_xor, "xor"),
    ast.LShift: ("<<", bits.bitwise_lshift, "lshift"),
    ast.RShift: (">>", bits.bitwise_rshift, "rshift"),
    ast.Eq: ("==", compare.equal, "eq"),
    ast.NotEq: ("!=", compare.not_equal, "ne"),
    ast.Lt: ("<", compare.less, "lt"),
    ast.LtE: ("<=", compare.less_equal, "le"),
    ast.Gt: (">", compare.greater, "gt"),
    ast.GtE: (">=", compare.greater_equal, "ge"),
}


def binary(c: Context, operator: type, x: Term, y: Term, spans: Spans | None = None) -> Term:
    """`x operator y` for any two terms. `operator` is a class of ast; `spans` gives where x and y are in the source."""
    symbol, op, dunder = BINARY[operator]
    if is_tile(x) and is_tile(y):  # most are
        return op_calls.apply_unpoisoned(c, op, {"x": x, "y": y}, spans)
    if is_poisoned(x) or is_poisoned(y):
        return POISON
    if special_methods.class_of(x) is not None or special_methods.class_of(y) is not None:
        found = special_methods.binary(c, dunder, x, y, lambda: _generated(c, symbol, dunder, x, y), partial(_not, c))
        if found is special_methods.EXCHANGED:
            return c.report(_exchanged(symbol, x, y))
        if found is not None:
            return found
        if isinstance(x, Record) and isinstance(y, Record) and symbol in ("==", "!="):
            return loose(symbol == "!=") if x.cls is not y.cls else c.report(_identity_of_records(symbol, x))
    if (special := _COMPILE_TIME.get((symbol, constant_kind(x), constant_kind(y)))) is not None:
        return c.attempt(special, c, x, y)
    return c.report(_unsupported(symbol, x, y))


def _unsupported(symbol: str, x: Term, y: Term) -> TileTypeError:
    array = next((t for t in (x, y) if isinstance(t, Leaf) and isinstance(t.type, ArrayType)), None)
    help = None
    if array is not None:
        help = load_first(array)
        if symbol in "+-" and any(is_tile(t) and info(t.type.dtype).integral for t in (x, y)):
            indices = "indices" if array.type.ndim == 1 else "one tile of indices per axis"
            help += (f"; an array is no pointer either: ct.gather(array, {indices}, mask=...) reads the elements at "
                     f"indices, and ct.scatter(array, {indices}, value, mask=...) writes them")
    elif is_none(x) or is_none(y):
        help = "compare with None by `is` and `is not`"
    else:
        help = call_help(x) or call_help(y)
    return TileTypeError(f"unsupported operands for {symbol}: {describe(x)} and {describe(y)}", help=help)


def constant_kind(t: Term) -> str:
    """The kind of a compile-time term, which decides what an operator on it means."""
    match t:
        case Tuple():
            return "tuple"
        case Static(str()):
            return "str"
        case Static(enum.Enum() as e) if not isinstance(e, int):
            return "enum"
        case Static(obj) if from_foreign(obj) is not None:
            return "dtype"
        case FString():
            return "fstring"
        case _:
            return "other"


def _concat_tuples(c, x: Tuple, y: Tuple) -> Term:
    return Tuple(x.items + y.items)


def _concat_strings(c, x: Term, y: Term) -> Term:
    if isinstance(x, Static) and isinstance(y, Static):
        return Static(x.obj + y.obj)
    return FString(_text_parts(x) + _text_parts(y))


def _text_parts(t: Term) -> tuple:
    return t.parts if isinstance(t, FString) else (t.obj,)


def _tuples_equal(c: Context, x: Tuple, y: Tuple) -> Term:
    """Comparison of tuples: item by item, recursively; tuples of different lengths are unequal [CV-1]."""
    if len(x.items) != len(y.items):
        return loose(False)
    result: Term = loose(True)
    for a, b in zip(x.items, y.items, strict=True):
        same = binary(c, ast.Eq, a, b)
        if is_poisoned(same):
            return same
        if isinstance(same, Const) and not same.value:
            return loose(False)
        if not isinstance(same, Const):
            known = isinstance(result, Const)
            result = same if known else op_calls.apply(c, bits.bitwise_and, {"x": result, "y": same})
    return result


def _negated(equal: Callable) -> Callable:
    def unequal(c: Context, x: Term, y: Term) -> Term:
        return op_calls.apply(c, bits.bitwise_not, {"x": equal(c, x, y)})
    return unequal


def _objects_equal(c, x: Static, y: Static) -> Term:
    return loose(same_object(from_foreign(x.obj) or x.obj, from_foreign(y.obj) or y.obj))


def _objects_unequal(c, x: Static, y: Static) -> Term:
    return loose(not _objects_equal(c, x, y).value)


def _strings(fn: Callable[[str, str], bool]) -> Callable:
    """A comparison of strings. Members of string enums are strings too, as in Python."""
    return lambda c, x, y: loose(fn(x.obj, y.obj))


_COMPILE_TIME: dict[tuple[str, str, str], Callable[[Context, Term, Term], Term]] = {
    ("+", "tuple", "tuple"): _concat_tuples,
    ("==", "tuple", "tuple"): _tuples_equal,
    ("!=", "tuple", "tuple"): _negated(_tuples_equal),
    ("+", "str", "str"): _concat_strings,
    ("+", "fstring", "str"): _concat_strings,
    ("+", "str", "fstring"): _concat_strings,
    ("+", "fstring", "fstring"): _concat_strings,
    ("==", "str", "str"): _strings(str.__eq__),
    ("!=", "str", "str"): _strings(str.__ne__),
    ("<", "str", "str"): _strings(str.__lt__),
    ("<=", "str", "str"): _strings(str.__le__),
    (">", "str", "str"): _strings(str.__gt__),
    (">=", "str", "str"): _strings(str.__ge__),
    **{
        (sym, k, k): fn
        for k in ("enum", "dtype")
        for sym, fn in (("==", _objects_equal), ("!=", _objects_unequal))
    },
}


def _generated(c: Context, symbol: str, dunder: str, x: Term, y: Term) -> Term | None:
    """A comparison by a method that dataclass made; None where there is none. Objects of different classes are not
    compared [DC-3].
    """
    if not (isinstance(x, Record) and isinstance(y, Record)) or x.cls is not y.cls:
        return None
    equality = symbol in ("==", "!=")
    names = special_methods.compared_fields(c, x, "eq" if equality else dunder)
    if names is None:
        return None
    xs, ys = ([t.fields[n] for n in names] for t in (x, y))
    if equality:
        return binary(c, ast.Eq if symbol == "==" else ast.NotEq, Tuple(tuple(xs)), Tuple(tuple(ys)))
    return _lexicographic(c, symbol, xs, ys)


def _exchanged(symbol: str, x: Term, y: Term) -> TileTypeError:
    name = special_methods.class_of(y).__name__
    return TileTypeError(f"unsupported operands for {symbol}: {describe(x)} and {describe(y)}",
                         help=f"a comparison calls a method of its left operand only: write the {name} on the left")


def _identity_of_records(symbol: str, x: Record) -> TileTypeError:
    name = x.cls.__name__
    return TileTypeError(f"{symbol} of two {name} objects would ask whether they are one object: {name} has no __eq__",
                         help="leave eq=False out, or compare their fields")


def _not(c: Context, t: Term) -> Term:
    """`not` of what a comparison gave, for `!=` where a class has `__eq__` only."""
    return unary(c, ast.Not, t if is_tile(t) else conditions.truth_term(c, t))


def _lexicographic(c: Context, symbol: str, xs: list[Term], ys: list[Term]) -> Term:
    """Comparison of dataclass(order=True): field by field, without branches."""
    strict_op = ast.Lt if symbol in ("<", "<=") else ast.Gt
    if not xs:
        return loose("=" in symbol)
    result = binary(c, ast.LtE if symbol == "<=" else ast.GtE if symbol == ">=" else strict_op, xs[-1], ys[-1])
    for a, b in zip(xs[-2::-1], ys[-2::-1], strict=True):
        tie = binary(c, ast.BitAnd, binary(c, ast.Eq, a, b), result)
        result = binary(c, ast.BitOr, binary(c, strict_op, a, b), tie)
    return result


# AST operator → (its name in messages, op, name of the dunder that a dataclass may define).
UNARY: dict[type[ast.unaryop], tuple[str, OpDef, str | None]] = {
    ast.USub: ("unary -", arithmetic.negative, "neg"),
    ast.UAdd: ("unary +", arithmetic.positive, "pos"),
    ast.Invert: ("~", bits.bitwise_not, "invert"),
    ast.Not: ("not", compare.logical_not, None),
}


def unary(c: Context, operator: type, x: Term) -> Term:
    """`operator x` for any term. `operator` is a class of ast."""
    if is_poisoned(x):
        return POISON
    symbol, op, dunder = UNARY[operator]
    if dunder and (fn := special_methods.own(c, x, dunder)) is not None:
        return special_methods.call(c, fn, x)
    if operator is ast.Invert and isinstance(x, Const) and x.loose and x.dtype is bool_:
        return c.report(TileTypeError(f"~{x.value} is not defined for a bool constant",
                                      help="write `not x`, or ct.bitwise_not(x)"))
    if is_tile(x):
        return op_calls.apply(c, op, {"x": x})
    help = call_help(x)
    if operator is ast.Not:
        help = "write `x is None`, or test it with an if; `not` negates numbers and tiles"
    return c.report(TileTypeError(f"unsupported operand for {symbol}: {describe(x)}", help=help))
