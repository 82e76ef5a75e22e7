"""Room for deep recursion: inlined calls nest up to the language's limit, deeper than Python's own allows [CALL-4]."""

from __future__ import annotations

import sys
import threading

LIMIT = 100_000  # Python frames; the language's limit of nested calls needs some tens of thousands

_lock = threading.Lock()
_users = 0
_before = 0


class deep_recursion:  # used like a function
    """Raise Python's recursion limit for a while: `with deep_recursion():`.

    The limit is the whole process's, so the last of the threads inside restores what the first one found.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        global _users, _before
        with _lock:
            if _users == 0:
                _before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(_before, LIMIT))
            _users += 1

    def __exit__(self, *_: object) -> None:
        global _users
        with _lock:
            _users -= 1
            if _users == 0:
                sys.setrecursionlimit(_before)
