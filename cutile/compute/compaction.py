"""What select, three_way_partition and unique_by_key share: items with a flag move to the front, in their order.

An algorithm says by a `Split` which flags an item has, and where an item goes when it is known how many items with a
flag stand before it. Three launches count the flags of groups of tiles, add the counts up, and move the items. Of fewer
than MANY items in GPU memory, where a launch takes longer than what it does, one does all: a block counts the flags of
its tile, and learns from the blocks before it how many those have (`flags_before`).
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cutile as ct
from cutile.compute.algorithm import is_wide, kernels_for, position
from cutile.compute.blocks import put_one
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.operators import Operator
from cutile.compute.overlaps import check_apart
from cutile.compute.places import Room, check_places
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.results import result_of
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import info

TILE = 2048  # items of a tile
HOST_TILE = 4096  # in host memory
MANY = 1 << 20  # items, for which blocks in GPU memory wait for others longer than it takes to read items again
FEW = 1024  # items of a tile where lanes store what few items they have with the flag
GROUP = 16  # tiles that a block counts
BITS = 12  # that hold the number of flags of a tile; those of a group take no more than the other 19
GROUPED = 1 << 24  # items, of which enough blocks count groups
COUNTS = 4096  # of groups that are added up at a time
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


class Front(Split):
    """One whose flagged items go to the front of one or several outputs; `writers` are those of the outputs.

    types                     the types of what goes to each
    stored(source, place, items)   what goes to each
    """

    def put(self, source, target, place, items, flags, ranks):
        values = self.stored(source, place, items)
        for k in ct.static_iter(range(len(self.writers))):
            self.writers[k].put_at(target[k], ranks[0] - 1, values[k], flags[0])

    def put_few(self, source, target, place, items, flag, before, width):
        """Stores the items of a tile of which few have the flag. `before`: how many items before the tile have it.

        A lane has `width` items beside each other. It stores the first one that has the flag, then the second one, ….
        """
        marked, values = _columns(flag, width), self.stored(source, place, items)
        many = ct.zeros(marked[0].shape, ct.int32)
        ranks = ()
        for c in ct.static_iter(range(width)):
            ranks = ranks + (many,)
            many = many + ct.astype(marked[c], ct.int32)
        first = ct.astype(ct.cumsum(many, axis=0) - many, before.dtype) + before
        for k in ct.static_iter(range(len(self.writers))):
            for c in ct.static_iter(range(width)):
                some = tuple(_nth(_columns(x, width), marked, ranks, c) for x in ct.static_iter(
                    self.types[k].flat(values[k])))
                self.writers[k].put_at(target[k], first + c, self.types[k].nest(some), many > c)


@dataclasses.dataclass(frozen=True)
class Predicate:
    """An operator whose result is true where it is not zero [SEL-4]."""

    op: Any

    def __call__(self, values, mask):
        return ct.astype(ct.elementwise(self.op)(*values, mask=mask), ct.bool_)


@dataclasses.dataclass(frozen=True)
class Begins:
    """Whether keys, which have type `type`, begin a run: those to which the key before is not equal, and the first one.

    `width`: of so many keys, which a lane of a GPU has beside each other, only the first one's key before is read.
    """

    equal: Predicate
    type: ValueType
    width: int

    def __call__(self, reader, state, place, keys):
        index = place.index()
        inner = index > 0 if place.whole else (index > 0) & place.mask()
        found = ~self.equal((self._before(reader, state, place, keys), keys), inner)
        return found if place.whole else found & place.mask()

    def _before(self, reader, state, place, keys):
        rows = ct.static_eval(max(place.size // self.width, 1))
        width = ct.static_eval(place.size // rows)
        first = ct.astype(place.i, place.n.dtype) * place.size + ct.arange(rows, dtype=place.n.dtype) * width
        there = first > 0 if place.whole else (first > 0) & (first <= place.n)
        heads, mine = self.type.flat(reader.at(state, first - 1, there, True)), self.type.flat(keys)
        return self.type.nest(tuple(_moved_on(heads[k], mine[k], rows, width)
                                    for k in ct.static_iter(range(len(mine)))))


def begins(equal: Predicate, t: ValueType, on_host: bool) -> Begins:
    """That of keys of type `t`. A lane loads 16 bytes at a time."""
    return Begins(equal, t, 1 if on_host else max(16 * 8 // max(d.bitwidth for d in t.dtypes), 1))


def predicate(argument: str, op: Operator, *types: ValueType) -> Predicate:
    """An operator as a predicate of items of these types; TypeError if it gives no number."""
    result = result_of(op, *types, argument=argument).type
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


def _moved_on(heads, items, rows, width):
    """Each row of items moved on by one, behind an item of `heads`."""
    if width == 1:
        return heads
    table = ct.reshape(items, (rows, width))
    columns = tuple(ct.extract(table, (0, c), (rows, 1)) for c in ct.static_iter(range(width - 1)))
    return ct.reshape(_beside((ct.reshape(heads, (rows, 1)), *columns)), items.shape)


def _columns(items, width):
    """The items that each lane has first, those that it has second, …."""
    rows = ct.static_eval(items.shape[0] // width)
    table = ct.reshape(items, (rows, width))
    return tuple(ct.reshape(ct.extract(table, (0, c), (rows, 1)), (rows,)) for c in ct.static_iter(range(width)))


def _nth(columns, marked, ranks, n):
    """Of each row the item before which n are marked, and which is marked too; anything if there is none."""
    found = columns[-1]
    for j in ct.static_iter(range(n, len(columns) - 1)):
        found = ct.where(marked[j] & (ranks[j] == n), columns[j], found)
    return found


def _beside(columns):
    """A table of columns, as many as a power of two."""
    if len(columns) == 1:
        return columns[0]
    half = ct.static_eval(len(columns) // 2)
    return ct.cat((_beside(columns[:half]), _beside(columns[half:])), 1)


def ranked(flags, dtype):
    """For each item the number of items up to it that have the flag."""
    return ct.astype(ct.cumsum(ct.astype(flags, ct.int32), axis=0), dtype)


def total(flags, dtype):
    return ct.astype(ct.sum(ct.astype(flags, ct.int32)), dtype)


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

    return compact


def _counted(split: Split, source: Any, wide: bool) -> Any:
    """A kernel of which each block counts the flags of a group of tiles. If a group has several, `within` gets for each
    tile, by BITS, how many the tiles of the group before it have, and how many it has itself.
    """
    many = split.counts

    @ct.kernel(occupancy=16)  # else the loop is unrolled, and few blocks fit a multiprocessor
    def count_flags(items: source, counts: tuple[(ARRAYS[wide],) * many], within: tuple[(ARRAYS[wide],) * many],
                    begin: int, n: position(wide), size: ct.Constant[int], group: ct.Constant[int],
                    whole: ct.Constant[bool]):
        i = ct.bid(0) + begin
        if group == 1:
            _, flags = split.flags(items, Place(i, size, n, whole))
            found = tuple(total(flags[k], counts[k].dtype) for k in ct.static_iter(range(many)))
        else:
            found = tuple(ct.int32(0) for _ in ct.static_iter(range(many)))
            tiles = group if whole else ct.minimum(ct.astype(ct.cdiv(n, size), ct.int32) - i * group, group)
            for j in range(tiles):
                _, flags = split.flags(items, Place(i * group + j, size, n, whole))
                some = tuple(total(flags[k], ct.int32) for k in ct.static_iter(range(many)))
                for k in ct.static_iter(range(many)):
                    ct.store(within[k], (i * group + j,), ct.reshape(found[k] << BITS | some[k], (1,)))
                found = tuple(found[k] + some[k] for k in ct.static_iter(range(many)))
        for k in ct.static_iter(range(many)):
            ct.store(counts[k], (i,), ct.reshape(ct.astype(found[k], counts[k].dtype), (1,)))

    return count_flags


def _added_up(many: int, counter: IteratorBase, wide: bool) -> Any:
    """A kernel that replaces each count by the sum of those before it, and stores the sum of all."""
    writer = counter.writer()

    @ct.kernel
    def add_up(counts: tuple[(ARRAYS[wide],) * many], sums: tuple[(ARRAYS[wide],) * many],
               totals: counter.annotation(False), size: ct.Constant[int]):
        for k in ct.static_iter(range(many)):
            so_far = ct.astype(0, counts[k].dtype)
            for j in range(ct.num_tiles(counts[k], axis=0, shape=(size,))):
                some = ct.load(counts[k], (j,), (size,), padding_mode=ct.PaddingMode.ZERO)
                ct.store(counts[k], (j,), ct.cumsum(some, axis=0) - some + so_far)
                so_far += ct.sum(some)
            ct.store(sums[k], (0,), ct.reshape(so_far, (1,)))
            put_one(writer, totals, k, Number(ct.int64), ct.astype(so_far, ct.int64))

    return add_up


def _moved(split: Split, source: Any, target: Any, wide: bool) -> Any:
    """A kernel that moves the flagged items of each tile, of which it is known how many stand before it."""
    many = split.counts

    @ct.kernel
    def move(items: source, out: target, counts: tuple[(ARRAYS[wide],) * many], within: tuple[(ARRAYS[wide],) * many],
             begin: int, n: position(wide), size: ct.Constant[int], group: ct.Constant[int], whole: ct.Constant[bool],
             width: ct.Constant[int]):
        i = ct.bid(0) + begin
        place = Place(i, size, n, whole)
        values, flags = split.flags(items, place)
        before, here = (), ()
        for k in ct.static_iter(range(many)):
            prefix = ct.astype(ct.load(counts[k], (i // group,), (1,)).item(), n.dtype)
            if group > 1:
                word = ct.load(within[k], (i,), (1,)).item()
                prefix, here = prefix + (word >> BITS), here + (word & ct.static_eval((1 << BITS) - 1),)
            before = before + (prefix,)
        if width > 1:
            if here[0] <= ct.static_eval(size // 2):
                split.put_few(items, out, place, values, flags[0], before[0], width)
                return
        ranks = tuple(ranked(flags[k], n.dtype) + before[k] for k in ct.static_iter(range(many)))
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


def nothing_kernel(many: int, counter: IteratorBase) -> Any:
    """The kernel that stores the counts of no items."""
    return kernels_for(("no items", many, counter.kind), _nothing, many, counter)


# ------------------------------------------------------------------ launches


def compact(plan: Plan, key: tuple, split: Split, items: dict[str, IteratorBase], outs: dict[str, IteratorBase],
            counts: tuple[str, IteratorBase], n: int) -> None:
    """The launches that move n items.

    key     the algorithm's name, and what `split` depends on besides the kinds of operands
    items   the operands that the split reads, by the names of their arguments
    outs    the outputs: one for each flag, then one for items without; or several for the only flag
    counts  where counts go
    """
    argument, counter = counts
    check_counter(argument, counter, split.counts)
    check_apart(plan, {**outs, argument: counter}, items, n)
    check_places(plan, split.counts, **{argument: counter})
    if n == 0:
        plan.launch(1, nothing_kernel(split.counts, counter), counter.state(split.counts))
        return
    sources = tuple(items.values())
    wide = is_wide(n, *sources, *outs.values())
    work = _Work(plan, (*key, *(it.kind for it in (*sources, *outs.values(), counter)), wide), split, sources, outs,
                 counter, n, wide)
    (_with_three_launches if plan.on_host or n >= MANY else _with_one_launch)(work)


class _Work(NamedTuple):
    """What `compact` is to do."""

    plan: Plan
    key: tuple
    split: Split
    sources: tuple[IteratorBase, ...]
    outs: dict[str, IteratorBase]
    counter: IteratorBase
    n: int
    wide: bool

    def annotations(self) -> tuple[Any, Any]:
        return tuple(tuple[tuple(it.annotation(self.wide) for it in group)] for group in (self.sources,
                                                                                         self.outs.values()))

    def states(self) -> tuple[tuple, tuple]:
        return tuple(it.state(self.n) for it in self.sources), tuple(it.state(None) for it in self.outs.values())


def _with_one_launch(work: _Work) -> None:
    plan, n, many = work.plan, work.n, work.split.counts
    tiles = -(-n // TILE)
    words = tuple(plan.array(tiles + AT_ONCE, ct.int64) for _ in range(many))
    ticket = plan.array(1, ct.int32)
    for array in words:
        plan.launch(-(-(tiles + AT_ONCE) // TILE), clear_words, array, ticket, TILE)
    kernel = kernels_for(("in one launch", *work.key), _in_one_launch, work.split, *work.annotations(), work.counter,
                         work.wide)
    plan.launch(tiles, kernel, *work.states(), work.counter.state(many), words, ticket, n, TILE,
                n % TILE == 0)


def _with_three_launches(work: _Work) -> None:
    plan, n, many, (source, target) = work.plan, work.n, work.split.counts, work.annotations()
    group = 1 if plan.on_host or n < GROUPED else GROUP
    width = _width(work) if group > 1 else 1
    tile = HOST_TILE if plan.on_host else FEW if width > 1 else TILE
    tiles, full = -(-n // tile), n // tile
    dtype = ct.int64 if plan.on_host or work.wide else ct.int32

    def parts(whole: int, every: int) -> Iterator[tuple[int, int, bool]]:
        """How many blocks begin where: those whose items are all there, since masks cost time, and the others."""
        yield whole, 0, True
        yield every - whole, whole, False

    counts = tuple(plan.array(-(-tiles // group), dtype) for _ in range(many))
    within = tuple(plan.array(tiles if group > 1 else 1, ct.int32) for _ in range(many))
    sums = tuple(plan.array(1, dtype) for _ in range(many))
    kernel = kernels_for(("count", *work.key), _counted, work.split, source, work.wide)
    for blocks, begin, whole in parts(full // group, -(-tiles // group)):
        plan.launch(blocks, kernel, work.states()[0], counts, within, begin, n, tile, group, whole)
    kernel = kernels_for(("add up", many, work.counter.kind, work.wide), _added_up, many, work.counter, work.wide)
    plan.launch(1, kernel, counts, sums, work.counter.state(many), COUNTS)
    if plan.on_host:
        room = Room(plan, work.outs, n)
        plan.call(_check_room(room, n, many), *sums, *room.states)
    kernel = kernels_for(("move", *work.key), _moved, work.split, source, target, work.wide)
    for blocks, begin, whole in parts(full, tiles):
        plan.launch(blocks, kernel, *work.states(), counts, within, begin, n, tile, group, whole, width)


def _width(work: _Work) -> int:
    """How many items beside each other a lane loads at a time, if it may store only those with the flag; else 1."""
    bits = [d.bitwidth for d in work.sources[0].value_type.dtypes]
    return 16 * 8 // max(bits) if isinstance(work.split, Front) and min(bits) >= 32 else 1


def _check_room(room: Room, n: int, many: int) -> Callable:
    """A function of the counts, of which there are `many`, and what `room` takes."""
    def check(*arrays):
        found = [int(s[0]) for s in arrays[:many]]
        room.check([*found, n - sum(found)] if many > 1 else found * len(room.sizes), arrays[many:])

    return check
