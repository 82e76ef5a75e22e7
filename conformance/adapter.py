"""What the suite needs to know about an implementation: a subclass of `Adapter` (see README.md).

The suite writes kernels against `ct`, the implementation's module, and hands NumPy arrays to `launch`. An adapter
moves them to where the implementation wants them, and back.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conformance.harness.absent import NoSuchError


class Adapter:
    """An implementation under test.

    name      what reports call it
    module    the module with the cuda.tile API
    features  what it can do, from: "cpu arrays", "cubins" (exporting them: it needs an assembler), "debugger", "export"
              (`ct.compilation`, with bytecode), "float4 arrays", "measured" (where the language leaves a
              result undefined, it gives what was measured on Hopper GPUs), "safe memory" (accesses that the language
              leaves undefined read padding and write nothing), "negative strides", "overlap" (overlapping arguments
              are accesses in program order), "assertion errors" (a failed assertion raises, and later launches
              work). Tests that need one it lacks are counted as not applicable.
    package   what `pip` calls it, for its version; None: the module says it in `__version__`
    lambdas   whether kernels may call lambdas from outside tile code; otherwise the suite has functions in their place
    limit     seconds after which a kernel is taken for hanging, in runs of several processes (pytest -n)
    """

    name = "unnamed"
    module = "cuda.tile"
    features: frozenset[str] = frozenset()
    package: str | None = None
    lambdas = True
    limit: float | None = None
    judge: Callable[[Any, Sequence[Any]], Any] | None = None  # set where only verdicts are wanted
    not_applicable: tuple[type[BaseException], ...] = ()  # errors that say that the hardware lacks something

    def __init__(self) -> None:
        self.ct = importlib.import_module(self.module)

    def stream(self) -> Any:
        """The stream to pass to `ct.launch`."""
        return None

    def to_device(self, array: np.ndarray) -> Any:
        """An array argument made from a NumPy array (any strides; ml_dtypes included)."""
        return array

    def to_host(self, argument: Any, original: np.ndarray) -> None:
        """Copy the argument's contents back into the NumPy array from which it was made."""

    def launch(self, grid: tuple[int, ...], kernel: Any, args: Sequence[Any]) -> None:
        """Run a kernel on NumPy arrays, lists of them, tuples and scalars; results are in the arrays afterwards."""
        moved: dict[int, tuple[Any, np.ndarray]] = {}
        self.queue(grid, kernel, self.moved(tuple(args), moved))
        for argument, original in moved.values():
            self.to_host(argument, original)

    def queue(self, grid: tuple[int, ...], kernel: Any, args: tuple) -> None:
        """Launch a kernel on arguments as the implementation takes them."""
        self.ct.launch(self.stream(), grid, kernel, args)

    def moved(self, x: Any, done: dict[int, tuple[Any, np.ndarray]]) -> Any:
        """An argument as the implementation takes it. `done` has what was moved so far, by id, each with its origin."""
        if isinstance(x, np.ndarray):
            if id(x) not in done:
                done[id(x)] = (self.to_device(x), x)
            return done[id(x)][0]
        return type(x)(self.moved(v, done) for v in x) if type(x) in (list, tuple) else x

    def compile(self, kernel: Any, args: Sequence[Any]) -> None:
        """Compile a kernel for arguments, as a launch would, without running it."""
        self.launch((0,), kernel, args)

    def exported(self, code: bytes) -> None:
        """Look at Tile IR bytecode that the suite has exported."""

    def error(self, name: str) -> type[BaseException]:
        """The class behind a public error name: TileTypeError, … ; UnsupportedCallError is not public everywhere."""
        found = [getattr(self.ct, n, None) for n in (name, "TileError")]
        return next((e for e in found if e is not None), NoSuchError)

    def version(self) -> str:
        """The version, for reports."""
        if self.package:
            return importlib.metadata.version(self.package)
        return str(getattr(self.ct, "__version__", "unknown"))

    def hardware(self) -> str:
        """The hardware that runs kernels: here the processor."""
        return processor()

    def lost(self) -> str | None:
        """Why this process can run no more kernels, for instance after a fault of the GPU; None if it can."""
        return None


def processor() -> str:
    """The model of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
