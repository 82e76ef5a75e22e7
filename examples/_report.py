"""Shared code of the examples: time a launch, compare its result with float64 NumPy, make a row of the demo's table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Row:
    """One launch: what ran, its largest error against float64, the allowed error there, and the time."""

    kernel: str
    grid: tuple[int, ...]
    tile: tuple[int, ...]
    error: float
    allowed: float
    seconds: float
    outputs: tuple[np.ndarray, ...] = field(repr=False)


class Stopwatch:
    seconds = 0.0


@contextmanager
def timed() -> Iterator[Stopwatch]:
    """`with timed() as watch: ...`, then `watch.seconds`. The first launch of a kernel includes its compilation."""
    watch, start = Stopwatch(), time.perf_counter()
    yield watch
    watch.seconds = time.perf_counter() - start


def check(kernel: str, grid: tuple, tile: tuple, watch: Stopwatch, *results: tuple) -> Row:
    """Compare each (got, want, allowed) element by element. AssertionError if an element is too far off, else a Row.

    `want` is float64 NumPy (or an exact integer), `allowed` a number or an array: the largest |got - want|.
    """
    worst = [_worst(kernel, *result) for result in results]
    error, allowed = max(worst, key=lambda pair: pair[0])
    return Row(kernel, grid, tile, error, allowed, watch.seconds, tuple(got for got, _, _ in results))


def _worst(kernel: str, got: np.ndarray, want: np.ndarray, allowed) -> tuple[float, float]:
    """The largest error, and the allowed error of that element."""
    if got.shape != np.shape(want):
        raise AssertionError(f"{kernel}: result has shape {got.shape}, expected {np.shape(want)}")
    error = np.abs(got.astype(np.float64) - want)
    allowed = np.broadcast_to(allowed, error.shape)
    wrong = ~(error <= allowed)  # written so that NaN counts as wrong
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{kernel}: {wrong.sum()} of {wrong.size} elements are wrong; at {where} got {got[where]}, expected "
            f"{want[where]}, error {error[where]:.3g}, allowed {allowed[where]:.3g}")
    at = np.unravel_index(error.argmax(), error.shape)
    return float(error[at]), float(allowed[at])


def show(rows: list[Row]) -> None:
    """Print plain lines, for an example that runs alone."""
    for r in rows:
        print(f"{r.kernel}: grid {r.grid}, tile {r.tile}, largest error {r.error:.2g} (allowed there {r.allowed:.2g}), "
              f"{r.seconds * 1e3:.1f} ms")
