"""What element functions may call besides tile code: functions of `math`, ufuncs of NumPy, and builtins with the
meaning that they have in Python [ELT-13…16].

Each has a handler: a function that takes the context and the positional arguments, as terms, and returns the result.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from cutile.dtypes import float32, float64, info, int64
from cutile.errors import TileTypeError
from cutile.front import conditions, element_math, functions, op_calls, operators
from cutile.front.builtins import absolute
from cutile.front.context import Context
from cutile.front.op_calls import check_count
from cutile.ir.terms import Const, Term, Tuple, describe, is_poisoned, is_scalar
from cutile.ops import arithmetic, bits, compare, convert, select
from cutile.ops import math as math_ops
from cutile.ops._constants import loose
from cutile.ops._op import OpDef
from cutile.ops._promotion import cast

Handler = Callable[..., Term]
F = TypeVar("F", bound=Callable)


def _float(t: Term) -> Term:
    """A number as `math` takes it: a float; integers become float64 [ELT-16]."""
    if not is_scalar(t) or info(t.type.dtype).floating:
        return t
    return loose(float(t.value)) if isinstance(t, Const) and t.loose else t


def _floats(c: Context, args: tuple[Term, ...]) -> list[Term]:
    found = [_float(t) for t in args]
    return [cast(c, t, float64) if is_scalar(t) and not info(t.type.dtype).floating else t for t in found]


def _takes(*counts: int) -> Callable[[F], F]:
    """Declares how many arguments a handler takes; one without this checks them itself."""
    def declare(apply: F) -> F:
        apply.counts = counts  # type: ignore[attr-defined]
        return apply
    return declare


def _counted(name: str, h: Handler) -> Handler:
    """A handler that refuses calls with another number of arguments, under the name that users write."""
    counts = getattr(h, "counts", None)
    if counts is None:
        return h

    def apply(c: Context, *args: Term) -> Term:
        check_count(name, args, *counts, where="an element function", help=_INSTEAD.get((name, len(args))))
        return h(c, *args)
    return apply


_INSTEAD = {("math.log", 2): "write math.log(x) / math.log(base)",
            ("round", 2): "for one digit write round(x * 10) / 10",
            ("math.hypot", 3): "write math.hypot(math.hypot(x, y), z)",
            ("math.gcd", 3): "write math.gcd(math.gcd(x, y), z)", ("math.lcm", 3): "write math.lcm(math.lcm(x, y), z)",
            ("np.where", 1): "an element has no indices: write np.where(condition, x, y)"}


def _op(op: OpDef, *, floats: bool = True, **options: Any) -> Handler:
    names = op_calls.parameters_of(op).positional

    @_takes(len(names))
    def apply(c: Context, *args: Term) -> Term:
        given = dict(zip(names, _floats(c, args) if floats else args, strict=True))
        return op_calls.apply(c, op, given | {k: loose(v) for k, v in options.items()})
    return apply


def _composed(fn: Callable, *, floats: bool = True) -> Handler:
    @_takes(len(inspect.signature(fn).parameters))
    def apply(c: Context, *args: Term) -> Term:
        return functions.call_function(c, fn, tuple(_floats(c, args)) if floats else args, {})
    return apply


def _wide(fn: Callable) -> Handler:
    """One that takes floats, of less than 32 bits as float32; the result is rounded to their dtype [ELT-16]."""
    @_takes(len(inspect.signature(fn).parameters))
    def apply(c: Context, *args: Term) -> Term:
        args = tuple(_floats(c, args))
        narrow = [t.type.dtype for t in args if is_scalar(t) and info(t.type.dtype).floating
                  and t.type.dtype.bitwidth < 32]
        if not narrow:
            return functions.call_function(c, fn, args, {})
        found = functions.call_function(c, fn, tuple(cast(c, t, float32) if is_scalar(t) else t for t in args), {})
        return found if is_poisoned(found) else cast(c, found, narrow[0])
    return apply


def _operator(kind: type, *, floats: bool = False) -> Handler:
    @_takes(2)
    def apply(c: Context, *args: Term) -> Term:
        return operators.binary(c, kind, *(_floats(c, args) if floats else args))
    return apply


def _negation(kind: type) -> Handler:
    @_takes(1)
    def apply(c: Context, *args: Term) -> Term:
        return operators.unary(c, kind, *args)
    return apply


def _of_truths(op: OpDef) -> Handler:
    @_takes(2)
    def apply(c: Context, *args: Term) -> Term:
        return op_calls.apply(c, op, dict(zip("xy", (conditions.truth_term(c, t) for t in args), strict=True)))
    return apply


def _extremum(name: str, op: OpDef) -> Handler:
    """max(x, y, …), or of one tuple."""
    def apply(c: Context, *args: Term) -> Term:
        if len(args) == 1 and isinstance(args[0], Tuple):
            args = args[0].items
        if len(args) < 2 and not (args and is_scalar(args[0])):
            raise TileTypeError(f"{name}() takes two numbers or more, or a tuple of numbers")
        return functools.reduce(lambda x, y: op_calls.apply(c, op, {"x": x, "y": y}), args)
    return apply


@_takes(1, 2)
def _sum(c: Context, *args: Term) -> Term:
    if not isinstance(args[0], Tuple):
        raise TileTypeError(f"sum() takes a tuple of numbers in an element function, got {describe(args[0])}")
    return functools.reduce(lambda x, y: operators.binary(c, ast.Add, x, y), args[0].items,
                            args[1] if len(args) > 1 else loose(0))


def _number(builtin: Callable[..., Term], dtype: Any) -> Handler:
    """int(x) and float(x) of a run-time number: int64 and float64, the types that have Python's name in NumPy."""
    @_takes(0, 1)
    def apply(c: Context, *args: Term) -> Term:
        if not args:
            return loose(0) if dtype is int64 else loose(0.0)
        if is_scalar(args[0]) and not isinstance(args[0], Const):
            return cast(c, args[0], dtype)
        return builtin(c, args[0])
    return apply


_COMPOSED = "trunc fmod copysign isinf isfinite degrees radians log10 log1p expm1 asin acos atan hypot fma"
_WIDE = "asinh acosh atanh cbrt"
_OPS = "exp exp2 log log2 sin cos tan sinh cosh tanh sqrt floor ceil isnan atan2 pow"

# Names of NumPy for what is above, where they are others or more.
_NUMPY = {"degrees": "degrees rad2deg", "radians": "radians deg2rad", "asin": "arcsin", "acos": "arccos",
          "atan": "arctan", "atan2": "arctan2", "pow": "power float_power", "asinh": "arcsinh", "acosh": "arccosh",
          "atanh": "arctanh"}


def _tables() -> tuple[dict[str, Handler], dict[str, Handler], dict[str, Handler]]:
    """The handlers by names: in math, in NumPy, of builtins."""
    by_name = {n: _composed(getattr(element_math, n)) for n in _COMPOSED.split()}
    by_name |= {n: _op(getattr(math_ops, n)) for n in _OPS.split()}
    by_name |= {n: _wide(getattr(element_math, n)) for n in _WIDE.split()}
    by_name["pow"] = _operator(ast.Pow, floats=True)
    of_math = {**by_name, "fabs": _op(arithmetic.abs), "remainder": _composed(element_math.remainder)}
    of_math |= {n: _composed(getattr(element_math, n), floats=False) for n in ("gcd", "lcm")}
    of_numpy = {n: h for name, h in by_name.items() if name != "fma" for n in _NUMPY.get(name, name).split()}
    of_numpy |= {"power": _operator(ast.Pow), "rint": _composed(element_math.rint), "fabs": _op(arithmetic.abs)}
    of_numpy |= {n: _composed(getattr(element_math, n), floats=False) for n in ("square", "sign", "clip", "gcd",
                                                                                         "lcm")}
    of_numpy |= {n: _composed(getattr(element_math, n)) for n in ("signbit", "heaviside")}
    of_numpy["reciprocal"] = _composed(element_math.reciprocal, floats=False)
    of_numpy |= {n: _operator(kind) for kind, names in _OPERATORS.items() for n in names.split()}
    of_numpy |= {"negative": _negation(ast.USub), "positive": _negation(ast.UAdd), "logical_not": _negation(ast.Not),
                 "invert": _negation(ast.Invert), "bitwise_not": _negation(ast.Invert)}
    of_numpy |= dict.fromkeys(("absolute", "abs"), absolute)
    for name, op in (("fmax", arithmetic.maximum),
                     ("fmin", arithmetic.minimum), ("where", select.where)):
        of_numpy[name] = _op(op, floats=False)
    for name, op in (("maximum", arithmetic.maximum), ("minimum", arithmetic.minimum)):
        of_numpy[name] = _op(op, floats=False, propagate_nan=True)
    of_numpy |= {"logical_and": _of_truths(bits.bitwise_and), "logical_or": _of_truths(bits.bitwise_or),
                 "logical_xor": _of_truths(compare.not_equal)}
    of_python = {"max": _extremum("max", arithmetic.maximum), "min": _extremum("min", arithmetic.minimum),
                 "int": _number(convert.builtin_int, int64), "float": _number(convert.builtin_float, float64),
                 "sum": _sum, "pow": _operator(ast.Pow), "round": _composed(element_math.rint)}
    return of_math, of_numpy, of_python


_OPERATORS = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide true_divide",
    ast.FloorDiv: "floor_divide", ast.Mod: "remainder mod", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "left_shift bitwise_left_shift", ast.RShift:
    "right_shift bitwise_right_shift", ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal",
    ast.Gt: "greater", ast.GtE: "greater_equal",
}


@functools.cache
def _handlers() -> dict[int, tuple[Any, Handler]]:
    """Handlers by id of the Python function, because the object looked up may be unhashable."""
    found = {}
    for module, prefix, table in zip((math, np, builtins), ("math.", "np.", ""), _tables(), strict=True):
        for name, h in table.items():
            if (f := getattr(module, name, None)) is not None:  # Python 3.11 lacks math.cbrt's younger kin
                found[id(f)] = f, _counted(prefix + name, h)
    return found


def handler(obj: Any) -> Handler | None:
    """The handler of a function of math or NumPy, or of a builtin; None for any other object."""
    found = _handlers().get(id(obj))
    return found[1] if found is not None and found[0] is obj else None
