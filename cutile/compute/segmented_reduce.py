"""segmented_reduce: the items of each segment into one, by an operator that is associative and commutative [SEG-*].

A block has some segments, a row of lanes for each. Lane k of a row combines items k, k + LANES, … of the segment; then
the lanes are combined. How many lanes a row has depends on how long segments are on average; with each number segments
may have any length.
"""

from collections.abc import Iterator
from typing import Any

import cutile as ct
from cutile.compute.algorithm import (
    WIDE,
    Algorithm,
    check_count,
    is_wide,
    kernels_for,
    on_some_gpu,
    position,
    power_below,
)
from cutile.compute.blocks import Combined
from cutile.compute.initial import Initial, ints
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.operators import Operator
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.results import result_of
from cutile.compute.roles import COUNT, INITIAL, INPUT, OPERATOR, OUTPUT, optional
from cutile.compute.value_types import Number
from cutile.dtypes import info

LANES = 2048  # of all rows of a block
LONGEST_ROW = 1024
USUAL_ROW = 64  # lanes, where nothing is known of the segments
BLOCKS = 1 << 23  # of a launch


def _kernel(items: IteratorBase, out: IteratorBase, starts: IteratorBase, ends: IteratorBase, combine: Combined,
            initial: Initial, wide: bool) -> Any:
    """A kernel in which each block combines the segments of its rows."""
    reader, writer, first, last = items.reader(), out.writer(), starts.reader(), ends.reader()
    t, begin = combine.type, initial.reader()

    @ct.kernel
    def reduce_segments(source: items.annotation(wide), target: out.annotation(wide), begins: starts.annotation(wide),
                        finishes: ends.annotation(wide), before: ints(t, True), n: position(wide), block: int,
                        rows: ct.Constant[int], lanes: ct.Constant[int], whole: ct.Constant[bool]):
        place = Place(ct.bid(0) + block, rows, n, whole)
        start = ct.astype(first.tile(begins, place), n.dtype)
        size = ct.astype(last.tile(finishes, place), n.dtype) - start
        size = ct.maximum(size if whole else ct.where(place.mask(), size, 0), 0)
        lane = ct.reshape(ct.arange(lanes, dtype=n.dtype), (1, lanes))
        start, many = ct.reshape(start, (rows, 1)), ct.reshape(size, (rows, 1))
        there = lane < many
        total = t.cast(reader.at(source, start + lane, there))
        for k in range(1, ct.cdiv(ct.max(size), lanes)):
            at = lane + ct.astype(k, n.dtype) * lanes
            more = t.cast(reader.at(source, start + at, at < many))
            total = t.select(at < many, combine(total, more, at < many), total)
        result = combine.rows_reduced(total, there)
        value = t.filled(begin.value(before), (rows,))
        writer.put(target, place, t.select(size > 0, combine(value, result, size > 0), value))

    return reduce_segments


class SegmentedReduce(Algorithm):
    takes = {"d_in": INPUT, "d_out": OUTPUT, "num_segments": COUNT, "start_offsets_in": INPUT,
             "end_offsets_in": INPUT, "op": OPERATOR, "h_init": INITIAL, "max_segment_size": optional(COUNT)}

    def __call__(self, temp_storage: Any, d_in: Any, d_out: Any, num_segments: int, start_offsets_in: Any,
                 end_offsets_in: Any, op: Any, h_init: Any, max_segment_size: int | None = None, stream: Any = None
                 ) -> int:
        """Reduce, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        return self.run(temp_storage, stream, d_in, d_out, num_segments, start_offsets_in, end_offsets_in, op, h_init,
                        max_segment_size)

    def check(self, d_in: IteratorBase, d_out: IteratorBase, start_offsets_in: IteratorBase,
              end_offsets_in: IteratorBase, op: Operator, h_init: Initial | None) -> None:
        if h_init is None:
            raise TypeError("argument `h_init`: segments without items need an initial value, got None")
        for name, offsets in (("start_offsets_in", start_offsets_in), ("end_offsets_in", end_offsets_in)):
            t = offsets.value_type
            if not isinstance(t, Number) or not info(t.dtype).integral:
                raise TypeError(f"argument `{name}`: offsets are integers, not {t}")
        result_of(op, h_init.type, h_init.type)

    def samples(self) -> Iterator[list]:
        """Of each length of rows, a launch for whole tiles and one for the rest."""
        many = 2 * LANES + 1
        for k in range(LONGEST_ROW.bit_length()):
            for size in (many << k, WIDE):
                made = {name: on_some_gpu(x, size if name == "d_in" else many) for name, x in self._operands.items()}
                counts = {"num_segments": many, "max_segment_size": 1 << k}
                yield [counts.get(name, made.get(name)) for name in self.takes]

    def plan(self, plan: Plan, items: IteratorBase, out: IteratorBase, n: int, starts: IteratorBase,
             ends: IteratorBase, op: Operator, initial: Initial, longest: int | None) -> None:
        self.check(items, out, starts, ends, op, initial)
        check_count("num_segments", n, d_out=out, start_offsets_in=starts, end_offsets_in=ends)
        if longest is not None:
            check_count("max_segment_size", longest)
        if n >= WIDE:
            raise RuntimeError(f"argument `num_segments` is {n}; at most {WIDE - 1} segments are supported")
        if n == 0:
            return
        size, t = items.size(), initial.type
        wide = is_wide(WIDE if size is None else size, items, out, starts, ends)
        usual = USUAL_ROW if size is None else size // n
        lanes = power_below(max(usual if longest is None else min(usual, longest), 1), LONGEST_ROW)
        rows = LANES // lanes
        combine = Combined(op.function, t, result_of(op, t, t).loops)
        key = ("segmented reduce", items.kind, out.kind, starts.kind, ends.kind, op.key, t, wide)
        kernel = kernels_for(key, _kernel, items, out, starts, ends, combine, initial, wide)
        full, rest = divmod(n, rows)
        for first in range(0, full, BLOCKS):
            plan.launch(min(full - first, BLOCKS), kernel, items.state(None), out.state(n), starts.state(n),
                        ends.state(n), initial.state, n, first, rows, lanes, True)
        if rest:
            plan.launch(1, kernel, items.state(None), out.state(n), starts.state(n), ends.state(n), initial.state, n,
                        full, rows, lanes, False)


def make_segmented_reduce(d_in: Any, d_out: Any, start_offsets_in: Any, end_offsets_in: Any, op: Any, h_init: Any,
                          compute_capability: Any = None) -> SegmentedReduce:
    """An object that reduces segments as `segmented_reduce` does, for arguments of the same kinds.

    Parameters
    ----------
    d_in, d_out, start_offsets_in, end_offsets_in, op, h_init
        As in `segmented_reduce`.
    compute_capability : int, tuple, str or list, optional
        That of the GPUs that the object may run on, such as 90, (9, 0) or "9.0"; a call on another is a RuntimeError.

    Returns
    -------
    object
        Call it with `temp_storage, d_in, d_out, num_segments, start_offsets_in, end_offsets_in, op, h_init,
        max_segment_size=None, stream=None`. With `temp_storage=None` it gives the bytes of temporary storage.

    Raises
    ------
    TypeError
        As `segmented_reduce` does; a call with another kind of argument, or another `op`, is one, too.

    Examples
    --------
    >>> x, starts, out = np.arange(6), np.array([0, 2, 2, 6]), np.zeros(3, int)
    >>> reduce = ct.compute.make_segmented_reduce(x, out, starts[:-1], starts[1:], max, 0)
    >>> storage = np.empty(reduce(None, x, out, 3, starts[:-1], starts[1:], max, 0), np.uint8)
    >>> reduce(storage, x, out, 3, starts[:-1], starts[1:], max, 0)
    1
    >>> out
    array([1, 0, 5])
    """
    return SegmentedReduce((), compute_capability, d_in=d_in, d_out=d_out, start_offsets_in=start_offsets_in,
                           end_offsets_in=end_offsets_in, op=op, h_init=h_init)


def segmented_reduce(d_in: Any, d_out: Any, num_segments: int, start_offsets_in: Any, end_offsets_in: Any, op: Any,
                     h_init: Any, max_segment_size: int | None = None, stream: Any = None) -> None:
    """Reduce each segment of the items: `d_out[s]` from `d_in[start_offsets_in[s]:end_offsets_in[s]]`.

    Parameters
    ----------
    d_in : array or iterator
        The items.
    d_out : array or iterator
        Takes a result for each segment, converted to its type.
    num_segments : int
        The number of segments, at most 2^31 - 1.
    start_offsets_in, end_offsets_in : array or iterator of integers
        Where segments begin, and where they end. They may overlap, leave gaps and stand in any order; the ends may be
        the starts, advanced by one.
    op : function of two items, or OpKind
        Associative and commutative. It computes in the type of `h_init`.
    h_init : number, array or struct
        With it each result begins. A segment without items, or whose end is before its start, gives it.
    max_segment_size : int, optional
        A hint: how many items a segment has at most. It never changes which items count.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If offsets are no integers, or `h_init` is None.
    ValueError
        If a number is negative or more than an array has.
    RuntimeError
        If there are more than 2^31 - 1 segments.

    Notes
    -----
    The same arguments give the same bits. Offsets beyond the items of `d_in` are undefined. Clauses SEG-*.

    Examples
    --------
    >>> x, starts, out = np.array([1, 2, 3, 4, 5]), np.array([0, 3, 3, 5]), np.zeros(3, int)
    >>> ct.compute.segmented_reduce(x, out, 3, starts[:-1], starts[1:], lambda a, b: a + b, 100)
    >>> out
    array([106, 100, 109])
    """
    SegmentedReduce.once((), stream, d_in, d_out, num_segments, start_offsets_in, end_offsets_in, op, h_init,
                         max_segment_size)
