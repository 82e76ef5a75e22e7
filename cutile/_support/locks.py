"""Locks that a forked process can use."""

from __future__ import annotations

import os
import threading


class Lock:
    """A lock among the threads of a process. In a forked child it is a new one: who held it may not be there.

    Used as `with lock.here():` and in no other way, so that no interrupt comes between the lock and who lets go of it.
    """

    __slots__ = ("_own",)

    def __init__(self) -> None:
        self._own = os.getpid(), threading.Lock()

    def here(self) -> threading.Lock:
        process, lock = self._own
        if process != os.getpid():
            self._own = _, lock = os.getpid(), threading.Lock()
        return lock
