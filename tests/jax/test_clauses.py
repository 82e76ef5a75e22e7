"""Every clause about programs of JAX is shown by a test, and every cited clause exists."""

import re
from pathlib import Path

from conformance.harness.clauses import parse

HERE = Path(__file__).parent
CLAUSES = {c.id for c in parse((HERE / "clauses.md").read_text(), "jax")}
CITED = {i for p in HERE.glob("test_*.py") for marks in re.findall(r"^@shows\(([^)]*)\)", p.read_text(), re.M)
         for i in re.findall(r'"([^"]+)"', marks)}


def test_every_clause_is_shown():
    assert len(CLAUSES) > 30 and not CLAUSES - CITED


def test_every_cited_clause_exists():
    assert not CITED - CLAUSES
