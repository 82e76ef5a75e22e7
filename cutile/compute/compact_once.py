"""Compaction in one launch: a block learns from those before it how many flags they have.

A block takes the next tile when it begins, so that it waits only for blocks that have begun. It adds how many flags its
tile has to three words: of the tile, of its group of tiles, and of its chunk of groups. Each word counts, too, how many
tiles have added to it. Then the block asks for the words of the tiles of its group before its own, of the groups of its
chunk before, and of the chunks before, until these are complete. A word says all that blocks want to know, so nothing
is read after it, and no order of memory is to be kept.

A block keeps the items of its tile while it waits. Where a thread has no registers for them and all that it takes to
store them, it forgets them, and reads them again by parts of the tile, from a cache: but not where operators capture
arrays, which they may update, since such operators see each item once.
"""

from typing import Any, NamedTuple

import cutile as ct
from cutile.compute.algorithm import kernels_for, position
from cutile.compute.blocks import put_one
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.readers import Place
from cutile.compute.scan_once import CLEARED, clear_words
from cutile.compute.splits import Split, Work, counts_in, flags_as_numbers, lanes_width, ranked
from cutile.compute.value_types import Number

MANY = 1 << 22  # items, from which on this takes less time than three launches


class Way(NamedTuple):
    """How a kernel goes over tiles. `size`: items of a tile, and `parts` of it that are stored one after the other."""

    size: int
    parts: int
    occupancy: int
    warps: int | None


KEPT = Way(4096, 1, 4, None)  # with few blocks of a multiprocessor, so that a thread has registers for its items
WAYS = {  # by flags, and bits of an item
    (1, 64): KEPT, (1, 32): Way(8192, 1, 4, 8), (2, 64): Way(4096, 4, 3, 8), (2, 32): Way(8192, 4, 4, 8)}
GROUP = 32  # tiles of a group, and groups of a chunk
COUNT = 25  # bits of a word that count a flag: a chunk has no more than 2^23 items
TILES = 2 * COUNT  # the bits of a word from this one on count tiles
RELAXED = ct.MemoryOrder.RELAXED


def _flags_before(words, first_group, first_chunk, i, here, asked):
    """For each of two flags, how many the tiles before tile i have. `here`: the counts of tile i, as in a word.

    asked   words that a block asks for at a time
    """
    g, j = i // GROUP, i % GROUP
    c, k = g // GROUP, g % GROUP
    mine = here | ct.int64(1 << TILES)
    for n in ct.static_iter((1 + i, first_group + g, first_chunk + c)):
        ct.atomic_add(words, n, mine, memory_order=RELAXED)
    lane = ct.arange(asked, dtype=ct.int32)
    of_group, of_chunk = lane - GROUP, lane - 2 * GROUP
    tile, group = of_group < 0, of_chunk < 0
    index = ct.where(tile, 1 + g * GROUP + lane, ct.where(group, first_group + c * GROUP + of_group,
                                                          first_chunk + of_chunk))
    index = ct.where(ct.where(tile, lane < j, ct.where(group, of_group < k, of_chunk < c)), index, -1)
    complete = ct.where(tile, 1, ct.where(group, GROUP, GROUP * GROUP))
    found, waiting = ct.zeros((asked,), ct.int64), i > 0
    while waiting:
        word = ct.atomic_or(words, index, ct.int64(0), memory_order=RELAXED, check_bounds=True)  # -1 asks for none
        there = (index >= 0) & (ct.astype(word >> TILES, ct.int32) == complete)
        found, index = ct.where(there, word, found), ct.where(there, -1, index)
        waiting = ct.max(index) >= 0
    mask = ct.static_eval((1 << COUNT) - 1)
    return ct.reduce((found & mask, found >> COUNT & mask), 0, _added, (0, 0))


def _added(x, y, more_x, more_y):
    return x + more_x, y + more_y


def _counts(flags, dtype):
    """For each of one or two flags, how many items of a tile have it."""
    found = counts_in(ct.sum(flags_as_numbers(flags)), len(flags))
    return tuple(ct.astype(some, dtype) for some in ct.static_iter(found))


def _compacted_once(split: Split, source: Any, target: Any, counter: IteratorBase, wide: bool, way: Way) -> Any:
    """A kernel of which each block moves the flagged items of one tile, and the last one stores the counts."""
    writer, many = counter.writer(), split.counts

    @ct.kernel(occupancy=way.occupancy, num_worker_warps=way.warps)
    def compact_once(items: source, outs: target, totals: counter.annotation(False), words: ARRAYS[False],
                     first_group: int, first_chunk: int, tiles: int, n: position(wide), size: ct.Constant[int],
                     whole: ct.Constant[bool], parts: ct.Constant[int], width: ct.Constant[int],
                     asked: ct.Constant[int]):
        i = ct.astype(ct.atomic_add(words, 0, ct.int64(1), memory_order=RELAXED), ct.int32)
        tile = Place(i, size, n, whole)
        values, flags = split.flags(items, tile)
        here = _counts(flags, ct.int64)
        found = _flags_before(words, first_group, first_chunk, i, here[0] if many == 1 else here[0] | here[1] << COUNT,
                              asked)
        if i == tiles - 1:
            for k in ct.static_iter(range(many)):
                put_one(writer, totals, k, Number(ct.int64), found[k] + here[k])
        before = tuple(ct.astype(found[k], n.dtype) for k in ct.static_iter(range(many)))
        if parts == 1:
            _put(split, items, outs, tile, values, flags, before, width)
            return
        for j in range(parts):
            part = Place(i * parts + j, ct.static_eval(size // parts), n, whole)
            some, marks = split.flags(items, part)
            _put(split, items, outs, part, some, marks, before, width)
            more = _counts(marks, n.dtype)
            before = tuple(before[k] + more[k] for k in ct.static_iter(range(many)))

    return compact_once


def _put(split, source, targets, place, values, flags, before, width):
    """Stores items, of which `before` says how many with each flag stand before the first."""
    if width > 1:
        split.put_lanes(source, targets, place, values, flags, before, width)
    else:
        ranks = tuple(ranked(flags[k], before[k].dtype) + before[k] for k in ct.static_iter(range(len(flags))))
        split.put(source, targets, place, values, flags, ranks)


def _bits(work: Work) -> list[int]:
    return [d.bitwidth for source in work.sources for d in source.value_type.dtypes]


def pays(work: Work) -> bool:
    """Whether it takes less time than three launches."""
    bits = _bits(work)
    return work.n >= MANY and not work.split.loops and len(bits) == 1 and (work.split.counts, *bits) in WAYS


def _way(work: Work) -> Way:
    """The way of these items; as few as a thread has registers for, if operators capture arrays."""
    if not work.plan.captures:
        return WAYS[work.split.counts, *_bits(work)]
    return KEPT._replace(size=KEPT.size >> (-(-sum(_bits(work)) // 64) - 1).bit_length())


def compact_once(work: Work) -> None:
    """The launches that move the items of `work`."""
    plan, n, way = work.plan, work.n, _way(work)
    tiles = -(-n // way.size)
    groups = -(-tiles // GROUP)
    chunks = -(-groups // GROUP)
    first_group, first_chunk = 1 + tiles, 1 + tiles + groups
    many = -(-(first_chunk + chunks) // CLEARED) * CLEARED
    words = plan.array(many, ct.int64)
    plan.launch(many // CLEARED, clear_words, words, CLEARED)
    asked = max(4 * GROUP, 1 << (2 * GROUP + chunks - 1).bit_length())
    width = lanes_width(work)
    kernel = kernels_for(("once", way, *work.key), _compacted_once, work.split, *work.annotations(width), work.counter,
                         work.wide, way)
    full = n // way.size
    for blocks, whole in ((full, True), (tiles - full, False)):  # masks cost time, and sizes that 16 does not divide
        plan.launch(blocks, kernel, *work.states(full * way.size if whole else n, width),
                    work.counter.state(work.split.counts), words, first_group, first_chunk, tiles, n, way.size, whole,
                    way.parts, width, asked)
