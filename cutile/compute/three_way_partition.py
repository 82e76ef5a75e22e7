"""three_way_partition: items into three outputs, by two predicates, in their order [SEL-3]."""

import dataclasses
from typing import Any

import cutile as ct
from cutile.compute import host_compaction
from cutile.compute.algorithm import Algorithm
from cutile.compute.compaction import compact
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.operator_errors import check_stored
from cutile.compute.operators import Operator
from cutile.compute.places import check_items
from cutile.compute.plans import Plan
from cutile.compute.roles import COUNT, INPUT, OPERATOR, OUTPUT
from cutile.compute.splits import Predicate, Split, check_counter, marked, predicate, put_marked
from cutile.compute.value_types import ValueType


@dataclasses.dataclass(frozen=True)
class _Parted(Split):
    reader: Any
    writers: tuple
    first: Predicate
    second: Predicate
    type: ValueType

    counts = 2
    sparse = True

    @property
    def loops(self):
        return self.first.loops or self.second.loops

    def flags(self, source, place):
        items, there = self.reader.tile(source[0], place), place.mask()
        first = self.first((items,), there)
        second = self.second((items,), ~first if there is None else there & ~first)
        return items, (first, second)

    def put(self, source, target, place, items, flags, ranks):
        first, second = flags
        self.writers[0].put_at(target[0][0], ranks[0] - 1, items, first)
        self.writers[1].put_at(target[1][0], ranks[1] - 1, items, second)
        rest, there = ~(first | second), place.mask()
        position = place.index() - ranks[0] - ranks[1]
        self.writers[2].put_at(target[2][0], position, items, rest if there is None else there & rest)

    def put_lanes(self, source, target, place, items, flags, before, width):
        rest, there = ~(flags[0] | flags[1]), place.mask()
        one, two = marked(flags[0], width), marked(flags[1], width)
        left = marked(rest if there is None else there & rest, width)
        both = one.many | two.many << 16  # a tile has fewer items
        both = ct.cumsum(both, axis=0) - both
        dtype = before[0].dtype
        first, second = before[0] + ct.astype(both & 0xFFFF, dtype), before[1] + ct.astype(both >> 16, dtype)
        lanes = ct.static_eval(place.size // width)
        third = ct.astype(place.i, dtype) * place.size + ct.arange(lanes, dtype=dtype) * width - first - second
        put_marked(self.writers[0], target[0], self.type, items, one, first)
        put_marked(self.writers[1], target[1], self.type, items, two, second)
        put_marked(self.writers[2], target[2], self.type, items, left, third)


class ThreeWayPartition(Algorithm):
    takes = {"d_in": INPUT, "d_first_part_out": OUTPUT, "d_second_part_out": OUTPUT, "d_unselected_out": OUTPUT,
             "d_num_selected_out": OUTPUT, "select_first_part_op": OPERATOR, "select_second_part_op": OPERATOR,
             "num_items": COUNT}

    def __call__(self, temp_storage: Any, d_in: Any, d_first_part_out: Any, d_second_part_out: Any,
                 d_unselected_out: Any, d_num_selected_out: Any, select_first_part_op: Any, select_second_part_op: Any,
                 num_items: int, stream: Any = None) -> int:
        """Part the items, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        return self.run(temp_storage, stream, d_in, d_first_part_out, d_second_part_out, d_unselected_out,
                        d_num_selected_out, select_first_part_op, select_second_part_op, num_items)

    def check(self, d_in: IteratorBase, d_first_part_out: IteratorBase, d_second_part_out: IteratorBase,
              d_unselected_out: IteratorBase, d_num_selected_out: IteratorBase, select_first_part_op: Operator,
              select_second_part_op: Operator) -> None:
        check_counter("d_num_selected_out", d_num_selected_out, 2)
        predicate("select_first_part_op", select_first_part_op, d_in.value_type)
        predicate("select_second_part_op", select_second_part_op, d_in.value_type)
        check_stored(d_in.value_type, d_first_part_out=d_first_part_out, d_second_part_out=d_second_part_out,
                     d_unselected_out=d_unselected_out)

    def plan(self, plan: Plan, items: IteratorBase, first: IteratorBase, second: IteratorBase, rest: IteratorBase,
             counts: IteratorBase, one: Operator, two: Operator, n: int) -> None:
        check_items(plan, "num_items", n, d_in=items)
        self.check(items, first, second, rest, counts, one, two)
        outs = {"d_first_part_out": first, "d_second_part_out": second, "d_unselected_out": rest}
        if host_compaction.part(plan, items, {**outs, "d_num_selected_out": counts}, one, two, n):
            return
        t = items.value_type
        split = _Parted(items.reader(), tuple(out.writer() for out in outs.values()),
                        predicate("select_first_part_op", one, t), predicate("select_second_part_op", two, t), t)
        compact(plan, ("partition", one.key, two.key), split, {"d_in": items}, outs, ("d_num_selected_out", counts), n)


def make_three_way_partition(d_in: Any, d_first_part_out: Any, d_second_part_out: Any, d_unselected_out: Any,
                             d_num_selected_out: Any, select_first_part_op: Any, select_second_part_op: Any,
                             compute_capability: Any = None) -> ThreeWayPartition:
    """An object that partitions items, for arguments of the same kinds.

    Parameters
    ----------
    d_in, d_first_part_out, d_second_part_out, d_unselected_out, d_num_selected_out
    select_first_part_op, select_second_part_op
        As in `three_way_partition`; arrays may be `ProxyArray`.
    compute_capability : optional
        The GPUs that it may run on: 90, (9, 0), "9.0", "90", or a list of these. None: all.

    Returns
    -------
    object
        Call it with `temp_storage, …these seven…, num_items, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `three_way_partition` does; a call with another kind of argument, or another operator, is a TypeError.

    Examples
    --------
    >>> x, counts = np.array([5, -2, 0, 7]), np.zeros(2, int)
    >>> parts = [np.zeros(4, int) for _ in range(3)]
    >>> args = x, *parts, counts, lambda v: v > 0, lambda v: v < 0
    >>> partition = ct.compute.make_three_way_partition(*args)
    >>> storage = np.empty(partition(None, *args, 4), np.uint8)
    >>> nbytes = partition(storage, *args, 4)
    >>> parts[0][:counts[0]], parts[1][:counts[1]]
    (array([5, 7]), array([-2]))
    """
    return ThreeWayPartition(
        (), compute_capability, d_in=d_in, d_first_part_out=d_first_part_out, d_second_part_out=d_second_part_out,
        d_unselected_out=d_unselected_out, d_num_selected_out=d_num_selected_out,
        select_first_part_op=select_first_part_op, select_second_part_op=select_second_part_op)


def three_way_partition(d_in: Any, d_first_part_out: Any, d_second_part_out: Any, d_unselected_out: Any,
                        d_num_selected_out: Any, select_first_part_op: Any, select_second_part_op: Any, num_items: int,
                        stream: Any = None) -> None:
    """Part items by two predicates into three outputs, in their order.

    Parameters
    ----------
    d_in : array or iterator
        The items.
    d_first_part_out, d_second_part_out, d_unselected_out : array or iterator
        Items of which the first predicate is true; those of which else the second one is; all others. They have room
        for their items.
    d_num_selected_out : array or iterator of integers
        Items 0 and 1 become the numbers of items in the first two outputs.
    select_first_part_op, select_second_part_op : callable or OpKind
        Functions of an item; any result but zero is true. The second is asked only where the first is false.
    num_items : int
        How many items of `d_in` there are; 2^31 and more are supported.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If a predicate gives no number, or counts cannot be stored in `d_num_selected_out`.
    ValueError
        If `d_in` has fewer items, or an output shares memory with another operand.
    TileValueError
        If all is in host memory, and an output has no room for its items.

    Notes
    -----
    [SEL-3.parts] [SEL-3.second] [SEL-4.true]

    Examples
    --------
    >>> x = np.array([3, -1, 40, 0, 5], np.int32)
    >>> small, large, rest = (np.zeros_like(x) for _ in range(3))
    >>> counts = np.zeros(2, np.int64)
    >>> ct.compute.three_way_partition(x, small, large, rest, counts, lambda v: v < 1, lambda v: v > 9, len(x))
    >>> small[:counts[0]], large[:counts[1]], rest[:len(x) - counts.sum()]
    (array([-1,  0], dtype=int32), array([40], dtype=int32), array([3, 5], dtype=int32))
    """
    ThreeWayPartition.once((), stream, d_in, d_first_part_out, d_second_part_out, d_unselected_out, d_num_selected_out,
                           select_first_part_op, select_second_part_op, num_items)
