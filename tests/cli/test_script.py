"""Running a user's script, with its launches seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import cutile as ct
from cutile.cli import script

TEXT = """
import subprocess
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
    script.run(file, [], lambda caught, go_on: seen.append((caught.grid, caught.kernel.__name__)))
    assert seen == [((1,), "first"), ((1,), "second"), ((1,), "second")]


@pytest.mark.parametrize("call", ["ct.launch((1,), first, (x,))", "ct.launch(None, (1,), first, x, 1)", "ct.launch()"])
def test_what_is_wrong_with_a_launch_is_said_as_elsewhere(tmp_path, call):
    path = tmp_path / "wrong.py"
    path.write_text(f"{TEXT}\ntry:\n    {call}\nexcept TypeError as e:\n    said = str(e)\n")
    found = script.run(str(path), [])
    with pytest.raises(TypeError) as e:
        eval(call, {"ct": ct, "first": found["first"], "x": found["x"]})
    assert str(e.value) == found["said"]


@pytest.mark.parametrize("number, before", [(1, 1), (2, 2)])
def test_the_script_ends_at_the_launch(file, number, before):
    caught = script.at_launch(file, "second", [], number, lambda c: (c.kernel.__name__, c.grid, c.args[0][0]))
    assert caught == ("second", (1,), before)


@pytest.mark.parametrize("name, number, arguments, says", [
    ("second", 3, [], r"second was launched 2 times by "),
    ("third", 1, [], "third was never launched by .*; it launches first, second"),
    ("third", 1, ["exit"], "third was never launched"),
])
def test_launches_that_do_not_come(file, name, number, arguments, says):
    with pytest.raises(script.NotLaunchedError, match=says):
        script.at_launch(file, name, arguments, number, lambda c: None)


OTHER_WAYS = """
import numpy as np
import cutile as ct
from cutile import compute

@ct.jit(grid="cdiv(N, 4)", out=ct.Out("N"))
@ct.kernel
def twice(x: ct.Array["N"], y):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 4) * 2)

x, y = np.arange(8), np.zeros(8, int)
step = ct.prepare(twice.kernel, (2,), (x, y))
step()
step.replace(x=y)
step(None)
z = twice(y)
total = np.zeros(1, int)
compute.reduce_into(z, total, len(z), lambda a, b: a - -b, 0)  # an addition would be NumPy's, without a launch
"""


def test_launches_in_other_ways(tmp_path):
    """What ct.prepare made, functions of ct.jit, device-wide algorithms."""
    file = tmp_path / "script.py"
    file.write_text(OTHER_WAYS)
    seen = []

    def see(caught, go_on):
        seen.append((caught.kernel.__name__, caught.grid, caught.args[0].tolist()))
        go_on()

    found = script.run(str(file), [], see)
    assert found["total"][0] == 8 * sum(range(8))
    assert seen == [("twice", (2, 1, 1), [*range(8)]), ("twice", (2, 1, 1), [*range(0, 16, 2)]),
                    ("twice", (2, 1, 1), [*range(0, 32, 4)]), ("reduce_tiles", (1, 1, 1), [*range(0, 64, 8)])]
    assert script.at_launch(str(file), "twice", [], 2, lambda c: c.args[1].tolist()) == [*range(0, 16, 2)]


# `python -m cutile` for each verb, in processes that are new, but for what has been imported: that takes a second.
EACH_VERB = """
import json, os, runpy, sys, tempfile
import cutile.cli.main, cutile.cli.script, rich.console
found = {}
for verb in sys.argv[1:]:
    with tempfile.TemporaryFile("w+") as said:
        if (child := os.fork()) == 0:
            os.dup2(said.fileno(), 2)
            os.dup2(said.fileno(), 1)
            sys.argv[1:] = [verb, "script.py" if verb == "run" else "script.py::k"]
            runpy.run_module("cutile", run_name="__main__", alter_sys=True)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        found[verb] = status, said.read()
print(json.dumps(found))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")
@pytest.mark.parametrize("fails, status", [("x = 1 / 0", 1), ("raise SystemExit(7)", 7)])
def test_a_script_that_fails_shows_its_own_frames(tmp_path, fails, status):
    (tmp_path / "script.py").write_text(f"def helper():\n    {fails}\nhelper()\n")
    verbs = ("run", "view", "explore", "diff", "profile", "debug")
    done = subprocess.run([sys.executable, "-c", EACH_VERB, *verbs], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [*found] == [*verbs]
    for verb, (code, said) in found.items():
        if status == 1:
            assert 'Traceback (most recent call last):\n  File "script.py", line 3, in <module>' in said
            assert "ZeroDivisionError" in said and "cutile/" not in said
        assert code == {"run": status, "debug": status, "explore": 2, "diff": 2}.get(verb, 1), verb