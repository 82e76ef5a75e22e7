"""Find the fastest of several configurations of a kernel by running them [TUNE-1…11].

A sample is the time of one launch: on GPU arrays by the GPU's clock (gpu/timing.py), in the interpreter by the wall
clock. On a GPU, the code of all configurations is compiled first, by several assemblers at once. Every configuration is
warmed up and sampled. Then the fastest one that is not yet precise is sampled again, until the best few are precise.
The interpreter ignores hints: there, configurations that differ only in hints are one kernel, which is measured once,
by a few samples. After each run, arrays that the kernel may have stored to are restored.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cutile._support import terminal, trace
from cutile._support.opaque import opaque
from cutile.runtime.kernel import Kernel
from cutile.tune.candidates import Candidate, Clocks, candidate
from cutile.tune.gpu_processes import gpu_processes

__all__ = ["Measurement", "TuningResult", "exhaustive_search", "gpu_processes"]

T = TypeVar("T")

TOP = 5  # configurations that must be precise


@dataclass(frozen=True, kw_only=True)
class Measurement(Generic[T]):
    """What one configuration took.

    Parameters
    ----------
    config : object
        The configuration.
    mean_us : float
        The mean time of a launch, in microseconds.
    num_samples : int
        How many launches were measured.
    error_margin_us : float
        The 95 % error margin of the mean, in microseconds.
    median_us : float or None, default None
        The median, in microseconds. A single slow launch does not change it.
    deviation_us : float or None, default None
        How far from the median half of the launches lie at most, in microseconds.

    Attributes
    ----------
    config, mean_us, num_samples, error_margin_us, median_us, deviation_us
        As above.

    Examples
    --------
    >>> cutile.tune.Measurement(config=128, mean_us=12.5, num_samples=40, error_margin_us=0.1).mean_us
    12.5
    """

    config: T
    mean_us: float
    num_samples: int
    error_margin_us: float
    median_us: float | None = None
    deviation_us: float | None = None


@dataclass(frozen=True, kw_only=True)
class TuningResult(Generic[T]):
    """What `exhaustive_search` found.

    Parameters
    ----------
    best : Measurement
        The fastest configuration.
    successes : sequence of Measurement
        All configurations that ran.
    failures : sequence of tuples
        Those that failed: configuration, class of the exception, message.
    note : str, default ""
        What else to know about the times.

    Attributes
    ----------
    best, successes, failures, note
        As above.

    Examples
    --------
    >>> m = [cutile.tune.Measurement(config=c, mean_us=t, num_samples=9, error_margin_us=0.1)
    ...      for c, t in ((64, 3), (128, 2))]
    >>> print(cutile.tune.TuningResult(best=m[1], successes=m, failures=()))
    2 of 2 configurations ran
    *         2.00 us ± 0.10  (9 samples)  128
              3.00 us ± 0.10  (9 samples)  64
    """

    best: Measurement[T]
    successes: Sequence[Measurement[T]]
    failures: Sequence[tuple[T, type[BaseException], str]]
    note: str = ""

    def summary(self, *, top_k=10, bottom_k=2) -> str:
        """Give a ranked table; the middle of a long one is left out.

        Parameters
        ----------
        top_k : int, default 10
            How many of the fastest are shown.
        bottom_k : int, default 2
            How many of the slowest are shown.

        Returns
        -------
        str
        """
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


@opaque("a search launches kernels and takes their times, which cannot be traced; search outside of what is compiled")
def exhaustive_search(search_space: Sequence[T], stream: Any, grid_fn: Callable[[T], tuple[int, ...]],
                      kernel: Kernel | Callable[[T], Kernel], args_fn: Callable[[T], tuple[Any, ...]],
                      hints_fn: Callable[[T], dict[str, Any]] | None = None, *, quiet: bool = False,
                      single_run_timeout_sec: float | None = None, flush_l2: bool = True) -> TuningResult[T]:
    """Run a kernel in every configuration, and report the times.

    Arrays stay as they were: what the kernel may store to is copied before each run, and put back afterwards.

    Parameters
    ----------
    search_space : sequence
        The configurations: any objects.
    stream : stream, int or None
        As for `ct.launch`.
    grid_fn : function
        It takes a configuration and returns the grid.
    kernel : kernel or function
        A kernel, or a function that takes a configuration and returns one.
    args_fn : function
        It takes a configuration and returns the arguments. It is called for every run, and on a GPU once more, for what
        is compiled.
    hints_fn : function, optional
        It takes a configuration and returns options for `replace_hints`.
    quiet : bool, default False
        Print no progress and no summary.
    single_run_timeout_sec : float, optional
        The limit of the first run of a configuration. That run happens in another process, on copies of the arrays, and
        is ended when it takes longer. There is no limit where another process cannot find the kernel, such as one that
        a function returned, or cannot have copies of the arguments. Where the process itself fails, so does the
        configuration.
    flush_l2 : bool, default True
        On a GPU, empty its L2 cache before each run. False makes times of short kernels less exact.

    Returns
    -------
    TuningResult
        `best.config` is the fastest configuration.

    Raises
    ------
    TypeError
        Something else in the place of a list, a function or a kernel.
    ValueError
        `search_space` is empty, or no configuration ran; then the text quotes the first failure.

    Notes
    -----
    [TUNE-1…11] On a GPU, times are those of the GPU's clock, and all configurations are compiled first, several at
    once. The interpreter ignores hints. There, configurations that differ only in hints are measured once, by at most
    six runs; the result's `note` tells. An exception while a configuration runs makes it a failure.

    Examples
    --------
    >>> @ct.kernel
    ... def double(x, y, TILE: ct.Constant[int]):
    ...     ct.store(y, ct.bid(0), 2 * ct.load(x, ct.bid(0), TILE))
    >>> x, y = np.ones(1024), np.zeros(1024)
    >>> found = cutile.tune.exhaustive_search([64, 256], None, lambda tile: (1024 // tile,), double,
    ...                                       lambda tile: (x, y, tile), quiet=True)
    >>> found.best.config in (64, 256), len(found.successes)
    (True, 2)
    """
    if not isinstance(search_space, Iterable):
        raise TypeError(f"search_space is a list of configurations, not {search_space!r:.100}")
    configs = list(search_space)
    _check(grid_fn, kernel, args_fn, hints_fn)
    if not configs:
        raise ValueError("search_space is empty")
    clocks = Clocks(stream, flush_l2)
    try:
        candidates = [candidate(c, clocks, grid_fn, kernel, args_fn, hints_fn) for c in configs]
        if single_run_timeout_sec is not None:
            clocks.limit_first_runs(single_run_timeout_sec)
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
        with contextlib.suppress(OSError, ValueError):  # nobody reads any more; the result must not be lost
            print(result)
    return result


def _compile_ahead(candidates: Sequence[Candidate], quiet: bool) -> None:
    """On a GPU, compile all configurations, with as many assemblers at once as there are processors."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            for i, c in enumerate(candidates):
                _progress(quiet, f"compiling {i + 1}/{len(candidates)} {c.config}")
                if not c.compile_ahead(pool):
                    break
            pool.shutdown()  # wait
        except BaseException:  # Ctrl-C: finish those that run, and begin no other
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _sample(candidates: Sequence[Candidate], quiet: bool) -> tuple[list[Candidate], list[tuple]]:
    """Warm every configuration up and run its first batch [TUNE-4]. Returns those that ran, and the failures as in
    `TuningResult`; ValueError if none ran.
    """
    ran: list[Candidate] = []
    failures: list[tuple[Any, type[BaseException], str]] = []
    seen: dict[tuple, Candidate] = {}
    for i, c in enumerate(candidates):
        _progress(quiet, f"{i + 1}/{len(candidates)} {c.config}")
        try:
            c.start(seen)
        except Exception as e:
            failures.append((c.config, type(e), str(e)))
        else:
            ran.append(c)
    if not ran:
        config, cls, message = failures[0]
        raise ValueError(f"no configuration ran; the first, {config}, failed with {cls.__name__}: {message}")
    return ran, failures


def _refine(candidates: list[Candidate]) -> None:
    """Sample until the best few are precise, then those that might still be among the best few [TUNE-4]."""
    while sum(c.converged for c in candidates) < min(TOP, len(candidates)):
        min((c for c in candidates if not c.converged), key=lambda c: c.mean).batch()
    cutoff = max(sorted(c.mean for c in candidates if c.converged)[:TOP])
    for c in candidates:
        while not c.converged and c.mean - c.margin < cutoff:
            c.batch()


def _measurement(c: Candidate) -> Measurement:
    of = c.twin or c
    median, deviation = of.median
    return Measurement(config=c.config, mean_us=of.mean, num_samples=of.samples, error_margin_us=of.margin,
                       median_us=median, deviation_us=deviation)


def _result(candidates: list[Candidate], failures: list) -> TuningResult:
    measured = tuple(map(_measurement, candidates))
    best = min(measured, key=lambda m: m.mean_us)
    return TuningResult(best=best, successes=measured, failures=tuple(failures), note=_note(candidates))


def _note(candidates: list[Candidate]) -> str:
    here = [c for c in candidates if c.in_interpreter]
    if not here:
        return ""
    kernels = sum(c.twin is None for c in here)
    same = "" if kernels == len(here) else (
        f"; it ignores hints, so {len(here)} configurations are {kernels} kernel{'s' * (kernels > 1)} there, "
        f"measured once")
    return f"these are times of the interpreter on this CPU, and say nothing about a GPU{same}"


def _progress(quiet: bool, text: str) -> None:
    if not quiet:
        terminal.show(text[:100])


def _check(grid_fn: Any, kernel: Any, args_fn: Any, hints_fn: Any) -> None:
    """TypeError for what is given in the place of a function of a configuration."""
    for name, f in (("grid_fn", grid_fn), ("args_fn", args_fn), ("hints_fn", hints_fn)):
        if not callable(f) and not (f is None and name == "hints_fn"):
            raise TypeError(f"{name} of exhaustive_search() is a function that takes a configuration, not {f!r:.100}; "
                            f"write lambda config: ...")
    if not isinstance(kernel, Kernel) and not callable(kernel):
        raise TypeError(f"kernel of exhaustive_search() is a kernel, or a function that takes a configuration and "
                        f"returns one, not {kernel!r:.100}")
