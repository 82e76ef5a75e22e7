"""Readers and writers: tile code that reads tile number i of an operand, or writes one. All methods here are tile code.

A reader is a frozen dataclass without memory of its own. Its methods take the operand's *state*, the arguments of the
kernel that belong to it: an array, an int, or a tuple of states.

    tile(state, place)           the items at `place`, as a value whose numbers are tiles of shape (place.size,)
    at(state, index, mask, inside)   the items at the positions `index`, a tile of integers; undetermined where not
                                 `mask`. `inside`: all of them are there, so that no bounds need be checked
    put(state, place, value)     stores the items at `place`
    put_at(state, index, value, mask)   stores items at positions

Beyond the number of items, `tile` gives undetermined items, and `put` stores nothing. The values of operands are those
of value_types.py.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import cutile as ct
from cutile.dtypes import DType


@dataclasses.dataclass(frozen=True)
class Place:
    """Tile number `i` of `size` items, of `n` items in all. Positions have the dtype of `n`.

    `whole`: all its items are there.
    """

    i: Any
    size: int
    n: Any
    whole: bool

    def index(self):
        """The positions of the items."""
        return ct.astype(self.i, self.n.dtype) * self.size + ct.arange(self.size, dtype=self.n.dtype)

    def mask(self):
        """Which items are there; None if all are."""
        if self.whole:
            return None
        return ct.arange(self.size, dtype=self.n.dtype) < self.n - ct.astype(self.i, self.n.dtype) * self.size


BYTES = (ct.int8, ct.uint8)  # which by TMA take more time: registers hold four of them


@dataclasses.dataclass(frozen=True)
class Elements:
    """Numbers in an array of rank 1."""

    dtype: DType

    def tile(self, state, place):
        return ct.load(state, (place.i,), (place.size,), padding_mode=ct.PaddingMode.ZERO,
                       allow_tma=False if self.dtype in BYTES else None)

    def at(self, state, index, mask, inside=False):
        return ct.gather(state, index, mask=mask, check_bounds=not inside)

    def put(self, state, place, value):
        ct.store(state, (place.i,), ct.astype(value, self.dtype))

    def put_at(self, state, index, value, mask):
        ct.scatter(state, index, ct.astype(value, self.dtype), mask=mask)


@dataclasses.dataclass(frozen=True)
class Packed:
    """Numbers that are read in several units, each from an array of unsigned integers; the first has the lowest bits.

    `bits`: the unsigned integers of the size of a number. `unit`: those of a unit.
    """

    dtype: DType
    bits: DType
    unit: DType

    def joined(self, units):
        found = ct.astype(units[0], self.bits)
        for k in ct.static_iter(range(1, len(units))):
            found = found | ct.astype(units[k], self.bits) << ct.static_eval(k * self.unit.bitwidth)
        return ct.bitcast(found, self.dtype)

    def split(self, value):
        bits = ct.bitcast(ct.astype(value, self.dtype), self.bits)
        return tuple(ct.astype(bits >> k, self.unit)
                     for k in ct.static_iter(range(0, self.bits.bitwidth, self.unit.bitwidth)))

    def tile(self, state, place):
        return self.joined(tuple(ct.load(state[k], (place.i,), (place.size,), padding_mode=ct.PaddingMode.ZERO)
                                 for k in ct.static_iter(range(len(state)))))

    def at(self, state, index, mask, inside=False):
        return self.joined(tuple(ct.gather(state[k], index, mask=mask, check_bounds=not inside)
                                 for k in ct.static_iter(range(len(state)))))

    def put(self, state, place, value):
        units = self.split(value)
        for k in ct.static_iter(range(len(state))):
            ct.store(state[k], (place.i,), units[k])

    def put_at(self, state, index, value, mask):
        units = self.split(value)
        for k in ct.static_iter(range(len(state))):
            ct.scatter(state[k], index, units[k], mask=mask)


@dataclasses.dataclass(frozen=True)
class Immediate:
    """A number that travels in an int: an integer itself, a float as the bits of a float64."""

    dtype: DType
    floating: bool

    def value(self, bits):
        return ct.astype(ct.bitcast(bits, ct.float64) if self.floating else bits, self.dtype)


@dataclasses.dataclass(frozen=True)
class Constant:
    """One value everywhere; `type` is its type, `numbers` read those in the state."""

    type: Any
    numbers: tuple

    def value(self, state):
        return self.type.nest(tuple(self.numbers[k].value(state[k]) for k in ct.static_iter(range(len(self.numbers)))))

    def filled(self, state, shape):
        return self.type.nest(tuple(ct.full(shape, self.numbers[k].value(state[k]), self.numbers[k].dtype)
                                    for k in ct.static_iter(range(len(self.numbers)))))

    def tile(self, state, place):
        return self.filled(state, (place.size,))

    def at(self, state, index, mask, inside=False):
        return self.filled(state, index.shape)


@dataclasses.dataclass(frozen=True)
class First:
    """The first item of another reader, as a value of scalars; `type` is its type."""

    inner: Any
    type: Any

    def value(self, state):
        return self.type.item(self.inner.at(state, ct.zeros((1,), ct.int32), ct.full((1,), True, ct.bool_)))


@dataclasses.dataclass(frozen=True)
class Counting:
    """start, start + 1, …, in the dtype of the number, which wraps."""

    number: Immediate

    def tile(self, state, place):
        return self.number.value(state) + ct.astype(place.index(), self.number.dtype)

    def at(self, state, index, mask, inside=False):
        return self.number.value(state) + ct.astype(index, self.number.dtype)


@dataclasses.dataclass(frozen=True)
class Transformed:
    """An operator on what another reader gives; where it writes, on what it is given, before the other one writes it.

    `type`: that of the operator's results, for reading.
    """

    inner: Any
    op: Any
    type: Any

    def tile(self, state, place):
        return self.type.cast(ct.elementwise(self.op)(self.inner.tile(state, place), mask=place.mask()))

    def at(self, state, index, mask, inside=False):
        return self.type.cast(ct.elementwise(self.op)(self.inner.at(state, index, mask, inside), mask=mask))


@dataclasses.dataclass(frozen=True)
class TransformedOutput:
    """Writes what an operator makes of the items, converted to `type` before."""

    inner: Any
    op: Any
    type: Any

    def put(self, state, place, value):
        self.inner.put(state, place, ct.elementwise(self.op)(self.type.cast(value), mask=place.mask()))

    def put_at(self, state, index, value, mask):
        self.inner.put_at(state, index, ct.elementwise(self.op)(self.type.cast(value), mask=mask), mask)


@dataclasses.dataclass(frozen=True)
class Fields:
    """Structs, each field by a reader of its own."""

    cls: type
    parts: tuple

    def tile(self, state, place):
        return self.cls(*tuple(self.parts[k].tile(state[k], place) for k in ct.static_iter(range(len(self.parts)))))

    def at(self, state, index, mask, inside=False):
        return self.cls(*tuple(self.parts[k].at(state[k], index, mask, inside)
                               for k in ct.static_iter(range(len(self.parts)))))

    def put(self, state, place, value):
        value = self.cls.value_type.cast(value)
        for k in ct.static_iter(range(len(self.parts))):
            self.parts[k].put(state[k], place, value[k])

    def put_at(self, state, index, value, mask):
        value = self.cls.value_type.cast(value)
        for k in ct.static_iter(range(len(self.parts))):
            self.parts[k].put_at(state[k], index, value[k], mask)


@dataclasses.dataclass(frozen=True)
class Permuted:
    """Items at the positions that another reader gives."""

    values: Any
    indices: Any

    def tile(self, state, place):
        return self.values.at(state[0], _positions(self.indices.tile(state[1], place)), place.mask())

    def at(self, state, index, mask, inside=False):
        return self.values.at(state[0], _positions(self.indices.at(state[1], index, mask, inside)), mask)

    def put(self, state, place, value):
        self.values.put_at(state[0], _positions(self.indices.tile(state[1], place)), value, place.mask())

    def put_at(self, state, index, value, mask):
        self.values.put_at(state[0], _positions(self.indices.at(state[1], index, mask)), value, mask)


def _positions(index):
    """Integers of any dtype as positions, which other readers compute with."""
    return ct.astype(index, ct.int64 if index.dtype in (ct.uint32, ct.uint64, ct.int64) else ct.int32)


@dataclasses.dataclass(frozen=True)
class Reversed:
    """Items backwards, from the position `state[1]` on."""

    inner: Any

    def tile(self, state, place):
        return self.inner.at(state[0], state[1] - place.index(), place.mask())

    def at(self, state, index, mask, inside=False):
        return self.inner.at(state[0], state[1] - index, mask, inside)

    def put(self, state, place, value):
        self.inner.put_at(state[0], state[1] - place.index(), value, place.mask())

    def put_at(self, state, index, value, mask):
        self.inner.put_at(state[0], state[1] - index, value, mask)


@dataclasses.dataclass(frozen=True)
class Discarded:
    """Reads zeros, and what it writes vanishes."""

    dtype: DType

    def tile(self, state, place):
        return ct.zeros((place.size,), self.dtype)

    def at(self, state, index, mask, inside=False):
        return ct.zeros(index.shape, self.dtype)

    def put(self, state, place, value):
        pass

    def put_at(self, state, index, value, mask):
        pass
