"""Looks up attributes as Python does, but without running code of the user."""

from __future__ import annotations

import inspect
import types
from typing import Any

from cutile.front.scope import MISSING


def is_plain_lookup(container: Any, key: Any, obj: Any) -> bool:
    """Whether `getattr(container, key)` gives `obj` and runs no code of the user."""
    cls = type(container)
    if type(key) is not str or issubclass(cls, types.ModuleType):
        return False
    if cls is type and type(obj) is types.FunctionType:
        return True
    if issubclass(cls, type):
        return is_plain_attribute(cls, key) and (type(obj) is types.FunctionType or not hasattr(type(obj), "__get__"))
    return cls is types.FunctionType or is_plain_attribute(cls, key) and own_attribute(container, key) is not MISSING


def is_plain_attribute(cls: type, name: str) -> bool:
    """Whether an attribute of instances is looked up as `object` does it, without a descriptor that runs code."""
    if cls.__getattribute__ not in _LOOKUPS or name.startswith("__"):
        return False
    raw = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), MISSING)
    return type(raw) is types.MemberDescriptorType or not hasattr(type(raw), "__get__")


_LOOKUPS = (object.__getattribute__, types.FunctionType.__getattribute__, type.__getattribute__)


def own_attribute(obj: Any, name: str) -> Any:
    """The value of a plain attribute; MISSING if only __getattr__ might find one."""
    for c in type(obj).__mro__:
        if name in vars(c):
            return getattr(obj, name, MISSING)
    space = getattr(obj, "__dict__", None)
    return space.get(name, MISSING) if type(space) is dict else MISSING


def class_attribute(cls: type, name: str) -> Any:
    """`inspect.getattr_static(cls, name, MISSING)`, ten times as fast where the attribute exists."""
    for c in cls.__mro__:
        if name in c.__dict__:
            return c.__dict__[name]
    return inspect.getattr_static(cls, name, MISSING)


def look_up(container: Any, key: Any) -> Any:
    """The object that is in a container now, or MISSING."""
    try:
        if key is None:
            return container.cell_contents
        if type(container) is dict:
            return container.get(key, MISSING)
        if isinstance(container, type):
            return class_attribute(container, key)
        return getattr(container, key, MISSING)
    except ValueError:  # an empty cell
        return MISSING
