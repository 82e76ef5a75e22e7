"""What select, three_way_partition and unique_by_key say of items: which flags they have, and where they go."""

import dataclasses
from typing import Any, NamedTuple

import cutile as ct
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.operators import Operator
from cutile.compute.plans import Plan
from cutile.compute.results import result_of
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import info

LANE = 4  # most items of a lane: with more, it takes too long to find its first one with a flag, its second one, …


class Split:
    """Tile code of an algorithm; a frozen dataclass.

    counts  how many flags an item has
    loops   whether its operators have loops, so that items are not looked at more often than they must
    sparse  whether lanes always store only items that have a flag, even where most items of a tile have it

    flags(source, place)      the items at a place, as `put` takes them, and the tiles of their flags, which are false
                              beyond the last item
    put(source, target, place, items, flags, ranks)
                              stores the items. `ranks`: for each flag, how many items up to this one have it
    put_lanes(source, target, place, items, flags, before, width)
                              stores the items, of which a lane has `width` beside each other. It stores the first one
                              that has a flag, then the second one, …, each through an array of its own of those that
                              `target` has for an output. `before`: how many items before the tile have it
    """

    counts = 1
    loops = False
    sparse = False


class Front(Split):
    """One whose flagged items go to the front of one or several outputs; `writers` are those of the outputs.

    types                     the types of what goes to each
    stored(source, place, items)   what goes to each
    """

    def put(self, source, target, place, items, flags, ranks):
        values = self.stored(source, place, items)
        for k in ct.static_iter(range(len(self.writers))):
            self.writers[k].put_at(target[k][0], ranks[0] - 1, values[k], flags[0])

    def put_lanes(self, source, target, place, items, flags, before, width):
        values, marks = self.stored(source, place, items), marked(flags[0], width)
        first = ct.astype(ct.cumsum(marks.many, axis=0) - marks.many, before[0].dtype) + before[0]
        for k in ct.static_iter(range(len(self.writers))):
            put_marked(self.writers[k], target[k], self.types[k], values[k], marks, first)


@dataclasses.dataclass(frozen=True)
class Predicate:
    """An operator whose result is true where it is not zero [SEL-4]."""

    op: Any
    loops: bool

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
    """That of keys of type `t`."""
    return Begins(equal, t, 1 if on_host else items_of_lane(t))


def items_of_lane(t: ValueType) -> int:
    """How many items beside each other a lane loads at a time: at most 16 bytes."""
    return max(min(16 * 8 // max(d.bitwidth for d in t.dtypes), LANE), 1)


def predicate(argument: str, op: Operator, *types: ValueType) -> Predicate:
    """An operator as a predicate of items of these types; TypeError if it gives no number."""
    result = result_of(op, *types, argument=argument)
    if not isinstance(result.type, Number):
        raise TypeError(f"argument `{argument}`: a predicate returns a truth value, and this one returns {result.type}")
    return Predicate(op.function, result.loops)


def check_counter(argument: str, out: IteratorBase, least: int) -> None:
    """TypeError if counts cannot be stored there, ValueError if there is no room for them."""
    t = out.value_type
    if not isinstance(t, Number) or not info(t.dtype).integral:
        raise TypeError(f"argument `{argument}`: counts are integers, and this has items of {t}")
    size = out.size()
    if size is not None and size < least:
        raise ValueError(f"argument `{argument}` has {size} items, and {least} are needed")


class Work(NamedTuple):
    """What `compact` is to do."""

    plan: Plan
    key: tuple
    split: Split
    sources: tuple[IteratorBase, ...]
    outs: dict[str, IteratorBase]
    counter: IteratorBase
    n: int
    wide: bool

    def bytes_of_item(self) -> int:
        """Of what it reads for an item."""
        return sum(info(d).storage.itemsize for it in self.sources for d in it.value_type.dtypes)

    def annotations(self, stores: int = 1) -> tuple[Any, Any]:
        """Of the sources, and of the outputs, each of which is passed as often as `stores` says: see `states`."""
        sources, outs = ([it.annotation(self.wide) for it in group] for group in (self.sources, self.outs.values()))
        return tuple[tuple(sources)], tuple[tuple(tuple[(out,) * stores] for out in outs)]

    def states(self, n: int | None = None, stores: int = 1) -> tuple[tuple, tuple]:
        """Of the first n items of the sources, of all without it; and of the outputs.

        Stores to one array are done one after the other, for which the threads of a block wait for each other. Lanes
        store their first, second, … items, which are never the same, to arrays of which the compiler knows no order:
        each output is passed once for each of these `stores`.
        """
        n = self.n if n is None else n
        return (tuple(it.state(n) for it in self.sources),
                tuple((it.state(None),) * stores for it in self.outs.values()))


def lanes_width(work: Work) -> int:
    """How many items beside each other a lane loads at a time, if it may store only those with a flag; else 1."""
    t = work.sources[0].value_type
    if not hasattr(work.split, "put_lanes") or is_short(t) and not work.split.sparse:
        return 1
    return items_of_lane(t)


def is_short(t: ValueType) -> bool:
    """Whether a number of an item has less than 32 bits."""
    return min(d.bitwidth for d in t.dtypes) < 32


# ------------------------------------------------------------------ tile code


def _moved_on(heads, items, rows, width):
    """Each row of items moved on by one, behind an item of `heads`."""
    if width == 1:
        return heads
    table = ct.reshape(items, (rows, width))
    columns = tuple(ct.extract(table, (0, c), (rows, 1)) for c in ct.static_iter(range(width - 1)))
    return ct.reshape(_beside((ct.reshape(heads, (rows, 1)), *columns)), items.shape)


def columns_of(items, width):
    """The items that each lane has first, those that it has second, …."""
    rows = ct.static_eval(items.shape[0] // width)
    table = ct.reshape(items, (rows, width))
    return tuple(ct.reshape(ct.extract(table, (0, c), (rows, 1)), (rows,)) for c in ct.static_iter(range(width)))


def _nth(columns, marks, n):
    """Of each lane the item before which n are marked, and which is marked too; anything if there is none."""
    found = columns[-1]
    for j in ct.static_iter(range(n, len(columns) - 1)):
        found = ct.where(marks.columns[j] & (marks.ranks[j] == n), columns[j], found)
    return found


def _beside(columns):
    """A table of columns, as many as a power of two."""
    if len(columns) == 1:
        return columns[0]
    half = ct.static_eval(len(columns) // 2)
    return ct.cat((_beside(columns[:half]), _beside(columns[half:])), 1)


@dataclasses.dataclass(frozen=True)
class Marks:
    """Which items of lanes are marked: `columns` has those that lanes have first, those that they have second, ….
    `ranks`: for each column, how many of the lane's items before are marked; `many`: how many are in all.
    """

    columns: Any
    ranks: Any
    many: Any


def marked(flag, width):
    """The items that have the flag as marks of lanes, which have `width` items each."""
    columns = columns_of(flag, width)
    many, ranks = ct.zeros(columns[0].shape, ct.int32), ()
    for c in ct.static_iter(range(width)):
        ranks = ranks + (many,)
        many = many + ct.astype(columns[c], ct.int32)
    return Marks(columns, ranks, many)


def put_marked(writer, states, type, value, marks, first):
    """Stores the marked items of lanes, those of a lane from position `first` on. In a store that lanes do together
    each one has its first marked item, or each its second one, …. `states`: the output, for each of these stores.
    """
    width = ct.static_eval(len(marks.columns))
    for c in ct.static_iter(range(width)):
        some = tuple(_nth(columns_of(x, width), marks, c) for x in ct.static_iter(type.flat(value)))
        writer.put_at(states[c], first + c, type.nest(some), marks.many > c)


def ranked(flags, dtype):
    """For each item the number of items up to it that have the flag."""
    return ct.astype(ct.cumsum(ct.astype(flags, ct.int32), axis=0), dtype)


def flags_as_numbers(flags):
    """One or two flags of each item as a number, of which `counts_in` reads a sum: of fewer than 2^16 items."""
    first = ct.astype(flags[0], ct.int32)
    return first if len(flags) == 1 else first | ct.astype(flags[1], ct.int32) << 16


def counts_in(numbers, many):
    """How many items have each of `many` flags."""
    return (numbers,) if many == 1 else (numbers & 0xFFFF, numbers >> 16)


def total(flags, dtype):
    return ct.astype(ct.sum(ct.astype(flags, ct.int32)), dtype)
