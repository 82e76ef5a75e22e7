"""Repeated launches in C (runtime/_launcher.c), if that extension was built. All other launches run launch plans.

This file only combines what is defined elsewhere: how an argument is read (launch_key.py, c_readers.py), what is
launched (launch_plan.py), how it is passed (gpu/device_launch.py, interp/grid_launch.py) and what must not have changed
(front/dependencies.py). A kernel's LaunchCache holds the result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cutile import settings
from cutile.errors import refusal
from cutile.runtime import autograd
from cutile.runtime.c_readers import c_reader
from cutile.runtime.kernel import Kernel
from cutile.runtime.launch_plan import LaunchPlan

LIMIT = 1000  # launches in the LaunchCache of a kernel


@functools.cache
def extension() -> Any:
    """The compiled module, loaded by the first launch; None where it was not built, or from older sources."""
    try:
        from cutile.runtime import _launcher
    except ImportError:
        return None
    return _launcher if hasattr(_launcher, "apart") else None


def chosen() -> Any:
    """The compiled module, unless CUTILE_LAUNCHER=python; None then, or where there is none.

    SettingError where CUTILE_LAUNCHER=c asks for a module that is not there.
    """
    wanted = settings.get("LAUNCHER")
    c = None if wanted == "python" else extension()
    if c is None and wanted == "c":
        raise refusal(settings.SettingError(
            "CUTILE_LAUNCHER is 'c', but cutile was installed without that extension, or with an older one; install it "
            "anew where there is a C compiler"))
    return c


def refused(answer: tuple[int, Any], grid: tuple[int, ...]) -> Exception:
    """The error for a launch that the driver refused, from the answer of LaunchCache.launch."""
    code, prepared = answer
    return prepared.refused(prepared.device.driver.api.CUresult(code), grid)


def failed(e: Exception) -> Exception:
    """The error of a launch in CPU memory that LaunchCache.launch ran."""
    if not isinstance(e, MemoryError):
        return e
    from cutile.interp.exec.capacity import not_enough

    error = not_enough(e)
    error.__cause__ = e
    return error


def insert(kernel: Kernel, plan: LaunchPlan, values: tuple, grid_limit: int) -> None:
    """Have C code run later launches of a kernel with arguments like these, which a plan has run.

    From then on, `kernel.plans.launch_cache.launch(stream, grid, values)` returns
    * None if it queued the launch, or has run it on the host,
    * NotImplemented if it did nothing, because the launch is another one, or anything is unusual,
    * a pair, for `refused`, if the driver refused the launch: its code, and the prepared launch.
    It raises what code on the host raises.

    `grid_limit` is the largest number of blocks along an axis.
    """
    plan.in_c = False  # until all of it worked
    c = chosen()
    if c is None or any(isinstance(v, np.void) for v in values):  # np.void constants are mutable
        return
    cache = _new(c, kernel, grid_limit) if kernel.plans.launch_cache is None else kernel.plans.launch_cache
    if cache is None:
        return
    for value in values:
        if type(value) not in cache.kinds and (reader := c_reader(c, value)) is not None:
            cache.kinds[type(value)] = reader
    prepared: Any = plan.prepared
    if not hasattr(prepared, "record"):
        return  # a launch on host copies
    plan.in_c = True
    if (record := prepared.record(c)) is None or cache.lookup(values) is prepared:
        return
    streams = None
    if plan.ordinal is not None:
        from cutile.gpu.streams import by_type as streams

    comparisons = plan.program.dependencies.comparisons()
    plan.in_c = cache.insert(values, record, comparisons, prepared, autograd.for_c(plan.written), prepared.choices,
                             streams)
    if plan.in_c:
        kernel.plans.launch_cache = cache


def _new(c: Any, kernel: Kernel, grid_limit: int) -> Any:
    """An empty LaunchCache; None where settings cannot be watched."""
    watch, host_watch = settings.watch("BACKEND", "DEBUG", "SANITIZE"), settings.watch(*settings.INTERPRETED)
    return watch and c.LaunchCache(constants=bytes(s.constant for s in kernel.specs), watch=watch,
                                   host_watch=host_watch, grid_limit=grid_limit, capacity=LIMIT)


def kind_on_gpu(value: Any) -> int | None:
    """How C code reads arrays of the class of `value` in GPU memory, as `read_roles` takes it; None if it does not."""
    c = chosen()
    kind = None if c is None else c_reader(c, value)
    return kind if kind is not None and (kind in (c.TORCH_SHIM, c.CUPY_FIELDS) or kind > c.NUMPY) else None


def is_current(device: Any) -> Callable[[], bool] | None:
    """C code that says whether the context of a GPU is the current one of a thread; None where there is none."""
    c = chosen()
    if c is None:
        return None
    return functools.partial(c.is_current, device.driver.address("cuCtxGetCurrent"), device.context_number)
