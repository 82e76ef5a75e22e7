"""python -m cutile debug: pdb in a block of a kernel."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = '''import sys
import numpy as np
import cutile as ct

@ct.kernel
def fills(x):
    """Stores its index."""
    i = ct.bid(0)
    ct.store(x, i, i)

@ct.kernel
def adds(x, n): ct.store(x, 0, ct.load(x, 0, 1) + n)

x = np.zeros(4, np.int32)
ct.launch(None, (4,), fills, (x,))
ct.launch(None, (1,), adds, (x, 5))
ct.launch(None, (1,), adds, (x, 7))
print("ended with", x.tolist(), sys.argv[1:])
'''


def debug(tmp_path, *words: str, typed: str):
    (tmp_path / "script.py").write_text(SCRIPT)
    return subprocess.run([sys.executable, "-m", "cutile", "debug", *words], input=typed, capture_output=True,
                          text=True, cwd=tmp_path, timeout=120)


def test_it_stops_at_the_first_line_of_the_block(tmp_path):
    done = debug(tmp_path, "script.py::fills", "--block", "2", "--", "a", typed="p __block__\nn\np int(i)\nc\n")
    assert "script.py(8)fills()" in done.stdout and "-> i = ct.bid(0)" in done.stdout
    assert "(Pdb) (2, 0, 0)\n" in done.stdout and "(Pdb) 2\n" in done.stdout
    assert "ended with [12, 1, 2, 3] ['a']" in done.stdout and done.returncode == 0


def test_it_stops_in_the_launch_that_is_asked_for(tmp_path):
    done = debug(tmp_path, "script.py::adds", "--launch", "2", typed="p int(n)\nq\n")
    assert "(Pdb) 7\n" in done.stdout and "ended" not in done.stdout and done.returncode == 0
    assert "Traceback" not in done.stderr


def test_without_a_name_it_stops_in_the_first_launch(tmp_path):
    assert "script.py(8)fills()" in debug(tmp_path, "script.py", typed="q\n").stdout


@pytest.mark.parametrize("words, says", [
    (["nowhere.py"], "there is no file nowhere.py"),
    (["script.py::nope"], "nope was never launched by script.py; it launches fills, adds"),
    (["script.py::adds", "--launch", "3"], "adds was launched 2 times"),
    (["script.py", "--block", "4"], "block (4, 0, 0) is outside the grid (4, 1, 1) of fills"),
    (["script.py", "--block", "x"], "--block x: write a block id such as 3 or 3,0,0"),
])
def test_what_is_wrong(tmp_path, words, says):
    done = debug(tmp_path, *words, typed="")
    assert says in done.stderr and done.returncode == 1 and "Traceback" not in done.stderr
