"""Tile code that several algorithms need: an operator on values, and the reduction of a tile of values to one."""

from __future__ import annotations

import dataclasses
from typing import Any

import cutile as ct
from cutile.compute.readers import Place


@dataclasses.dataclass(frozen=True)
class Combined:
    """An operator of two values of one type, whose results are converted to that type.

    `loops`: it has a loop, which cannot stand in ct.reduce, so that a tile is reduced by halves.
    """

    op: Any
    type: Any
    loops: bool

    def __call__(self, x, y, mask=None):
        """The operator on values whose numbers are tiles or scalars; with a mask, where it is true."""
        return self.type.cast(ct.elementwise(self.op)(x, y, mask=mask))

    def numbers(self, *both):
        """The operator on the numbers of two values, for ct.reduce and ct.scan."""
        half = ct.static_eval(len(both) // 2)
        return self.type.flat(self(self.type.nest(both[:half]), self.type.nest(both[half:])))

    def reduced(self, value):
        """The combination of the items of a tile, as a value of scalars. The tree is fixed: item i meets item i + n/2.
        """
        numbers = self.type.flat(value)
        if self.loops:
            left = self._halved(numbers)
            return self.type.nest(tuple(x.item() for x in ct.static_iter(left)))
        zeros = tuple(0 for _ in ct.static_iter(range(len(numbers))))
        return self.type.nest(ct.reduce(numbers, 0, lambda *both: self.numbers(*both), zeros))

    def scanned(self, value):
        """Each item of a tile combined with those before it."""
        numbers = self.type.flat(value)
        if self.loops:
            return self.type.nest(self._merged(numbers, 1))
        zeros = tuple(0 for _ in ct.static_iter(range(len(numbers))))
        return self.type.nest(ct.scan(numbers, 0, lambda *both: self.numbers(*both), zeros))

    def _merged(self, numbers, width):
        """Runs of `width` items that are scanned, merged in pairs until one is left."""
        size = numbers[0].shape[0]
        if width == size:
            return numbers
        pairs = ct.static_eval(size // (2 * width))
        rows = tuple(ct.reshape(x, (pairs, 2, width)) for x in ct.static_iter(numbers))
        left = tuple(ct.extract(x, (0, 0, 0), (pairs, 1, width)) for x in ct.static_iter(rows))
        right = tuple(ct.extract(x, (0, 1, 0), (pairs, 1, width)) for x in ct.static_iter(rows))
        last = tuple(ct.extract(x, (0, 0, ct.static_eval(width - 1)), (pairs, 1, 1)) for x in ct.static_iter(left))
        right = self.type.flat(self(self.type.nest(last), self.type.nest(right)))
        joined = tuple(ct.cat((left[k], right[k]), 1) for k in ct.static_iter(range(len(left))))
        return self._merged(tuple(ct.reshape(x, (size,)) for x in ct.static_iter(joined)), ct.static_eval(2 * width))

    def in_order(self, value):
        """The combination of the items of a tile in their order, as a value of scalars."""
        numbers = self.type.flat(value)
        while_left = self._paired(numbers)
        return self.type.nest(tuple(x.item() for x in ct.static_iter(while_left)))

    def _paired(self, numbers):
        if numbers[0].shape[0] == 1:
            return numbers
        half = ct.static_eval(numbers[0].shape[0] // 2)
        pairs = tuple(ct.reshape(x, (half, 2)) for x in ct.static_iter(numbers))
        left = tuple(ct.reshape(ct.extract(x, (0, 0), (half, 1)), (half,)) for x in ct.static_iter(pairs))
        right = tuple(ct.reshape(ct.extract(x, (0, 1), (half, 1)), (half,)) for x in ct.static_iter(pairs))
        return self._paired(self.type.flat(self(self.type.nest(left), self.type.nest(right))))

    def _halved(self, numbers):
        if numbers[0].shape[0] == 1:
            return numbers
        half = (ct.static_eval(numbers[0].shape[0] // 2),)
        left = tuple(ct.extract(x, (0,), half) for x in ct.static_iter(numbers))
        right = tuple(ct.extract(x, (1,), half) for x in ct.static_iter(numbers))
        return self._halved(self.type.flat(self(self.type.nest(left), self.type.nest(right))))

    def picked(self, value, chosen):
        """The item of a tile that is chosen, the only one, as a value of scalars; any where none is."""
        numbers = self.type.flat(value)
        zeros = tuple(0 for _ in ct.static_iter(range(len(numbers))))
        found = ct.reduce((*numbers, chosen), 0, lambda *both: self._chosen_of(*both), (*zeros, False))
        return self.type.nest(found[:-1])

    def _chosen_of(self, *both):
        half = ct.static_eval(len(both) // 2)
        x, y, there = self.type.nest(both[:half - 1]), self.type.nest(both[half:-1]), both[half - 1]
        return (*self.type.flat(self.type.select(there, x, y)), there | both[-1])

    def rows_reduced(self, value, there):
        """The combination of the items of each row of a tile: of those that are there, the first ones of a row. `there`
        is None where all are.
        """
        numbers = self.type.flat(value)
        rows, size = numbers[0].shape
        if size == 1:
            return self.type.nest(tuple(ct.reshape(x, (rows,)) for x in ct.static_iter(numbers)))
        if self.loops:
            return self._rows_halved(value, ct.full((rows, size), True, ct.bool_) if there is None else there)
        zeros = tuple(0 for _ in ct.static_iter(range(len(numbers))))
        if there is None:
            return self.type.nest(ct.reduce(numbers, 1, lambda *both: self.numbers(*both), zeros))
        found = ct.reduce((*numbers, there), 1, lambda *both: self._of_those_there(*both), (*zeros, False))
        return self.type.nest(found[:-1])

    def _of_those_there(self, *both):
        half = ct.static_eval(len(both) // 2)
        x, y = self.type.nest(both[:half - 1]), self.type.nest(both[half:-1])
        one, other = both[half - 1], both[-1]
        joined = self.type.select(one & other, self(x, y, one & other), self.type.select(one, x, y))
        return (*self.type.flat(joined), one | other)

    def _rows_halved(self, value, there):
        numbers = self.type.flat(value)
        rows, size = numbers[0].shape
        if size == 1:
            return self.type.nest(tuple(ct.reshape(x, (rows,)) for x in ct.static_iter(numbers)))
        half = (rows, ct.static_eval(size // 2))
        left = self.type.nest(tuple(ct.extract(x, (0, 0), half) for x in ct.static_iter(numbers)))
        right = self.type.nest(tuple(ct.extract(x, (0, 1), half) for x in ct.static_iter(numbers)))
        both = ct.extract(there, (0, 1), half)
        joined = self.type.select(both, self(left, right, both), left)
        return self._rows_halved(joined, ct.extract(there, (0, 0), half))


def put_one(writer, state, position, type, value, dtype=ct.int32):
    """Store one value, of scalars, at a position, an integer of this dtype."""
    numbers = type.flat(value)
    one = type.nest(tuple(ct.reshape(x, (1,)) for x in ct.static_iter(numbers)))
    writer.put_at(state, ct.full((1,), position, dtype), one, ct.full((1,), True, ct.bool_))


def put_item(writer, state, i, n, type, value):
    """Store one value, of scalars, as item number i of n. In host memory this takes less time than `put_one`."""
    numbers = type.flat(value)
    one = type.nest(tuple(ct.reshape(x, (1,)) for x in ct.static_iter(numbers)))
    writer.put(state, Place(i, 1, n, True), one)
