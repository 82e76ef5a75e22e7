"""The cache on disk: what it gives back, what it survives, what it removes."""

import multiprocessing
import os
import signal
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from cutile import settings
from cutile.gpu import cache
from cutile.gpu.cache import Cache, Entry, pack
from cutile.gpu.filelock import exclusive

KEY, OTHER = "ab" * 16, "cd" * 16
NOTED = {"kernel": "k", "target": "sm_90"}
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions and signals")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_warned", set())
    return Cache(tmp_path / "kept", 1 << 20)


def put(kept: Cache, key: str = KEY, release: str = "13.5.37", cubin: bytes = b"\x7fELF code") -> None:
    kept.put(key, release, cubin, f"text of {key}", NOTED)


def names(kept: Cache) -> set[str]:
    return {p.name for p in kept.folder.iterdir()} if kept.folder.is_dir() else set()


# ------------------------------------------------------------------ finding


def test_what_was_put_is_found(kept):
    assert kept.get(KEY, "13.5.37") is None
    put(kept)
    assert kept.get(KEY, "13.5.37") == b"\x7fELF code"
    assert kept.get(OTHER, "13.5.37") is None
    [entry] = kept.entries()
    assert (entry.key, entry.release, entry.parts()) == (KEY, "13.5.37", (b"\x7fELF code", f"text of {KEY}"))
    assert entry.metadata() | NOTED == entry.metadata()


def test_the_release_of_the_assembler_must_match(kept):
    put(kept, release="13.5.9", cubin=b"nine")
    put(kept, release="13.5.10", cubin=b"ten")
    assert kept.get(KEY, "13.5.9") == b"nine"
    assert kept.get(KEY, "13.4.1") is None


def test_without_an_assembler_the_newest_will_do(kept):
    assert kept.get(KEY, None) is None
    for release in ("13.5.10", "13.5.9", "13.4.99"):
        put(kept, release=release, cubin=release.encode())
    put(kept, OTHER, "14.0.0")
    assert kept.get(KEY, None) == b"13.5.10"
    damage(kept, KEY, "13.5.10", lambda data: data[:-1])
    assert kept.get(KEY, None) == b"13.5.9"


def test_any_bytes_come_back(tmp_path):
    for cubin in (b"", b"\n", b"\n\n{}\n", bytes(range(256)) * 9):
        for text in ("", "a\nb", "käse\n" * 99):
            (tmp_path / "x").write_bytes(pack(cubin, text, NOTED))
            assert Entry(tmp_path / "x", 0, 0).parts() == (cubin, text)


# ------------------------------------------------------------------ damage


def damage(kept: Cache, key: str, release: str, how) -> None:
    path = kept._path(key, release)
    path.write_bytes(how(path.read_bytes()))


@pytest.mark.parametrize("how", [
    lambda d: b"", lambda d: d[:10], lambda d: d[:-1], lambda d: d + b"x", lambda d: d[:-1] + bytes([d[-1] ^ 1]),
    lambda d: d.replace(b"cutile 1", b"cutile 2"), lambda d: b"\0" * len(d), lambda d: d.replace(b"sm_90", b"sm_80"),
])
def test_damaged_entries_are_as_if_not_there(kept, how):
    put(kept)
    damage(kept, KEY, "13.5.37", how)
    assert kept.get(KEY, "13.5.37") is None and kept.get(KEY, None) is None
    [entry] = kept.entries()
    entry.metadata()
    with pytest.raises(ValueError):
        entry.parts()
    put(kept)  # and are replaced
    assert kept.get(KEY, "13.5.37") == b"\x7fELF code"


def test_a_folder_that_is_a_file_warns_once(kept):
    kept.folder.write_text("in the way")
    assert kept.get(KEY, None) is None
    with pytest.warns(RuntimeWarning, match="cannot be kept in .*CUTILE_CACHE=0"):
        put(kept)
    assert_silent(lambda: put(kept))
    assert kept.get(KEY, "13.5.37") is None and list(kept.entries()) == []
    with kept.lock(KEY) as held:
        assert not held


def assert_silent(do) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        do()


@posix
def test_a_folder_that_can_only_be_read_serves(kept):
    put(kept)
    (kept.folder / "locks").mkdir()
    for folder in (kept.folder / "locks", *kept.folder.parents, kept.folder):
        if os.stat(folder).st_uid == os.geteuid() and str(folder).startswith(tempfile.gettempdir()):
            folder.chmod(0o755)
    kept.folder.chmod(0o555)
    (kept.folder / "locks").chmod(0o555)
    root = os.geteuid() == 0
    if root:  # who may write anywhere
        os.seteuid(65534)
    try:
        assert kept.get(KEY, "13.5.37") == b"\x7fELF code"
        with kept.lock(OTHER) as held:
            assert not held
        with pytest.warns(RuntimeWarning, match="Permission denied"):
            put(kept, OTHER)
    finally:
        if root:
            os.seteuid(0)
        kept.folder.chmod(0o755)
    assert [e.key for e in kept.entries()] == [KEY]


def test_time_of_use_that_cannot_be_noted(kept, monkeypatch):
    put(kept)
    monkeypatch.setattr(os, "utime", lambda *a: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    assert kept.get(KEY, "13.5.37") == b"\x7fELF code"


@pytest.mark.parametrize("step", ["write_bytes", "mkdir", "replace"])
def test_a_full_disk_leaves_nothing(kept, monkeypatch, step):
    put(kept, OTHER)
    before = names(kept)

    def full(path, *args, **kwargs):
        if step == "write_bytes":  # a part of it still fits
            with open(path, "wb") as f:
                f.write(args[0][:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "replace") if step == "replace" else (Path, step)), full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        put(kept)
    assert names(kept) == before
    assert kept.get(OTHER, "13.5.37") and kept.get(KEY, "13.5.37") is None


def test_an_unreadable_entry_warns_once(kept, monkeypatch):
    put(kept)
    monkeypatch.setattr(Path, "read_bytes", lambda p: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.warns(RuntimeWarning, match="Input/output error"):
        assert kept.get(KEY, "13.5.37") is None
    assert_silent(lambda: kept.get(KEY, "13.5.37"))


@pytest.mark.parametrize("there", [None, b"", b"13.5", b"\xff\n", b"two words\n"])
def test_a_word_is_asked_for_once(kept, there):
    if there is not None:
        kept.folder.mkdir()
        (kept.folder / "tool").write_bytes(there)
    asked = []
    for _ in range(2):
        assert kept.noted("tool", lambda: asked.append(1) or "13.5.37") == "13.5.37"
    assert len(asked) == 1 and list(kept.entries()) == []


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


def test_what_broken_off_writes_left_is_removed(kept):
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

spawn = multiprocessing.get_context("spawn")


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


def _hold(file: Path, held) -> None:
    with exclusive(file, 0):
        held.set()
        time.sleep(60)


@posix
def test_a_killed_process_leaves_no_lock(tmp_path):
    file, held = tmp_path / "lock", spawn.Event()
    holder = spawn.Process(target=_hold, args=(file, held))
    holder.start()
    assert held.wait(30)
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


# ------------------------------------------------------------------ settings


def test_the_folder(tmp_path):
    with settings.override(CACHE_DIR=tmp_path, CACHE_SIZE="3K", CACHE=True):
        assert (cache.current().folder, cache.current().limit) == (tmp_path, 3072)
    with settings.override(CACHE=False):
        assert cache.current() is None


@pytest.mark.parametrize("variables", [{}, {"XDG_CACHE_HOME": "/somewhere/else"}, {"XDG_CACHE_HOME": " "},
                                       {"HOME": "/home/of/another"}])
def test_the_usual_folder_is_that_of_platformdirs(monkeypatch, variables):
    import platformdirs

    for name in ("CUTILE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache.folder() == platformdirs.user_cache_path("cutile", appauthor=False)


@pytest.mark.parametrize("text, size", [("0", 0), ("17", 17), ("2k", 2048), ("500M", 500 << 20), ("2G", 2 << 30),
                                        (9, 9)])
def test_sizes(text, size):
    with settings.override(CACHE_SIZE=text):
        assert settings.get("CACHE_SIZE") == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1.5G", "2GB", True, None])
def test_sizes_that_are_refused(text):
    with pytest.raises(ValueError, match="CUTILE_CACHE_SIZE"), settings.override(CACHE_SIZE=text):
        pass
