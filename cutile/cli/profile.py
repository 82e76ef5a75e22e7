"""The verb `profile`: runs a script and shows what each line of its kernels costs in the interpreter."""

from __future__ import annotations

import json as json_
import sys
from contextlib import redirect_stdout
from typing import Annotated

import typer

from cutile import settings
from cutile.cli import script
from cutile.cli.failing import fail
from cutile.interp.profile import process, report


def profile(
    target: Annotated[str, typer.Argument(help="FILE.py::KERNEL, or FILE.py for all kernels that it launches")],
    arguments: Annotated[list[str] | None, typer.Argument(help="arguments of the script, after --")] = None,
    output: Annotated[str, typer.Option(help="the file for speedscope")] = settings.PROFILE_FILE,
    json: Annotated[bool, typer.Option(help="print JSON, and write no file")] = False,
) -> None:
    """Run a script and show time, memory traffic and arithmetic of its kernels, by line.

    Every launch runs in the interpreter, also one on GPU arrays, which then works on copies.

    Times are those of the interpreter. Bytes and operations are those of the kernel, wherever it runs.

    python -m cutile profile examples/softmax.py::softmax_rows
    """
    file, name = script.split_target(target)
    process.take()
    status = 0
    try:
        with settings.override(PROFILE=output, BACKEND="interp"), \
                redirect_stdout(sys.stderr if json else sys.stdout):  # what the script prints is not part of the JSON
            script.run(file, arguments or [])
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else int(e.code is not None)
    found = process.take()
    wanted = [p for p in found if name in ("", p.name)]
    if not wanted:
        others = f"; it launches {', '.join(p.name for p in found)}" if found else ""
        fail(f"{name or 'a kernel'} was never launched by {file}{others}")
    if json:
        print(json_.dumps([report.data(p) for p in wanted], indent=2))
    else:
        for p in wanted:
            report.show(p)
        try:
            report.write_speedscope(wanted, output)
        except OSError as e:
            fail(f"the profile cannot be written to {output}: {e.strerror or e}")
        print(f"{output} has it for https://www.speedscope.app")
    raise typer.Exit(status)
