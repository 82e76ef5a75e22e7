"""CUTILE_PROFILE: a table on stderr and a file, when the process ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

SCRIPT = textwrap.dedent('''
    import os
    import numpy as np
    import cutile as ct

    @ct.kernel
    def doubles(x):
        t = ct.load(x, ct.bid(0), (4,))
        ct.store(x, ct.bid(0), t + t)

    x = np.ones(8, np.float32)
    ct.launch(None, (2,), doubles, (x,))
    if hasattr(os, "fork") and (child := os.fork()):
        os.waitpid(child, 0)
    print("ends")
''')


def run(tmp_path, value, script=SCRIPT):
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "CUTILE_PROFILE": value})
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("value, file", [("1", "cutile.speedscope.json"), ("mine.json", "mine.json")])
def test_table_and_file(tmp_path, value, file):
    done = run(tmp_path, value)
    assert done.stderr.count("doubles: 1 launch, 2 blocks") == 1  # a forked child shows nothing
    row = next(line for line in done.stderr.splitlines() if "ct.store(x" in line)
    assert "32 B" in row and " 8 " in row  # written, operations
    made = json.loads((tmp_path / file).read_text())
    assert [p["name"] for p in made["profiles"]] == ["doubles: time", "doubles: bytes", "doubles: operations"]
    assert done.stdout.count("ends") >= 1 and f"the profile is in {file}" in done.stderr


def test_off_and_no_launch(tmp_path):
    assert run(tmp_path, "0").stderr == ""
    assert run(tmp_path, "1", "import cutile").stderr == "" and list(tmp_path.glob("*.json")) == []


def test_a_file_that_cannot_be_written(tmp_path):
    done = run(tmp_path, "missing/mine.json")
    assert "doubles: 1 launch" in done.stderr and "cutile: the profile cannot be written to" in done.stderr
    assert "Traceback" not in done.stderr
