"""The ladder of CUTILE_DEBUG: what cutile says about its own work, on standard error.

1 launches and what fell back · 2 timings · 3 typed IR · 4 IR after each pass · 5 Tile IR text · 6 tool command lines.
Each level shows all lower ones.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cutile import settings

LAUNCHES, TIMINGS, IR, PASSES, TILE_IR, TOOLS = range(1, 7)


def on(level: int) -> bool:
    return settings.get("DEBUG") >= level


def say(level: int, text: str) -> None:
    """A line of the ladder, if its level is switched on."""
    if on(level):
        print(f"cutile: {text}", file=sys.stderr)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Say how long a stage took."""
    start = time.perf_counter()
    yield
    say(TIMINGS, f"{what}: {(time.perf_counter() - start) * 1e3:.2f} ms")
