"""unique_by_key: of each run of equal keys the first one, and its item [SEL-5]."""

import dataclasses
from typing import Any

import cutile as ct
from cutile.compute.algorithm import allocated, check_apart, check_count
from cutile.compute.compaction import Compaction, Predicate, Split, check_counter, predicate
from cutile.compute.iterators import as_input, as_output
from cutile.compute.operators import operator


@dataclasses.dataclass(frozen=True)
class _Heads(Split):
    """Item k is a pair of neighbours, k and k + 1; it has a flag where the second begins a run. The first item of all
    begins one, too.
    """

    keys: Any
    items: Any
    out_keys: Any
    out_items: Any
    equal: Predicate

    def flags(self, source, place):
        earlier, key = self.keys.tile(source[0], place), self.keys.tile(source[1], place)
        there, equal = place.mask(), self.equal((earlier, key), place.mask())
        return key, (~equal if there is None else there & ~equal,)

    def put(self, source, target, place, keys, flags, ranks):
        self.out_keys.put_at(target[0], ranks[0] - 1, keys, flags[0])
        self.out_items.put_at(target[1], ranks[0] - 1, self.items.tile(source[3], place), flags[0])
        at, first = ct.zeros((1,), ct.int32), ct.full((1,), place.i == 0, ct.bool_)
        self.out_keys.put_at(target[0], at, self.keys.at(source[0], at, first), first)
        self.out_items.put_at(target[1], at, self.items.at(source[2], at, first), first)


class UniqueByKey(Compaction):
    def __init__(self, d_in_keys: Any, d_in_items: Any, d_out_keys: Any, d_out_items: Any, d_out_num_selected: Any,
                 op: Any):
        super().__init__()
        t = self.input("d_in_keys", d_in_keys).value_type
        self.input("d_in_items", d_in_items)
        self.output("d_out_keys", d_out_keys)
        self.output("d_out_items", d_out_items)
        check_counter("d_out_num_selected", self.output("d_out_num_selected", d_out_num_selected), 1)
        predicate("op", self.operator("op", op), t, t)

    def __call__(self, temp_storage: Any, d_in_keys: Any, d_in_items: Any, d_out_keys: Any, d_out_items: Any,
                 d_out_num_selected: Any, op: Any, num_items: int, stream: Any = None) -> int:
        """Keep the first of each run, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        keys, items = self.input("d_in_keys", d_in_keys), self.input("d_in_items", d_in_items)
        outs = {"d_out_keys": self.output("d_out_keys", d_out_keys),
                "d_out_items": self.output("d_out_items", d_out_items)}
        counter, f = self.output("d_out_num_selected", d_out_num_selected), self.operator("op", op)
        n = check_count("num_items", num_items, d_in_keys=keys, d_in_items=items)
        check_counter("d_out_num_selected", counter, 1)
        check_apart({**outs, "d_out_num_selected": counter}, {"d_in_keys": keys, "d_in_items": items}, n)
        split = _Heads(keys.reader(), items.reader(), *(out.writer() for out in outs.values()), Predicate(f.function))
        first = min(n, 1)
        return self.compact(stream, temp_storage, ("unique", f.key), split, (keys, keys + first, items, items + first),
                            outs, counter, n - first, first)


def make_unique_by_key(d_in_keys: Any, d_in_items: Any, d_out_keys: Any, d_out_items: Any, d_out_num_selected: Any,
                       op: Any) -> UniqueByKey:
    """An object that keeps the first of each run of equal keys; see `unique_by_key`."""
    return UniqueByKey(d_in_keys, d_in_items, d_out_keys, d_out_items, d_out_num_selected, op)


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
    keys, items = as_input(d_in_keys, "d_in_keys"), as_input(d_in_items, "d_in_items")
    outs = (as_output(d_out_keys, "d_out_keys"), as_output(d_out_items, "d_out_items"),
            as_output(d_out_num_selected, "d_out_num_selected"))
    f = operator(op)
    unique = UniqueByKey(keys, items, *outs, f)
    storage = allocated(unique(None, keys, items, *outs, f, num_items), stream, keys, items, *outs)
    unique(storage, keys, items, *outs, f, num_items, stream)
