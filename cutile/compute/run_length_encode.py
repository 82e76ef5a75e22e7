"""run_length_encode: of each run of equal items the first one, and how many there are. It reduces a one for each item;
in host memory it measures between the places where runs begin.
"""

from typing import Any

import numpy as np

from cutile.compute import host_runs
from cutile.compute.algorithm import Algorithm, is_wide
from cutile.compute.iterators import TransformIterator
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.operators import Operator, OpKind, operator
from cutile.compute.overlaps import check_apart
from cutile.compute.places import check_items, check_places
from cutile.compute.plans import Plan
from cutile.compute.reduce_by_key import reduce_runs
from cutile.compute.roles import COUNT, INPUT, OPERATOR, OUTPUT, with_default
from cutile.compute.splits import check_counter, predicate


class RunLengthEncode(Algorithm):
    takes = {"d_in": INPUT, "d_out_items": OUTPUT, "d_out_lengths": OUTPUT, "d_out_num_runs": OUTPUT,
             "num_items": COUNT, "equal": with_default(OPERATOR, OpKind.EQUAL_TO)}

    def __call__(self, temp_storage: Any, d_in: Any, d_out_items: Any, d_out_lengths: Any, d_out_num_runs: Any,
                 num_items: int, equal: Any = None, stream: Any = None) -> int:
        """Encode the items, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        return self.run(temp_storage, stream, d_in, d_out_items, d_out_lengths, d_out_num_runs, num_items, equal)

    def check(self, d_in: IteratorBase, d_out_items: IteratorBase, d_out_lengths: IteratorBase,
              d_out_num_runs: IteratorBase, equal: Operator) -> None:
        check_counter("d_out_lengths", d_out_lengths, 0)
        check_counter("d_out_num_runs", d_out_num_runs, 1)
        predicate("equal", equal, d_in.value_type, d_in.value_type)

    def plan(self, plan: Plan, items: IteratorBase, out_items: IteratorBase, lengths: IteratorBase,
             counter: IteratorBase, n: int, equal: Operator) -> None:
        check_items(plan, "num_items", n, d_in=items)
        check_places(plan, 1, d_out_num_runs=counter)
        self.check(items, out_items, lengths, counter, equal)
        outs = {"d_out_items": out_items, "d_out_lengths": lengths, "d_out_num_runs": counter}
        check_apart(plan, outs, {"d_in": items}, n)
        if host_runs.measure_runs(plan, items, outs, equal, n):
            return
        ones = TransformIterator(items, lambda item: 1, np.int64 if is_wide(n, items, *outs.values()) else np.int32)
        reduce_runs(plan, items, ones, outs, operator(OpKind.PLUS), n, equal)


def make_run_length_encode(d_in: Any, d_out_items: Any, d_out_lengths: Any, d_out_num_runs: Any, equal: Any = None,
                           compute_capability: Any = None) -> RunLengthEncode:
    """An object that encodes runs of equal items, for arguments of the same kinds.

    Parameters
    ----------
    d_in, d_out_items, d_out_lengths, d_out_num_runs, equal
        As in `run_length_encode`; arrays may be `ProxyArray`.
    compute_capability : optional
        The GPUs that it may run on: 90, (9, 0), "9.0", "90", or a list of these. None: all.

    Returns
    -------
    object
        Call it with `temp_storage, d_in, d_out_items, d_out_lengths, d_out_num_runs, num_items, equal=None,
        stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `run_length_encode` does; a call with another kind of argument, or another operator, is a TypeError.

    Examples
    --------
    >>> x, items, lengths, count = np.array([7, 7, 2]), np.zeros(3, int), np.zeros(3, np.int32), np.zeros(1, int)
    >>> encode = ct.compute.make_run_length_encode(x, items, lengths, count)
    >>> storage = np.empty(encode(None, x, items, lengths, count, 3), np.uint8)
    >>> nbytes = encode(storage, x, items, lengths, count, 3)
    >>> items[:count[0]], lengths[:count[0]]
    (array([7, 2]), array([2, 1], dtype=int32))
    """
    return RunLengthEncode((), compute_capability, d_in=d_in, d_out_items=d_out_items, d_out_lengths=d_out_lengths,
                           d_out_num_runs=d_out_num_runs, equal=equal)


def run_length_encode(d_in: Any, d_out_items: Any, d_out_lengths: Any, d_out_num_runs: Any, num_items: int,
                      equal: Any = None, stream: Any = None) -> None:
    """Copy the first item of each run of equal items, and count how many there are in it.

    Parameters
    ----------
    d_in : array or iterator
        The items.
    d_out_items : array or iterator
        The first item of each run goes to its front.
    d_out_lengths : array or iterator of integers
        The lengths of the runs go to its front.
    d_out_num_runs : array or iterator of integers
        Item 0 becomes the number of runs.
    num_items : int
        How many items of `d_in` there are; 2^31 and more are supported.
    equal : callable or OpKind, optional
        equal(a, b) says whether two neighbours are equal, of which a is the earlier one. By default ==.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If `equal` gives no number, or lengths or their number cannot be stored.
    ValueError
        If `d_in` has fewer items, or an output shares memory with another operand.

    Notes
    -----
    [RBK-2.lengths]

    Examples
    --------
    >>> x = np.array([7, 7, 7, 2, 7], np.int32)
    >>> items, lengths, runs = np.zeros_like(x), np.zeros(5, np.int32), np.zeros(1, np.int64)
    >>> ct.compute.run_length_encode(x, items, lengths, runs, len(x))
    >>> items[:runs[0]], lengths[:runs[0]]
    (array([7, 2, 7], dtype=int32), array([3, 1, 1], dtype=int32))
    """
    RunLengthEncode.once((), stream, d_in, d_out_items, d_out_lengths, d_out_num_runs, num_items, equal)
