"""reduce_into: all items into one, by an operator that is associative and commutative [RDC-*].

Each block combines the items of its tiles, position by position, and then the positions of its tile; a second launch of
one block does the same with what the blocks gave.
"""

import enum
from typing import Any

import cutile as ct
from cutile.compute import host_reduce
from cutile.compute.algorithm import is_wide, kernels_for, position, power_below
from cutile.compute.blocks import Combined, put_item, put_one
from cutile.compute.host_segments import InSegments
from cutile.compute.initial import Initial, ints
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.values import constant_reader
from cutile.compute.operator_errors import check_stored
from cutile.compute.operators import Operator
from cutile.compute.places import check_items, check_places
from cutile.compute.plans import Plan
from cutile.compute.proxies import capabilities
from cutile.compute.readers import Place
from cutile.compute.results import result_of
from cutile.compute.roles import COUNT, INITIAL, INPUT, OPERATOR, OUTPUT
from cutile.compute.ufuncs import Ufunc, ufunc_to_reduce
from cutile.compute.value_types import Number, ValueType

TILE = 4096  # items of a tile
BLOCKS = 2048  # most blocks; a power of two, and about what an H200 holds at a time
HOST_TILE = 1 << 17  # in host memory, where one block with large tiles takes less time
FOLDED = 1 << 20  # of a tile that NumPy folds in one call
REST = 1 << 16  # and of those behind the last one of these
SHORT = (ct.int8, ct.uint8, ct.int16, ct.uint16)


class Determinism(enum.IntEnum):
    """How far results of reductions may differ [RDC-8].

    RUN_TO_RUN always holds. With GPU_TO_GPU the tree of combinations is the same on every device and in host memory; it
    depends on the number of items alone.

    Attributes
    ----------
    NOT_GUARANTEED, RUN_TO_RUN, GPU_TO_GPU
        From the least to the most.

    Examples
    --------
    >>> x, total = np.arange(5.0), np.zeros(1)
    >>> ct.compute.reduce_into(x, total, 5, lambda a, b: a + b, 0.0, determinism=ct.compute.Determinism.GPU_TO_GPU)
    >>> total
    array([10.])
    """

    NOT_GUARANTEED = 0
    RUN_TO_RUN = 1
    GPU_TO_GPU = 2

    @classmethod
    def _missing_(cls, value: object) -> Any:
        raise ValueError(f"argument `determinism`: {value!r:.100} is no Determinism; pass "
                         f"{', '.join(f'Determinism.{d.name}' for d in cls)}")


def _total_type(op: Operator, t: ValueType) -> ValueType:
    """The type in which totals of items of type `t` are combined. Short integers, of which a register holds several,
    are combined as int32 if the operator is an op whose result, converted back, is the same.
    """
    if not isinstance(t, Number) or t.dtype not in SHORT:
        return t
    single, wider = result_of(op, t, t).single, Number(ct.int32)
    return wider if single and result_of(op, wider, wider).single == single else t


def _kernel(items: IteratorBase, out: IteratorBase, combine: Combined, t: ValueType, first: bool, wide: bool) -> Any:
    """A kernel in which each block combines its tiles, of items that were converted to `t`, into a result of that type.
    `first`: the result begins with an initial value, in the only block. `several`, `rest`: whether a block has further
    tiles, and the last one fewer items than others; code for what is not there takes time to compile.
    """
    reader, writer, totals = items.reader(), out.writer(), combine.type
    initial = constant_reader(t)

    def tile(source, place):
        return totals.cast(t.cast(reader.tile(source, place)))

    @ct.kernel
    def reduce_tiles(source: items.annotation(wide), target: out.annotation(wide), before: ints(t, first),
                     n: position(wide), size: ct.Constant[int], several: ct.Constant[bool], rest: ct.Constant[bool]):
        block, blocks = ct.bid(0), ct.num_blocks(0)
        full = ct.astype(n // size, ct.int32)
        total = tile(source, Place(block, size, n, True))
        if several:
            for i in range(block + blocks, full, blocks):
                total = combine(total, tile(source, Place(i, size, n, True)))
        if rest:
            if block == full % blocks:
                place = Place(full, size, n, False)
                more, there = tile(source, place), place.mask()
                total = totals.select(there, combine(total, more, there), total)
        result = combine.reduced(total)
        if first:
            result = combine(totals.cast(initial.value(before)), result)
        put_one(writer, target, block, t, t.cast(result))

    return reduce_tiles


def _folding_kernel(items: IteratorBase, out: IteratorBase, ufunc: Ufunc, first: bool, wide: bool) -> Any:
    """A kernel of one block that folds each tile. For host memory. `several`, `more`, `rest`: whether there are further
    tiles, small ones behind them, and items behind these; a loop that never runs costs time there.
    """
    reader, writer, combine, t = items.reader(), out.writer(), ufunc.combine, ufunc.combine.type
    initial = constant_reader(t)

    @ct.kernel
    def fold_tiles(source: items.annotation(wide), target: out.annotation(wide), before: ints(t, first),
                   n: position(wide), size: ct.Constant[int], small: ct.Constant[int], several: ct.Constant[bool],
                   more: ct.Constant[bool], rest: ct.Constant[bool]):
        total = ufunc.folded(t.cast(reader.tile(source, Place(0, size, n, True))))
        if several:
            for i in range(1, ct.astype(n // size, ct.int32)):
                total = combine(total, ufunc.folded(t.cast(reader.tile(source, Place(i, size, n, True)))))
        if more:
            for i in range(ct.astype(n // size, ct.int32) * (size // small), ct.astype(n // small, ct.int32)):
                total = combine(total, ufunc.folded(t.cast(reader.tile(source, Place(i, small, n, True)))))
        if rest:
            place = Place(ct.astype(n // small, ct.int32), small, n, False)
            masked = ufunc.only(place.mask(), t.cast(reader.tile(source, place)), total)
            total = combine(total, ufunc.folded(masked))
        put_item(writer, target, 0, n, t, combine(initial.value(before), total) if first else total)

    return fold_tiles


def _kernel_of_nothing(out: IteratorBase, t: ValueType) -> Any:
    """A kernel that stores the initial value: what no items give."""
    writer, initial = out.writer(), constant_reader(t)

    @ct.kernel
    def store_initial(target: out.annotation(False), before: ints(t, True)):
        put_one(writer, target, 0, t, initial.value(before))

    return store_initial


class Reduce(InSegments):
    takes = {"d_in": INPUT, "d_out": OUTPUT, "op": OPERATOR, "num_items": COUNT, "h_init": INITIAL}

    def __call__(self, temp_storage: Any, d_in: Any, d_out: Any, op: Any, num_items: int, h_init: Any = None,
                 stream: Any = None) -> int:
        """Reduce, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        return self.run(temp_storage, stream, d_in, d_out, op, num_items, h_init)

    def check(self, d_in: IteratorBase, d_out: IteratorBase, op: Operator, h_init: Initial | None) -> None:
        t = d_in.value_type if h_init is None else h_init.type
        result_of(op, t, t, to=t)
        check_stored(t, d_out=d_out)

    def plan(self, plan: Plan, items: IteratorBase, out: IteratorBase, op: Operator, n: int, initial: Initial | None
             ) -> None:
        check_items(plan, "num_items", n, d_in=items)
        if out.size() == 0:
            raise ValueError("argument `d_out` has 0 items, and 1 is needed")
        check_places(plan, 0 if n == 0 and initial is None else 1, d_out=out)
        self.check(items, out, op, initial)
        t, before = (items.value_type, ()) if initial is None else (initial.type, initial.state)
        if n == 0:
            if initial is not None:
                plan.launch(1, kernels_for(("reduce nothing", t, out.kind), _kernel_of_nothing, out, t), out.state(1),
                            before)
            return
        apart = plan.on_host and self.options[0] < Determinism.GPU_TO_GPU
        if apart and (ufunc := ufunc_to_reduce(op, t)) is not None:
            if host_reduce.reduce(plan, items, out, ufunc, initial, n):
                return None
            wide, size = is_wide(n, items), power_below(n, FOLDED)
            key = "fold", items.kind, out.kind, op.key, t, bool(before), wide
            kernel = kernels_for(key, _folding_kernel, items, out, ufunc, bool(before), wide)
            small = min(size, REST)
            return plan.launch(1, kernel, items.state(n), out.state(1), before, n, size, small, n >= 2 * size,
                               n % size >= small, n % small != 0)
        quick = host_reduce.pick(items, out, op, t) if apart else None
        if quick is None:
            return self._launches(plan, items, out, op, t, before, n, apart)
        plan.either(quick, (items.state(n), before, out.state(1)),
                    lambda: self._launches(plan, items, out, op, t, before, n, apart))

    def _launches(self, plan: Plan, items: IteratorBase, out: IteratorBase, op: Operator, t: ValueType, before: tuple,
                  n: int, apart: bool) -> None:
        """Those for operators of any kind."""
        size = power_below(n, HOST_TILE if apart else TILE)
        blocks = 1 if apart else power_below(max(n // size, 1), BLOCKS)
        combine = Combined(op.function, t if apart else _total_type(op, t), result_of(op, t, t, to=t).loops)

        def reduce(items: IteratorBase, out: IteratorBase, before: tuple, n: int, blocks: int, size: int) -> None:
            wide, first = is_wide(n, items), bool(before)
            key = "reduce", items.kind, out.kind, op.key, t, combine.type, first, wide
            kernel = kernels_for(key, _kernel, items, out, combine, t, first, wide)
            plan.launch(blocks, kernel, items.state(n), out.state(blocks), before, n, size, n // size > blocks,
                        n % size != 0)

        if blocks == 1:
            reduce(items, out, before, n, 1, size)
        else:
            between = plan.values(blocks, t)
            reduce(items, between, (), n, blocks, size)
            reduce(between, out, before, blocks, 1, blocks)


def make_reduce_into(d_in: Any, d_out: Any, op: Any, h_init: Any = None, *, determinism: Determinism =
                     Determinism.RUN_TO_RUN, compute_capability: Any = None) -> Reduce:
    """An object that reduces items, for arguments of the same kinds.

    Parameters
    ----------
    d_in, d_out, op, h_init, determinism
        As in `reduce_into`; arrays may be `ProxyArray`.
    compute_capability : optional
        The GPUs that it may run on: 90, (9, 0), "9.0", "90", or a list of these. None: all.

    Returns
    -------
    object
        Call it with `temp_storage, d_in, d_out, op, num_items, h_init, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `reduce_into` does; a call with another kind of argument, or another operator, is a TypeError.

    Examples
    --------
    >>> x, total, plus = np.arange(5), np.zeros(1, int), ct.compute.OpKind.PLUS
    >>> reduce = ct.compute.make_reduce_into(x, total, plus, 100)
    >>> storage = np.empty(reduce(None, x, total, plus, 5, 100), np.uint8)
    >>> nbytes = reduce(storage, x, total, plus, 5, 100)
    >>> total
    array([110])
    """
    return Reduce((Determinism(determinism),), compute_capability, d_in=d_in, d_out=d_out, op=op, h_init=h_init)


def reduce_into(d_in: Any, d_out: Any, num_items: int, op: Any, h_init: Any = None, stream: Any = None, *,
                determinism: Determinism = Determinism.RUN_TO_RUN, compute_capability: Any = None) -> None:
    """Compute `d_out[0] = op(… op(op(h_init, x0), x1) …)` of `num_items` items.

    Parameters
    ----------
    d_in : array or iterator
        The items.
    d_out : array or iterator
        Item 0 takes the result, converted to its type.
    num_items : int
        How many items there are.
    op : callable or OpKind
        Associative and commutative. It computes in the type of `h_init`, without one in that of the items.
    h_init : number, NumPy array of one item, or struct, optional
        Stands before the items. Without items `d_out` becomes it, or stays as it is.
    stream : optional
        As in `ct.launch`.
    determinism : Determinism, default RUN_TO_RUN
        How far results may differ.
    compute_capability : optional
        As in `make_reduce_into`.

    Raises
    ------
    TypeError
        If the operator cannot combine the items, or `d_out` is read-only.
    ValueError
        If `num_items` is negative, or more than an array has.

    Notes
    -----
    [RDC-1.reduce] [RDC-2.accumulator] [RDC-3.nothing] [RDC-6.convert]

    Examples
    --------
    >>> x, most = np.array([3, 8, 5]), np.zeros(1, int)
    >>> ct.compute.reduce_into(x, most, 3, lambda a, b: a if a > b else b)
    >>> most
    array([8])
    """
    capabilities(compute_capability)  # a one-shot call runs where its arrays are
    if type(determinism) is not Determinism:
        determinism = Determinism(determinism)
    Reduce.once((determinism,), stream, d_in, d_out, op, num_items, h_init)
