"""What cutile prints about its own work on standard error, by the level of CUTILE_DEBUG.

1 launches and fallbacks · 2 timings · 3 typed IR · 4 IR after fma · 5 Tile IR text · 6 tool command lines.
Each level includes all lower ones.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cutile import settings

LAUNCHES, TIMINGS, IR, PASSES, TILE_IR, TOOLS = range(1, 7)


def on(level: int) -> bool:
    """Whether messages of a level are printed."""
    return settings.get("DEBUG") >= level


def say(level: int, text: str) -> None:
    """Print a message, if its level is on."""
    if on(level):
        print(f"cutile: {text}", file=sys.stderr)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long the `with` block took."""
    start = time.perf_counter()
    yield
    say(TIMINGS, f"{what}: {(time.perf_counter() - start) * 1e3:.2f} ms")
