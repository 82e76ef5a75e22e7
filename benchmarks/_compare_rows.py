"""The worker of compare.py: python _compare_rows.py CHECKOUT. It answers each row's name with seconds, as JSON lines.

Seconds are those of the processor, as a busy machine does not change them; launches on a GPU, which may wait for it,
are timed by the clock.

    python _compare_rows.py CHECKOUT --first CASE     the first launch of this process
    python _compare_rows.py CHECKOUT --import
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LEAST_SECONDS, LEAST_RUNS = 0.1, 4  # of a sample
PROCESSES = 2  # of a sample that takes fresh ones
FIRST = ("vector add", "softmax", "matmul f16", "attention f16")  # their first launches are measured in fresh processes
CALLS = 200  # repeated launches that are timed together; on a GPU they stay below the length of the driver's queue

Sample = Callable[[], float]  # takes one, in seconds


def timed(run: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> float:
    start = clock()
    run()
    return clock() - start


def least(run: Callable[[], Any], wait: Callable[[], Any] | None = None) -> float:
    """Seconds of a run. With `wait` it queues work on a GPU, and that it waits for it in the end is not timed."""
    clock = time.perf_counter if wait else time.process_time
    gc.collect()
    gc.disable()
    try:
        times: list[float] = []
        while len(times) < LEAST_RUNS or sum(times) < LEAST_SECONDS:
            times.append(timed(run, clock))
            if wait:
                wait()
        return min(times)
    finally:
        gc.enable()


# ------------------------------------------------------------------ rows


def rows() -> dict[str, Sample]:
    import _kernels
    from _cases import CASES
    from _compare_kernels import REPEATED

    found: dict[str, Sample] = {"import cutile": functools.partial(in_processes, "--import")}
    for name in FIRST:
        found[f"first launch of a process, {name}"] = functools.partial(in_processes, "--first", name)
    for name in CASES:
        found[f"first launch of a kernel, {name}"] = functools.partial(first_of_kernel, _kernels, CASES[name])
    for library, (array, wait) in libraries().items():
        for what, make in REPEATED.items():
            found[f"repeated launch, {library}, {what}"] = functools.partial(repeated, make, array, wait)
    for name in CASES:
        found[f"interpreter, {name}"] = functools.partial(interpreter, _kernels, CASES[name])
    return found


def in_processes(*what: str) -> float:
    command = [sys.executable, __file__, sys.argv[1], *what]
    return min(float(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
               for _ in range(PROCESSES))


def first_of_kernel(kernels: Any, case: Any) -> float:
    return least(first_launch(kernels, case))


def first_launch(kernels: Any, case: Any) -> Callable[[], None]:
    """Launches a case's kernel, each time as a new one, for one block: what is computed takes next to no time."""
    import cutile as ct

    kernel, grid, constants = kernels.LAUNCHES[case.name]
    args = (*case.inputs(), case.output(), *constants)
    return lambda: ct.launch(None, (1,) * len(grid), ct.kernel(kernel.function), args)


def interpreter(kernels: Any, case: Any) -> float:
    launch = kernels.launcher(case.name, (*case.inputs(), case.output()))
    launch()
    return least(launch)


def repeated(make: Callable[[Any], tuple], array: Callable[[int], Any], wait: Callable[[], Any] | None) -> float:
    import cutile as ct

    kernel, args = make(array)
    launch = ct.launch

    def calls() -> None:
        for _ in range(CALLS):
            launch(None, (1,), kernel, args)

    calls()
    if wait:
        wait()
    return least(calls, wait) / CALLS


# ------------------------------------------------------------------ arrays


def libraries() -> dict[str, tuple[Callable[[int], Any], Callable[[], Any] | None]]:
    """By name how to make an array of float32, and on a GPU how to wait for what was queued."""
    import numpy as np

    found: dict[str, Any] = {"NumPy": ((lambda n: np.ones(n, np.float32)), None)}
    if importlib.util.find_spec("torch"):
        import torch

        found["torch"] = (lambda n: torch.ones(n)), None
        if torch.cuda.is_available():
            found["torch on GPU"] = (lambda n: torch.ones(n, device="cuda")), torch.cuda.synchronize
    if importlib.util.find_spec("cupy"):
        import cupy

        if cupy.is_available():
            found["CuPy on GPU"] = (lambda n: cupy.ones(n, np.float32)), cupy.cuda.runtime.deviceSynchronize
    return found


# ------------------------------------------------------------------ processes


def of_checkout() -> None:
    """SystemExit unless cutile is that of the checkout."""
    import cutile

    if not Path(cutile.__file__).resolve().is_relative_to(sys.argv[1]):
        raise SystemExit(f"cutile was found at {cutile.__file__}, not in {sys.argv[1]}")


def first_of_process(name: str) -> float:
    import _kernels
    from _cases import CASES

    return timed(first_launch(_kernels, CASES[name]))


def importing() -> float:
    seconds = timed(lambda: __import__("cutile"))
    of_checkout()
    return seconds


def serve() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed is no answer
    of_checkout()
    known = rows()

    def answer(what: Any) -> None:
        out.write(json.dumps(what) + "\n")
        out.flush()

    answer(list(known))
    for line in sys.stdin:
        answer(known[json.loads(line)]())


if __name__ == "__main__":
    match sys.argv[2:]:
        case ["--first", name]:
            print(first_of_process(name))
        case ["--import"]:
            print(importing())
        case _:
            serve()
