"""Compaction that looks at each item once: a block counts the flags of its tile, and learns from the blocks before it
how many those have.
"""

from typing import Any

import cutile as ct
from cutile.compute.algorithm import kernels_for, position
from cutile.compute.blocks import put_one
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.readers import Place
from cutile.compute.splits import Split, Work, ranked, total
from cutile.compute.value_types import Number

TILE = 2048  # items of a tile
AT_ONCE = 32  # tiles before it that a block looks at
COUNTED = 1 << 62  # marks the word of a tile that says how many flags the tile has
SUMMED = -1 << 63  # marks one that says how many the tile and all before it have


def say(words, i, word):
    """Make known the word of tile `i`, which is number i + AT_ONCE."""
    ct.store(words, (i + AT_ONCE,), ct.reshape(word, (1,)), memory_order=ct.MemoryOrder.RELAXED,
             memory_scope=ct.MemoryScope.DEVICE)


def flags_before(words, i, count):
    """How many flags the tiles before tile `i` have, which itself has `count`.

    A tile says first what it has, then what it and all before it have. A tile looks back at AT_ONCE others at a time,
    until it comes to one that says the second. The first words are those of tiles without flags, before the first.
    """
    lane, found, start = ct.arange(AT_ONCE, dtype=ct.int32), ct.int64(0), i
    looking = i > 0
    say(words, i, count | ct.where(looking, ct.int64(COUNTED), ct.int64(SUMMED)))
    while looking:
        said = ct.load(words.slice(axis=0, start=start, stop=start + AT_ONCE), (0,), (AT_ONCE,),
                       memory_order=ct.MemoryOrder.RELAXED, memory_scope=ct.MemoryScope.DEVICE)
        last = ct.max(ct.where(said < 0, lane, -1))
        if ct.min(ct.where((said == 0) & (lane >= last), 0, 1)) == 1:
            found += ct.sum(ct.where(lane >= last, said & ct.int64(COUNTED - 1), ct.int64(0)))
            start -= AT_ONCE
            looking = last < 0
    if i > 0:
        say(words, i, (found + count) | ct.int64(SUMMED))
    return found


@ct.kernel
def clear_words(words, ticket, size: ct.Constant[int]):
    """What `flags_before` begins with."""
    index = ct.bid(0) * size + ct.arange(size, dtype=ct.int32)
    ct.scatter(words, index, ct.where(index < AT_ONCE, ct.int64(SUMMED), ct.int64(0)))
    if ct.bid(0) == 0:
        ct.store(ticket, (0,), ct.zeros((1,), ct.int32))


def _looking_back(split: Split, source: Any, target: Any, counter: IteratorBase, wide: bool) -> Any:
    """A kernel of which each block moves the flagged items of one tile, and the last one stores the counts."""
    writer, many = counter.writer(), split.counts

    @ct.kernel
    def look_back(items: source, out: target, totals: counter.annotation(False), words: tuple[(ARRAYS[False],) * many],
                  ticket, n: position(wide), size: ct.Constant[int], whole: ct.Constant[bool]):
        i = ct.atomic_add(ticket, 0, 1, memory_order=ct.MemoryOrder.RELAXED)  # in the order in which blocks begin
        place = Place(i, size, n, whole)
        values, flags = split.flags(items, place)
        ranks = ()
        for k in ct.static_iter(range(many)):
            count = total(flags[k], ct.int64)
            prefix = flags_before(words[k], i, count)
            ranks = ranks + (ranked(flags[k], n.dtype) + ct.astype(prefix, n.dtype),)
            if i == ct.num_blocks(0) - 1:
                put_one(writer, totals, k, Number(ct.int64), prefix + count)
        split.put(items, out, place, values, flags, ranks)

    return look_back


def looking_at_items_once(work: Work) -> None:
    plan, n, many = work.plan, work.n, work.split.counts
    tiles = -(-n // TILE)
    words = tuple(plan.array(tiles + AT_ONCE, ct.int64) for _ in range(many))
    ticket = plan.array(1, ct.int32)
    for array in words:
        plan.launch(-(-(tiles + AT_ONCE) // TILE), clear_words, array, ticket, TILE)
    kernel = kernels_for(("looking back", *work.key), _looking_back, work.split, *work.annotations(), work.counter,
                         work.wide)
    plan.launch(tiles, kernel, *work.states(), work.counter.state(many), words, ticket, n, TILE,
                n % TILE == 0)
