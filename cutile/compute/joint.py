"""Counting many samples two at a time: one atomic update counts a pair.

Each pair of bins has a counter, whichever of both samples is in which of them: number high * (high + 1) / 2 + low, of
which two groups of bits are swapped, so that the counters of neighbouring bins are not close in memory: updates of
those wait for each other, too.
Another launch adds up the counters of each bin. A sample whose fellow falls in no bin is counted alone.

Updates of one counter wait for each other. So a first launch looks how often samples are equal. Where that is more than
the counters of pairs bear, and in tiles where many are, bins are counted: those of many samples at once, then the
others one by one.
"""

from typing import Any

import cutile as ct
from cutile.compute.algorithm import position
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.iterators.values import INT64
from cutile.compute.readers import Place

PAIRS = 1024  # of a step
EACH = 4  # steps of a block, where another kernel may count samples: blocks that do nothing take time, too
CELLS = 1 << 22  # most counters in all copies, where there are several: these stay in L2 memory
COPIES = 256  # most copies
MOST = 4096  # bins, of which the counters of all pairs nearly do
OFTEN = 16  # a bin that one in so many samples of two tiles is in is counted at once
FEW = 12  # as many bins with as many samples each: these are counted so
FEWER = 6  # where there are plenty of copies
ALIKE = 4  # tiles of which one pair in so many is of equal samples
SPREAD = 50_000  # counters, as many as those among which updates rarely meet
PLENTY = 100  # copies, in which updates of few counters rarely meet, too
FIRST, SECOND = 32, 512  # samples that are compared before, each of the ones with each of the others
SCATTER = 2654435761  # times a number, modulo 2^32: numbers without the order of samples
BY_PAIRS, ONE_BY_ONE, AT_ONCE, BY_TRIPLES = range(4)  # ways
HALF = 5  # bits of the number of a counter that the next ones are swapped with
SWAPPED, LOW = 1 << 2 * HALF, (1 << HALF) - 1
BINS = 8  # that a block adds up
OTHERS = 128  # counters of each of them that it adds up at a time


def cells_of(bins: int) -> int:
    """How many counters a copy has, whole groups of SWAPPED."""
    return -(-bins * (bins + 1) // (2 * SWAPPED)) * SWAPPED


def copies_for(bins: int) -> int:
    return min(COPIES, max(1, CELLS // cells_of(bins)))


def most_equal(bins: int) -> int:
    """How many of the compared samples are equal at most where counters of pairs are updated: if m bins have as many
    samples each, one in m is, and m * m / 2 counters have all pairs.
    """
    copies = copies_for(bins)
    return int(FIRST * SECOND * (1 / FEWER if copies >= PLENTY else min(1 / FEW, (copies / SPREAD) ** 0.5)))


def swapped(cell):
    """The number of a counter with the two groups of bits swapped."""
    return (cell & -SWAPPED) | (cell & LOW) << HALF | cell >> HALF & LOW


def _cell(high, low):
    return swapped((high * (high + 1) >> 1) + low)


def many_of(flags):
    return ct.sum(ct.astype(flags, ct.int32))


def looking(samples: IteratorBase, how: Any, many: int, bins: int, wide: bool) -> Any:
    """A kernel that says in which way samples are counted."""
    reader = samples.reader()

    @ct.kernel
    def compare_samples(source: samples.annotation(wide), way: ARRAYS[False], levels: tuple[(INT64,) * many],
                        n: position(wide), first: ct.Constant[int], second: ct.Constant[int], most: ct.Constant[int],
                        few: ct.Constant[int], triples: ct.Constant[int]):
        found = ()
        for k in ct.static_iter(range(2)):
            number = ct.arange(first if k == 0 else second, dtype=ct.uint32) + ct.static_eval(1 + k * FIRST)
            index = ct.astype(number * ct.uint32(SCATTER), ct.uint64) * ct.astype(n, ct.uint64) >> 32
            index = ct.astype(index, n.dtype)
            digit, inside = how.bin_of(reader.at(source, index, ct.full(index.shape, True, ct.bool_)), levels, bins)
            found = found + (ct.where(inside, digit, bins),)
        mine, others = found[0][:, None], found[1][None, :]
        equal = many_of((mine == others) & (mine < bins))
        found_way = ct.where(equal <= most, BY_PAIRS, ct.where(equal * few < first * second, ONE_BY_ONE, AT_ONCE))
        found_way = ct.where(equal <= triples, BY_TRIPLES, found_way)
        ct.store(way, (0,), ct.full((1,), found_way, ct.int32))

    return compare_samples


def counting(samples: IteratorBase, how: Any, many: int, bins: int, others: bool, several: bool, wide: bool) -> Any:
    """A kernel that counts the samples of whole steps of two tiles: by pairs in copies of their counters, or in copies
    of the bins. `others`: another kernel counts what is counted one by one. `several`: a block has several steps.
    """
    reader, cells = samples.reader(), cells_of(bins)

    @ct.kernel(occupancy=8 if several else None)  # with several, the loop is unrolled else, and few blocks fit
    def count_pairs(source: samples.annotation(wide), counters: ARRAYS[wide], pairs: ARRAYS[wide], way: ARRAYS[False],
                    levels: tuple[(INT64,) * many], n: position(wide), steps: int, each: ct.Constant[int],
                    copies: ct.Constant[int], pair_copies: ct.Constant[int], often: ct.Constant[int],
                    alike: ct.Constant[int], size: ct.Constant[int]):
        block, chosen = ct.bid(0), ct.load(way, (0,), (1,)).item()
        if chosen != BY_TRIPLES and (chosen != ONE_BY_ONE or not others):
            for i in range(block * each, ct.minimum((block + 1) * each, steps)):
                # Which samples of two tiles are a pair differs from step to step, so that those of periodic ones do.
                other = ct.arange(size, dtype=ct.int32) ^ (i * ct.static_eval(SCATTER % PAIRS)
                                                           & ct.static_eval(size - 1))
                index = (2 * ct.astype(i, n.dtype) + 1) * size + ct.astype(other, n.dtype)
                a, inside = how.bin_of(reader.tile(source, Place(2 * i, size, n, True)), levels, bins)
                a = ct.where(inside, a, bins)
                b, inside = how.bin_of(reader.at(source, index, ct.full((size,), True, ct.bool_)), levels, bins)
                b = ct.where(inside, b, bins)
                if chosen == BY_PAIRS and many_of((a == b) & (a < bins)) * alike <= size:
                    high, low = ct.maximum(a, b), ct.minimum(a, b)
                    cell = ct.where(high < bins, i % pair_copies * cells + _cell(high, low), -1)
                    ct.atomic_add(pairs, cell, 1, check_bounds=True, memory_order=ct.MemoryOrder.RELAXED)
                    alone = ct.where((high == bins) & (low < bins), i % copies * bins + low, -1)
                    ct.atomic_add(counters, alone, 1, check_bounds=True, memory_order=ct.MemoryOrder.RELAXED)
                else:
                    count_in_bins(counters, i % copies * bins, (a, b), bins, often, chosen != ONE_BY_ONE)

    return count_pairs


def count_in_bins(counters, first, digits, bins, often, looked):
    """Counts samples in a copy of the bins that begins at `first`: while `looked`, and while there are such bins, all
    samples of a bin that one in so many is in at once; then the others one by one.
    """
    size = digits[0].shape[0]
    while looked:
        a, b = digits[0], digits[1]
        rank = ct.where(a < bins, ct.where(a == b, size, 0) + ct.arange(size, dtype=ct.int32), -1)
        best = ct.max(rank)
        bin = ct.sum(ct.where((rank == best) & (best >= 0), a, 0))
        count = ct.int32(0)
        for k in ct.static_iter(range(len(digits))):
            count += many_of(digits[k] == bin)
        count = ct.where(best >= 0, count, 0)
        ct.atomic_add(counters, first + bin, ct.astype(count, counters.dtype), memory_order=ct.MemoryOrder.RELAXED)
        digits = tuple(ct.where((x == bin) & (count > 0), bins, x) for x in ct.static_iter(digits))
        looked = count * often >= ct.static_eval(len(digits) * size)
    for k in ct.static_iter(range(len(digits))):
        ct.atomic_add(counters, ct.where(digits[k] < bins, first + digits[k], -1), 1, check_bounds=True,
                      memory_order=ct.MemoryOrder.RELAXED)


def adding(bins: int, wide: bool) -> Any:
    """A kernel that adds to copies of the bins what a copy of the counters of pairs says of BINS bins."""
    cells, groups = cells_of(bins), -(-bins // BINS)

    @ct.kernel
    def add_pairs(counters: ARRAYS[wide], pairs: ARRAYS[wide], way: ARRAYS[False], copies: ct.Constant[int],
                  many: ct.Constant[int], others: ct.Constant[int]):
        if ct.load(way, (0,), (1,)).item() != BY_PAIRS:
            return
        copy = ct.bid(0) // groups
        mine = ct.bid(0) % groups * many + ct.arange(many, dtype=ct.int32)
        inside, first = mine < bins, copy * cells
        counts = ct.gather(pairs, first + _cell(mine, mine), mask=inside, padding_value=0)  # both samples are there
        for j in range(ct.static_eval(-(-bins // others))):
            other = (j * others + ct.arange(others, dtype=ct.int32))[:, None]
            cell = _cell(ct.maximum(mine[None, :], other), ct.minimum(mine[None, :], other))
            counts += ct.sum(ct.gather(pairs, first + cell, mask=inside[None, :] & (other < bins), padding_value=0),
                             axis=0)
        ct.atomic_add(counters, ct.where(inside, copy % copies * bins + mine, -1), counts, check_bounds=True,
                      memory_order=ct.MemoryOrder.RELAXED)

    return add_pairs
