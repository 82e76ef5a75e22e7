"""unary_transform and binary_transform: an operator on each item, or on each pair of items [TRF-*]."""

from typing import Any

import cutile as ct
from cutile.compute.algorithm import Algorithm, check_count, device_of, is_wide, kernels_for, launch, position
from cutile.compute.iterators import IteratorBase, as_input, as_output
from cutile.compute.operators import Operator, operator
from cutile.compute.readers import Place

TILE = 1024  # items of a block


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
    def __init__(self, ins: dict[str, Any], d_out: Any, op: Any):
        super().__init__()
        self.names = tuple(ins)
        for name, value in ins.items():
            self.input(name, value)
        self.output("d_out", d_out)
        self.operator("op", op)

    def run(self, ins: tuple, d_out: Any, op: Any, num_items: int, stream: Any) -> None:
        inputs = tuple(self.input(name, value) for name, value in zip(self.names, ins, strict=True))
        out, f = self.output("d_out", d_out), self.operator("op", op)
        n = check_count("num_items", num_items, **dict(zip(self.names, inputs, strict=True)), d_out=out)
        if n == 0:
            return None
        wide = is_wide(n, *inputs, out)
        kernel = kernels_for(("transform", *(i.kind for i in inputs), out.kind, f.key, wide), _kernel, inputs, out, f,
                             wide)
        states, (full, rest) = (tuple(i.state(n) for i in inputs), out.state(n)), divmod(n, TILE)
        if rest == 0 or full == 0 or device_of(*inputs, out) is not None:
            return launch(stream, full + bool(rest), kernel, *states, n, 0, TILE, rest == 0)
        launch(stream, full, kernel, *states, n, 0, TILE, True)  # masks cost time in host memory
        return launch(stream, 1, kernel, *states, n, full, TILE, False)


class UnaryTransform(_Transform):
    def __init__(self, d_in: Any, d_out: Any, op: Any):
        super().__init__({"d_in": d_in}, d_out, op)

    def __call__(self, d_in: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
        self.run((d_in,), d_out, op, num_items, stream)


class BinaryTransform(_Transform):
    def __init__(self, d_in1: Any, d_in2: Any, d_out: Any, op: Any):
        super().__init__({"d_in1": d_in1, "d_in2": d_in2}, d_out, op)

    def __call__(self, d_in1: Any, d_in2: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
        self.run((d_in1, d_in2), d_out, op, num_items, stream)


def make_unary_transform(d_in: Any, d_out: Any, op: Any) -> UnaryTransform:
    """An object that computes `d_out[i] = op(d_in[i])`."""
    return UnaryTransform(d_in, d_out, op)


def make_binary_transform(d_in1: Any, d_in2: Any, d_out: Any, op: Any) -> BinaryTransform:
    """An object that computes `d_out[i] = op(d_in1[i], d_in2[i])`."""
    return BinaryTransform(d_in1, d_in2, d_out, op)


def unary_transform(d_in: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
    """Compute `d_out[i] = op(d_in[i])` for `num_items` items, converted to d_out's type. In place is allowed."""
    items, out, f = as_input(d_in, "d_in"), as_output(d_out, "d_out"), operator(op)
    UnaryTransform(items, out, f)(items, out, f, num_items, stream)


def binary_transform(d_in1: Any, d_in2: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
    """Compute `d_out[i] = op(d_in1[i], d_in2[i])` for `num_items` items, converted to d_out's type."""
    one, two = as_input(d_in1, "d_in1"), as_input(d_in2, "d_in2")
    out, f = as_output(d_out, "d_out"), operator(op)
    BinaryTransform(one, two, out, f)(one, two, out, f, num_items, stream)
