"""The cache on disk: what it gives back, and what it survives."""

import contextlib
import os
import socket
import tracemalloc
import warnings
from pathlib import Path

import pytest

from cutile.gpu import cache
from cutile.gpu.cache import Cache, Entry, pack
from tests.gpu.cache.entries import KEY, NOTED, OTHER, assert_silent, names, posix, put
from tests.other_users import another

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
