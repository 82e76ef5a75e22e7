"""The cache on disk: what it gives back, what it survives, what it removes."""

import contextlib
import multiprocessing
import os
import signal
import socket
import tempfile
import time
import tracemalloc
import warnings
from pathlib import Path

import pytest

from cutile import settings
from cutile.gpu import cache
from cutile.gpu.cache import Cache, Entry, pack
from tests.other_users import another, give_away
from tests.patience import PATIENCE

KEY, OTHER = "ab" * 16, "cd" * 16
NOTED = {"kernel": "k", "target": "sm_90"}
spawn = multiprocessing.get_context("spawn")
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
def test_a_folder_that_can_only_be_read_serves(kept, tmp_path, monkeypatch):
    put(kept)
    with kept.lock(KEY):
        pass
    for path in (tmp_path, kept._path(KEY, "13.5.37")):
        path.chmod(0o755)
    for folder in (kept.folder, kept.folder / "locks"):
        folder.chmod(0o555)
    monkeypatch.chdir(tmp_path)
    kept.folder = Path(kept.folder.name)
    with another() if os.geteuid() == 0 else contextlib.nullcontext():  # root may write anywhere
        assert kept.get(KEY, "13.5.37") == b"\x7fELF code"
        with kept.lock(OTHER) as held:
            assert not held
        with pytest.warns(RuntimeWarning, match="Permission denied"):
            put(kept, OTHER)
    kept.folder.chmod(0o755)
    assert [e.key for e in kept.entries()] == [KEY]


def test_time_of_use_that_cannot_be_noted(kept, monkeypatch):
    put(kept)
    monkeypatch.setattr(os, "utime", lambda *a: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    assert kept.get(KEY, "13.5.37") == b"\x7fELF code"


@pytest.mark.parametrize("step", ["write", "mkdir", "replace"])
def test_a_full_disk_leaves_nothing(kept, monkeypatch, step):
    put(kept, OTHER)
    before = names(kept)

    def full(path, *args, **kwargs):
        if step == "write":  # a part of it still fits
            os.write(path, b"a part")
        raise OSError(28, "No space left on device")

    steps = {"write": (cache, "lock_open"), "mkdir": (Path, "mkdir"), "replace": (os, "replace")}
    monkeypatch.setattr(*steps[step], full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        put(kept)
    assert names(kept) == before
    assert kept.get(OTHER, "13.5.37") and kept.get(KEY, "13.5.37") is None


def test_an_unreadable_entry_warns_once(kept, monkeypatch):
    put(kept)
    monkeypatch.setattr(cache, "_read", lambda *a: (_ for _ in ()).throw(OSError(5, "Input/output error")))
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


# ------------------------------------------------------------------ what is no entry, and what is another's

ODD = {
    "folder": lambda p: p.mkdir(), "full folder": lambda p: (p.mkdir(), (p / "x").write_text("mine")),
    "pipe": os.mkfifo, "socket": lambda p: _socket(p), "dead link": lambda p: p.symlink_to(p.parent / "nowhere"),
    "link": lambda p: p.symlink_to(p.parent / "letter.txt"), "loop": lambda p: p.symlink_to(p),
} if os.name == "posix" else {"folder": lambda p: p.mkdir()}


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_what_is_no_file_is_no_entry(kept, make):
    """It is neither read nor waited for, listed nor removed, and what stands beside it is as ever."""
    kept.folder.mkdir()
    (kept.folder / "letter.txt").write_text("mine")
    put(kept, OTHER)
    paths = [kept._path(KEY, "13.5.37"), kept.folder / ".tmp-1-1-1", kept.folder / "tool"]
    for path in paths:
        make(path)
        os.utime(path, (1, 1), follow_symlinks=False)
    assert kept.get(KEY, "13.5.37") is None and kept.get(KEY, None) is None
    assert [e.key for e in kept.entries()] == [OTHER]
    assert Entry(paths[0], 0, 0).metadata() == {}
    with pytest.raises((ValueError, OSError)):
        Entry(paths[0], 0, 0).parts()
    kept.limit = 0
    kept.shrink()
    assert kept.clear() == [] and list(kept.entries()) == []
    assert all(os.path.lexists(p) for p in paths) and (kept.folder / "letter.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["letter.cutile", "00.13.5.cutile", "g" * 32 + ".13.5.cutile", "0" * 32 + ".cutile",
                                  f"{KEY}.13.5.cutile.bak", f"{KEY}.13 5.cutile", f"{KEY.upper()}.13.5.cutile",
                                  ".tmp-letter.txt", ".tmp-1-1", ".tmp-1-1-1.txt", ".tmp-a-1-1", "x.tmp-1-1-1", "tool"])
def test_files_of_other_names_are_left_alone(kept, name):
    put(kept, OTHER)
    other = kept.folder / name
    other.write_text("mine")
    os.utime(other, (1, 1))
    kept.limit = 0
    kept.shrink()
    kept.clear()
    assert other.read_text() == "mine" and list(kept.entries()) == []


@posix
@pytest.mark.parametrize("how", [lambda p: os.chmod(p, 0), lambda p: p.write_bytes(b""),
                                 lambda p: os.truncate(p, 1 << 40)], ids=["unreadable", "empty", "1 TiB"])
def test_files_that_are_no_entries_inside(kept, how, monkeypatch):
    monkeypatch.setattr(cache, "_LARGEST", 1 << 20)
    put(kept)
    how(kept._path(KEY, "13.5.37"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = kept.get(KEY, "13.5.37")
    assert code is None or os.geteuid() == 0
    put(kept)
    assert kept.get(KEY, "13.5.37") == b"\x7fELF code"


@pytest.mark.parametrize("noted", [b"", b"[" * 10_000, b'{"kernel":' * 2000, b"[1]", b"null", b'"k"', b"{", b"\xff",
                                   b'{"kernel": 5, "target": null, "made": "x", "seconds": [1], "cubin": true}',
                                   b'{"made": 1e400, "seconds": NaN, "cubin": 1' + b"0" * 400 + b"}",
                                   b'{"cubin": ' + b"9" * 5000 + b"}"], ids=lambda b: b[:12])
def test_notes_of_other_types_are_as_if_not_there(tmp_path, noted):
    (tmp_path / "x").write_bytes(b"cutile 1 x 4\n" + noted + b"\n")
    assert Entry(tmp_path / "x", 0, 0).metadata() == {}


def test_little_of_a_long_text_is_unpacked(tmp_path):
    (tmp_path / "x").write_bytes(pack(b"code", "a" * (200 << 20), NOTED))
    tracemalloc.start()
    try:
        code, text = Entry(tmp_path / "x", 0, 0).parts()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert code == b"code" and text.startswith("aaa") and "the rest is left out" in text[-100:]
    assert peak < 50 << 20


def test_a_text_that_is_not_packed(kept):
    data = pack(b"code", "text", NOTED)
    head, _, body = data.partition(b"\n")
    body = body[:body.index(b"\n") + 1] + b"no zlib" + b"code"
    kept.folder.mkdir()
    path = kept._path(KEY, "1")
    path.write_bytes(cache._first_line(body, 4) + body)
    assert kept.get(KEY, "1") == b"code"
    with pytest.raises(ValueError, match="damaged"):
        Entry(path, 0, 0).parts()


# ------------------------------------------------------------------ trust

@posix
@pytest.mark.parametrize(("mode", "named", "problem"), [
    (0o700, True, None), (0o755, True, None), (0o755, False, None), (0o700, False, None), (0o775, True, None),
    (0o777, True, "every user"), (0o777, False, "every user"), (0o1777, True, "every user"),
    (0o702, True, "every user"), (0o775, False, "its group"), (0o720, False, "its group")])
def test_folders_that_others_may_write(tmp_path, monkeypatch, mode, named, problem):
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.delenv("CUTILE_CACHE", raising=False)
    folder = tmp_path / "cutile"
    folder.mkdir()
    shared_group = os.stat(folder).st_uid + 1
    try:
        os.chown(folder, -1, shared_group)
    except OSError:
        shared_group = os.stat(folder).st_gid
    os.chmod(folder, mode)
    if problem == "its group" and shared_group == os.stat(folder).st_uid:
        pytest.skip("this user has no other group")
    for name in ("CUTILE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(*(("CUTILE_CACHE_DIR", str(folder)) if named else ("XDG_CACHE_HOME", str(tmp_path))))
    if problem is None:
        assert cache.current().folder == folder
        return
    with pytest.warns(RuntimeWarning, match=f"not taken from .*{problem}.*compiled again in each process"):
        assert cache.current() is None
    assert_silent(lambda: cache.current())  # once
    assert cache.current() is None


@posix
def test_a_group_of_one_user_is_no_group(tmp_path, monkeypatch):
    monkeypatch.delenv("CUTILE_CACHE_DIR", raising=False)
    monkeypatch.setattr(os, "stat", lambda p: os.stat_result((0o40775, 0, 0, 1, os.geteuid(), os.geteuid(), *[0] * 4)))
    assert cache.distrusted(tmp_path) is None


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777])
def test_a_folder_of_another_user(tmp_path, monkeypatch, mode):
    monkeypatch.setattr(cache, "_warned", set())
    folder = tmp_path / "kept"
    put(Cache(folder, 1 << 20))
    os.chmod(folder, mode)
    give_away(folder)
    with settings.override(CACHE_DIR=folder, CACHE=True), pytest.warns(RuntimeWarning, match="owned by another user"):
        assert cache.current() is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="looks at a folder of root")
def test_a_folder_of_root_serves_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with another():
        assert cache.distrusted(Path()) is None


@posix
@pytest.mark.parametrize("mask", [0, 0o002, 0o022, 0o077])
def test_folders_that_are_made_here_are_trusted(tmp_path, monkeypatch, mask):
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "usual"))
    monkeypatch.delenv("CUTILE_CACHE_DIR", raising=False)
    monkeypatch.delenv("CUTILE_CACHE", raising=False)
    before = os.umask(mask)
    try:
        usual = cache.current()
        with settings.override(CACHE_DIR=tmp_path / "named"):
            named = cache.current()
        for kept in (usual, named):
            put(kept)
            with kept.lock(KEY) as held:
                assert held
        assert cache.current() is not None and cache.distrusted(named.folder) is None
    finally:
        os.umask(before)
    assert os.stat(usual.folder).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("link", ["file", "folder"])
@posix
def test_locks_are_not_made_through_links(kept, tmp_path, link):
    kept.folder.mkdir()
    victim = tmp_path / "victim"
    if link == "file":
        (kept.folder / "locks").mkdir()
        (kept.folder / "locks" / KEY[:2]).symlink_to(victim)
    else:
        victim.mkdir()
        (kept.folder / "locks").symlink_to(victim)
    with kept.lock(KEY) as held:
        assert not held
    assert not victim.exists() or os.listdir(victim) == []


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


# ------------------------------------------------------------------ settings


def test_the_folder(tmp_path):
    with settings.override(CACHE_DIR=tmp_path, CACHE_SIZE="3K", CACHE=True):
        assert (cache.current().folder, cache.current().limit) == (tmp_path, 3072)
    with settings.override(CACHE=False):
        assert cache.current() is None


@posix
def test_homes_in_the_name_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name, found in (("~", tmp_path), ("~/kept", tmp_path / "kept"), ("./~/kept", Path("~/kept")), ("a~", "a~")):
        monkeypatch.setenv("CUTILE_CACHE_DIR", name)
        assert cache.folder() == Path(found)
    monkeypatch.setenv("CUTILE_CACHE_DIR", "~nobody-of-that-name/kept")
    with pytest.raises(ValueError, match="CUTILE_CACHE_DIR is .*no home folder"):
        cache.folder()
    monkeypatch.delenv("CUTILE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "~/other")
    assert cache.folder() == tmp_path / "other" / "cutile"


@posix
def test_a_user_without_a_home(tmp_path, monkeypatch):
    for name in ("CUTILE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda p: p)
    assert cache.folder() == Path(tempfile.gettempdir(), f"cache-{os.getuid()}", "cutile")


@pytest.mark.parametrize("variables", [{}, {"XDG_CACHE_HOME": "/somewhere/else"}, {"XDG_CACHE_HOME": " "},
                                       {"HOME": "/home/of/another"}])
def test_the_usual_folder_is_that_of_platformdirs(monkeypatch, variables):
    import platformdirs

    for name in ("CUTILE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/of/one"} | variables).items():  # without one the two differ
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
