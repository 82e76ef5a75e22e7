"""The verb `view`: writes a page that shows what a launch of a script does."""

from __future__ import annotations

import json as json_
import sys
from contextlib import redirect_stdout
from typing import Annotated

import typer

from cutile.cli import script
from cutile.cli.failing import fail
from cutile.errors import TileError, is_refusal
from cutile.pictures.view import View
from cutile.pictures.view import view as viewed


def view(
    target: Annotated[str, typer.Argument(help="FILE.py::KERNEL")],
    arguments: Annotated[list[str] | None, typer.Argument(help="arguments of the script, after --")] = None,
    block: Annotated[list[str] | None, typer.Option(help="a block whose every step is to be recorded, such as 3,0,0; "
                                                         "may be given several times")] = None,
    launch: Annotated[int, typer.Option(help="which launch of the kernel, counted from 1")] = 1,
    output: Annotated[str | None, typer.Option(help="the page; by default KERNEL.html in the current folder")] = None,
    json: Annotated[bool, typer.Option(help="print the data as JSON, and write no page")] = False,
) -> None:
    """Write a page that shows what a launch does: which elements each block touches, line by line.

    The file is run as a script up to the launch, which then runs in the interpreter, on CPU arrays or on copies.

    The page is one file that needs no network. It also shows what the sanitizer finds, and a roofline.

    python -m cutile view examples/matmul.py::matmul
    """
    file, name = script.split_target(target)
    if not name:
        fail(f"{target!r} is not FILE.py::KERNEL; `cutile show {file}` lists its kernels")
    try:
        with redirect_stdout(sys.stderr if json else sys.stdout):  # what the script prints is not part of the JSON
            found = script.at_launch(file, name, arguments or [], launch, lambda caught: viewed(
                caught.kernel, caught.grid, caught.args, blocks=block or ()))
    except (TileError, script.NotLaunchedError) as e:
        fail(str(e))
    except (TypeError, ValueError) as e:
        if not is_refusal(e):
            raise
        fail(str(e))
    if json:
        print(json_.dumps(found.data))
        return
    path = output or f"{name}.html"
    try:
        found.save(path)
    except OSError as e:
        fail(f"the page cannot be written to {path}: {e.strerror or e}")
    print(_text(found, path))


def _text(found: View, path: str) -> str:
    d, totals = found.data, found.data["totals"]
    out = [f"{path} shows {d['kernel']}, grid {tuple(d['grid'])}: {totals['bytes read']:,} bytes read, "
           f"{totals['bytes written']:,} written, {sum(totals['operations'].values()):,} operations"]
    if d["error"]:
        out.append(f"the launch failed: {d['error']}")
    return "\n".join([*out, *(f["message"] for f in d["findings"])])
