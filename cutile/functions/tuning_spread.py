"""Configurations of a search that are measured in other processes: those of an executor [TUN-10].

A job is all that a process needs: how it finds the kernel, the grid, and copies of the arguments, which it puts on the
first GPU that it sees. The executor may be any one that can run an importable function: processes of this machine, one
for each GPU (`ct.tune.gpu_processes`), or a cluster's.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any

from cutile._support.structs import structure
from cutile.errors import refusal
from cutile.functions.tuning_check import Outcome, Outputs, outcome_of
from cutile.runtime.kernel import Kernel
from cutile.tune.candidates import Candidate, Clocks
from cutile.tune.trial import Route, copied, here, route_to, stop_if_loading

RUNS = 2  # whose least time counts


@structure(frozen=True)
class Job:
    """A configuration to measure. `args` are copies; `limit` is that of the first run, in seconds, or None."""

    config: dict[str, Any]
    route: Route
    grid: Any
    args: tuple
    limit: float | None
    outputs: Outputs


@structure(frozen=True)
class Measured:
    """What a job gave: microseconds and what was stored, or why it failed."""

    us: float = float("inf")
    outcome: Outcome | None = None
    why: str = ""


def job(config: dict[str, Any], kernel: Kernel, grid: Any, args: tuple, limit: float | None,
        outputs: Outputs) -> Job:
    """ValueError for a kernel that another process cannot find."""
    route = route_to(kernel)
    if route is None:
        raise refusal(ValueError(f"executor= needs kernels that other processes can import, and {kernel.__qualname__} "
                                 f"is none: define it at the top level of a module, or make it by a factory there"))
    return Job(config, route, grid, copied(args), limit, outputs)


def measure(j: Job) -> Measured:
    """Measure a configuration in this process."""
    stop_if_loading()
    clocks = Clocks(None, True)
    try:
        if j.limit is not None:
            clocks.limit_first_runs(j.limit)
        args = here(j.args, gpu=0)
        c = Candidate(j.config, clocks, j.grid, j.route.kernel(), lambda config: args)
        clocks.first_run(c.kernel, c.grid, args)
        outcome = outcome_of(c.kernel, c.grid, args, None, j.outputs)
        return Measured(min(c.run(args) for _ in range(RUNS)), outcome)
    except Exception as e:
        return Measured(why=f"{type(e).__name__}: {e}")
    finally:
        clocks.close()


def submit(executor: Executor, j: Job) -> Future:
    return executor.submit(measure, j)


def result(future: Future) -> Measured:
    """What a job gave. A process that ended is the failure of its job alone, where its executor survives it."""
    try:
        return future.result()
    except Exception as e:
        return Measured(why=f"{type(e).__name__}: {e}")
