"""Running Python programs in child processes, under every Python that is installed with what they need."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).parents[3]
VERSIONS = ("python3.11", "python3.12", "python3.13", "python3.14")


def environment(**extra: str) -> dict[str, str]:
    """A child's environment: our package importable, none of our settings, no debugger's or coverage's hooks."""
    dropped = ("CUTILE_", "COVERAGE_", "COV_", "PYTHONBREAKPOINT", "PYDEVD")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    return {**kept, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            "PYTHONDONTWRITEBYTECODE": "1", "TERM": "dumb", "NO_COLOR": "1", "PYTHON_COLORS": "0", **extra}


def run(python: str, *args: str | Path, stdin: str = "", cwd: Path | None = None, ok: bool = True,
        **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; the test fails if it does, unless `ok` is False."""
    done = subprocess.run([python, *map(str, args)], input=stdin, text=True, capture_output=True, timeout=PATIENCE,
                          cwd=cwd, env=environment(**env))
    assert not ok or done.returncode == 0, done.stdout + done.stderr
    return done


def others() -> list[str]:
    """Further Pythons on the path, one per version that we support."""
    found = {name: shutil.which(name) for name in VERSIONS if name != f"python3.{sys.version_info.minor}"}
    return [path for path in found.values() if path]


@functools.cache
def lacks(python: str, module: str | None = None) -> str | None:
    """Why a Python cannot run these tests, or None. It needs the package's dependencies and `module`."""
    needed = ["numpy", "ml_dtypes", "typing_extensions", *([module] if module else [])]
    done = subprocess.run([python, "-c", f"import {', '.join(needed)}"], capture_output=True, text=True,
                          env=environment())
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def every_python(module: str | None = None):
    """Parametrise a test with `python`: this one, and each other on the path that can import what is needed."""
    params = []
    for python in (sys.executable, *others()):
        why = lacks(python, module)
        marks = [pytest.mark.skip(f"{python}: {why}")] if why else []
        params.append(pytest.param(python, id=_version(python), marks=marks))
    return pytest.mark.parametrize("python", params)


def _version(python: str) -> str:
    return f"3.{sys.version_info.minor}" if python == sys.executable else Path(python).name.removeprefix("python")
