"""`pytest --cutile-sanitize`, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.functions.shows import shows

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


# ------------------------------------------------------------------ marks

MARKED = '''
import os
import pytest

from tests.functions.shows import shows
from cutile.gpu import driver
from tests.gpu.fake_driver import FakeDriver

driver._driver = FakeDriver(capability=(9, 0)).start()

@pytest.mark.gpu("sm_90")
def test_this(): pass

@pytest.mark.gpu(min="sm_80")
def test_newer(): pass

@pytest.mark.gpu
def test_any(): pass

@pytest.mark.gpu("sm_100")
def test_other(): raise AssertionError

@pytest.mark.gpu(min="sm_100")
def test_newest(): raise AssertionError

seen = []

@pytest.mark.both_schedules
@pytest.mark.parametrize("n", [1, 2])
def test_schedules(n):
    seen.append((n, os.environ["CUTILE_SCHEDULE"]))

def test_all_were_run():
    assert sorted(seen) == [(1, "batch"), (1, "block"), (2, "batch"), (2, "block")]
    assert "CUTILE_SCHEDULE" not in os.environ
'''


def marked(folder: Path, text: str) -> str:
    (folder / "test_marked.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_cutile", "-p", "no:cacheprovider", "-rs",
               "--strict-markers", "test_marked.py"]
    environment = {"PYTHONPATH": f"{ROOT}:{folder}", "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stdout


@shows("BEN-7.gpu", "BEN-7.schedules")
def test_marks(tmp_path):
    said = marked(tmp_path, MARKED)
    assert "8 passed, 2 skipped" in said, said
    assert "needs a GPU of sm_100; this one is sm_90" in said and "needs a GPU of sm_100 or newer" in said


def test_marks_without_a_gpu(tmp_path):
    nothing = ("def none():\n    raise OSError('no driver')\n\n\ndriver.driver = none\n")
    said = marked(tmp_path, MARKED.replace("driver._driver = FakeDriver(capability=(9, 0)).start()", nothing))
    assert "5 passed, 5 skipped" in said and "needs a GPU: no driver" in said, said
