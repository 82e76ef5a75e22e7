"""merge_sort: keys, and values with them, in the order that a comparison says; stable [MRG-*].

A first launch sorts each FEW items, in registers of a GPU. Then sorted runs are merged in pairs, from one buffer into
another, until one run is left. Each tile of output takes its items from a part of both runs of its pair: a launch
before finds the *splits*, where these parts begin and end. A tile that has whole pairs needs none. In a tile each lane
finds where its items begin, and reads where those of the next one do.

On a GPU integers of one byte, and many of two or four, are sorted by digits, as `radix_sort` does, if the operator is
OpKind.LESS or GREATER: that takes fewer launches, or goes through memory less often.

Each item is written once, whatever the comparison says. The splits of a pair grow from tile to tile; where they do not,
which only a comparison that is no strict weak ordering makes them do, its right run is put behind its left run.
"""

import dataclasses
from typing import Any

import cutile as ct
from cutile.compute.algorithm import Algorithm, is_wide, kernels_for, position
from cutile.compute.digits import by_digits
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.lanes import EACH, FEW, Keys
from cutile.compute.operators import Operator, operator
from cutile.compute.pairs import Items, SortOrder, check_pair, check_sizes, temporary
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.results import result_of
from cutile.compute.roles import COUNT, INPUT, OPERATOR, OUTPUT, optional
from cutile.compute.search import compared
from cutile.compute.value_types import Number, ValueType
from cutile.compute.well_known import OpKind

TILE = 2048  # items of a tile
HOST_TILE = 512  # in host memory
SPLITS = 128  # splits that a block finds
BY_DIGITS = {ct.int8: 0, ct.uint8: 0, ct.int16: 1 << 14, ct.uint16: 1 << 14, ct.int32: 1 << 25, ct.uint32: 1 << 25}
# from how many items on digits take less time on a GPU


def _sorting(source: Items, target: Items, keys: Keys, wide: bool) -> Any:
    """A kernel that sorts each FEW items, and notes that the splits of no pair are broken."""
    sort = source.sort(target, keys)

    @ct.kernel
    def sort_lanes(state: source.annotation(wide), target_state: target.annotation(wide), broken: ARRAYS[False],
                   n: position(wide), size: ct.Constant[int]):
        sort(state, target_state, Place(ct.bid(0), size, n, False))
        ct.store(broken, (ct.bid(0),), ct.zeros((1,), ct.int32))

    return sort_lanes


@dataclasses.dataclass(frozen=True)
class Runs:
    """Where the two runs of a pair begin and end, for each element of a tile of positions."""

    left: Any
    right: Any
    end: Any

    def bounds(self, k):
        """The least and the largest number of items of the left run among the first k."""
        return ct.maximum(k - (self.end - self.right), 0), ct.minimum(k, self.right - self.left)


def runs_at(index, width, n):
    """The pair that has the position; width is a power of two."""
    left = index & -(2 * width)
    return Runs(left, ct.minimum(left + width, n), ct.minimum(left + 2 * width, n))


def twice(tile):
    return ct.cat((tile, tile), 0)


def _splitting(source: Items, keys: Keys, wide: bool) -> Any:
    """A kernel that finds, for each tile of output, how many items come from the left run before it, and before the
    next one. `broken[t]`: the last launch in which splits were broken of the pair that begins in tile t.
    """
    @ct.kernel
    def find_splits(state: source.annotation(wide), begins: ARRAYS[False], ends: ARRAYS[False], broken: ARRAYS[False],
                    n: position(wide), width: position(wide), steps: int, turn: int, tile: ct.Constant[int],
                    size: ct.Constant[int]):
        index = ct.minimum(Place(ct.bid(0), size, n, False).index() * tile, n)
        runs = runs_at(index, width, n)
        k, k_end = index - runs.left, ct.minimum(index + tile, runs.end) - runs.left
        both = Runs(twice(runs.left), twice(runs.right), twice(runs.end))
        k_both = ct.cat((k, k_end), 0)  # so that searches wait for memory at the same time
        found = keys.crossing(state[0], both.left, both.right, k_both, *both.bounds(k_both), steps)
        begin, end = ct.extract(found, (0,), (size,)), ct.extract(found, (1,), (size,))
        ct.store(begins, (ct.bid(0),), begin)
        ct.store(ends, (ct.bid(0),), end)
        wrong = (end < begin) | (end - begin > k_end - k)
        ct.atomic_max(broken, ct.where(wrong, runs.left // tile, -1), turn, memory_order=ct.MemoryOrder.RELAXED)

    return find_splits


def _merging(source: Items, target: Items, keys: Keys, wide: bool) -> Any:
    """A kernel that merges pairs of runs. `turn`: the number of the launch that found the splits; 0 without splits."""
    put = source.put(target)

    @ct.kernel
    def merge_lanes(state: source.annotation(wide), target_state: target.annotation(wide), begins: ARRAYS[False],
                    ends: ARRAYS[False], broken: ARRAYS[False], crossings: ARRAYS[wide], n: position(wide),
                    width: position(wide), steps: int, turn: int, size: ct.Constant[int]):
        place, lanes = Place(ct.bid(0), size, n, False), ct.static_eval(size // EACH)
        start, lane = ct.astype(place.i, n.dtype) * size, ct.arange(lanes, dtype=n.dtype)
        index = ct.minimum(start + lane * EACH, n)
        runs = runs_at(index, width, n)
        k, k_end = index - runs.left, ct.minimum(index + EACH, runs.end) - runs.left
        k_begin, least, most = ct.zeros(k.shape, n.dtype), ct.zeros(k.shape, n.dtype), runs.right - runs.left
        k_last = runs.end - runs.left
        if turn > 0:  # the tile is a part of a pair
            k_begin, k_last = start - runs.left, ct.minimum(start + size - runs.left, k_last)
            begin, end = ct.gather(begins, place.i), ct.gather(ends, place.i)
            bad = ct.gather(broken, ct.astype(start & -(2 * width), n.dtype) // size) == turn
            least = ct.where(bad, ct.minimum(k_begin, most), begin)
            most = ct.where(bad, ct.minimum(k_last, most), end)
        low, high = runs.bounds(k)
        left = keys.crossing(state[0], runs.left, runs.right, k, ct.maximum(low, least), ct.minimum(high, most), steps)
        left = ct.where(k == k_begin, least, left)
        ct.store(crossings, (place.i,), left)  # so that a lane learns where the next one begins
        inner = (lane + 1 < lanes) & (k_end < k_last)
        left_end = ct.gather(crossings, ct.astype(place.i, n.dtype) * lanes + (lane + 1), mask=inner)
        left_end = ct.where(k_end == k_last, most, left_end)
        wrong = (left_end < left) | (left_end - left > k_end - k)
        if ct.max(ct.astype(wrong, ct.int32)) > 0:  # the left run first
            left = ct.minimum(least + (k - k_begin), most)
            left_end = ct.minimum(least + (k_end - k_begin), most)
        items, places = keys.merged(state[0], runs.left + left, runs.left + left_end, runs.right + (k - left),
                                    runs.right + (k_end - left_end))
        put(state, target_state, place, items, places)

    return merge_lanes


class MergeSort(Algorithm):
    takes = {"d_in_keys": INPUT, "d_in_values": optional(INPUT), "d_out_keys": OUTPUT,
             "d_out_values": optional(OUTPUT), "num_items": COUNT, "op": OPERATOR}

    def __call__(self, temp_storage: Any, d_in_keys: Any, d_in_values: Any, d_out_keys: Any, d_out_values: Any,
                 num_items: int, op: Any, stream: Any = None) -> int:
        """Sort, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        return self.run(temp_storage, stream, d_in_keys, d_in_values, d_out_keys, d_out_values, num_items, op)

    def check(self, d_in_keys: IteratorBase, d_in_values: IteratorBase | None, d_out_keys: IteratorBase,
              d_out_values: IteratorBase | None, op: Operator) -> None:
        check_pair(Items(d_in_keys, d_in_values), Items(d_out_keys, d_out_values))
        compared(op, "op", d_in_keys.value_type)

    def plan(self, plan: Plan, in_keys: IteratorBase, in_values: IteratorBase | None, out_keys: IteratorBase,
             out_values: IteratorBase | None, n: int, op: Operator) -> None:
        self.check(in_keys, in_values, out_keys, out_values, op)
        source, target = Items(in_keys, in_values), Items(out_keys, out_values)
        check_sizes(plan, n, source, target)
        order = None if plan.on_host else _order_of(op, in_keys.value_type)
        if order is not None and n >= BY_DIGITS[source.keys.value_type.dtype]:
            return by_digits(plan, n, source, target, order)
        wide = is_wide(2 * n, *source.parts, *target.parts)
        tile, widths = HOST_TILE if plan.on_host else TILE, []
        while (width := FEW << len(widths)) < n:
            widths.append(width)
        few = tile // EACH * FEW  # of a tile as many lanes as in merging
        tiles, blocks, index = -(-n // tile), -(-n // few), ct.int64 if wide else ct.int32
        splits = plan.array(tiles, index), plan.array(tiles, index), plan.array(blocks, ct.int32)
        crossings = plan.array(tiles * (tile // EACH), index)
        other = temporary(plan, n if widths else 0, target)
        ends = (target, other) if len(widths) % 2 == 0 else (other, target)

        def kernel(name: str, make: Any, *ends: Items) -> Any:
            keys = Keys(in_keys.value_type, ends[0].keys.reader(), op.function)
            key = f"merge sort {name}", in_keys.value_type, *(e.kind for e in ends), op.key, wide
            return kernels_for(key, make, *ends, keys, wide)

        plan.launch(blocks, kernel("lanes", _sorting, source, ends[0]), source.state(n), ends[0].state(n),
                    splits[2], n, few)
        for turn, width in enumerate(widths, 1):
            here, there = ends[1 - turn % 2], ends[turn % 2]
            steps, turn = width.bit_length(), turn if 2 * width > tile else 0
            if turn:
                plan.launch(-(-tiles // SPLITS), kernel("splits", _splitting, here), here.state(n), *splits, n, width,
                            steps, turn, tile, SPLITS)
                steps = min(steps, tile.bit_length())
            plan.launch(tiles, kernel("merge", _merging, here, there), here.state(n), there.state(n), *splits,
                        crossings, n, width, steps, turn, tile)


def _order_of(op: Operator, t: ValueType) -> SortOrder | None:
    """The order of their values, if `op` means that and they are integers that may be sorted by digits."""
    if isinstance(t, Number) and t.dtype in BY_DIGITS:
        meaning = result_of(op, t, t).digest()
        for kind, order in ((OpKind.LESS, SortOrder.ASCENDING), (OpKind.GREATER, SortOrder.DESCENDING)):
            if meaning == result_of(operator(kind), t, t).digest():
                return order
    return None


def make_merge_sort(d_in_keys: Any, d_in_values: Any = None, d_out_keys: Any = None, d_out_values: Any = None,
                    op: Any = None, compute_capability: Any = None) -> MergeSort:
    """An object that sorts as `merge_sort` does, for arguments of the same kinds.

    Parameters
    ----------
    d_in_keys, d_in_values, d_out_keys, d_out_values, op
        As in `merge_sort`.
    compute_capability : int, tuple, str or list, optional
        That of the GPUs that the object may run on, such as 90, (9, 0) or "9.0"; a call on another is a RuntimeError.

    Returns
    -------
    object
        Call it with `temp_storage, d_in_keys, d_in_values, d_out_keys, d_out_values, num_items, op, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `merge_sort` does; a call with another kind of argument, or another `op`, is a TypeError.

    Examples
    --------
    >>> keys = np.array([5, 1, 3])
    >>> down = lambda a, b: a > b
    >>> sort = ct.compute.make_merge_sort(keys, None, keys, None, down)
    >>> storage = np.empty(sort(None, keys, None, keys, None, 3, down), np.uint8)
    >>> nbytes = sort(storage, keys, None, keys, None, 3, down)
    >>> keys
    array([5, 3, 1])
    """
    return MergeSort((), compute_capability, d_in_keys=d_in_keys, d_in_values=d_in_values, d_out_keys=d_out_keys,
                     d_out_values=d_out_values, op=op)


def merge_sort(d_in_keys: Any, d_in_values: Any = None, d_out_keys: Any = None, d_out_values: Any = None,
               num_items: int | None = None, op: Any = None, stream: Any = None) -> None:
    """Sort keys, and values with them, so that no key comes before another that belongs before it.

    Parameters
    ----------
    d_in_keys : array or iterator
        The keys: numbers or structs.
    d_in_values : array or iterator, optional
        What moves with the keys.
    d_out_keys : array
        Takes the sorted keys; of the type of `d_in_keys`. It may be `d_in_keys`.
    d_out_values : array, optional
        Takes the values, in the order of their keys. It may be `d_in_values`.
    num_items : int
        The number of keys.
    op : function of two keys, or OpKind
        Whether the first operand belongs before the second, as a truth value: a strict weak ordering.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If an output is no array, or of another type than its input, or `op` gives no number.
    ValueError
        If values are given on one side only, or `num_items` is negative or more than an array has.

    Notes
    -----
    Stable: keys of which none belongs before the other keep their order. With an `op` that is no strict weak ordering,
    as `<` on NaN is none, each item is still there once, in some order. Clauses MRG-*.

    Examples
    --------
    >>> keys, names = np.array([3, 1, 2, 1]), np.arange(4)
    >>> ct.compute.merge_sort(keys, names, keys, names, 4, lambda a, b: a < b)
    >>> keys, names
    (array([1, 1, 2, 3]), array([1, 3, 2, 0]))
    """
    if num_items is None:
        raise TypeError("merge_sort() needs the argument `num_items`")
    MergeSort.once((), stream, d_in_keys, d_in_values, d_out_keys, d_out_values, num_items, op)
