"""What select, three_way_partition and unique_by_key share: items with a flag move to the front, in their order.

An algorithm says by a `Split` which flags an item has, and where an item goes when it is known how many items with a
flag stand before it. In GPU memory one launch does all: a block counts the flags of its tile, and learns from the
blocks before it how many those have (`before`). In host memory three launches do: count the flags of each tile, add the
counts up, and move the items.
"""

import dataclasses
from typing import Any

import cutile as ct
from cutile.compute.algorithm import (
    Algorithm,
    bytes_of,
    carved,
    device_of,
    is_wide,
    kernels_for,
    launch,
    position,
)
from cutile.compute.blocks import put_one
from cutile.compute.iterators import ARRAYS, IteratorBase
from cutile.compute.operators import Operator, result_of
from cutile.compute.readers import Place
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import info
from cutile.errors import TileValueError

TILE = 2048  # items of a tile
HOST_TILE = 4096  # in host memory
AT_ONCE = 32  # tiles before it that a block looks at
COUNTED = 1 << 62  # marks the word of a tile that says how many flags the tile has
SUMMED = -1 << 63  # marks one that says how many the tile and all before it have


class Split:
    """Tile code of an algorithm; a frozen dataclass.

    counts  how many flags an item has

    flags(source, place)      the items at a place, as `put` takes them, and the tiles of their flags, which are false
                              beyond the last item
    put(source, target, place, items, flags, ranks)
                              stores the items. `ranks`: for each flag, how many items up to this one have it
    """

    counts = 1


@dataclasses.dataclass(frozen=True)
class Predicate:
    """An operator whose result is true where it is not zero [SEL-4]."""

    op: Any

    def __call__(self, values, mask):
        return ct.astype(ct.elementwise(self.op)(*values, mask=mask), ct.bool_)


def predicate(argument: str, op: Operator, *types: ValueType) -> Predicate:
    """An operator as a predicate of items of these types; TypeError if it gives no number."""
    result = result_of(op, *types).type
    if not isinstance(result, Number):
        raise TypeError(f"argument `{argument}`: a predicate returns a truth value, and this one returns {result}")
    return Predicate(op.function)


def check_counter(argument: str, out: IteratorBase, least: int) -> None:
    """TypeError if counts cannot be stored there, ValueError if there is no room for them."""
    t = out.value_type
    if not isinstance(t, Number) or not info(t.dtype).integral:
        raise TypeError(f"argument `{argument}`: counts are integers, and this has items of {t}")
    size = out.size()
    if size is not None and size < least:
        raise ValueError(f"argument `{argument}` has {size} items, and {least} are needed")


# ------------------------------------------------------------------ tile code


def ranked(flags, dtype):
    """For each item the number of items up to it that have the flag."""
    return ct.cumsum(ct.astype(flags, dtype), axis=0)


def total(flags, dtype):
    return ct.sum(ct.astype(flags, dtype))


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


# ------------------------------------------------------------------ kernels


@ct.kernel
def clear_words(words, ticket, size: ct.Constant[int]):
    """What `flags_before` begins with."""
    index = ct.bid(0) * size + ct.arange(size, dtype=ct.int32)
    ct.scatter(words, index, ct.where(index < AT_ONCE, ct.int64(SUMMED), ct.int64(0)))
    if ct.bid(0) == 0:
        ct.store(ticket, (0,), ct.zeros((1,), ct.int32))


def _in_one_launch(split: Split, source: Any, target: Any, counter: IteratorBase, wide: bool) -> Any:
    """A kernel of which each block moves the flagged items of one tile, and the last one stores the counts."""
    writer, many = counter.writer(), split.counts

    @ct.kernel
    def compact(items: source, out: target, totals: counter.annotation(False), words: tuple[(ARRAYS[False],) * many],
                ticket, n: position(wide), first: position(wide), size: ct.Constant[int], whole: ct.Constant[bool]):
        i = ct.atomic_add(ticket, 0, 1, memory_order=ct.MemoryOrder.RELAXED)  # in the order in which blocks begin
        place = Place(i, size, n, whole)
        values, flags = split.flags(items, place)
        ranks = ()
        for k in ct.static_iter(range(many)):
            count = total(flags[k], ct.int64)
            prefix = flags_before(words[k], i, count) + first
            ranks = ranks + (ranked(flags[k], n.dtype) + ct.astype(prefix, n.dtype),)
            if i == ct.num_blocks(0) - 1:
                put_one(writer, totals, k, Number(ct.int64), prefix + count)
        split.put(items, out, place, values, flags, ranks)

    return compact


def _counted(split: Split, source: Any, wide: bool) -> Any:
    """A kernel that counts the flags of each tile."""
    @ct.kernel
    def count_flags(items: source, counts: tuple[(ARRAYS[wide],) * split.counts], begin: int, n: position(wide),
                    size: ct.Constant[int], whole: ct.Constant[bool]):
        i = ct.bid(0) + begin
        _, flags = split.flags(items, Place(i, size, n, whole))
        for k in ct.static_iter(range(split.counts)):
            ct.store(counts[k], (i,), ct.reshape(total(flags[k], ct.int64), (1,)))

    return count_flags


def _added_up(many: int, counter: IteratorBase, wide: bool) -> Any:
    """A kernel that replaces the count of each tile by the sum of those before it, and stores the sum of all."""
    writer = counter.writer()

    @ct.kernel
    def add_up(counts: tuple[(ARRAYS[wide],) * many], sums: tuple[(ARRAYS[wide],) * many],
               totals: counter.annotation(False), first: position(wide), size: ct.Constant[int]):
        for k in ct.static_iter(range(many)):
            so_far = ct.astype(first, ct.int64)
            for j in range(ct.num_tiles(counts[k], axis=0, shape=(size,))):
                some = ct.load(counts[k], (j,), (size,), padding_mode=ct.PaddingMode.ZERO)
                ct.store(counts[k], (j,), ct.cumsum(some, axis=0) - some + so_far)
                so_far += ct.sum(some)
            ct.store(sums[k], (0,), ct.reshape(so_far, (1,)))
            put_one(writer, totals, k, Number(ct.int64), so_far)

    return add_up


def _moved(split: Split, source: Any, target: Any, wide: bool) -> Any:
    """A kernel that moves the flagged items of each tile, of which it is known how many stand before it."""
    @ct.kernel
    def move(items: source, out: target, counts: tuple[(ARRAYS[wide],) * split.counts], begin: int,
             n: position(wide), size: ct.Constant[int], whole: ct.Constant[bool]):
        i = ct.bid(0) + begin
        place = Place(i, size, n, whole)
        values, flags = split.flags(items, place)
        ranks = ()
        for k in ct.static_iter(range(split.counts)):
            prefix = ct.load(counts[k], (i,), (1,))
            ranks = ranks + (ranked(flags[k], n.dtype) + ct.astype(prefix, n.dtype),)
        split.put(items, out, place, values, flags, ranks)

    return move


def _nothing(many: int, counter: IteratorBase) -> Any:
    """A kernel that stores the counts of no items."""
    writer = counter.writer()

    @ct.kernel
    def store_zeros(totals: counter.annotation(False)):
        for k in ct.static_iter(range(many)):
            put_one(writer, totals, k, Number(ct.int64), ct.int64(0))

    return store_zeros


# ------------------------------------------------------------------ launches


class Compaction(Algorithm):
    """The base of the objects of these algorithms."""

    def compact(self, stream: Any, temp_storage: Any, key: tuple, split: Split, items: tuple[IteratorBase, ...],
                outs: dict[str, IteratorBase], counter: IteratorBase, n: int, first: int = 0) -> int:
        """Move items, or give the bytes of temporary storage alone.

        key    the algorithm's name, and what `split` depends on besides the kinds of operands
        items  the operands that the split reads
        outs   the outputs, by the names of their arguments: one for each flag, then one for items without
        n      how many items have flags; `first` others stand before them in the output
        """
        host = device_of(*items, *outs.values(), counter) is None
        many, size = split.counts, HOST_TILE if host else TILE
        tiles = max(-(-n // size), 1)
        if host:
            arrays = [(tiles, ct.int64)] * many + [(1, ct.int64)] * many
        else:
            arrays = [(tiles + AT_ONCE, ct.int64)] * many + [(1, ct.int32)]
        if temp_storage is None:
            return bytes_of(arrays)
        temporary = carved(temp_storage, arrays)
        wide = is_wide(n + first, *items, *outs.values())
        key = (*key, *(it.kind for it in (*items, *outs.values(), counter)), wide)
        source, target = (tuple[tuple(it.annotation(wide) for it in group)] for group in (items, outs.values()))
        given = tuple(it.state(max(n, 1)) for it in items), tuple(it.state(None) for it in outs.values())
        totals = counter.state(many)
        if n + first == 0:
            kernel = kernels_for(("no items", many, counter.kind), _nothing, many, counter)
            launch(stream, 1, kernel, totals)
        elif host:
            self._in_host_memory(stream, key, split, (source, target), given, totals, outs, counter, temporary, n,
                                 first)
        else:
            *words, ticket = temporary
            for array in words:
                launch(stream, -(-(tiles + AT_ONCE) // TILE), clear_words, array, ticket, TILE)
            kernel = kernels_for(("in one launch", *key), _in_one_launch, split, source, target, counter, wide)
            launch(stream, tiles, kernel, *given, totals, tuple(words), ticket, n, first, size, n == tiles * size)
        return bytes_of(arrays)

    def _in_host_memory(self, stream: Any, key: tuple, split: Split, annotations: tuple, given: tuple, totals: Any,
                        outs: dict[str, IteratorBase], counter: IteratorBase, temporary: list, n: int, first: int
                        ) -> None:
        many, wide, (source, target) = split.counts, key[-1], annotations
        counts, sums = tuple(temporary[:many]), tuple(temporary[many:])
        full, rest = divmod(n, HOST_TILE)
        parts = [(full, 0, True)] if full else []
        if rest or not full:
            parts.append((1, full, False))  # masks cost time in host memory
        kernel = kernels_for(("count", *key), _counted, split, source, wide)
        for tiles, begin, whole in parts:
            launch(stream, tiles, kernel, given[0], counts, begin, n, HOST_TILE, whole)
        kernel = kernels_for(("add up", many, counter.kind, wide), _added_up, many, counter, wide)
        launch(stream, 1, kernel, counts, sums, totals, first, HOST_TILE)
        found = [int(s[0]) for s in sums]
        for (name, out), needed in zip(outs.items(), [*found, n + first - sum(found)], strict=False):
            if out.size() is not None and out.size() < needed:
                raise TileValueError(f"argument `{name}` has {out.size()} items, and {needed} are written")
        kernel = kernels_for(("move", *key), _moved, split, source, target, wide)
        for tiles, begin, whole in parts:
            launch(stream, tiles, kernel, *given, counts, begin, n, HOST_TILE, whole)
