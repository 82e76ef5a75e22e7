"""Configurations of a search: each can be compiled, warmed up, and sampled."""

from __future__ import annotations

import contextvars
import functools
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cutile import settings
from cutile._support.float_mode import in_usual_mode
from cutile.ir.terms import number_key
from cutile.runtime import launch, launch_plan
from cutile.runtime.kernel import Kernel
from cutile.runtime.restoring import restored
from cutile.types import ArrayType, ListType

WARM_UPS, WARM_UPS_INTERPRETED = 3, 1  # on a GPU, in the interpreter
BATCH = 5  # samples a round
MIN_SAMPLES, MAX_SAMPLES = 5, 1000
MAX_SECONDS = 5.0  # accumulated time of one configuration
MARGIN, MARGIN_US = 0.01, 0.5  # relative or absolute error margin that counts as precise


@dataclass
class Candidate:
    """A configuration, with running mean and variance of its samples (Welford)."""

    config: Any
    clocks: Clocks
    grid: Any
    kernel: Kernel
    args_fn: Callable[[Any], tuple]
    samples: int = 0
    mean: float = 0.0
    squares: float = field(default=0.0, repr=False)
    taken: list[float] = field(default_factory=list, repr=False)  # the samples
    in_interpreter: bool = False  # it runs in the interpreter
    twin: Candidate | None = None  # another configuration that is the same kernel there
    failure: Exception | None = None
    ready: tuple | None = None  # arguments that no run has used

    def compile_ahead(self, pool: Any) -> Future | bool:
        """Let a thread of the pool make the GPU code; False where there is none to make, in the interpreter.

        What fails here fails again in `start`, which reports it; then the answer is True.
        """
        try:
            args = self.args_fn(self.config)
        except Exception:
            return True
        found = self.plan(args)
        if found is None:
            return True
        plan = found[0]
        if plan.ordinal is None or settings.on_host():
            self.ready = args
            return False
        return pool.submit(contextvars.copy_context().run, _prepare, plan, self.clocks.stream, self.grid)

    def fresh_args(self) -> tuple:
        args, self.ready = self.ready, None
        return self.args_fn(self.config) if args is None else args

    def start(self, seen: dict[tuple, Candidate]) -> None:
        """Warm it up and run its first batch [TUNE-4]; in the interpreter only if none of `seen` is the same kernel."""
        args = self.fresh_args()
        found = self.plan(args)
        if found is not None:
            plan, values = found
            self.in_interpreter = plan.ordinal is None or settings.on_host()
            if self.in_interpreter:
                self.twin = seen.setdefault(_identity(plan, values, launch.padded_grid(self.grid)), self)
                if self.twin is not self:
                    if self.twin.failure is not None:
                        raise self.twin.failure
                    return
                self.twin = None
        try:
            self.clocks.first_run(self.kernel, self.grid, args)
            self.run(args)
            for _ in range((WARM_UPS_INTERPRETED if self.in_interpreter else WARM_UPS) - 1):
                self.run(self.args_fn(self.config))
            self.batch()
        except Exception as e:
            self.failure = e
            raise

    def batch(self) -> None:
        for _ in range(BATCH):
            us = self.run(self.args_fn(self.config))
            self.samples += 1
            self.taken.append(us)
            delta = us - self.mean
            self.mean += delta / self.samples
            self.squares += delta * (us - self.mean)
            if self.in_interpreter and self.mean * self.samples > MAX_SECONDS * 1e6:
                break

    def run(self, args: tuple) -> float:
        """The time of a launch. Afterwards the arrays are as before."""
        run = functools.partial(launch.launch, self.clocks.stream, self.grid, self.kernel, args)
        found = self.plan(args)
        if found is None:
            return _wall_clock(run)  # raises the error
        with restored(*found, self.clocks.stream):
            return self.clocks.of(found[0])(run)

    def plan(self, args: tuple) -> tuple[launch_plan.LaunchPlan, list] | None:
        """The launch plan and launch values for these arguments; None if the arguments are wrong."""
        try:
            return launch_plan.find(self.kernel, args, self.clocks.stream)
        except Exception:
            return None

    @property
    def median(self) -> tuple[float, float]:
        """The median of the samples, and how far from it half of them lie at most. One slow sample changes neither."""
        middle = float(np.median(self.taken))
        return middle, float(np.median(np.abs(np.array(self.taken) - middle)))

    @property
    def margin(self) -> float:
        if self.samples < 2:
            return 0.0
        return 1.96 * math.sqrt(self.squares / (self.samples - 1) / self.samples)

    @property
    def converged(self) -> bool:
        return self.in_interpreter or self.samples >= MIN_SAMPLES and (
            self.margin <= MARGIN * self.mean or self.margin <= MARGIN_US or self.samples >= MAX_SAMPLES
            or self.mean * self.samples > MAX_SECONDS * 1e6)


@in_usual_mode
def _prepare(plan: launch_plan.LaunchPlan, stream: Any, grid: Any) -> None:
    """Make all code that launches for a grid run on a GPU, also what they would have made in the background."""
    prepared: Any = plan.prepared
    if prepared is None or not prepared.still_valid():
        prepared = plan.prepared = plan.prepare(stream)
    prepared.make_variants(launch.padded_grid(grid))


def _identity(plan: Any, values: Sequence[Any], grid: tuple[int, int, int]) -> tuple:
    """A key that is equal for launches that differ, for the interpreter, only in the contents of arrays."""
    dims = plan.dims if plan.ordinal is not None else values
    parts = [_layout(d) if isinstance(p.type, ArrayType | ListType) else number_key(v)
             for p, v, d in zip(plan.program.kernel.params, values, dims, strict=True)]
    return plan.program.kernel, grid, tuple(parts)


def _layout(a: Any) -> Any:
    if isinstance(a, list):
        return tuple(map(_layout, a))
    return a if isinstance(a, tuple) else (getattr(a, "dtype", None), a.shape, a.strides)


Clock = Callable[[Callable[[], None]], float]  # how many microseconds something takes


def _wall_clock(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e6


class Clocks:
    """The clocks of a search, each made when it is first needed."""

    def __init__(self, stream: Any, flush: bool):
        self.stream, self.flush = stream, flush
        self._of_gpus: dict[int, Any] = {}
        self._trials: Any = None
        self._limit = 0.0

    def limit_first_runs(self, seconds: float) -> None:
        """Let `first_run` run launches in another process, for so long at most."""
        from cutile.tune.trial import Trials, stop_if_loading

        stop_if_loading()
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
            raise ValueError(f"single_run_timeout_sec is a number of seconds above 0, not {seconds!r}")
        self._trials, self._limit = Trials(), min(float(seconds), threading.TIMEOUT_MAX)

    def first_run(self, kernel: Kernel, grid: Any, args: tuple) -> None:
        """Try a launch in another process, if first runs have a limit; an exception if it takes longer or breaks."""
        if self._trials is not None:
            self._trials.run(kernel, launch.padded_grid(grid), args, self._limit)

    def of(self, plan: launch_plan.LaunchPlan) -> Clock:
        """The clock for launches with a plan."""
        ordinal = plan.ordinal
        if ordinal is None or settings.on_host():
            return _wall_clock
        if ordinal not in self._of_gpus:
            from cutile.gpu.driver import driver
            from cutile.gpu.streams import handle
            from cutile.gpu.timing import EventClock

            self._of_gpus[ordinal] = EventClock(driver().device(ordinal), handle(self.stream), self.flush)
        return self._of_gpus[ordinal]

    def close(self) -> None:
        if self._trials is not None:
            self._trials.close()
        for clock in self._of_gpus.values():
            clock.close()


def candidate(config, clocks: Clocks, grid_fn, kernel, args_fn, hints_fn) -> Candidate:
    """The candidate of a configuration, by the functions that `exhaustive_search` takes."""
    grid = grid_fn(config)
    chosen = kernel if isinstance(kernel, Kernel) else kernel(config)
    if not isinstance(chosen, Kernel):
        raise TypeError(f"the function given for `kernel` returned {chosen!r:.100} for the configuration "
                        f"{config!r:.100}, and no kernel; a function of tile code becomes one by @ct.kernel")
    if hints_fn is not None:
        hints = hints_fn(config)
        if not isinstance(hints, Mapping):
            raise TypeError(f"hints_fn returned {hints!r:.100} for the configuration {config!r:.100}, and no "
                            f'dictionary of options such as {{"occupancy": 2}}')
        chosen = chosen.replace_hints(**hints)
    return Candidate(config, clocks, grid, chosen, args_fn)
