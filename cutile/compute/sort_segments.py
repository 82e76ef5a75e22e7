"""segmented_sort: numbers of each segment by their value, stable [SGS-*].

Lanes (lanes.py) merge runs of their segments, one launch for each width of runs, until each segment is one run. A first
launch counts the lanes of each segment, and a scan of the counts says which lanes are of which segment. Each segment
goes from the output into another buffer and back, as often as it needs; launches that it does not need pass it by.
"""

import dataclasses
from typing import Any

import cutile as ct
from cutile.compute import host_sort
from cutile.compute.algorithm import is_wide, kernels_for, position
from cutile.compute.delegation import INTEGERS, Delegating, chosen
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.lanes import EACH, FEW, Keys, joined
from cutile.compute.operators import OpKind, operator
from cutile.compute.pairs import (
    Items,
    SortOrder,
    bits_order,
    check_memory,
    check_pair,
    check_sizes,
    given_once,
    in_arrays,
    order_of,
    temporary,
)
from cutile.compute.places import check_items
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.roles import COUNT, INPUT, OUTPUT, optional
from cutile.compute.scan import Scan
from cutile.compute.value_types import Number
from cutile.dtypes import info

LANES = 128  # of a tile
HOST_LANES = 32  # in host memory


@dataclasses.dataclass(frozen=True)
class _ByBits(Keys):
    """Numbers; `before` is the order of their bits."""

    def first(self, x, y, mask):
        return mask & (self.before.of(x) < self.before.of(y))


def _counting(starts: IteratorBase, ends: IteratorBase, wide: bool) -> Any:
    """A kernel that counts the lanes of each segment. Segments end where the items do."""
    start_reader, end_reader = starts.reader(), ends.reader()

    @ct.kernel
    def count_lanes(start: starts.annotation(wide), end: ends.annotation(wide), counts: ARRAYS[wide], n: position(wide),
                    segments: position(wide), size: ct.Constant[int]):
        place = Place(ct.bid(0), size, segments, False)
        begin, stop = _segment(start_reader.tile(start, place), end_reader.tile(end, place), n)
        ct.store(counts, (place.i,), (stop - begin + (EACH - 1)) // EACH)

    return count_lanes


def _segment(start, end, n):
    """Begin and end of segments, inside of the items."""
    begin = ct.minimum(ct.maximum(ct.astype(start, n.dtype), 0), n)
    return begin, ct.maximum(ct.minimum(ct.astype(end, n.dtype), n), begin)


def _placing(starts: IteratorBase, ends: IteratorBase, wide: bool) -> Any:
    """A kernel that finds for each lane where its segment begins and ends, and where in it the lane begins. `lasts`:
    how many lanes the segments up to each one have.
    """
    start_reader, end_reader = starts.reader(), ends.reader()

    @ct.kernel
    def place_lanes(start: starts.annotation(wide), end: ends.annotation(wide), lasts: ARRAYS[wide],
                    begins: ARRAYS[wide], stops: ARRAYS[wide], offsets: ARRAYS[wide], n: position(wide),
                    segments: position(wide), lanes: position(wide), steps: int, size: ct.Constant[int]):
        lane = Place(ct.bid(0), size, lanes, False).index()
        low, high = ct.zeros((size,), n.dtype), ct.full((size,), segments, n.dtype)
        for _ in range(steps):
            middle, unknown = (low + high) >> 1, low < high
            before = unknown & (ct.gather(lasts, middle, mask=unknown) <= lane)
            low, high = ct.where(before, middle + 1, low), ct.where(unknown & ~before, middle, high)
        there = (low < segments) & (lane < lanes)
        begin, stop = _segment(start_reader.at(start, low, there), end_reader.at(end, low, there), n)
        first = ct.gather(lasts, low - 1, mask=there & (low > 0))
        ct.store(begins, (ct.bid(0),), ct.where(there, begin, 0))
        ct.store(stops, (ct.bid(0),), ct.where(there, stop, 0))
        ct.store(offsets, (ct.bid(0),), ct.where(there, (lane - first) * EACH, 0))

    return place_lanes


def _sorting(source: Items, target: Items, keys: Keys, wide: bool) -> Any:
    """A kernel that sorts each FEW items of each segment."""
    sort = source.sort_at(target, keys)

    @ct.kernel
    def sort_segments(state: source.annotation(wide), target_state: target.annotation(wide), begins: ARRAYS[wide],
                      stops: ARRAYS[wide], offsets: ARRAYS[wide], lanes: position(wide), size: ct.Constant[int]):
        some = Place(ct.bid(0), size, lanes, False).index()
        lane = some // (EACH // FEW)
        there = lane < lanes
        begin, stop = ct.gather(begins, lane, mask=there), ct.gather(stops, lane, mask=there)
        sort(state, target_state, begin + ct.gather(offsets, lane, mask=there) + some % (EACH // FEW) * FEW, stop)

    return sort_segments


def _merging(source: Items, target: Items, keys: Keys, wide: bool) -> Any:
    """A kernel that merges pairs of runs of `width` items in segments of more than `least` items."""
    readers, writers = tuple(p.reader() for p in source.parts), tuple(p.writer() for p in target.parts)
    types = tuple(p.value_type for p in target.parts)

    @ct.kernel
    def merge_segments(state: source.annotation(wide), target_state: target.annotation(wide), begins: ARRAYS[wide],
                       stops: ARRAYS[wide], offsets: ARRAYS[wide], width: position(wide), least: position(wide),
                       steps: int, size: ct.Constant[int]):
        begin = ct.load(begins, (ct.bid(0),), (size,), padding_mode=ct.PaddingMode.ZERO)
        stop = ct.load(stops, (ct.bid(0),), (size,), padding_mode=ct.PaddingMode.ZERO)
        offset = ct.load(offsets, (ct.bid(0),), (size,), padding_mode=ct.PaddingMode.ZERO)
        stop = ct.where(stop - begin > least, stop, ct.minimum(begin + offset, stop))
        if ct.max(ct.astype(begin + offset < stop, ct.int32)) > 0:
            left = begin + (offset & -(2 * width))
            right, end = ct.minimum(left + width, stop), ct.minimum(left + 2 * width, stop)
            k = ct.minimum(begin + offset, end) - left
            k_end = ct.minimum(k + EACH, end - left)
            low, high = ct.maximum(k - (end - right), 0), ct.minimum(k, right - left)
            low_end, high_end = ct.maximum(k_end - (end - right), 0), ct.minimum(k_end, right - left)
            i = keys.crossing(state[0], left, right, k, low, high, steps)
            i_end = keys.crossing(state[0], left, right, k_end, low_end, high_end, steps)
            items, places = keys.merged(state[0], left + i, left + i_end, right + (k - i), right + (k_end - i_end))
            index = joined(tuple(left + k + m for m in ct.static_iter(range(EACH))))
            there = joined(tuple(k + m < k_end for m in ct.static_iter(range(EACH))))
            if len(types) > 1:
                values = types[1].cast(readers[1].at(state[1], places, there))
                writers[1].put_at(target_state[1], index, values, there)
            writers[0].put_at(target_state[0], index, items, there)

    return merge_segments


class SegmentedSort(Delegating):
    """Options: the order; whether the input may be overwritten, as with a DoubleBuffer; and `chosen()`."""

    theirs, dtypes = "segmented_sort", INTEGERS

    takes = {"d_in_keys": INPUT, "d_out_keys": OUTPUT, "d_in_values": optional(INPUT),
             "d_out_values": optional(OUTPUT), "num_items": COUNT, "num_segments": COUNT, "start_offsets_in": INPUT,
             "end_offsets_in": INPUT}

    def __call__(self, temp_storage: Any, d_in_keys: Any, d_out_keys: Any, d_in_values: Any, d_out_values: Any,
                 num_items: int, num_segments: int, start_offsets_in: Any, end_offsets_in: Any, stream: Any = None
                 ) -> int:
        """Sort, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        if not self.options[1] and in_arrays(d_in_keys, d_in_values):
            return self.run(temp_storage, stream, d_in_keys, d_out_keys, d_in_values, d_out_values,
                            num_items, num_segments, start_offsets_in, end_offsets_in)
        args, buffers = given_once(d_in_keys, d_out_keys, d_in_values, d_out_values)
        if bool(buffers) != self.options[1]:
            made = "a DoubleBuffer" if self.options[1] else "an array"
            raise TypeError(f"argument `d_in_keys`: this object was made for {made}")
        nbytes = self.run(temp_storage, stream, *args, num_items, num_segments, start_offsets_in, end_offsets_in)
        for buffer in buffers if temp_storage is not None and num_items and num_segments else ():
            buffer.selector ^= 1
        return nbytes

    def check(self, d_in_keys: IteratorBase, d_out_keys: IteratorBase, d_in_values: IteratorBase | None,
              d_out_values: IteratorBase | None, start_offsets_in: IteratorBase, end_offsets_in: IteratorBase) -> None:
        bits_order(d_in_keys.value_type, self.options[0])
        check_pair(Items(d_in_keys, d_in_values), Items(d_out_keys, d_out_values))
        for name, it in (("start_offsets_in", start_offsets_in), ("end_offsets_in", end_offsets_in)):
            if not isinstance(it.value_type, Number) or not info(it.value_type.dtype).integral:
                raise TypeError(f"argument `{name}`: offsets must be integers, not {it.value_type}")

    def plan(self, plan: Plan, in_keys: IteratorBase, out_keys: IteratorBase, in_values: IteratorBase | None,
             out_values: IteratorBase | None, n: int, segments: int, starts: IteratorBase, ends: IteratorBase) -> None:
        order, double, backend = self.options
        self.check(in_keys, out_keys, in_values, out_values, starts, ends)
        source, target = Items(in_keys, in_values), Items(out_keys, out_values)
        check_sizes(plan, n, source, target)
        check_memory(plan, n, source, target)
        check_items(plan, "num_segments", segments, start_offsets_in=starts, end_offsets_in=ends)
        if not n or not segments:
            return
        items = {"d_in_keys": (in_keys, n), "d_out_keys": (out_keys, n), "d_in_values": (None, n),
                 "d_out_values": (None, n)}
        offsets = {"start_offsets_in": (starts, segments), "end_offsets_in": (ends, segments)}
        given = {"num_items": n, "num_segments": segments}
        there = backend == "cccl" and not double and in_values is None
        if there and self.delegated(plan, items, offsets, given):
            return
        bits = bits_order(in_keys.value_type, order)
        if plan.on_host and host_sort.in_arrays(target):
            return host_sort.sort_segments(plan, source, target, bits, n, segments, starts, ends)
        wide = is_wide(max(2 * n, segments), *source.parts, *target.parts, starts, ends)
        size, lanes = HOST_LANES if plan.on_host else LANES, n // EACH + segments
        index = Number(ct.int64 if wide else ct.int32)
        lasts, map_of = plan.values(segments, index), tuple(plan.array(lanes, index.dtype) for _ in range(3))
        other = source if double else temporary(plan, n if n > FEW else 0, target)

        def kernel(name: str, make: Any, *operands: Any) -> Any:
            parts = [o.kind for o in operands if isinstance(o, Items | IteratorBase)]
            return kernels_for((f"segmented sort {name}", *parts, bits, wide), make, *operands, wide)

        def by_bits(items: Items) -> Keys:
            return _ByBits(in_keys.value_type, items.keys.reader(), bits)

        offsets = starts.state(segments), ends.state(segments)
        plan.launch(-(-segments // size), kernel("count", _counting, starts, ends), *offsets, lasts.state(None), n,
                    segments, size)
        Scan((True,)).plan(plan, lasts, lasts, operator(OpKind.PLUS), None, segments)
        blocks = -(-lanes // size)
        plan.launch(blocks, kernel("place", _placing, starts, ends), *offsets, lasts.state(None), *map_of, n, segments,
                    lanes, segments.bit_length(), size)
        plan.launch(blocks * (EACH // FEW), kernel("few", _sorting, source, target, by_bits(source)), source.state(n),
                    target.state(n), *map_of, lanes, size)
        width, here, there = FEW, target, other
        while width < n or here is not target:
            least = width if here is target else width // 2
            plan.launch(blocks, kernel("merge", _merging, here, there, by_bits(here)), here.state(n), there.state(n),
                        *map_of, width, least, width.bit_length(), size)
            width, here, there = 2 * width, there, here


def make_segmented_sort(d_in_keys: Any, d_out_keys: Any = None, d_in_values: Any = None, d_out_values: Any = None,
                        start_offsets_in: Any = None, end_offsets_in: Any = None, order: SortOrder | None = None,
                        compute_capability: Any = None) -> SegmentedSort:
    """An object that sorts as `segmented_sort` does, for arguments of the same kinds.

    Parameters
    ----------
    d_in_keys, d_out_keys, d_in_values, d_out_values, start_offsets_in, end_offsets_in, order
        As in `segmented_sort`.
    compute_capability : int, tuple, str or list, optional
        That of the GPUs that the object may run on, such as 90, (9, 0) or "9.0"; a call on another is a RuntimeError.

    Returns
    -------
    object
        Call it with `temp_storage, d_in_keys, d_out_keys, d_in_values, d_out_values, num_items, num_segments,
        start_offsets_in, end_offsets_in, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `segmented_sort` does; a call with another kind of argument is a TypeError.

    Examples
    --------
    >>> keys, out, starts, ends = np.array([3, 1, 9, 5, 7]), np.zeros(5, int), np.array([0, 2]), np.array([2, 5])
    >>> sort = ct.compute.make_segmented_sort(keys, out, None, None, starts, ends, ct.compute.SortOrder.ASCENDING)
    >>> storage = np.empty(sort(None, keys, out, None, None, 5, 2, starts, ends), np.uint8)
    >>> nbytes = sort(storage, keys, out, None, None, 5, 2, starts, ends)
    >>> out
    array([1, 3, 5, 7, 9])
    """
    if order is None:
        raise TypeError("make_segmented_sort() needs the argument `order`")
    (keys, out, values, out_values), buffers = given_once(d_in_keys, d_out_keys, d_in_values, d_out_values)
    options = order_of(order), bool(buffers), chosen()
    return SegmentedSort(options, compute_capability, d_in_keys=keys, d_out_keys=out,
                         d_in_values=values, d_out_values=out_values, start_offsets_in=start_offsets_in,
                         end_offsets_in=end_offsets_in)


def segmented_sort(d_in_keys: Any, d_out_keys: Any = None, d_in_values: Any = None, d_out_values: Any = None,
                   num_items: int | None = None, num_segments: int | None = None, start_offsets_in: Any = None,
                   end_offsets_in: Any = None, order: SortOrder | None = None, stream: Any = None) -> None:
    """Sort the numbers of each segment by their value, and values with them; stable.

    Parameters
    ----------
    d_in_keys : array, iterator or DoubleBuffer
        The keys, as in `radix_sort`.
    d_out_keys : array or None
        Takes the sorted keys, at the positions of their segments; None with a DoubleBuffer. It may not share memory
        with an input.
    d_in_values : array, iterator or DoubleBuffer, optional
        What moves with the keys. A DoubleBuffer if the keys are in one.
    d_out_values : array, optional
        Takes the values, in the order of their keys.
    num_items : int
        The number of keys in all.
    num_segments : int
        The number of segments.
    start_offsets_in, end_offsets_in : array or iterator of integers
        Where each segment begins and ends: its items are those from start to end, exclusive.
    order : SortOrder
        ASCENDING, or DESCENDING, its inverse.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If keys are structs, offsets no integers, an output no array, or of another type than its input.
    ValueError
        If values are given on one side only, a number is negative or more than an array has, or an output shares memory
        with an input.

    Notes
    -----
    The order is that of `radix_sort`. A segment that ends where it begins, or before, is empty. What is outside of all
    segments is neither read nor written. Segments may not overlap. Clauses SGS-*.

    Examples
    --------
    >>> keys, out, at = np.array([3, 1, 9, 5, 7]), np.zeros(5, int), np.array([0, 2, 5])
    >>> ct.compute.segmented_sort(keys, out, None, None, 5, 2, at[:2], at[1:], ct.compute.SortOrder.DESCENDING)
    >>> out
    array([3, 1, 9, 7, 5])
    """
    for name, value in (("num_items", num_items), ("num_segments", num_segments), ("order", order)):
        if value is None:
            raise TypeError(f"segmented_sort() needs the argument `{name}`")
    args, buffers = given_once(d_in_keys, d_out_keys, d_in_values, d_out_values)
    SegmentedSort.once((order_of(order), bool(buffers), chosen()), stream, *args, num_items, num_segments,
                       start_offsets_in, end_offsets_in)
    for buffer in buffers if num_items and num_segments else ():
        buffer.selector ^= 1
