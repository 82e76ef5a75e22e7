"""Rules: how a grid, the shape or dtype of an output, or a default follows from named sizes and arguments."""

from __future__ import annotations

import builtins
import difflib
import inspect
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import index
from typing import Any

from cutile._support.structs import structure
from cutile.front.sizes import Axis, Expression, axes_of, is_name

Names = Mapping[str, Any]  # values of named sizes and arguments


@structure(frozen=True, eq=False)
class Rule:
    """What gives a value from names.

    what    what it is for, in messages
    reads   the names that it reads
    lasts   whether equal names always give an equal value
    value   the function
    """

    what: str
    reads: frozenset[str]
    lasts: bool
    value: Callable[[Names], Any]


def nearest(name: str, known: Collection[str]) -> str:
    """A hint at the known name that is most like another."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def constant(what: str, value: Any) -> Rule:
    return Rule(what, frozenset(), True, lambda names: value)


def _unknown(what: str, name: str, known: Collection[str], later: Mapping[str, str], taken: str) -> TypeError:
    """The error of a rule that reads a name which is not among the known ones."""
    if name in later:
        return TypeError(f"{what} reads {name}, {later[name]}")
    close = nearest(name, known)
    hint = f'; annotations name sizes, such as x: ct.Array["{name}"]'
    return TypeError(f"{what}: {taken} is no named size and no argument{close}; there are {', '.join(known) or 'none'}"
                     f"{'' if close else hint}")


def of_function(what: str, function: Callable, known: Collection[str], later: Mapping[str, str] = {}) -> Rule:
    """The rule of a Python function, whose parameters are names. TypeError if it takes others than the `known` ones.

    later   names that there will be, but not in time, and why
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise TypeError(f"{what}: the parameters of {function!r} cannot be read; write a lambda") from None
    reads, everything = [], False
    for p in parameters:
        if p.kind is p.VAR_KEYWORD:
            everything = True
        elif p.kind in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY):
            raise TypeError(f"{what}: parameters of its function are names, and `{p}` is none")
        elif p.name in known:
            reads.append(p.name)
        elif p.default is p.empty:
            raise _unknown(what, p.name, known, later, f"its function takes `{p.name}`, which")
    taken = tuple(known if everything else reads)
    return Rule(what, frozenset(taken), _lasts(function),
                lambda names: function(**{n: names[n] for n in taken if n in names}))


def _lasts(function: Any) -> bool:
    """Whether a function reads nothing but its parameters, builtins, and modules."""
    if not isinstance(function, types.FunctionType):
        return False
    code = function.__code__
    if code.co_freevars or function.__defaults__ or function.__kwdefaults__ or any(
            isinstance(c, types.CodeType) for c in code.co_consts):
        return False
    around = function.__globals__
    return all(isinstance(around[n], types.ModuleType) if n in around else hasattr(builtins, n) or n in _OF_MODULES
               for n in code.co_names)


_OF_MODULES = {"cdiv", "bit_length"}  # attributes in rules that are no names of builtins


# ------------------------------------------------------------------ sizes


def of_sizes(what: str, given: Any, known: Collection[str], later: Mapping[str, str] = {}) -> Rule:
    """The rule of a shape or grid: text, a tuple of ints and texts, or a function that returns a tuple.

    TypeError for anything else and for unknown names, ValueError for text that is no size.
    """
    if callable(given):
        rule = of_function(what, given, known, later)
        return Rule(what, rule.reads, rule.lasts, lambda names: _as_ints(what, rule.value(names)))
    axes = axes_in(what, given)
    reads = frozenset(n for a in axes for n in ([a.name] if a.name else a.size.names))
    for n in sorted(reads - set(known)):
        raise _unknown(what, n, known, later, n)
    return Rule(what, reads, True, lambda names: _as_ints(what, _sizes(axes, names)))


def axes_in(what: str, given: Any) -> tuple[Axis, ...]:
    """The axes that text, or a tuple of ints and texts, says."""
    if isinstance(given, str):
        axes = axes_of(given)
    elif isinstance(given, tuple | list):
        axes = tuple(a for item in given for a in ((_number(what, item),) if not isinstance(item, str) else
                                                  axes_of(item)))
    else:
        raise TypeError(f'{what} is text such as "M N", a tuple of ints and texts, or a function, not {given!r:.100}')
    for a in axes:
        if a.text[:1] == "=" or a.text == "_":
            raise ValueError(f"{what}: {a.text} stands for no size; sizes are names, ints and expressions of them")
    return axes


def _number(what: str, item: Any) -> Axis:
    try:
        return Axis(str(index(item)), size=Expression(str(index(item))))
    except TypeError:
        raise TypeError(f"{what}: {item!r:.100} is no size; sizes are ints, names and expressions of them") from None


def _sizes(axes: Sequence[Axis], names: Names) -> list[int]:
    found: list[int] = []
    for a in axes:
        found += names[a.name] if a.rest else [names[a.name] if a.name else a.size(names)]
    return found


def _as_ints(what: str, value: Any) -> tuple[int, ...]:
    """Sizes as ints. TypeError for what is no tuple of ints, ValueError for a negative one."""
    if not isinstance(value, tuple | list):
        hint = "; a tuple of one is written (n,)" if hasattr(type(value), "__index__") else ""
        raise TypeError(f"{what} must be a tuple of ints, got {value!r:.100}{hint}")
    for axis, n in enumerate(value):
        if isinstance(n, bool) or not hasattr(type(n), "__index__"):
            hint = "; write // or cdiv() for division" if isinstance(n, float) else ""
            raise ValueError(f"{what} must be ints, got {n!r:.100} for axis {axis}{hint}")
        if index(n) < 0:
            raise ValueError(f"{what} must not be negative, got {index(n)} for axis {axis}")
    return tuple(map(index, value))


__all__ = ["Names", "Rule", "axes_in", "constant", "is_name", "nearest", "of_function", "of_sizes"]
