"""Frozen dataclasses in tile code: making them and changing fields [DC-1, DC-4]."""

from __future__ import annotations

import dataclasses
import inspect

from cutile.errors import TileTypeError
from cutile.front import python_objects
from cutile.front.context import Context
from cutile.front.op_calls import check_count
from cutile.ir.terms import Record, Static, Term, describe


def make(c: Context, cls: type, args, kwargs) -> Term:
    """A new instance of a frozen dataclass [DC-1]."""
    name = cls.__name__
    if not cls.__dataclass_params__.frozen:
        raise TileTypeError(
            f"dataclass {name} is not frozen", help="declare it with @dataclasses.dataclass(frozen=True)"
        )
    _check_init(cls)
    if "__dataclass_fields__" not in vars(cls):
        raise _another_init(cls)
    fields = dataclasses.fields(cls)
    for f in fields:
        if f.default_factory is not dataclasses.MISSING:
            raise TileTypeError(
                f"field `{f.name}` of dataclass {name} has a default_factory, which tile code cannot run",
                help="give it a default, or make the object outside of the kernel")
    P = inspect.Parameter
    params = [P(f.name, P.KEYWORD_ONLY if f.kw_only else P.POSITIONAL_OR_KEYWORD,
                default=P.empty if f.default is dataclasses.MISSING else f.default)
              for f in sorted(fields, key=lambda f: f.kw_only)]
    try:
        bound = inspect.Signature(params).bind(*args, **kwargs)
    except TypeError as e:
        raise TileTypeError(f"{name}(): {e}") from None
    return _initialized(c, Record(cls, {
        f.name: bound.arguments[f.name] if f.name in bound.arguments else _default(c, f) for f in fields}))


def _check_init(cls: type) -> None:
    """Refuse a class whose objects are made by more than the __init__ that sets all fields."""
    if python_objects.is_user_function(cls.__init__) or not cls.__dataclass_params__.init or "__new__" in vars(cls):
        raise _another_init(cls)
    for f in dataclasses.fields(cls):
        if not f.init:
            raise TileTypeError(
                f"field `{f.name}` of dataclass {cls.__name__} has init=False, which tile code cannot run")


def _another_init(cls: type) -> TileTypeError:
    return TileTypeError(f"dataclass {cls.__name__} must keep the __init__ that dataclass generates")


def _initialized(c: Context, record: Record) -> Record:
    """A new object, after its __post_init__: the generated __init__ calls it if the class had one when it was
    decorated.
    """
    cls = record.cls
    if "__post_init__" in cls.__init__.__code__.co_names and (
            post := c.special_method(cls, "__post_init__")) is not None:
        c.call(Static(post), (record,))
    return record


def _default(c: Context, f: dataclasses.Field) -> Term:
    c.dependencies.add(f, "default", f.default)
    return python_objects.capture(c, f.default, f.name)


def replace(c: Context, args, kwargs) -> Term:
    """dataclasses.replace(record, field=value, …): an object made anew [DC-4]."""
    check_count("dataclasses.replace", args, 1)
    record = args[0]
    if not isinstance(record, Record):
        raise TileTypeError(f"dataclasses.replace() needs a frozen dataclass instance, got {describe(record)}")
    unknown = [k for k in kwargs if k not in record.fields]
    if unknown:
        raise TileTypeError(f"{record.cls.__name__} has no field `{unknown[0]}`")
    _check_init(record.cls)
    return _initialized(c, Record(record.cls, {**record.fields, **kwargs}))
