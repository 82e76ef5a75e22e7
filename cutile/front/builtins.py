"""The builtins, and functions of the module `operator`, that tile code may call [FN-6].

Each has a handler: a function that takes the context and the positional arguments, as terms, and returns the result.
"""

from __future__ import annotations

import ast
import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

from cutile.dtypes import foreign_pointer_dtype, from_foreign, info, int32
from cutile.errors import TileTypeError
from cutile.front import attributes, conditions, items, op_calls, operators, special_methods, static_names
from cutile.front.context import Context
from cutile.front.op_calls import check_count
from cutile.ir.terms import NONE, Const, Dict, FString, Leaf, PySlice, Range, Static, Term, Tuple, describe
from cutile.ops import arithmetic, convert, debug, memory
from cutile.ops._arguments import int_scalar_arg, is_none
from cutile.ops._constants import loose, strict
from cutile.ops._op import OpDef
from cutile.ops._promotion import cast
from cutile.types import ListType


def _len(c: Context, *args: Term) -> Term:
    check_count("len", args, 1)
    t = args[0]
    if (fn := special_methods.own(c, t, "len")) is not None:
        return special_methods.call(c, fn, t)
    match t:
        case Tuple():
            return loose(len(t.items))
        case Leaf() if isinstance(t.type, ListType):
            return memory.list_len(c, t)
    help = "the sizes of its axes are x.shape[0], …" if isinstance(t, Const | Leaf) else None
    raise TileTypeError(f"a {describe(t)} has no len()", help=help)


def _two_arguments(op: OpDef, name: str) -> Callable[..., Term]:
    def apply(c: Context, *args: Term) -> Term:
        if len(args) != 2:
            raise TileTypeError(
                f"{name}() takes exactly two arguments in tile code, got {len(args)}",
                help=f"nest the calls, or reduce a tile with ct.{name}(tile, axis)" if name in ("min", "max") else None,
            )
        return op_calls.apply(c, op, dict(zip(op.__signature__.parameters, args, strict=False)))
    return apply


def _one_argument(op: OpDef) -> Callable[..., Term]:
    def apply(c: Context, *args: Term) -> Term:
        check_count(op.name, args, 1)
        return op_calls.apply(c, op, {next(iter(op.__signature__.parameters)): args[0]})
    return apply


def absolute(c: Context, *args: Term) -> Term:
    """abs(x): by the method of its class, if it has one."""
    check_count("abs", args, 1)
    return special_methods.unary(c, "abs", args[0], lambda: _one_argument(arithmetic.abs)(c, *args))


def _bool(c: Context, *args: Term) -> Term:
    check_count("bool", args, 0, 1)
    if not args:
        return loose(False)
    return conditions.truth_term(c, args[0])


def _int(c: Context, *args: Term) -> Term:
    check_count("int", args, 0, 1)
    return convert.builtin_int(c, args[0]) if args else loose(0)


def _float(c: Context, *args: Term) -> Term:
    check_count("float", args, 0, 1)
    return convert.builtin_float(c, args[0]) if args else loose(0.0)


def _str(c: Context, *args: Term) -> Term:
    check_count("str", args, 0, 1)
    return _string(debug.text_of(c, args[0])) if args else Static("")


def _repr(c: Context, *args: Term) -> Term:
    check_count("repr", args, 1)
    return _string(debug.repr_of(c, args[0]))


def _string(text: FString) -> Term:
    """The formatted string as a term: a string constant, if no part of it is known only at run time."""
    parts = text.parts
    return Static("".join(parts)) if all(isinstance(p, str) for p in parts) else text


def _join_strings(c: Context, *args: Term) -> Term:
    check_count("join", args, 2)
    separator, items = args
    if not isinstance(items, Tuple):
        raise TileTypeError(f"join() takes a tuple of strings, got {describe(items)}")
    result: Term = Static("")
    for i, item in enumerate(items.items):
        if i:
            result = operators.binary(c, ast.Add, result, separator)
        result = operators.binary(c, ast.Add, result, item)
    return result


def _tuple(c: Context, *args: Term) -> Term:
    check_count("tuple", args, 0, 1)
    if not args:
        return Tuple(())
    if not isinstance(args[0], Tuple):
        raise TileTypeError(f"tuple() takes a tuple or a generator over ct.static_iter(...), got {describe(args[0])}")
    return args[0]


def _slice(c: Context, *args: Term) -> Term:
    check_count("slice", args, 3)
    return PySlice(*args)


def _range(c: Context, *args: Term) -> Term:
    """range(…) [LOOP-1, LOOP-2, IDX-4]."""
    check_count("range", args, 1, 2, 3)
    start, stop, step = {1: (loose(0), *args, loose(1)), 2: (*args, loose(1)), 3: args}[len(args)]
    for name, t in (("start", start), ("stop", stop), ("step", step)):
        int_scalar_arg("range", name, t)
    if isinstance(step, Const) and step.value <= 0:
        raise TileTypeError(f"range() needs a positive step, got {step.value}",
                            help="count upwards and compute the index: i = n - 1 - k for k in range(n)")
    d = max((t.type.dtype for t in (start, stop, step)), key=lambda d: d.bitwidth)
    d = d if d.bitwidth > 32 else int32
    return Range(*(cast(c, t, d) if not isinstance(t, Const) else strict(t.value, d) for t in (start, stop, step)), d)


def _getattr(c: Context, *args: Term) -> Term:
    check_count("getattr", args, 2)
    if not (isinstance(args[1], Static) and isinstance(args[1].obj, str)):
        raise TileTypeError(f"getattr() needs a constant name, got {describe(args[1])}")
    return attributes.attribute(c, args[0], args[1].obj)


def _pointer_dtype(c: Context, *args: Term) -> Term:
    """ct.foreign_pointer_dtype(d) [FPTR-1]."""
    check_count("foreign_pointer_dtype", args, 1)
    d = from_foreign(args[0].obj) if isinstance(args[0], Static) else None
    if d is None or info(d).kind == "p":
        raise TileTypeError(
            f"foreign_pointer_dtype() takes an element dtype such as ct.float32, got {describe(args[0])}"
        )
    return Static(foreign_pointer_dtype(d))


def _debugger(kind: str) -> Callable[..., Term]:
    def apply(c: Context, *args: Term) -> Term:
        return op_calls.apply(c, debug.breakpoint, {"kind": Static(kind)})
    return apply


def _dict_get(c: Context, *args: Term) -> Term:
    check_count("get", args, 2, 3)
    d, key, *default = args
    if not (isinstance(d, Dict) and isinstance(key, Static) and isinstance(key.obj, str)):
        raise TileTypeError(f"get() needs a string constant as key, got {describe(key)}")
    return d.items.get(key.obj, default[0] if default else NONE)


def _ensure_constant(c: Context, *args: Term) -> Term:
    check_count("ensure_constant", args, 1)
    return static_names.ensured(args[0])


def _operator(node_type: type) -> Callable[..., Term]:
    def apply(c: Context, *args: Term) -> Term:
        check_count("operator", args, 2)
        return operators.binary(c, node_type, args[0], args[1])
    return apply


def _unary_operator(node_type: type) -> Callable[..., Term]:
    def apply(c: Context, *args: Term) -> Term:
        check_count("operator", args, 1)
        return operators.unary(c, node_type, args[0])
    return apply


def _is(positive: bool) -> Callable[..., Term]:
    def apply(c: Context, *args: Term) -> Term:
        check_count("operator.is_", args, 2)
        if not any(map(is_none, args)):
            raise TileTypeError("`is` and `is not` compare with None only", help="write == or !=")
        return loose(all(map(is_none, args)) == positive)
    return apply


def _getitem(c: Context, *args: Term) -> Term:
    check_count("operator.getitem", args, 2)
    return items.item(c, *args)


@functools.cache
def _handlers() -> dict[int, tuple[Any, Callable[..., Term]]]:
    """Handlers by id of the Python function, because the object looked up may be unhashable."""
    o = operator
    binary = {
        o.add: ast.Add,
        o.sub: ast.Sub,
        o.mul: ast.Mult,
        o.truediv: ast.Div,
        o.floordiv: ast.FloorDiv,
        o.mod: ast.Mod,
        o.pow: ast.Pow,
        o.matmul: ast.MatMult,
        o.and_: ast.BitAnd,
        o.or_: ast.BitOr,
        o.xor: ast.BitXor,
        o.lshift: ast.LShift,
        o.rshift: ast.RShift,
        o.lt: ast.Lt,
        o.le: ast.LtE,
        o.gt: ast.Gt,
        o.ge: ast.GtE,
        o.eq: ast.Eq,
        o.ne: ast.NotEq,
    }
    unary = {o.neg: ast.USub, o.pos: ast.UAdd, o.invert: ast.Invert, o.inv: ast.Invert, o.not_: ast.Not}
    table: dict[Any, Callable[..., Term]] = {
        **{f: _operator(n) for f, n in binary.items()},
        **{f: _unary_operator(n) for f, n in unary.items()},
        o.is_: _is(True), o.is_not: _is(False), o.getitem: _getitem,
        len: _len, abs: absolute, divmod: _two_arguments(arithmetic.divmod, "divmod"),
        min: _two_arguments(arithmetic.minimum, "min"), max: _two_arguments(arithmetic.maximum, "max"),
        bool: _bool, int: _int, float: _float, str: _str, repr: _repr, tuple: _tuple, slice: _slice, range: _range,
        getattr: _getattr, breakpoint: _debugger("breakpoint"),
        str.join: _join_strings, dict.get: _dict_get, static_names.ensure_constant: _ensure_constant,
        foreign_pointer_dtype: _pointer_dtype,
    }
    return {id(f): (f, h) for f, h in table.items()}


def handler(obj: Any) -> Callable[..., Term] | None:
    """The handler of a builtin, or None for any other object."""
    found = _handlers().get(id(obj))
    if found is not None and found[0] is obj:
        return found[1]
    pdb = sys.modules.get("pdb")  # slow to import; a kernel that names it has imported it
    return _debugger("set_trace") if pdb is not None and obj is pdb.set_trace else None
