"""Every session in docs/debugging.md is what pdb says."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.interp.debugging.interpreters import ROOT
from tests.interp.debugging.sessions import pdb

PAGE = (ROOT / "docs" / "debugging.md").read_text()
PROGRAM = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
SESSIONS = re.findall(r"```pdb\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("session", SESSIONS, ids=range(len(SESSIONS)))
def test_sessions_are_as_shown(session, tmp_path):
    program = tmp_path / "rows.py"
    program.write_text(PROGRAM)
    shown = [part.split("\n", 1) for part in session.split("(Pdb) ")[1:]]
    answers = pdb(sys.executable, [command for command, _ in shown], program)
    for (command, text), answer in zip(shown, answers, strict=True):
        said = answer.text.replace(f"{tmp_path}/", "").split("The program finished")[0]
        assert (command, said.strip()) == (command, text.strip())


SANITIZED = re.findall(r"```python\n# (\w+\.py)\n(.*?)```\n\n```text\n\$ (.*?)\n…\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("name, program, command, said", SANITIZED, ids=[s[0] for s in SANITIZED])
def test_reports_of_the_sanitizer_are_as_shown(name, program, command, said, tmp_path):
    (tmp_path / name).write_text(f"# {name}\n{program}")
    words = command.split()
    given = dict(w.split("=") for w in words if "=" in w)
    environment = {**os.environ, **given, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, words[-1]], cwd=tmp_path, env=environment, capture_output=True, text=True)
    shown = done.stderr.replace(f"{tmp_path}/", "")
    assert said in shown, shown
    assert done.returncode == 1


def test_the_page_has_reports():
    assert len(SANITIZED) == PAGE.count("$ CUTILE_SANITIZE=") > 1


def test_the_page_has_sessions():
    assert len(SESSIONS) == 3
