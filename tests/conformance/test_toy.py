"""The suite on a small and wrong implementation: it names what is broken, and what is absent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.harness.failure_groups import HOW

ROOT = Path(__file__).resolve().parents[2]

TESTS = [
    *(f"test_integer_arithmetic.py::test_integers[{op}-{d}]" for op in ("add", "floordiv", "mod", "divmod0")
      for d in ("uint16", "int32")),
    "test_float_arithmetic.py::test_minimum_and_maximum",
    "test_select.py::test_where", "test_select.py::test_dtypes", "test_select.py::test_shapes",
    "test_load.py::test_tiles_of_blocks", "test_load.py::test_an_axis_of_stride_zero",
    "test_load.py::test_rank_1_with_plain_integers", "test_load.py::test_reading_an_array_again_and_again",
    "test_promotion.py::test_two_tiles",
]
INTEGERS, NARROW = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"), ("f16", "bf16")
# The faults of the toy, and the clauses whose tests show them. All clauses of a failing test count as broken.
BROKEN = {
    "quotients": {f"ARITH-5.{s}" for s in ("signed", "unsigned", "wrap", "zero", "operator")},
    "NaN": {f"ARITH-9.max.{s}" for s in ("nan", "float", "zero", "builtin")},
    "the built-in min": {f"ARITH-9.min.{s}" for s in ("nan", "float", "zero", "builtin")},
    "padding": {"LOAD-1.element", "LOAD-5.edge"},
    "promotion": {f"PROMO-5.{a}.{b}" for i in INTEGERS for f in NARROW for a, b in ((i, f), (f, i))}
                 | {f"WHERE-1.{s}" for s in ("dtype", "bool", "literal", "literals")},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The command's output, and the report."""
    folder = tmp_path_factory.mktemp("toy")
    done = subprocess.run(
        [sys.executable, "-m", "conformance", *TESTS, "--impl", "tests.conformance.toy.adapter:Toy", "--tb=line",
         "--report", str(folder)], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout, json.loads((folder / "report.json").read_text()), (folder / "report.html").read_text()


@pytest.fixture
def verdicts(run):
    out: dict[str, set[str]] = {}
    for c in run[1]["clauses"]:
        out.setdefault(c["verdict"], set()).add(c["id"])
    return out


def test_exactly_what_is_wrong_is_broken(verdicts):
    assert verdicts["broken"] == set.union(*BROKEN.values())


def test_the_report_begins_with_what_is_wrong_on_purpose(run):
    """The four faults, and the built-ins that plain Python cannot provide, are in the first nine rows, each under a
    clause that names it.
    """
    text, contents, page = run
    rows = contents["failing"]
    assert len(rows) <= 9 and [r["how"] for r in rows] == sorted((r["how"] for r in rows), key=list(HOW).index)
    named = [(r["how"], c) for r in rows for c in r["clauses"]]
    assert {("wrong result", "LOAD-5.edge"), ("wrong result", "ARITH-5.signed"), ("wrong result", "ARITH-9.max.nan"),
            ("refused", "PROMO-5.i32.f16")} <= set(named)
    lines = text[text.index("failing tests, wrong results first"):].splitlines()
    assert "test_load.py::test_an_axis_of_stride_zero: LOAD-1.element" in lines[1] and "differ, first at" in lines[2]
    assert "<h2>Failing tests</h2>" in page


def test_the_rest_holds_or_is_absent(run, verdicts):
    assert {"ARITH-1.int", "ARITH-7.signed", "ARITH-9.max.propagate", "WHERE-1.shape", "LOAD-2.scalar",
            "PROMO-5.i8.i64", "PROMO-5.i8.u8", "PROMO-5.b1.bf16"} <= verdicts["holds"]
    assert {"ARITH-8.signed", "PROMO-5.tf32.tf32", "PROMO-5.i8.e4m3"} <= verdicts["absent"]
    why = {w for c in run[1]["clauses"] if c["verdict"] == "absent" for w in c["failing"].values()}
    assert "it has no ct.divmod" in why and all(w.startswith("it has no ct.") for w in why)
    assert "absent, by the number of tests that need them: ct." in run[0]


def test_the_report_names_what_ran_where(run):
    text, contents, page = run
    facts = contents["run"]
    assert facts["implementation"] == "tests.conformance.toy.adapter:Toy" and facts["version"] == "0.0"
    assert facts["hardware"] and facts["date"].count("-") == 2 and facts["python"] and facts["numpy"]
    assert facts["tests"]["passed"] and facts["tests"]["absent"] and not facts["tests"]["known"]
    assert contents["verdicts"]["broken"] == len(set.union(*BROKEN.values())) and "0 listed, 0 met" in text
    assert facts["hardware"] in page and "http" not in page and "<script" not in page
