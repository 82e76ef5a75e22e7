"""Keys of functions: equal ones are those of functions of equal code that capture equal values.

A quick look at each call finds what was compiled before (`glance`). Where a function is new, its whole key is made, and
a copy that keeps what the function captures now (`frozen`).
"""

from __future__ import annotations

import builtins
import enum
import functools
import struct
import sys
import types
from typing import Any

import numpy as np

import cutile as ct
from cutile.compute.arrays import is_array, part_of_array, type_of_array
from cutile.front.bytecode_names import GLOBAL, uses
from cutile.front.context import Hidden
from cutile.front.python_objects import declaration

# ------------------------------------------------------------------ at each call

_GLOBALS: dict[int, tuple[types.CodeType, list[str]]] = {}  # of functions met, by the address of their code
_BY_VALUE = frozenset({int, bool, str, bytes, type(None)})
_float = struct.Struct("d").pack


def glance(fn: types.FunctionType, kept: list, around: tuple, arrays: dict[int, Any]) -> tuple:
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
    if cls is types.FunctionType and (fn := _inlined(obj)) is not None:
        return glance(fn, kept, around, arrays)
    if is_array(obj):
        arrays.setdefault(id(obj), obj)
        return "array", list(arrays).index(id(obj)), part_of_array(obj)
    kept.append(obj)
    return id(obj)


def _inlined(fn: types.FunctionType) -> types.FunctionType | None:
    """What counts of a function that is captured: its code, or that of the one that ct.function declares; None if the
    object counts, as the front end knows it.
    """
    if fn.__module__.startswith(("cutile.", "numpy")):
        return None
    space = declaration(fn)
    if space is None:
        return fn
    return space.fn if space.tile and isinstance(space.fn, types.FunctionType) else None


# ------------------------------------------------------------------ where it is new


class Kept:
    """Keeps an object alive in a key, which names it by its id."""

    def __init__(self, obj: Any):
        self.obj = obj

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept) and other.obj is self.obj

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
            code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & ~_NESTED)


_NESTED = 0x10  # inspect.CO_NESTED: the function is defined in another one


@functools.lru_cache(maxsize=4096)
def global_names(code: types.CodeType) -> list[str]:
    """The globals that a function, or a function defined in it, may look up; names of attributes are none."""
    return list(dict.fromkeys(use.name for use in uses(code) if use.how == GLOBAL))


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
    if isinstance(obj, types.FunctionType) and (fn := _inlined(obj)) is not None:
        return frozen(fn, around, hidden)
    if is_array(obj):
        stands = hidden.setdefault(id(obj), Hidden(f"captured_{len(hidden)}", type_of_array(obj)))
        return ("array", list(hidden).index(id(obj)), stands.type), stands
    return Kept(obj), obj


def holds_what_may_change(key: Any) -> bool:
    """Whether something in a key is known by identity, and may change."""
    if isinstance(key, tuple):
        return any(map(holds_what_may_change, key))
    if not isinstance(key, Kept):
        return False
    obj = key.obj
    if not isinstance(obj, types.ModuleType | type | enum.Enum | ct.DType) and not callable(obj):
        return True
    home = obj.__name__ if isinstance(obj, types.ModuleType) else getattr(obj, "__module__", None)
    return str(home or type(obj).__module__).partition(".")[0] not in _SETTLED


_SETTLED = ("math", "numpy", "cutile", "builtins", "operator", "types")  # types: the classes of structs
