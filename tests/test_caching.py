"""python -m cutile cache."""

import os
import time

import pytest
from typer.testing import CliRunner

from cutile.__main__ import app
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
