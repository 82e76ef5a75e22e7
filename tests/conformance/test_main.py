"""python -m conformance: which files of the suite run."""

from __future__ import annotations

import os

import pytest

from conformance.__main__ import HERE, arguments

FOLDERS = {"checkout": HERE.parent, "suite": HERE, "another": HERE.parent / "docs"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_are_names_or_paths(folder, monkeypatch):
    """Without any, the whole suite runs, and only then."""
    monkeypatch.chdir(FOLDERS[folder])
    path, test = HERE / "test_casts.py", "::test_narrowing"
    for given in ("test_casts.py", os.path.relpath(path), str(path)):
        assert arguments(["-q", given + test])[4:] == ["-q", f"{path}{test}"]
    assert arguments(["-q", "-k", "RZ"])[4:] == ["-q", "-k", "RZ", str(HERE)]
    assert arguments(["test_nothing.py"])[4:] == ["test_nothing.py", str(HERE)]
