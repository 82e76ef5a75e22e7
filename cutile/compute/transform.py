"""unary_transform and binary_transform: an operator on each item, or on each pair of items [TRF-*]."""

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
from cutile.compute.operators import Operator
from cutile.compute.plans import Plan
from cutile.compute.readers import Place

TILE = 1024  # items of a block
HOST_TILES = (1 << 18, 1 << 14, TILE)  # in host memory, where few large tiles are quick


def _kernel(ins: tuple[IteratorBase, ...], out: IteratorBase, op: Operator, wide: bool) -> Any:
    readers, writer, f, t = tuple(i.reader() for i in ins), out.writer(), op.function, out.value_type

    @ct.kernel
    def transform(inputs: tuple[tuple(i.annotation(wide) for i in ins)], output: out.annotation(wide),
                  n: position(wide), first: int, size: ct.Constant[int], whole: ct.Constant[bool]):
        place = Place(ct.bid(0) + first, size, n, whole)
        values = tuple(readers[k].tile(inputs[k], place) for k in ct.static_iter(range(len(readers))))
        writer.put(output, place, t.cast(ct.elementwise(f)(*values, mask=place.mask())))

    return transform


class _Transform(Algorithm):
    def plan(self, plan: Plan, *operands: Any) -> None:
        *inputs, out, f, n = operands
        counted = {name: it for name, it in zip(self.takes, operands, strict=True) if isinstance(it, IteratorBase)}
        if check_count("num_items", n, **counted) == 0:
            return
        wide = is_wide(n, *inputs, out)
        kernel = kernels_for(("transform", *(i.kind for i in inputs), out.kind, f.key, wide), _kernel, tuple(inputs),
                             out, f, wide)
        size = next((s for s in HOST_TILES if s <= n), TILE) if plan.on_host else TILE
        states, (full, rest) = (tuple(i.state(n) for i in inputs), out.state(n)), divmod(n, size)
        if rest == 0 or full == 0 or not plan.on_host:
            plan.launch(full + bool(rest), kernel, *states, n, 0, size, rest == 0)
        else:
            plan.launch(full, kernel, *states, n, 0, size, True)  # masks cost time in host memory
            plan.launch(1, kernel, *states, n, full, size, False)


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
