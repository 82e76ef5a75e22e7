"""Which arguments a compiled function takes, in a form that files keep too [CPL-1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cutile._support.structs import structure
from cutile.compilation.array_spec import Sample
from cutile.compilation.calling_convention import CallingConvention
from cutile.compilation.derive import constraints_of
from cutile.errors import refusal
from cutile.functions.binding import bind, planned
from cutile.runtime.arguments import Argument

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction

_PROMISES = ("base_addr_divisible_by", "shape_divisible_by", "stride_divisible_by", "shape_constant", "stride_constant")


@structure(frozen=True)
class Accepted:
    """What code was made for, of one parameter.

    key       that of its type, or of its value where it is a constant
    shown     the same in words
    promises  what the code relies on beyond that, such as multiples of sizes
    """

    name: str
    key: str
    shown: str
    promises: Mapping[str, Any]

    def as_json(self) -> list:
        return [self.name, self.key, self.shown, dict(self.promises)]


def from_json(item: Sequence[Any]) -> Accepted:
    name, key, shown, promises = item
    return Accepted(name, key, shown, {k: tuple(v) if isinstance(v, list) else v for k, v in promises.items()})


def accepted(names: Sequence[str], arguments: Sequence[Argument], constraints: Sequence[Any]) -> list[Accepted]:
    return [Accepted(n, repr(a.key), _shown(a), {p: v for p in _PROMISES if (v := getattr(c, p, None)) is not None})
            for n, a, c in zip(names, arguments, constraints)]


def check(f: TileFunction, wanted: Sequence[Accepted], given: Mapping[str, Any]) -> None:
    """TypeError where arguments of a function are of other kinds than those that code was made for."""
    bound = bind(f, {n: given.get(n, p.default) for n, p in f.parameters.items()})
    for o in f.outputs:
        p = planned(bound, o)
        bound.values[o.name] = Sample(p.shape, p.dtype)
    arguments = f.launched.classify(tuple(bound.values[n] for n in f.kernel.names))
    passed = constraints_of(f.launched, [a.arg_type for a in arguments], arguments,
                            CallingConvention.cutile_python_v2())
    found = accepted(f.kernel.names, arguments, passed)
    if [a.name for a in wanted] != [a.name for a in found]:
        names = ", ".join(a.name for a in wanted)
        raise refusal(TypeError(f"{f.__name__} was compiled with other parameters: {names}"))
    for was, now in zip(wanted, found):
        why = f"for {was.shown}, got {now.shown}" if was.key != now.key else _broken(was.promises, now.promises)
        if why is not None:
            raise refusal(TypeError(f"{f.__name__} was compiled for another `{was.name}`: {why}"))


def _shown(argument: Argument) -> str:
    t = argument.arg_type
    describe = getattr(t, "describe", None)
    return describe() if describe is not None else repr(getattr(t, "value", t))


def _broken(was: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """What was promised of a parameter and does not hold; None if all does."""
    for what in _PROMISES:
        a, b = was.get(what), now.get(what)
        if a is None or b is None:
            continue
        if not isinstance(a, tuple):
            holds = b % a == 0
        elif what.endswith("constant"):
            holds = all(x is None or x == y for x, y in zip(a, b))
        else:
            constants = now.get(what.replace("divisible_by", "constant")) or (None,) * len(b)
            b = tuple(d if c is None else (c or d) for d, c in zip(b, constants))
            holds = all(y % x == 0 for x, y in zip(a, b))
        if not holds:
            return f"{what.replace('_', ' ')} was {a}, and is {b}"
    return None
