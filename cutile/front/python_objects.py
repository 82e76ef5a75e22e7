"""Python objects from outside the kernel: their terms, and which of them tile code can use [OBJ-*]."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
from typing import Any

import numpy as np

from cutile.dtypes import from_foreign, of_storage
from cutile.errors import TileTypeError
from cutile.front.context import Context, Hidden
from cutile.ir.terms import Const, PySlice, Record, Static, Term, Tuple, article, describe, to_builtin
from cutile.ops._constants import loose, strict
from cutile.ops._op import OpDef

NO_COMPLEX = ("keep two numbers, the real and the imaginary one; an operator of ct.compute returns the parts, as "
              "(-z.imag, z.real) for z * 1j, or gets the constant as an item: ct.compute.ConstantIterator(1j)")


def capture(c: Context, obj: Any, name: str) -> Term:
    """The term of an object that a module, a closure or an attribute holds [OBJ-5]. `name` is for messages."""
    if isinstance(obj, np.generic):
        d = of_storage(obj.dtype)
        if d is None:
            return c.report(TileTypeError(f"`{name}` is a NumPy {obj.dtype} scalar, which tile code has no dtype for",
                                          help=NO_COMPLEX if isinstance(obj, np.complexfloating) else None))
        return c.attempt(strict, obj.item() if not isinstance(obj.item(), bytes) else float(obj), d)
    if isinstance(obj, bool | int | float) and not isinstance(obj, enum.Enum):
        return c.attempt(loose, obj)
    if isinstance(obj, enum.Enum) and isinstance(obj, int):
        return c.attempt(loose, obj)
    if isinstance(obj, str) and not isinstance(obj, enum.Enum):
        return Static(to_builtin(obj))
    if obj is None or obj is Ellipsis or isinstance(obj, str | enum.Enum | types.ModuleType | OpDef | type):
        return Static(obj)
    if from_foreign(obj) is not None:
        return Static(obj)
    if isinstance(obj, tuple):  # torch.Size and named tuples, too
        items = tuple(capture(c, item, f"{name}[{i}]") for i, item in enumerate(tuple.__iter__(obj)))
        return Tuple(items, tuple_class(obj))
    if is_record(obj):
        fields = {f.name: getattr(obj, f.name) for f in dataclasses.fields(obj)}
        for field, value in fields.items():  # user code may change them by object.__setattr__
            c.dependencies.add(obj, field, value)
        return Record(type(obj), {n: capture(c, v, f"{name}.{n}") for n, v in fields.items()})
    if getattr(type(obj), "_cutile_kernel", False):
        return c.report(TileTypeError(
            f"`{name}` is a kernel, which cannot be called or used inside tile code",
            help="a kernel is only started by ct.launch; move what is shared into a plain function without @ct.kernel"))
    if callable(obj):
        return Static(obj)
    if isinstance(obj, Hidden) and obj in c.hidden:
        return c.hidden[obj]
    return c.report(_not_a_value(obj, name))


def _not_a_value(obj: Any, name: str) -> TileTypeError:
    what = f"{type(obj).__module__}.{type(obj).__qualname__}".removeprefix("builtins.")
    if _is_array(obj):
        help = f"arrays reach a kernel as arguments only: add a parameter for `{name}` and pass it to ct.launch"
        what = f"host array ({what}{_of_shape(obj)})"
    elif isinstance(obj, list):
        help = (
            "use a tuple; a list of arrays can be a kernel argument; ct.static_iter and ct.static_eval can read lists"
        )
    elif isinstance(obj, complex):
        help = NO_COMPLEX
    elif dataclasses.is_dataclass(obj):
        help = "declare the dataclass with @dataclass(frozen=True)"
    else:
        help = "read it inside ct.static_eval(...), or pass what you need from it as a kernel argument"
    return TileTypeError(f"`{name}` is {article(what)}, which cannot be used in tile code", help=help)


def _is_array(obj: Any) -> bool:
    """Whether an object has a protocol of arrays. None of its code runs."""
    return any(inspect.getattr_static(obj, protocol, None) is not None
               for protocol in ("__array_interface__", "__cuda_array_interface__", "__dlpack__"))


def _of_shape(obj: Any) -> str:
    try:
        shape = np.ndarray.shape.__get__(obj) if isinstance(obj, np.ndarray) else tuple(obj.shape)
    except Exception:  # code of the user's class
        return ""
    return f" of shape {shape}"


def is_value(obj: Any) -> bool:
    """Whether an object can be a value of tile code [OBJ-5]. The items of a tuple are not looked at."""
    plain = bool | int | float | str | enum.Enum | np.generic | tuple | type | types.ModuleType | OpDef
    return (obj is None or obj is Ellipsis or isinstance(obj, plain) or callable(obj) or is_record(obj)
            or from_foreign(obj) is not None)


def declaration(obj: Any) -> Any:
    """What `@ct.function` declares of an object, or None. A declaration that functools.wraps has copied to a wrapper
    does not count.
    """
    space = getattr(obj, "_cutile_function", None)
    return space if space is not None and getattr(obj, "__wrapped__", None) is space.fn else None


def tuple_class(obj: tuple) -> type:
    """The class of a named tuple; `tuple` for all other tuples."""
    return type(obj) if isinstance(getattr(type(obj), "_fields", None), tuple) else tuple


def is_record(obj: Any) -> bool:
    """Whether an object is an instance of a frozen dataclass."""
    return dataclasses.is_dataclass(obj) and not isinstance(obj, type) and type(obj).__dataclass_params__.frozen


def is_user_function(fn: Any) -> bool:
    """Whether a function has a source that a user wrote: dataclass did not make it, and it is not written in C."""
    return isinstance(fn, types.FunctionType) and not fn.__code__.co_qualname.startswith("__create_fn__.")


def python_slice(t: PySlice) -> slice:
    """A slice of constants as Python's slice object."""
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
