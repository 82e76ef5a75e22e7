"""Sorts of numbers by their bits, digit by digit from the lowest one, stable: what radix_sort and merge_sort share.

For each digit a launch counts the keys of each tile that have each of its values. An exclusive scan of the counts, of
the first value in all tiles, then of the second one, and so on, says where these keys begin in the output. A last
launch moves each key there, behind those of its tile that have the same digit and come before it.

A lane counts its few keys one after the other, each value in four bits of one integer, and so learns how many of them
come before each. The counts of all lanes are added up in four integers, with four values in each.
"""

import dataclasses
from operator import index
from typing import Any

import cutile as ct
from cutile.compute.algorithm import is_wide, kernels_for, position
from cutile.compute.initial import Initial
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.lanes import columns, joined
from cutile.compute.operators import OpKind, operator
from cutile.compute.pairs import Bits, Items, SortOrder, bits_order, temporary
from cutile.compute.parts import parts_of
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.scan import Scan
from cutile.compute.value_types import Number

TILE = 2048  # items of a tile, less than a field can count
LANE = 8  # consecutive items of a lane, less than four bits can count
DIGIT = 4  # bits of a digit
FIELD = 16  # bits of a field


@dataclasses.dataclass(frozen=True)
class _Digits:
    """Digits of keys, of which lanes have LANE each."""

    bits: Bits

    def of(self, keys, shift, mask):
        bits = self.bits.of(keys)
        return ct.astype(bits >> ct.astype(shift, bits.dtype), ct.int32) & mask

    def counted(self, digits, there):
        """For each of the LANE digits of all lanes, how many of the lane's before are equal; and the counts of all
        digits of a lane: those of d in field d // 4 of number d % 4. `there`: which digits count, or None.
        """
        counts, ranks = ct.zeros(digits[0].shape, ct.uint64), ()
        for k in ct.static_iter(range(LANE)):
            at = ct.astype(digits[k] * 4, ct.uint64)
            ranks = ranks + (ct.astype(counts >> at, ct.int32) & 15,)
            one = ct.astype(1, ct.uint64) << at
            counts += one if there[k] is None else ct.where(there[k], one, ct.astype(0, ct.uint64))
        return ranks, tuple((counts >> ct.static_eval(4 * k)) & ct.uint64(0x000F000F000F000F)
                            for k in ct.static_iter(range(4)))


def _there(place):
    """For each of the LANE items of lanes, whether they are there; None if all are."""
    if place.whole:
        return tuple(None for _ in ct.static_iter(range(LANE)))
    last = place.n - ct.astype(place.i, place.n.dtype) * place.size
    lane = ct.arange(ct.static_eval(place.size // LANE), dtype=place.n.dtype) * LANE
    return tuple(lane + k < last for k in ct.static_iter(range(LANE)))


def _field(four, digit):
    """The field of a digit."""
    low, high = (digit & 1) != 0, (digit & 2) != 0
    number = ct.where(high, ct.where(low, four[3], four[2]), ct.where(low, four[1], four[0]))
    return ct.astype(number >> ct.astype((digit >> 2) * FIELD, ct.uint64), ct.int32) & ct.static_eval((1 << FIELD) - 1)


def _counting(source: Items, digits: _Digits, wide: bool) -> Any:
    """A kernel that counts the keys of a tile by their digit: counts[digit · tiles + tile]."""
    reader = source.keys.reader()

    @ct.kernel
    def count_digits(keys: source.keys.annotation(wide), counts: ARRAYS[wide], first: int, tiles: int,
                     n: position(wide), shift: int, mask: int, size: ct.Constant[int], whole: ct.Constant[bool]):
        place = Place(ct.bid(0) + first, size, n, whole)
        found = columns(Number(ct.int32), digits.of(reader.tile(keys, place), shift, mask), LANE)
        _, counted = digits.counted(found, _there(place))
        total = tuple(ct.sum(number) for number in ct.static_iter(counted))
        digit = ct.arange(16, dtype=ct.int32)
        ct.scatter(counts, ct.astype(digit, n.dtype) * tiles + place.i,
                   ct.astype(_field(total, digit), n.dtype))

    return count_digits


def _moving(source: Items, target: Items, digits: _Digits, wide: bool) -> Any:
    """A kernel that moves the items of a tile to where the counts before say."""
    readers, writers = tuple(p.reader() for p in source.parts), tuple(p.writer() for p in target.parts)
    types = tuple(p.value_type for p in target.parts)

    @ct.kernel
    def move_items(state: source.annotation(wide), target_state: target.annotation(wide), counts: ARRAYS[wide],
                   first: int, tiles: int, n: position(wide), shift: int, mask: int, size: ct.Constant[int],
                   whole: ct.Constant[bool]):
        place = Place(ct.bid(0) + first, size, n, whole)
        items = tuple(types[k].cast(readers[k].tile(state[k], place)) for k in ct.static_iter(range(len(types))))
        found = columns(Number(ct.int32), digits.of(items[0], shift, mask), LANE)
        ranks, counted = digits.counted(found, _there(place))
        before = tuple(ct.cumsum(number, axis=0) - number for number in ct.static_iter(counted))
        at = ()
        for k in ct.static_iter(range(LANE)):
            begin = ct.gather(counts, ct.astype(found[k], n.dtype) * tiles + place.i)
            at = at + (begin + ct.astype(_field(before, found[k]) + ranks[k], n.dtype),)
        at = joined(at)
        for k in ct.static_iter(range(len(types))):
            writers[k].put_at(target_state[k], at, items[k], place.mask())

    return move_items


def by_digits(plan: Plan, n: int, source: Items, target: Items, order: SortOrder,
              shifts: list[tuple[int, int]] | None = None, double: bool = False) -> None:
    """Put the launches of a stable sort of n items into a plan. `shifts`: those of the digits that count; by default
    all do, of which there is an even number, so that the source may be the target. `double`: the source may be
    overwritten, and has the result after an even number of digits.
    """
    bits = bits_order(source.keys.value_type, order)
    shifts = shifts_of(bits.width, None, None) if shifts is None else shifts
    wide = is_wide(n, *source.parts, *target.parts)
    tiles = -(-n // TILE) if shifts else 0
    counts = plan.values(16 * tiles, Number(ct.int64 if wide else ct.int32))
    other = source if double else temporary(plan, n if len(shifts) > 1 else 0, target)
    digits, zero = _Digits(bits), Initial(counts.value_type, (0,))
    here, parts = source, tuple(parts_of(plan, n, TILE))
    for turn, (shift, mask) in enumerate(shifts):
        there = target if (turn if double else len(shifts) - 1 - turn) % 2 == 0 else other
        count = kernels_for(("radix count", here.kind[0], bits, wide), _counting, here, digits, wide)
        move = kernels_for(("radix move", here.kind, there.kind, bits, wide), _moving, here, there, digits, wide)
        for part in parts:
            plan.launch(part.blocks, count, here.state(part.items)[0], counts.state(None), part.first, tiles, n, shift,
                        mask, TILE, part.whole)
        if tiles:
            Scan((False,)).plan(plan, counts, counts, operator(OpKind.PLUS), zero, 16 * tiles)
        for part in parts:
            plan.launch(part.blocks, move, here.state(part.items), there.state(n), counts.state(None), part.first,
                        tiles, n, shift, mask, TILE, part.whole)
        here = there


def shifts_of(width: int, begin_bit: int | None, end_bit: int | None) -> list[tuple[int, int]]:
    """For each digit, how far it is shifted, and the bits that it has. ValueError for bits that keys have not."""
    begin, end = 0 if begin_bit is None else index(begin_bit), width if end_bit is None else index(end_bit)
    if not 0 <= begin <= end <= width:
        raise ValueError(f"arguments `begin_bit` and `end_bit`: bits {begin} to {end} are no range of the {width} bits "
                         f"of a key")
    return [(at, (1 << min(DIGIT, end - at)) - 1) for at in range(begin, end, DIGIT)]
