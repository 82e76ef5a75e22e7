"""unary_transform and binary_transform: an operator on each item, or on each pair of items [TRF-*]."""

from collections.abc import Iterator
from typing import Any

import cutile as ct
from cutile.compute.algorithm import (
    COUNT,
    INPUT,
    OPERATOR,
    OUTPUT,
    Algorithm,
    check_count,
    is_wide,
    kernels_for,
    position,
)
from cutile.compute.iterators import IteratorBase
from cutile.compute.operators import Operator, result_of
from cutile.compute.plans import Plan
from cutile.compute.readers import Place

TILE = 1024  # items of a block
HOST_TILES = (1 << 18, 1 << 13, TILE)  # in host memory, where few large tiles are quick


def _kernel(ins: tuple[IteratorBase, ...], out: IteratorBase, op: Operator, wide: bool) -> Any:
    readers, writer, f, t = tuple(i.reader() for i in ins), out.writer(), op.function, out.value_type

    @ct.kernel
    def transform(inputs: tuple[tuple(i.annotation(wide) for i in ins)], output: out.annotation(wide),
                  n: position(wide), first: int, size: ct.Constant[int], whole: ct.Constant[bool],
                  begins: ct.Constant[bool]):
        i = ct.bid(0) if begins else ct.bid(0) + first  # in host memory, tiles that blocks alone determine are views
        place = Place(i, size, n, whole)
        values = tuple(readers[k].tile(inputs[k], place) for k in ct.static_iter(range(len(readers))))
        writer.put(output, place, t.cast(ct.elementwise(f)(*values, mask=place.mask())))

    return transform


class _Transform(Algorithm):
    def check(self, op: Operator, **operands: IteratorBase) -> None:
        *inputs, _ = operands.values()
        result_of(op, *(it.value_type for it in inputs))

    def plan(self, plan: Plan, *operands: Any) -> None:
        *inputs, out, f, n = operands
        counted = {name: it for name, it in zip(self.takes, operands, strict=True) if isinstance(it, IteratorBase)}
        if check_count("num_items", n, **counted) == 0:
            return
        wide = is_wide(n, *inputs, out)
        kernel = kernels_for(("transform", *(i.kind for i in inputs), out.kind, f.key, wide), _kernel, tuple(inputs),
                             out, f, wide)
        states = tuple(i.state(n) for i in inputs), out.state(n)
        for blocks, first, size, whole in _parts(n, HOST_TILES if plan.on_host else ()):
            plan.launch(blocks, kernel, *states, n, first, size, whole, first == 0)


def _parts(n: int, sizes: tuple[int, ...]) -> Iterator[tuple[int, int, int, bool]]:
    """How n items are cut: numbers of tiles, the number of the first one, their size, and whether all items are there.
    `sizes`: of tiles that are whole, each a multiple of the next; masks cost time in host memory.
    """
    done = 0
    for size in sizes:
        if n - done >= size:
            yield (n - done) // size, done // size, size, True
            done = n - n % size
    if n > done:
        size = next((s for s in sizes[::-1] if s >= n - done), TILE)
        yield -(-(n - done) // size), done // size, size, n % size == 0


class UnaryTransform(_Transform):
    takes = {"d_in": INPUT, "d_out": OUTPUT, "op": OPERATOR, "num_items": COUNT}

    def __call__(self, d_in: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
        self.run_here(stream, d_in, d_out, op, num_items)


class BinaryTransform(_Transform):
    takes = {"d_in1": INPUT, "d_in2": INPUT, "d_out": OUTPUT, "op": OPERATOR, "num_items": COUNT}

    def __call__(self, d_in1: Any, d_in2: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
        self.run_here(stream, d_in1, d_in2, d_out, op, num_items)


def make_unary_transform(d_in: Any, d_out: Any, op: Any, compute_capability: Any = None) -> UnaryTransform:
    """An object that computes `d_out[i] = op(d_in[i])`."""
    return UnaryTransform((), compute_capability, d_in=d_in, d_out=d_out, op=op)


def make_binary_transform(d_in1: Any, d_in2: Any, d_out: Any, op: Any,
                          compute_capability: Any = None) -> BinaryTransform:
    """An object that computes `d_out[i] = op(d_in1[i], d_in2[i])`."""
    return BinaryTransform((), compute_capability, d_in1=d_in1, d_in2=d_in2, d_out=d_out, op=op)


def unary_transform(d_in: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
    """Compute `d_out[i] = op(d_in[i])` for `num_items` items, converted to d_out's type. In place is allowed."""
    UnaryTransform.once((), stream, d_in, d_out, op, num_items)


def binary_transform(d_in1: Any, d_in2: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
    """Compute `d_out[i] = op(d_in1[i], d_in2[i])` for `num_items` items, converted to d_out's type."""
    BinaryTransform.once((), stream, d_in1, d_in2, d_out, op, num_items)
