"""Runs a block whose assertion failed under `batch` once more, alone, so that debuggers find its variables.

Under `batch` an assertion is found for many blocks at once, in code that has no variables of a single block. The block
runs again under `block`, on copies of the arrays that it stores to: its error then has the frame of the kernel, which
pdb, `pytest --pdb`, `%debug` and editors show after the failure. That is done only if nothing that the block reads can
have changed since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cutile import settings
from cutile.analysis.access import accesses
from cutile.errors import TileAssertionError
from cutile.interp.exec.block_set import Launch, Single
from cutile.interp.memory.array_view import ArrayView, view_of
from cutile.interp.memory.per_block_array import ArrayList
from cutile.interp.schedule import CompiledKernel
from cutile.ops._op import OFFSETS, READ, WRITE

ADVICE = "to look at the block's variables, launch again with CUTILE_SCHEDULE=block"


class _Silent(Single):
    """The block that runs again. It prints nothing, because its text was shown before."""

    __slots__ = ()

    def write(self, texts):
        pass


def with_frames(compiled: CompiledKernel, launch: Launch, values: Sequence[Any],
                error: TileAssertionError) -> TileAssertionError:
    """The error of the first block that failed, with the frames of the kernel in its traceback. If the block cannot run
    again, `error` itself, with advice how to see these frames; if its second run does not fail, `error` as it is.

    values  the arguments as `run_blocks.run` has them
    """
    block = min(launch.failed)
    if not _repeatable(compiled, values):
        error.help = error.help or ADVICE
        return error
    with settings.sanitize("off"):
        plan = compiled.plan("block", False)
    again = Launch(launch.grid, launch.step_limit)
    try:
        plan.function(_Silent(again, block), block, *compiled.shown([_copy(x) for x in values]))
    except TileAssertionError as e:
        return e
    return error


def _repeatable(compiled: CompiledKernel, values: Sequence[Any]) -> bool:
    """Whether a block of the launch would read the same again, and so do the same."""
    if compiled.properties().breakpoint:
        return False
    changed = {b.name for b in _buffers(values) if b.may_change}
    if not changed:
        return True
    named = dict(zip(compiled.kernel.params, values, strict=True))
    for a in accesses(compiled.kernel).values():
        # Raw offsets reach other elements in a copy, whose layout may differ.
        if a.effect == WRITE and a.unit != OFFSETS:
            continue
        if a.array.root not in named or a.effect != READ:
            return False
        if any(b.name in changed for b in _buffers([named[a.array.root]])):
            return False
    return True


def _buffers(values: Sequence[Any]) -> Iterator[Any]:
    for x in values:
        if isinstance(x, ArrayView):
            yield x.buffer
        elif isinstance(x, ArrayList):
            yield from _buffers(x)


def _copy(x: Any) -> Any:
    """An argument on memory of its own, if the kernel stores to it."""
    if isinstance(x, ArrayList):
        return ArrayList(map(_copy, x))
    if not isinstance(x, ArrayView) or not x.buffer.writable:
        return x
    return view_of(np.array(x.buffer.array, order="K"), x.dtype, x.index_dtype, True, x.buffer.name)
