"""Every session in docs/debugging.md is what pdb says."""

from __future__ import annotations

import re
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


def test_the_page_has_sessions():
    assert len(SESSIONS) == 3
