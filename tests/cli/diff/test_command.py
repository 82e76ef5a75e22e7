"""python -m cutile diff, on a user's own script."""

from __future__ import annotations

import json
import textwrap

import numpy as np
import pytest
from typer.testing import CliRunner

import cutile as ct
from cutile.cli.main import app

SCRIPT = textwrap.dedent('''
    import sys
    import numpy as np
    import cutile as ct

    def scaled(t):
        s = ct.max(t)
        return t - s

    @ct.kernel
    def rows(x, y):
        t = ct.load(x, (ct.bid(0), 0), (1, 8))
        for i in range(2):
            t = scaled(t)
        e = ct.exp(t)
        ct.store(y, (ct.bid(0), 0), e)

    @ct.kernel
    def other(y):
        ct.store(y, (0, 0), ct.zeros((1, 8), ct.float32))

    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    y = np.zeros_like(x)
    if __name__ == "__main__":
        ct.launch(None, (1,), other, (y,))
        ct.launch(None, (3,), rows, (x, y))
        ct.launch(None, (2,), rows, (x * 2, y))
        print("ran to the end", *sys.argv[1:])
''')


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def call(*args: str):
    return CliRunner().invoke(app, ["diff", *args])


def test_two_schedules_agree(script):
    out = call(f"{script}::rows", "--backends", "batch,block")
    assert out.exit_code == 0 and "batch and block agree" in out.output
    assert "ran to the end" not in out.output


def test_the_first_statement_is_named(script, wrong):
    wrong("max", lambda y: y + np.float32(1))  # of each of the two axes
    out = call(f"{script}::rows")
    assert out.exit_code == 1, out.output
    lines = out.output.splitlines()
    assert lines[0] == "First difference: s in scaled, block (0, 0, 0), execution 1"
    assert lines[1].endswith('script.py", line 7') and lines[2] == "    s = ct.max(t)"
    assert "s is a float32 scalar: 1 of 1 element(s) differ, the first: interp 7.0, gpu 9.0, allowed ±0" in lines[3]
    assert "Array y in the end: 24 of 24 element(s) differ" in lines[4]


def test_json(script, wrong):
    same = json.loads(call(f"{script}::rows", "--backends", "batch,block", "--json").stdout)
    assert same["agree"] and same["first difference"] is None and same["arrays"] == [] and same["compared"] > 0
    wrong("max", lambda y: y + np.float32(1))
    out = call(f"{script}::rows", "--json")
    found = json.loads(out.stdout)
    first = found["first difference"]
    assert out.exit_code == 1 and not found["agree"] and found["backends"] == ["interp", "gpu"]
    assert (first["name"], first["line"], first["block"], first["interp"], first["gpu"]) == (
        "s", 7, [0, 0, 0], "7.0", "9.0")
    assert [(a["name"], a["differ"], a["of"]) for a in found["arrays"]] == [("y", 24, 24)]


def test_what_the_language_allows_does_not_count(script, wrong):
    wrong("exp", lambda y: np.nextafter(np.asarray(y, np.float32), np.float32(9)))
    assert call(f"{script}::rows").exit_code == 0


def test_a_later_launch(script, wrong):
    wrong("exp", lambda y: y * 2)
    out = call(f"{script}::rows", "--launch", "2")
    assert "First difference: e in rows" in out.output and "(0, 0, 0)" in out.output


@pytest.mark.parametrize("args, message", [
    (("{}::nobody", "--backends", "batch,block"), "nobody was never launched by"),
    (("{}::rows", "--launch", "3"), "rows was launched 2 times by"),
    (("{}", ), "is not FILE.py::KERNEL"),
    (("nowhere.py::k",), "there is no file nowhere.py"),
    (("{}::rows", "--backends", "interp"), "give two of interp, batch, block, gpu"),
    (("{}::rows", "--backends", "interp,tpu"), "give two of"),
])
def test_misuse(script, args, message):
    out = call(*(a.format(script) for a in args))
    assert out.exit_code == 2 and message in out.output


def test_other_launches_and_arguments_are_the_scripts_own(script):
    out = call(f"{script}::nobody", "--backends", "batch,block", "--", "one", "two")
    assert "it launches other, rows" in out.output


def test_launch_is_put_back(script):
    before = ct.launch
    call(f"{script}::rows", "--backends", "batch,block")
    assert ct.launch is before
