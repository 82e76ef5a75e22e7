"""What the compiler of a kernel knows about its array parameters beyond their types.

The fields have the names of `compilation.ArrayConstraint` and `ListConstraint`, so a constraint can be used as a fact.
Per-dimension fields are sequences with one item per dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutile._support.structs import structure
from cutile.types import ArrayType

WORD = 16  # bytes that a thread moves at once


@structure(frozen=True, slots=True)
class ArrayFacts:
    """Facts about an array. `None` and 1 stand for "nothing known". Sizes and strides are in elements,
    `base_addr_divisible_by` is in bytes.
    """

    shape_constant: Sequence[int | None]
    stride_constant: Sequence[int | None]
    shape_divisible_by: Sequence[int]
    stride_divisible_by: Sequence[int]
    stride_lower_bound_incl: Sequence[int | None]
    base_addr_divisible_by: int = 1
    alias_groups: Sequence[str] = ()
    may_alias_internally: bool = True


@structure(frozen=True, slots=True)
class ListFacts:
    """Facts about a list of arrays. `element` holds for each array."""

    element: ArrayFacts
    alias_groups: Sequence[str] = ()
    elements_may_alias: bool = True


def nothing_known(t: ArrayType) -> ArrayFacts:
    n = t.ndim
    return ArrayFacts((None,) * n, (None,) * n, (1,) * n, (1,) * n, (None,) * n)


def of_parameters(constraints: Sequence[Any]) -> list[Any]:
    """Facts about each parameter of the IR, from the constraints of the Python function's parameters.

    A tuple adds the facts of its items, a constant adds none, a scalar adds None.
    """
    out: list[Any] = []
    for c in constraints:
        if hasattr(c, "items"):
            out += of_parameters(c.items)
        elif not hasattr(c, "value"):
            out.append(c if hasattr(c, "alias_groups") else None)
    return out


def power_of_two(n: int) -> int:
    """The largest power of two that divides n; Tile IR knows no other divisors. 1 for 0, of which
    nothing may be assumed.
    """
    return n & -n if n else 1


def elements_of_a_word(facts: ArrayFacts, bits: int) -> int:
    """How many elements of so many bits are the widest word that all rows begin with."""
    rows = [power_of_two(d if c is None else c) * bits // 8
            for c, d in zip(facts.stride_constant, facts.stride_divisible_by, strict=True) if c != 1]
    return min(WORD, power_of_two(facts.base_addr_divisible_by), *rows) * 8 // bits
