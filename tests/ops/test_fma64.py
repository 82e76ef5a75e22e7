"""float64 fused multiply-adds in every rounding direction, compared with exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from cutile.ops._fma64 import fma64_directed
from cutile.types import RoundingMode

NUMBERS = [0.0, -0.0, 1.0, -1.0, 1 / 3, -0.1, 1 + 2.0**-52, 2.0**-1074, -(2.0**-1022), 1e308, -1e308, 2.0**-600]
MODES = {m: RoundingMode[m] for m in ("RZ", "RM", "RP")}


def finite_triples():
    x, y, z = (np.array(v) for v in zip(*itertools.product(NUMBERS, repeat=3)))
    return x, y, z


@pytest.mark.parametrize("mode", MODES)
def test_results_are_the_nearest_on_their_side(mode):
    x, y, z = finite_triples()
    with np.errstate(all="ignore"):  # as meanings run
        got = fma64_directed(MODES[mode], x, y, z)
    for a, b, c, r in zip(x.tolist(), y.tolist(), z.tolist(), got.tolist()):
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        down = mode == "RM" or mode == "RZ" and exact > 0
        if math.isinf(r):
            assert (r < 0) == (mode == "RM") and abs(exact) > Fraction(np.finfo(np.float64).max)
            continue
        if exact == 0:
            assert r == 0
        elif down:
            assert Fraction(r) <= exact and (math.nextafter(r, math.inf) == math.inf
                                             or Fraction(math.nextafter(r, math.inf)) > exact)
        else:
            assert Fraction(r) >= exact and (math.nextafter(r, -math.inf) == -math.inf
                                             or Fraction(math.nextafter(r, -math.inf)) < exact)


@pytest.mark.parametrize("mode, sign", [("RM", -1.0), ("RP", 1.0), ("RZ", 1.0)])
def test_a_sum_that_cancels_is_negative_zero_only_downwards(mode, sign):
    [r] = fma64_directed(MODES[mode], np.array([1.0]), np.array([3.0]), np.array([-3.0]))
    assert r == 0 and math.copysign(1.0, r) == sign


def test_infinities_and_nan():
    inf, nan = math.inf, math.nan
    x, y, z = np.array([inf, inf, nan, 0.0]), np.array([2.0, 2.0, 1.0, inf]), np.array([1.0, -inf, 1.0, 1.0])
    with np.errstate(invalid="ignore"):
        got = fma64_directed(MODES["RP"], x, y, z)
    assert got[0] == inf and np.isnan(got[1:]).all()
