"""Room for deep recursion: inlined calls nest up to the language's limit, deeper than Python's own allows [CALL-4]."""

from __future__ import annotations

import sys

from cutile.held import Held

LIMIT = 100_000  # Python frames; the language's limit of nested calls needs some tens of thousands


def _raise() -> int:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, LIMIT))
    return before


deep_recursion = Held(_raise, sys.setrecursionlimit)  # raises Python's limit of recursion
