"""Comparing the results of two implementations for one program."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from conformance.generate import Program
from conformance.generate.meaning import _plain as plain
from conformance.referee.implementations import Implementation, Modules, flat, loaded

SAME, WITHIN, INCONCLUSIVE, DIFFER, REFUSED = "same", "within", "inconclusive", "differ", "refused"
NOT_APPLICABLE = "not applicable"


@dataclass
class Verdict:
    """`kind` is one of the above; the other fields describe the first element that decides it."""

    kind: str
    array: str = ""
    element: tuple[int, ...] = ()
    first: object = None
    second: object = None
    bound: float = 0.0
    detail: str = ""

    def __str__(self) -> str:
        if not self.array:
            return f"{self.kind}: {self.detail}" if self.detail else self.kind
        where = f"{self.array}[{', '.join(map(str, self.element))}]"
        return f"{self.kind}: {where} is {self.first!r} and {self.second!r}, bound {self.bound:.3g}"


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which elements have equal bits; any NaN equals any NaN."""
    if a.dtype.kind in "biu":
        return a == b
    x, y = plain(a), plain(b)
    return (x == y) & (np.signbit(x) == np.signbit(y)) | np.isnan(x) & np.isnan(y)


def failure(e: BaseException) -> str:
    """The class and the text of an error on one line, with the lines after the first, where assemblers give reasons."""
    return f"{type(e).__name__}: {' '.join(str(e).split())}"[:400]


def compare(program: Program, first: Implementation, second: Implementation) -> Verdict:
    """Run on both and compare. If both refuse the program the verdict is `refused`, if one does it is `differ`."""
    return compare_all(program, first, [second])[0]


def compare_all(program: Program, first: Implementation, others: Sequence[Implementation],
                seconds: Counter | None = None) -> list[Verdict]:
    """Run once on each, and compare each of the others with the first. `seconds` sums the time of each by name."""
    with loaded(program) as modules:
        a = _outcome(program, modules, first, seconds)
        return [_compared(program, modules, (first, other), a, _outcome(program, modules, other, seconds), seconds)
                for other in others]


def _outcome(program: Program, modules: Modules, i: Implementation, seconds: Counter | None) -> list | Verdict:
    """The arrays after the run, or why there are none."""
    start = time.perf_counter()
    try:
        return flat(program, i.run(program, modules))
    except i.not_applicable as e:
        return Verdict(NOT_APPLICABLE, detail=f"{i.name}: {failure(e)}")
    except Exception as e:  # any error of an implementation is a finding, not a fault of the referee
        return Verdict(REFUSED, detail=f"{i.name} fails with {failure(e)}")
    finally:
        if seconds is not None:
            seconds[i.name] += time.perf_counter() - start


def _compared(program: Program, modules: Modules, two: tuple[Implementation, Implementation], a: list | Verdict,
              b: list | Verdict, seconds: Counter | None) -> Verdict:
    failed = [x for x in (a, b) if isinstance(x, Verdict)]
    for v in failed:
        if v.kind == NOT_APPLICABLE:
            return v
    if failed:
        return Verdict(REFUSED if len(failed) == 2 else DIFFER, detail="; ".join(v.detail for v in failed))
    if all(same(x, y).all() for (_, x), (_, y) in zip(a, b, strict=True)):
        return Verdict(SAME)
    start = time.perf_counter()
    try:
        found = bounds_of(program, modules, fused(*two))
    except Exception as e:
        return Verdict(DIFFER, detail=f"no bounds: {failure(e)}")
    finally:
        if seconds is not None:
            seconds["bounds"] += time.perf_counter() - start
    return judged(a, b, found)


def fused(*implementations: Implementation) -> bool:
    """Whether fusing multiply-adds is a freedom here: the reference rounds every product and every sum."""
    return any(i.name == "reference" for i in implementations)


def bounds_of(program: Program, modules: Modules, contraction: bool) -> list:
    """For each array the interpreter's value, and how far an implementation may be from it, by cutile.bounds."""
    from cutile.bounds import bounds

    m = modules("cutile")
    return list(bounds(m.kernel, program.grid, m.arguments(), contraction=contraction).arrays)


def judged(a: list, b: list, found: list) -> Verdict:
    """The verdict on results that are not the same: a difference counts most, then an element without a bound."""
    worst = Verdict(WITHIN)
    for (name, x), (_, y), f in zip(a, b, found, strict=True):
        differ = ~same(x, y)
        if not differ.any():
            continue
        open_ = differ & ~np.isfinite(f.bound)
        wrong = differ & np.isfinite(f.bound) & ~(inside(x, f) & inside(y, f))
        for kind, where in ((DIFFER, wrong), (INCONCLUSIVE, open_)):
            if where.any() and (kind == DIFFER or worst.kind == WITHIN):
                i = tuple(int(k) for k in np.argwhere(where)[0])
                worst = Verdict(kind, name, i, x[i], y[i], float(f.bound[i]))
                break
        if worst.kind == DIFFER:
            return worst
    return worst


def inside(x: np.ndarray, f) -> np.ndarray:
    """Which elements are within the bound of the interpreter's value."""
    if x.dtype.kind in "biu":
        return x == f.value
    a, b = plain(x).astype(np.longdouble), plain(f.value).astype(np.longdouble)
    with np.errstate(all="ignore"):
        return same(x, f.value) | (np.abs(a - b) <= f.bound)
