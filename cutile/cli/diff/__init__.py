"""Where two back ends part: one launch of a kernel on both, every assigned tile compared, the first difference named.

`python -m cutile diff FILE.py::KERNEL --backends interp,gpu` is made of this; docs/debugging.md shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutile.bounds import Bounded, Bounds, of_program
from cutile.cli.diff.backends import BACKENDS, on_host
from cutile.cli.diff.record import LIMIT, Recorded, recorded
from cutile.runtime.float4_packing import unpacked
from cutile.runtime.kernel import Kernel

__all__ = ["Difference", "Report", "difference"]


@dataclass(frozen=True)
class Difference:
    """Values that differ by more than the language allows.

    what     the variable, or the array parameter
    record   the statement that assigned it; None for what an array holds in the end
    block    of the grid
    time     how often the statement had run before; LIMIT where it ran more often and this is its last time
    at, first, second, bound   of the first element that differs;  count: how many do, of `size`
    """

    what: str
    record: Recorded | None
    block: tuple[int, ...] | None
    time: int
    at: tuple[int, ...]
    first: Any
    second: Any
    bound: float
    count: int
    size: int


@dataclass(frozen=True)
class Report:
    """`first` is None where the back ends agree. `open_` counts elements that differ but of which nothing is known."""

    first: Difference | None
    arrays: tuple[Difference, ...]
    compared: int
    open_: int
    inconclusive: str | None


def difference(kernel: Kernel, grid: Sequence[int], args: tuple, backends: tuple[str, str]) -> Report:
    """Run one launch on two back ends, on copies of the arguments, and compare.

    backends   two names out of BACKENDS. Errors are those of launching there.
    """
    grid = (*grid, 1, 1)[:3]
    arguments = kernel.understand(args)
    leaves = list(map(on_host, unpacked([leaf for a in arguments for leaf in a.leaves])))
    program, records, made = recorded(kernel.program(arguments).kernel, grid)
    results = []
    for name in backends:
        copies = [_copied(x) for x in [*leaves, *made()]]
        BACKENDS[name](program, grid, copies)
        results.append(copies)
    known = of_program(program, grid, [_copied(x) for x in [*leaves, *made()]])
    flat = [_flat(r) for r in results]
    return _compared(kernel, grid, len(_flat(leaves)), records, flat[0], flat[1], known)


def _copied(x: Any) -> Any:
    """An array of its own, with the same strides."""
    if isinstance(x, list):
        return list(map(_copied, x))
    if not isinstance(x, np.ndarray):
        return x
    return x.copy(order="K")


def _flat(leaves: Sequence[Any]) -> list[np.ndarray]:
    return [a for x in leaves for a in (x if isinstance(x, list) else [x]) if isinstance(a, np.ndarray)]


def _compared(kernel: Kernel, grid: tuple, n: int, records: list[Recorded], a: list, b: list, known: Bounds) -> Report:
    arrays = tuple(d for x, y, k in zip(a[:n], b[:n], known.arrays[:n], strict=True)
                   for d in _differences(x, y, k, k.name))
    best: tuple | None = None
    for order, when, d in _recorded_differences(grid, n, records, a, b, known):
        if best is None or (when, order) < best[:2]:
            best = when, order, d
    open_ = sum(int((~same(x, y) & ~np.isfinite(k.bound)).sum()) for x, y, k in zip(a[:n], b[:n], known.arrays[:n],
                                                                                     strict=True))
    return Report(best[2] if best else None, arrays, len(records), open_, known.inconclusive)


def _recorded_differences(grid: tuple, n: int, records: list[Recorded], a: list, b: list,
                          known: Bounds) -> Iterator[tuple[int, int, Difference]]:
    """Differences among the records, with the block and the time of each."""
    for r in records:
        log, when = n + r.log, n + r.when
        k = known.arrays[log]
        wrong = (~same(a[log], b[log]) & np.isfinite(k.bound) & ~(inside(a[log], k) & inside(b[log], k))).any(-1)
        for block, time in np.argwhere(wrong):
            x, y = a[log][block, time], b[log][block, time]
            part = Bounded(k.name, k.value[block, time], k.bound[block, time])
            shape = r.type.shape
            for d in _differences(x.reshape(shape), y.reshape(shape), Bounded(
                    k.name, part.value.reshape(shape), part.bound.reshape(shape)), r.variable):
                place = tuple(int(i) for i in np.unravel_index(block, grid))
                yield int(block), int(a[when][block, time]), Difference(
                    d.what, r, place, int(time), d.at, d.first, d.second, d.bound, d.count, d.size)


def _differences(x: np.ndarray, y: np.ndarray, k: Bounded, what: str) -> Iterator[Difference]:
    wrong = ~same(x, y) & np.isfinite(k.bound) & ~(inside(x, k) & inside(y, k))
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        yield Difference(what, None, None, 0, at, x[at], y[at], float(k.bound[at]), int(wrong.sum()), wrong.size)


def same(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where elements have equal bits, any NaN being equal to any."""
    if x.dtype.kind in "biu":
        return x == y
    x, y = x.astype(np.float64), y.astype(np.float64)
    return (x == y) & (np.signbit(x) == np.signbit(y)) | np.isnan(x) & np.isnan(y)


def inside(x: np.ndarray, k: Bounded) -> np.ndarray:
    """Where elements are as far from the interpreter's value as the bound allows, at most."""
    if x.dtype.kind in "biu":
        return x == k.value
    with np.errstate(all="ignore"):
        return same(x, k.value) | (np.abs(x.astype(np.float64) - k.value.astype(np.float64)) <= k.bound)


def times(d: Difference) -> str:
    """Which execution of its statement a difference belongs to, in words."""
    return f"its last execution (after the {LIMIT}th)" if d.time == LIMIT else f"execution {d.time + 1}"
