"""From host arrays and numbers to a running grid."""

from __future__ import annotations

import contextvars
from collections.abc import Sequence
from typing import Any

import numpy as np

from cutile import settings
from cutile.analysis.memory_effects import written_params
from cutile.errors import refusal
from cutile.interp import debugger, prepared, schedule
from cutile.interp.memory import array_view
from cutile.interp.memory.buffer import Buffer
from cutile.interp.prepared import Ready
from cutile.ir.nodes import Kernel
from cutile.types import ArrayType, ListType


def launch(kernel: Kernel, grid: tuple[int, int, int], leaves: Sequence[Any],
           known: dict[tuple, Ready | None] | None = None) -> None:
    """Run a kernel. `leaves` are NumPy arrays, numbers and lists of arrays, one for each IR parameter.

    `known`: what launches prepared for others like them. It goes with the kernel and the layouts of the arrays: their
    dtypes, sizes and strides. TypeError if the kernel stores to an array that is read-only.
    """
    check = None  # CUTILE_CHECK, if the launch may be a prepared one
    if known is not None and not debugger.attached():
        check = False if settings.untouched() else prepared.checking()
    if check is not None and (found := known.get((grid, check))) is not None and found.run(leaves):
        return
    # In a context of its own, so that an interrupt leaves nothing behind of what is set there.
    contextvars.copy_context().run(_launch, kernel, grid, leaves, known, check)


def _launch(kernel: Kernel, grid: tuple[int, int, int], leaves: Sequence[Any], known: dict[tuple, Ready | None] | None,
            check: bool | None) -> None:
    with settings.steady():
        args = _arguments(kernel, leaves)
        if check is not None and (grid, check) not in known and len(known) < prepared.KEPT \
                and prepared.ordinary(args):
            found = known[grid, check] = prepared.prepare(kernel, grid, args, check)
            if found is not None and found.run(leaves):
                return
        schedule.run(kernel, grid, args)


def _arguments(kernel: Kernel, leaves: Sequence[Any]) -> list[Any]:
    """The leaves as `schedule.run` takes them."""
    args: list[Any] = []
    buffers: list[Buffer] = []
    params = schedule.derived(kernel, ("params",), _params)
    for (t, name, stored), x in zip(params, leaves, strict=True):
        if type(t) is ArrayType:
            x = _view(t, name, x, stored)
            buffers.append(x.buffer)
        elif type(t) is ListType:
            x = [_view(t.element, f"{name}[{i}]", a, stored) for i, a in enumerate(x)]
            buffers += [view.buffer for view in x]
        args.append(x)
    _find_changing(buffers)
    return args


def _find_changing(buffers: Sequence[Buffer]) -> None:
    """Which buffers the kernel may change: those that it stores to, and what may share memory with one of them."""
    targets = [m.array for m in buffers if m.writable]
    for m in buffers:
        if not m.writable:
            m.may_change = False
            for target in targets:
                if np.may_share_memory(m.array, target):
                    m.may_change = True


def _params(kernel: Kernel) -> list[tuple[Any, str, bool]]:
    """Type and name of each parameter, and whether the kernel stores to it."""
    stored = written_params(kernel)
    return [(p.type, name, p in stored) for p, name in zip(kernel.params, kernel.param_names, strict=True)]


def _view(t: ArrayType, name: str, x: np.ndarray, stored: bool) -> array_view.ArrayView:
    if stored and not x.flags.writeable:
        raise refusal(TypeError(f"the kernel stores to parameter `{name}`, but the array given for it is read-only"))
    return array_view.view_of(x, t.dtype, t.index_dtype, stored, name)
