"""Ranges of integers: what an op gives lies in the range that is said of it, and division and shifts by a known number
are exact. What is said of the places of tiles is compared with what blocks access in test_inside.py.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from cutile.analysis import ranges
from cutile.dtypes import int32
from cutile.types import TileType

NUMBERS = range(-5, 7)
RANGES = [(a, b) for a in NUMBERS for b in NUMBERS if a <= b]


def hull(f, x, y):
    values = [f(a, b) for a in range(x[0], x[1] + 1) for b in range(y[0], y[1] + 1)]
    return min(values), max(values)


@pytest.mark.parametrize("rule, f, exact", [
    (ranges._quotient, lambda a, b: a // b, lambda x, y: True),
    (ranges._quotient_up, lambda a, b: -(-a // b), lambda x, y: True),
    (ranges._remainder, lambda a, b: a % b, lambda x, y: y[0] == y[1] and x[0] // y[0] == x[1] // y[0]),
], ids=["quotient", "rounded up", "remainder"])
def test_divisions(rule, f, exact):
    for x, y in itertools.product(RANGES, RANGES):
        found = rule(x, y)
        assert (found is None) == (y[0] < 1), (x, y)
        if found is not None:
            low, high = hull(f, x, y)
            assert found[0] <= low and high <= found[1], (x, y)
            assert not exact(x, y) or found == (low, high), (x, y)
            assert rule is not ranges._remainder or x[0] < 0 or found[1] <= min(x[1], y[1] - 1), (x, y)


def test_bits_of_both():
    for x, y in itertools.product(RANGES, RANGES):
        found = ranges._and(x, y)
        assert (found is None) == (x[0] < 0 and y[0] < 0)
        if found is not None:
            low, high = hull(lambda a, b: a & b, x, y)
            assert 0 == found[0] <= low and high <= found[1] <= max(x[1], y[1]), (x, y)


@pytest.mark.parametrize("amount, known", [((0, 0), True), ((3, 3), True), ((31, 31), True), ((32, 32), False),
                                           ((1, 2), False), ((-1, -1), False), ((0, 32), False)])
def test_shifts_by_a_known_number(amount, known):
    of = {"x": (-3, 5), "y": amount}
    node = SimpleNamespace(operands=("x", "y"), results=(SimpleNamespace(type=TileType(int32)),))
    found = ranges._shifted(lambda a, b: a << b)(SimpleNamespace(of=of.get), node)
    assert found == ((-3 << amount[0], 5 << amount[0]) if known else None)
