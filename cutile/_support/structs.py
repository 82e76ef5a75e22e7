"""`@structure`: does what `dataclasses.dataclass` does, in a twentieth of the time.

`dataclass` compiles up to six methods for each class, which takes half a millisecond. For the hundred classes of this
package that was most of the time of `import cutile` and of a first launch. Structs share their methods instead. Only
`__init__` must be fast: it is compiled once for each number of fields, and each class has a copy with its own names.
"""

from __future__ import annotations

import dataclasses
import functools
import reprlib
import types
from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, FrozenInstanceError, field
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

__all__ = ["cached", "field", "replace", "structure"]

T = TypeVar("T")


@dataclass_transform(field_specifiers=(field,))
def structure(cls: type | None = None, /, **how: bool) -> Any:
    """Make a class with annotated fields a struct; a decorator, bare or with parameters of `dataclass`.

    The parameters are eq (default True), frozen, slots, kw_only and weakref_slot (default False). `field()` may only
    have default_factory. A class may define its own `__init__`. Base classes must have no fields. The functions of
    `dataclasses` accept structs.
    """
    return functools.partial(_structure, **how) if cls is None else _structure(cls, **how)


class cached:  # in lower case, since it is used as a decorator
    """A property that is computed once. Unlike functools.cached_property in Python 3.11 it has no lock, which a forked
    child could find held by a thread that it does not have.
    """

    def __init__(self, compute: Callable[[Any], Any]):
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        if obj is None:
            return self
        value = obj.__dict__[self.name] = self.compute(obj)
        return value


def replace(obj: T, /, **changes: Any) -> T:
    """A copy with other values in some fields. TypeError for a name that is no field."""
    return type(obj)(**{n: getattr(obj, n) for n in type(obj).__struct_fields__} | changes)


def _structure(cls: type, *, eq: bool = True, frozen: bool = False, slots: bool = False, kw_only: bool = False,
               weakref_slot: bool = False) -> type:
    names = tuple(cls.__annotations__)
    given = {n: vars(cls)[n] for n in names if n in vars(cls)}
    factories = {n: d.default_factory for n, d in given.items() if isinstance(d, Field)}
    methods: dict[str, Any] = {
        "__struct_fields__": names, "__struct_values__": _getter(names),
        "__match_args__": () if kw_only else names, "__repr__": _repr,
        "__dataclass_fields__": _Twin("__dataclass_fields__"), "__dataclass_params__": _Twin("__dataclass_params__")}
    if "__init__" not in vars(cls):
        methods["__init__"] = _init(cls, names, given, factories, frozen, kw_only)
    if eq:
        methods |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse, "__getstate__": _state, "__setstate__": _put_state}
    if slots:
        rest = {n: v for n, v in vars(cls).items() if n not in (*names, "__dict__", "__weakref__")}
        slotted = {"__slots__": names + ("__weakref__",) * weakref_slot, "__qualname__": cls.__qualname__}
        return type(cls)(cls.__name__, cls.__bases__, rest | slotted | methods)
    for name, method in methods.items():
        setattr(cls, name, method)
    for name in factories:
        delattr(cls, name)
    return cls


# ------------------------------------------------------------------ __init__


def _init(cls: type, names: tuple[str, ...], given: dict[str, Any], factories: dict[str, Callable], frozen: bool,
          kw_only: bool) -> types.FunctionType:
    places = tuple(i for i, n in enumerate(names) if n in factories)
    code = _pattern(len(names), places, frozen, kw_only, hasattr(cls, "__post_init__"))
    new = dict(zip(map(_field, range(len(names))), names, strict=True))

    def named(old: tuple) -> tuple:
        return tuple(new.get(x, x) if type(x) is str else x for x in old)

    code = code.replace(co_varnames=named(code.co_varnames), co_names=named(code.co_names),
                        co_consts=named(code.co_consts), co_qualname=f"{cls.__qualname__}.__init__")
    space = {"_put": object.__setattr__, "_MISSING": MISSING, **{f"_make{i}": factories[names[i]] for i in places}}
    defaults = {n: MISSING if n in factories else d for n, d in given.items()}
    init = types.FunctionType(code, space, "__init__", None if kw_only else tuple(defaults.values()))
    init.__kwdefaults__ = defaults if kw_only else None
    return init


@functools.cache
def _pattern(count: int, factories: Collection[int], frozen: bool, kw_only: bool, post: bool) -> types.CodeType:
    """The code of `__init__` for `count` fields, of which those at the positions `factories` have a default_factory."""
    body = []
    for i in range(count):
        name, value = _field(i), f"_make{i}() if {_field(i)} is _MISSING else {_field(i)}"
        value = value if i in factories else name
        body.append(f"_put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    body += ["self.__post_init__()"] if post else []
    parameters = ["self", *["*"] * (kw_only and count > 0), *map(_field, range(count))]
    space: dict[str, Any] = {}
    exec(f"def __init__({', '.join(parameters)}):\n " + ("\n ".join(body) or "pass"), space)
    return space["__init__"].__code__


def _field(i: int) -> str:
    return f"_field{i}"


# ------------------------------------------------------------------ methods that all structs share


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple]:
    """A function that gives the field values of a struct as a tuple, for any number of fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda obj: tuple(getattr(obj, n) for n in names)


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    values = type(self).__struct_values__
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(type(self).__struct_values__(self))


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    return f"{type(self).__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in self.__struct_fields__)})"


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r} of a {type(self).__qualname__}")


def _state(self: Any) -> tuple:
    return type(self).__struct_values__(self)


def _put_state(self: Any, state: tuple) -> None:
    for name, value in zip(self.__struct_fields__, state, strict=True):
        object.__setattr__(self, name, value)


class _Twin:
    """An attribute of dataclasses, which is only made when a function of `dataclasses` looks it up: it is copied from a
    real dataclass with the same fields.
    """

    def __init__(self, name: str):
        self.name = name

    def __get__(self, obj: Any, cls: type) -> Any:
        how = {"frozen": cls.__setattr__ is _refuse, "kw_only": not cls.__match_args__}
        found = getattr(dataclasses.make_dataclass(cls.__name__, cls.__struct_fields__, **how), self.name)
        setattr(cls, self.name, found)
        return found
