"""The verb `diff`: catches one launch of a user's script and compares it on two back ends."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import cutile
from cutile.cli.diff.backends import BACKENDS
from cutile.cli.diff.compare import Difference, Report, difference, times
from cutile.errors import TileError
from cutile.runtime.kernel import Kernel
from cutile.runtime.launch import launch as original
from cutile.runtime.launch import padded_grid


class _Reached(BaseException):
    """The launch has been compared: ends the script."""


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
    file, _, name = target.partition("::")
    names = tuple(b.strip() for b in backends.split(","))
    if not name:
        _fail(f"{target!r} is not FILE.py::KERNEL")
    if not Path(file).is_file():
        _fail(f"there is no file {file}")
    if len(names) != 2 or not set(names) <= set(BACKENDS):
        _fail(f"--backends {backends}: give two of {', '.join(BACKENDS)}, with a comma between them")
    found = caught(file, name, arguments or [], launch, names)
    print(text(found, names))
    if found.first or found.arrays:
        raise typer.Exit(1)


def caught(file: str, name: str, arguments: list[str], number: int, backends: tuple) -> Report:
    """Run the script up to launch `number` of the kernel `name`, and compare this launch."""
    reports: list[Report] = []
    seen: list[str] = []

    def instead(stream: Any, grid: Any, kernel: Any, args: Any, /, **options: Any) -> None:
        if isinstance(kernel, Kernel):
            seen.append(kernel.__name__)
        if not (isinstance(kernel, Kernel) and kernel.__name__ == name and seen.count(name) == number):
            return original(stream, grid, kernel, args, **options)
        reports.append(difference(kernel, padded_grid(grid), args, backends))
        raise _Reached

    with _replaced(instead), _as_script(file, arguments):
        try:
            runpy.run_path(file, run_name="__main__")
        except _Reached:
            return reports[0]
        except SystemExit:
            pass
        except TileError as e:
            _fail(str(e))
    times_ = f"launched {seen.count(name)} time(s)" if name in seen else "never launched"
    others = f"; it launches {', '.join(dict.fromkeys(seen))}" if seen and name not in seen else ""
    _fail(f"{name} was {times_} by {file}{others}")


@contextmanager
def _replaced(launch: Callable) -> Iterator[None]:
    """Within the `with` block, ct.launch is `launch`."""
    before = cutile.launch
    cutile.launch = launch
    try:
        yield
    finally:
        cutile.launch = before


@contextmanager
def _as_script(file: str, arguments: list[str]) -> Iterator[None]:
    """Within the `with` block, sys.argv and sys.path are those of a script."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [file, *arguments]
    sys.path.insert(0, str(Path(file).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


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


def _fail(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(2)
