"""top_k: the largest or smallest keys, and values with them, in their order; by radix select [TOP-*].

The bits of keys, as unsigned integers of the same order (pairs.py), are looked at from the highest digit down. For each
digit a launch counts it in the keys that begin with the digits chosen so far, and a launch of one block chooses the one
in which the last of the keys falls. So the bits of this key become known, the *threshold*. Keys above it and the first
of those equal to it are moved, in their order, and sorted.

Of many keys some tiles are counted first. If these have enough keys with a digit or a higher one, lower digits are not
counted in the others.
"""

import dataclasses
import functools
from typing import Any

import cutile as ct
from cutile.compute import host_sort
from cutile.compute.algorithm import Algorithm, is_wide, kernels_for, position, power_below
from cutile.compute.compaction import compact
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.iterators.values import INT64
from cutile.compute.merge import MergeSort
from cutile.compute.operators import Operator, operator
from cutile.compute.overlaps import check_apart
from cutile.compute.pairs import Bits, Items, SortOrder, bits_order, check_pair, temporary
from cutile.compute.places import check_items
from cutile.compute.plans import Plan
from cutile.compute.radix import RadixSort
from cutile.compute.readers import Place
from cutile.compute.roles import COUNT, INPUT, OUTPUT, optional
from cutile.compute.splits import Split
from cutile.compute.value_types import Number, ValueType

TILE = 1024  # items of a tile
HOST_TILE = 1 << 14  # in host memory
DIGIT = 8  # bits
BINS = 1 << DIGIT
COPIES = 64  # most copies of the counters of digits: more take longer to add up than updates wait
SHARED = 16  # tiles at least that count in a copy
ROWS = 16  # copies that are added up at a time, and the fewest
SAMPLED = 1 << 12  # tiles, of which some are counted before the others: so many, one in EACH, and those of 4 * k keys
SAMPLE = 64
EACH = 256
RANKED = 1 << 12  # most keys of which each is compared with all others
PUT = 32  # keys that a block compares with all
FEW = 1 << 20  # most keys that a merge sort, of fewer launches than a radix sort, puts in order


@ct.kernel
def begin_selection(counters, threshold, above, left, least, k: INT64, size: ct.Constant[int]):
    ct.store(counters, (ct.bid(0),), ct.zeros((size,), counters.dtype))
    if ct.bid(0) == 0:
        ct.store(threshold, (0,), ct.zeros((1,), ct.uint64))
        ct.store(above, (0,), ct.zeros((1,), ct.int64))
        ct.store(left, (0,), ct.full((1,), k, ct.int64))
        ct.store(least, (0,), ct.zeros((1,), ct.int64))


def _counting(keys: IteratorBase, bits: Bits, wide: bool) -> Any:
    """A kernel that counts the digit at `shift`, from `least` on, in keys that begin as the threshold does. Block i
    counts tile i * step; the highest digit of a tile, which all its keys may have, by one update.
    """
    reader = keys.reader()

    @ct.kernel
    def count_digits(source: keys.annotation(wide), counters: ARRAYS[wide], threshold, least, n: position(wide),
                     shift: int, step: int, copies: ct.Constant[int], size: ct.Constant[int],
                     whole: ct.Constant[bool]):
        i = ct.bid(0)
        place = Place(i * step, size, n, whole)
        found = bits.of(reader.tile(source, place)) >> ct.astype(shift, bits.wide)
        begins = ct.astype(ct.load(threshold, (0,), (1,)), bits.wide)
        digit = ct.astype(found & ct.static_eval(BINS - 1), ct.int32)
        counts = ((found >> DIGIT) == begins) & (digit >= ct.astype(ct.load(least, (0,), (1,)), ct.int32))
        if not whole:
            counts = counts & place.mask()
        digit = ct.where(counts, digit, -1)
        highest = ct.max(digit)
        if highest >= 0:
            first = i % copies * BINS
            ct.atomic_add(counters, first + highest, ct.sum(ct.astype(digit == highest, counters.dtype)),
                          memory_order=ct.MemoryOrder.RELAXED)
            others = ct.where(digit == highest, -1, digit)
            ct.atomic_add(counters, ct.where(others < 0, -1, first + others), 1, check_bounds=True,
                          memory_order=ct.MemoryOrder.RELAXED)

    return count_digits


@ct.kernel
def choose_digit(counters, threshold, above, left, least, copies: int, rows: ct.Constant[int],
                 sampled: ct.Constant[bool]):
    """Append a digit to the threshold: that of key number `left` from the top, among keys that begin so. Then `left`
    counts keys with that digit, and `above` those that come before all of these. The counters become zero.

    Where only some keys were counted, the digit is not above that of the key: it is the `least` that counts.
    """
    counts = ct.zeros((BINS,), ct.int64)
    for j in range(copies // rows):
        some = ct.load(counters, (j,), (ct.static_eval(rows * BINS),))
        counts += ct.sum(ct.astype(ct.reshape(some, (rows, BINS)), ct.int64), axis=0)
        ct.store(counters, (j,), ct.zeros((ct.static_eval(rows * BINS),), counters.dtype))
    wanted = ct.load(left, (0,), (1,))
    from_here = ct.cumsum(counts, axis=0, reverse=True)  # keys with this digit or a higher one
    enough = from_here >= wanted
    digit = ct.sum(ct.astype(enough, ct.int64)) - 1
    if sampled:
        ct.store(least, (0,), ct.reshape(ct.maximum(digit, 0), (1,)))
    else:
        higher = ct.max(ct.where(enough, ct.int64(0), from_here))
        ct.store(threshold, (0,), ct.load(threshold, (0,), (1,)) * BINS + ct.astype(digit, ct.uint64))
        ct.store(above, (0,), ct.load(above, (0,), (1,)) + higher)
        ct.store(left, (0,), wanted - higher)
        ct.store(least, (0,), ct.zeros((1,), ct.int64))


@dataclasses.dataclass(frozen=True)
class _Top(Split):
    """Keys above the threshold, and keys equal to it."""

    readers: tuple
    writers: tuple
    types: tuple
    bits: Bits
    counts = 2

    def flags(self, source, place):
        items = tuple(self.readers[j].tile(source[j], place) for j in ct.static_iter(range(len(self.readers))))
        found = self.bits.of(items[0])
        least = ct.astype(ct.load(source[len(items)], (0,), (1,)), self.bits.wide)
        above, equal = found > least, found == least
        if not place.whole:
            above, equal = above & place.mask(), equal & place.mask()
        return items, (above, equal)

    def put(self, source, target, place, items, flags, ranks):
        above, left = source[len(items) + 1], source[len(items) + 2]
        equal = flags[1] & (ct.astype(ranks[1], ct.int64) <= ct.load(left, (0,), (1,)))
        behind = ct.astype(ct.load(above, (0,), (1,)), ranks[1].dtype) + ranks[1]
        for j in ct.static_iter(range(len(items))):
            self.writers[j].put_at(target[j][0], ct.where(flags[0], ranks[0], behind) - 1, self.types[j].cast(items[j]),
                                    flags[0] | equal)


def _ranking(source: Items, target: Items, bits: Bits) -> Any:
    """A kernel that puts each item where its key belongs, behind all keys that come before it. Of equal keys these are
    the ones that lie before it.
    """
    readers, writers = tuple(p.reader() for p in source.parts), tuple(p.writer() for p in target.parts)
    types = tuple(p.value_type for p in target.parts)

    @ct.kernel
    def put_by_rank(state: source.annotation(False), target_state: target.annotation(False), n: int,
                    size: ct.Constant[int], others: ct.Constant[int]):
        place = Place(ct.bid(0), size, n, False)
        items = tuple(types[k].cast(readers[k].tile(state[k], place)) for k in ct.static_iter(range(len(types))))
        mine, rank = bits.of(items[0])[:, None], ct.zeros((size,), ct.int32)
        for j in range((n + others - 1) // others):
            theirs = Place(j, others, n, False)
            found = bits.of(types[0].cast(readers[0].tile(state[0], theirs)))[None, :]
            earlier = theirs.index()[None, :] < place.index()[:, None]
            before = ((found > mine) | ((found == mine) & earlier)) & theirs.mask()[None, :]
            rank += ct.sum(ct.astype(before, ct.int32), axis=1)
        for k in ct.static_iter(range(len(types))):
            writers[k].put_at(target_state[k], rank, items[k], place.mask())

    return put_by_rank


class TopK(Algorithm):
    """Options: whether the smallest keys are wanted."""

    takes = {"d_in_keys": INPUT, "d_out_keys": OUTPUT, "d_in_values": optional(INPUT),
             "d_out_values": optional(OUTPUT), "num_items": COUNT, "k": COUNT}

    def __call__(self, temp_storage: Any, d_in_keys: Any, d_out_keys: Any, d_in_values: Any, d_out_values: Any,
                 num_items: int, k: int, stream: Any = None) -> int:
        """Select and sort, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        return self.run(temp_storage, stream, d_in_keys, d_out_keys, d_in_values, d_out_values, num_items, k)

    def check(self, d_in_keys: IteratorBase, d_out_keys: IteratorBase, d_in_values: IteratorBase | None,
              d_out_values: IteratorBase | None) -> None:
        bits_order(d_in_keys.value_type, SortOrder.ASCENDING)
        check_pair(Items(d_in_keys, d_in_values), Items(d_out_keys, d_out_values))

    def plan(self, plan: Plan, in_keys: IteratorBase, out_keys: IteratorBase, in_values: IteratorBase | None,
             out_values: IteratorBase | None, n: int, k: int) -> None:
        reverse, = self.options
        self.check(in_keys, out_keys, in_values, out_values)
        source, target = Items(in_keys, in_values), Items(out_keys, out_values)
        check_items(plan, "num_items", n, **source.named("d_in"))
        check_items(plan, "k", k, **target.named("d_out"))
        if k > n:
            raise ValueError(f"argument `k` is {k}, and there are {n} items")
        check_apart(plan, target.named("d_out"), source.named("d_in"), n)
        if k == 0:
            return
        bits = bits_order(in_keys.value_type, SortOrder(reverse))
        if plan.on_host:
            return host_sort.top(plan, source, target, bits, n, k)
        kept = temporary(plan, k, target)
        _select(plan, source, kept, n, k, bits)
        if k <= RANKED and not plan.on_host:
            put = kernels_for(("top k ranks", kept.kind, target.kind, bits), _ranking, kept, target, bits)
            plan.launch(-(-k // PUT), put, kept.state(k), target.state(k), k, PUT, TILE)
        elif k <= FEW:
            before = _before(in_keys.value_type, reverse)
            MergeSort().plan(plan, kept.keys, kept.values, out_keys, out_values, k, before)
        else:
            order = SortOrder.ASCENDING if reverse else SortOrder.DESCENDING
            RadixSort((order, False, "own")).plan(plan, kept.keys, out_keys, kept.values, out_values, k, None, None)


def _select(plan: Plan, source: Items, kept: Items, n: int, k: int, bits: Bits) -> None:
    """Move the k items with the largest bits, the first ones of equal keys, but in no order."""
    wide, size = is_wide(n, *source.parts), HOST_TILE if plan.on_host else TILE
    tiles = -(-n // size)
    copies = ROWS if plan.on_host else power_below(max(ROWS, tiles // SHARED), COPIES)
    sample = max(SAMPLE, tiles // EACH, -(-4 * k // size))
    sampled = not plan.on_host and tiles >= max(SAMPLED, 8 * sample)
    counters = plan.array(copies * BINS, ct.int64 if wide else ct.int32)
    state = [plan.values(1, Number(d)) for d in (ct.uint64, ct.int64, ct.int64, ct.int64)]
    arrays = [x.state(None) for x in state]
    plan.launch(copies * BINS // TILE, begin_selection, counters, *arrays, k, TILE)
    count = kernels_for(("top k", source.keys.kind, bits, wide), _counting, source.keys, bits, wide)
    for shift in reversed(range(0, bits.width, DIGIT)):
        for blocks, step, some in ((sample, n // size // sample, True),) * sampled + ((tiles, 1, False),):
            plan.launch(blocks, count, source.keys.state(n), counters, arrays[0], arrays[3], n, shift, step, copies,
                        size, some or n % size == 0)
            plan.launch(1, choose_digit, counters, *arrays, copies, ROWS, some)
    split = _Top(tuple(part.reader() for part in source.parts), tuple(part.writer() for part in kept.parts),
                 tuple(part.value_type for part in kept.parts), bits)
    named = dict(zip(("threshold", "above", "left"), state[:3], strict=True))
    compact(plan, ("top k", bits), split, source.named("d_in") | named, kept.named("kept"),
            ("", plan.values(2, Number(ct.int64))), n)


@functools.cache
def _before(t: ValueType, reverse: bool) -> Operator:
    """Whether a key belongs before another one: the operator of the merge sort."""
    bits = bits_order(t, SortOrder(reverse))
    return operator(lambda a, b: bits.of(a) > bits.of(b))


def make_top_k(d_in_keys: Any, d_out_keys: Any, d_in_values: Any = None, d_out_values: Any = None,
               reverse: bool = False, compute_capability: Any = None) -> TopK:
    """An object that finds the largest or smallest keys as `top_k` does, for arguments of the same kinds.

    Parameters
    ----------
    d_in_keys, d_out_keys, d_in_values, d_out_values, reverse
        As in `top_k`.
    compute_capability : int, tuple, str or list, optional
        That of the GPUs that the object may run on, such as 90, (9, 0) or "9.0"; a call on another is a RuntimeError.

    Returns
    -------
    object
        Call it with `temp_storage, d_in_keys, d_out_keys, d_in_values, d_out_values, num_items, k, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `top_k` does; a call with another kind of argument is a TypeError.

    Examples
    --------
    >>> keys, out = np.array([5, 1, 3, 4]), np.zeros(2, int)
    >>> top = ct.compute.make_top_k(keys, out)
    >>> storage = np.empty(top(None, keys, out, None, None, 4, 2), np.uint8)
    >>> nbytes = top(storage, keys, out, None, None, 4, 2)
    >>> out
    array([5, 4])
    """
    return TopK((bool(reverse),), compute_capability, d_in_keys=d_in_keys, d_out_keys=d_out_keys,
                d_in_values=d_in_values, d_out_values=d_out_values)


def top_k(d_in_keys: Any, d_out_keys: Any, d_in_values: Any = None, d_out_values: Any = None,
          num_items: int | None = None, k: int | None = None, reverse: bool = False, stream: Any = None) -> None:
    """Find the k largest keys, and values with them: the first k of what `radix_sort` gives in DESCENDING order.

    Parameters
    ----------
    d_in_keys : array or iterator of numbers
        The keys, in any order.
    d_out_keys : array
        Its first k items become the largest keys, from the largest on. Keys that are equal keep their order, and where
        only some of them are among the k, these are the first ones. NaN without a sign is above all other floats, NaN
        with one below; -0 and +0 are equal.
    d_in_values : array or iterator, optional
        Values that move with the keys.
    d_out_values : array, optional
        Where they go; there if `d_in_values` is.
    num_items : int
        How many keys there are; 2^31 and more are supported.
    k : int
        How many are wanted, at most `num_items`.
    reverse : bool, default False
        The k smallest, from the smallest on, as in ASCENDING order.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If keys are no numbers of a byte or more, or an output is no array or has other types than the input.
    ValueError
        If `k` is more than `num_items`, an argument has too few items, an output shares memory with another operand, or
        there are values on one side only.

    Notes
    -----
    [TOP-1.largest] [TOP-1.smallest] [TOP-1.equal] [TOP-1.nan] [TOP-1.values] [TOP-1.many] [TOP-1.nothing]

    Examples
    --------
    >>> keys, best, where = np.array([0.5, 2.0, -1.0, 2.0]), np.zeros(3), np.zeros(3, int)
    >>> ct.compute.top_k(keys, best, np.arange(4), where, 4, 3)
    >>> best, where
    (array([2. , 2. , 0.5]), array([1, 3, 0]))
    """
    TopK.once((bool(reverse),), stream, d_in_keys, d_out_keys, d_in_values, d_out_values, num_items, k)
