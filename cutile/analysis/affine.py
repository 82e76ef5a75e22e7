"""Integer scalars as affine functions of block indices, loop counters and other scalars.

Sums, differences, and products with constants are followed; every other scalar is a variable of its own. The scalar
equals the function's value modulo 2^n, where n is the width of its dtype; if the value fits the dtype, it equals it
exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cutile._support.structs import structure
from cutile.dtypes import info
from cutile.ir.nodes import Op, Value
from cutile.ops import arithmetic, create, grid
from cutile.types import TileType

MAX_TERMS = 8  # of a function; a scalar with more is a variable of its own


@structure(frozen=True, slots=True)
class BlockIndex:
    """The index of the running block along a grid axis."""

    axis: int


Variable = BlockIndex | Value


@structure(frozen=True, slots=True)
class AffineIndex:
    """constant + Σ coefficient·variable. No coefficient is 0, and no variable occurs twice."""

    constant: int
    terms: tuple[tuple[Variable, int], ...] = ()

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(v for v, _ in self.terms)

    def coefficient(self, variable: Variable) -> int:
        return next((k for v, k in self.terms if v == variable), 0)

    def without(self, variable: Variable) -> AffineIndex:
        return AffineIndex(self.constant, tuple((v, k) for v, k in self.terms if v != variable))

    def scale(self, factor: int) -> AffineIndex:
        return AffineIndex(self.constant * factor, tuple((v, k * factor) for v, k in self.terms if factor))

    def shift(self, distance: int) -> AffineIndex:
        return AffineIndex(self.constant + distance, self.terms)

    def plus(self, other: AffineIndex) -> AffineIndex:
        total = dict(self.terms)
        for v, k in other.terms:
            total[v] = total.get(v, 0) + k
        return AffineIndex(self.constant + other.constant, tuple((v, k) for v, k in total.items() if k))

    def extent(self, ranges: Mapping[Variable, range]) -> tuple[int, int] | None:
        """The least and the greatest value if each variable takes the values of its range; None if the range of a
        variable is empty or unknown.
        """
        least = most = self.constant
        for v, k in self.terms:
            values = ranges.get(v)
            if not values:
                return None
            ends = k * values[0], k * values[-1]
            least, most = least + min(ends), most + max(ends)
        return least, most


def affine_scalars(ops: Iterable[Op]) -> Callable[[Value], AffineIndex]:
    """Returns a function from a scalar of a program to its affine function. `ops`: the program's ops, in order."""
    found: dict[Value, AffineIndex] = {}

    def of(v: Value) -> AffineIndex:
        return found.get(v) or AffineIndex(0, ((v, 1),))

    for n in ops:
        rule = _RULES.get(n.op)
        if rule is not None and not n.results[0].type.shape and is_integer(n.results[0]):
            function = rule(n, *map(of, n.operands))
            if function is not None and len(function.terms) <= MAX_TERMS:
                found[n.results[0]] = function
    return of


def is_integer(v: Value) -> bool:
    """Whether a value is a scalar of an integer dtype."""
    return isinstance(v.type, TileType) and not v.type.shape and info(v.type.dtype).integral


def _product(n: Op, x: AffineIndex, y: AffineIndex) -> AffineIndex | None:
    if not x.terms:
        return y.scale(x.constant)
    return None if y.terms else x.scale(y.constant)


_RULES: dict[Any, Callable[..., AffineIndex | None]] = {
    create.constant: lambda n: AffineIndex(int(n.attrs["value"])),
    grid.bid: lambda n: AffineIndex(0, ((BlockIndex(n.attrs["axis"]), 1),)),
    arithmetic.add: lambda n, x, y: x.plus(y),
    arithmetic.sub: lambda n, x, y: x.plus(y.scale(-1)),
    arithmetic.negative: lambda n, x: x.scale(-1),
    arithmetic.mul: _product,
}
