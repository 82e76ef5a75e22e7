"""What a launch did: the arrays it left, what it printed, how it failed."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cutile import settings
from cutile.cli.script import Caught
from cutile.errors import TileError, TileUnsupportedFeatureError
from cutile.interp.exec.turn_order import Recorded, Step, TurnOrder, chosen
from cutile.runtime import launch_plan, restoring
from cutile.runtime.launch import padded_grid


class Outcome(NamedTuple):
    """What a launch did. Two orders of blocks make no difference if their outcomes are equal."""

    arrays: tuple[bytes, ...]
    printed: str
    error: str


class Rerun:
    """A launch that can run again and again. Its arrays are put back after each run.

    kernel  its name
    names   of the parameters that are arrays
    """

    def __init__(self, caught: Caught):
        self.kernel = caught.kernel.__name__
        self._grid = padded_grid(caught.grid)
        self._plan, self._values = launch_plan.find(caught.kernel, tuple(caught.args), None)
        if self._plan.ordinal is not None:
            raise TileUnsupportedFeatureError(
                f"{self.kernel} was launched on GPU arrays: explore runs launches on CPU arrays")
        named = list(_arrays(self._plan.program.kernel.param_names, self._values))
        self.names = [name for name, _ in named]
        self._arrays = [a for _, a in named]

    def run(self, order: TurnOrder) -> tuple[Outcome, list[Step]]:
        """Run it with its blocks in this order. Returns what it did and the steps that its blocks took."""
        recorded, printed, error = Recorded(order), io.StringIO(), ""
        with settings.override(SCHEDULE="interleave"), restoring.restored(self._plan, self._values, None):
            before = chosen.get()
            chosen.set(recorded)
            try:
                with contextlib.redirect_stdout(printed):
                    self._plan.prepare(None).run(self._grid, None, self._values, False)
            except TileError as e:
                error = f"{type(e).__name__}: {e}"
            finally:
                chosen.set(before)
            arrays = tuple(a.tobytes() for a in self._arrays)
        return Outcome(arrays, printed.getvalue(), error), recorded.steps

    def elements(self, outcome: Outcome, k: int) -> np.ndarray:
        """Array k of an outcome."""
        a = self._arrays[k]
        return np.frombuffer(outcome.arrays[k], a.dtype).reshape(a.shape)


def _arrays(names: Any, values: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays among launch values, each with the name of its parameter."""
    for name, value in zip(names, values, strict=True):
        if isinstance(value, np.ndarray):
            yield name, value
        elif isinstance(value, list):
            yield from _arrays([f"{name}[{i}]" for i in range(len(value))], value)
