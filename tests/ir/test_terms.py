"""Constants are the same only if all their bits are."""

import itertools
import math
import sys

import pytest

from cutile.dtypes import float32
from cutile.ir.terms import POISON, Const, Record, Tuple, is_poisoned, number_key

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


def pair_of(many: Tuple) -> list:
    """A tuple and a dataclass with many parts."""
    return [many, Record(object, {f"f{i}": t for i, t in enumerate(many.items)})]


@pytest.mark.parametrize("whole", pair_of(Tuple(tuple(Const(i, float32, True) for i in range(500)))))
def test_parts_are_looked_through_once(whole):
    """A kernel may read each of them, and each time the whole is asked for."""
    calls = []

    def note(frame, event, arg):
        calls.append(event)

    assert not is_poisoned(whole)
    sys.setprofile(note)
    try:
        assert not is_poisoned(Tuple((whole, whole)))
    finally:
        sys.setprofile(None)
    assert len(calls) < 30


@pytest.mark.parametrize("whole", pair_of(Tuple((Const(1, float32, True), Tuple((POISON,))))))
def test_poison_is_found_again(whole):
    assert [is_poisoned(Tuple((whole,))), is_poisoned(whole), is_poisoned(whole)] == [True] * 3
