"""The verb `show`: reads its arguments and prints a stage."""

from __future__ import annotations

import json as json_
import shlex
import sys
from contextlib import redirect_stdout
from typing import Annotated, Any

import typer

from cutile.cli import script
from cutile.cli.failing import fail
from cutile.cli.show.assumptions import ASSUMED, constraint
from cutile.cli.show.words import arg_type
from cutile.compilation.launch_signature import of_launch
from cutile.compilation.mangling import symbol_of
from cutile.errors import TileError
from cutile.front.program import Embedded
from cutile.functions.stages import STAGES, Compilation
from cutile.functions.tile_function import TileFunction
from cutile.gpu.target import Target, parse_target
from cutile.runtime.kernel import Kernel


def show(
    target: Annotated[str, typer.Argument(help="FILE.py::KERNEL, or FILE.py for a list of its kernels")],
    types: Annotated[list[str] | None, typer.Argument(
        help="one per parameter: f32[2] an array of rank 2, i32 or f32 a scalar, =5 a constant; without them, the file "
             "is run as a script, and its launch of the kernel says the types")] = None,
    stage: Annotated[str, typer.Option(help="; ".join(f"{name}: {s.doc}" for name, s in STAGES.items()))] = "fma",
    gpu: Annotated[str, typer.Option(help="the GPU that code is made for")] = "sm_90",
    launch: Annotated[int, typer.Option(help="which launch of the kernel, counted from 1")] = 1,
    args: Annotated[str, typer.Option(help="arguments of the script")] = "",
    spans: Annotated[bool, typer.Option(help="print source spans too")] = False,
    json: Annotated[bool, typer.Option(help="print JSON: the stage as `text`, and what it was made for")] = False,
) -> None:
    """Print a stage of a kernel's compilation. No GPU is needed.

    python -m cutile show examples/softmax.py

    python -m cutile show examples/softmax.py::softmax_rows --stage tileir

    python -m cutile show examples/softmax.py::softmax_rows 'f32[2]' 'f32[2]' =4 =1024 --stage ir
    """
    file, name = script.split_target(target)
    if stage not in STAGES:
        fail(f"no stage {stage!r}; there are {', '.join(STAGES)}")
    with redirect_stdout(sys.stderr if json else sys.stdout):  # what the script prints is not part of the JSON
        found = _stage(file, name, types, stage, gpu, launch, args, spans) if name else _kernels(file)
    if json:
        print(json_.dumps(_data(stage, found), indent=2))
    elif name:
        print(found[1])
    else:
        print("\n".join(_list(file, found)))


def _stage(file: str, name: str, types: list[str] | None, stage: str, gpu: str, launch: int, args: str,
           spans: bool) -> tuple[Compilation, str]:
    """A compilation and the text of its stage."""
    try:
        where = parse_target(gpu)
        try:
            compilation = _of_words(file, name, types, where, spans) if types else script.at_launch(
                file, name, shlex.split(args), launch, lambda caught: _of_launch(caught, where, spans))
        except script.NotLaunchedError as e:
            found = script.load(file, str(e)) if e.globals is None else e.globals
            compilation = _of_words(file, name, [], where, spans, f"{e}. ", found)
        return compilation, STAGES[stage].text(compilation)
    except (TileError, FileNotFoundError, ValueError) as e:
        fail(str(e))


def _data(stage: str, found: dict[str, Kernel] | tuple[Compilation, str]) -> Any:
    """The kernels of a file, or a stage, as plain data."""
    if isinstance(found, dict):
        return [{"kernel": name, "parameters": list(k.parameters)} for name, k in found.items()]
    c, text = found
    arguments = map(_word, c.arg_types)
    return {"kernel": c.kernel.__name__, "stage": stage, "gpu": str(c.target), "symbol": c.symbol,
            "arguments": dict(zip(c.kernel.parameters, arguments, strict=True)), "given": c.given, "text": text}


def _word(t: Any) -> str:
    """What an argument is, as far as a compilation knows."""
    if isinstance(t, tuple):
        return f"({', '.join(map(_word, t))})"
    return f"={t.value!r}" if isinstance(t, Embedded) else str(t)


def _of_words(file: str, name: str, types: list[str], where: Target, spans: bool, why: str = "",
              found: dict[str, Any] | None = None) -> Compilation:
    kernel = _find(file, name, found)
    names = list(kernel.parameters)
    if len(names) != len(types):
        fail(f"{why}{kernel.__name__} has {len(names)} parameter(s), {', '.join(names)}: give a type for each")
    given = list(map(arg_type, types))
    try:
        constraints = list(map(constraint, given))
    except TypeError as e:  # a constant that no signature holds
        fail(f"{' '.join(types)}: {e}; without types the file is run, and its launch says them")
    return Compilation(kernel, given, constraints, symbol_of(kernel.__name__), where,
                       f"if {ASSUMED}", spans)


def _of_launch(caught: script.Caught, where: Target, spans: bool) -> Compilation:
    """The compilation for the arguments of a launch; arrays in CPU memory stand for arrays of the same layout on a GPU.
    """
    arguments = caught.kernel.classify(tuple(caught.args))
    constraints, symbol = of_launch(caught.kernel, arguments)
    return Compilation(caught.kernel, [a.arg_type for a in arguments], constraints, symbol, where,
                       "for the arguments of the launch", spans)


# ------------------------------------------------------------------ kernels of a file


def _list(file: str, found: dict[str, Kernel]) -> list[str]:
    """A line for each kernel of a file."""
    return [f"{file}::{name}({', '.join(k.parameters)})" for name, k in found.items()] or [f"{file} has no kernel"]


def _find(file: str, name: str, ran: dict[str, Any] | None = None) -> Kernel:
    found = _kernels(file) if ran is None else _among(ran)
    if name not in found:
        there = ", ".join(found)
        fail(f"{name!r} is no kernel of {file}; {f'there are {there}' if there else 'it has none'}")
    return found[name]


def _kernels(file: str) -> dict[str, Kernel]:
    """The kernels of a file by their names there, those of functions too. The file is run, though not as a script."""
    return _among(script.load(file))


def _among(names: dict[str, Any]) -> dict[str, Kernel]:
    found = {name: v.kernel if isinstance(v, TileFunction) else v for name, v in names.items()}
    return {name: v for name, v in found.items() if isinstance(v, Kernel)}
