"""Find the fastest of several configurations of a kernel by running them [TUNE-1…11].

A sample is the time of one launch: on GPU arrays by the GPU's clock (gpu/timing.py), in the interpreter by the wall
clock. On a GPU, the code of all configurations is compiled first, by several assemblers at once. Every configuration is
warmed up and sampled. Then the fastest one that is not yet precise is sampled again, until the best few are precise.
The interpreter ignores hints: there, configurations that differ only in hints are one kernel, which is measured once,
by a few samples. After each run, arrays that the kernel may have stored to are restored.
"""

from __future__ import annotations

import contextvars
import functools
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from cutile import settings
from cutile._support import trace
from cutile._support.float_mode import in_usual_mode
from cutile._support.opaque import opaque
from cutile.ir.terms import number_key
from cutile.runtime import launch, launch_plan
from cutile.runtime.kernel import Kernel
from cutile.runtime.restoring import restored
from cutile.types import ArrayType, ListType

__all__ = ["Measurement", "TuningResult", "exhaustive_search"]

T = TypeVar("T")

WARM_UPS, WARM_UPS_INTERPRETED = 3, 1  # on a GPU, in the interpreter
BATCH = 5  # samples a round
MIN_SAMPLES, MAX_SAMPLES = 5, 1000
MAX_SECONDS = 5.0  # accumulated time of one configuration
TOP = 5  # configurations that must be precise
MARGIN, MARGIN_US = 0.01, 0.5  # relative or absolute error margin that counts as precise


@dataclass(frozen=True, kw_only=True)
class Measurement(Generic[T]):
    """What one configuration took: mean time of a launch in microseconds, with its 95 % error margin."""

    config: T
    mean_us: float
    num_samples: int
    error_margin_us: float


@dataclass(frozen=True, kw_only=True)
class TuningResult(Generic[T]):
    """All configurations that ran, those that failed as (config, exception class, message), and the fastest.

    note   what else to know about the times; may be empty
    """

    best: Measurement[T]
    successes: Sequence[Measurement[T]]
    failures: Sequence[tuple[T, type[BaseException], str]]
    note: str = ""

    def summary(self, *, top_k=10, bottom_k=2) -> str:
        """A ranked table; the middle is left out."""
        ranked = sorted(self.successes, key=lambda m: m.mean_us)
        shown = ranked if len(ranked) <= top_k + bottom_k else [*ranked[:top_k], None, *ranked[len(ranked) - bottom_k:]]
        lines = [f"{len(ranked)} of {len(ranked) + len(self.failures)} configurations ran"]
        for m in shown:
            mark = "*" if m is self.best else " "
            lines.append("  …" if m is None else f"{mark} {m.mean_us:12.2f} us ± {m.error_margin_us:.2f}  "
                                                 f"({m.num_samples} samples)  {m.config}")
        return "\n".join([*lines, self.note] if self.note else lines)

    def __str__(self) -> str:
        return self.summary()


@dataclass
class _Candidate:
    """A configuration, with running mean and variance of its samples (Welford)."""

    config: Any
    clocks: _Clocks
    grid: Any
    kernel: Kernel
    args_fn: Callable[[Any], tuple]
    samples: int = 0
    mean: float = 0.0
    squares: float = field(default=0.0, repr=False)
    in_interpreter: bool = False  # it runs in the interpreter
    twin: _Candidate | None = None  # another configuration that is the same kernel there
    failure: Exception | None = None
    ready: tuple | None = None  # arguments that no run has used

    def compile_ahead(self, pool: Any) -> bool:
        """Let a thread of the pool make the GPU code; False where there is none to make, in the interpreter.

        What fails here fails again in `start`, which reports it.
        """
        try:
            args = self.args_fn(self.config)
        except Exception:
            return True
        found = self._plan(args)
        if found is None:
            return True
        plan = found[0]
        if plan.ordinal is None or settings.on_host():
            self.ready = args
            return False
        pool.submit(contextvars.copy_context().run, _prepare, plan, self.clocks.stream, self.grid)
        return True

    def fresh_args(self) -> tuple:
        args, self.ready = self.ready, None
        return self.args_fn(self.config) if args is None else args

    def start(self, seen: dict[tuple, _Candidate]) -> None:
        """Warm it up and run its first batch [TUNE-4]; in the interpreter only if none of `seen` is the same kernel."""
        args = self.fresh_args()
        found = self._plan(args)
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
            delta = us - self.mean
            self.mean += delta / self.samples
            self.squares += delta * (us - self.mean)
            if self.in_interpreter and self.mean * self.samples > MAX_SECONDS * 1e6:
                break

    def run(self, args: tuple) -> float:
        """The time of a launch. Afterwards the arrays are as before."""
        run = functools.partial(launch.launch, self.clocks.stream, self.grid, self.kernel, args)
        found = self._plan(args)
        if found is None:
            return _wall_clock(run)  # raises the error
        with restored(*found, self.clocks.stream):
            return self.clocks.of(found[0])(run)

    def _plan(self, args: tuple) -> tuple[launch_plan.LaunchPlan, list] | None:
        """The launch plan and launch values for these arguments; None if the arguments are wrong."""
        try:
            return launch_plan.find(self.kernel, args, self.clocks.stream)
        except Exception:
            return None

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

    def measurement(self) -> Measurement:
        of = self.twin or self
        return Measurement(config=self.config, mean_us=of.mean, num_samples=of.samples, error_margin_us=of.margin)


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


@opaque("a search launches kernels and takes their times, which cannot be traced; search outside of what is compiled")
def exhaustive_search(search_space: Sequence[T], stream: Any, grid_fn: Callable[[T], tuple[int, ...]],
                      kernel: Kernel | Callable[[T], Kernel], args_fn: Callable[[T], tuple[Any, ...]],
                      hints_fn: Callable[[T], dict[str, Any]] | None = None, *, quiet: bool = False,
                      single_run_timeout_sec: float | None = None, flush_l2: bool = True) -> TuningResult[T]:
    """Run a kernel in every configuration and report the times.

    search_space   configurations, any objects; ValueError if empty
    grid_fn        config → grid;  args_fn: config → arguments, called afresh for every run, and on a GPU once more,
                   for what is compiled
    kernel         a kernel, or a function config → kernel;  hints_fn: config → options for replace_hints
    quiet          print no progress and no summary
    flush_l2       on a GPU, empty its L2 cache before each run; False makes times of short kernels less exact
    single_run_timeout_sec   has no effect: runs are not given to other processes
    Runs leave the arrays as they were: before each, memory that the kernel may store to is copied;
    afterwards it is put back.
    In the interpreter, which ignores hints, configurations of one program, grid, numbers and layouts of arrays are
    measured as one, by at most six runs; the result's `note` tells.
    An exception while a configuration warms up or runs makes it a failure; ValueError quoting the first one if nothing
    ran.
    """
    configs = list(search_space)
    if not configs:
        raise ValueError("search_space is empty")
    clocks = _Clocks(stream, flush_l2)
    try:
        candidates = [_candidate(c, clocks, grid_fn, kernel, args_fn, hints_fn) for c in configs]
        _compile_ahead(candidates, quiet)
        candidates, failures = _sample(candidates, quiet)
        _refine(candidates)
    finally:
        clocks.close()
    result = _result(candidates, failures)
    if result.note:
        trace.say(trace.LAUNCHES, result.note)
    if not quiet:
        _progress(quiet, "")
        print(result)
    return result


def _compile_ahead(candidates: Sequence[_Candidate], quiet: bool) -> None:
    """On a GPU, compile all configurations, with as many assemblers at once as there are processors."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            for i, candidate in enumerate(candidates):
                _progress(quiet, f"compiling {i + 1}/{len(candidates)} {candidate.config}")
                if not candidate.compile_ahead(pool):
                    break
            pool.shutdown()  # wait
        except BaseException:  # Ctrl-C: finish those that run, and begin no other
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _sample(candidates: Sequence[_Candidate], quiet: bool) -> tuple[list[_Candidate], list[tuple]]:
    """Warm every configuration up and run its first batch [TUNE-4]. Returns those that ran, and the failures as in
    `TuningResult`; ValueError if none ran.
    """
    ran: list[_Candidate] = []
    failures: list[tuple[Any, type[BaseException], str]] = []
    seen: dict[tuple, _Candidate] = {}
    for i, candidate in enumerate(candidates):
        _progress(quiet, f"{i + 1}/{len(candidates)} {candidate.config}")
        try:
            candidate.start(seen)
        except Exception as e:
            failures.append((candidate.config, type(e), str(e)))
        else:
            ran.append(candidate)
    if not ran:
        config, cls, message = failures[0]
        raise ValueError(f"no configuration ran; the first, {config}, failed with {cls.__name__}: {message}")
    return ran, failures


Clock = Callable[[Callable[[], None]], float]  # how many microseconds something takes


def _wall_clock(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e6


class _Clocks:
    """The clocks of a search, each made when it is first needed."""

    def __init__(self, stream: Any, flush: bool):
        self.stream, self.flush = stream, flush
        self._of_gpus: dict[int, Any] = {}

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
        for clock in self._of_gpus.values():
            clock.close()


def _candidate(config, clocks: _Clocks, grid_fn, kernel, args_fn, hints_fn) -> _Candidate:
    grid = grid_fn(config)
    chosen = kernel if isinstance(kernel, Kernel) else kernel(config)
    if hints_fn is not None:
        chosen = chosen.replace_hints(**hints_fn(config))
    return _Candidate(config, clocks, grid, chosen, args_fn)


def _refine(candidates: list[_Candidate]) -> None:
    """Sample until the best few are precise, then those that might still be among the best few [TUNE-4]."""
    while sum(c.converged for c in candidates) < min(TOP, len(candidates)):
        min((c for c in candidates if not c.converged), key=lambda c: c.mean).batch()
    cutoff = max(sorted(c.mean for c in candidates if c.converged)[:TOP])
    for c in candidates:
        while not c.converged and c.mean - c.margin < cutoff:
            c.batch()


def _result(candidates: list[_Candidate], failures: list) -> TuningResult:
    measured = tuple(c.measurement() for c in candidates)
    best = min(measured, key=lambda m: m.mean_us)
    return TuningResult(best=best, successes=measured, failures=tuple(failures), note=_note(candidates))


def _note(candidates: list[_Candidate]) -> str:
    here = [c for c in candidates if c.in_interpreter]
    if not here:
        return ""
    kernels = sum(c.twin is None for c in here)
    same = "" if kernels == len(here) else (
        f"; it ignores hints, so {len(here)} configurations are {kernels} kernel{'s' * (kernels > 1)} there, "
        f"measured once")
    return f"these are times of the interpreter on this CPU, and say nothing about a GPU{same}"


def _progress(quiet: bool, text: str) -> None:
    if not quiet and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text[:100]}")
        sys.stderr.flush()
