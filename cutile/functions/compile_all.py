"""`ct.compile_all`: many compilations at once, with failures beside what failed [CPL-5]."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from typing import Any

from cutile._support import terminal
from cutile._support.structs import field, structure
from cutile.errors import refusal
from cutile.functions import options
from cutile.functions.compiled import CompiledFunction


@structure
class Job:
    """A compilation to be done: a function, specs of its arguments, and keywords of its `compile`."""

    function: Any
    specs: tuple
    keywords: dict[str, Any] = field(default_factory=dict)

    def run(self) -> CompiledFunction:
        return self.function.compile(*self.specs, **self.keywords)


def compile_all(jobs: Iterable[Any], *, threads: int | None = None, errors: str = "raise",
                quiet: bool = True) -> list[CompiledFunction | Exception]:
    """Compile functions, as many at once as there are processors.

    Parameters
    ----------
    jobs : iterable
        Tuples (function, specs) or (function, specs, keywords of `compile`); or functions without arguments that return
        what they compiled.
    threads : int, optional
        How many at once. None: as many as there are processors.
    errors : {"raise", "collect"}, default "raise"
        "raise" raises the first error in the order of the jobs, after all have ended; "collect" returns each error in
        the place of its result.
    quiet : bool, default True
        False shows progress, if standard error is a terminal.

    Returns
    -------
    list of CompiledFunction
        In the order of the jobs.

    Raises
    ------
    TypeError, ValueError
        Jobs or options of another kind.

    Notes
    -----
    [CPL-5] The assembler is a process of its own, so threads suffice.

    Examples
    --------
    >>> @ct.jit(grid="cdiv(N, TILE)", out=ct.Out("N"))
    ... @ct.kernel
    ... def double(x: ct.Array["N"], y, TILE: ct.Constant[int]):
    ...     ct.store(y, ct.bid(0), 2 * ct.load(x, ct.bid(0), TILE))
    >>> x = ct.ArraySpec("N", ct.float32)
    >>> ct.compile_all([(double, (x,), {"TILE": n, "target": "sm_90"}) for n in (64, 128)])
    [<double compiled for sm_90>, <double compiled for sm_90>]
    """
    if not isinstance(jobs, Iterable) or isinstance(jobs, str | Mapping):
        raise refusal(TypeError(f"ct.compile_all takes a list of jobs (function, specs), not {jobs!r:.100}"))
    options.check("ct.compile_all", {"threads": threads}, {"threads": options.POSITIVE})
    if errors not in ("raise", "collect"):
        raise ValueError(f'errors is "raise" or "collect", not {errors!r:.40}')
    work = list(map(_job, jobs))
    outcomes = run_all(work, threads, None if quiet else "compiled")
    if errors == "raise":
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
    return outcomes


def check_specs(name: str, specs: Any, targets: Any) -> None:
    """TypeError for specs or targets of `compile_all` that are no sequences."""
    options.check(f"{name}.compile_all", {"specs": specs, "targets": targets}, {
        "specs": options.ARGUMENTS, "targets": ((lambda x: isinstance(x, tuple | list)), 'a list, such as ["sm_90"]')})


def _job(job: Any) -> Callable[[], Any]:
    if callable(job) and not hasattr(job, "compile"):
        return job
    if isinstance(job, Sequence) and 2 <= len(job) <= 3 and hasattr(job[0], "compile"):
        specs = job[1] if isinstance(job[1], tuple | list) else (job[1],)
        return Job(job[0], tuple(specs), dict(job[2]) if len(job) == 3 else {}).run
    raise TypeError(f"a job is (function, specs) or (function, specs, keywords), not {job!r:.100}")


def run_all(work: Sequence[Callable[[], Any]], threads: int | None = None, progress: str | None = None,
            executor: Executor | None = None) -> list[Any]:
    """Call functions at once, in threads or by an executor; the result of each, or its exception."""
    outcomes: list[Any] = [None] * len(work)
    pool = executor or ThreadPoolExecutor(threads or os.cpu_count())
    futures: dict[Future, int] = {}
    try:
        for i, f in enumerate(work):
            futures[pool.submit(f) if executor else pool.submit(contextvars.copy_context().run, f)] = i
        for done, future in enumerate(as_completed(futures), 1):
            try:
                outcomes[futures[future]] = future.result()
            except Exception as e:
                outcomes[futures[future]] = e
            if progress:
                terminal.show(f"{progress} {done}/{len(work)}" + "\n" * (done == len(work)))
    except BaseException:  # Ctrl-C: finish those that run, and begin no other
        for future in futures:
            future.cancel()
        raise
    finally:
        if executor is None:
            pool.shutdown(wait=True, cancel_futures=True)
    return outcomes
