"""Locks on files: who holds them, that they end with their process, and what happens where there are none."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from cutile.gpu import file_lock
from cutile.gpu.file_lock import exclusive, lock_open, try_hold
from tests.patience import PATIENCE

spawn = multiprocessing.get_context("spawn")
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions and signals")


def _hold(file: Path, held) -> None:
    with exclusive(file, 0):
        held.set()
        time.sleep(60)


@posix
def test_a_killed_process_leaves_no_lock(tmp_path):
    file, held = tmp_path / "lock", spawn.Event()
    holder = spawn.Process(target=_hold, args=(file, held))
    holder.start()
    assert held.wait(PATIENCE)
    with exclusive(file, 0) as mine:
        assert not mine
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    with exclusive(file, 5) as mine:
        assert mine


def test_locks_exclude_threads_too(tmp_path):
    with exclusive(tmp_path / "lock", 0) as first, exclusive(tmp_path / "lock", 0.01) as second:
        assert first and not second
    with exclusive(tmp_path / "lock", 0) as again:
        assert again


def test_a_lock_makes_its_folder_and_is_not_held_where_it_cannot(tmp_path):
    with exclusive(tmp_path / "folder" / "lock", 0) as held:
        assert held
    (tmp_path / "file").write_text("")
    with exclusive(tmp_path / "file" / "lock", 0) as held:
        assert not held


def test_where_the_file_system_has_no_locks_nothing_is_held(tmp_path, monkeypatch):
    def refuse(fd: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(file_lock, "_try", refuse)
    with exclusive(tmp_path / "lock", PATIENCE) as held:  # at once: it does not wait
        assert not held
    with open(tmp_path / "lock") as f:
        assert lock_open(f.fileno()) is None


@posix
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_file_can_be_locked_until_somebody_holds_it(tmp_path, kind):
    path = tmp_path / "it"
    path.mkdir() if kind == "folder" else path.write_text("")
    fd = os.open(path, os.O_RDONLY)
    try:
        with try_hold(path) as locked:
            assert locked
            assert lock_open(fd) is False  # nobody gets it meanwhile
        assert lock_open(fd)
        with try_hold(path) as locked:
            assert locked is False
    finally:
        os.close(fd)
    with try_hold(tmp_path / "missing") as locked:
        assert locked is None
