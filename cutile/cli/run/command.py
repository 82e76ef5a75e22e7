"""The verb `run`: reads its arguments and runs the script."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated

import typer

from cutile import settings
from cutile.cli import script
from cutile.cli.failing import fail
from cutile.cli.run import aliases
from cutile.cli.run.torch_cpu import stood_in

# What follows the script is for the script.
SCRIPTS = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


def run(
    file: Annotated[str, typer.Argument(help="the script")],
    arguments: Annotated[list[str] | None, typer.Argument(help="arguments of the script")] = None,
    as_: Annotated[str | None, typer.Option("--as", help=f"a name under which the script imports cutile: "
                                                         f"{', '.join(aliases.NAMES)}")] = None,
    backend: Annotated[str | None, typer.Option(help="interp: launches on GPU arrays run in the interpreter, on "
                                                     "copies")] = None,
    schedule: Annotated[str | None, typer.Option(help="of the interpreter: batch, block or interleave")] = None,
    sanitize: Annotated[str | None, typer.Option(help="checks of the interpreter: all, traps, or some of bounds, "
                                                      "undetermined, race, alias with commas between them")] = None,
) -> None:
    """Run a script, unchanged, in the interpreter or on a GPU.

    The exit status is that of the script. If PyTorch finds no GPU, tensors that the script asks for on one are made on
    the CPU.

    python -m cutile run --as cuda.tile script.py --size 1024
    """
    if script.split_target(file)[1]:
        fail(f"run takes a file, not a kernel of it: {file.partition('::')[0]}")
    if as_ is not None and as_ not in aliases.NAMES:
        fail(f"--as {as_}: cutile stands for {', '.join(aliases.NAMES)}")
    given = {"BACKEND": backend, "SCHEDULE": schedule, "SANITIZE": sanitize}
    with ExitStack() as stack:
        stack.enter_context(_set({k: v for k, v in given.items() if v is not None}))
        stack.enter_context(stood_in())
        if as_ is not None:
            stack.enter_context(aliases.imported_as(as_))
        script.run(file, arguments or [])


@contextmanager
def _set(values: dict[str, str]) -> Iterator[None]:
    """Within the `with` block, these settings have these values, in processes that the script starts too."""
    table = settings.table()
    before = {table[k].variable: os.environ.get(table[k].variable) for k in values}
    os.environ.update({table[k].variable: v for k, v in values.items()})
    try:
        for name in values:
            settings.get(name)  # a wrong value is refused before the script runs
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                del os.environ[variable]
            else:
                os.environ[variable] = value
