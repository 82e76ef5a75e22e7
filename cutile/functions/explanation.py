"""What a call adds to an error of its kernel: which parameters are outputs, and where their dtypes come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cutile.dtypes import INFO, DType
from cutile.errors import TileError, TileTypeError, is_refusal, refusal
from cutile.functions.binding import Bound, Planned, Read
from cutile.functions.placement import instead, why
from cutile.functions.rules import nearest

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction

_OF_LAUNCH = re.compile(r"Invalid kernel argument #\d+ \((`[^`]+`)\)")


def explained(f: TileFunction, error: Exception, inputs: Sequence[Any], bound: Bound | None,
              wanted: Sequence[Planned]) -> Exception:
    """An error of a call, with what the declaration has to do with it.

    bound, wanted   the arguments and outputs, where these were found before the error
    """
    if isinstance(error, TileError) and bound is not None:
        for e in error.errors:
            if e._conversion is not None:
                _about_dtypes(e, bound, wanted)
    found = isinstance(error, TileError) and is_refusal(error)  # what stored.py says shows the line of a store
    if isinstance(error, TileTypeError | TypeError) and not found and any(o.out.name is None for o in f.outputs):
        other = instead(f, inputs)
        if other is not None:
            return refusal(other)
    return of_function(f, error)


def of_function(f: TileFunction, error: Exception) -> Exception:
    """An error about an argument of a launch as one of the function, which has other parameters at other places."""
    begun = _OF_LAUNCH.match(str(error)) if isinstance(error, TypeError | ValueError | OverflowError) else None
    return error if begun is None else refusal(type(error)(f"{f.__name__}(): {begun[1]}{str(error)[begun.end():]}"))


def too_many(f: TileFunction, more: Sequence[Any]) -> TypeError:
    """The error of a call with more positional arguments than there are parameters."""
    taken = [n for n, p in f.parameters.items() if p.kind is not p.KEYWORD_ONLY]
    named = [n for n in f.parameters if n not in taken]
    parts = [f"{f.__name__}() takes {len(taken)} argument{'s' * (len(taken) != 1)}{f' ({_all(taken)})' * bool(taken)}, "
             f"got {len(taken) + len(more)}"]
    if named:
        parts.append(f"{_all(named)} can only be given by name")
    if len(more) <= len(named):
        return refusal(TypeError("; ".join(parts)))
    if len(f.outputs) == 1:
        name, out = f.outputs[0].name, f.outputs[0].out
        parts.append(f"`{name}` is an output, which the call makes and returns; out= takes an array of yours instead"
                     f"{why(name, out) if len(more) == 1 else ''}")
    elif f.outputs:
        parts.append(f"{_all([o.name for o in f.outputs])} are outputs, which the call makes and returns; out= takes "
                     f"arrays of yours instead")
    return refusal(TypeError("; ".join(parts)))


def unknown(f: TileFunction, name: str, called: str | None = None, more: Sequence[str] = ()) -> TypeError:
    """The error of a call with a keyword that is no parameter.

    called   the name of what is called, where that is a tuned function
    more     further keywords that the call takes
    """
    if any(o.name == name for o in f.outputs):
        hint = f"; `{name}` is an output, which the call makes and returns; out= takes an array of yours instead"
    else:
        taken = [*f.parameters, *(["out"] if f.outputs else []), "stream", *more]
        hint = nearest(name, taken) or f"; it takes {', '.join(taken)}"
    return refusal(TypeError(f"{called or f.__name__}() got an unexpected keyword argument {name!r}{hint}"))


def _all(names: Sequence[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def _about_dtypes(e: TileError, bound: Bound, wanted: Sequence[Planned]) -> None:
    """Say which dtypes the arrays have, and what to declare or to pass instead."""
    source, target = e._conversion
    by_default = [w for w in wanted if w.dtype is target and _of_first(w)]
    outputs = [f"output `{w.output.name}` has dtype {w.dtype.name}{_like(w, bound)}" for w in wanted]
    note = "; ".join([*(f"`{a.name}` has dtype {a.dtype.name}" for a in bound.arrays), *outputs]), None
    if note in e.notes or not bound.arrays:
        return
    e.notes += (note,)
    culprits = [a for a in bound.arrays if a.dtype is source]
    ways = [_passed(culprits, target)] if culprits and INFO[target].floating else []
    ways += [f"declare {_declared(w, source)}" for w in by_default]
    if ways:
        convert = f"value.astype(ct.{target.name})"
        e.help = " or ".join(ways) + (f", or convert explicitly: {convert}" if INFO[target].floating else
                                      f", which holds fractions; {convert} would cut them off")


def _of_first(w: Planned) -> bool:
    return w.output.dtype is None and w.output.dtype_like is None


def _like(w: Planned, bound: Bound) -> str:
    return f", as the first array, `{bound.first.name}`" if _of_first(w) and bound.first is not None else ""


def _passed(arrays: Sequence[Read], target: DType) -> str:
    return f"pass {' and '.join(f'`{a.name}`' for a in arrays)} as {target.name}"


def _declared(w: Planned, dtype: DType) -> str:
    shape = w.output.out.shape
    given = repr(shape).replace("'", '"') if isinstance(shape, str) else f'like="{w.output.out.like}"' if (
        shape is None) else "..."
    return f"ct.Out({given}, {'dtype=' if shape is None else ''}ct.{dtype.name})"
