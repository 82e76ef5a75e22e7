"""The build of the C extensions: which of them an installation of the checkout compiles."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

setuptools = pytest.importorskip("setuptools", minversion="65")
SETUP = Path(__file__).parents[1] / "setup.py"


@pytest.fixture
def build(monkeypatch, tmp_path):
    """Builds the extension `package.made`: whether it was compiled, and what the build holds."""
    from setuptools.command.build_ext import build_ext

    monkeypatch.setattr(setuptools, "setup", lambda **given: None)
    monkeypatch.chdir(tmp_path)
    command, compiled = runpy.run_path(str(SETUP))["Build"], []
    monkeypatch.setattr(build_ext, "build_extension", lambda self, ext: compiled.append(ext.name))
    Path("package").mkdir()
    for name in ("made.c", "made.h"):
        Path("package", name).write_text("")
        os.utime(Path("package", name), (1, 1))

    def run(editable):
        extension = setuptools.Extension("package.made", ["package/made.c"], depends=["package/made.h"])
        made = command(setuptools.Distribution({"ext_modules": [extension]}))
        made.editable_mode, made.build_lib = editable, str(tmp_path / "build")
        made.ensure_finalized()
        assert made.parallel
        compiled.clear()
        made.build_extension(extension)
        there, build = made.get_ext_filename("package.made"), Path(made.get_ext_fullpath("package.made"))
        return bool(compiled), Path(there), build
    return run


def test_an_installation_of_the_checkout_takes_what_is_newer_than_its_sources(build):
    compiled, there, made = build(True)
    assert compiled and not made.exists()
    there.write_text("compiled before")
    compiled, _, made = build(True)
    assert not compiled and made.read_text() == "compiled before"
    os.utime("package/made.h", (2**32, 2**32))
    assert build(True)[0]


def test_wheels_are_compiled_anew(build):
    build(False)[1].write_text("compiled before")
    compiled, _, made = build(False)
    assert compiled and not made.exists()
