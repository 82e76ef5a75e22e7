"""All rows of kernels as users write them, by name, and how they are measured."""

from __future__ import annotations

import functools
import gc
import math
import time
from collections.abc import Callable, Sequence

import _rows_blocks
import _rows_indexed
import _rows_numbers
import _rows_short
from _row import Row

ROWS = {row.name: row for part in (_rows_short, _rows_indexed, _rows_numbers, _rows_blocks) for row in part.ROWS}
MEAN, WORST = 2.5, 8  # bars: multiples of plain NumPy's time, of the geometric mean and of each row
LEAST_SECONDS, LEAST_ROUNDS, MOST_SECONDS = 0.5, 3, 4  # of a row; the loop over blocks runs once


def timed(run: Callable[[], object]) -> float:
    start = time.thread_time()
    run()
    return time.thread_time() - start


def measure(row: Row) -> dict[str, float]:
    """Seconds of each way, every result checked, and of a kernel's first launch less a repeated one."""
    expected = row.expected(row.inputs())
    first: dict[str, float] = {}
    ways: dict[str, Callable[[], object]] = {}
    for way, run in (("plain", row.plain), ("loop", row.loop), ("cutile", lambda *arrays: row.launcher(arrays)())):
        inputs, output = row.inputs(), row.output()
        output[...] = 0
        ways[way] = functools.partial(run, *inputs, output)
        gc.collect()  # so that no full collection, to which launches before it led, falls into this one
        first[way] = timed(ways[way])
        row.verify(way, output, expected)
    del ways["loop"]
    times: dict[str, list[float]] = {way: [] for way in ways}
    start = time.thread_time()
    while (spent := time.thread_time() - start) < LEAST_SECONDS \
            or len(times["plain"]) < LEAST_ROUNDS and spent < MOST_SECONDS:
        for way, run in ways.items():  # in turns, so that a slow second of the machine hits both
            times[way].append(timed(run))
    best = {way: min(t) for way, t in times.items()}
    return {**best, "loop": first["loop"], "compile": first["cutile"] - best["cutile"]}


def show_user_rows(console, rows: Sequence[Row], with_triton: bool) -> None:
    """Measure rows and print their table."""
    from rich.table import Table

    if not rows:
        return
    t = Table(title="kernels as users write them, batch schedule; milliseconds and ratios; ! marks a missed bar")
    t.add_column("", no_wrap=True)
    for head in ("plain NumPy", "loop", "cutile", f"× plain (≤{WORST})", "loop / cutile", "Triton / cutile",
                 "first launch"):
        t.add_column(head, justify="right")
    ratios = []
    for row in rows:
        with console.status(row.name):
            s = measure(row)
            triton = triton_seconds(row) if with_triton else None
        ratios.append(s["cutile"] / s["plain"])
        t.add_row(row.name, *(f"{s[way] * 1e3:.2f}" for way in ("plain", "loop", "cutile")), _judged(ratios[-1], WORST),
                  f"{s['loop'] / s['cutile']:.1f}", "–" if triton is None else f"{triton / s['cutile']:.0f}",
                  f"{s['compile'] * 1e3:.0f}")
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    t.add_section()
    t.add_row(f"geometric mean (≤{MEAN})", "", "", "", _judged(mean, MEAN), "", "", "")
    console.print(t)


def _judged(ratio: float, bar: float) -> str:
    return f"[green]{ratio:.2f}[/green]" if ratio <= bar else f"[red]{ratio:.2f} ![/red]"


def triton_seconds(row: Row) -> float | None:
    """Seconds of Triton's interpreter for the whole grid, from those for its first blocks. None without such a kernel.
    """
    import _rows_triton

    return _rows_triton.seconds(row)
