"""Tile code of sorts: short runs that are sorted, and sorted runs that are merged, by lanes.

A *lane* is one element of a tile. It makes a few items that lie one after the other, one at a time, so that an item is
compared with one other only. To merge, it finds by binary search where its items begin in both runs: the *crossing*.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import cutile as ct

EACH = 16  # items that a lane merges; a power of two
FEW = 8  # items that a lane sorts, each pair by a comparison; a power of two


@dataclasses.dataclass(frozen=True)
class Keys:
    """Items that are sorted: their type and reader; `before(x, y)` is true where x belongs before y."""

    type: Any
    reader: Any
    before: Any

    def at(self, state, index, mask):
        return self.type.cast(self.reader.at(state, index, mask))

    def first(self, x, y, mask):
        """Where x belongs before y, of those where the mask is true."""
        return mask & (ct.elementwise(self.before)(x, y, mask=mask) != 0)

    def crossing(self, state, left, right, k, low, high, steps):
        """How many of the first k items of two runs, which begin at `left` and `right`, come from the left one: from
        `low` to `high`, found by as many steps as that range has bits. Equal items come from the left run first.
        """
        for _ in range(steps):
            middle, unknown = (low + high) >> 1, low < high
            x, y = self.at(state, left + middle, unknown), self.at(state, right + (k - 1 - middle), unknown)
            fewer = self.first(y, x, unknown)
            low, high = ct.where(unknown & ~fewer, middle + 1, low), ct.where(fewer, middle, high)
        return low

    def merged(self, state, left, left_end, right, right_end):
        """EACH items of two runs for each lane, and where they lie. Lanes that end where others begin take each item
        once, whatever the comparison says.
        """
        more, others = left < left_end, right < right_end
        x, y = self.at(state, left, more), self.at(state, right, others)
        items, places = (), ()
        for _ in ct.static_iter(range(EACH)):
            from_right = others & ~more | self.first(y, x, more & others)
            items = items + (self.type.select(from_right, y, x),)
            places = places + (ct.where(from_right, right, left),)
            left, right = ct.where(from_right, left, left + 1), ct.where(from_right, right + 1, right)
            more, others = left < left_end, right < right_end
            item = self.at(state, ct.where(from_right, right, left), ct.where(from_right, others, more))
            x, y = self.type.select(from_right, x, item), self.type.select(from_right, item, y)
        return self.joined(items), joined(places)

    def ranks(self, items, there):
        """The numbers that each of FEW items has in their order: those for which `there` is false stay behind.

        In a second round ranks are compared, and all are different, whatever the comparison of items says.
        """
        ranks = _counted(lambda i, j: self.first(items[j], items[i], there[j]), there[0].shape)
        return _counted(lambda i, j: ranks[j] < ranks[i], there[0].shape)

    def joined(self, items):
        """The tile of the items of all lanes."""
        numbers = tuple(self.type.flat(items[k]) for k in ct.static_iter(range(len(items))))
        return self.type.nest(tuple(joined(tuple(numbers[k][m] for k in ct.static_iter(range(len(items)))))
                                    for m in ct.static_iter(range(len(self.type.dtypes)))))


def _counted(swapped, shape):
    """The rank of each of FEW items: `swapped(i, j)` is true where a later one, j, comes before i."""
    ranks = tuple(ct.full(shape, k, ct.int32) for k in ct.static_iter(range(FEW)))
    for i in ct.static_iter(range(FEW)):
        for j in ct.static_iter(range(i + 1, FEW)):
            one = ct.astype(swapped(i, j), ct.int32)
            ranks = ranks[:i] + (ranks[i] + one,) + ranks[i + 1:j] + (ranks[j] - one,) + ranks[j + 1:]
    return ranks


def joined(tiles):
    """Tiles as one: the first item of each lane is from the first one, the second one from the second, and so on.
    """
    lanes, size = tiles[0].shape[0], ct.static_eval(tiles[0].shape[0] * len(tiles))
    return ct.reshape(_joined(tuple(ct.reshape(t, (lanes, 1)) for t in ct.static_iter(tiles))), (size,))


def _joined(tiles):
    if len(tiles) == 1:
        return tiles[0]
    half = ct.static_eval(len(tiles) // 2)
    return ct.cat((_joined(tiles[:half]), _joined(tiles[half:])), 1)
