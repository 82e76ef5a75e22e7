"""Functions from the coordinates of a block to the index of the tile that it accesses: LOOKS, each of another form."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest

GRID = (4, 3, 2)


def straight(a, b, c):
    return a, b, c


def backwards(a, b, c):
    return 3 - a, 2 - b, 1 - c


def swapped(a, b, c):
    return b, c, a


def strided(a, b, c):
    return 2 * a, 3 * b, 2 * c


def summed(a, b, c):
    return a + b, b + c, 5 - a


def one_axis(a, b, c):
    return b, 1, 1


def fixed(a, b, c):
    return 1, 0, 1


def curved(a, b, c):
    return a * a, a * b, b * c


def ragged(a, b, c):
    return (a * 5 + b * 3) % 7, (a * b + c) % 4, (a + 2 * b) % 3


LOOKS = (straight, backwards, swapped, strided, summed, one_axis, fixed, curved, ragged)
looks = pytest.mark.parametrize("look", LOOKS, ids=lambda f: f.__name__)


def blocks(grid: Sequence[int] = GRID):
    """Block coordinates in grid order: the first axis slowest."""
    return itertools.product(*map(range, (*grid, 1, 1, 1)[:3]))


def fitting(look: Callable, tile: Sequence[int], edge: Sequence[int]) -> tuple[int, ...]:
    """Array sizes such that all tiles of a map lie inside, except that `edge` elements of the last one are beyond the
    end.
    """
    top = [max(look(*b)[k] for b in blocks()) for k in range(len(tile))]
    return tuple((i + 1) * t - e for i, t, e in zip(top, tile, edge))
