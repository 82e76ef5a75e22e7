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
    if (python_objects.is_user_function(cls.__init__) or not cls.__dataclass_params__.init or "__new__" in vars(cls)
            or "__dataclass_fields__" not in vars(cls)):
        raise TileTypeError(f"dataclass {name} must keep the __init__ that dataclass generates")
    fields = dataclasses.fields(cls)
    for f in fields:
        if not f.init or f.default_factory is not dataclasses.MISSING:
            raise TileTypeError(
                f"field `{f.name}` of dataclass {name} uses init=False or default_factory, which tile code cannot run"
            )
    P = inspect.Parameter
    params = [P(f.name, P.KEYWORD_ONLY if f.kw_only else P.POSITIONAL_OR_KEYWORD,
                default=P.empty if f.default is dataclasses.MISSING else f.default)
              for f in sorted(fields, key=lambda f: f.kw_only)]
    try:
        bound = inspect.Signature(params).bind(*args, **kwargs)
    except TypeError as e:
        raise TileTypeError(f"{name}(): {e}") from None
    record = Record(cls, {f.name: bound.arguments[f.name] if f.name in bound.arguments else _default(c, f)
                          for f in fields})
    # The generated __init__ calls __post_init__ if the class had one when it was decorated.
    if "__post_init__" in cls.__init__.__code__.co_names and (
            post := c.special_method(cls, "__post_init__")) is not None:
        c.call(Static(post), (record,))
    return record


def _default(c: Context, f: dataclasses.Field) -> Term:
    c.dependencies.add(f, "default", f.default)
    return python_objects.capture(c, f.default, f.name)


def replace(c: Context, args, kwargs) -> Term:
    """dataclasses.replace(record, field=value, …) [DC-4]."""
    check_count("dataclasses.replace", args, 1)
    record = args[0]
    if not isinstance(record, Record):
        raise TileTypeError(f"dataclasses.replace() needs a frozen dataclass instance, got {describe(record)}")
    unknown = [k for k in kwargs if k not in record.fields]
    if unknown:
        raise TileTypeError(f"{record.cls.__name__} has no field `{unknown[0]}`")
    return Record(record.cls, {**record.fields, **kwargs})
