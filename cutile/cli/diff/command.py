"""The verb `diff`: catches one launch of a user's script and compares it on two back ends."""

from __future__ import annotations

from typing import Annotated

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
    found = compared(file, name, arguments or [], launch, names)
    print(text(found, names))
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


def text(r: Report, backends: tuple) -> str:
    """The report as text."""
    out = []
    if r.first is not None:
        out += _statement(r.first, backends)
    for d in r.arrays:
        out.append(f"Array {d.what} in the end: {_values(d, backends)}")
    if not out:
        out.append(f"{backends[0]} and {backends[1]} agree: {r.compared} assignments and all arrays.")
    elif r.first is None:
        out.append(f"None of the {r.compared} recorded assignments differs: look at what is stored without a name.")
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
