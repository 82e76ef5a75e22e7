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


def leaves(t: Term, since: int = 0) -> Iterator[Const | Leaf]:
    """The leaves of a term, its run-time values and constant scalars, in a fixed order. Those that closures captured
    before the time `since` do not count.
    """
    pending = [t]
    while pending:
        t = pending.pop()
        if isinstance(t, Const | Leaf):
            yield t
        elif since and type(t) is Closure and t.captured is not None and t.captured.time < since:
            pending += reversed(t.defaults.values())
        else:
            pending += reversed(tuple(parts_of(t)))


def rebuild(t: Term, new: Iterator[Term], since: int = 0) -> Term:
    """A term of the same structure with new leaves, in the order of `leaves`, with the same `since`."""
    match t:
        case Const() | Leaf():
            return next(new)
        case Tuple():
            return Tuple(tuple(rebuild(i, new, since) for i in t.items), t.cls)
        case Record():
            return Record(t.cls, {k: rebuild(v, new, since) for k, v in t.fields.items()})
        case Dict():
            return Dict({k: rebuild(v, new, since) for k, v in t.items.items()})
        case FString():
            return FString(tuple(p if isinstance(p, str) else (rebuild(p[0], new, since), p[1]) for p in t.parts))
        case Bound():
            return Bound(rebuild(t.func, new, since), rebuild(t.receiver, new, since))
        case Range():
            return Range(*(rebuild(x, new, since) for x in (t.start, t.stop, t.step)), t.dtype)
        case PySlice():
            return PySlice(*(rebuild(x, new, since) for x in (t.start, t.stop, t.step)))
        case View():
            return View(rebuild(t.array, new, since), t.tile_shape, t.steps, t.padding_mode)
        case RawMemory():
            return RawMemory(rebuild(t.array, new, since))
        case IndexSlice():
            return IndexSlice(rebuild(t.start, new, since), rebuild(t.length, new, since))
        case Closure():
            return _rebuilt(t, new, since)
        case Manager():
            args = tuple(rebuild(a, new, since) for a in t.args)
            return replace(t, args=args, kwargs={k: rebuild(v, new, since) for k, v in t.kwargs.items()})
        case _:
            return t


@recursive
def _rebuilt(t: Closure, new: Iterator[Term], since: int) -> Closure:
    """`rebuild` for closures, which may hold each other to any depth."""
    defaults = {k: rebuild(v, new, since) for k, v in t.defaults.items()}
    captured = t.captured
    if captured is not None and captured.time >= since:
        captured = captured.map(lambda v: rebuild(v, new, since))
    return t if captured is t.captured and not defaults else replace(t, defaults=defaults, captured=captured)
