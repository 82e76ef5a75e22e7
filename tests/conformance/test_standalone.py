"""The suite without cutile: its package has all files, and it runs."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cutile
from conformance import __main__ as command
from conformance.__main__ import arguments
from conformance.harness import absent
from conformance.harness.absent import Absent, Filled, Lacks, NoSuchError, filled, mentioned, running

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "conformance"


def test_the_package_has_all_files():
    """Folders and patterns in pyproject.toml cover every file that a run reads."""
    config = tomllib.loads((SUITE / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {"conformance", *(f"conformance.{p.parent.name}" for p in SUITE.glob("*/__init__.py"))}
    assert set(config["packages"]) == folders
    data = {p.relative_to(SUITE).as_posix() for folder in ("spec", "known") for p in (SUITE / folder).iterdir()}
    patterns = config["package-data"]["conformance"]
    assert not [f for f in {*data, "suite.ini"} if not any(fnmatch.fnmatch(f, p) for p in patterns)]


BLOCKED = """
import importlib, pathlib, sys
sys.modules["cutile"] = None
folder = pathlib.Path(sys.argv[1])
for path in sorted(folder.rglob("*.py")):
    name = ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
    if "build" in path.relative_to(folder).parts:
        continue
    loading_one = [f"from conformance.harness.{m} " for m in ("api", "dtype_names", "type_probes", "code_kernels")]
    if any(line.startswith(tuple(loading_one)) for line in path.read_text().splitlines()):
        continue
    try:
        importlib.import_module(name)
    except (Exception, SystemExit) as e:
        print(name, e)
"""


def test_nothing_imports_cutile_when_it_is_loaded():
    """Except the modules that load an implementation, and those that export cutile's kernels."""
    done = subprocess.run([sys.executable, "-c", BLOCKED, str(SUITE)], capture_output=True, text=True, cwd=ROOT)
    assert not done.stderr
    asked = {"conformance.harness.api", *(f"conformance.referee.{m}" for m in ("packing", "replay"))}
    assert {line.split()[0] for line in done.stdout.splitlines()} <= asked


def test_the_toy_runs_where_there_is_no_cutile(tmp_path):
    (tmp_path / "cutile.py").write_text("raise ImportError('there is no cutile here')\n")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.path.insert(0, {str(tmp_path)!r});"
         "from conformance.__main__ import main; raise SystemExit(main())", "test_load.py::test_an_axis_of_stride_zero",
         "--impl", "tests.conformance.toy.adapter:Toy"], capture_output=True, text=True, cwd=tmp_path)
    assert "1 failed" in done.stdout and "ImportError" not in done.stdout + done.stderr


def test_arguments():
    given = ["test_casts.py", "-k", "RZ", "test_load.py::test_orders[a]"]
    assert arguments(given)[4:] == [str(SUITE / "test_casts.py"), "-k", "RZ", f"{SUITE}/test_load.py::test_orders[a]"]
    assert arguments(["--report", "found"])[4:] == ["--report", "found", str(SUITE)]


def test_help_names_the_options_of_the_suite(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["conformance", "--help"])
    assert command.main() == 0
    said = capsys.readouterr().out
    own = re.findall(r'addoption\("(--[a-z]+)"', (SUITE / "conftest.py").read_text())
    assert len(own) >= 3 and all(f"  {o} " in said for o in own) and "pytest --help" in said


# ------------------------------------------------------------------ parts of the API that are absent


def test_every_name_of_the_api_that_tests_use_is_listed():
    used = {n for p in SUITE.glob("*.py") for n in re.findall(r"\bct\.([A-Za-z_]\w*)", p.read_text())}
    listed = set(absent.NAMES)
    assert not {n for n in used - listed if hasattr(cutile, n)}
    assert not {n for n in listed if not hasattr(cutile, n)}


def test_a_whole_api_is_left_alone():
    assert filled(cutile) == (cutile, frozenset())


@pytest.fixture
def partial():
    import types

    module = types.ModuleType("partial")
    module.load = print
    return module


def test_a_part_of_it(partial):
    ct, lacking = filled(partial)
    assert isinstance(ct, Filled) and ct.load is print and not hasattr(partial, "max") and "max" in lacking
    assert ct.TileTypeError is NoSuchError and "TileTypeError" not in lacking
    with pytest.raises(AttributeError):
        _ = ct.nothing

    assert isinstance(ct.PaddingMode.ZERO, Absent) and isinstance(ct.Constant[int], Absent)  # while tests are collected
    with running():
        for use in (lambda: ct.max(1, 2), lambda: ct.PaddingMode.ZERO, lambda: ct.Constant[int], lambda: [*ct.Slice]):
            with pytest.raises(Lacks, match=r"ct\.\w+"):
                use()
    assert str(ct.max) == "<ct.max, which is absent>"


def test_what_functions_mention(partial):
    ct, lacking = filled(partial)

    def f(x):
        def inner():
            return ct.exp(ct.load(x))

        return inner, [ct.log for _ in x], x.sin, max(x)

    assert mentioned([f], lacking) == {"exp", "log"}
    assert mentioned([ct.cos, 1, lambda: ct.tan], lacking) == {"cos", "tan"}
