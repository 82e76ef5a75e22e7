"""Every clause about functions is shown by a test, and every cited clause exists."""

import re
from pathlib import Path

from conformance.harness.clauses import parse

HERE = Path(__file__).parent
CLAUSES = {c.id for c in parse((HERE / "clauses.md").read_text(), "functions")}
ELSEWHERE = "front/test_sizes.py", "testing/test_matching.py", "testing/test_repeating.py", "test_pytest_cutile.py"
CITED = {i for p in [*HERE.glob("test_*.py"), *(HERE.parent / name for name in ELSEWHERE)]
         for marks in re.findall(r"^@shows\(([^)]*)\)", p.read_text(), re.M)
         for i in re.findall(r'"([^"]+)"', marks)}


def test_every_clause_is_shown():
    assert not CLAUSES - CITED


def test_every_cited_clause_exists():
    assert CITED and not CITED - CLAUSES


def test_ids_are_unique():
    ids = re.findall(r"^- \[([^]]+)\]", (HERE / "clauses.md").read_text(), re.M)
    assert len(ids) == len(set(ids)) == len(CLAUSES)
