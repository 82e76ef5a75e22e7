"""A new folder for each run of the assembler, which holds all its files.

It is removed afterwards. If the process is killed, the next process that runs the assembler removes it. The name,
owner and mode identify such a folder. It is abandoned if no process holds its lock; a lock ends with its process.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cutile.gpu.file_lock import lock_open, try_hold

_PREFIX = "cutile-tileiras-"
_NAME = re.compile(_PREFIX + "[a-z0-9_]{8}")
_ABANDONED = 3600  # seconds after which a folder is taken for abandoned on systems without such locks

_looked_through: set[str] = set()


@contextmanager
def work_folder() -> Iterator[Path]:
    """A new folder, which is removed at the end of the `with` block."""
    parent = tempfile.gettempdir()
    if parent not in _looked_through:  # once in each process
        _looked_through.add(parent)
        _clear_away(parent)
    folder, fd = _new_folder()
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if fd is not None:
            os.close(fd)


def _new_folder() -> tuple[str, int | None]:
    """A new folder, and the file descriptor that holds its lock; None on Windows, where folders cannot be locked."""
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        if os.name == "nt":
            return folder, None
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:  # another process removed it before it was locked
            continue
        if lock_open(fd) is not False and os.path.exists(folder):
            return folder, fd
        os.close(fd)


def _clear_away(parent: str) -> None:
    try:
        found = [f for f in os.scandir(parent) if _NAME.fullmatch(f.name)]
    except OSError:
        return
    for f in found:
        try:
            _remove_if_abandoned(f)
        except OSError:  # another process removed it
            continue


def _remove_if_abandoned(f: os.DirEntry) -> None:
    known = f.stat(follow_symlinks=False)
    ours = not hasattr(os, "geteuid") or known.st_uid == os.geteuid() and stat.S_IMODE(known.st_mode) == 0o700
    if not stat.S_ISDIR(known.st_mode) or not ours:
        return
    with try_hold(Path(f.path)) as held:
        if held or held is None and time.time() - known.st_mtime > _ABANDONED:
            shutil.rmtree(f.path, ignore_errors=True)
