"""Scans in one launch that reads each item once: a block learns from those before it what stands before its tile.

A block takes the next tile when it begins, so that it waits only for blocks that have begun. It stores the combination
of its tile and marks it in the word of its group of tiles. The last block of a group waits for the others, stores the
combination of the group, and marks it in the word of its chunk of groups; the last one of a chunk stores what all up to
its end is. A block waits for the tiles of its group before its own, for the groups of its chunk before, and for the
chunk before. So items are combined in the same order, whichever block comes first.
"""

from typing import Any, NamedTuple

import cutile as ct
from cutile.compute.algorithm import is_wide, kernels_for, position
from cutile.compute.blocks import Combined, put_one
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.operators import Operator
from cutile.compute.parts import parts_of
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.value_types import ValueType

MANY = 1 << 26  # items, from which on this takes less time than reading them twice
BITS = 64  # of an item: shorter ones are read twice in no more time
TILE = 4096  # items of a tile
GROUP = 32  # tiles of a group, and groups of a chunk: bits of a word
CLEARED = 1024  # words that a block clears


@ct.kernel
def clear_words(words, size: ct.Constant[int]):
    ct.store(words, (ct.bid(0),), ct.zeros((size,), words.dtype))


def begun(combine, begin, initial, i, prefix, scanned):
    """What stands before tile i, and its scanned items combined with that. `prefix` is what the tiles before tile i
    hold; before the first, it is anything. The reader `begin` reads the initial value; None if there is none.
    """
    t = combine.type
    if begin is None:
        return prefix, t.select(i > 0, combine(prefix, scanned), scanned)
    first = t.cast(begin.value(initial))
    prefix = t.select(i > 0, combine(first, prefix), first)
    return prefix, combine(prefix, scanned)


def stored(writer, target, type, place, inclusive, prefix, scanned):
    """Stores a tile of a scan: the items up to each one, or before each one, of which `prefix` is the first."""
    if inclusive:
        writer.put(target, place, scanned)
    else:
        put_one(writer, target, ct.astype(place.i, place.n.dtype) * place.size, type, prefix, place.n.dtype)
        index, inner = place.index() + 1, ct.arange(place.size, dtype=ct.int32) + 1 < place.size
        writer.put_at(target, index, scanned, inner if place.whole else inner & (index < place.n))


def _before_tile(combine, reader, writer, tables, i, all):
    """The combination of what stands before tile i, whose own is `all`; anything before the first tile."""
    tiles, groups, chunks, words, first_group, first_chunk = tables
    t = combine.type
    g, j = i // GROUP, i % GROUP
    c, k = g // GROUP, g % GROUP
    group, chunk = first_group + g, first_chunk + 2 * c
    tiles_before, groups_before = (ct.int32(1) << j) - 1, (ct.int32(1) << k) - 1
    put_one(writer, tiles, i, t, all)
    ct.atomic_or(words, group, ct.int32(1) << j)
    if j == GROUP - 1:
        while ct.atomic_or(words, group, 0, memory_order=ct.MemoryOrder.ACQUIRE) & tiles_before != tiles_before:
            pass
        put_one(writer, groups, g, t, _first_of(combine, reader, tiles, g, GROUP))
        ct.atomic_or(words, chunk, ct.int32(1) << k)
    waiting = True
    while waiting:
        mine = ct.atomic_or(words, group, 0, memory_order=ct.MemoryOrder.ACQUIRE)
        those = ct.atomic_or(words, chunk, 0, memory_order=ct.MemoryOrder.ACQUIRE)
        there = ct.atomic_or(words, ct.maximum(chunk - 1, first_chunk), 0, memory_order=ct.MemoryOrder.ACQUIRE)
        waiting = (mine & tiles_before != tiles_before) | (those & groups_before != groups_before) \
            | ((c > 0) & (there == 0))
    inner, outer = _first_of(combine, reader, tiles, g, j), _first_of(combine, reader, groups, c, k)
    inner = t.select(k > 0, t.select(j > 0, combine(outer, inner), outer), inner)
    index, mask = ct.reshape(ct.maximum(c - 1, 0), (1,)), ct.reshape(c > 0, (1,))
    outer = t.item(reader.at(chunks, index, mask, True))
    prefix = t.select(c > 0, t.select((k > 0) | (j > 0), combine(outer, inner), outer), inner)
    if (j == GROUP - 1) & (k == GROUP - 1):
        put_one(writer, chunks, c, t, combine(prefix, all))
        ct.atomic_xchg(words, chunk + 1, 1)
    return prefix


def _first_of(combine, reader, table, row, many):
    """The combination of the first ones of a row of a table."""
    lane = ct.arange(GROUP, dtype=ct.int32)
    some = combine.scanned(combine.type.cast(reader.at(table, row * GROUP + lane, lane < many, True)))
    return combine.picked(some, lane == many - 1)


class Tables(NamedTuple):
    """Combinations of tiles, of groups, and of all up to the end of each chunk, in temporary storage; words, of which
    the first counts blocks; the numbers of the first words of groups and of chunks.
    """

    tiles: Any
    groups: Any
    chunks: Any
    words: Any
    first_group: int
    first_chunk: int


def _tables(plan: Plan, tiles: int, t: ValueType) -> Tables:
    """Those for so many tiles, of which a launch clears the words."""
    groups = -(-tiles // GROUP)
    chunks = -(-groups // GROUP)
    many = -(-(1 + groups + 2 * chunks) // CLEARED) * CLEARED
    words = plan.array(many, ct.int32)
    plan.launch(many // CLEARED, clear_words, words, CLEARED)
    return Tables(plan.values(groups * GROUP, t), plan.values(chunks * GROUP, t), plan.values(chunks, t), words, 1,
                  1 + groups)


def _scanned_once(items: IteratorBase, out: IteratorBase, sums: IteratorBase, combine: Combined, begin: Any, given: Any,
                  inclusive: bool, wide: bool) -> Any:
    """A kernel that scans each tile. `begin`, `given`: reader and annotation of an initial value, if there is one."""
    reader, writer, t = items.reader(), out.writer(), combine.type
    sum_reader, sum_writer, table = sums.reader(), sums.writer(), sums.annotation(wide)

    @ct.kernel(occupancy=4)  # so that a thread has registers for its items
    def scan_once(source: items.annotation(wide), target: out.annotation(wide),
                  tables: tuple[table, table, table, ARRAYS[False], int, int],
                  initial: tuple[()] if begin is None else given, n: position(wide), size: ct.Constant[int],
                  whole: ct.Constant[bool]):
        i = ct.atomic_add(tables[3], 0, 1, memory_order=ct.MemoryOrder.RELAXED)
        place = Place(i, size, n, whole)
        scanned = combine.scanned(t.cast(reader.tile(source, place)))
        all = combine.picked(scanned, ct.arange(size, dtype=ct.int32) == size - 1)
        prefix = _before_tile(combine, sum_reader, sum_writer, tables, i, all)
        prefix, scanned = begun(combine, begin, initial, i, prefix, scanned)
        stored(writer, target, t, place, inclusive, prefix, scanned)

    return scan_once


def pays(plan: Plan, combine: Combined, n: int) -> bool:
    """Whether it takes less time than two launches."""
    return not plan.on_host and n >= MANY and not combine.loops \
        and [d.bitwidth for d in combine.type.dtypes] == [BITS]


def scan_once(plan: Plan, items: IteratorBase, out: IteratorBase, op: Operator, combine: Combined, begin: Any,
              inclusive: bool, n: int) -> None:
    """The launches that scan n items."""
    wide, t, tiles = is_wide(n, items, out), combine.type, -(-n // TILE)
    tables = _tables(plan, tiles, t)
    key = "scan once", items.kind, op.key, t, wide, out.kind, None if begin is None else begin.kind, inclusive
    kernel = kernels_for(key, _scanned_once, items, out, tables.tiles, combine, begin and begin.reader(),
                         begin and begin.annotation(wide), inclusive, wide)
    states = *(x.state(None) for x in tables[:3]), *tables[3:]
    for part in parts_of(plan, n, TILE):  # blocks go on where those of the launch before ended
        plan.launch(part.blocks, kernel, items.state(part.items), out.state(part.items), states,
                    () if begin is None else begin.state, n, TILE, part.whole)
