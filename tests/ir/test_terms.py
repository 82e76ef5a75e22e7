"""Constants are the same only if all their bits are."""

import itertools
import math

import pytest

from cutile.dtypes import float32
from cutile.ir.terms import Const, number_key

ALIKE = [0, 0.0, -0.0, False, 1, 1.0, True, math.nan, math.copysign(math.nan, -1.0), math.inf, -math.inf, 2**70]


@pytest.mark.parametrize("a, b", list(itertools.combinations(ALIKE, 2)))
def test_numbers_that_look_alike(a, b):
    assert number_key(a) != number_key(b)
    assert not Const(a, float32, True).same(Const(b, float32, True))


@pytest.mark.parametrize("a", ALIKE)
def test_each_equals_itself(a):
    again = math.copysign(float("nan"), math.copysign(1.0, a)) if a != a else type(a)(a)
    assert number_key(a) == number_key(again)
    assert Const(a, float32, True).same(Const(again, float32, True))
