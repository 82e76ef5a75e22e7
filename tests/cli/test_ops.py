"""python -m cutile ops: searching the language."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import cutile as ct
from cutile.cli.main import app


def said(*args: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["ops", *args], env={"COLUMNS": "300"})
    assert done.exit_code == code, done.output
    return done.output


def test_all_functions_are_listed():
    names = [row["name"] for row in json.loads(said("--json"))]
    assert {"ct.load", "ct.exp", "ct.launch", "ct.atomic_add", "ct.function"} <= set(names)
    assert all(hasattr(ct, n.removeprefix("ct.")) for n in names) and "ct.float32" not in names


@pytest.mark.parametrize("words, names", [
    (["power"], {"ct.exp2", "ct.pow"}), (["2", "POWER"], {"ct.exp2"}), (["bid"], {"ct.bid"})])
def test_words_choose(words, names):
    found = {row["name"] for row in json.loads(said(*words, "--json"))}
    assert names <= found and len(found) < 20


def test_words_of_the_details_choose_if_no_summary_has_them():
    assert "ct.mul" in {row["name"] for row in json.loads(said("fused", "--json"))}


def test_the_table_has_signatures():
    assert "ct.exp2(x, /, *, flush_to_zero=False)" in said("exp2")


def test_nothing_found():
    assert "nothing in the language is described by 'quux'" in said("quux", code=1)
