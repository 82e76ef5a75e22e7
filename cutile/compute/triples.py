"""Counting many samples three at a time, where there are few bins: one atomic update counts a triple.

Each triple of bins has a counter, whichever sample is in which of them; a sample that falls in no bin counts as one in
a bin behind the last. As with pairs (joint.py), groups of bits of a counter's number are swapped, another launch adds
up the counters of each bin, and in tiles where many samples are equal bins are counted.
"""

from typing import Any

import cutile as ct
from cutile.compute import joint
from cutile.compute.algorithm import position
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.iterators.values import INT64
from cutile.compute.joint import BY_TRIPLES, FIRST, SCATTER, SECOND, SPREAD, SWAPPED, count_in_bins, many_of, swapped
from cutile.compute.readers import Place

MANY = 1 << 26  # samples, from which on counters of triples are worth the time that it takes to add them up
SIZE = 1024  # triples of a step
EACH = 4  # steps of a block
COPIES = 256  # most copies of the counters
ROWS = 16  # bins in the middle of a triple that a block adds up at a time
STRETCH = 64  # that it adds up in all


def cells_of(bins: int) -> int:
    """How many counters a copy has, whole groups of SWAPPED."""
    return -(-(bins + 1) * (bins + 2) * (bins + 3) // (6 * SWAPPED)) * SWAPPED


def copies_for(bins: int) -> int:
    """0 where there are too many triples for L2 memory."""
    return min(COPIES, joint.CELLS // cells_of(bins))


def most_equal(bins: int) -> int:
    """How many of the compared samples are equal at most where counters of triples are updated: if m bins have as many
    samples each, one in m is, and m * m * m / 6 counters have all triples. -1 where there are no such counters.
    """
    copies = copies_for(bins)
    return int(FIRST * SECOND * (copies / (3 * SPREAD)) ** (1 / 3)) if copies else -1


def _cell(high, mid, low):
    return swapped(high * (high + 1) * (high + 2) // 6 + (mid * (mid + 1) >> 1) + low)


def counting(samples: IteratorBase, how: Any, many: int, bins: int, wide: bool) -> Any:
    """A kernel that counts the samples of whole steps, in copies of the counters of triples or in copies of the bins.
    """
    reader, cells = samples.reader(), cells_of(bins)

    @ct.kernel(occupancy=6)  # else the loop is unrolled, and few blocks fit a multiprocessor
    def count_triples(source: samples.annotation(wide), counters: ARRAYS[wide], triples: ARRAYS[wide],
                      way: ARRAYS[False], levels: tuple[(INT64,) * many], n: position(wide), steps: int,
                      copies: ct.Constant[int], parts: ct.Constant[int], each: ct.Constant[int],
                      often: ct.Constant[int], alike: ct.Constant[int], size: ct.Constant[int]):
        if ct.load(way, (0,), (1,)).item() == BY_TRIPLES:
            block = ct.bid(0)
            for j in range(block * each, ct.minimum((block + 1) * each, steps)):
                found = ()
                for k in ct.static_iter(range(3)):
                    # Which samples are a triple differs from step to step, so that those of periodic ones do.
                    other = (j * k * ct.static_eval(SCATTER % SIZE) & ct.static_eval(size - 1)) if k else 0
                    index = (3 * ct.astype(j, n.dtype) + k) * size
                    index = index + ct.astype(ct.arange(size, dtype=ct.int32) ^ other, n.dtype)
                    if k == 0:
                        tile = reader.tile(source, Place(3 * j, size, n, True))
                    else:
                        tile = reader.at(source, index, ct.full((size,), True, ct.bool_))
                    digit, inside = how.bin_of(tile, levels, bins)
                    found = found + (ct.where(inside, digit, bins),)
                a, b, c = found
                if many_of((a == b) & (a < bins)) * alike <= size:
                    less, more = ct.minimum(a, b), ct.maximum(a, b)
                    low, high = ct.minimum(less, c), ct.maximum(more, c)
                    mid = ct.maximum(less, ct.minimum(more, c))
                    cell = ct.where(low < bins, j % parts * cells + _cell(high, mid, low), -1)
                    ct.atomic_add(triples, cell, 1, check_bounds=True, memory_order=ct.MemoryOrder.RELAXED)
                else:
                    count_in_bins(counters, j % copies * bins, found, bins, often, True)

    return count_triples


def adding(bins: int, wide: bool) -> Any:
    """A kernel that adds to copies of the bins what copies of the counters of triples say. A block takes the triples of
    which one bin is the last one, and the one before it lies in a stretch of bins.
    """
    cells, lows, stretches = cells_of(bins), 1 << bins.bit_length(), -(-(bins + 1) // STRETCH)

    @ct.kernel
    def add_triples(counters: ARRAYS[wide], triples: ARRAYS[wide], way: ARRAYS[False], copies: ct.Constant[int]):
        high, stretch = ct.bid(0) // stretches % (bins + 1), ct.bid(0) % stretches
        part = ct.bid(0) // (stretches * (bins + 1))
        if (ct.load(way, (0,), (1,)).item() == BY_TRIPLES) & (stretch * STRETCH <= high):
            first, target, low = part * cells, ct.bid(0) % copies * bins, ct.arange(lows, dtype=ct.int32)
            as_low, as_high = ct.zeros((lows,), counters.dtype), ct.astype(0, counters.dtype)
            for r in range(ct.static_eval(STRETCH // ROWS)):
                mid = stretch * STRETCH + r * ROWS + ct.arange(ROWS, dtype=ct.int32)
                there = (low[None, :] <= mid[:, None]) & (low < bins)[None, :] & (mid <= high)[:, None]
                cell = _cell(high, mid[:, None], low[None, :])
                some = ct.gather(triples, first + cell, mask=there, padding_value=0)
                as_low += ct.sum(some, axis=0)
                as_mid = ct.sum(some, axis=1)
                as_high += ct.sum(as_mid)
                _add(counters, target, mid, as_mid, bins)
            _add(counters, target, low, as_low, bins)
            _add(counters, target, high, as_high, bins)

    return add_triples


def _add(counters, first, bin, counts, bins):
    ct.atomic_add(counters, ct.where((bin < bins) & (counts > 0), first + bin, -1), counts, check_bounds=True,
                  memory_order=ct.MemoryOrder.RELAXED)
