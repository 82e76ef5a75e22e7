"""What select, three_way_partition and unique_by_key share: items with a flag move to the front, in their order.

An algorithm says by a `Split` which flags an item has, and where an item goes when it is known how many items with a
flag stand before it. Three launches count the flags of groups of tiles, add the counts up, and move the items. In GPU
memory, where a launch of few items takes longer than what it does, each block adds up the counts before its own itself
where there are fewer than MANY items, so that two launches do; and of at most ONCE items it counts the flags before its
own, too, in the only launch. Where there are many items that several algorithms and dtypes have, one launch learns from
blocks before what they counted, and reads memory once; so it goes for operators that capture arrays, since these may
update them, and so see each item once (`compact_once.py`).
"""

from collections.abc import Callable, Iterator
from typing import Any

import cutile as ct
from cutile.compute.algorithm import is_wide, kernels_for, position, power_below
from cutile.compute.blocks import put_one
from cutile.compute.compact_once import compact_once, pays
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.overlaps import check_apart
from cutile.compute.places import Room, check_places
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.splits import (
    Split,
    Work,
    check_counter,
    counts_in,
    flags_as_numbers,
    lanes_width,
    ranked,
    total,
)
from cutile.compute.value_types import Number

HOST_TILE = 4096  # items of a tile in host memory
TILE = 2048  # of one in GPU memory
SMALL = 1024  # of one where there are fewer than MANY items: less code to compile than for more items
ONCE = 1 << 15  # items, of which a block counts those before its own in less time than a launch takes
AHEAD = 4096  # of these at a time
MANY = 1 << 21  # items, of which a block reads the counts of all tiles in more time than a launch takes
FEW = 1024  # items of a tile where lanes store only items with the flag, if few items of the tile have it
SPARSE = 512  # where they always do
GROUP = 16  # tiles that a block counts
BITS = 12  # that hold the number of flags of a tile; those of a group take no more than the other 19
COUNTED = 16384  # bytes of the items that a block counts at a time
GROUPED = 1 << 24  # items, of which enough blocks count groups
COUNTS = 4096  # of groups that are added up at a time


# ------------------------------------------------------------------ kernels


def _in_one_launch(split: Split, source: Any, target: Any, counter: IteratorBase, wide: bool) -> Any:
    """A kernel of which each block counts the flags of all items before its tile, and moves the flagged ones of the
    tile. The last one stores the counts.
    """
    writer, many = counter.writer(), split.counts

    @ct.kernel
    def compact(items: source, out: target, totals: counter.annotation(False), n: position(wide),
                size: ct.Constant[int], ahead: ct.Constant[int], whole: ct.Constant[bool]):
        i = ct.bid(0)
        place, before = Place(i, size, n, whole), ct.astype(i, n.dtype) * size
        values, flags = split.flags(items, place)
        found = tuple(ct.int32(0) for _ in ct.static_iter(range(many)))
        for j in range(ct.astype(ct.cdiv(before, ahead), ct.int32)):
            _, some = split.flags(items, Place(j, ahead, before, False))
            found = tuple(found[k] + total(some[k], ct.int32) for k in ct.static_iter(range(many)))
        ranks = ()
        for k in ct.static_iter(range(many)):
            prefix = ct.astype(found[k], n.dtype)
            ranks = ranks + (ranked(flags[k], n.dtype) + prefix,)
            if i == ct.num_blocks(0) - 1:
                put_one(writer, totals, k, Number(ct.int64), ct.astype(prefix + total(flags[k], n.dtype), ct.int64))
        split.put(items, out, place, values, flags, ranks)

    return compact


def _counted(split: Split, source: Any, wide: bool) -> Any:
    """A kernel of which each block counts the flags of a group of tiles. If a group has several, `within` gets for each
    tile, by BITS, how many the tiles of the group before it have, and how many it has itself; tiles `together` are
    counted at a time.
    """
    many = split.counts

    @ct.kernel(occupancy=16)  # else the loop is unrolled, and few blocks fit a multiprocessor
    def count_flags(items: source, counts: tuple[(ARRAYS[wide],) * many], within: tuple[(ARRAYS[wide],) * many],
                    begin: int, n: position(wide), size: ct.Constant[int], group: ct.Constant[int],
                    together: ct.Constant[int], whole: ct.Constant[bool]):
        i = ct.bid(0) + begin
        if group == 1:
            _, flags = split.flags(items, Place(i, size, n, whole))
            found = tuple(total(flags[k], counts[k].dtype) for k in ct.static_iter(range(many)))
        else:
            found = tuple(ct.int32(0) for _ in ct.static_iter(range(many)))
            at_once = ct.static_eval(size * together)
            steps = group // together if whole else ct.minimum(
                ct.astype(ct.cdiv(n, at_once), ct.int32) - i * group // together, group // together)
            for j in range(steps):
                step = i * (group // together) + j
                _, flags = split.flags(items, Place(step, at_once, n, whole))
                numbers = ct.reshape(flags_as_numbers(flags), (together, size))
                some = counts_in(ct.sum(numbers, axis=1), many)
                for k in ct.static_iter(range(many)):
                    before = ct.cumsum(some[k], axis=0) - some[k] + found[k]
                    ct.store(within[k], (step,), before << BITS | some[k])
                found = tuple(found[k] + ct.sum(some[k]) for k in ct.static_iter(range(many)))
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


def _moved(split: Split, source: Any, target: Any, counter: IteratorBase, wide: bool, every: int) -> Any:
    """A kernel that moves the flagged items of each tile. `counts`: how many stand before each group of tiles; or,
    unless `every` is 0, how many each tile has, of at most `every` tiles, and the last block stores their sum.
    """
    writer, many = counter.writer(), split.counts

    @ct.kernel(occupancy=16 if split.sparse and not every else None)
    def move(items: source, out: target, counts: tuple[(ARRAYS[wide],) * many], within: tuple[(ARRAYS[wide],) * many],
             totals: counter.annotation(False) if every else tuple[()], begin: int, n: position(wide),
             size: ct.Constant[int], group: ct.Constant[int], whole: ct.Constant[bool], width: ct.Constant[int]):
        i = ct.bid(0) + begin
        place = Place(i, size, n, whole)
        values, flags = split.flags(items, place)
        before, here = (), ()
        for k in ct.static_iter(range(many)):
            if every:
                some = ct.load(counts[k], (0,), (every,))
                prefix = ct.astype(ct.sum(ct.where(ct.arange(every, dtype=ct.int32) < i, some, 0)), n.dtype)
                if i == ct.num_blocks(0) - 1:
                    put_one(writer, totals, k, Number(ct.int64), ct.astype(prefix + total(flags[k], n.dtype), ct.int64))
            else:
                prefix = ct.astype(ct.load(counts[k], (i // group,), (1,)).item(), n.dtype)
            if group > 1:
                word = ct.load(within[k], (i,), (1,)).item()
                prefix, here = prefix + (word >> BITS), here + (word & ct.static_eval((1 << BITS) - 1),)
            before = before + (prefix,)
        if width > 1:
            if ct.static_eval(split.sparse):
                split.put_lanes(items, out, place, values, flags, before, width)
                return
            if here[0] <= ct.static_eval(size // 2):
                split.put_lanes(items, out, place, values, flags, before, width)
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
    work = Work(plan, (*key, *(it.kind for it in (*sources, *outs.values(), counter)), wide), split, sources, outs,
                 counter, n, wide)
    _way(work)(work)


def _way(work: Work) -> Callable[[Work], None]:
    """How the items are moved."""
    if work.plan.on_host:
        return _with_three_launches
    if work.plan.captures or pays(work):
        return compact_once
    if work.n <= ONCE and not work.split.loops:
        return _with_one_launch
    return _with_two_launches if work.n < MANY else _with_three_launches


def _with_one_launch(work: Work) -> None:
    plan, n = work.plan, work.n
    kernel = kernels_for(("in one launch", *work.key), _in_one_launch, work.split, *work.annotations(), work.counter,
                         work.wide)
    plan.launch(-(-n // SMALL), kernel, *work.states(), work.counter.state(work.split.counts), n, SMALL, AHEAD,
                n % SMALL == 0)


def _counting(work: Work) -> Any:
    return kernels_for(("count", *work.key), _counted, work.split, work.annotations()[0], work.wide)


def _moving(work: Work, every: int, width: int) -> Any:
    return kernels_for(("move", *work.key, every, width), _moved, work.split, *work.annotations(width), work.counter,
                       work.wide, every)


def _with_two_launches(work: Work) -> None:
    plan, n, many, whole = work.plan, work.n, work.split.counts, work.n % SMALL == 0
    tiles = -(-n // SMALL)
    every = 1 << (max(MANY // SMALL, tiles) - 1).bit_length()  # one number, and so one kernel, for all numbers of items
    counts, within = (tuple(plan.array(k, ct.int32) for _ in range(many)) for k in (tiles, 1))
    plan.launch(tiles, _counting(work), work.states()[0], counts, within, 0, n, SMALL, 1, 1, whole)
    plan.launch(tiles, _moving(work, every, 1), *work.states(), counts, within, work.counter.state(many), 0, n, SMALL,
                1, whole, 1)


def _with_three_launches(work: Work) -> None:
    plan, n, many = work.plan, work.n, work.split.counts
    group = 1 if plan.on_host or n < GROUPED else GROUP
    width = lanes_width(work) if group > 1 else 1
    lanes = SPARSE if work.split.sparse else FEW
    tile = HOST_TILE if plan.on_host else lanes if width > 1 else TILE
    tiles, full = -(-n // tile), n // tile
    dtype = ct.int64 if plan.on_host or work.wide else ct.int32

    def parts(whole: int, every: int) -> Iterator[tuple[int, int, bool]]:
        """How many blocks begin where: those whose items are all there, since masks cost time, and so do arrays of
        sizes that 16 does not divide; and the others.
        """
        yield whole, 0, True
        yield every - whole, whole, False

    counts = tuple(plan.array(-(-tiles // group), dtype) for _ in range(many))
    within = tuple(plan.array(tiles if group > 1 else 1, ct.int32) for _ in range(many))
    sums = tuple(plan.array(1, dtype) for _ in range(many))
    together = min(group, power_below(max(COUNTED // (tile * work.bytes_of_item()), 1), group))
    kernel = _counting(work)
    for blocks, begin, whole in parts(full // group, -(-tiles // group)):
        items, _ = work.states(full // group * group * tile if whole else n)
        plan.launch(blocks, kernel, items, counts, within, begin, n, tile, group, together if whole else 1, whole)
    kernel = kernels_for(("add up", many, work.counter.kind, work.wide), _added_up, many, work.counter, work.wide)
    plan.launch(1, kernel, counts, sums, work.counter.state(many), COUNTS)
    if plan.on_host:
        room = Room(plan, work.outs, n)
        plan.call(_check_room(room, n, many), *sums, *room.states)
    kernel = _moving(work, 0, width)
    for blocks, begin, whole in parts(full, tiles):
        states = work.states(full * tile if whole else n, width)
        plan.launch(blocks, kernel, *states, counts, within, (), begin, n, tile, group, whole, width)


def _check_room(room: Room, n: int, many: int) -> Callable:
    """A function of the counts, of which there are `many`, and what `room` takes."""
    def check(*arrays):
        found = [int(s[0]) for s in arrays[:many]]
        room.check([*found, n - sum(found)] if many > 1 else found * len(room.sizes), arrays[many:])

    return check
