"""python -m cutile run, on scripts of users."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
import numpy as np
import cuda.tile as ct

@ct.kernel
def fills(x):
    ct.store(x, ct.bid(0), 1)

x = np.zeros(4, np.float32)
ct.launch(None, (4,), fills, (x,))
print(ct.__name__, x.tolist(), sys.argv, os.environ.get("CUTILE_SCHEDULE"))
if "fail" in sys.argv:
    sys.exit(7)
if "raise" in sys.argv:
    raise ValueError("of the script")
"""


def run(tmp_path, *words: str):
    (tmp_path / "script.py").write_text(SCRIPT)
    return subprocess.run([sys.executable, "-m", "cutile", "run", *words], capture_output=True, text=True, cwd=tmp_path,
                          env={k: v for k, v in os.environ.items() if not k.startswith("CUTILE_")}, timeout=120)


def test_a_script_for_another_implementation(tmp_path):
    done = run(tmp_path, "--as", "cuda.tile", "script.py", "--size", "4", "-x")
    assert done.stdout == "cutile [1.0, 1.0, 1.0, 1.0] ['script.py', '--size', '4', '-x'] None\n", done.stderr
    assert done.returncode == 0


def test_settings_and_status_of_the_script(tmp_path):
    done = run(tmp_path, "--as", "cuda.tile", "--schedule", "block", "script.py", "fail")
    assert done.stdout.endswith("block\n") and done.returncode == 7


def test_errors_of_the_script_are_the_scripts(tmp_path):
    done = run(tmp_path, "--as", "cuda.tile", "script.py", "raise")
    assert done.returncode == 1 and done.stderr.endswith("\nValueError: of the script\n")
    assert done.stderr.startswith('Traceback (most recent call last):\n  File "script.py", line ')
    assert done.stderr.count("File ") == 1  # none of ours, as Python shows it


@pytest.mark.parametrize("words, says", [
    (["nowhere.py"], "there is no file nowhere.py"),
    (["script.py::k"], "run takes a file, not a kernel of it: script.py"),
    (["--as", "numpy", "script.py"], "--as numpy: cutile stands for cuda.tile"),
    (["--schedule", "fast", "script.py"], "CUTILE_SCHEDULE is 'fast'; it accepts batch, block or interleave"),
    (["--backend", "gpu", "script.py"], "CUTILE_BACKEND is 'gpu'"),
])
def test_what_is_wrong(tmp_path, words, says):
    done = run(tmp_path, *words)
    assert says in done.stderr and done.returncode == 1 and "Traceback" not in done.stderr
