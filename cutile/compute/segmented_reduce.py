"""segmented_reduce: the items of each segment into one, by an operator that is associative and commutative [SEG-*].

A block has some segments, a row of lanes for each. Lane k of a row combines items k, k + LANES, … of the segment; then
the lanes are combined. How many rows and lanes a block has depends on how long segments are on average; with each
number segments may have any length: what is left of one that is many times as long as others is combined by all lanes
of the block.

Where all items are as many as segments of one length, a power of two, have together, a block loads the tile of items
that its segments would be, while it waits for their offsets. If the offsets say so, the rows of that tile are combined.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import cutile as ct
from cutile.compute import host_segments
from cutile.compute.algorithm import WIDE, check_count, is_wide, kernels_for, on_some_gpu, position, power_below
from cutile.compute.blocks import Combined
from cutile.compute.initial import Initial, ints
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ArrayIterator
from cutile.compute.iterators.transform import TransformIterator
from cutile.compute.operator_errors import check_stored
from cutile.compute.operators import Operator, OpKind, operator
from cutile.compute.places import check_items, unbounded
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.results import result_of
from cutile.compute.roles import COUNT, INITIAL, INPUT, OPERATOR, OUTPUT, optional
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import info

LONG = 16384  # from that many items on, a segment has a block
USUAL = 64  # items of a segment, where nothing is known
ALIKE = 128  # most items of segments for which their tile is loaded before their offsets are known
TILE = 2048  # items of such a tile
LARGER = {16: 4096, 64: 4096}  # of one of segments of so many items, if items have 4 bytes or less
STEPS = 32  # of a row, after which all lanes of the block go over what is left of its segment
TOGETHER = 4  # loads of a lane that are then on their way at a time
BLOCKS = 1 << 23  # of a launch
MANY = 4097  # segments of a sample, more than the rows of any block


class Shape(NamedTuple):
    """What a block works on: rows of lanes; how many loads of a lane are on their way at a time, 0 for short segments,
    all of whose steps are masked; and hints for the compiler.
    """

    rows: int
    lanes: int
    each: int
    hints: tuple[tuple[str, int], ...] = (("occupancy", 8),)


_SHAPES = {  # for segments of about that many items or more
    LONG: Shape(1, 4096, 2, (("occupancy", 4), ("num_worker_warps", 8))), 1024: Shape(8, 256, 1), 512: Shape(16, 64, 1),
    256: Shape(32, 32, 1), 64: Shape(32, 16, 0), 32: Shape(64, 8, 0), 8: Shape(128, 4, 0), 4: Shape(256, 2, 0),
    0: Shape(1024, 1, 0)}


def _shape(length: int) -> Shape:
    return next(shape for least, shape in _SHAPES.items() if length >= least)


def _shape_alike(length: int, bits: int) -> Shape:
    """For segments that may all have this many items, a power of two. `bits`: of an item's longest number."""
    tile = LARGER.get(length, TILE) if bits <= 32 else TILE
    return Shape(min(max(tile // length, 32), 1024), min(length // 2, 32), 0)


def _lanes_of_all(lanes: int, t: ValueType) -> int:
    """How many lanes of a block combine what is left of a segment: fewer for longer items, so that threads have
    registers for what all rows keep meanwhile.
    """
    words = max(sum(d.bitwidth for d in t.dtypes) // 32, 1)
    return max(power_below(lanes // words**2 or 1, lanes), 128)


def _zero(t: ValueType, single: str) -> float | None:
    """What changes no result of the op that an operator is; None where nothing is known to."""
    if not isinstance(t, Number) or single not in ("add", "mul", "bitwise_xor"):
        return None
    return 1 if single == "mul" else 0 if info(t.dtype).integral else -0.0


def _kernel(items: IteratorBase, out: IteratorBase, starts: IteratorBase, ends: IteratorBase, combine: Combined,
            single: str, initial: Initial, wide: bool, hints: tuple[tuple[str, int], ...]) -> Any:
    """A kernel in which each block combines the segments of its rows. `single`: the op that the operator is, if any."""
    reader, writer, first, last = items.reader(), out.writer(), starts.reader(), ends.reader()
    t, begin = combine.type, initial.reader()
    zero = _zero(t, single)

    def along(source, start, many, lanes, each):
        """The combination of `many` items from `start` on, of each row: both are columns."""
        lane = ct.reshape(ct.arange(lanes, dtype=start.dtype), (1, lanes))
        there, done = lane < many, 1
        total = t.cast(reader.at(source, start + lane, there, True))
        if each:
            groups = (ct.maximum(ct.min(many) // lanes, 1) - 1) // each
            for g in range(groups):
                at = start + lane + ct.astype(1 + g * each, start.dtype) * lanes
                more = tuple(t.cast(reader.at(source, at + ct.static_eval(k * lanes), None, True))
                             for k in ct.static_iter(range(each)))
                for k in ct.static_iter(range(each)):
                    total = combine(total, more[k])
            done = 1 + groups * each
        for k in range(done, ct.cdiv(ct.max(many), lanes)):
            at = lane + ct.astype(k, start.dtype) * lanes
            more = t.cast(reader.at(source, start + at, at < many, True))
            total = t.select(at < many, combine(total, more, at < many), total)
        if zero is not None:
            total, there = ct.where(there, total, ct.astype(zero, t.dtype)), None
        return combine.rows_reduced(total, there)

    @ct.kernel(**dict(hints))
    def reduce_segments(source: items.annotation(wide), target: out.annotation(wide), begins: starts.annotation(wide),
                        finishes: ends.annotation(wide), before: ints(t, True), n: position(wide), most: position(wide),
                        block: int, rows: ct.Constant[int], lanes: ct.Constant[int], each: ct.Constant[int],
                        alike: ct.Constant[int], whole: ct.Constant[bool], later: ct.Constant[bool]):
        place = Place(ct.bid(0) + block if later else ct.bid(0), rows, n, whole)
        value = t.filled(begin.value(before), (rows,))
        if alike:
            tile = t.cast(reader.tile(source, Place(place.i, ct.static_eval(rows * alike), n, True)))
        start = ct.astype(first.tile(begins, place), n.dtype)
        size = ct.astype(last.tile(finishes, place), n.dtype) - start
        size = ct.maximum(size if whole else ct.where(place.mask(), size, 0), 0)
        if alike:
            other = (start != place.index() * alike) | (size != alike)
            if ct.max(ct.astype(other, ct.int32)) == 0:
                numbers = tuple(ct.reshape(x, (rows, alike)) for x in ct.static_iter(t.flat(tile)))
                writer.put(target, place, combine(value, combine.rows_reduced(t.nest(numbers), None)))
                return
        mine = size if rows == 1 else ct.minimum(size, most)
        result = along(source, ct.reshape(start, (rows, 1)), ct.reshape(mine, (rows, 1)), lanes, each)
        if rows > 1:
            index, longer = ct.arange(rows, dtype=ct.int32), size > most
            for _ in range(ct.sum(ct.astype(longer, ct.int32))):
                chosen = index == ct.min(ct.where(longer, index, rows))
                head, left = ct.sum(ct.where(chosen, start, 0)) + most, ct.sum(ct.where(chosen, size, 0)) - most
                more = along(source, ct.full((1, 1), head, n.dtype), ct.full((1, 1), left, n.dtype),
                             ct.static_eval(_lanes_of_all(rows * lanes, t)), TOGETHER)
                result = t.select(chosen, combine(result, more, chosen), result)
                longer = longer & ~chosen
        writer.put(target, place, t.select(size > 0, combine(value, result, size > 0), value))

    return reduce_segments


class SegmentedReduce(host_segments.InSegments):
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
        result_of(op, h_init.type, h_init.type, to=h_init.type)
        check_stored(h_init.type, d_out=d_out)

    def samples(self) -> Iterator[list]:
        """Of each shape, a launch for whole tiles and one for the rest, also of segments that may be all alike."""
        for k in range(LONG.bit_length()):
            for many, size in ((MANY, MANY << k), (MANY, (MANY << k) + 1), (MANY, WIDE), (WIDE - 1, (WIDE - 1) << k)):
                made = {name: on_some_gpu(x, size if name == "d_in" else many) for name, x in self._operands.items()}
                counts = {"num_segments": many, "max_segment_size": 1 << k}
                yield [counts.get(name, made.get(name)) for name in self.takes]

    def plan(self, plan: Plan, items: IteratorBase, out: IteratorBase, n: int, starts: IteratorBase,
             ends: IteratorBase, op: Operator, initial: Initial, longest: int | None) -> None:
        self.check(items, out, starts, ends, op, initial)
        check_items(plan, "num_segments", n, d_out=out, start_offsets_in=starts, end_offsets_in=ends)
        if longest is not None:
            check_count("max_segment_size", longest)
        if n >= WIDE:
            raise RuntimeError(f"argument `num_segments` is {n}; at most {WIDE - 1} segments are supported")
        if n == 0:
            return
        size = items.size()
        if plan.on_host and host_segments.reduce(plan, items, out, n, starts, ends, op, initial):
            return
        if plan.on_host and size is None:
            _check_endless(plan, items, n, starts, ends)
        self.launches(plan, items, out, n, starts, ends, op, initial, longest)

    @staticmethod
    def launches(plan: Plan, items: IteratorBase, out: IteratorBase, n: int, starts: IteratorBase, ends: IteratorBase,
                 op: Operator, initial: Initial, longest: int | None) -> None:
        """Put the launches of kernels into the plan."""
        size, t = items.size(), initial.type
        wide = is_wide(WIDE if size is None else size, items, out, starts, ends)
        usual = USUAL if size is None else size // n
        alike = size == n * usual and 1 < usual <= ALIKE and usual & (usual - 1) == 0 and not wide
        if type(items) is not ArrayIterator or longest is not None and longest < usual:
            alike = False  # items that are computed are read once
        bits = max(d.bitwidth for d in items.value_type.dtypes)
        length = usual if longest is None else min(usual, longest)
        shape = _shape_alike(usual, bits) if alike else _shape(length)
        result = result_of(op, t, t)
        combine = Combined(op.function, t, result.loops)
        key = ("segmented reduce", items.kind, out.kind, starts.kind, ends.kind, op.key, t, wide, shape.hints)
        kernel = kernels_for(key, _kernel, items, out, starts, ends, combine, result.single, initial, wide, shape.hints)

        def reduce(blocks: int, first: int, alike: int, whole: bool) -> None:
            plan.launch(blocks, kernel, items.state(None), out.state(n), starts.state(n), ends.state(n), initial.state,
                        n, most, first, shape.rows, shape.lanes, shape.each, alike, whole, not whole or first > 0)

        most = shape.lanes * max(STEPS, 4 * min(length, LONG) // shape.lanes)  # a block of longer ones has one row
        full, rest = divmod(n, shape.rows)
        for first in range(0, full, BLOCKS):
            reduce(min(full - first, BLOCKS), first, usual if alike else 0, True)
        if rest:
            reduce(1, full, 0, False)


def _check_endless(plan: Plan, items: IteratorBase, n: int, starts: IteratorBase, ends: IteratorBase) -> None:
    """In host memory, a check of the indices of PermutationIterators that segments of endless items lead to: the
    largest one of each segment, where negative ones are large.
    """
    for argument, size, indices in unbounded("d_in", items):
        largest = plan.values(n, POSITION)
        SegmentedReduce.launches(plan, TransformIterator(indices, _position), largest, n, starts, ends,
                                 operator(OpKind.MAXIMUM), Initial(POSITION, (0,)), None)
        plan.call(_checking(argument, size), largest.state(n))


POSITION = Number(ct.uint64)


def _position(index):
    return ct.astype(index, ct.uint64)


def _checking(argument: str, size: int | None) -> Callable:
    limit = 1 << 63 if size is None else size

    def check(largest: np.ndarray) -> None:
        wrong = np.flatnonzero(largest >= limit)
        if wrong.size:
            found = int(largest[wrong[0]].astype(np.int64))
            there = "is negative" if size is None else f"is out of range: there are {size} items"
            raise IndexError(f"argument `{argument}`: index {found} of a PermutationIterator, in segment {wrong[0]}, "
                             f"{there}")

    return check


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
