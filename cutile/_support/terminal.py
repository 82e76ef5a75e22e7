"""The terminal behind standard error, for what shows how far something is."""

from __future__ import annotations

import contextlib
import sys
from typing import Any


def terminal() -> Any:
    """Standard error if it is a terminal; None if it is none, closed, or not there."""
    stream = sys.stderr
    try:
        return stream if stream is not None and stream.isatty() else None
    except (AttributeError, ValueError, OSError):
        return None


def show(text: str) -> None:
    """Put text in the place of what was shown last; nothing, if nobody would see it."""
    stream = terminal()
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):  # the terminal has gone
            stream.write(f"\r\x1b[K{text}")
            stream.flush()
