"""Filling the cache ahead of launches, also on a machine without a GPU.

    from cutile.compilation.prefill import prefill

    x, y = np.empty((4096, 4096), np.float32), np.empty((4096, 4096), np.float32)
    prefill(softmax_rows, [(x, y, 1, 4096)], ["sm_90", "sm_100"])

A folder filled this way (CUTILE_CACHE_DIR names it) serves launches on other machines, with or without an assembler.
"""

from __future__ import annotations

import contextvars
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from cutile._support import trace
from cutile._support.float_mode import in_usual_mode
from cutile.compilation.derive import of_function
from cutile.compilation.launch_signature import of_launch
from cutile.gpu import unchecked
from cutile.gpu.selection import build, for_first_launch
from cutile.gpu.target import SUPPORTED, Target, parse_target
from cutile.runtime.kernel import Kernel
from cutile.runtime.launch import no_kernel
from cutile.runtime.launch_plan import dims_of


def prefill(kernel: Kernel, calls: Iterable[tuple], targets: Sequence[str], *, threads: int | None = None) -> None:
    """Compile what launches with these arguments would compile, also in the background, and put it into the cache.

    kernel   or a function made of it by ct.jit
    calls    the arguments of one launch, or call of the function, each; arrays in host memory stand for arrays of the
             same layout on a GPU
    targets  for example ["sm_90"]
    threads  how many assemblers run at once; None is one for each processor
    TypeErrors as launches raise them, TileErrors of kernels that do not compile. All calls are tried; then the first
    error in order is raised.
    """
    kernel, calls = of_function(kernel, calls)
    if not isinstance(kernel, Kernel):
        raise TypeError(no_kernel(kernel, "first argument of prefill()"))
    wanted = _targets(targets)
    classified = [kernel.classify(c) for c in _calls(calls)]
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        done = [pool.submit(contextvars.copy_context().run, fill, kernel, arguments, t)
                for arguments in classified for t in wanted for fill in (_fill, _fill_variant)]
        try:
            wait(done)
        except BaseException:  # Ctrl-C: finish those that run, and begin no other
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for d in done:
        d.result()


def _calls(given: Any) -> list[tuple]:
    found = list(given) if isinstance(given, Iterable) and not hasattr(given, "shape") else [None]
    if not all(isinstance(c, tuple | list) for c in found):
        raise TypeError(f"calls is a list, with a tuple of the arguments of each launch: [(x, y, 128)], not "
                        f"{given!r:.100}")
    return list(map(tuple, found))


def _targets(given: Any) -> list[Target]:
    if isinstance(given, str | Target) or not isinstance(given, Iterable):
        raise TypeError(f'targets is a list such as ["sm_90"], not {given!r:.100}; {SUPPORTED}')
    return list(map(parse_target, given))


@in_usual_mode
def _fill(kernel: Kernel, arguments: list[Any], target: Target) -> None:
    constraints, symbol = of_launch(kernel, arguments)
    build(kernel.program(arguments).kernel, constraints, target, kernel.options, symbol)


@in_usual_mode
def _fill_variant(kernel: Kernel, arguments: list[Any], target: Target) -> None:
    """The variant that launches prefer, if one block alone could run it; a failure of it concerns no user."""
    constraints, symbol = of_launch(kernel, arguments)
    try:
        program, options = kernel.program(arguments).kernel, kernel.options
        first = for_first_launch(program, constraints, target, options, symbol)
        variant = unchecked.unchecked(program, first.uses_tma)
        if variant and variant.for_arrays([dims_of(x) for a in arguments for x in a.flat_args])((1, 1, 1)):
            build(variant.kernel, constraints, target, options, symbol)
    except Exception as e:
        trace.say(trace.LAUNCHES, f"{kernel.__name__} without checks of bounds is left out: {type(e).__name__}: {e}")
