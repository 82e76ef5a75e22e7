"""The checks of docs/puzzles.md: `check("mirror", kernel)` runs a kernel on data, and says and shows what it did.

A puzzle has inputs of several sizes, what the kernel should store, and a grid and constants for its launch. A kernel
that reads or writes what the language leaves undefined does not pass, even where its numbers are right.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

import cutile as ct

SHOWN = 32  # rows and columns of a picture


@dataclass(frozen=True)
class Case:
    """One launch: grid, inputs, an output filled with something else, constants, and the output as it should be."""

    grid: tuple[int, ...]
    inputs: tuple[np.ndarray, ...]
    wanted: np.ndarray
    constants: tuple[Any, ...] = ()
    zeroed: bool = False  # whether the output begins with zeros, as where blocks add to it


@dataclass(frozen=True)
class Result:
    """What a check found. A notebook shows it with a picture: wanted, got, and the elements that are wrong."""

    solved: bool
    text: str
    wanted: np.ndarray | None = None
    got: np.ndarray | None = None

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        drawn = ""
        if self.wanted is not None:
            drawn = "".join(f'<figure style="display:inline-block;margin:8px">{_picture(a, self.wanted)}'
                            f"<figcaption>{title}</figcaption></figure>"
                            for title, a in (("wanted", self.wanted), ("yours", self.got)))
        return f'<pre style="white-space:pre-wrap">{escape(self.text)}</pre>{drawn}'


def check(name: str, kernel: Any) -> None:
    """Run a kernel on all cases of a puzzle, and show the result: a picture in a notebook, else text."""
    found = result(name, kernel)
    shell = sys.modules.get("IPython")
    if shell is not None and shell.get_ipython() is not None:
        shell.display.display(found)
    else:
        print(f"{name}: {found.text}")


def result(name: str, kernel: Any) -> Result:
    """What a check finds: of the first case that fails, or else of the last."""
    cases = PUZZLES[name]()
    for number, case in enumerate(cases, 1):
        which = f"case {number} of {len(cases)}"
        before = np.zeros_like(case.wanted) if case.zeroed else _elsewhere(case.wanted)
        got = before.copy()
        copies = [a.copy() for a in case.inputs]
        try:
            notes = _checked_launch(case.grid, kernel, (*copies, got, *case.constants))
        except ct.TileSanitizerError as error:
            return Result(False, f"Not yet: {which} does what the language leaves undefined.\n{error}",
                          case.wanted, got)
        except Exception as error:
            return Result(False, f"Not yet: {type(error).__name__} in {which}.\n{error}")
        wrong = ~np.isclose(got, case.wanted, rtol=1e-4, atol=1e-4)
        if wrong.any():
            at = tuple(map(int, np.argwhere(wrong)[0]))
            stored = case.zeroed or got[at].tobytes() != before[at].tobytes()
            says = f"is {got[at]}" if stored else "was never stored"
            return Result(False, f"Not yet: in {which}, {wrong.sum()} of {wrong.size} elements are wrong. Element "
                                 f"{at} {says}, and should be {case.wanted[at]}.\n{notes}".rstrip(), case.wanted, got)
    return Result(True, f"Solved: {len(cases)} cases are right.", case.wanted, got)


def _checked_launch(grid: tuple[int, ...], kernel: Any, args: tuple[Any, ...]) -> str:
    """Launch with checks. Returns the sanitizer's notes, on what is right but may be a mistake."""
    with contextlib.redirect_stderr(io.StringIO()) as said, ct.sanitize("bounds,undetermined,race"):
        ct.launch(None, grid, kernel, args)
    return said.getvalue()


def _elsewhere(wanted: np.ndarray) -> np.ndarray:
    """An array of numbers that no kernel stores, so that elements nobody stores show: a NaN of its own, or -9."""
    if wanted.dtype == np.float32:
        return np.full_like(wanted, 0x7FC0_0009, np.int32).view(np.float32)
    return np.full_like(wanted, -9)


def _picture(a: np.ndarray, wanted: np.ndarray) -> str:
    """An array as squares, darker for larger numbers; what differs from `wanted` has a red frame."""
    a, wanted = (np.atleast_2d(x)[:SHOWN, :SHOWN].astype(float) for x in (a, wanted))
    low, high = float(np.nanmin(wanted)), float(np.nanmax(wanted))
    squares = []
    for (i, j), value in np.ndenumerate(a):
        part = 0.5 if high == low else min(max((value - low) / (high - low), 0), 1)
        fill = "#fff" if np.isnan(value) else f"hsl(215 60% {92 - 60 * part:.0f}%)"
        frame = "#888" if np.isclose(value, wanted[i, j], rtol=1e-4, atol=1e-4) else "#d00"
        squares.append(f'<rect x="{12 * j + 1}" y="{12 * i + 1}" width="10" height="10" fill="{fill}" '
                       f'stroke="{frame}"><title>[{i}, {j}] {value:.4g}</title></rect>')
    height, width = a.shape
    return (f'<svg width="{12 * width}" height="{12 * height}" viewBox="0 0 {12 * width} {12 * height}" '
            f'role="img">{"".join(squares)}</svg>')


# ------------------------------------------------------------------ the puzzles


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _celsius() -> list[Case]:
    found = []
    for n in (16, 5):
        x = 50 + 20 * _random(n)
        found.append(Case((1,), (x,), (x - 32) / np.float32(1.8)))
    return found


def _midpoints() -> list[Case]:
    found = []
    for n in (64, 50, 7):
        x, y = _random(n), _random(n, seed=1)
        found.append(Case((ct.cdiv(n, 16),), (x, y), (x + y) / 2, (16,)))
    return found


def _spread() -> list[Case]:
    found = []
    for shape in ((8, 16), (8, 13)):
        for shift in (0, 10, -10):  # so that padding with zero is wrong
            x = _random(*shape) + np.float32(shift)
            found.append(Case((8,), (x,), x.max(axis=1) - x.min(axis=1), (16,)))
    return found


def _rings() -> list[Case]:
    found = []
    for rows, columns in ((16, 16), (21, 30)):
        i, j = np.indices((rows, columns))
        wanted = np.minimum(np.minimum(i, j), np.minimum(rows - 1 - i, columns - 1 - j)) % 2
        found.append(Case((ct.cdiv(rows, 8), ct.cdiv(columns, 8)), (), wanted.astype(np.int32), (8,)))
    return found


def _mirror() -> list[Case]:
    found = []
    for shape in ((4, 16), (3, 21)):
        x = _random(*shape)
        found.append(Case((shape[0], ct.cdiv(shape[1], 8)), (x,), x[:, ::-1].copy(), (8,)))
    return found


def _ballots() -> list[Case]:
    found = []
    for n in (64, 90):
        votes = np.random.default_rng(n).integers(-1, 6, n).astype(np.int32)  # -1 abstains, 5 stands on no list
        wanted = np.bincount(votes[(votes >= 0) & (votes < 5)], minlength=5).astype(np.int32)
        found.append(Case((ct.cdiv(n, 32),), (votes,), wanted, (32,), zeroed=True))
    return found


def _balance() -> list[Case]:
    found = []
    for shape in ((2, 16), (3, 40)):
        x = np.random.default_rng(0).integers(-9, 10, shape).astype(np.int32)
        found.append(Case((shape[0],), (x,), np.cumsum(x, axis=1, dtype=np.int32), (8,)))
    return found


def _nearest() -> list[Case]:
    found = []
    for points, centres in ((32, 8), (45, 5)):
        x, c = _random(points, 4), 1 + _random(centres, 4, seed=3)
        distance = ((x[:, None].astype(float) - c[None]) ** 2).sum(axis=2)
        found.append(Case((ct.cdiv(points, 16),), (x, c), distance.argmin(axis=1).astype(np.int32), (16, 8, 4)))
    return found


PUZZLES: dict[str, Callable[[], Sequence[Case]]] = {
    "celsius": _celsius, "midpoints": _midpoints, "spread": _spread, "rings": _rings, "mirror": _mirror,
    "ballots": _ballots, "balance": _balance, "nearest": _nearest}
