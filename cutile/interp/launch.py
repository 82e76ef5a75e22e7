"""From host arrays and numbers to a running grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cutile.interp import memory, schedule
from cutile.ir.nodes import Kernel, Value
from cutile.passes.written import written_params
from cutile.types import ArrayType, ListType


def launch(kernel: Kernel, grid: tuple[int, int, int], leaves: Sequence[Any]) -> None:
    """Run a kernel. `leaves` are NumPy arrays, numbers and lists of arrays, one for each IR parameter.

    TypeError if the kernel stores to an array that is read-only.
    """
    stored = schedule.derived(kernel, ("written",), lambda: written_params(kernel))
    args = [_wrap(p, name, x, p in stored)
            for p, name, x in zip(kernel.params, kernel.param_names, leaves, strict=True)]
    memories = [v.memory for a in args for v in (a if type(a) is list else (a,)) if type(v) is memory.ArrayView]
    targets = [m for m in memories if m.writable]
    for m in memories:
        m.may_change = m.writable or any(np.may_share_memory(m.array, target.array) for target in targets)
    schedule.run(kernel, grid, args)


def _wrap(p: Value, name: str, x: Any, stored: bool) -> Any:
    if isinstance(p.type, ListType):
        return [_view(p.type.element, f"{name}[{i}]", a, stored) for i, a in enumerate(x)]
    return _view(p.type, name, x, stored) if isinstance(p.type, ArrayType) else x


def _view(t: ArrayType, name: str, x: np.ndarray, stored: bool) -> memory.ArrayView:
    if stored and not x.flags.writeable:
        raise TypeError(f"the kernel stores to parameter `{name}`, but the array given for it is read-only")
    return memory.wrap(x, t.dtype, t.index_dtype, writable=stored, name=name)
