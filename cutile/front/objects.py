"""Python objects as terms, and the attributes of terms [data-model §1, CV-*, DC-*]."""

from __future__ import annotations

import builtins
import dataclasses
import enum
import inspect
import types
from typing import Any

import numpy as np

from cutile.dtypes import from_foreign, of_storage
from cutile.errors import TileTypeError
from cutile.front.context import Context
from cutile.front.hints import hint, nearest
from cutile.front.idioms import OF_ARRAYS, OF_TILES, STRANGERS
from cutile.front.proxies import RECEIVERS, Method
from cutile.ir.terms import (
    POISON,
    Bound,
    Const,
    Dict,
    Leaf,
    Poison,
    PySlice,
    RawMemory,
    Record,
    Static,
    Term,
    Tuple,
    View,
    article,
    call_help,
    describe,
    is_array,
    is_tile,
    phrase,
    plain,
)
from cutile.ops import memory, views
from cutile.ops._op import OpDef, methods
from cutile.ops._types import const_term, loose, strict
from cutile.types import ListType


def capture(c: Context, obj: Any, name: str) -> Term:
    """The term of an object found in a module, a closure or an attribute [OBJ-5]."""
    if isinstance(obj, np.generic):
        d = of_storage(obj.dtype)
        if d is None:
            return c.report(TileTypeError(f"`{name}` is a NumPy {obj.dtype} scalar, which tile code has no dtype for"))
        return c.attempt(c.span, strict, obj.item() if not isinstance(obj.item(), bytes) else float(obj), d)
    if isinstance(obj, bool | int | float) and not isinstance(obj, enum.Enum):
        return c.attempt(c.span, loose, obj)
    if isinstance(obj, enum.Enum) and isinstance(obj, int):
        return c.attempt(c.span, loose, obj)
    if isinstance(obj, str) and not isinstance(obj, enum.Enum):
        return Static(plain(obj))
    if obj is None or obj is Ellipsis or isinstance(obj, str | enum.Enum | types.ModuleType | OpDef | type):
        return Static(obj)
    if from_foreign(obj) is not None:
        return Static(obj)
    if isinstance(obj, tuple):  # torch.Size and named tuples, too
        items = tuple(capture(c, o, f"{name}[{i}]") for i, o in enumerate(tuple.__iter__(obj)))
        return Tuple(items, tuple_class(obj))
    if is_record(obj):
        fields = {f.name: getattr(obj, f.name) for f in dataclasses.fields(obj)}
        for field, value in fields.items():  # which object.__setattr__ may change
            c.dependencies.add(obj, field, value)
        return Record(type(obj), {n: capture(c, v, f"{name}.{n}") for n, v in fields.items()})
    if getattr(type(obj), "_cutile_kernel", False):
        return c.report(TileTypeError(
            f"`{name}` is a kernel, which cannot be called or used inside tile code",
            help="a kernel is only started by ct.launch; move what is shared into a plain function without @ct.kernel"))
    if callable(obj):
        return Static(obj)
    return c.report(_not_a_value(obj, name))


def _not_a_value(obj: Any, name: str) -> TileTypeError:
    what = f"{type(obj).__module__}.{type(obj).__qualname__}".removeprefix("builtins.")
    if hasattr(obj, "__array_interface__") or hasattr(obj, "__cuda_array_interface__") or hasattr(obj, "__dlpack__"):
        help = f"arrays reach a kernel as arguments only: add a parameter for `{name}` and pass it to ct.launch"
        shape = getattr(obj, "shape", None)
        what = f"host array ({what}{f' of shape {tuple(shape)}' if shape is not None else ''})"
    elif isinstance(obj, list):
        help = (
            "use a tuple; a list of arrays can be a kernel argument; ct.static_iter and ct.static_eval can read lists"
        )
    elif dataclasses.is_dataclass(obj):
        help = "declare the dataclass with @dataclass(frozen=True)"
    else:
        help = "read it inside ct.static_eval(...), or pass what you need from it as a kernel argument"
    return TileTypeError(f"`{name}` is {article(what)}, which cannot be used in tile code", help=help)


def is_value(obj: Any) -> bool:
    """Whether an object can be a tile-code value [OBJ-5]; of a tuple, whether its type can."""
    plain = bool | int | float | str | enum.Enum | np.generic | tuple | type | types.ModuleType | OpDef
    return (obj is None or obj is Ellipsis or isinstance(obj, plain) or callable(obj) or is_record(obj)
            or from_foreign(obj) is not None)


def declaration(obj: Any) -> Any:
    """What `@ct.function` declares of an object, or None. A decorator over it copies the attribute."""
    space = getattr(obj, "_cutile_function", None)
    return space if space is not None and getattr(obj, "__wrapped__", None) is space.fn else None


def tuple_class(obj: tuple) -> type:
    """The class of a named tuple; of any other, `tuple`."""
    return type(obj) if isinstance(getattr(type(obj), "_fields", None), tuple) else tuple


def is_record(obj: Any) -> bool:
    """A frozen dataclass instance."""
    return dataclasses.is_dataclass(obj) and not isinstance(obj, type) and type(obj).__dataclass_params__.frozen


def is_user_function(fn: Any) -> bool:
    """A Python function with source that a user wrote (not one that dataclass or a C type generated)."""
    return isinstance(fn, types.FunctionType) and fn.__code__.co_filename != "<string>" and not (
        getattr(fn, "__qualname__", "").startswith("__create_fn__"))


def own_method(cls: type, name: str) -> Any:
    """What instances of a class find under a dunder name; not what the class itself answers to."""
    return next((vars(k)[name] for k in cls.__mro__ if name in vars(k)), None)


def python_slice(t: PySlice) -> slice:
    """A constant slice as Python's."""
    parts = []
    for p in (t.start, t.stop, t.step):
        if isinstance(p, Static) and p.obj is None:
            parts.append(None)
        elif isinstance(p, Const) and isinstance(p.value, int):
            parts.append(p.value)
        else:
            raise TileTypeError(f"the bounds of a slice must be integer constants, got {describe(p)}")
    if parts[2] == 0:
        raise TileTypeError("a slice step cannot be zero")
    return slice(*parts)


# ------------------------------------------------------------------ attributes


def attribute(c: Context, t: Term, name: str) -> Term:
    """t.name [EX-5]."""
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
        case Const() | Leaf() if is_tile(t):
            match name:
                case "dtype":
                    return Static(t.type.dtype)
                case "shape":
                    return const_term(t.type.shape)
                case "ndim":
                    return loose(t.type.ndim)
            return _method(t, "tile", name)
        case Leaf() if is_array(t):
            return _array_attribute(c, t, name)
        case Leaf() if isinstance(t.type, ListType):
            raise TileTypeError(f"{phrase(t)} has no attribute `{name}`", help="index it: arrays[i], or len(arrays)")
    help = call_help(t) or (
        "Python's own attributes and methods are there inside ct.static_eval(…)" if isinstance(t, Static) else None)
    raise TileTypeError(f"{phrase(t)} has no attribute `{name}` in tile code", help=help)


_ATTRIBUTES = {kind: [n for n in dir(cls) if isinstance(getattr(cls, n), property)] for cls, kind in RECEIVERS.items()}


def _method(t: Term, kind: str, name: str) -> Term:
    o = methods().get((kind, name))
    if o is not None:
        return Bound(Static(o), t)
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
        obj = missing  # a file of the package
    if obj is missing:
        close = nearest(name, [n for n in dir(module) if not n.startswith("_")])
        help = ours and hint(name) or (f"did you mean `{close}`?" if close and name not in STRANGERS else None)
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


def python_value(t: Term) -> Any:
    """A constant as the Python object that static code sees [SEVAL-2]; TileTypeError for what is no constant."""
    match t:
        case Const():
            return t.value
        case Static(obj):
            return obj
        case Tuple():
            return tuple(map(python_value, t.items))
    raise TileTypeError(f"expected a compile-time constant, got {describe(t)}")

