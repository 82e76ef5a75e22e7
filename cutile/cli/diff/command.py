"""The verb `diff`: catches one launch of a user's script and compares it on two back ends."""

from __future__ import annotations

import json as json_
import sys
from contextlib import redirect_stdout
from typing import Annotated, Any

import typer

from cutile.cli import script
from cutile.cli.diff.backends import BACKENDS
from cutile.cli.diff.compare import Difference, Report, difference, times
from cutile.cli.failing import WRONG_ARGUMENTS, fail
from cutile.errors import TileError
from cutile.runtime.launch import padded_grid


def diff(
    target: Annotated[str, typer.Argument(help="FILE.py::KERNEL")],
    arguments: Annotated[list[str] | None, typer.Argument(help="arguments of the script")] = None,
    backends: Annotated[str, typer.Option(help=f"two of {', '.join(BACKENDS)}")] = "interp,gpu",
    launch: Annotated[int, typer.Option(help="which launch of the kernel, counted from 1")] = 1,
    json: Annotated[bool, typer.Option(help="print JSON")] = False,
) -> None:
    """Run a kernel on two back ends and name the first statement whose value differs.

    The file is run as a script, so it launches the kernel as usual, on its own data.

    The launch asked for is caught: it runs on both, on copies of its arguments, with every assigned tile recorded.

    Differences that the language allows (docs/freedoms.md) do not count. The exit status is 1 if there is another.

    python -m cutile diff examples/softmax.py::softmax_rows --backends interp,gpu
    """
    file, name = script.split_target(target, WRONG_ARGUMENTS)
    names = tuple(b.strip() for b in backends.split(","))
    if not name:
        fail(f"{target!r} is not FILE.py::KERNEL", WRONG_ARGUMENTS)
    if len(names) != 2 or not set(names) <= set(BACKENDS):
        fail(f"--backends {backends}: give two of {', '.join(BACKENDS)}, with a comma between them", WRONG_ARGUMENTS)
    with redirect_stdout(sys.stderr if json else sys.stdout):  # what the script prints is not part of the JSON
        found = compared(file, name, arguments or [], launch, names)
    print(json_.dumps(data(found, names), indent=2) if json else text(found, names))
    if found.first or found.arrays:
        raise typer.Exit(1)


def compared(file: str, name: str, arguments: list[str], number: int, backends: tuple) -> Report:
    """Run the script up to launch `number` of the kernel `name`, and compare this launch."""
    def then(caught: script.Caught) -> Report:
        return difference(caught.kernel, padded_grid(caught.grid), caught.args, backends)

    try:
        return script.at_launch(file, name, arguments, number, then)
    except (TileError, script.NotLaunchedError) as e:
        fail(str(e), WRONG_ARGUMENTS)


# ------------------------------------------------------------------ the report

SCHEDULES = {"batch", "block"}


def data(r: Report, backends: tuple) -> dict[str, Any]:
    """The report for programs. Values are texts, as JSON has no NaN and no infinity."""
    return {"backends": list(backends), "agree": not (r.first or r.arrays), "compared": r.compared,
            "first difference": None if r.first is None else {
                "file": r.first.record.span.filename, "line": r.first.record.span.line,
                "function": r.first.record.function, "block": r.first.block, "execution": times(r.first),
                **_difference(r.first, backends)},
            "arrays": [_difference(d, backends) for d in r.arrays],
            "inconclusive": r.inconclusive or None, "unbounded elements": r.unbounded}


def _difference(d: Difference, backends: tuple) -> dict[str, Any]:
    return {"name": d.what, "at": d.at, backends[0]: str(d.first), backends[1]: str(d.second), "allowed": str(d.bound),
            "differ": d.count, "of": d.size}


def text(r: Report, backends: tuple) -> str:
    """The report as text."""
    out = []
    if r.first is not None:
        out += _statement(r.first, backends)
    for d in r.arrays:
        out.append(f"Array {d.what} in the end: {_values(d, backends)}")
    if not out:
        out.append(f"{backends[0]} and {backends[1]} agree: {r.compared} assignments and all arrays.")
        if {*backends} <= SCHEDULES:
            out.append("Both read undetermined padding as zero; CUTILE_SANITIZE=all finds where it matters, and races.")
    elif r.first is None:
        out.append(f"None of the {r.compared} recorded assignments differs: look at what is stored without a name.")
    if out and {*backends} <= SCHEDULES and (r.first or r.arrays):
        out.append("Blocks race, or depend on their order; CUTILE_SANITIZE=race names the accesses.")
    if r.inconclusive:
        out.append(f"Inconclusive: {r.inconclusive}, so nothing is known of what may differ.")
    elif r.unbounded:
        out.append(f"Inconclusive: {r.unbounded} element(s) differ of which nothing is known, such as past "
                   f"a comparison of rounded numbers.")
    return "\n".join(out)


def _statement(d: Difference, backends: tuple) -> list[str]:
    span = d.record.span
    line = span.source_line().strip()
    return [f"First difference: {d.what} in {d.record.function}, block {d.block}, {times(d)}",
            f'  "{span.filename}", line {span.line}', f"    {line}", f"  {d.what} is a {d.record.type.describe()}: "
            f"{_values(d, backends)}"]


def _values(d: Difference, backends: tuple) -> str:
    at = f" at {d.at}" if d.at else ""
    return (f"{d.count} of {d.size} element(s) differ, the first{at}: {backends[0]} {d.first}, "
            f"{backends[1]} {d.second}, allowed ±{d.bound:.3g}")
