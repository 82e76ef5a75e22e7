"""python -m cutile show: a stage of a kernel's compilation, as text."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from cutile.cli import code_stages
from cutile.dtypes import BY_SHORT, DType, bool_, float32, int32
from cutile.errors import TileError
from cutile.front.program import Embedded, type_kernel
from cutile.gpu.target import Target, parse_target
from cutile.ir.text import to_text
from cutile.passes.fma import fma
from cutile.runtime.kernel import Kernel
from cutile.types import ArrayType, TileType

STAGES = ("ir", "fma", "resources")
MAX_RANK = 64  # the highest rank of an array in NumPy and PyTorch
_TYPE = re.compile(r"([a-z0-9]+)(?:\[([0-9]{1,2})\])?")


def show(
    target: Annotated[str, typer.Argument(help="FILE.py::KERNEL")],
    types: Annotated[list[str] | None, typer.Argument(
        help="one per parameter: f32[2] an array of rank 2, i32 or f32 a scalar, =5 a constant")] = None,
    stage: Annotated[str, typer.Option(help="ir: as typed; fma: after multiply-adds are fused, what runs; resources: "
                                            "what the GPU code takes of a multiprocessor")] = "fma",
    spans: Annotated[bool, typer.Option(help="print the table of source spans too")] = False,
    gpu: Annotated[str, typer.Option(help="for the stage resources: the GPU, as sm_90")] = "sm_90",
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
    given_types, for_gpu = [_arg_type(t) for t in given], _target(gpu)
    try:
        program = type_kernel(kernel.function, given_types).kernel
        if stage == "ir":
            print(to_text(program, spans=spans))
        elif stage == "fma":
            print(to_text(fma(program), spans=spans))
        else:
            print(code_stages.resources(program, given_types, for_gpu, kernel.options))
    except (TileError, FileNotFoundError) as e:
        _fail(str(e))


def _load(target: str) -> Kernel:
    """The kernel that FILE.py::KERNEL names; the file is run to find it."""
    file, _, name = target.partition("::")
    if not name:
        _fail(f"{target!r} is not FILE.py::KERNEL")
    if not Path(file).is_file():
        _fail(f"there is no file {file}")
    try:
        compile(Path(file).read_bytes(), file, "exec")
    except (OSError, SyntaxError, ValueError) as e:  # ValueError: not a text file
        _fail(f"{file} is no Python file that can be run: {e}")
    sys.path.insert(0, str(Path(file).resolve().parent))
    found = runpy.run_path(file)
    kernel = found.get(name)
    if not isinstance(kernel, Kernel):
        there = ", ".join(n for n, v in found.items() if isinstance(v, Kernel))
        _fail(f"{name!r} is no kernel of {file}; {f'there are {there}' if there else 'it has none'}")
    return kernel


def _target(name: str) -> Target:
    try:
        return parse_target(name)
    except (ValueError, TileError) as e:
        _fail(str(e))


def _arg_type(text: str) -> Any:
    """The type or constant that a word of the command line says."""
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


def _fail(text: str) -> NoReturn:
    typer.echo(text, err=True)
    raise typer.Exit(1)
