"""Kernels in notebook cells: IPython's shell runs them as Jupyter does."""

from __future__ import annotations

import json
import re

from tests.interp.debugging.interpreters import every_python, run

SHELL = '''
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.colors = "NoColor"
for cell in json.load(sys.stdin):
    print("=== cell")
    shell.run_cell(cell)
'''

DEFINE = '''
import numpy as np
import cutile as ct
x = np.arange(8, dtype=np.float32)

def helper(t):
    return t + 1.0

@ct.kernel
def kernel(x):
    t = ct.load(x, (ct.bid(0),), (4,))
    t = helper(t)
    ct.store(x, (ct.bid(0),), t)
'''
LAUNCH = "ct.launch(None, (2,), kernel, (x,)); print(x.tolist())"
REDEFINE = '''
def helper(t):
    ct.assert_(t < 8.0, "eight")
    return t * 10.0
'''
WRONG = '''
@ct.kernel
def wrong(x):
    t = ct.load(x, (ct.bid(0),), (4,))
    ct.store(x, (0, 0), t)
ct.launch(None, (1,), wrong, (x,))
'''
BREAK = '''
sys = __import__("sys"); sys.breakpointhook = lambda: print("stopped in", sys._getframe(1).f_code.co_name,
                                                            sys._getframe(1).f_locals["t"])
@ct.kernel
def stops(x):
    t = ct.load(x, (ct.bid(0),), (4,))
    breakpoint()
ct.launch(None, (1,), stops, (np.zeros(4, np.float32),))
'''


def cells(python: str, *sources: str) -> list[str]:
    """What each cell printed."""
    done = run(python, "-c", SHELL, stdin=json.dumps(sources), IPYTHONDIR="/nonexistent")
    return done.stdout.split("=== cell\n")[1:]


@every_python("IPython")
def test_cells(python, tmp_path):
    """A kernel in a cell runs; a helper defined anew takes effect; errors and breakpoints know the cell's lines."""
    _, first, _, second, third, wrong, stops = cells(python, DEFINE, LAUNCH, REDEFINE, LAUNCH, LAUNCH, WRONG, BREAK)
    assert first == "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]\n"
    assert "TileAssertionError" in second and "assertion failed: eight in block (1, 0, 0)" in second
    assert 'ct.assert_(t < 8.0, "eight")' in second
    assert "TileAssertionError" in third
    assert re.search(r"Cell In\[\d+\], line 4, col 17-22, in wrong", wrong)  # as IPython names the cell
    assert "ct.store(x, (0, 0), t)" in wrong and "^" in wrong
    assert stops == "stopped in stops f32[4] [0, 0, 0, 0]\n"


@every_python("IPython")
def test_a_helper_defined_anew_takes_effect(python):
    again = "def helper(t):\n    return t * 10.0"
    _, first, _, second = cells(python, DEFINE, LAUNCH, again, LAUNCH)
    assert first == "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]\n"
    assert second == "[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0]\n"
