"""python -m cutile view."""

from __future__ import annotations

import json
import textwrap

import pytest
from typer.testing import CliRunner

from cutile.cli.main import app
from cutile.pictures.form import problems

SCRIPT = textwrap.dedent('''
    import sys
    import numpy as np
    import cutile as ct

    @ct.kernel
    def adds(x, n):
        ct.store(x, ct.bid(0), ct.load(x, ct.bid(0), (4,)) + n)

    @ct.kernel
    def races(x):
        ct.store(x, 0, ct.load(x, ct.bid(0), (4,)))

    @ct.kernel
    def fails(x):
        ct.assert_(ct.bid(0) < 1, "one block")

    @ct.kernel
    def idle(x):
        pass

    x = np.zeros(8, np.float32)
    print("begins", sys.argv[1:])
    ct.launch(None, (2,), adds, (x, 1.0))
    ct.launch(None, (1,), adds, (x, 1.0))
    ct.launch(None, (2,), races, (x,))
    try:
        ct.launch(None, (2,), fails, (x,))
    except ct.TileError:
        pass
''')


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)


def view(*words, code=0):
    done = CliRunner().invoke(app, ["view", *words])
    assert done.exit_code == code, done.output
    return done


def test_a_page(tmp_path):
    done = view("script.py::adds", "--", "a")
    assert "begins ['a']" in done.stdout
    assert "adds.html shows adds, grid (2, 1, 1): 32 bytes read, 32 written, 8 operations" in done.stdout
    assert (tmp_path / "adds.html").read_text("utf-8").startswith("<!doctype html>")


def test_options(tmp_path):
    view("script.py::adds", "--launch", "2", "--output", "other.html", "--block", "0")
    assert "1×1×1 blocks" in (tmp_path / "other.html").read_text("utf-8") and not (tmp_path / "adds.html").exists()


def test_json(tmp_path):
    done = view("script.py::races", "--json")
    found = json.loads(done.stdout)
    assert not list(problems(found)) and found["kernel"] == "races" and "begins" in done.stderr
    assert [f["check"] for f in found["findings"]] == ["race"] * len(found["findings"]) and found["findings"]
    assert not list(tmp_path.glob("*.html"))


def test_findings_and_failures_are_said_and_shown():
    assert "race: " in view("script.py::races").stdout
    assert "the launch failed: TileAssertionError: assertion failed: one block" in view("script.py::fails").stdout


@pytest.mark.parametrize("words, says", [
    (["script.py"], "'script.py' is not FILE.py::KERNEL; `cutile show script.py` lists its kernels"),
    (["missing.py::k"], "there is no file missing.py"),
    (["script.py::idle"], "idle was never launched by script.py; it launches adds, races, fails"),
    (["script.py::adds", "--launch", "3"], "adds was launched 2 times by script.py"),
    (["script.py::adds", "--block", "2"], "block (2, 0, 0) is outside the grid (2, 1, 1)"),
    (["script.py::adds", "--block", "x"], "'x' is no block: write (3, 0, 0)"),
    (["script.py::adds", "--output", "missing/x.html"], "the page cannot be written to missing/x.html"),
])
def test_what_cannot_be_done(words, says):
    assert says in view(*words, code=1).stderr
