"""radix_sort: numbers by their bits, digit by digit from the lowest one, stable [RDX-*].

`digits.py` has the launches. Keys of 64 bits are merged.
"""

import functools
from collections.abc import Iterator
from typing import Any

from cutile.compute import host_sort
from cutile.compute.arrays import array_of
from cutile.compute.delegation import NUMBERS, Delegating, chosen
from cutile.compute.digits import DIGIT, by_digits, shifts_of
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.merge import MergeSort
from cutile.compute.operators import Operator, operator
from cutile.compute.pairs import (
    DoubleBuffer,
    Items,
    SortOrder,
    bits_order,
    check_memory,
    check_pair,
    check_sizes,
    given_once,
    in_arrays,
    order_of,
)
from cutile.compute.plans import Plan
from cutile.compute.roles import COUNT, INPUT, OUTPUT, optional
from cutile.compute.value_types import ValueType

MANY = 16  # digits, those of 64 bits, which take longer than a merge sort on a GPU


class RadixSort(Delegating):
    """Options: the order; whether the input may be overwritten, as with a DoubleBuffer; and `chosen()`."""

    theirs, dtypes = "radix_sort", NUMBERS

    takes = {"d_in_keys": INPUT, "d_out_keys": OUTPUT, "d_in_values": optional(INPUT),
             "d_out_values": optional(OUTPUT), "num_items": COUNT, "begin_bit": optional(COUNT),
             "end_bit": optional(COUNT)}

    def __call__(self, temp_storage: Any, d_in_keys: Any, d_out_keys: Any, d_in_values: Any, d_out_values: Any,
                 num_items: int, begin_bit: int | None = None, end_bit: int | None = None, stream: Any = None) -> int:
        """Sort, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        if not self.options[1] and in_arrays(d_in_keys, d_in_values):
            return self.run(temp_storage, stream, d_in_keys, d_out_keys, d_in_values, d_out_values,
                            num_items, begin_bit, end_bit)
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
        check_sizes(plan, n, source, target)
        check_memory(plan, n, source, target)
        shifts = shifts_of(bits.width, begin_bit, end_bit)
        items = {"d_in_keys": (in_keys, n), "d_out_keys": (out_keys, n), "d_in_values": (in_values, n),
                 "d_out_values": (out_values, n)}
        given = {"num_items": n, "begin_bit": begin_bit or 0, "end_bit": bits.width if end_bit is None else end_bit}
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
        by_digits(plan, n, source, target, order, shifts, double)


@functools.cache
def _before(t: ValueType, order: SortOrder) -> Operator:
    """Whether a key belongs before another one: the operator of the merge sort."""
    bits = bits_order(t, order)
    if bits.descending:
        return operator(lambda a, b: bits.compared(b) < bits.compared(a))
    return operator(lambda a, b: bits.compared(a) < bits.compared(b))


def _select(buffers: tuple[DoubleBuffer, ...], keys: Any, n: int, begin_bit: int | None, end_bit: int | None) -> None:
    """Note which buffers have the sorted items."""
    if n:
        width = array_of(keys).itemsize * 8
        for buffer in buffers:
            buffer.selector ^= len(shifts_of(width, begin_bit, end_bit)) % 2


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
    return RadixSort((order_of(order), bool(buffers), chosen()), compute_capability, d_in_keys=keys, d_out_keys=out,
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
    RadixSort.once((order_of(order), bool(buffers), chosen()), stream, *args, num_items, begin_bit, end_bit)
    if buffers:
        _select(buffers, args[0], num_items, begin_bit, end_bit)
