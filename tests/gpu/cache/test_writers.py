"""Writes of the cache that broke off, that are many, or that many processes make; what it removes."""

import contextlib
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from cutile.gpu import cache
from cutile.gpu.cache import Cache
from tests.gpu.cache.entries import KEY, OTHER, names, posix, put
from tests.other_users import give_away
from tests.patience import PATIENCE

spawn = multiprocessing.get_context("spawn")


# ------------------------------------------------------------------ what broken-off writes leave


@posix
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_what_a_killed_process_was_writing(kept, sent):
    """The next that keeps something removes it; while it is written nobody does."""
    writing = spawn.Event()
    writer = spawn.Process(target=_write_slowly, args=(kept.folder, writing))
    writer.start()
    assert writing.wait(PATIENCE)
    [half] = [n for n in names(kept) if n.startswith(".tmp-")]
    os.utime(kept.folder / half, (1, 1))
    put(kept, OTHER)
    assert half in names(kept)
    os.kill(writer.pid, sent)
    writer.join()
    put(kept, OTHER)
    assert half not in names(kept) and kept.get(OTHER, "13.5.37")


def _write_slowly(folder: Path, writing) -> None:
    os.replace = lambda *a: (writing.set(), time.sleep(60))
    put(Cache(folder, 1 << 20))


def test_what_others_are_writing(kept):
    put(kept)
    other = kept.folder / ".tmp-1-1-1"
    other.write_text("half")
    os.utime(other, (1, 1))
    give_away(other)
    kept.shrink()
    kept.clear()
    assert other.exists()


def test_where_there_are_no_locks_age_decides(kept, monkeypatch):
    monkeypatch.setattr(cache, "try_hold", lambda path: contextlib.nullcontext(None))
    put(kept)
    old, new = kept.folder / ".tmp-1-1-1", kept.folder / ".tmp-2-2-2"
    for file, age in ((old, 7200), (new, 600)):
        file.write_text("half")
        os.utime(file, (time.time() - age,) * 2)
    kept.clear()
    assert not old.exists() and new.exists()


# ------------------------------------------------------------------ size


def test_what_was_not_used_for_longest_goes_first(kept):
    for k in range(5):
        put(kept, f"{k:032x}", cubin=os.urandom(1000))
        os.utime(kept._path(f"{k:032x}", "13.5.37"), (k, k))
    size = next(kept.entries()).size
    assert kept.get(f"{0:032x}", "13.5.37") is not None  # used now
    kept.limit = 3 * size + size // 2
    put(kept, OTHER, cubin=os.urandom(1000))
    assert {e.key for e in kept.entries()} == {f"{0:032x}", f"{4:032x}", OTHER}
    assert sum(e.size for e in kept.entries()) <= kept.limit


def test_an_entry_that_is_larger_than_the_limit_is_not_kept(kept):
    kept.limit = 10
    put(kept)
    assert list(kept.entries()) == []


def test_what_broken_off_writes_left_is_removed(kept, monkeypatch):
    monkeypatch.setattr(cache, "_SETTLED", 600)
    put(kept)
    old, new = kept.folder / ".tmp-1-1-1", kept.folder / ".tmp-2-2-2"
    for file in (old, new):
        file.write_text("half")
    os.utime(old, (1, 1))
    put(kept, OTHER)
    assert not old.exists() and new.exists()


def test_clearing(kept):
    put(kept)
    put(kept, OTHER)
    os.utime(kept._path(OTHER, "13.5.37"), (time.time() - 100,) * 2)
    assert [e.key for e in kept.clear(older=50)] == [OTHER]
    assert [e.key for e in kept.clear()] == [KEY]
    assert list(kept.entries()) == []


# ------------------------------------------------------------------ processes

def _write_often(folder: Path, byte: int) -> None:
    kept = Cache(folder, 1 << 30)
    for _ in range(40):
        put(kept, cubin=bytes([byte]) * 200_000)


def test_a_reader_sees_whole_entries_while_two_processes_write(kept):
    writers = [spawn.Process(target=_write_often, args=(kept.folder, b)) for b in (1, 2)]
    for w in writers:
        w.start()
    seen = set()
    while any(w.is_alive() for w in writers):
        cubin = kept.get(KEY, "13.5.37")
        if cubin is not None:
            assert len(cubin) == 200_000 and len(set(cubin)) == 1
            seen.add(cubin[0])
    assert [w.exitcode for w in writers] == [0, 0] and seen <= {1, 2}
    assert {n for n in names(kept) if not n.endswith(cache.SUFFIX)} == set()
