"""Tests that crash, hang or spoil their process: only that test counts as failed, and the run goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
ENDED = "its process ended: it crashed, or took too long"


def suite(*arguments: str) -> str:
    command = [sys.executable, "-m", "conformance", "--impl", "tests.conformance.faulty_adapter:Faulty", "--tb=line"]
    done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=5 * PATIENCE)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faulty")
    names = ("int8", "int16", "int32", "int64", "uint8")
    out = suite(*(f"test_select.py::test_where[{n}]" for n in names), "-n", "1", "--report", str(folder))
    return out, json.loads((folder / "report.json").read_text())


def test_only_the_tests_at_fault_fail(report):
    out, contents = report
    where = next(c for c in contents["clauses"] if c["id"] == "WHERE-1.cond")
    assert where["verdict"] == "broken" and where["tests"] == 5
    assert where["failing"] == {
        "test_select.py::test_where[int8]": ENDED, "test_select.py::test_where[int16]": ENDED,
        "test_select.py::test_where[int32]": "RuntimeError: an illegal memory access was encountered"}, out
    assert contents["run"]["tests"] == {"failed": 3, "absent": 0, "known": 0, "passed": 2, "skipped": 0}


def test_without_further_processes_the_run_ends():
    out = suite("test_select.py::test_where[int32]", "test_select.py::test_where[int64]")
    assert "the GPU can be used no more. Run with `-n 1`" in out and "1 failed" in out


def test_an_implementation_that_cannot_be_had():
    command = [sys.executable, "-m", "conformance", "--impl"]
    for name, why in (("nobody", "known are cutile:interp, "), ("tests.nobody:Mine", "No module named 'tests.nobody'"),
                      ("tests.conformance.faulty_adapter:Other", "has no attribute 'Other'")):
        done = subprocess.run([*command, name], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 4 and f"ERROR: --impl {name}" in done.stderr and why in done.stderr
