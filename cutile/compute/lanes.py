"""Tile code of sorts: short runs that are sorted, and sorted runs that are merged, by lanes.

A *lane* is one element of a tile. It makes a few items that lie one after the other, one at a time, so that an item is
compared with one other only. To merge, it finds by binary search where its items begin in both runs: the *crossing*.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import cutile as ct

EACH = 16  # items that a lane merges; a power of two
FEW = 8  # items that a lane sorts, by comparisons of neighbours; a power of two


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
        return joined_values(self.type, items), joined(places)

    def in_order(self, rows, types, there):
        """Some rows of each lane in the order of their keys: `rows[k]` has a key and what moves with it, of `types`.
        Those for which `there[k]` is false stay behind.

        Neighbours are compared and exchanged, all even pairs and all odd ones in turn. So equal keys keep their order,
        and each row is still there once, whatever the comparison says.
        """
        for _ in ct.static_iter(range(len(rows) // 2)):
            rows = self._exchanged(self._exchanged(rows, types, there, 0), types, there, 1)
        return rows

    def _exchanged(self, rows, types, there, first):
        for k in ct.static_iter(range(first, len(rows) - 1, 2)):
            x, y = rows[k], rows[k + 1]
            swap = self.first(self.type.cast(y[0]), self.type.cast(x[0]), there[k + 1])
            rows = rows[:k] + (_selected(types, swap, y, x), _selected(types, swap, x, y)) + rows[k + 2:]
        return rows


def _selected(types, condition, x, y):
    return tuple(types[m].select(condition, x[m], y[m]) for m in ct.static_iter(range(len(types))))


def joined_values(t, items):
    """The tile of the items of all lanes, of type `t`."""
    numbers = tuple(t.flat(items[k]) for k in ct.static_iter(range(len(items))))
    return t.nest(tuple(joined(tuple(numbers[k][m] for k in ct.static_iter(range(len(items)))))
                        for m in ct.static_iter(range(len(t.dtypes)))))


def columns(t, value, count):
    """The reverse: `count` values, of which each has one item of each lane."""
    numbers = t.flat(value)
    lanes = ct.static_eval(numbers[0].shape[0] // count)
    rows = tuple(ct.reshape(x, (lanes, count)) for x in ct.static_iter(numbers))
    return tuple(t.nest(tuple(ct.reshape(ct.extract(x, (0, k), (lanes, 1)), (lanes,)) for x in ct.static_iter(rows)))
                 for k in ct.static_iter(range(count)))


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
