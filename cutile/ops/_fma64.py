"""The fused multiply-add of float64 in a directed rounding mode, element by element through exact fractions.

The product of two narrower numbers is exact in float64, so narrower dtypes do not need this file. It is slow and rarely
used.
"""

from __future__ import annotations

import math

import numpy as np

from cutile.dtypes import float64
from cutile.ops import _numeric
from cutile.ops._exact import fraction
from cutile.types import RoundingMode

RZ, RM = RoundingMode.RZ, RoundingMode.RM


def fma64_directed(mode: RoundingMode, x, y, z):
    """x * y + z in float64 rounded in a direction: the nearest value, or its neighbour in that direction."""
    nearest = np.asarray(_numeric.fma(x, y, z, float64))
    out = np.array(nearest)
    for at in zip(*np.nonzero(~np.isnan(nearest)), strict=True) if nearest.ndim else ((),):
        a, b, c = (float(np.broadcast_to(v, nearest.shape)[at]) for v in (x, y, z))
        out[at] = _one_element(mode, float(nearest[at]), a, b, c)
    return out


def _one_element(mode: RoundingMode, r: float, a: float, b: float, c: float) -> float:
    if math.isnan(r) or not all(map(math.isfinite, (a, b, c))):
        return r
    exact = fraction(a) * fraction(b) + fraction(c)
    if exact == 0:
        two_of_a_sign = c == 0 and math.copysign(1.0, a * b) == math.copysign(1.0, c)
        return r if two_of_a_sign else -0.0 if mode is RM else 0.0
    above = r > 0 if math.isinf(r) else fraction(r) > exact
    if not math.isinf(r) and fraction(r) == exact:
        return r
    down = mode is RM or mode is RZ and exact > 0
    if above and down:
        return math.nextafter(r, -math.inf)
    if not above and not down:
        return math.nextafter(r, math.inf)
    return r
