"""Errors about operators: they name the argument, the items that it is called with, and the user's line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from cutile.compute.complex_numbers import Complex
from cutile.compute.value_types import Number, ValueType
from cutile.compute.well_known import FUNCTIONS
from cutile.errors import TileError, TileTypeError
from cutile.front.source_text import definition_of
from cutile.spans import Span
from cutile.tracebacks import in_package

_KINDS = {f: f"OpKind.{kind.name}" for kind, f in FUNCTIONS.items()}
_WORDS = ("no item", "one item", "two items")


def check_parameters(function: Callable, operands: Sequence[ValueType], argument: str) -> None:
    """TileTypeError if a function cannot take that many items."""
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):  # it has none that Python knows
        return
    try:
        signature.bind(*operands)
    except TypeError:
        name, many = _KINDS.get(function), len(operands)
        wants = f"{name} is an operator of {_words(len(signature.parameters))}" if name else \
            f"{getattr(function, '__name__', function)}{signature} does not take {_words(many)}"
        raise TileTypeError(f"argument `{argument}`: {wants}, and it is called with {_words(many)}: {_types(operands)}",
                            None if name else _head(function), help=None if name else
                            f"write a function of {_words(many)}: lambda {', '.join('ab'[:many])}: …") from None


def of_operator(e: TileError, function: Callable, operands: Sequence[ValueType], argument: str) -> TileError:
    """The error, and all that came with it, without the lines of this package, and with what the argument is."""
    for one in e.errors:
        found = one.loc
        one.loc = _users(found)
        if one.loc is None and function not in _KINDS:
            one.loc = _head(function)
        what = _KINDS.get(function, f"argument `{argument}`")
        one.notes = (*one.notes, (f"{what} is called with {_types(operands)}", None))
    return e


def check_result(found: ValueType, t: ValueType, argument: str, operands: Sequence[ValueType], function: Callable
                 ) -> None:
    """TileTypeError if what an operator returns does not convert to a type."""
    if not converts(found, t):
        raise TileTypeError(f"argument `{argument}`: called with {_types(operands)} it returns {found}, which does not "
                            f"convert to {t}", None if function in _KINDS else _head(function),
                            help=f"return {_kind(t)}")


def check_stored(t: ValueType, **outs: Any) -> None:
    """TypeError if items of a type cannot be stored in an output: an iterator, by the name of its argument."""
    for argument, out in outs.items():
        if out.kind[0] != "discard" and not converts(t, out.value_type):
            raise TypeError(f"argument `{argument}` takes items of {out.value_type}, to which results, of {t}, do not "
                            f"convert")


def converts(t: ValueType, to: ValueType) -> bool:
    """Whether items of a type convert to another: numbers, structs of as many fields, and real numbers to complex ones.
    """
    if isinstance(t, Number):
        return isinstance(to, Number | Complex)
    return not isinstance(to, Number) and len(t.parts) == len(to.parts) and all(
        converts(a, b) for a, b in zip(t.parts, to.parts, strict=True))


def _kind(t: ValueType) -> str:
    return "a number" if isinstance(t, Number) else f"a tuple of {len(t.parts)}, or a struct with as many fields"


def _words(many: int) -> str:
    return _WORDS[many] if many < len(_WORDS) else f"{many} items"


def _types(operands: Sequence[ValueType]) -> str:
    return ", ".join(map(str, operands)) or "nothing"


def _head(function: Any) -> Span | None:
    """Where a function of the user begins; None if its source is not there."""
    function = getattr(function, "__func__", function)
    if not inspect.isfunction(function) or in_package(function.__code__.co_filename):
        return None
    try:
        return definition_of(function).header_span()
    except TileError:
        return None


def _users(span: Span | None) -> Span | None:
    """A piece of source with those calls that lead to it in the user's code; None if it is in this package."""
    kept: Span | None = None
    for s in span.frames() if span is not None else ():
        if not in_package(s.filename):
            kept = Span(s.filename, s.line, s.col, s.end_line, s.end_col, s.function, kept)
    return kept
