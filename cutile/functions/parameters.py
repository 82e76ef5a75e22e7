"""The parameters that callers of a tile function pass, their defaults, and which of them decide what a call does."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import TYPE_CHECKING

from cutile.functions.binding import MISSING
from cutile.functions.rules import Rule, nearest, of_function

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction


def parameters(f: TileFunction, inputs: Sequence[str], named: Mapping[str, str]) -> dict[str, Parameter]:
    """The parameters that callers pass. Those without a default behind one with a default stay positional, those
    with a default before them become keyword-only.
    """
    plain = {n: v for n, v in (f.given.get("defaults") or {}).items() if n not in f.defaults}
    own = inspect.signature(f.kernel.function).parameters
    found: dict[str, Parameter] = {}
    for n in inputs:
        default = plain.get(n, MISSING if n in f.defaults else own[n].default)
        if default is Parameter.empty and n in named:
            default = MISSING
        kind = Parameter.KEYWORD_ONLY if own[n].kind is Parameter.KEYWORD_ONLY else Parameter.POSITIONAL_OR_KEYWORD
        found[n] = Parameter(n, kind, default=default)
    required = [i for i, p in enumerate(found.values()) if p.default is p.empty]
    for i, p in enumerate(list(found.values())):
        if p.default is not p.empty and required and i < required[-1]:
            found[p.name] = p.replace(kind=p.KEYWORD_ONLY)
    return dict(sorted(found.items(), key=lambda item: item[1].kind is Parameter.KEYWORD_ONLY))


def default_rules(f: TileFunction, known: Sequence[str], inputs: Sequence[str],
                  later: Mapping[str, str]) -> dict[str, Rule]:
    """The rules of defaults that follow from other arguments, by parameter.

    known   what rules may read
    inputs  the parameters that callers pass
    later   what rules may not read, each with the reason
    """
    found = {}
    for name, value in (f.given.get("defaults") or {}).items():
        if name not in inputs:
            raise TypeError(f"defaults of {f.__name__}: {name} is no input{nearest(name, inputs)}; inputs are "
                            f"{', '.join(inputs) or 'none'}")
        kind = getattr(f.kernel.function.__annotations__.get(name), "__origin__", None)  # T of ct.Constant[T]
        if isinstance(value, str) and kind in (int, float, bool):
            raise TypeError(f"defaults of {f.__name__}: `{name}` is {kind.__name__}, not text: write a number, "
                            f"or a function of named sizes, such as lambda N: N")
        if callable(value) and not isinstance(value, type):
            found[name] = of_function(f"the default of `{name}`", value, [k for k in known if k != name], later)
    return found


def keyed(f: TileFunction, inputs: Sequence[str]) -> list[tuple[str, bool]]:
    """What the work of a call depends on: arrays by sizes and dtype, numbers by value."""
    rules = [f.grid, *f.defaults.values(), *(r for o in f.outputs for r in (o.shape, o.dtype) if r)]
    read = {n for r in rules for n in r.reads} | {n for n in inputs if f.specs[n].constant} | f.computed
    like = {n for o in f.outputs for n in (o.out.like, o.dtype_like) if n is not None}
    arrays = [n for n in inputs if f.specs[n].sizes is not None or n in like]
    return [(n, True) for n in arrays] + [(n, False) for n in inputs if n not in arrays and n in read]


def lasting(f: TileFunction) -> bool:
    """Whether what a call does follows from what is keyed: rules that read other things are evaluated each time."""
    arrays = {n for n, s in f.specs.items() if s.array is not None}
    out = [r for o in f.outputs for r in (o.shape, o.dtype) if r is not None]
    return all(r.lasts and not r.reads & arrays for r in [f.grid, *f.defaults.values(), *out])
