"""The verb `debug`: pdb at the first line of a kernel, in a chosen block."""

from __future__ import annotations

import pdb
import sys
from bdb import BdbQuit
from collections.abc import Callable
from typing import Annotated

import typer

from cutile.cli import script
from cutile.cli.failing import fail
from cutile.cli.script import Caught
from cutile.runtime.kernel import Kernel
from cutile.runtime.launch import padded_grid
from cutile.settings import block_of


def debug(
    target: Annotated[str, typer.Argument(help="FILE.py::KERNEL, or FILE.py for the first kernel that it launches")],
    arguments: Annotated[list[str] | None, typer.Argument(help="arguments of the script, after --")] = None,
    block: Annotated[str, typer.Option(help="the block to stop in")] = "0,0,0",
    launch: Annotated[int, typer.Option(help="which launch of the kernel, counted from 1")] = 1,
) -> None:
    """Run a script and stop in pdb at the first line of a kernel, in one block.

    Arguments of the script follow `--`.

    python -m cutile debug examples/softmax.py::softmax_rows --block 3
    """
    file, name = script.split_target(target)
    try:
        where = block_of(block)
    except ValueError:
        fail(f"--block {block}: write a block id such as 3 or 3,0,0")
    stops = _StoppingLaunch(name, where, launch)
    try:
        script.run(file, arguments or [], stops.see)
    except _Left:
        return
    if not stops.reached:
        fail(script.not_launched(name, file, stops.seen))


class _Left(BaseException):
    """The user has left the debugger: ends the script."""


class _StoppingLaunch:
    """Stops in a block of one launch."""

    def __init__(self, name: str, block: tuple[int, int, int], number: int):
        self.name, self.block, self.number, self.reached = name, block, number, False
        self.seen: list[str] = []  # kernels that were launched

    def see(self, caught: Caught, go_on: Callable[[], None]) -> None:
        grid, kernel, args = caught
        if not isinstance(kernel, Kernel):
            return go_on()
        self.seen.append(kernel.__name__)
        if self.name not in ("", kernel.__name__) or self._count() != self.number:
            return go_on()
        dims = padded_grid(grid)
        if not all(i < n for i, n in zip(self.block, dims, strict=True)):
            fail(f"block {self.block} is outside the grid {dims} of {kernel.__name__}")
        self.reached = True
        program = kernel.program(kernel.classify(tuple(args))).kernel
        debugger = pdb.Pdb()
        debugger.reset()
        first = min(n.span.line for n in program.body.nodes if n.span != program.span)  # skips the Binds of parameters
        problem = debugger.set_break(program.span.filename, first, temporary=True, cond=f"__block__ == {self.block}")
        if problem:
            fail(problem)
        debugger.botframe = sys._getframe()  # pdb does not stop between here and the breakpoint
        debugger.set_continue()
        before = sys.gettrace()
        sys.settrace(debugger.trace_dispatch)
        try:
            go_on()
        except BdbQuit:
            raise _Left from None
        finally:
            sys.settrace(before)

    def _count(self) -> int:
        return self.seen.count(self.name) if self.name else len(self.seen)
