"""Operators: Python functions of items, and the well-known ones (well_known.py) [OPR-*].

A kernel is made for an `Operator`, which stands for all functions of equal code that capture equal values: a fresh
function runs what was compiled for the first one. Kernels see a copy of the function that keeps what was captured at
that time. Each call looks at what a function captures, so finding its operator is quick (`_glance`).
"""

from __future__ import annotations

import builtins
import enum
import functools
import hashlib
import struct
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import cutile as ct
from cutile._support.locks import Lock
from cutile._support.lru import LruDict
from cutile.compute.arrays import is_array, part_of_array, type_of_array
from cutile.compute.value_types import Number, Struct, ValueType, tuple_of
from cutile.compute.well_known import FUNCTIONS, OpKind
from cutile.errors import TileError, TileUnsupportedFeatureError
from cutile.front.context import Hidden
from cutile.front.program import type_kernel
from cutile.ir.nodes import For, Kernel, Op, Region, While
from cutile.ir.text import anonymous_text
from cutile.ir.walk import only_op, walk
from cutile.types import TileType


class RawOp:
    """Device code of another compiler [OPR-9]. It can be made, and used nowhere here.

    Parameters
    ----------
    ltoir : bytes
        The code, in LTO-IR.
    name : str
        The name of its function.
    state : bytes, default b""
        What the function is given first.
    state_alignment : int, default 1
        In bytes.
    extra_ltoirs : list of bytes, optional
        Further code.

    Raises
    ------
    TileUnsupportedFeatureError
        Where one is passed as an operator: LTO-IR cannot be linked into Tile IR.

    Examples
    --------
    >>> ct.compute.RawOp(ltoir=b"", name="add").name
    'add'
    """

    def __init__(self, *, ltoir: bytes, name: str, state: bytes = b"", state_alignment: int = 1,
                 extra_ltoirs: list[bytes] | None = None):
        self.ltoir, self.name, self.state = ltoir, name, state
        self.state_alignment, self.extra_ltoirs = state_alignment, extra_ltoirs


# ------------------------------------------------------------------ any operator


class Operator:
    """An operator as kernels take it. There is one for all equal ones that are in use, so identity tells them apart.

    function  what kernels call; it captures what the user's function captured
    watched   whether it captures something whose contents may change
    hidden    what stands in it for the arrays that the user's function captured
    """

    def __init__(self, function: Callable, watched: bool, hidden: tuple[Hidden, ...] = ()):
        self.function, self.watched, self.hidden = function, watched, hidden
        self.results: dict[tuple[ValueType, ...], Result] = {}

    def meaning(self) -> OperatorMeaning:
        """What it does, for those types of operands that it was asked for."""
        return OperatorMeaning({types: found.digest() for types, found in self.results.items()})

    @property
    def key(self) -> Operator:
        """Its part of the keys of kernels."""
        return self


class OperatorMeaning:
    """What an operator does, in any process: for types of operands, a digest of what it is there. It is equal to
    operators that do the same.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, digests: dict[tuple[ValueType, ...], str]):
        self.digests = digests

    def meaning(self) -> OperatorMeaning:
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operator):
            return isinstance(other, OperatorMeaning) and other.digests == self.digests
        try:
            return all(result_of(other, *types).digest() == digest for types, digest in self.digests.items())
        except (TileError, TypeError, ValueError):  # it cannot take these operands
            return False


_RECENT: LruDict[tuple, tuple[Operator, list]] = LruDict(1000)  # by `_glance`, each with what it knows by identity
_OPERATORS: weakref.WeakValueDictionary[tuple, Operator] = weakref.WeakValueDictionary()  # by key
_KINDS = {kind: Operator(f, False) for kind, f in FUNCTIONS.items()}
_lock = Lock()


def operator(op: Any, argument: str = "op", arrays: dict[int, Any] | None = None) -> Operator:
    """The operator that an argument stands for; TypeError, naming the argument, if it is none. `arrays` gets the arrays
    that it captures, by their ids, in the order of `Operator.hidden`.
    """
    cls = type(op)
    if cls is types.FunctionType:
        kept: list[Any] = []
        captured: dict[int, Any] = {} if arrays is None else arrays
        seen = _glance(op, kept, (), captured)
        found = _RECENT.get(seen)
        if found is None:
            hidden: dict[int, Hidden] = {}
            found = _interned(*frozen(op, {}, hidden), tuple(hidden.values())), kept
            _RECENT.keep(seen, found)
        return found[0]
    if cls is Operator:
        return op
    if cls is OpKind:
        if op not in _KINDS:
            raise ValueError(f"argument `{argument}`: OpKind.{op.name} is no operator of its own; pass the function")
        return _KINDS[op]
    if isinstance(op, RawOp):
        raise TileUnsupportedFeatureError(
            f"argument `{argument}`: LTO-IR cannot be linked into Tile IR, so RawOp `{op.name}` cannot run",
            help="write the operator as a Python function of items")
    if isinstance(getattr(op, "py_func", None), types.FunctionType):  # of @numba.cuda.jit
        return operator(op.py_func, argument, arrays)
    if callable(op) and not isinstance(op, type):
        return _interned(("object", _Kept(op)), op)
    raise TypeError(f"argument `{argument}`: expected a function of items or an OpKind, got {type(op).__name__}")


def _interned(key: tuple, function: Callable, hidden: tuple[Hidden, ...] = ()) -> Operator:
    with _lock.here():
        found = _OPERATORS.get(key)
        if found is None:
            found = _OPERATORS[key] = Operator(function, _changes(key), hidden)
    return found


def _changes(key: Any) -> bool:
    """Whether something in a key is known by identity, and may change."""
    if isinstance(key, tuple):
        return any(map(_changes, key))
    if not isinstance(key, _Kept):
        return False
    obj = key.obj
    if not isinstance(obj, types.ModuleType | type | enum.Enum | ct.DType) and not callable(obj):
        return True
    home = obj.__name__ if isinstance(obj, types.ModuleType) else getattr(obj, "__module__", None)
    return str(home or type(obj).__module__).partition(".")[0] not in _SETTLED


_SETTLED = ("math", "numpy", "cutile", "builtins", "operator", "types")  # types: the classes of structs


# ------------------------------------------------------------------ at each call

_GLOBALS: dict[int, tuple[types.CodeType, list[str]]] = {}  # of functions met, by the address of their code
_BY_VALUE = frozenset({int, bool, str, bytes, type(None)})
_float = struct.Struct("d").pack


def _glance(fn: types.FunctionType, kept: list, around: tuple, arrays: dict[int, Any]) -> tuple:
    """What tells a function from others, as far as a quick look sees: equal ones have equal keys. Objects count by
    their addresses, so they must be `kept`; arrays by their dtypes and ranks, and they are found.
    """
    code = fn.__code__
    try:
        names = _GLOBALS[id(code)][1]
    except KeyError:
        if len(_GLOBALS) > 4096:
            _GLOBALS.clear()
        names = global_names(code)
        _GLOBALS[id(code)] = code, names
    if code in around:
        return (id(code),)
    kept.append(code)
    seen: list[Any] = [id(code), debugged()]
    around = (*around, code)
    for cell in fn.__closure__ or ():
        try:
            seen.append(_seen(cell.cell_contents, kept, around, arrays))
        except ValueError:  # an empty cell
            seen.append(cell)
    space = fn.__globals__
    for name in names:
        if name in space:
            seen.append((name, _seen(space[name], kept, around, arrays)))
    if fn.__defaults__ is not None:
        seen.append(_seen(fn.__defaults__, kept, around, arrays))
    if fn.__kwdefaults__:
        seen.append(_seen(tuple(fn.__kwdefaults__.items()), kept, around, arrays))
    if fn.__annotations__:
        seen.append(_seen(tuple(fn.__annotations__.items()), kept, around, arrays))
    return tuple(seen)


_monitoring = getattr(sys, "monitoring", None)  # of Python 3.12


def debugged() -> bool:
    """Whether a debugger may be attached."""
    return sys.gettrace() is not None or _monitoring is not None and _monitoring.get_tool(
        _monitoring.DEBUGGER_ID) is not None


def _seen(obj: Any, kept: list, around: tuple, arrays: dict[int, Any]) -> Any:
    cls = type(obj)
    if cls in _BY_VALUE:
        return cls, obj
    if cls is float:
        return cls, _float(obj)
    if cls is tuple:
        return tuple([_seen(x, kept, around, arrays) for x in obj])
    if isinstance(obj, np.generic):
        return cls, obj.tobytes()
    if cls is types.FunctionType and not obj.__module__.startswith(("cutile.", "numpy")):
        return _glance(obj, kept, around, arrays)
    if is_array(obj):
        arrays.setdefault(id(obj), obj)
        return "array", list(arrays).index(id(obj)), part_of_array(obj)
    kept.append(obj)
    return id(obj)


# ------------------------------------------------------------------ where it is new


class _Kept:
    """Keeps an object alive in a key, which names it by its id."""

    def __init__(self, obj: Any):
        self.obj = obj

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kept) and other.obj is self.obj

    def __hash__(self) -> int:
        return id(self.obj)


def frozen(fn: types.FunctionType, around: dict[types.FunctionType, tuple], hidden: dict[int, Hidden]
           ) -> tuple[tuple, types.FunctionType]:
    """The key of a function, and a copy that keeps what the function captures now. `around`: functions that are being
    frozen, so that recursion ends. `hidden`: what stands for arrays in the copy, by the arrays' ids.
    """
    if fn in around:
        return around[fn]
    code = fn.__code__
    cells = tuple(types.CellType() for _ in code.co_freevars)
    whole = types.FunctionType(code, {"__builtins__": builtins.__dict__, "__name__": fn.__module__}, fn.__name__, None,
                               cells)
    whole.__module__, whole.__qualname__, whole.__annotations__ = fn.__module__, fn.__qualname__, fn.__annotations__
    around[fn] = ("recursion", code_key(code)), whole
    key: list[Any] = [code_key(code)]
    if debugged():  # breakpoints are in a function at its place
        key.append((code.co_filename, code.co_firstlineno, code.co_name))
    for cell, given in zip(cells, fn.__closure__ or (), strict=True):
        try:
            value = given.cell_contents
        except ValueError:  # an empty cell
            continue
        part, cell.cell_contents = _captured(value, around, hidden)
        key.append(part)
    for name in global_names(code):
        if name in fn.__globals__:
            part, value = _captured(fn.__globals__[name], around, hidden)
            key.append((name, part))
            whole.__globals__[name] = value
    if fn.__annotations__:
        key.append(("annotations", *((n, _captured(a, around, {})[0]) for n, a in fn.__annotations__.items())))
    for attribute in ("__defaults__", "__kwdefaults__"):
        given = getattr(fn, attribute)
        if given:
            items = given.items() if isinstance(given, dict) else enumerate(given)
            found = {k: _captured(v, around, hidden) for k, v in items}
            key.append((attribute, *((k, part) for k, (part, _) in found.items())))
            setattr(whole, attribute, {k: v for k, (_, v) in found.items()} if isinstance(given, dict) else tuple(
                v for _, v in found.values()))
    return tuple(key), whole


@functools.lru_cache(maxsize=4096)
def code_key(code: types.CodeType) -> tuple:
    """What a function does, wherever it is written."""
    consts = tuple(code_key(c) if isinstance(c, types.CodeType) else (type(c), repr(c)) for c in code.co_consts)
    return (code.co_code, consts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount,
            code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)


@functools.lru_cache(maxsize=4096)
def global_names(code: types.CodeType) -> list[str]:
    """The names that a function, or a function defined in it, may look up outside."""
    found = dict.fromkeys(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found.update(dict.fromkeys(global_names(const)))
    return list(found)


def _captured(obj: Any, around: dict, hidden: dict[int, Hidden]) -> tuple[Any, Any]:
    """The part of a key for a captured object, and the object as the copy captures it."""
    if isinstance(obj, bool | int | float | str | bytes | type(None)):
        return (type(obj), repr(obj)), obj
    if isinstance(obj, np.generic):
        return (type(obj), obj.tobytes()), obj
    if isinstance(obj, tuple) and type(obj) is tuple:
        parts = [_captured(x, around, hidden) for x in obj]
        return ("tuple", *(p for p, _ in parts)), tuple(x for _, x in parts)
    obj = getattr(obj, "py_func", obj) if not isinstance(obj, types.ModuleType | type) else obj
    if isinstance(obj, types.FunctionType) and not obj.__module__.startswith(("cutile.", "numpy")):
        return frozen(obj, around, hidden)
    if is_array(obj):
        stands = hidden.setdefault(id(obj), Hidden(f"captured_{len(hidden)}", type_of_array(obj)))
        return ("array", list(hidden).index(id(obj)), stands.type), stands
    return _Kept(obj), obj


# ------------------------------------------------------------------ types of results


class Result(NamedTuple):
    """What an operator gives for operands of some types.

    type    of its results
    loops   whether it has a loop, or reads an array, and so cannot stand in ct.reduce or ct.scan
    kernel  IR of a kernel that applies it
    single  the name of the op of the language that it is, one of _COMMUTATIVE; "" if it is none
    """

    type: ValueType
    loops: bool
    kernel: Kernel
    single: str

    def digest(self) -> str:
        """A digest of what it computes."""
        return hashlib.sha256(anonymous_text(self.kernel).encode()).hexdigest()


def result_of(op: Operator, *operands: ValueType) -> Result:
    """The result of an operator on items of these types. Raises the operator's errors."""
    found = op.results.get(operands)
    if found is None:
        found = op.results.setdefault(operands, _result(op, operands))
    return found


def _result(op: Operator, operands: tuple[ValueType, ...]) -> Result:
    seen: list[ValueType] = []
    function = op.function

    def note(result: Any) -> None:
        seen.append(_type_of(result))

    def probe(numbers):
        values = tuple(operands[k].nest(numbers[k]) for k in ct.static_iter(range(len(operands))))
        result = ct.elementwise(function)(*values)
        ct.static_eval(note(result))

    numbers = tuple(tuple(TileType(d, (2,)) for d in t.dtypes) for t in operands)
    kernel = type_kernel(probe, [numbers, *(h.type for h in op.hidden)], op.hidden).kernel
    loops = any(isinstance(n, For | While) for n in walk(kernel.body) if not isinstance(n, Op))
    single = next((_single(n.region) for n in walk(kernel.body) if isinstance(n, Op) and n.region is not None), "")
    return Result(seen[0], loops or bool(op.hidden), kernel, single)


_COMMUTATIVE = ("add", "mul", "minimum", "maximum", "bitwise_and", "bitwise_or", "bitwise_xor")


def _single(region: Region) -> str:
    n = only_op(region)
    if n is None or n.op.name not in _COMMUTATIVE or n.attrs.get("flush_to_zero") or n.attrs.get("propagate_nan") \
            or n.results[0].type != n.operands[0].type:
        return ""
    return n.op.name if list(n.operands) in (list(region.params), list(region.params)[::-1]) else ""


def _type_of(result: Any) -> ValueType:
    if isinstance(result, tuple):
        return tuple_of(tuple(map(_type_of, result))).value_type
    if isinstance(found := getattr(type(result), "value_type", None), Struct):
        return found
    return Number(result.dtype)
