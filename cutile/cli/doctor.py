"""The verb `doctor`: what is installed, and what works with it."""

from __future__ import annotations

import importlib.metadata
import json as json_
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cutile._support import float_mode
from cutile._version import __version__
from cutile.errors import TileError


def doctor(json: Annotated[bool, typer.Option(help="print JSON")] = False) -> None:
    """What is installed, and what works with it.

    python -m cutile doctor --json
    """
    columns, rows = ("part", "version", "what for"), list(_rows())
    if json:
        print(json_.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=2))
        return
    table = Table(*columns)
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)


def _rows() -> Iterator[tuple[str, str, str]]:
    yield "cutile", __version__, ""
    yield "Python", platform.python_version(), f"{platform.system()} {platform.machine()}"
    yield "floating point", *float_mode.describe()
    with _without_current_folder():
        yield from ((package, _version(package), use) for package, use in _PACKAGES.items())
        yield from _gpu()
        yield _sorts()


def _sorts() -> tuple[str, str, str]:
    """Which way sorts of `cutile.compute` run on GPU arrays."""
    from cutile.compute import delegation

    why = f"CUTILE_COMPUTE={delegation.backend()}"
    if delegation.chosen() == "own":
        return "sorts on GPU arrays", "own", why
    trouble = delegation.trouble()
    return "sorts on GPU arrays", "own" if trouble else "cuda-cccl", f"{why}, but {trouble}" if trouble else why


@contextmanager
def _without_current_folder() -> Iterator[None]:
    """Within the `with` block, nothing is imported from the current folder, where `python -m` would look first."""
    before, here = list(sys.path), os.path.realpath(os.curdir)
    sys.path[:] = [p for p in before if os.path.realpath(p or os.curdir) != here]
    try:
        yield
    finally:
        sys.path[:] = before


def _gpu() -> Iterator[tuple[str, str, str]]:
    """Rows about the assembler, the driver and each GPU. No context is created on a GPU."""
    from cutile.gpu.driver import MISSING, driver
    from cutile.gpu.find_tileiras import find_tool

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
        get = "; install it: pip install 'cutile[gpu]'" if e.message == MISSING else ""
        yield "NVIDIA driver", "not usable", e.message + get


_PACKAGES = {
    "numpy": "the interpreter computes with it", "ml_dtypes": "bfloat16, fp8 and fp4 arrays on the host",
    "cuda-bindings": "of cuda-python: calls of NVIDIA's driver",
    "cuda-cccl": "sorts of cutile.compute on GPU arrays", "torch": "tensors as arguments",
    "debugpy": "breakpoints from VS Code", "scikit-image": "examples",
    "scikit-learn": "examples", "hypothesis": "tests", "triton": "benchmarks compare with its interpreter",
}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
