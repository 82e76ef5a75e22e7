"""Ends a process in which a kernel takes too long. Neither Python nor a signal can end a wait for a GPU."""

from __future__ import annotations

import faulthandler
import sys

_limit = 0.0


def start(limit: float | None) -> None:
    """Allow this many seconds for each kernel; None: any time."""
    global _limit
    _limit = limit or 0.0
    feed()


def feed() -> None:
    """Begin the time of the next kernel."""
    if _limit:
        faulthandler.dump_traceback_later(_limit, exit=True, file=sys.__stderr__)


def stop() -> None:
    """Stop watching."""
    if _limit:
        faulthandler.cancel_dump_traceback_later()
