"""three_way_partition: items into three outputs, by two predicates, in their order [SEL-3]."""

import dataclasses
from typing import Any

from cutile.compute.algorithm import allocated, check_apart, check_count
from cutile.compute.compaction import Compaction, Predicate, Split, check_counter, predicate
from cutile.compute.iterators import as_input, as_output
from cutile.compute.operators import operator


@dataclasses.dataclass(frozen=True)
class _Parted(Split):
    reader: Any
    writers: tuple
    first: Predicate
    second: Predicate

    counts = 2

    def flags(self, source, place):
        items, there = self.reader.tile(source[0], place), place.mask()
        first = self.first((items,), there)
        second = self.second((items,), ~first if there is None else there & ~first)
        return items, (first, second)

    def put(self, source, target, place, items, flags, ranks):
        first, second = flags
        self.writers[0].put_at(target[0], ranks[0] - 1, items, first)
        self.writers[1].put_at(target[1], ranks[1] - 1, items, second)
        rest, there = ~(first | second), place.mask()
        position = place.index() - ranks[0] - ranks[1]
        self.writers[2].put_at(target[2], position, items, rest if there is None else there & rest)


class ThreeWayPartition(Compaction):
    outputs = "d_first_part_out", "d_second_part_out", "d_unselected_out"

    def __init__(self, d_in: Any, d_first_part_out: Any, d_second_part_out: Any, d_unselected_out: Any,
                 d_num_selected_out: Any, select_first_part_op: Any, select_second_part_op: Any):
        super().__init__()
        t = self.input("d_in", d_in).value_type
        for name, value in zip(self.outputs, (d_first_part_out, d_second_part_out, d_unselected_out), strict=True):
            self.output(name, value)
        check_counter("d_num_selected_out", self.output("d_num_selected_out", d_num_selected_out), 2)
        for name, op in (("select_first_part_op", select_first_part_op), ("select_second_part_op",
                                                                          select_second_part_op)):
            predicate(name, self.operator(name, op), t)

    def __call__(self, temp_storage: Any, d_in: Any, d_first_part_out: Any, d_second_part_out: Any,
                 d_unselected_out: Any, d_num_selected_out: Any, select_first_part_op: Any, select_second_part_op: Any,
                 num_items: int, stream: Any = None) -> int:
        """Part the items, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        items, counter = self.input("d_in", d_in), self.output("d_num_selected_out", d_num_selected_out)
        outs = {name: self.output(name, value) for name, value in zip(
            self.outputs, (d_first_part_out, d_second_part_out, d_unselected_out), strict=True)}
        first = self.operator("select_first_part_op", select_first_part_op)
        second = self.operator("select_second_part_op", select_second_part_op)
        n = check_count("num_items", num_items, d_in=items)
        check_counter("d_num_selected_out", counter, 2)
        check_apart({**outs, "d_num_selected_out": counter}, {"d_in": items}, n)
        split = _Parted(items.reader(), tuple(out.writer() for out in outs.values()), Predicate(first.function),
                        Predicate(second.function))
        return self.compact(stream, temp_storage, ("partition", first.key, second.key), split, (items,), outs, counter,
                            n)


def make_three_way_partition(d_in: Any, d_first_part_out: Any, d_second_part_out: Any, d_unselected_out: Any,
                             d_num_selected_out: Any, select_first_part_op: Any, select_second_part_op: Any
                             ) -> ThreeWayPartition:
    """An object that parts items; see `three_way_partition`."""
    return ThreeWayPartition(d_in, d_first_part_out, d_second_part_out, d_unselected_out, d_num_selected_out,
                             select_first_part_op, select_second_part_op)


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
    items, counter = as_input(d_in, "d_in"), as_output(d_num_selected_out, "d_num_selected_out")
    outs = tuple(as_output(value, name) for name, value in zip(
        ThreeWayPartition.outputs, (d_first_part_out, d_second_part_out, d_unselected_out), strict=True))
    ops = (operator(select_first_part_op, "select_first_part_op"), operator(select_second_part_op,
                                                                            "select_second_part_op"))
    part = ThreeWayPartition(items, *outs, counter, *ops)
    storage = allocated(part(None, items, *outs, counter, *ops, num_items), stream, items, *outs, counter)
    part(storage, items, *outs, counter, *ops, num_items, stream)
