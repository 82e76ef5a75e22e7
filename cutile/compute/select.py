"""select: the items of which a predicate is true, in their order [SEL-1]."""

import dataclasses
from typing import Any

from cutile.compute.algorithm import allocated, check_apart, check_count
from cutile.compute.compaction import Compaction, Predicate, Split, check_counter, predicate
from cutile.compute.iterators import as_input, as_output
from cutile.compute.operators import operator


@dataclasses.dataclass(frozen=True)
class _Selected(Split):
    reader: Any
    writer: Any
    cond: Predicate

    def flags(self, source, place):
        items = self.reader.tile(source[0], place)
        return items, (self.cond((items,), place.mask()),)

    def put(self, source, target, place, items, flags, ranks):
        self.writer.put_at(target[0], ranks[0] - 1, items, flags[0])


class Select(Compaction):
    def __init__(self, d_in: Any, d_out: Any, d_num_selected_out: Any, cond: Any):
        super().__init__()
        items = self.input("d_in", d_in)
        self.output("d_out", d_out)
        check_counter("d_num_selected_out", self.output("d_num_selected_out", d_num_selected_out), 1)
        self.predicate = predicate("cond", self.operator("cond", cond), items.value_type)

    def __call__(self, temp_storage: Any, d_in: Any, d_out: Any, d_num_selected_out: Any, cond: Any, num_items: int,
                 stream: Any = None) -> int:
        """Select, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        items, out, counter = (self.input("d_in", d_in), self.output("d_out", d_out),
                               self.output("d_num_selected_out", d_num_selected_out))
        op, n = self.operator("cond", cond), check_count("num_items", num_items, d_in=items)
        check_counter("d_num_selected_out", counter, 1)
        check_apart({"d_out": out, "d_num_selected_out": counter}, {"d_in": items}, n)
        split = _Selected(items.reader(), out.writer(), Predicate(op.function))
        return self.compact(stream, temp_storage, ("select", op.key), split, (items,), {"d_out": out}, counter, n)


def make_select(d_in: Any, d_out: Any, d_num_selected_out: Any, cond: Any) -> Select:
    """An object that selects items; see `select`."""
    return Select(d_in, d_out, d_num_selected_out, cond)


def select(d_in: Any, d_out: Any, d_num_selected_out: Any, cond: Any, num_items: int, stream: Any = None) -> None:
    """Copy the items of which a predicate is true, in their order.

    Parameters
    ----------
    d_in : array or iterator
        The items.
    d_out : array or iterator
        They go to its front. It has room for them; what stands behind them stays.
    d_num_selected_out : array or iterator of integers
        Item 0 becomes their number.
    cond : callable or OpKind
        A function of an item; any result but zero is true.
    num_items : int
        How many items of `d_in` there are; 2^31 and more are supported.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If the predicate gives no number, or counts cannot be stored in `d_num_selected_out`.
    ValueError
        If `d_in` has fewer items, or an output shares memory with another operand.
    TileValueError
        If all is in host memory, and `d_out` has no room for the items.

    Notes
    -----
    [SEL-1.order] [SEL-2.count] [SEL-4.true]

    Examples
    --------
    >>> x = np.array([3, -1, 4, -1, 5], np.int32)
    >>> y, count = np.zeros_like(x), np.zeros(1, np.int64)
    >>> ct.compute.select(x, y, count, lambda v: v > 0, len(x))
    >>> y[:count[0]]
    array([3, 4, 5], dtype=int32)
    """
    items, out, counter = as_input(d_in, "d_in"), as_output(d_out, "d_out"), as_output(d_num_selected_out,
                                                                                       "d_num_selected_out")
    op = operator(cond, "cond")
    selector = Select(items, out, counter, op)
    storage = allocated(selector(None, items, out, counter, op, num_items), stream, items, out)
    selector(storage, items, out, counter, op, num_items, stream)
