"""Repeated launches, in C (gpu/_launcher.c) where that extension was built; all others go the way of launch_plan.py.

What a launch depends on stays where it is said: launch_key.py knows how an argument is read, launch_plan.py what is
launched, parameters.py how parameters are passed, front/dependencies.py what must not have changed. A kernel's memo
has the outcome.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from cutile import settings
from cutile.runtime import autograd, launch_key

LIMIT = 1000  # launches that a kernel remembers
# Kinds of arguments, as in the C file, by the function that reads them here.
_KINDS = {launch_key._bool: 1, launch_key._int: 2, launch_key._float: 3, launch_key._torch: 4, launch_key._cupy: 5}


@functools.cache
def extension() -> Any:
    """The compiled module, loaded when something runs on a GPU; None where it was not built."""
    try:
        from cutile.gpu import _launcher
    except ImportError:
        return None
    return _launcher


def refused(answer: tuple[int, Any], grid: tuple[int, ...]) -> Exception:
    """The error for what C code answered of a launch that the driver refused."""
    code, prepared = answer
    return prepared.refused(prepared.device.driver.api.CUresult(code), grid)


def remember(kernel: Any, plan: Any, values: tuple, limit: int) -> None:
    """Keep what a launch did, for others like it: `kernel.remembered.again(stream, grid, values)` queues one and
    answers None.

    It answers NotImplemented, with nothing done, if there is none or anything is unusual, and what `refused` takes if
    the driver refuses. `limit` is the largest number of blocks along an axis.
    """
    c = extension()
    if c is None or any(isinstance(v, np.void) for v in values):  # whose address says little: it can change
        return
    remembered = kernel.remembered
    memo = _memo(kernel, limit) if remembered.again is None else remembered.again.args[0]
    if memo is None:
        return
    entries, constants, kinds, *_ = memo
    for value in values:
        if (kind := _kind(c, type(value))) is not None:
            kinds[type(value)] = kind
    found = c.signature(values, constants, kinds)
    if found is NotImplemented:
        return
    signature, kept, _ = found
    before, record = entries.get(signature), plan.prepared.record()
    if record is None or before is not None and before[3] is plan.prepared:
        return
    if len(entries) >= LIMIT:
        entries.clear()
    comparisons = plan.program.dependencies.comparisons()
    entries[signature] = (record, comparisons, kept, plan.prepared, autograd.for_c(plan.written))
    if remembered.again is None:
        remembered.again = functools.partial(c.launch, memo)


def _kind(c: Any, cls: type) -> int | None:
    """How C code reads arguments of a class: a kind, or the address of a function of PyTorch that does."""
    reader = launch_key._READERS.get(cls)
    exchange = getattr(cls, "__dlpack_c_exchange_api__", None)
    if reader is launch_key._torch and exchange is not None and (lender := c.lender(exchange)) is not None:
        return lender
    return _KINDS.get(reader)


def _memo(kernel: Any, limit: int) -> tuple | None:
    """As the C file takes it: launches by signature, which parameters are constants, kinds of arguments by class, …"""
    from cutile.gpu.streams import by_type

    watch = settings.watch("BACKEND", "DEBUG")
    return watch and ({}, bytes(s.constant for s in kernel.specs), {}, limit, by_type, watch)
