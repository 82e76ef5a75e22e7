"""`pytest --cutile-sanitize`, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = '''
import sys
import numpy as np

def test_outside():
    import cutile as ct
    from kernels import shifted
    ct.launch(None, (2,), shifted, (np.zeros(4, np.int32),))

def test_nothing():
    pass
'''
KERNELS = '''
import cutile as ct

@ct.kernel
def shifted(x):
    ct.store(x, ct.bid(0) + 3, ct.bid(0))
'''


def run(folder: Path, *options: str) -> str:
    (folder / "test_it.py").write_text(TESTS)
    (folder / "kernels.py").write_text(KERNELS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_cutile", "-p", "no:cacheprovider", *options]
    environment = {"PYTHONPATH": f"{ROOT}:{folder}", "PATH": "",
                   "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # an installed cutile would load it a second time
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stdout


@pytest.mark.parametrize("checks", ["all", "alias,bounds"])
def test_launches_of_tests_are_checked(tmp_path, checks):
    said = run(tmp_path, f"--cutile-sanitize={checks}")
    assert "1 failed, 1 passed" in said
    assert "bounds: store(): the tile at index (4,) of `x` lies wholly outside" in said
    assert 'kernels.py", line 6' in said


@pytest.mark.parametrize("options", [(), ("--cutile-sanitize=alias",)])
def test_nothing_is_checked_without_it(tmp_path, options):
    assert "2 passed" in run(tmp_path, *options)


def test_a_wrong_name_is_refused_at_once(tmp_path):
    said = run(tmp_path, "--cutile-sanitize=bound")
    assert "CUTILE_SANITIZE is 'bound'; it accepts" in said


def test_the_plugin_loads_nothing():
    done = subprocess.run([sys.executable, "-c", "import sys, pytest_cutile; print('numpy' in sys.modules, "
                           "'cutile' in sys.modules)"], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False False\n"
