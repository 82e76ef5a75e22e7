"""Special methods that the classes of users define, such as __add__ and __eq__, in Python's order [DC-3].

They are looked up for frozen dataclasses, named tuples and members of enums. What Python does without them, comparisons
that dataclasses and tuples are born with, is left to the caller.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Callable

from cutile.front.context import Context
from cutile.front.python_objects import is_user_function
from cutile.ir.terms import Poison, Record, Static, Term, Tuple, is_poisoned

_REFLECTED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
EXCHANGED = Poison()


def class_of(t: Term) -> type | None:
    """The user's class of an instance, or None for any other term."""
    kind = type(t)
    if kind is Record or kind is Tuple and t.cls is not tuple:
        return t.cls
    return type(t.obj) if kind is Static and isinstance(t.obj, enum.Enum) else None


def own(c: Context, t: Term, name: str) -> Callable | None:
    """The function that the user wrote for `__name__` of the class of a term; None if there is none."""
    cls = class_of(t)
    if cls is None:
        return None
    fn = c.special_method(cls, f"__{name}__")
    return fn if is_user_function(fn) and fn.__module__ not in _LIBRARIES else None


_LIBRARIES = ("enum", "collections")  # what every enum has, and what every named tuple has


def call(c: Context, fn: Callable, *args: Term) -> Term:
    return c.call(Static(fn), args)


def binary(c: Context, name: str, x: Term, y: Term, generated: Callable[[], Term | None],
           negated: Callable[[Term], Term]) -> Term | None:
    """`x operator y` by methods of x and y, or None if neither has one. Comparisons never call y's method: where Python
    would, the result is EXCHANGED.

    name       of the method, without underscores
    generated  compares x and y as methods do that dataclasses and tuples have anyway; None where these do not compare
    negated    `not` of the result of a comparison
    """
    for a, b, method in _attempts(c, name, x, y):
        if (fn := own(c, a, method)) is not None:
            return call(c, fn, a, b) if a is x or name not in _REFLECTED else EXCHANGED
        if name == "ne" and (fn := own(c, a, "eq")) is not None:
            return negated(call(c, fn, a, b)) if a is x else EXCHANGED
        if name in _REFLECTED and a is x and (found := generated()) is not None:
            return found
    return None


def _attempts(c: Context, name: str, x: Term, y: Term) -> list[tuple[Term, Term, str]]:
    """Whose method is tried, in Python's order: the right operand's first if its class is derived from the left one's.
    Operands of one class have one method for arithmetic.
    """
    xs, ys = (t.cls if type(t) is Tuple else class_of(t) for t in (x, y))
    reflected = _REFLECTED.get(name)
    attempts = [(x, y, name), (y, x, reflected or "r" + name)]
    if xs is None or ys is None:
        return attempts
    if xs is ys:
        return attempts if reflected else attempts[:1]
    derived = issubclass(ys, xs) and _overrides(c, ys, xs, reflected or "r" + name)
    return attempts[::-1] if derived else attempts


def _overrides(c: Context, cls: type, base: type, name: str) -> bool:
    return c.special_method(cls, f"__{name}__") is not c.special_method(base, f"__{name}__")


def compared_fields(c: Context, t: Record, name: str) -> list[str] | None:
    """The fields that the generated `__eq__` or `__lt__` … of a dataclass compares; None if it has none."""
    owner = next(k for k in t.cls.__mro__ if f"__{name}__" in vars(k))
    if owner is object or not isinstance(c.special_method(t.cls, f"__{name}__"), types.FunctionType):
        return None
    return [f.name for f in dataclasses.fields(owner) if f.compare]


def truth(c: Context, t: Term) -> Term | None:
    """What `__bool__` of a term's class says, or its `__len__`, as a term that is true or not; None if it has
    neither.
    """
    if type(t) not in (Record, Tuple):  # members of enums are asked themselves
        return None
    for name in ("bool", "len"):
        if (fn := own(c, t, name)) is not None:
            return call(c, fn, t)
    return None


def unary(c: Context, name: str, x: Term, otherwise: Callable[[], Term]) -> Term:
    """What `__name__` of a term's class gives, as `__abs__`; without one what `otherwise` gives."""
    fn = own(c, x, name)
    return otherwise() if fn is None or is_poisoned(x) else call(c, fn, x)


def in_place(c: Context, name: str, x: Term, y: Term) -> Term | None:
    """`x operator= y` by a method such as `__iadd__`; None if there is none."""
    fn = own(c, x, f"i{name}")
    return None if fn is None or is_poisoned(x) or is_poisoned(y) else call(c, fn, x, y)


def changes_lookup(c: Context, cls: type) -> bool:
    """Whether a class has a `__getattribute__` of its own, by which attributes are anything."""
    return c.special_method(cls, "__getattribute__") is not object.__getattribute__
