"""A fork waits until no other thread is importing a module of cutile.

Modules are loaded where they are first needed, so also during launches. A child that is forked meanwhile has half a
module, and a lock of it that no thread will ever release: its own import would wait for ever.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from typing import Any

PATIENCE = 10.0  # seconds after which the fork goes on: it may be what the import waits for

_bootstrap: Any = getattr(importlib, "_bootstrap", None)


def _elsewhere() -> list[str]:
    """The modules of cutile that other threads are importing."""
    me = threading.get_ident()
    locks = list(getattr(_bootstrap, "_module_locks", {}).items())
    return [name for name, reference in locks
            if name.partition(".")[0] == "cutile" and getattr(reference(), "owner", None) not in (None, me)]


def _before() -> None:
    end = time.monotonic() + PATIENCE
    while _elsewhere() and time.monotonic() < end:
        time.sleep(0.001)


def _in_child() -> None:
    """Forget what threads had begun between the end of the wait and the fork: the child imports it anew."""
    for name in _elsewhere():
        _bootstrap._module_locks.pop(name, None)
        sys.modules.pop(name, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_child=_in_child)
