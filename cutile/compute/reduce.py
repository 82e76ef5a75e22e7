"""reduce_into: all items into one, by an operator that is associative and commutative [RDC-*].

Each block combines the items of its tiles, position by position, and then the positions of its tile; a second launch of
one block does the same with what the blocks gave.
"""

import enum
from typing import Any

import cutile as ct
from cutile.compute.algorithm import (
    Algorithm,
    allocated,
    bytes_of,
    carved,
    check_count,
    device_of,
    ints,
    is_wide,
    kernels_for,
    launch,
    position,
    power_below,
)
from cutile.compute.blocks import Combined, put_one
from cutile.compute.iterators import IteratorBase, Stored, as_input, as_output, constant_reader
from cutile.compute.operators import Operator, operator, result_of
from cutile.compute.readers import Place
from cutile.compute.value_types import ValueType

TILE = 4096  # items of a tile
BLOCKS = 1024  # most blocks; a power of two
HOST_BLOCKS = 16  # in host memory, where a block costs time even where it does little


class Determinism(enum.IntEnum):
    """How far results may differ [RDC-8]. RUN_TO_RUN always holds. With GPU_TO_GPU the tree is the same on every device
    and in host memory; it depends on the number of items alone.
    """

    NOT_GUARANTEED = 0
    RUN_TO_RUN = 1
    GPU_TO_GPU = 2


def _kernel(items: IteratorBase, out: IteratorBase, combine: Combined, first: bool, wide: bool) -> Any:
    """A kernel in which each block combines its tiles. `first`: the result begins with an initial value, in the only
    block.
    """
    reader, writer, t = items.reader(), out.writer(), combine.type
    initial = constant_reader(t)

    @ct.kernel
    def reduce_tiles(source: items.annotation(wide), target: out.annotation(wide), before: ints(t, first),
                     n: position(wide), size: ct.Constant[int]):
        block, blocks = ct.bid(0), ct.num_blocks(0)
        full = ct.astype(n // size, ct.int32)
        total = t.cast(reader.tile(source, Place(block, size, n, True)))
        for i in range(block + blocks, full, blocks):
            total = combine(total, t.cast(reader.tile(source, Place(i, size, n, True))))
        if n % size != 0 and block == full % blocks:
            place = Place(full, size, n, False)
            more, there = t.cast(reader.tile(source, place)), place.mask()
            total = t.select(there, combine(total, more, there), total)
        result = combine.reduced(total)
        if first:
            result = combine(initial.value(before), result)
        put_one(writer, target, block, t, result)

    return reduce_tiles


def _kernel_of_nothing(out: IteratorBase, t: ValueType) -> Any:
    """A kernel that stores the initial value: what no items give."""
    writer, initial = out.writer(), constant_reader(t)

    @ct.kernel
    def store_initial(target: out.annotation(False), before: ints(t, True)):
        put_one(writer, target, 0, t, initial.value(before))

    return store_initial


class Reduce(Algorithm):
    def __init__(self, d_in: Any, d_out: Any, op: Any, h_init: Any, determinism: Determinism):
        super().__init__()
        self.determinism = determinism
        items = self.input("d_in", d_in)
        self.output("d_out", d_out)
        initial = self.initial("h_init", h_init)
        self.type = items.value_type if initial is None else initial.type
        self.loops = result_of(self.operator("op", op), self.type, self.type).loops

    def __call__(self, temp_storage: Any, d_in: Any, d_out: Any, op: Any, num_items: int, h_init: Any = None,
                 stream: Any = None) -> int:
        """Reduce, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        items, out, f = self.input("d_in", d_in), self.output("d_out", d_out), self.operator("op", op)
        n, initial = check_count("num_items", num_items, d_in=items), self.initial("h_init", h_init)
        size = power_below(max(n, 1), TILE)
        usual = HOST_BLOCKS if device_of(items, out) is None and self.determinism < Determinism.GPU_TO_GPU else BLOCKS
        blocks = power_below(max(n // size, 1), usual)
        partial = [(blocks, d) for d in self.type.dtypes] if blocks > 1 else []
        if temp_storage is None:
            return bytes_of(partial)
        temporary = carved(temp_storage, partial)
        before = () if initial is None else initial.state
        if n == 0:
            if initial is not None:
                kernel = kernels_for(("reduce nothing", self.type, out.kind), _kernel_of_nothing, out, self.type)
                launch(stream, 1, kernel, out.state(1), before)
        elif blocks == 1:
            self._run(stream, 1, items, out, f, before, n, size)
        else:
            between = Stored(self.type, temporary)
            self._run(stream, blocks, items, between, f, (), n, size)
            self._run(stream, 1, between, out, f, before, blocks, blocks)
        return bytes_of(partial)

    def _run(self, stream: Any, blocks: int, items: IteratorBase, out: IteratorBase, f: Operator, before: tuple, n: int,
             size: int) -> None:
        wide = is_wide(n, items)
        kernel = kernels_for(("reduce", items.kind, out.kind, f.key, self.type, bool(before), wide), _kernel, items,
                             out, Combined(f.function, self.type, self.loops), bool(before), wide)
        launch(stream, blocks, kernel, items.state(n), out.state(1 if blocks == 1 else blocks), before, n, size)


def make_reduce_into(d_in: Any, d_out: Any, op: Any, h_init: Any = None, *, determinism: Determinism =
                     Determinism.RUN_TO_RUN, compute_capability: Any = None) -> Reduce:
    """An object that reduces items; see `reduce_into`."""
    return Reduce(d_in, d_out, op, h_init, Determinism(determinism))


def reduce_into(d_in: Any, d_out: Any, num_items: int, op: Any, h_init: Any = None, stream: Any = None, *,
                determinism: Determinism = Determinism.RUN_TO_RUN, compute_capability: Any = None) -> None:
    """`d_out[0] = op(… op(op(h_init, x0), x1) …)`, of `num_items` items.

    op      associative and commutative; it computes in h_init's type, without one in that of the items. The result is
            converted to d_out's type
    h_init  a number, a NumPy array whose first item counts, a struct, or None. Without items d_out becomes h_init, or
            stays as it is
    """
    items, out, f = as_input(d_in, "d_in"), as_output(d_out, "d_out"), operator(op)
    reducer = make_reduce_into(items, out, f, h_init, determinism=determinism)
    storage = allocated(reducer(None, items, out, f, num_items, h_init), stream, items, out)
    reducer(storage, items, out, f, num_items, h_init, stream)
