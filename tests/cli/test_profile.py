"""python -m cutile profile."""

from __future__ import annotations

import json
import textwrap

import pytest
from typer.testing import CliRunner

from cutile.cli.main import app

SCRIPT = textwrap.dedent('''
    import sys
    import numpy as np
    import cutile as ct

    @ct.kernel
    def doubles(x):
        ct.store(x, ct.bid(0), ct.load(x, ct.bid(0), (4,)) * 2.0)

    @ct.kernel
    def adds(x):
        ct.store(x, 0, ct.load(x, 0, (8,)) + 1.0)

    @ct.kernel
    def idle(x):
        pass

    x = np.ones(8, np.float32)
    ct.launch(None, (2,), doubles, (x,))
    ct.launch(None, (1,), adds, (x,))
    ct.prepare(adds, (1,), (x,))()
    print("x is", x.tolist())
    sys.exit(int(sys.argv[1]) if sys.argv[1:] else 0)
''')


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)


def profile(*words, code=0):
    done = CliRunner().invoke(app, ["profile", *words])
    assert done.exit_code == code, done.output
    return done


def test_one_kernel(tmp_path):
    done = profile("script.py::adds")
    assert "adds: 2 launches, 2 blocks" in done.stdout and "doubles:" not in done.stdout
    assert "x is [4.0, 4.0" in done.stdout
    assert json.loads((tmp_path / "cutile.speedscope.json").read_text())["name"] == "adds"


def test_all_kernels_and_another_file(tmp_path):
    done = profile("script.py", "--output", "other.json")
    assert "doubles: 1 launch" in done.stdout and "adds: 2 launches" in done.stdout
    assert [p.name for p in tmp_path.glob("*.json")] == ["other.json"]


def test_json(tmp_path):
    done = profile("script.py", "--json")
    found = {p["kernel"]: p for p in json.loads(done.stdout)}
    assert found.keys() == {"doubles", "adds"} and "x is" in done.stderr
    assert sum(line["bytes read"] for line in found["adds"]["lines"]) == 2 * 32
    assert not list(tmp_path.glob("*.json"))


def test_the_status_of_the_script():
    assert "doubles: 1 launch" in profile("script.py", "--", "3", code=3).stdout


@pytest.mark.parametrize("words, says", [
    (["script.py::idle"], "idle was never launched by script.py; it launches doubles, adds"),
    (["missing.py::k"], "there is no file missing.py"),
    (["script.py::adds", "--output", "missing/x.json"], "the profile cannot be written to missing/x.json"),
])
def test_what_cannot_be_done(words, says):
    assert says in profile(*words, code=1).stderr


def test_a_script_without_launches(tmp_path):
    (tmp_path / "empty.py").write_text("x = 1\n")
    assert "a kernel was never launched by empty.py" in profile("empty.py", code=1).stderr
