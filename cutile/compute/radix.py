"""radix_sort: numbers by their bits, digit by digit from the lowest one, stable [RDX-*].

For each digit a launch counts the keys of each tile that have each of its values. An exclusive scan of the counts, of
the first value in all tiles, then of the second one, and so on, says where these keys begin in the output. A last
launch moves each key there, behind those of its tile that have the same digit and come before it.

A lane counts its few keys one after the other, each value in four bits of one integer, and so learns how many of them
come before each. The counts of all lanes are added up in four integers, with four values in each.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import cutile as ct
from cutile.compute import host_sort
from cutile.compute.algorithm import is_wide, kernels_for, position
from cutile.compute.delegation import NUMBERS, Delegating, chosen
from cutile.compute.initial import Initial
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS, ArrayIterator
from cutile.compute.lanes import columns, joined
from cutile.compute.merge import MergeSort
from cutile.compute.operators import Operator, OpKind, operator
from cutile.compute.pairs import (
    Bits,
    DoubleBuffer,
    Items,
    SortOrder,
    bits_order,
    check_memory,
    check_pair,
    check_sizes,
    given_once,
    temporary,
)
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.roles import COUNT, INPUT, OUTPUT, VALUE, optional
from cutile.compute.scan import Scan
from cutile.compute.value_types import Number, ValueType

TILE = 2048  # items of a tile, less than a field can count
LANE = 8  # consecutive items of a lane, less than four bits can count
DIGIT = 4  # bits of a digit
FIELD = 16  # bits of a field
MANY = 16  # digits, those of 64 bits, which take longer than a merge sort on a GPU


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
    def count_digits(keys: source.keys.annotation(wide), counts: ARRAYS[wide], n: position(wide), shift: int, mask: int,
                     size: ct.Constant[int], whole: ct.Constant[bool]):
        place = Place(ct.bid(0), size, n, whole)
        found = columns(Number(ct.int32), digits.of(reader.tile(keys, place), shift, mask), LANE)
        _, counted = digits.counted(found, _there(place))
        total = tuple(ct.sum(number) for number in ct.static_iter(counted))
        digit = ct.arange(16, dtype=ct.int32)
        ct.scatter(counts, ct.astype(digit, n.dtype) * ct.num_blocks(0) + place.i,
                   ct.astype(_field(total, digit), n.dtype))

    return count_digits


def _moving(source: Items, target: Items, digits: _Digits, wide: bool) -> Any:
    """A kernel that moves the items of a tile to where the counts before say."""
    readers, writers = tuple(p.reader() for p in source.parts), tuple(p.writer() for p in target.parts)
    types = tuple(p.value_type for p in target.parts)

    @ct.kernel
    def move_items(state: source.annotation(wide), target_state: target.annotation(wide), counts: ARRAYS[wide],
                   n: position(wide), shift: int, mask: int, size: ct.Constant[int], whole: ct.Constant[bool]):
        place = Place(ct.bid(0), size, n, whole)
        items = tuple(types[k].cast(readers[k].tile(state[k], place)) for k in ct.static_iter(range(len(types))))
        found = columns(Number(ct.int32), digits.of(items[0], shift, mask), LANE)
        ranks, counted = digits.counted(found, _there(place))
        before = tuple(ct.cumsum(number, axis=0) - number for number in ct.static_iter(counted))
        at = ()
        for k in ct.static_iter(range(LANE)):
            begin = ct.gather(counts, ct.astype(found[k], n.dtype) * ct.num_blocks(0) + place.i)
            at = at + (begin + ct.astype(_field(before, found[k]) + ranks[k], n.dtype),)
        at = joined(at)
        for k in ct.static_iter(range(len(types))):
            writers[k].put_at(target_state[k], at, items[k], place.mask())

    return move_items


class RadixSort(Delegating):
    """Options: the order; whether the input may be overwritten, as with a DoubleBuffer; and `chosen()`."""

    theirs, dtypes = "radix_sort", NUMBERS

    takes = {"d_in_keys": INPUT, "d_out_keys": OUTPUT, "d_in_values": optional(INPUT),
             "d_out_values": optional(OUTPUT), "num_items": COUNT, "begin_bit": VALUE, "end_bit": VALUE}

    def __call__(self, temp_storage: Any, d_in_keys: Any, d_out_keys: Any, d_in_values: Any, d_out_values: Any,
                 num_items: int, begin_bit: int | None = None, end_bit: int | None = None, stream: Any = None) -> int:
        """Sort, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        args, buffers = given_once(d_in_keys, d_out_keys, d_in_values, d_out_values)
        if bool(buffers) != self.options[1]:
            made = "a DoubleBuffer" if self.options[1] else "an array"
            raise TypeError(f"argument `d_in_keys`: this object was made for {made}")
        nbytes = self.run(temp_storage, stream, *args, num_items, begin_bit, end_bit)
        if buffers and temp_storage is not None:
            _select(buffers, args[0], num_items, begin_bit, end_bit)
        return nbytes

    def check(self, d_in_keys: IteratorBase, d_out_keys: IteratorBase, d_in_values: IteratorBase | None,
              d_out_values: IteratorBase | None) -> None:
        bits_order(d_in_keys.value_type, self.options[0])
        check_pair(Items(d_in_keys, d_in_values), Items(d_out_keys, d_out_values))

    def samples(self) -> Iterator[list]:
        """With one digit, two and all: items move between other memory."""
        return ([*operands[:-1], end] for operands in super().samples() for end in (None, DIGIT, 2 * DIGIT)
                if end is None or end <= bits_order(operands[0].value_type, self.options[0]).width)

    def plan(self, plan: Plan, in_keys: IteratorBase, out_keys: IteratorBase, in_values: IteratorBase | None,
             out_values: IteratorBase | None, n: int, begin_bit: int | None, end_bit: int | None) -> None:
        order, double, backend = self.options
        self.check(in_keys, out_keys, in_values, out_values)
        source, target = Items(in_keys, in_values), Items(out_keys, out_values)
        bits = bits_order(in_keys.value_type, order)
        check_sizes(n, source, target)
        check_memory(plan, n, source, target)
        shifts = _shifts(bits.width, begin_bit, end_bit)
        items = {"d_in_keys": (in_keys, n), "d_out_keys": (out_keys, n), "d_in_values": (in_values, n),
                 "d_out_values": (out_values, n)}
        given = {"num_items": n, "begin_bit": begin_bit, "end_bit": end_bit}
        there = backend == "cccl" and n and shifts and not double
        if there and self.delegated(plan, items, {}, given):
            return
        if plan.on_host:
            begin = begin_bit or 0
            if shifts or not double:
                last = source if double and len(shifts) % 2 == 0 else target
                host_sort.sort(plan, source, last, bits, n, begin, bits.width if end_bit is None else end_bit)
            return
        if not shifts and not double:
            shifts = [(0, 0)]  # which moves each item to where it is
        if len(shifts) == MANY and not (double or plan.on_host):
            MergeSort().plan(plan, in_keys, in_values, out_keys, out_values, n, _before(in_keys.value_type, order))
            return
        wide = is_wide(n, *source.parts, *target.parts)
        tiles = -(-n // TILE) if shifts else 0
        counts = plan.values(16 * tiles, Number(ct.int64 if wide else ct.int32))
        other = source if double else temporary(plan, n if len(shifts) > 1 else 0, target)
        digits, zero = _Digits(bits), Initial(counts.value_type, (0,))
        here = source
        for turn, (shift, mask) in enumerate(shifts):
            there = target if (turn if double else len(shifts) - 1 - turn) % 2 == 0 else other
            count = kernels_for(("radix count", here.kind[0], bits, wide), _counting, here, digits, wide)
            move = kernels_for(("radix move", here.kind, there.kind, bits, wide), _moving, here, there, digits, wide)
            plan.launch(tiles, count, here.state(n)[0], counts.state(None), n, shift, mask, TILE,
                        n % TILE == 0)
            if tiles:
                Scan((False,)).plan(plan, counts, counts, operator(OpKind.PLUS), zero, 16 * tiles)
            plan.launch(tiles, move, here.state(n), there.state(n), counts.state(None), n, shift, mask, TILE,
                        n % TILE == 0)
            here = there


@functools.cache
def _before(t: ValueType, order: SortOrder) -> Operator:
    """Whether a key belongs before another one: the operator of the merge sort."""
    bits = bits_order(t, order)
    return operator(lambda a, b: bits.of(a) < bits.of(b))


def _shifts(width: int, begin_bit: int | None, end_bit: int | None) -> list[tuple[int, int]]:
    """For each digit, how far it is shifted, and the bits that it has. ValueError for bits that keys have not."""
    begin, end = 0 if begin_bit is None else int(begin_bit), width if end_bit is None else int(end_bit)
    if not 0 <= begin <= end <= width:
        raise ValueError(f"arguments `begin_bit` and `end_bit`: bits {begin} to {end} are no range of the {width} bits "
                         f"of a key")
    return [(at, (1 << min(DIGIT, end - at)) - 1) for at in range(begin, end, DIGIT)]


def _select(buffers: tuple[DoubleBuffer, ...], keys: Any, n: int, begin_bit: int | None, end_bit: int | None) -> None:
    """Note which buffers have the sorted items."""
    if n:
        width = ArrayIterator(keys).array.itemsize * 8
        for buffer in buffers:
            buffer.selector ^= len(_shifts(width, begin_bit, end_bit)) % 2


def make_radix_sort(d_in_keys: Any, d_out_keys: Any, d_in_values: Any, d_out_values: Any, order: SortOrder,
                    compute_capability: Any = None) -> RadixSort:
    """An object that sorts as `radix_sort` does, for arguments of the same kinds.

    Parameters
    ----------
    d_in_keys, d_out_keys, d_in_values, d_out_values, order
        As in `radix_sort`.
    compute_capability : int, tuple, str or list, optional
        That of the GPUs that the object may run on, such as 90, (9, 0) or "9.0"; a call on another is a RuntimeError.

    Returns
    -------
    object
        Call it with `temp_storage, d_in_keys, d_out_keys, d_in_values, d_out_values, num_items, begin_bit=None,
        end_bit=None, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `radix_sort` does; a call with another kind of argument is a TypeError.

    Examples
    --------
    >>> keys, out = np.array([5, 1, 3]), np.zeros(3, int)
    >>> sort = ct.compute.make_radix_sort(keys, out, None, None, ct.compute.SortOrder.DESCENDING)
    >>> storage = np.empty(sort(None, keys, out, None, None, 3), np.uint8)
    >>> nbytes = sort(storage, keys, out, None, None, 3)
    >>> out
    array([5, 3, 1])
    """
    (keys, out, values, out_values), buffers = given_once(d_in_keys, d_out_keys, d_in_values, d_out_values)
    return RadixSort((SortOrder(order), bool(buffers), chosen()), compute_capability, d_in_keys=keys, d_out_keys=out,
                     d_in_values=values, d_out_values=out_values)


def radix_sort(d_in_keys: Any, d_out_keys: Any, d_in_values: Any = None, d_out_values: Any = None,
               num_items: int | None = None, order: SortOrder | None = None, begin_bit: int | None = None,
               end_bit: int | None = None, stream: Any = None) -> None:
    """Sort numbers by their value, and values with them; stable.

    Parameters
    ----------
    d_in_keys : array, iterator or DoubleBuffer
        The keys: numbers of one byte or more. With a DoubleBuffer both buffers may be overwritten, and its `current()`
        is the sorted one afterwards; otherwise the input is preserved.
    d_out_keys : array or None
        Takes the sorted keys; None with a DoubleBuffer. It may not share memory with an input.
    d_in_values : array, iterator or DoubleBuffer, optional
        What moves with the keys. A DoubleBuffer if the keys are in one.
    d_out_values : array, optional
        Takes the values, in the order of their keys.
    num_items : int
        The number of keys.
    order : SortOrder
        ASCENDING, or DESCENDING, its inverse.
    begin_bit, end_bit : int, optional
        Only the bits from `begin_bit` to `end_bit`, exclusive, count. Bit 0 is the lowest one, of a key as an unsigned
        integer of the same order. By default all count.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If keys are structs, an output is no array, or of another type than its input.
    ValueError
        If values are given on one side only, `num_items` is negative or more than an array has, the bits are no range
        of a key's bits, or an output shares memory with an input.

    Notes
    -----
    -0 and +0 are equal, and keep their order. NaN without a sign come after all others, those with one before; among
    each other they are ordered by their bits. Clauses RDX-*.

    Examples
    --------
    >>> keys, names, out, out_names = np.array([3, -1, 2, -1]), np.arange(4), np.zeros(4, int), np.zeros(4, int)
    >>> ct.compute.radix_sort(keys, out, names, out_names, 4, ct.compute.SortOrder.ASCENDING)
    >>> out, out_names
    (array([-1, -1,  2,  3]), array([1, 3, 2, 0]))
    """
    if num_items is None or order is None:
        raise TypeError(f"radix_sort() needs the argument `{'num_items' if num_items is None else 'order'}`")
    args, buffers = given_once(d_in_keys, d_out_keys, d_in_values, d_out_values)
    RadixSort.once((SortOrder(order), bool(buffers), chosen()), stream, *args, num_items, begin_bit, end_bit)
    if buffers:
        _select(buffers, args[0], num_items, begin_bit, end_bit)
