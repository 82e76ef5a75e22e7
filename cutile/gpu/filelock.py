"""A lock between processes and threads, kept by the operating system: it ends with the process that held it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if os.name == "nt":
    import msvcrt

    def _try(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)


@contextmanager
def exclusive(file: Path, patience: float) -> Iterator[bool]:
    """Hold the lock of a file, which is made; gives whether it is held.

    It is not where the file system has no locks, and where another holds it for longer than `patience` seconds: what
    it guards must be right without it, and only done twice.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        yield False
        return
    try:
        yield _acquire(fd, time.monotonic() + patience)
    finally:
        os.close(fd)  # which releases it


def _acquire(fd: int, deadline: float) -> bool:
    tries = 0
    while True:
        try:
            _try(fd)
            return True
        except (BlockingIOError, PermissionError):  # held by another; Windows says the latter
            if time.monotonic() >= deadline:
                return False
        except OSError:
            return False
        time.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
        tries += 1
