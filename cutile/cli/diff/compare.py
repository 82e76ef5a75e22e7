"""One launch of a kernel on two back ends: all assigned tiles and all arrays are compared.

docs/debugging.md shows a report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutile.bounds import Bounded, Bounds, of_program
from cutile.cli.diff.backends import BACKENDS, on_host
from cutile.cli.diff.record import LIMIT, Recorded, recorded
from cutile.runtime.arguments import host_values
from cutile.runtime.float4_packing import unpacked
from cutile.runtime.kernel import Kernel


@dataclass(frozen=True)
class Difference:
    """Values that differ by more than the language allows.

    what     the variable, or the array parameter
    record   the statement that assigned the variable; None for the final contents of an array
    block    the block of the grid that assigned it
    time     0 for the first execution of the statement; LIMIT for the last one of more than LIMIT
    at       the position of the first element that differs
    first, second, bound   the two values of this element, and how far they may be from the interpreter's
    count, size            how many elements differ, and how many there are
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
    """How two back ends differ.

    first         the first assignment that differs, or None
    arrays        the array parameters whose final contents differ
    compared      how many assignments were compared
    unbounded     elements of final arrays that differ and have no finite bound
    inconclusive  why nothing is known of any value, or None
    """

    first: Difference | None
    arrays: tuple[Difference, ...]
    compared: int
    unbounded: int
    inconclusive: str | None


def difference(kernel: Kernel, grid: Sequence[int], args: tuple, backends: tuple[str, str]) -> Report:
    """Run one launch on two back ends, on copies of the arguments, and compare.

    backends   two names out of BACKENDS. A launch raises what it would raise on its back end.
    """
    grid = (*grid, 1, 1)[:3]
    arguments = kernel.classify(args)
    values = list(map(on_host, unpacked(host_values(arguments))))
    program, records, made = recorded(kernel.program(arguments).kernel, grid)
    results = []
    for name in backends:
        copies = [_copied(x) for x in [*values, *made()]]
        BACKENDS[name](program, grid, copies)
        results.append(copies)
    known = of_program(program, grid, [_copied(x) for x in [*values, *made()]])
    flat = [_flat(r) for r in results]
    return _compared(kernel, grid, len(_flat(values)), records, flat[0], flat[1], known)


def _copied(x: Any) -> Any:
    """A copy of an array with the same strides, or of a list of arrays; anything else as it is."""
    if isinstance(x, list):
        return list(map(_copied, x))
    if not isinstance(x, np.ndarray):
        return x
    return x.copy(order="K")


def _flat(values: Sequence[Any]) -> list[np.ndarray]:
    return [a for x in values for a in (x if isinstance(x, list) else [x]) if isinstance(a, np.ndarray)]


def _compared(kernel: Kernel, grid: tuple, n: int, records: list[Recorded], a: list, b: list, known: Bounds) -> Report:
    arrays = tuple(d for x, y, k in zip(a[:n], b[:n], known.arrays[:n], strict=True)
                   for d in _differences(x, y, k, k.name))
    best: tuple | None = None
    for order, when, d in _recorded_differences(grid, n, records, a, b, known):
        if best is None or (when, order) < best[:2]:
            best = when, order, d
    unbounded = sum(int((~same(x, y) & ~np.isfinite(k.bound)).sum()) for x, y, k in zip(a[:n], b[:n], known.arrays[:n],
                                                                                     strict=True))
    return Report(best[2] if best else None, arrays, len(records), unbounded, known.inconclusive)


def _recorded_differences(grid: tuple, n: int, records: list[Recorded], a: list, b: list,
                          known: Bounds) -> Iterator[tuple[int, int, Difference]]:
    """The differences among the records, each with the number of its block and the time of the assignment."""
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
    """Where elements have equal bits. All NaNs count as equal."""
    if x.dtype.kind in "biu":
        return x == y
    x, y = x.astype(np.float64), y.astype(np.float64)
    return (x == y) & (np.signbit(x) == np.signbit(y)) | np.isnan(x) & np.isnan(y)


def inside(x: np.ndarray, k: Bounded) -> np.ndarray:
    """Where elements differ from the interpreter's value by the bound at most."""
    if x.dtype.kind in "biu":
        return x == k.value
    with np.errstate(all="ignore"):
        return same(x, k.value) | (np.abs(x.astype(np.float64) - k.value.astype(np.float64)) <= k.bound)


def times(d: Difference) -> str:
    """Which execution of its statement a difference belongs to, in words."""
    return f"its last execution (after the {LIMIT}th)" if d.time == LIMIT else f"execution {d.time + 1}"
