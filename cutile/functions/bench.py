"""do_bench: how long a call takes, on the GPU's clock or the host's [BEN-1…5]."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cutile._support.opaque import opaque
from cutile.functions import options
from cutile.functions.entry import OUTSIDE
from cutile.tracebacks import for_callers

STATISTICS: dict[str, Callable[[np.ndarray], float]] = {"median": np.median, "mean": np.mean, "min": np.min,
                                                        "max": np.max}
LEAST = 5  # measurements
SHORT_US = 100.0  # without flushing, calls are repeated between two events until they take so long
_QUANTILES: options.Kind = (lambda x: isinstance(x, Sequence) and not isinstance(x, str) and all(
    isinstance(q, int | float) and 0 <= q <= 1 for q in x)), "a tuple of numbers from 0 to 1, such as (0.2, 0.5, 0.8)"
_KINDS = {"fn": (callable, "a function without arguments, such as lambda: f(x)"),
          "warmup_ms": options.MILLISECONDS, "rep_ms": options.MILLISECONDS,
          "warmup": options.COUNT, "repeats": options.POSITIVE, "quantiles": _QUANTILES}


@opaque(OUTSIDE)
@for_callers
def do_bench(fn: Callable[[], Any], *, warmup_ms: float = 25, rep_ms: float = 100, warmup: int | None = None,
             repeats: int | None = None, flush: str | None = "l2", quantiles: Sequence[float] | None = None,
             mode: str | None = None, statistic: str = "median", device: int | None = None,
             grad_to_none: Sequence[Any] | None = None, return_samples: bool = False) -> Any:
    """Measure the time of a call, in milliseconds.

    Parameters
    ----------
    fn : function
        What is called, without arguments. On a GPU it queues work on the current stream of PyTorch or CuPy.
    warmup_ms : float, default 25
        About how long to warm up.
    rep_ms : float, default 100
        About how long to measure.
    warmup : int, optional
        How many calls warm up, instead of `warmup_ms`.
    repeats : int, optional
        How many calls are measured, instead of `rep_ms`.
    flush : {"l2", None}, default "l2"
        "l2": before each call more memory is written than fits into the L2 cache; that is never part of the time. None:
        calls find in the cache what the last one left.
    quantiles : sequence of float, optional
        Return these quantiles, a tuple, instead of one number.
    mode : {"events", "graph", "wall"}, optional
        "events": between two events on the stream. "graph": the same for a CUDA graph of one call, with PyTorch.
        "wall": the host's clock, for the interpreter and for what a call costs the host. None: "events" where PyTorch
        or CuPy has a GPU, else "wall".
    statistic : {"median", "mean", "min", "max"}, default "median"
        Which number of the measurements to return.
    device : int, optional
        The GPU. None: the current one.
    grad_to_none : sequence of tensors, optional
        Tensors whose `grad` is set to None before each call.
    return_samples : bool, default False
        Return all measurements, an array.

    Returns
    -------
    float, tuple or ndarray

    Raises
    ------
    ValueError
        Another mode, statistic or flush, or no GPU for the mode.

    Notes
    -----
    [BEN-1…5]

    Examples
    --------
    >>> cutile.testing.do_bench(lambda: sum(range(100)), repeats=5, warmup=0) > 0
    True
    """
    options.check("do_bench", {"fn": fn, "warmup_ms": warmup_ms, "rep_ms": rep_ms, "warmup": warmup, "repeats": repeats,
                               "quantiles": quantiles}, _KINDS)
    if statistic not in STATISTICS:
        raise ValueError(f"statistic is one of {', '.join(STATISTICS)}, not {statistic!r:.40}")
    if flush not in ("l2", None):
        raise ValueError(f'flush is "l2" or None, not {flush!r:.40}')
    mode = _usual_mode() if mode is None else mode
    if mode not in ("events", "graph", "wall"):
        raise ValueError(f'mode is "events", "graph" or "wall", not {mode!r:.40}')

    def call() -> None:
        for x in grad_to_none or ():
            x.grad = None
        fn()

    call()
    with _clock(call, mode, flush, device) as measure:
        estimate = float(np.median([measure() for _ in range(LEAST)])) / 1000
        for _ in range(max(1, int(warmup_ms / max(estimate, 1e-6))) if warmup is None else warmup):
            measure()
        count = max(LEAST, int(rep_ms / max(estimate, 1e-6))) if repeats is None else max(1, repeats)
        samples = np.array([measure() for _ in range(count)]) / 1000
    if return_samples:
        return samples
    if quantiles is not None:
        return tuple(float(q) for q in np.quantile(samples, quantiles))
    return float(STATISTICS[statistic](samples))


def _usual_mode() -> str:
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    has_gpu = torch is not None and torch.cuda.is_available() or cupy is not None and cupy.cuda.is_available()
    return "events" if has_gpu else "wall"


@contextmanager
def _clock(call: Callable[[], None], mode: str, flush: str | None, device: int | None) -> Iterator[Callable[[], float]]:
    """What calls once and returns microseconds."""
    if mode == "wall":
        yield lambda: _wall(call)
        return
    from cutile.gpu.driver import driver
    from cutile.gpu.timing import EventClock

    ordinal, stream = _current(device)
    try:
        clock = EventClock(driver().device(ordinal), stream, flush is not None)
    except Exception as e:
        why = str(e).partition("\n")[0]
        raise ValueError(f"mode {mode!r} needs a GPU ({why}); mode=\"wall\" measures on the host's clock") from None
    run = _as_graph(call) if mode == "graph" else call
    try:
        number = 1 if flush is not None else _until_long(clock, run)

        def many() -> None:
            for _ in range(number):
                run()

        yield lambda: clock(many) / number
    finally:
        clock.close()


def _wall(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


def _current(device: int | None) -> tuple[int, int]:
    """The GPU and the current stream of PyTorch or CuPy."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_available():
        ordinal = torch.cuda.current_device() if device is None else device
        return ordinal, torch.cuda.current_stream(ordinal).cuda_stream
    if cupy is not None:
        ordinal = cupy.cuda.runtime.getDevice() if device is None else device
        return ordinal, cupy.cuda.get_current_stream().ptr
    return device or 0, 0


def _until_long(clock: Callable[[Callable[[], Any]], float], run: Callable[[], Any]) -> int:
    """How many calls take long enough to be measured together."""
    number = 1
    while number < 1024:
        def some(n: int = number) -> None:
            for _ in range(n):
                run()

        if clock(some) >= SHORT_US:
            break
        number *= 2
    return number


def _as_graph(call: Callable[[], None]) -> Callable[[], None]:
    """One call, captured into a CUDA graph."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        raise ValueError('mode "graph" needs PyTorch with a GPU')
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay
