"""Running a user's script, with its launches seen."""

from __future__ import annotations

import sys

import pytest

import cutile as ct
from cutile.cli import script

TEXT = """
import sys
import numpy as np
import cutile as ct
from cutile import launch

@ct.kernel
def first(x):
    ct.store(x, 0, 1)

@ct.kernel
def second(x):
    ct.store(x, 0, ct.load(x, 0, 1) + 1)

x = np.zeros(1, np.int32)
launch(None, (1,), first, (x,))
ct.launch(None, (1,), second, (x,))
ct.launch(None, (1,), second, (x,))
name, arguments = __name__, sys.argv[1:]
if "exit" in arguments:
    sys.exit(3)
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "beside.py").write_text("")
    path = tmp_path / "script.py"
    path.write_text(TEXT)
    return str(path)


def test_a_script_runs_as_python_runs_it(file):
    before = sys.argv, list(sys.path), ct.launch
    found = script.run(file, ["a", "b"])
    assert found["x"][0] == 3 and found["name"] == "__main__" and found["arguments"] == ["a", "b"]
    assert (sys.argv, sys.path, ct.launch) == before


def test_all_launches_are_seen(file):
    seen = []
    script.run(file, [], lambda stream, grid, kernel, args, **options: seen.append((grid, kernel.__name__)))
    assert seen == [((1,), "first"), ((1,), "second"), ((1,), "second")]


@pytest.mark.parametrize("number, before", [(1, 1), (2, 2)])
def test_the_script_ends_at_the_launch(file, number, before):
    caught = script.at_launch(file, "second", [], number, lambda c: (c.kernel.__name__, c.grid, c.args[0][0]))
    assert caught == ("second", (1,), before)


@pytest.mark.parametrize("name, number, arguments, says", [
    ("second", 3, [], r"second was launched 2 time\(s\) by "),
    ("third", 1, [], "third was never launched by .*; it launches first, second"),
    ("third", 1, ["exit"], "third was never launched"),
])
def test_launches_that_do_not_come(file, name, number, arguments, says):
    with pytest.raises(script.NotLaunchedError, match=says):
        script.at_launch(file, name, arguments, number, lambda c: None)
