"""Machine code that a program brings along, such as a blob of `cutile.compute`. Launches run it in the place of what
they would compile, as long as somebody holds it.

Code is for a typed kernel, a target and options, and may be used wherever what it was compiled to assume holds.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from cutile import settings
from cutile._support.structs import replace, structure
from cutile.gpu.cache_key import digest, sources
from cutile.gpu.facts import ArrayFacts, nothing_known, of_parameters
from cutile.gpu.target import Target
from cutile.ir.nodes import Kernel
from cutile.ir.text import anonymous_text
from cutile.types import ArrayType


@structure(frozen=True, slots=True)
class Code:
    """A cubin. `facts`: what it assumes of each parameter of the IR; `symbol`: its entry."""

    facts: Sequence[ArrayFacts | None]
    symbol: str
    cubin: bytes


class Carried:
    """Code by `name_of` what it is for, the best first."""

    def __init__(self, codes: dict[str, list[Code]]):
        self.codes = codes
        _all.add(self)


_all: weakref.WeakSet[Carried] = weakref.WeakSet()


def find(kernel: Kernel, constraints: Sequence[Any], target: Target, options: Any) -> Code | None:
    """Code that is held for a kernel, where these constraints hold for its parameters."""
    if not _all or settings.memcheck():
        return None
    name, facts = name_of(kernel, target, options), of_parameters(constraints)
    return next((code for carried in tuple(_all) for code in carried.codes.get(name, ())
                 if all(map(_follows, code.facts, facts))), None)


def name_of(kernel: Kernel, target: Target, options: Any) -> str:
    """A digest of all that says what code is for, apart from facts."""
    return digest("\n".join([f"cutile {sources()}", target.tool_name, str(options.on(target.tool_name)),
                             anonymous_text(kernel)]))


def assumptions(kernel: Kernel, constraints: Sequence[Any]) -> list[list[ArrayFacts | None]]:
    """What to compile for, so that all arrays are served, and arrays like these well, whatever their sizes: facts about
    each parameter, and then none.
    """
    types = [p.type for p in kernel.params]
    return [[_of_any_size(f, t) for f, t in zip(of_parameters(constraints), types, strict=True)],
            [_of_any(t) for t in types]]


def _of_any_size(facts: Any, t: Any) -> ArrayFacts | None:
    if not isinstance(t, ArrayType):
        return None
    return replace(_of_any(t), **{name: getattr(facts, name) for name in (
        "stride_constant", "stride_divisible_by", "stride_lower_bound_incl", "base_addr_divisible_by",
        "may_alias_internally")})


def _of_any(t: Any) -> ArrayFacts | None:
    if not isinstance(t, ArrayType):
        return None
    return replace(nothing_known(t), shape_constant=t.static_shape, stride_constant=t.static_strides)


def _follows(assumed: ArrayFacts | None, facts: Any) -> bool:
    """Whether what code assumes of a parameter follows from the facts about it."""
    if assumed is None:
        return True
    return (all(a is None or a == f for a, f in zip(assumed.shape_constant, facts.shape_constant, strict=True))
            and all(a is None or a == f for a, f in zip(assumed.stride_constant, facts.stride_constant, strict=True))
            and all(map(_divides, assumed.shape_divisible_by, facts.shape_divisible_by, facts.shape_constant))
            and all(map(_divides, assumed.stride_divisible_by, facts.stride_divisible_by, facts.stride_constant))
            and all(a is None or f is not None and f >= a for a, f in zip(
                assumed.stride_lower_bound_incl, facts.stride_lower_bound_incl, strict=True))
            and facts.base_addr_divisible_by % assumed.base_addr_divisible_by == 0
            and (assumed.may_alias_internally or not facts.may_alias_internally)
            and not assumed.alias_groups)


def _divides(divisor: int, known: int, constant: int | None) -> bool:
    return (known if constant is None else constant) % divisor == 0
