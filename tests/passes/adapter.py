"""The interpreter after each pass: `pytest conformance --impl tests.passes.adapter:EachPass`.

Every launch runs the kernel as the front end made it and again after each pass that changed it, on the same inputs;
arrays, output and errors must be equal bit for bit. The suite then sees what the unchanged kernel did.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from conformance.adapters.cutile_interp import Interp
from cutile import interp, settings
from cutile.errors import TileError
from cutile.gpu.tileir.lower import PASSES
from cutile.ir.check import check
from cutile.ir.nodes import Kernel
from cutile.ir.text import to_text

_after: WeakKeyDictionary[Kernel, list[tuple[str, Kernel]]] = WeakKeyDictionary()


def after_each_pass(kernel: Kernel) -> list[tuple[str, Kernel]]:
    """The kernel after each pass of the GPU pipeline that changed it, with the pass's name."""
    if kernel not in _after:
        steps, text = [], to_text(kernel)
        current = kernel
        for number, one in enumerate(PASSES):
            current = one(current)
            check(current)
            before, text = text, to_text(current)
            if text != before:
                steps.append((f"{number}. {one.__name__}", current))
        _after[kernel] = steps
    return _after[kernel]


@dataclass(frozen=True)
class Outcome:
    """What can be seen of a run."""

    printed: str
    error: str | None
    arrays: tuple[bytes, ...] | None  # None where an error ended the run half-way


class EachPass(Interp):
    name = "cutile:passes"

    def launch(self, grid: tuple[int, ...], kernel: Any, args: Sequence[Any]) -> None:
        with _compared() as ran:
            super().launch(grid, kernel, args)
        assert ran or 0 in grid, "the launch was not compared"


@contextlib.contextmanager
def _compared() -> Iterator[list[Kernel]]:
    """Inside, `ct.launch` on CPU arrays runs kernels also after each pass; gives a list of those that it ran."""
    before, ran = interp.HostLaunch.run, []

    def launch(kernel: Kernel, grid: tuple[int, int, int], values: Sequence[Any]) -> None:
        before(interp.HostLaunch(interp.CompiledKernel(kernel), repeatable=False), grid, None, values, False)

    def instead(self: interp.HostLaunch, grid: tuple, stream: Any, values: Sequence[Any], dependent: bool) -> None:
        ran.append(self.compiled.kernel)
        compare(launch, self.compiled.kernel, grid, values)

    interp.HostLaunch.run = instead
    try:
        with settings.override(LAUNCHER="python"):  # C code asks no HostLaunch
            yield ran
    finally:
        interp.HostLaunch.run = before


def compare(launch: Any, kernel: Kernel, grid: tuple[int, int, int], leaves: Sequence[Any]) -> None:
    """Launch a kernel before and after each pass; AssertionError names the pass that changed the outcome."""
    arrays = [a for x in leaves for a in (x if isinstance(x, list) else [x]) if isinstance(a, np.ndarray)]
    arrays = [a for a in arrays if a.flags.writeable]
    inputs = [a.copy() for a in arrays]
    error: TileError | None = None
    first, last = None, None
    for name, one in [("the front end", kernel), *after_each_pass(kernel)]:
        _fill(arrays, inputs)
        outcome, raised = _run(launch, one, grid, leaves, arrays)
        if first is None:
            first, error, last = outcome, raised, [a.copy() for a in arrays]
        assert outcome == first, f"pass {name} changed the outcome of {kernel.name}"
    _fill(arrays, last)
    sys.stdout.write(first.printed)
    if error is not None:
        raise error


def _run(launch, kernel, grid, leaves, arrays) -> tuple[Outcome, TileError | None]:
    out, error = io.StringIO(), None
    with contextlib.redirect_stdout(out):
        try:
            launch(kernel, grid, leaves)
        except TileError as e:
            error = e
    said = None if error is None else f"{type(error).__name__}: {error}"
    return Outcome(out.getvalue(), said, None if said else tuple(a.tobytes() for a in arrays)), error


def _fill(arrays: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> None:
    for a, v in zip(arrays, values, strict=True):
        a[...] = v
