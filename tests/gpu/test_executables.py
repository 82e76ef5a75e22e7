"""Programs are found in the folders that PATH names in full."""

import os

import pytest

from cutile.gpu.executables import absolute, on_path
from tests.gpu.tileir.test_tileiras import posix, script


@posix
@pytest.mark.parametrize("path", ["", ".", "./", "bin", ":", "/nowhere:", ".:/nowhere", "../here", None])
def test_the_current_folder_counts_for_nothing(tmp_path, monkeypatch, path):
    here = tmp_path / "here"
    for folder in (here, here / "bin"):
        script(folder, "")
    monkeypatch.chdir(here)
    assert on_path("tileiras", path) is None
    assert on_path("tileiras", f"{path}:{here}") == str(here / "tileiras")


@posix
def test_only_programs_count(tmp_path):
    (tmp_path / "folder" / "tileiras").mkdir(parents=True)
    script(tmp_path / "text", "").chmod(0o600)
    assert on_path("tileiras", os.pathsep.join(str(tmp_path / n) for n in ("folder", "text", "nowhere"))) is None


@posix
def test_names_in_full():
    assert absolute(".:/a::b:/c:") == "/a:/c" and absolute(None) == absolute("") == ""
