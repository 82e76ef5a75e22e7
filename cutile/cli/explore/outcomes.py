"""What a launch did: the arrays it left, what it printed, how it failed, and which of its accesses race."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np

from cutile import settings
from cutile.cli.script import Caught
from cutile.errors import TileError, TileSanitizerError, TileUnsupportedFeatureError
from cutile.interp.exec.turn_order import Recorded, Step, TurnOrder, chosen
from cutile.runtime import launch_plan, restoring
from cutile.runtime.launch import padded_grid

RACE = "race"  # the check of the sanitizer


class Outcome(NamedTuple):
    """What a launch did. Two orders of blocks make no difference if their outcomes are equal."""

    arrays: tuple[bytes, ...]
    printed: str
    error: str


class Ran(NamedTuple):
    """A run of a launch.

    steps  the turns that its blocks took
    races  what the check `race` of the sanitizer reports, by the places of both parties in the source
    """

    outcome: Outcome
    steps: list[Step]
    races: dict[Hashable, TileSanitizerError]


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

    def run(self, order: TurnOrder) -> Ran:
        """Run it with its blocks in this order."""
        recorded, printed, error, races = Recorded(order), io.StringIO(), "", {}
        checks = {RACE, *settings.get("SANITIZE")} - {settings.MEMCHECK}
        with settings.override(SCHEDULE="interleave", SANITIZE=checks), \
                restoring.restored(self._plan, self._values, None):
            before = chosen.get()
            chosen.set(recorded)
            try:
                with contextlib.redirect_stdout(printed):
                    self._plan.prepare(None).run(self._grid, None, self._values, False)
            except TileError as e:
                races, failure = _told_apart(e)
                error = f"{type(failure).__name__}: {failure}" if failure is not None else ""
            finally:
                chosen.set(before)
            arrays = tuple(a.tobytes() for a in self._arrays)
        return Ran(Outcome(arrays, printed.getvalue(), error), recorded.steps, races)

    def elements(self, outcome: Outcome, k: int) -> np.ndarray:
        """Array k of an outcome."""
        a = self._arrays[k]
        return np.frombuffer(outcome.arrays[k], a.dtype).reshape(a.shape)


def _told_apart(e: TileError) -> tuple[dict[Hashable, TileSanitizerError], BaseException | None]:
    """The races that an error reports, and what it says besides; None if that is nothing."""
    if not isinstance(e, TileSanitizerError):
        return {}, e
    races = {frozenset((r.loc, *(span for _, span in r.notes))): r for r in e.errors if r.check == RACE}
    others = tuple(r for r in e.errors if r.check != RACE)
    if others:
        others[0].errors = others
    return races, others[0] if others else e.__cause__


def _arrays(names: Any, values: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays among launch values, each with the name of its parameter."""
    for name, value in zip(names, values, strict=True):
        if isinstance(value, np.ndarray):
            yield name, value
        elif isinstance(value, list):
            yield from _arrays([f"{name}[{i}]" for i in range(len(value))], value)
