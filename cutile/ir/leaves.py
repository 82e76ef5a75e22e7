"""The leaves of a term, and terms of the same structure with other leaves."""

from __future__ import annotations

from collections.abc import Iterator

from cutile._support.structs import replace
from cutile.ir.recursion import recursive
from cutile.ir.terms import (
    Bound,
    Closure,
    Const,
    Dict,
    FString,
    IndexSlice,
    Leaf,
    Manager,
    PySlice,
    Range,
    RawMemory,
    Record,
    Term,
    Tuple,
    View,
    parts_of,
)


def leaves(t: Term) -> Iterator[Const | Leaf]:
    """The leaves of a term, its run-time values and constant scalars, in a fixed order."""
    pending = [t]
    while pending:
        t = pending.pop()
        if isinstance(t, Const | Leaf):
            yield t
        else:
            pending += reversed(tuple(parts_of(t)))


def rebuild(t: Term, new: Iterator[Term]) -> Term:
    """A term of the same structure with new leaves, in the order of `leaves`."""
    match t:
        case Const() | Leaf():
            return next(new)
        case Tuple():
            return Tuple(tuple(rebuild(i, new) for i in t.items), t.cls)
        case Record():
            return Record(t.cls, {k: rebuild(v, new) for k, v in t.fields.items()})
        case Dict():
            return Dict({k: rebuild(v, new) for k, v in t.items.items()})
        case FString():
            return FString(tuple(p if isinstance(p, str) else (rebuild(p[0], new), p[1]) for p in t.parts))
        case Bound():
            return Bound(rebuild(t.func, new), rebuild(t.receiver, new))
        case Range():
            return Range(rebuild(t.start, new), rebuild(t.stop, new), rebuild(t.step, new), t.dtype)
        case PySlice():
            return PySlice(rebuild(t.start, new), rebuild(t.stop, new), rebuild(t.step, new))
        case View():
            return View(rebuild(t.array, new), t.tile_shape, t.steps, t.padding_mode)
        case RawMemory():
            return RawMemory(rebuild(t.array, new))
        case IndexSlice():
            return IndexSlice(rebuild(t.start, new), rebuild(t.length, new))
        case Closure():
            return _rebuilt(t, new)
        case Manager():
            args = tuple(rebuild(a, new) for a in t.args)
            return replace(t, args=args, kwargs={k: rebuild(v, new) for k, v in t.kwargs.items()})
        case _:
            return t


@recursive
def _rebuilt(t: Closure, new: Iterator[Term]) -> Closure:
    """`rebuild` for closures, which may hold each other to any depth."""
    defaults = {k: rebuild(v, new) for k, v in t.defaults.items()}
    captured = t.captured and t.captured.map(lambda v: rebuild(v, new))
    return replace(t, defaults=defaults, captured=captured)
