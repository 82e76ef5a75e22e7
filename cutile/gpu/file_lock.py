"""A lock between processes and threads that the operating system keeps: it ends when its process ends."""

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
    """Hold the lock of a file within the `with` block; yields whether it is held. The file is created.

    It is not held if the file system has no locks, or if another process holds it for longer than `patience` seconds.
    Without the lock, work may be done twice, but must still be right.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fd = _opened(file)
    except OSError:
        yield False
        return
    try:
        yield _acquire(fd, time.monotonic() + patience)
    finally:
        os.close(fd)  # which releases it


def _opened(file: Path) -> int:
    """The file, created if need be. OSError if the file or its folder is a link."""
    how = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if os.open not in os.supports_dir_fd:
        return os.open(file, how, 0o666)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        return os.open(file.name, how, 0o666, dir_fd=folder)
    finally:
        os.close(folder)


def lock_open(fd: int) -> bool | None:
    """Lock an open file or folder until it is closed; False if another process holds it, None without locks."""
    try:
        _try(fd)
        return True
    except BlockingIOError:
        return False
    except OSError:
        return None


@contextmanager
def try_hold(path: Path) -> Iterator[bool | None]:
    """Hold the lock of a file or folder within the `with` block, unless another process holds it. Yields whether it is
    held; None if that cannot be told.
    """
    if os.name == "nt":
        yield None
        return
    try:
        fd = os.open(path, (os.O_RDONLY if path.is_dir() else os.O_RDWR) | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield None
        return
    try:
        yield lock_open(fd)
    finally:
        os.close(fd)


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
