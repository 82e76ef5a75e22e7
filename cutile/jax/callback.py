"""Calls through JAX's buffer_callback: kernels without outputs, and where the handlers in C cannot be used.

They are not there where cutile was installed without a C compiler, and CUTILE_BACKEND=interp needs Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.experimental.buffer_callback import buffer_callback

from cutile.dtypes import lowest, of_storage
from cutile.jax.description import Array, Call
from cutile.runtime.launch import launch

CPU = 1  # DLPack's kDLCPU


def run(c: Call, inputs: Sequence[Any]) -> Any:
    """The outputs of a call, one item of a batch after another."""
    if not c.batch:
        outputs = [jax.ShapeDtypeStruct(*o) for o in c.outputs]
        return buffer_callback(_runner(c), outputs, input_output_aliases=dict(c.aliases),
                               has_side_effect=not outputs)(*inputs)
    rest = replace(c, batch=c.batch[1:], batched=tuple(has[1:] for has in c.batched))
    varying = [x for x, has in zip(inputs, c.batched, strict=True) if has[0]]

    def item(given: Sequence[Any]) -> Any:
        these = iter(given)
        return run(rest, [next(these) if has[0] else x for x, has in zip(inputs, c.batched, strict=True)])

    return jax.lax.map(item, varying)


def _runner(c: Call) -> Any:
    """The function that XLA calls with the buffers of outputs and inputs."""
    fresh = set(range(len(c.outputs))) - {o for _, o in c.aliases}

    def with_buffers(context: Any, outputs: Sequence[Any], *inputs: Any) -> None:
        buffers = [*outputs, *inputs]
        on_gpu = bool(buffers) and buffers[0].__dlpack_device__()[0] != CPU

        if not on_gpu:
            for i in fresh:
                np.asarray(outputs[i])[...] = np.asarray(lowest(of_storage(c.outputs[i][1]))).astype(c.outputs[i][1])

        def given(v: Any) -> Any:
            if isinstance(v, tuple):
                return tuple(map(given, v))
            if not isinstance(v, Array):
                return v
            buffer = outputs[v.output] if v.output is not None else inputs[v.input]
            return _Buffer(buffer) if on_gpu else np.asarray(buffer)

        launch(context.stream if on_gpu else None, c.grid, c.kernel, given(c.values))

    return with_buffers


class _Buffer:
    """A buffer of XLA as an array with DLPack. Nothing waits for it: the launch is queued on the stream that computes
    the buffer.
    """

    def __init__(self, buffer: Any):
        self.buffer = buffer

    def __dlpack__(self, **_: Any) -> Any:
        return self.buffer.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.buffer.__dlpack_device__()
