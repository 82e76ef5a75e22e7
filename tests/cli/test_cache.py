"""python -m cutile cache."""

import json
import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cutile.cli.main import app
from cutile.gpu import cache
from cutile.gpu.cache import Cache

KEYS = ("aa11" + "0" * 28, "aa22" + "0" * 28)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("CUTILE_CACHE", raising=False)
    return Cache(tmp_path, 1 << 20)


@pytest.fixture
def two(kept):
    for age, key, name in ((100, KEYS[0], "softmax"), (3 * 86400, KEYS[1], "matmul")):
        kept.put(key, "13.5.37", b"code of " + name.encode(), f"kernel {name}\n", {
            "kernel": name, "symbol": f"{name}_Kt1", "target": "sm_90", "made": 0, "seconds": 1.25, "cubin": 2048})
        os.utime(kept._path(key, "13.5.37"), (time.time() - age,) * 2)
    return kept


def said(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["cache", *words])
    assert result.exit_code == code, result.output
    return result.output


def test_an_empty_cache(kept):
    assert said() == f"no GPU code is kept in {kept.folder}\n"
    assert said("clear") == "removed 0: 0 B\n"


def test_the_list(two):
    rows = [line for line in said().splitlines() if "sm_90" in line]
    assert ["softmax" in r for r in rows] == [True, False] and all("13.5.37" in r for r in rows)
    assert f"2 in {two.folder}: " in said() and "of 2.0 GiB" in said()


def test_json(two):
    """Also of a damaged entry, which says nothing of itself."""
    damaged = two._path("bb33" + "0" * 28, "13.5.37")
    damaged.write_bytes(b"nothing")
    os.utime(damaged, (1, 1))
    found = json.loads(said("--json"))
    assert found["folder"] == str(two.folder) and found["limit"] == 2 << 30
    assert [(e["key"], e["kernel"], e["target"], e["tileiras"]) for e in found["entries"]] == [
        (KEYS[0], "softmax", "sm_90", "13.5.37"), (KEYS[1], "matmul", "sm_90", "13.5.37"),
        ("bb33" + "0" * 28, None, None, "13.5.37")]


def test_selected_code_says_so(kept):
    kept.put(KEYS[0], "13.5.37", b"code", "kernel k\n", {
        "kernel": "k", "symbol": "k", "target": "sm_90", "made": 0, "seconds": 1.25, "cubin": 4,
        "selected": "occupancy=6"})
    assert "selected with occupancy=6\nmade " in said("show", KEYS[0])


def test_damaged_entries_are_listed_and_refused(two):
    two._path(KEYS[0], "13.5.37").write_bytes(b"junk")
    assert "damaged" in said()
    assert "cannot be read" in said("show", KEYS[0], code=1)


def test_showing(two, tmp_path):
    text = said("show", "aa11", "--cubin", str(tmp_path / "x.cubin"))
    assert text.startswith(f"{KEYS[0]}: softmax as softmax_Kt1 for sm_90, 2.0 KiB\nmade ")
    assert "in 1.25 s by tileiras 13.5.37" in text and text.endswith("\nkernel softmax\n")
    assert (tmp_path / "x.cubin").read_bytes() == b"code of softmax"


@pytest.mark.parametrize("key, problem", [("aa", "2 entries"), ("b", "there is no entry b")])
def test_keys_that_name_no_single_entry(two, key, problem):
    assert problem in said("show", key, code=1)


def test_clearing(two):
    assert said("clear", "--older", "2").startswith("removed 1: ")
    assert [e.key for e in two.entries()] == [KEYS[0]]
    assert said("clear").startswith("removed 1: ")


def test_switched_off(kept, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE", "0")
    assert "CUTILE_CACHE=0" in said(code=1)


# ------------------------------------------------------------------ entries may hold anything

WHOLE = {"kernel": "k", "symbol": "s", "target": "sm_90", "made": 0, "seconds": 1.0, "cubin": 4}
ODD = "00ff" * 8


def plant(kept: Cache, noted, text: bytes | None = None) -> None:
    """An entry with a correct checksum and any notes and text."""
    notes = noted if isinstance(noted, bytes) else json.dumps(noted).encode()
    body = notes + b"\n" + (zlib.compress(b"the text") if text is None else text) + b"code"
    kept.folder.mkdir(parents=True, exist_ok=True)
    kept._path(ODD, "13.5.37").write_bytes(cache._first_line(body, 4) + body)


@pytest.mark.parametrize("noted", [
    {}, [1, 2], 5, None, "k", b"", b"{", b"\xff\xfe", b"[" * 15_000, b'{"a":' * 3_000, {"kernel": 5}, {"kernel": ["k"]},
    {**WHOLE, "kernel": "sum[/b]"}, {**WHOLE, "kernel": "[red]"}, {**WHOLE, "kernel": "[link=x"},
    {**WHOLE, "target": "[/]"}, {**WHOLE, "symbol": "[/b]"}, {**WHOLE, "kernel": "\x1b[2J\n\r\t\0"},
    {**WHOLE, "kernel": "k" * 10_000}, {**WHOLE, "kernel": "\ud800"}, {**WHOLE, "made": "yesterday"},
    {**WHOLE, "made": 1e300}, {**WHOLE, "made": -1e14}, {**WHOLE, "cubin": 10**400}, {**WHOLE, "seconds": None},
    {**WHOLE, "seconds": float("inf")}, {**WHOLE, "made": float("nan")}], ids=lambda n: repr(n)[:40])
def test_odd_notes(two, noted):
    """Such entries do not disturb the list or the page of an entry, and are removed like others."""
    plant(two, noted)
    listed = said()
    assert "softmax" in listed and "matmul" in listed and ODD[:12] in listed and "3 in " in listed
    page = said("show", "00ff")
    assert ODD in page and "the text" in page
    assert not any(c in listed + page for c in "\x1b\0\r\t")
    assert said("clear").startswith("removed 3: ")


@pytest.mark.parametrize("text", [b"no zlib", b"", zlib.compress(b"x" * 1000)[:-20], b"\x78\x9c" + b"\0" * 50],
                         ids=["plain", "empty", "cut", "zeros"])
def test_texts_that_are_not_packed(two, text):
    plant(two, WHOLE, text)
    result = CliRunner().invoke(app, ["cache", "show", "00ff"])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert ODD in result.output


def test_a_long_text_is_cut(two):
    plant(two, WHOLE, zlib.compress(b"\0" * (100 << 20), 9))
    page = said("show", "00ff")
    assert len(page) < 20 << 20 and "\0" not in page and page.endswith("MiB: the rest is left out\n")


def test_texts_that_steer_the_terminal(two):
    plant(two, WHOLE, zlib.compress("a\x1b]0;title\x07\x9bm\nb\tc\nü".encode()))
    assert said("show", "00ff").endswith("a\ufffd]0;title\ufffd\ufffdm\nb\tc\nü")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_streams_of_few_characters(two, encoding):
    plant(two, {**WHOLE, "kernel": "größe_π"}, zlib.compress("größe_π".encode()))
    for words in ([], ["show", "00ff"]):
        done = subprocess.run([sys.executable, "-m", "cutile", "cache", *words], capture_output=True,
                              env={**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "120"})
        assert done.returncode == 0 and b"gr" in done.stdout and b"Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="POSIX kinds of files")
def test_files_of_other_kinds(two):
    for number, make in enumerate((os.mkdir, os.mkfifo, lambda p: os.symlink("nowhere", p),
                                   lambda p: os.symlink("/dev/zero", p))):
        make(two._path(f"{number:032x}", "13.5.37"))
    assert "2 in " in said() and "there is no entry 0000" in said("show", "0000", code=1)
    assert said("clear").startswith("removed 2: ") and len(os.listdir(two.folder)) == 4


def test_files_with_odd_times(two):
    for seconds in (0, 2**33, 2**40):
        try:
            os.utime(two._path(KEYS[0], "13.5.37"), (seconds, seconds))
        except OSError:  # a file system that stores times in few bits
            continue
        assert "softmax" in said() and "softmax" in said("show", KEYS[0])


def test_what_cannot_be_removed_is_said(two, monkeypatch):
    monkeypatch.setattr(Path, "unlink", lambda self, **kw: (_ for _ in ()).throw(PermissionError(13, "denied")))
    assert said("clear", code=1) == f"removed 0: 0 B\n2 in {two.folder} cannot be removed\n"


def test_code_that_cannot_be_written(two, tmp_path):
    for path in (tmp_path, tmp_path / "nowhere" / "x"):
        assert "cannot be written to" in said("show", "aa11", "--cubin", str(path), code=1)


def test_folders_that_are_none(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path / "file"))
    for words in ([], ["show", "a"], ["clear"]):
        assert "cannot be read: " in said(*words, code=1)
    monkeypatch.setenv("CUTILE_CACHE_DIR", "~nobody-of-that-name")
    assert "no home folder" in said(code=1)


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_a_folder_that_launches_do_not_trust(two):
    os.chmod(two.folder, 0o777)
    assert "launches take no code from" in said() and "softmax" in said()
    assert "removed 2" in said("clear")
