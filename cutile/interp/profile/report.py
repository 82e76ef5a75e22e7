"""Profiles as tables, as data, and as a file that speedscope reads."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cutile.analysis.cost import Work
from cutile.interp.profile.lines import Cost, KernelProfile, Line
from cutile.spans import line_of

WIDTH = 160  # columns of a table that is not on a terminal
PREFIXES = ("", "K", "M", "G", "T", "P")


# ------------------------------------------------------------------ the table


def show(p: KernelProfile, stream: IO[str] | None = None) -> None:
    """Print a profile as a table, in the order of the source: first the kernel, then its helpers."""
    total = sum(c.seconds for c in p.lines.values())
    title = (f"{p.name}: {_count(p.launches, 'launch', 'launches')}, {_count(p.blocks, 'block', 'blocks')}, "
             f"{_seconds(total)} in its lines")
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in ("line", "time", "%", "runs", "read", "written", "operations"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("source", no_wrap=True, overflow="ellipsis")
    last = p.span.function, str(p.span.filename)
    for line, cost in by_place(p):
        function, file, number = line[-1]
        if (function, file) != last:
            table.add_row("", "", "", "", "", "", "", Text(f"{function}, {os.path.basename(file)}", style="bold"))
            last = function, file
        table.add_row(str(number), _seconds(cost.seconds), f"{100 * cost.seconds / (total or 1):.0f}",
                      f"{cost.times:,}", _size(cost.bytes_read), _size(cost.bytes_written),
                      _amount(sum(cost.operations.values())),
                      Text(line_of(line_file(p, file), number).rstrip(), no_wrap=True))
    console = Console(file=stream, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    console.print(table)


def by_place(p: KernelProfile) -> Iterator[tuple[Line, Cost]]:
    """The lines of a profile: those of the kernel in their order, then those of each helper. A line of a helper that is
    called at several places occurs once, with the sum of what it cost.
    """
    merged: dict[Line, Cost] = {}
    for line, cost in p.lines.items():
        total = merged.setdefault(line[-1:], Cost())
        total.add(cost)
    own = p.span.function, str(p.span.filename)
    for line in sorted(merged, key=lambda line: (line[-1][:2] != own, line[-1][1], line[-1][2])):
        yield line, merged[line]


def line_file(p: KernelProfile, file: str) -> str:
    """The name of a file, with the lines that it had when the kernel was read, if it is the kernel's."""
    return p.span.filename if file == p.span.filename else file


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _seconds(s: float) -> str:
    return f"{s:.2f} s" if s >= 1 else f"{1e3 * s:.2f} ms" if s >= 1e-3 else f"{1e6 * s:.0f} µs"


def _size(n: int) -> str:
    return _amount(n, 1024, "B") if n else ""


def _amount(n: float, base: int = 1000, unit: str = "") -> str:
    """A number with three digits and a prefix; powers of 1024 are written KiB, MiB."""
    if not n:
        return ""
    k = 0
    while n >= base and k < len(PREFIXES) - 1:
        n, k = n / base, k + 1
    prefix = PREFIXES[k] + ("i" if k and base == 1024 else "")
    digits = f"{n:.0f}" if k == 0 or n >= 100 else f"{n:.3g}"
    return f"{digits} {prefix}{unit}".rstrip()


# ------------------------------------------------------------------ data


def data(p: KernelProfile) -> dict[str, Any]:
    """A profile as plain data: a line with the calls that lead to it is one entry."""
    return {"kernel": p.name, "file": str(p.span.filename), "launches": p.launches, "blocks": p.blocks, "lines": [
        {"line": line[-1][2], "file": line[-1][1], "function": line[-1][0],
         "calls": [{"function": f, "file": file, "line": n} for f, file, n in line[:-1]],
         "seconds": cost.seconds, "runs": cost.times, "bytes read": cost.bytes_read,
         "bytes written": cost.bytes_written, "operations": operations(cost)}
        for line, cost in sorted(p.lines.items())]}


def operations(cost: Cost) -> dict[str, int]:
    """Operations by unit and dtype, as `matrix float16`."""
    return {name(work): n for work, n in cost.operations.items()}


def name(work: Work) -> str:
    return f"{work.unit} {work.dtype.name}"


# ------------------------------------------------------------------ speedscope

_VALUES: dict[str, tuple[str, Callable[[Cost], float]]] = {  # unit, value
    "time": ("seconds", lambda c: c.seconds),
    "bytes": ("bytes", lambda c: c.bytes_read + c.bytes_written),
    "operations": ("none", lambda c: sum(c.operations.values())),
}


def speedscope(profiles: Sequence[KernelProfile]) -> dict[str, Any]:
    """Profiles in the file format of speedscope: for each kernel time, bytes and operations, each a profile of its own.
    A stack is the kernel's line, then the line of each helper.
    """
    frames: dict[tuple[str, str, int], int] = {}
    made = []
    for p in profiles:
        for what, (unit, value) in _VALUES.items():
            found = [(line, value(cost)) for line, cost in sorted(p.lines.items()) if value(cost)]
            made.append({"type": "sampled", "name": f"{p.name}: {what}", "unit": unit, "startValue": 0,
                         "endValue": sum(v for _, v in found),
                         "samples": [[frames.setdefault(frame, len(frames)) for frame in line] for line, _ in found],
                         "weights": [v for _, v in found]})
    return {"$schema": "https://www.speedscope.app/file-format-schema.json", "exporter": "cutile",
            "name": ", ".join(p.name for p in profiles), "activeProfileIndex": 0, "profiles": made,
            "shared": {"frames": [{"name": f"{f}:{n} {line_of(file, n).strip()}".rstrip(), "file": file, "line": n}
                                  for f, file, n in frames]}}


def write_speedscope(profiles: Sequence[KernelProfile], path: str) -> None:
    """OSError if the file cannot be written."""
    with open(path, "w", encoding="utf-8") as f:
        json.dump(speedscope(profiles), f)
