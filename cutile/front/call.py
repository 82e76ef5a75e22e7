"""Calls of any term: ops, functions of the user, builtins, classes [CALL-*, FN-*]."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import inspect
import types
from collections.abc import Callable
from typing import Any

from cutile.dtypes import from_foreign
from cutile.errors import TileSyntaxError, TileTypeError, TileValueError, UnsupportedCallError
from cutile.front import builtins, callables, functions, op_calls, python_objects, records
from cutile.front.context import Context
from cutile.front.op_calls import ArgumentSpans, check_count
from cutile.front.proxies import RECEIVERS, Method
from cutile.front.static_names import KEYWORDS
from cutile.ir.terms import (
    POISON,
    Bound,
    Closure,
    Const,
    Record,
    Static,
    Term,
    Tuple,
    any_poisoned,
    describe,
    is_poisoned,
    phrase,
)
from cutile.ops import convert, debug
from cutile.ops._op import OpDef


def call(c: Context, func: Term, args: tuple[Term, ...], kwargs: dict[str, Term],
         spans: ArgumentSpans | None = None) -> Term:
    """The term that a call of `func` gives. `spans` says where the arguments of a call are in the user's source."""
    if is_poisoned(func) or any_poisoned(args) or any_poisoned(kwargs.values()):
        return POISON
    match func:
        case Static(OpDef() as op):
            return op_calls.call_op(c, op, args, kwargs, spans)
        case Static(Method() as m):
            return op_calls.call_unbound_method(c, m, args, kwargs, spans)
        case Bound(Static(OpDef() as op), receiver):
            return op_calls.call_op(c, op, args, kwargs, spans, receiver)
        case Bound():
            return call(c, func.func, (func.receiver, *args), kwargs)
        case Closure():
            return functions.call_closure(c, func, args, kwargs)
        case Record() if (fn := c.special_method(func.cls, "__call__")) is not None:
            return call(c, Static(fn), (func, *args), kwargs)
        case Static(obj):
            return c.attempt(_call_object, c, obj, args, kwargs)
    help = "a shape is no method: x.shape, x.shape[0]" if isinstance(func, Tuple) else None
    return c.report(TileTypeError(f"{phrase(func)} cannot be called", help=help))


def _call_object(c: Context, obj: Any, args, kwargs) -> Term:
    """A call of a Python object from outside the kernel."""
    space = python_objects.declaration(obj)
    if space is not None:
        if not space.tile:
            raise UnsupportedCallError(f"{space.fn.__name__}() is declared host only (@ct.function(tile=False)) "
                                       f"and cannot be called from tile code")
        obj = space.fn
    if isinstance(obj, types.FunctionType) and obj in KEYWORDS.values():
        name = obj.__name__
        raise TileSyntaxError(
            f"{name}() must be called directly by its name",
            help=f"write ct.{name}(…), without giving the function another name first",
        )
    if obj is print:
        return call(c, Static(debug.print), args, kwargs)
    if obj is dataclasses.replace:
        return records.replace(c, args, kwargs)
    if (handler := _element_handler(c, obj) or builtins.handler(obj)) is not None:
        return handler(c, *_only_positional(obj, args, kwargs))
    if (d := from_foreign(obj)) is not None:
        return convert.construct(c, d, _only_positional(obj, args, kwargs))
    if isinstance(obj, type):
        return _call_class(c, obj, args, kwargs)
    if isinstance(obj, types.FunctionType) and not callables.of_the_host(obj):
        wrapped = getattr(obj, "__wrapped__", None)
        if wrapped is not None and not inspect.isasyncgenfunction(wrapped) and _is_contextmanager(obj):
            c.dependencies.add(obj, "__wrapped__", wrapped)
            return c.manager(Static(wrapped), args, kwargs)
        return functions.call_function(c, obj, args, kwargs)
    if isinstance(obj, types.MethodType) and isinstance(obj.__func__, types.FunctionType):
        receiver = python_objects.capture(c, obj.__self__, "self")
        return call(c, Static(obj.__func__), (receiver, *args), kwargs)
    if not callable(obj):
        raise TileTypeError(f"{phrase(Static(obj))} cannot be called")
    name = callables.name_of(obj)
    raise UnsupportedCallError(f"{name} cannot be called from tile code", help=callables.call_help(obj))


def _element_handler(c: Context, obj: Any) -> Callable[..., Term] | None:
    """The handler of a function that only element functions may call."""
    if not c.elements:
        return None
    from cutile.front import element_calls  # loaded when it is needed

    return element_calls.handler(obj)


def _is_contextmanager(fn: types.FunctionType) -> bool:
    """Whether contextlib.contextmanager made a function."""
    return (fn.__code__.co_filename, fn.__code__.co_name) == (contextlib.__file__, "helper")


def _only_positional(obj: Any, args: tuple[Term, ...], kwargs: dict[str, Term]) -> tuple[Term, ...]:
    if kwargs:
        raise TileTypeError(f"{callables.name_of(obj)} takes no keyword arguments in tile code: {', '.join(kwargs)}")
    return args


def _call_class(c: Context, cls: type, args, kwargs) -> Term:
    """A call of a class: a member of an enum, or a frozen dataclass."""
    if issubclass(cls, enum.Enum):
        return _enum_member(c, cls, _only_positional(cls, args, kwargs))
    if dataclasses.is_dataclass(cls):
        return records.make(c, cls, args, kwargs)
    if cls in RECEIVERS:
        help = "values come from ops: ct.load, ct.full, array.slice, array.tiled_view, array.get_raw_memory"
    elif callables.from_a_library(cls):
        help = callables.call_help(cls)
    else:
        help = "make it a frozen dataclass: @dataclasses.dataclass(frozen=True)"
    raise UnsupportedCallError(f"objects of class `{cls.__qualname__}` cannot be created in tile code", help=help)


def _enum_member(c: Context, cls: type[enum.Enum], args: tuple[Term, ...]) -> Term:
    check_count(cls.__name__, args, 1)
    if not isinstance(args[0], Const | Static):
        raise TileTypeError(f"{cls.__name__}(value) needs a constant, got {describe(args[0])}")
    value = args[0].value if isinstance(args[0], Const) else args[0].obj
    try:
        return python_objects.capture(c, cls(value), cls.__name__)
    except ValueError as e:
        raise TileValueError(str(e)) from None
