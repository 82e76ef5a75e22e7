"""reduce_by_key: the values of each run of equal keys into one.

It is an inclusive scan of pairs, of a number that is 1 where a run begins, and of a value: the numbers add up to how
many runs began, and a value is combined with those before it in its run. What the scan gives is written only where a
run ends, at the position of that run. In host memory operators of the language take less (`host_runs`).
"""

import dataclasses
from typing import Any

import cutile as ct
from cutile.compute import host_runs
from cutile.compute.algorithm import is_wide
from cutile.compute.blocks import put_one
from cutile.compute.compaction import nothing_kernel
from cutile.compute.host_segments import InSegments
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.operator_errors import check_stored
from cutile.compute.operators import Operator, OpKind
from cutile.compute.overlaps import check_apart
from cutile.compute.places import check_items, check_places
from cutile.compute.plans import Plan
from cutile.compute.results import result_of
from cutile.compute.roles import COUNT, INPUT, OPERATOR, OUTPUT, with_default
from cutile.compute.scan import Scan
from cutile.compute.splits import Begins, begins, check_counter, predicate
from cutile.compute.value_types import Number, ValueType, tuple_of


@dataclasses.dataclass(frozen=True)
class _Tagged:
    """Reads pairs: 1 where a run begins and 0 elsewhere, and the value."""

    keys: Any
    values: Any
    begins: Begins
    type: Any

    def tile(self, state, place):
        keys = self.keys.tile(state[0], place)
        return self.type.cast((self.begins(self.keys, state[0], place, keys), self.values.tile(state[1], place)))


@dataclasses.dataclass(frozen=True)
class _AtEnds:
    """Writes what the scan gives where runs end, and keys where they begin."""

    keys: Any
    begins: Begins
    out_keys: Any
    out_values: Any
    counter: Any
    number: Any

    def put(self, state, place, scanned):
        index, runs, keys = place.index(), scanned[0], self.keys.tile(state[0], place)
        last, inner = index == place.n - 1, index < place.n - 1
        equal = self.begins.equal((keys, self.keys.at(state[0], index + 1, inner)), inner)
        self.out_keys.put_at(state[1], runs - 1, keys, self.begins(self.keys, state[0], place, keys))
        self.out_values.put_at(state[2], runs - 1, scanned[1], last | (inner & ~equal))
        if (place.i + 1) * place.size >= place.n:  # the last tile
            many = ct.max(ct.where(index < place.n, runs, 0))
            put_one(self.counter, state[3], 0, self.number, many)


class _Pairs(IteratorBase):
    """What the scan reads: keys and values."""

    writes = False

    def __init__(self, keys: IteratorBase, values: IteratorBase, begins: Begins, how: tuple, count: ct.DType):
        self.children, self._begins = (keys, values), begins
        self.value_type = tuple_of((Number(count), values.value_type)).value_type
        self.kind = ("runs", keys.kind, values.kind, how, count)

    def reader(self) -> Any:
        keys, values = self.children
        return _Tagged(keys.reader(), values.reader(), self._begins, self.value_type)


class _Ends(IteratorBase):
    """What the scan writes to: keys, which it reads, outputs for keys and values, and one for the number of runs."""

    reads = False

    def __init__(self, t: ValueType, keys: IteratorBase, outs: tuple[IteratorBase, ...], begins: Begins, how: tuple):
        self.children, self._begins, self.value_type = (keys, *outs), begins, t
        self.kind = ("ends of runs", *(c.kind for c in self.children), how)

    def writer(self) -> Any:
        keys, *outs = self.children
        return _AtEnds(keys.reader(), self._begins, *(out.writer() for out in outs), self.value_type.parts[0])

    def state(self, n: int | None) -> Any:
        keys, *outs = self.children  # the key after the last one is read, too
        return keys.state(None), *(out.state(None) for out in outs)

    def size(self) -> int | None:
        return None


class _InRuns(Operator):
    """An operator on values as one on pairs: a value begins anew where a run begins."""

    def __init__(self, op: Operator, t: ValueType):
        combine = op.function

        def combined(a, b):
            return a[0] + b[0], b[1] if b[0] > 0 else t.cast(combine(a[1], b[1]))
        super().__init__(combined, op.watched)
        self._inner = "in runs", op.key

    @property
    def key(self) -> Any:
        return self._inner


class ReduceByKey(InSegments):
    takes = {"d_in_keys": INPUT, "d_in_values": INPUT, "d_out_keys": OUTPUT, "d_out_values": OUTPUT,
             "d_out_num_runs": OUTPUT, "op": OPERATOR, "num_items": COUNT,
             "equal": with_default(OPERATOR, OpKind.EQUAL_TO)}

    def __call__(self, temp_storage: Any, d_in_keys: Any, d_in_values: Any, d_out_keys: Any, d_out_values: Any,
                 d_out_num_runs: Any, op: Any, num_items: int, equal: Any = None, stream: Any = None) -> int:
        """Reduce the runs, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        return self.run(temp_storage, stream, d_in_keys, d_in_values, d_out_keys, d_out_values, d_out_num_runs, op,
                        num_items, equal)

    def check(self, d_in_keys: IteratorBase, d_in_values: IteratorBase, d_out_keys: IteratorBase,
              d_out_values: IteratorBase, d_out_num_runs: IteratorBase, op: Operator, equal: Operator) -> None:
        check_counter("d_out_num_runs", d_out_num_runs, 1)
        result_of(op, d_in_values.value_type, d_in_values.value_type, to=d_in_values.value_type)
        check_stored(d_in_keys.value_type, d_out_keys=d_out_keys)
        check_stored(d_in_values.value_type, d_out_values=d_out_values)
        predicate("equal", equal, d_in_keys.value_type, d_in_keys.value_type)

    def plan(self, plan: Plan, keys: IteratorBase, values: IteratorBase, out_keys: IteratorBase,
             out_values: IteratorBase, counter: IteratorBase, op: Operator, n: int, equal: Operator) -> None:
        check_items(plan, "num_items", n, d_in_keys=keys, d_in_values=values)
        check_places(plan, 1, d_out_num_runs=counter)
        self.check(keys, values, out_keys, out_values, counter, op, equal)
        outs = {"d_out_keys": out_keys, "d_out_values": out_values, "d_out_num_runs": counter}
        check_apart(plan, outs, {"d_in_keys": keys, "d_in_values": values}, n)
        reduce_runs(plan, keys, values, outs, op, n, equal)


def reduce_runs(plan: Plan, keys: IteratorBase, values: IteratorBase, outs: dict[str, IteratorBase], op: Operator,
                n: int, equal: Operator) -> None:
    """The launches. `outs`: for keys, values, and the number of runs."""
    *_, counter = places = tuple(outs.values())
    if n == 0:
        plan.launch(1, nothing_kernel(1, counter), counter.state(1))
        return
    t = values.value_type
    result_of(op, t, t, to=t)
    heads = begins(predicate("equal", equal, keys.value_type, keys.value_type), keys.value_type, plan.on_host)
    if host_runs.reduce_runs(plan, keys, values, outs, op, equal, n):
        return
    pairs = _Pairs(keys, values, heads, (equal.key,), ct.int64 if is_wide(n, keys, values, *places) else ct.int32)
    ends = _Ends(pairs.value_type, keys, places, heads, (equal.key,))
    Scan((True,)).launches(plan, pairs, ends, _InRuns(op, t), None, n)
    host_runs.check_room(plan, outs, n)


def make_reduce_by_key(d_in_keys: Any, d_in_values: Any, d_out_keys: Any, d_out_values: Any, d_out_num_runs: Any,
                       op: Any, equal: Any = None, compute_capability: Any = None) -> ReduceByKey:
    """An object that reduces runs of equal keys, for arguments of the same kinds.

    Parameters
    ----------
    d_in_keys, d_in_values, d_out_keys, d_out_values, d_out_num_runs, op, equal
        As in `reduce_by_key`; arrays may be `ProxyArray`.
    compute_capability : optional
        The GPUs that it may run on: 90, (9, 0), "9.0", "90", or a list of these. None: all.

    Returns
    -------
    object
        Call it with `temp_storage, d_in_keys, d_in_values, d_out_keys, d_out_values, d_out_num_runs, op, num_items,
        equal=None, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `reduce_by_key` does; a call with another kind of argument, or another operator, is a TypeError.

    Examples
    --------
    >>> keys, values, count = np.array([7, 7, 2]), np.array([1, 2, 3]), np.zeros(1, int)
    >>> args = keys, values, np.zeros(3, int), np.zeros(3, int), count, ct.compute.OpKind.PLUS
    >>> reduce = ct.compute.make_reduce_by_key(*args)
    >>> storage = np.empty(reduce(None, *args, 3), np.uint8)
    >>> nbytes = reduce(storage, *args, 3)
    >>> args[2][:count[0]], args[3][:count[0]]
    (array([7, 2]), array([3, 3]))
    """
    return ReduceByKey((), compute_capability, d_in_keys=d_in_keys, d_in_values=d_in_values, d_out_keys=d_out_keys,
                       d_out_values=d_out_values, d_out_num_runs=d_out_num_runs, op=op, equal=equal)


def reduce_by_key(d_in_keys: Any, d_in_values: Any, d_out_keys: Any, d_out_values: Any, d_out_num_runs: Any, op: Any,
                  num_items: int, equal: Any = None, stream: Any = None) -> None:
    """Combine the values of each run of equal keys.

    Parameters
    ----------
    d_in_keys, d_in_values : array or iterator
        The keys, and a value for each.
    d_out_keys, d_out_values : array or iterator
        The first key of each run, and the combination of its values in their order, go to their fronts. They have room
        for them; what stands behind them stays.
    d_out_num_runs : array or iterator of integers
        Item 0 becomes the number of runs.
    op : callable or OpKind
        Associative, of two values; it computes in their type.
    num_items : int
        How many keys there are; 2^31 and more are supported.
    equal : callable or OpKind, optional
        equal(a, b) says whether two neighbours are equal, of which a is the earlier one. By default ==.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If `equal` gives no number, or a count cannot be stored in `d_out_num_runs`.
    ValueError
        If an input has fewer items, or an output shares memory with another operand.

    Notes
    -----
    [RBK-1.reduce] [RBK-1.equal]

    Examples
    --------
    >>> keys, values = np.array([7, 7, 2, 2, 7], np.int32), np.array([1, 2, 3, 4, 5], np.float32)
    >>> out_keys, out_values, runs = np.zeros_like(keys), np.zeros_like(values), np.zeros(1, np.int64)
    >>> ct.compute.reduce_by_key(keys, values, out_keys, out_values, runs, lambda a, b: a + b, len(keys))
    >>> out_keys[:runs[0]], out_values[:runs[0]]
    (array([7, 2, 7], dtype=int32), array([3., 7., 5.], dtype=float32))
    """
    ReduceByKey.once((), stream, d_in_keys, d_in_values, d_out_keys, d_out_values, d_out_num_runs, op, num_items, equal)
