"""unique_by_key: of each run of equal keys the first one, and its item [SEL-5]."""

import dataclasses
from typing import Any

from cutile.compute import host_runs
from cutile.compute.algorithm import Algorithm
from cutile.compute.compaction import compact
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.operator_errors import check_stored
from cutile.compute.operators import Operator
from cutile.compute.places import check_items
from cutile.compute.plans import Plan
from cutile.compute.roles import COUNT, INPUT, OPERATOR, OUTPUT
from cutile.compute.splits import Begins, Front, begins, check_counter, is_short, predicate


@dataclasses.dataclass(frozen=True)
class _Heads(Front):
    """An item has a flag where its key begins a run."""

    keys: Any
    items: Any
    writers: tuple
    types: tuple
    begins: Begins
    sparse: bool

    @property
    def loops(self):
        return self.begins.equal.loops

    def flags(self, source, place):
        keys = self.keys.tile(source[0], place)
        return keys, (self.begins(self.keys, source[0], place, keys),)

    def stored(self, source, place, keys):
        return keys, self.items.tile(source[1], place)


class UniqueByKey(Algorithm):
    takes = {"d_in_keys": INPUT, "d_in_items": INPUT, "d_out_keys": OUTPUT, "d_out_items": OUTPUT,
             "d_out_num_selected": OUTPUT, "op": OPERATOR, "num_items": COUNT}

    def __call__(self, temp_storage: Any, d_in_keys: Any, d_in_items: Any, d_out_keys: Any, d_out_items: Any,
                 d_out_num_selected: Any, op: Any, num_items: int, stream: Any = None) -> int:
        """Keep the first of each run, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        return self.run(temp_storage, stream, d_in_keys, d_in_items, d_out_keys, d_out_items, d_out_num_selected, op,
                        num_items)

    def check(self, d_in_keys: IteratorBase, d_in_items: IteratorBase, d_out_keys: IteratorBase,
              d_out_items: IteratorBase, d_out_num_selected: IteratorBase, op: Operator) -> None:
        check_counter("d_out_num_selected", d_out_num_selected, 1)
        check_stored(d_in_keys.value_type, d_out_keys=d_out_keys)
        check_stored(d_in_items.value_type, d_out_items=d_out_items)
        predicate("op", op, d_in_keys.value_type, d_in_keys.value_type)

    def plan(self, plan: Plan, keys: IteratorBase, items: IteratorBase, out_keys: IteratorBase, out_items: IteratorBase,
             count: IteratorBase, op: Operator, n: int) -> None:
        check_items(plan, "num_items", n, d_in_keys=keys, d_in_items=items)
        outs = {"d_out_keys": out_keys, "d_out_items": out_items, "d_out_num_selected": count}
        self.check(keys, items, out_keys, out_items, count, op)
        equal = predicate("op", op, keys.value_type, keys.value_type)
        if host_runs.keep_first(plan, keys, items, outs, op, n):
            return
        split = _Heads(keys.reader(), items.reader(), (out_keys.writer(), out_items.writer()),
                       (keys.value_type, items.value_type), begins(equal, keys.value_type, plan.on_host),
                       is_short(keys.value_type))
        compact(plan, ("unique", op.key), split, {"d_in_keys": keys, "d_in_items": items},
                {"d_out_keys": out_keys, "d_out_items": out_items}, ("d_out_num_selected", count), n)


def make_unique_by_key(d_in_keys: Any, d_in_items: Any, d_out_keys: Any, d_out_items: Any, d_out_num_selected: Any,
                       op: Any, compute_capability: Any = None) -> UniqueByKey:
    """An object that keeps the first of each run of equal keys, for arguments of the same kinds.

    Parameters
    ----------
    d_in_keys, d_in_items, d_out_keys, d_out_items, d_out_num_selected, op
        As in `unique_by_key`; arrays may be `ProxyArray`.
    compute_capability : optional
        The GPUs that it may run on: 90, (9, 0), "9.0", "90", or a list of these. None: all.

    Returns
    -------
    object
        Call it with `temp_storage, …these six…, num_items, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `unique_by_key` does; a call with another kind of argument, or another operator, is a TypeError.

    Examples
    --------
    >>> keys, items, count = np.array([7, 7, 2]), np.arange(3), np.zeros(1, int)
    >>> args = keys, items, np.zeros(3, int), np.zeros(3, int), count, ct.compute.OpKind.EQUAL_TO
    >>> unique = ct.compute.make_unique_by_key(*args)
    >>> storage = np.empty(unique(None, *args, 3), np.uint8)
    >>> nbytes = unique(storage, *args, 3)
    >>> args[2][:count[0]], args[3][:count[0]]
    (array([7, 2]), array([0, 2]))
    """
    return UniqueByKey((), compute_capability, d_in_keys=d_in_keys, d_in_items=d_in_items, d_out_keys=d_out_keys,
                       d_out_items=d_out_items, d_out_num_selected=d_out_num_selected, op=op)


def unique_by_key(d_in_keys: Any, d_in_items: Any, d_out_keys: Any, d_out_items: Any, d_out_num_selected: Any, op: Any,
                  num_items: int, stream: Any = None) -> None:
    """Copy the first key of each run of equal keys, and its item, in their order.

    Parameters
    ----------
    d_in_keys, d_in_items : array or iterator
        The keys, and an item for each.
    d_out_keys, d_out_items : array or iterator
        The first ones of each run go to their fronts. They have room for them; what stands behind them stays.
    d_out_num_selected : array or iterator of integers
        Item 0 becomes the number of runs.
    op : callable or OpKind
        op(a, b) says whether two neighbours are equal, of which a is the earlier one; any result but zero is true.
    num_items : int
        How many keys there are; 2^31 and more are supported.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If the operator gives no number, or counts cannot be stored in `d_out_num_selected`.
    ValueError
        If an input has fewer items, or an output shares memory with another operand.
    TileValueError
        If all is in host memory, and an output has no room for its items.

    Notes
    -----
    [SEL-5.first] [SEL-5.neighbours] [SEL-4.true]

    Examples
    --------
    >>> keys, items = np.array([7, 7, 2, 2, 7], np.int32), np.arange(5)
    >>> some_keys, some_items, count = np.zeros_like(keys), np.zeros_like(items), np.zeros(1, np.int64)
    >>> ct.compute.unique_by_key(keys, items, some_keys, some_items, count, lambda a, b: a == b, len(keys))
    >>> some_keys[:count[0]], some_items[:count[0]]
    (array([7, 2, 7], dtype=int32), array([0, 2, 4]))
    """
    UniqueByKey.once((), stream, d_in_keys, d_in_items, d_out_keys, d_out_items, d_out_num_selected, op, num_items)
