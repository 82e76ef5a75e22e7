"""Attributes of terms: `t.name` [EX-5]."""

from __future__ import annotations

import builtins
import enum
import inspect
import types

from cutile.errors import TileTypeError
from cutile.front.advice import hint, nearest
from cutile.front.context import Context
from cutile.front.foreign_names import NOT_MISSPELT, OF_ARRAYS, OF_TILES
from cutile.front.proxies import RECEIVERS, Method
from cutile.front.python_objects import capture
from cutile.front.special_methods import changes_lookup
from cutile.ir.terms import (
    POISON,
    Bound,
    Const,
    Dict,
    Leaf,
    Poison,
    RawMemory,
    Record,
    Static,
    Term,
    Tuple,
    View,
    call_help,
    is_array,
    is_tile,
    phrase,
)
from cutile.ops import memory, views
from cutile.ops._constants import const_term, loose
from cutile.ops._op import methods
from cutile.types import ListType


def attribute(c: Context, t: Term, name: str) -> Term:
    """The term of `t.name`. TileTypeError if there is no such attribute."""
    if is_tile(t):  # as most are
        if name in ("name", "value") and isinstance(t, Const) and t.member is not None:
            return attribute(c, Static(t.member), name)
        return _tile_attribute(t, name)
    match t:
        case Poison():
            return POISON
        case Static(types.ModuleType() as m):
            return _module_attribute(c, m, name)
        case Static(enum.Enum() as e) if name in ("name", "value"):
            c.dependencies.add(e, f"_{name}_", getattr(e, f"_{name}_"))
            return capture(c, getattr(e, name), name)
        case Static(str()) if name == "join":
            return Bound(Static(str.join), t)
        case Static(type() as cls):
            return _class_attribute(c, cls, name)
        case Record():
            return _record_attribute(c, t, name)
        case Tuple(items, cls) if cls is not tuple:
            if name in cls._fields:
                return items[cls._fields.index(name)]
            raise TileTypeError(f"a {cls.__name__} has no attribute `{name}` in tile code",
                                help=f"its fields are {', '.join(cls._fields)}")
        case Dict():
            if name == "get":
                return Bound(Static(dict.get), t)
        case View():
            if name in ("tile_shape", "traversal_steps"):
                return const_term(t.tile_shape if name == "tile_shape" else t.steps)
            if name == "dtype":
                return Static(t.array.type.dtype)
            return _method(t, "view", name)
        case RawMemory():
            if name == "dtype":
                return Static(t.array.type.dtype)
            return _method(t, "raw", name)
        case Leaf() if is_array(t):
            return _array_attribute(c, t, name)
        case Leaf() if isinstance(t.type, ListType):
            raise TileTypeError(f"{phrase(t)} has no attribute `{name}`", help="index it: arrays[i], or len(arrays)")
    help = call_help(t) or (
        "Python's own attributes and methods are there inside ct.static_eval(…)" if isinstance(t, Static) else None)
    raise TileTypeError(f"{phrase(t)} has no attribute `{name}` in tile code", help=help)


# The attributes that each kind of receiver has besides its methods.
_ATTRIBUTES = {kind: [n for n in dir(cls) if isinstance(getattr(cls, n), property)] for cls, kind in RECEIVERS.items()}


def _tile_attribute(t: Const | Leaf, name: str) -> Term:
    match name:
        case "dtype":
            return Static(t.type.dtype)
        case "shape":
            return const_term(t.type.shape)
        case "ndim":
            return loose(t.type.ndim)
    return _method(t, "tile", name)


def _method(t: Term, kind: str, name: str) -> Term:
    op = methods().get((kind, name))
    if op is not None:
        return Bound(Static(op), t)
    names = [n for k, n in methods() if k == kind] + _ATTRIBUTES[kind]
    own = {"tile": OF_TILES, "array": OF_ARRAYS}.get(kind, {})
    if name in own:
        help = f"write {own[name]}"
    elif close := nearest(name, names):
        help = f"did you mean `{close}`?"
    elif kind == "tile" and (found := hint(name)):
        help = found
    elif kind == "array" and hint(name):
        help = "an array is memory: load a tile first, then work on the tile"
    else:
        help = f"there are: {', '.join(sorted(names))}"
    raise TileTypeError(f"{phrase(t)} has no attribute `{name}`", help=help)


def _array_attribute(c: Context, t: Leaf, name: str) -> Term:
    match name:
        case "dtype":
            return Static(t.type.dtype)
        case "ndim":
            return loose(t.type.ndim)
        case "shape":
            return memory.array_shape(c, t)
        case "strides":
            return memory.array_strides(c, t)
        case "foreign_pointer":
            return views.array_foreign_pointer(c, t)
    return _method(t, "array", name)


def _module_attribute(c: Context, module: types.ModuleType, name: str) -> Term:
    missing = object()
    obj = getattr(module, name, missing)
    ours = getattr(module, "__cutile_api__", False)
    if ours and isinstance(obj, types.ModuleType) and name not in module.__all__:
        obj = missing  # cutile's submodules are not public
    if obj is missing:
        close = nearest(name, [n for n in dir(module) if not n.startswith("_")])
        help = ours and hint(name) or (f"did you mean `{close}`?" if close and name not in NOT_MISSPELT else None)
        raise TileTypeError(f"module `{module.__name__}` has no attribute `{name}`", help=help)
    c.dependencies.add(module, name, obj)
    return capture(c, obj, f"{module.__name__}.{name}")


def _did_you_mean(name: str, members: list[str]) -> str:
    close = nearest(name, members)
    return f"did you mean `{close}`?" if close else "members: " + ", ".join(members)


def _class_attribute(c: Context, cls: type, name: str) -> Term:
    if cls in RECEIVERS:
        found = vars(cls).get(name)
        if not isinstance(found, Method):
            there = ", ".join(n for n, v in vars(cls).items() if isinstance(v, Method))
            raise TileTypeError(f"ct.{cls.__name__} has no method `{name}`", help=f"there are: {there}")
        return Static(found)
    if issubclass(cls, enum.Enum):
        if name in cls.__members__:
            c.dependencies.add(cls._member_map_, name, cls[name])
            return capture(c, cls[name], f"{cls.__name__}.{name}")
        raise TileTypeError(
            f"enum {cls.__name__} has no member `{name}`", help=_did_you_mean(name, [*cls.__members__])
        )
    raw = inspect.getattr_static(cls, name, None)
    c.dependencies.add(cls, name, raw)
    if isinstance(raw, classmethod):
        return Bound(Static(raw.__func__), Static(cls))
    if isinstance(raw, staticmethod):
        return Static(raw.__func__)
    if raw is None or cls.__module__ == builtins.__name__:
        raise TileTypeError(f"class {cls.__name__} has no attribute `{name}` in tile code")
    return capture(c, getattr(cls, name), f"{cls.__name__}.{name}")


def _record_attribute(c: Context, t: Record, name: str) -> Term:
    if changes_lookup(c, t.cls):
        raise TileTypeError(f"class {t.cls.__name__} has a __getattribute__, which tile code does not run",
                            help="leave it out: tile code reads fields, properties and methods")
    if name in t.fields:
        return t.fields[name]
    raw = inspect.getattr_static(t.cls, name, None)
    c.dependencies.add(t.cls, name, raw)
    match raw:
        case None:
            close = nearest(name, [*t.fields, *(n for n in dir(t.cls) if not n.startswith("_"))])
            raise TileTypeError(
                f"a {t.cls.__name__} has no attribute `{name}`", help=f"did you mean `{close}`?" if close else None
            )
        case property():
            return c.call(Static(raw.fget), (t,))
        case classmethod():
            return Bound(Static(raw.__func__), Static(t.cls))
        case staticmethod():
            return Static(raw.__func__)
        case types.FunctionType():
            return Bound(Static(raw), t)
    return capture(c, raw, f"{t.cls.__name__}.{name}")
