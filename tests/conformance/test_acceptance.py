"""Comparing which programs two implementations accept: verdicts, differences, and how the suite is loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from conformance import acceptance
from conformance.harness import known_differences

ACCEPTED = {"arguments": ["int"], "verdict": "accepted"}
REFUSED = {"arguments": ["int"], "verdict": "refused", "error": "TileTypeError", "message": "no", "where": "x"}


def test_programs_are_compared_one_by_one():
    internal = {**REFUSED, "error": "TileInternalError"}
    ours = {"a": [ACCEPTED, REFUSED], "b": [ACCEPTED, ACCEPTED], "c": [REFUSED]}
    c = acceptance.compare(ours, {"a": [ACCEPTED, ACCEPTED], "b": [REFUSED], "c": [internal]})
    assert c.programs == 4 and c.not_reached == 1
    assert [(d.test, d.number, d.accepted_by) for d in c.differences] == [("a", 1, "cuda.tile"), ("b", 0, "cutile")]
    assert c.differences[0].ours == "TileTypeError: no" and c.differences[0].official == "accepted"
    assert c.refusals == {("TileTypeError", "TileInternalError"): 1}


@pytest.mark.parametrize("given", [[], ["-n", "2"], ["-k", "casts"]])
def test_without_files_the_whole_suite_is_meant(given):
    assert acceptance.with_files(given) == ["conformance", *given]
    named = [*given, "conformance/test_casts.py::test_x"]
    assert acceptance.with_files(named) == named


def test_programs_with_other_arguments_are_no_pair():
    c = acceptance.compare({"a": [ACCEPTED]}, {"a": [{**REFUSED, "arguments": ["float"]}]})
    assert (c.programs, c.not_reached, c.differences) == (0, 1, [])


def test_unlisted_differences_are_reported(tmp_path):
    (tmp_path / "mine.txt").write_text("test_a.py::test_x[*] | it fails inside | D-6\n")
    known = known_differences.read("mine", folder=tmp_path)
    tests = ["conformance/test_a.py::test_x[1]", "conformance/test_a.py::test_y"]
    c = acceptance.compare(dict.fromkeys(tests, [ACCEPTED]), dict.fromkeys(tests, [REFUSED]))
    assert [d.test for d in acceptance.unlisted(c, known)] == tests[1:]
    text = "\n".join(acceptance.report(c, known))
    assert "2 programs compared, 0 with the same verdict, 2 differ" in text and "it fails inside" in text
    assert f"not listed: {tests[1]} #0 (int)\n  cutile:    accepted\n  cuda.tile: TileTypeError: no" in text


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    path = tmp_path_factory.mktemp("acceptance") / "verdicts.jsonl"
    command = [sys.executable, "-m", "pytest", "conformance/test_assertions.py", "--impl", acceptance.OURS, "-p",
               "conformance.harness.verdict_plugin", "--assert=plain", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=acceptance.ROOT, capture_output=True, text=True,
                          env={**os.environ, "CONFORMANCE_VERDICTS": str(path)})
    assert done.returncode == 0, done.stdout
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_suite_records_what_cutile_says(verdicts):
    seen = [v for t in verdicts for v in t["verdicts"]]
    assert {v["verdict"] for v in seen} == {"accepted", "refused"}
    assert all(v["error"].startswith("Tile") and v["message"] for v in seen if v["verdict"] == "refused")


def test_nothing_runs(verdicts):
    """Assertions that fail at run time compile, and tests that expect the failure still run to their end."""
    failing = [t for t in verdicts if "fail" in t["test"]]
    assert failing and all(v["verdict"] == "accepted" for t in failing for v in t["verdicts"])
