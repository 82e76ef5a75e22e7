"""select: the items of which a predicate is true, in their order [SEL-1]."""

import dataclasses
from typing import Any

from cutile.compute import host_compaction
from cutile.compute.algorithm import Algorithm
from cutile.compute.compaction import compact
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.operator_errors import check_stored
from cutile.compute.operators import Operator
from cutile.compute.places import check_items
from cutile.compute.plans import Plan
from cutile.compute.roles import COUNT, INPUT, OPERATOR, OUTPUT
from cutile.compute.splits import Front, Predicate, check_counter, predicate


@dataclasses.dataclass(frozen=True)
class _Selected(Front):
    reader: Any
    writers: tuple
    types: tuple
    cond: Predicate

    @property
    def loops(self):
        return self.cond.loops

    def flags(self, source, place):
        items = self.reader.tile(source[0], place)
        return items, (self.cond((items,), place.mask()),)

    def stored(self, source, place, items):
        return (items,)


class Select(Algorithm):
    takes = {"d_in": INPUT, "d_out": OUTPUT, "d_num_selected_out": OUTPUT, "cond": OPERATOR, "num_items": COUNT}

    def __call__(self, temp_storage: Any, d_in: Any, d_out: Any, d_num_selected_out: Any, cond: Any, num_items: int,
                 stream: Any = None) -> int:
        """Select, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        return self.run(temp_storage, stream, d_in, d_out, d_num_selected_out, cond, num_items)

    def check(self, d_in: IteratorBase, d_out: IteratorBase, d_num_selected_out: IteratorBase, cond: Operator) -> None:
        check_counter("d_num_selected_out", d_num_selected_out, 1)
        predicate("cond", cond, d_in.value_type)
        check_stored(d_in.value_type, d_out=d_out)

    def plan(self, plan: Plan, items: IteratorBase, out: IteratorBase, count: IteratorBase, cond: Operator, n: int
             ) -> None:
        check_items(plan, "num_items", n, d_in=items)
        self.check(items, out, count, cond)
        if host_compaction.select(plan, items, {"d_out": out, "d_num_selected_out": count}, cond, n):
            return
        t = items.value_type
        split = _Selected(items.reader(), (out.writer(),), (t,), predicate("cond", cond, t))
        compact(plan, ("select", cond.key), split, {"d_in": items}, {"d_out": out}, ("d_num_selected_out", count), n)


def make_select(d_in: Any, d_out: Any, d_num_selected_out: Any, cond: Any, compute_capability: Any = None) -> Select:
    """An object that selects items, for arguments of the same kinds.

    Parameters
    ----------
    d_in, d_out, d_num_selected_out, cond
        As in `select`; arrays may be `ProxyArray`.
    compute_capability : optional
        The GPUs that it may run on: 90, (9, 0), "9.0", "90", or a list of these. None: all.

    Returns
    -------
    object
        Call it with `temp_storage, d_in, d_out, d_num_selected_out, cond, num_items, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `select` does; a call with another kind of argument, or another operator, is a TypeError.

    Examples
    --------
    >>> x, out, count = np.array([4, -1, 7]), np.zeros(3, int), np.zeros(1, int)
    >>> positive = lambda v: v > 0
    >>> select = ct.compute.make_select(x, out, count, positive)
    >>> storage = np.empty(select(None, x, out, count, positive, 3), np.uint8)
    >>> nbytes = select(storage, x, out, count, positive, 3)
    >>> out[:count[0]]
    array([4, 7])
    """
    return Select((), compute_capability, d_in=d_in, d_out=d_out, d_num_selected_out=d_num_selected_out, cond=cond)


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
    Select.once((), stream, d_in, d_out, d_num_selected_out, cond, num_items)
