"""Functions on arrays of JAX, also inside jax.jit: the call is `cutile.jax.cutile_call`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutile.dtypes import INFO
from cutile.errors import refusal
from cutile.functions import stored
from cutile.functions.binding import Bound, Planned


def call(bound: Bound, wanted: Sequence[Planned]) -> Any:
    """The outputs of a call, as arrays of JAX. TypeError for an output that is to be filled before."""
    from cutile.jax import InputOutput, OutputPlaceholder
    from cutile.jax.calls import call as call_kernel

    f = bound.function
    values = dict(bound.values)
    for w in wanted:
        values[w.output.name] = OutputPlaceholder(w.shape, INFO[w.dtype].storage)
        if w.output.out.fill is not None:
            import jax

            values[w.output.name] = InputOutput(jax.numpy.full(w.shape, w.output.out.fill, INFO[w.dtype].storage))
    for name in f.returned - {w.output.name for w in wanted}:
        values[name] = InputOutput(values[name])
    grid = (0, 0, 0) if wanted and all(0 in w.shape for w in wanted) else bound.grid()
    if not f.returned:
        raise refusal(TypeError(f"{f.__name__}(): arrays of JAX cannot be written to; declare what the kernel writes "
                                f"as outputs by ct.jit(..., out=...), or by inout()"))
    if 0 not in grid:
        stored.check_call(bound, _samples(bound, wanted))
    return call_kernel(grid, f.launched, tuple(values[n] for n in f.kernel.names), f.target,
                       lambda name: f"{f.__name__}.inout(\"{name}\")")


def _samples(bound: Bound, wanted: Sequence[Planned]) -> tuple:
    """Launch arguments of the same types."""
    from cutile.compilation.array_spec import Sample

    arrays = {a.name: Sample(a.shape, a.dtype) for a in bound.arrays}
    outputs = {w.output.name: Sample(w.shape, w.dtype) for w in wanted}
    values = {**bound.values, **arrays, **outputs}
    return tuple(values[n] for n in bound.function.kernel.names)
