"""Launches on host arrays: checks the arrays, makes views of them, and runs the grid."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from cutile import settings
from cutile.errors import refusal
from cutile.interp import debugger, grid_launch, run_blocks
from cutile.interp.grid_launch import GridLaunch
from cutile.interp.memory import array_view
from cutile.interp.memory.buffer import Buffer
from cutile.interp.schedule import CompiledKernel
from cutile.ir.nodes import Kernel
from cutile.types import ArrayType, ListType

Grid = tuple[int, int, int]


class HostLaunch:
    """The interpreter's prepared launch: a kernel on arrays of one layout, that is dtypes, sizes and strides.

    repeatable  whether `run` keeps a grid launch for later launches with the same grid
    """

    __slots__ = ("compiled", "_by_grid", "_records")
    choices = None  # for C code: only launches on a GPU have any

    def __init__(self, compiled: CompiledKernel, repeatable: bool):
        self.compiled = compiled
        self._by_grid: dict[tuple[Grid, bool], GridLaunch | None] | None = {} if repeatable else None
        self._records: dict[Grid, tuple] = {}  # grid launches as C code runs them

    def still_valid(self) -> bool:
        """Always True, because `run` looks at the settings itself."""
        return True

    def run(self, grid: Grid, stream: Any, values: Sequence[Any], dependent: bool) -> None:
        """Run the kernel before this returns; `stream` and `dependent` do not matter here.

        values  NumPy arrays, numbers and lists of arrays, one for each IR parameter
        TypeError if the kernel stores to an array that is read-only.
        """
        check = None  # the value of CUTILE_CHECK; None if no grid launch may be used
        if (by_grid := self._by_grid) is not None and debugger.follows() is None:
            check = False if settings.untouched() else grid_launch.checking()
            if check is not None and (found := by_grid.get((grid, check))) is not None and found.run(values):
                return
        # In a copy of the context, so that an interrupt leaves no setting of `_run` behind.
        contextvars.copy_context().run(self._run, grid, values, check)

    def _run(self, grid: Grid, values: Sequence[Any], check: bool | None) -> None:
        with settings.steady():
            args = _arguments(self.compiled, values)
            if check is not None and (grid, check) not in self._by_grid and len(self._by_grid) < grid_launch.GRIDS \
                    and grid_launch.preparable(args):
                found = self._by_grid[grid, check] = grid_launch.prepare(self.compiled, grid, args, check)
                if found is not None and not check and (record := found.record(args)) is not None:
                    self._records[grid] = record
                if found is not None and found.run(values):
                    return
            run_blocks.run(self.compiled, grid, args)

    def record(self, c: Any) -> dict[Grid, tuple] | None:
        """The launches that runtime/_host_launch.c may run: a dictionary by grid, which grows with further launches.
        None if there are none.
        """
        return self._records or None


def launch(kernel: Kernel, grid: Grid, values: Sequence[Any]) -> None:
    """Run a kernel once, with values as `HostLaunch.run` takes them."""
    HostLaunch(CompiledKernel(kernel), repeatable=False).run(grid, None, values, False)


def run(kernel: Kernel, grid: Sequence[int], args: Sequence, *, schedule: str | None = None) -> None:
    """Run a kernel once. `args`: for each parameter an ArrayView, a list of them, or a number."""
    run_blocks.run(CompiledKernel(kernel), grid, args, schedule)


def _arguments(compiled: CompiledKernel, values: Sequence[Any]) -> list[Any]:
    """The values as `run_blocks.run` takes them."""
    args: list[Any] = []
    buffers: list[Buffer] = []
    for (t, name, stored), x in zip(compiled.params(), values, strict=True):
        if type(t) is ArrayType:
            x = _view(t, name, x, stored)
            buffers.append(x.buffer)
        elif type(t) is ListType:
            x = [_view(t.element, f"{name}[{i}]", a, stored) for i, a in enumerate(x)]
            buffers += [view.buffer for view in x]
        args.append(x)
    _find_changing(buffers)
    return args


def _find_changing(buffers: Sequence[Buffer]) -> None:
    """Set `may_change` on each buffer: true if the kernel stores to it, or to memory that it may share."""
    targets = [buffer.array for buffer in buffers if buffer.writable]
    for buffer in buffers:
        if not buffer.writable:
            buffer.may_change = False
            for target in targets:
                if np.may_share_memory(buffer.array, target):
                    buffer.may_change = True


def _view(t: ArrayType, name: str, x: np.ndarray, stored: bool) -> array_view.ArrayView:
    if stored and not x.flags.writeable:
        hint = "; JAX's all are: cutile.jax.cutile_call() returns new ones" if "jax" in sys.modules else ""
        raise refusal(TypeError(f"the kernel stores to parameter `{name}`, but the array given for it is read-only"
                                f"{hint}"))
    return array_view.view_of(x, t.dtype, t.index_dtype, stored, name)
