"""How launches go over items in tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cutile.compute.plans import Plan

PARTED = 1 << 22  # items, from which on a launch of its own for the last tile takes less time than it saves


class Part(NamedTuple):
    """Tiles that one launch goes over: how many, the number of the first one, whether all of their items are there, and
    up to which item operands are read and written.
    """

    blocks: int
    first: int
    whole: bool
    items: int


def parts_of(plan: Plan, n: int, size: int) -> Iterator[Part]:
    """How launches go over n items in tiles. In GPU memory, loads and stores of an array whose size 16 does not divide
    are of single items, so of many items the last tile is left to another launch.
    """
    full = n // size
    if plan.on_host or n < PARTED or n % size == 0:
        yield Part(-(-n // size), 0, n % size == 0, n)
    else:
        yield Part(full, 0, True, full * size)
        yield Part(1, full, False, n)
