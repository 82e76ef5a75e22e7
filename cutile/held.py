"""Settings of the whole process that threads change for a while, together."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


class Held:
    """Used as `with setting():`. The first thread to come in changes the setting, the last one to leave restores it.

    `change` gives what `restore` needs to know.
    """

    __slots__ = ("_change", "_restore", "_lock", "_users", "_before")

    def __init__(self, change: Callable[[], Any], restore: Callable[[Any], None]):
        self._change, self._restore = change, restore
        self._lock = threading.Lock()
        self._users, self._before = 0, None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._alone)

    def _alone(self) -> None:
        """After a fork: threads that had come in do not leave here."""
        self._lock = threading.Lock()
        if self._users:
            self._users = 0
            self._restore(self._before)

    def __call__(self) -> Held:
        return self

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._before = self._change()
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users = max(self._users - 1, 0)  # 0 already, if this thread forked in here
            if self._users == 0:
                self._restore(self._before)
