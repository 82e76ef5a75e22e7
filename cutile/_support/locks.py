"""Locks that survive a fork of the process."""

from __future__ import annotations

import os
import threading


class Lock:
    """A lock among the threads of a process. A forked child gets a new lock, since the thread that holds the old one
    may not exist there.

    Use it as `with lock.here():` only, so that no interrupt can come between acquiring the lock and releasing it.
    """

    __slots__ = ("_own",)

    def __init__(self) -> None:
        self._own = os.getpid(), threading.Lock()

    def here(self) -> threading.Lock:
        """The lock of this process."""
        process, lock = self._own
        if process != os.getpid():
            self._own = _, lock = os.getpid(), threading.Lock()
        return lock
