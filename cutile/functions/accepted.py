"""Which arguments a compiled function takes, in a form that files keep too [CPL-1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cutile._support.structs import structure
from cutile.compilation.array_spec import Sample
from cutile.compilation.calling_convention import CallingConvention
from cutile.compilation.derive import constraints_of
from cutile.errors import refusal
from cutile.functions.binding import Bound, bind, planned
from cutile.runtime.arguments import Argument

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction

_PROMISES = ("base_addr_divisible_by", "shape_divisible_by", "stride_divisible_by", "shape_constant", "stride_constant",
             "stride_lower_bound_incl", "may_alias_internally")


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
    for was, now, argument in zip(wanted, found, arguments):
        if was.key != now.key:
            why = f"for {was.shown}, got {now.shown}{_follows(bound, was.name, given)}"
        else:
            why = _broken(was.promises, now.promises, argument.flat_args)
        if why is not None:
            raise refusal(TypeError(f"{f.__name__} was compiled for another `{was.name}`: {why}"))


def _follows(bound: Bound, name: str, given: Mapping[str, Any]) -> str:
    """Which sizes a constant follows from that the caller did not give."""
    rule = bound.function.defaults.get(name)
    reads = {name} if rule is None else rule.reads
    sizes = [f"{n} = {bound.names[n]}, {bound.origins[n]}" for n in sorted(reads) if n in bound.origins]
    return f"; it follows from {' and '.join(sizes)}" if sizes and name not in given else ""


def _shown(argument: Argument) -> str:
    t = argument.arg_type
    describe = getattr(t, "describe", None)
    return describe() if describe is not None else repr(getattr(t, "value", t))


def _broken(was: Mapping[str, Any], now: Mapping[str, Any], refs: Sequence[Any]) -> str | None:
    """What was promised of a parameter and does not hold, in words; None if all does.

    refs   the arrays that are passed
    """
    for what, values in (("size", "shape"), ("stride", "strides")):
        for axis, got in enumerate(getattr(refs[0], values, ()) if len(refs) == 1 else ()):
            if (must := _wanted(what.replace("size", "shape"), axis, was, now)) is not None:
                return f"its {what} along axis {axis} must be {must}, got {got}"
    if now.get("base_addr_divisible_by", 1) % was.get("base_addr_divisible_by", 1):
        return f"its address must be divisible by {was['base_addr_divisible_by']}"
    if was.get("may_alias_internally") is False and now["may_alias_internally"]:
        return "no two of its elements may share memory, as those of a broadcast array or of overlapping rows do"
    return None


def _wanted(what: str, axis: int, was: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """What a size or stride must be and is not, in words; None if it is."""
    def said(promises: Mapping[str, Any], kind: str) -> Any:
        return promises[kind][axis] if kind in promises else None

    constant, is_constant = (said(p, f"{what}_constant") for p in (was, now))
    divisor, is_divisible = (said(p, f"{what}_divisible_by") for p in (was, now))
    if constant is not None and constant != is_constant:
        return f"{constant}"
    if divisor is not None and (is_constant or is_divisible) % divisor:
        return f"divisible by {divisor}"
    if what == "stride" and said(was, "stride_lower_bound_incl") is not None and is_constant is None and said(
            now, "stride_lower_bound_incl") is None:
        return f"at least {said(was, 'stride_lower_bound_incl')}"
    return None
