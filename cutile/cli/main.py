"""python -m cutile: look at a kernel's stages, at the settings, and at what is installed."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cutile import settings
from cutile._support import float_mode
from cutile._version import __version__
from cutile.cli import cache
from cutile.cli.diff import verb
from cutile.dtypes import BY_SHORT, DType, bool_, float32, int32
from cutile.errors import TileError
from cutile.front.program import Embedded, compile_kernel
from cutile.ir.text import to_text
from cutile.passes.fma import fma
from cutile.runtime.kernel import Kernel
from cutile.types import ArrayType, TileType

app = typer.Typer(help="cutile: the cuTile tile-programming model.", no_args_is_help=True, add_completion=False)
app.add_typer(cache.app, name="cache")
app.command("diff")(verb.diff)
STAGES = ("ir", "fma")
MAX_RANK = 64  # of arrays, as NumPy and PyTorch have it
_TYPE = re.compile(r"([a-z0-9]+)(?:\[([0-9]{1,2})\])?")


@app.command()
def show(
    target: Annotated[str, typer.Argument(help="FILE.py::KERNEL")],
    types: Annotated[list[str] | None, typer.Argument(
        help="one per parameter: f32[2] an array of rank 2, i32 or f32 a scalar, =5 a constant")] = None,
    stage: Annotated[str, typer.Option(help="ir: as typed; fma: after multiply-adds are fused, what runs")] = "fma",
    spans: Annotated[bool, typer.Option(help="print the table of source spans too")] = False,
) -> None:
    """Print a stage of a kernel. The file is run to find it: guard launches with if __name__ == "__main__".

    python -m cutile show examples/softmax.py::softmax_rows 'f32[2]' 'f32[2]' =4 =1024
    """
    if stage not in STAGES:
        _fail(f"no stage {stage!r}; there are {', '.join(STAGES)}")
    kernel = _load(target)
    names, given = list(kernel.parameters), types or []
    if len(names) != len(given):
        _fail(f"{kernel.__name__} has {len(names)} parameter(s), {', '.join(names)}: give a type for each")
    try:
        program = compile_kernel(kernel.function, [_blueprint(t) for t in given]).kernel
    except TileError as e:
        _fail(str(e))
    print(to_text(program if stage == "ir" else fma(program), spans=spans))


def _load(target: str) -> Kernel:
    file, _, name = target.partition("::")
    if not name:
        _fail(f"{target!r} is not FILE.py::KERNEL")
    if not Path(file).is_file():
        _fail(f"there is no file {file}")
    try:
        compile(Path(file).read_bytes(), file, "exec")
    except (OSError, SyntaxError, ValueError) as e:  # also of a file that is no text
        _fail(f"{file} is no Python file that can be run: {e}")
    sys.path.insert(0, str(Path(file).resolve().parent))
    found = runpy.run_path(file)
    kernel = found.get(name)
    if not isinstance(kernel, Kernel):
        there = ", ".join(n for n, v in found.items() if isinstance(v, Kernel))
        _fail(f"{name!r} is no kernel of {file}; {f'there are {there}' if there else 'it has none'}")
    return kernel


def _blueprint(text: str) -> Any:
    if text.startswith("="):
        return Embedded(_literal(text[1:]))
    name, rank = _TYPE.fullmatch(text).groups() if _TYPE.fullmatch(text) else ("", None)
    dtype = BY_SHORT.get(name)
    if dtype is None or rank is not None and int(rank) > MAX_RANK:
        _fail(f"{text!r} is no type: write f32[2] for an array of rank 2 (of {MAX_RANK} at most), i32 for a scalar, =5 "
              "for a constant")
    return _scalar(dtype) if rank is None else ArrayType(dtype, int(rank))


def _scalar(dtype: DType) -> TileType:
    if dtype not in (bool_, int32, float32, BY_SHORT["i64"]):
        _fail(f"a scalar argument is b1, i32, i64 or f32, not {dtype.name}")
    return TileType(dtype)


def _literal(text: str) -> Any:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"True": True, "False": False, "None": None}.get(text, text)


@app.command("settings")
def settings_() -> None:
    """Every CUTILE_* variable, what it may be and what it is now."""
    table = Table("variable", "accepts", "now", "for", show_lines=False)
    for s in settings.table().values():
        table.add_row(s.variable, escape(s.accepts), escape(_now(s.name)), escape(s.doc))
    Console().print(table)


def _now(name: str) -> str:
    try:
        return str(settings.get(name))
    except settings.SettingError as e:
        return f"wrong: {e}"


@app.command()
def doctor() -> None:
    """What is installed, and what works with it."""
    table = Table("part", "version", "what for")
    table.add_row("cutile", __version__, "")
    table.add_row("Python", platform.python_version(), f"{platform.system()} {platform.machine()}")
    table.add_row("floating point", *map(escape, float_mode.describe()))
    with _without_current_folder():
        for package, use in _PACKAGES.items():
            table.add_row(package, escape(_version(package)), use)
        for row in _gpu():
            table.add_row(*map(escape, row))
    Console().print(table)


@contextmanager
def _without_current_folder() -> Iterator[None]:
    """Import what is installed, not what lies where the command was given; `python -m` looks there first."""
    before, here = list(sys.path), os.path.realpath(os.curdir)
    sys.path[:] = [p for p in before if os.path.realpath(p or os.curdir) != here]
    try:
        yield
    finally:
        sys.path[:] = before


def _gpu() -> Iterator[tuple[str, str, str]]:
    """What compiles for GPUs and runs there. No context is made on any of them."""
    from cutile.gpu.driver import driver
    from cutile.gpu.tileir.tileiras import find_tool

    try:
        tool = find_tool()
        yield "tileiras", tool.version, f"compiles for GPUs; from {tool.origin}"
    except FileNotFoundError as e:
        yield "tileiras", "not found", f"would compile for GPUs: {e}"
    try:
        d = driver()
        yield "NVIDIA driver", f"CUDA {d.version()}", "launches on GPU arrays"
        for k in range(d.count()):
            yield f"GPU {k}", "sm_{}{}".format(*d.capability(k)), d.name(k)
    except TileError as e:
        yield "NVIDIA driver", "not usable", e.message


_PACKAGES = {
    "numpy": "the interpreter computes with it", "ml_dtypes": "bfloat16, fp8 and fp4 arrays on the host",
    "cuda-bindings": "calls of NVIDIA's driver", "torch": "tensors as arguments",
    "debugpy": "breakpoints from VS Code", "scikit-image": "examples",
    "scikit-learn": "examples", "hypothesis": "tests", "triton": "benchmarks compare with its interpreter",
}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _fail(text: str) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(1)


def main() -> None:
    try:
        app()
    except settings.SettingError as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main()
