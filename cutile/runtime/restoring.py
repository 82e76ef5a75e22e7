"""Launches that leave arrays as they were: the memory that a launch may store to is copied before the launch, and put
back after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cutile.analysis.aliasing import written_params
from cutile.runtime.float4_packing import PackedArray
from cutile.runtime.launch_plan import LaunchPlan

Restore = Callable[[], None]


@contextmanager
def restored(plan: LaunchPlan, values: Sequence[Any], stream: Any) -> Iterator[None]:
    """Within the `with` block a launch may store to arrays; at its end they are as before, also after an error or
    interrupt.

    The block launches on `stream`, with a plan and launch values that `launch_plan.find` returned.

    On a GPU, memory is copied in whole stretches, from the first element of an array to the last.
    """
    restore = (_copied_on_host if plan.ordinal is None else _copied_on_gpu)(plan, values, stream)
    try:
        yield
    except BaseException:
        try:
            _even_if_interrupted(restore)
        except Exception:  # the first error is raised; a GPU that failed may do nothing more
            pass
        raise
    _even_if_interrupted(restore)


def _even_if_interrupted(restore: Restore) -> None:
    try:
        restore()
    except Exception:
        raise
    except BaseException:  # interrupted
        restore()
        raise


def _copied_on_host(plan: LaunchPlan, values: Sequence[Any], stream: Any) -> Restore:
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    kernel = plan.program.kernel
    stored = written_params(kernel)
    for p, value in zip(kernel.params, values, strict=True):
        for a in () if p not in stored else value if isinstance(value, list) else [value]:
            a = a.pairs if isinstance(a, PackedArray) else a
            if a.flags.writeable:  # a read-only array will be refused anyway
                kept.append((a, a.copy()))

    def restore() -> None:
        for a, before in kept:
            a[...] = before

    return restore


def _copied_on_gpu(plan: LaunchPlan, values: Sequence[Any], stream: Any) -> Restore:
    from cutile.gpu.driver import driver
    from cutile.gpu.streams import handle
    from cutile.runtime import host_copies

    d, number = driver(), handle(stream)
    device, api, kept = d.device(plan.ordinal), d.api, []
    with device.current():
        try:
            for e in host_copies.stored_extents(plan.program.kernel, values, plan.dims):
                size = e.high - e.low
                buffer = d.ask(f"there are no {size:,} bytes of GPU memory to keep what the kernel may change",
                               api.cuMemAllocAsync(size, number))
                kept.append((e.low, buffer, size))
                d.ask("GPU memory cannot be copied", api.cuMemcpyDtoDAsync(int(buffer), e.low, size, number))
        except BaseException:
            for _, buffer, _ in kept:
                api.cuMemFreeAsync(buffer, number)
            raise

    def restore() -> None:
        with device.current():
            for address, buffer, size in kept:
                d.ask("GPU memory cannot be copied", api.cuMemcpyDtoDAsync(address, int(buffer), size, number))
            d.ask("the stream cannot be waited for", api.cuStreamSynchronize(number))
            while kept:
                api.cuMemFreeAsync(kept.pop()[1], number)

    return restore
