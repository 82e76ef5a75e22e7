"""What the language leaves open in the result of an op, as data.

    @op(float_unary, freedom=(ulp(2), when(APPROX, ulp(62))), …)

docs/freedoms.md lists it, `cutile.bounds` counts with it, and tests compare against it.
"""

from __future__ import annotations

from collections.abc import Iterable

from cutile._support.structs import structure
from cutile.dtypes import DType, bfloat16, float16, float32, float64
from cutile.types import RoundingMode


@structure(frozen=True, slots=True)
class Ulp:
    """At most so many units in the last place from the exact result, by the dtype of the result.

    `exact_at_zero`: every implementation gives the exact result where the first operand is zero.
    """

    limit: dict[DType, int]
    exact_at_zero: bool = False

    def __str__(self) -> str:
        return ", ".join(f"{d.name} {n} ulp" for d, n in self.limit.items())


@structure(frozen=True, slots=True)
class Order:
    """The order in which the terms of a sum, product, reduction … are combined, and with it rounding."""

    of: str

    def __str__(self) -> str:
        return f"order({self.of})"


@structure(frozen=True, slots=True)
class AnyValue:
    """Any value, in the case `case`."""

    case: str

    def __str__(self) -> str:
        return f"{self.case}: any value"


@structure(frozen=True, slots=True)
class When:
    """The freedoms under a rounding mode; they replace those of the op without one."""

    mode: RoundingMode
    freedoms: tuple[Ulp | AnyValue, ...]

    def __str__(self) -> str:
        """Only float32 has modes with freedoms [RM-2], so the float32 limit is shown."""
        parts = (f"{f.limit[float32]} ulp" if isinstance(f, Ulp) else str(f) for f in self.freedoms)
        return f"{self.mode.name}: {'; '.join(parts)}"


Freedom = Ulp | Order | AnyValue | When


def ulp(f32: int, f64: int = 1, *, exact_at_zero: bool = False) -> Ulp:
    """A bound per dtype. float16 and bfloat16 are computed wider and rounded once, so their
    limit is 1.
    """
    return Ulp({float16: 1, bfloat16: 1, float32: f32, float64: f64}, exact_at_zero)


def when(mode: RoundingMode, *freedoms: Ulp | AnyValue) -> When:
    return When(mode, freedoms)


def order(of: str) -> Order:
    return Order(of)


def any_(case: str) -> AnyValue:
    return AnyValue(case)


def ulp_of(freedoms: Iterable[Freedom], mode: RoundingMode | None = None) -> Ulp | None:
    """The bound on the error of results under a rounding mode; None if no ulp bound is named."""
    freedoms = tuple(freedoms)
    under = [f for w in freedoms if isinstance(w, When) and w.mode is mode for f in w.freedoms]
    return next((f for f in (*under, *freedoms) if isinstance(f, Ulp)), None)
