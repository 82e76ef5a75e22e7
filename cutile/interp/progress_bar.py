"""Shows, on a terminal, how far a launch is that has run for two seconds: blocks done, their rate, the time left."""

from __future__ import annotations

import time
from math import prod
from typing import Any

from cutile._support import terminal
from cutile.interp import debugger

AFTER = 2.0  # seconds


class Progress:
    """How many blocks of a launch are done; a context manager around the launch. Before AFTER it costs a look at the
    clock for each `add`.
    """

    __slots__ = ("_name", "_total", "_due", "_done", "_bar")

    def __init__(self, name: str, grid: tuple[int, int, int]):
        self._name, self._total = name, prod(grid)
        self._due = time.monotonic() + AFTER
        self._done = 0
        self._bar: Any = None

    def add(self, blocks: int) -> None:
        """Note that this many more blocks are done."""
        self._done += blocks
        if time.monotonic() >= self._due:
            if self._bar is None:
                self._bar = _bar(self._name, self._done, self._total) or ()
            if self._bar:
                self._bar.update(self._bar.task_ids[0], completed=self._done)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what is shown."""
        if self._bar:
            self._bar.stop()


def _bar(name: str, done: int, total: int) -> Any:
    """A bar on stderr that vanishes in the end; None if nobody would see it, or if a debugger has the terminal."""
    if terminal.terminal() is None or debugger.attached():
        return None
    from rich import progress  # loaded when it is needed
    from rich.console import Console

    class Rate(progress.ProgressColumn):
        def render(self, task):
            return f"{task.speed:,.0f} blocks/s" if task.speed else ""

    bar = progress.Progress(progress.TextColumn("{task.description}"), progress.BarColumn(),
                            progress.MofNCompleteColumn(), Rate(), progress.TimeRemainingColumn(),
                            console=Console(stderr=True), transient=True)
    bar.add_task(name, completed=done, total=total)
    bar.start()
    return bar
