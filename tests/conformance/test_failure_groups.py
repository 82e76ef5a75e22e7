"""Failing tests form groups, the most telling first."""

from __future__ import annotations

import pytest

from conformance.harness.failure_groups import how, named, together

WRONG, ERROR = "AssertionError: 3 of 4 differ", "TypeError: unsupported operand"


@pytest.mark.parametrize("why, way", [
    (WRONG, "wrong result"), ("assert [1] == [2]", "wrong result"),
    ("toy.TileTypeError: no such dtype", "refused"), ("TileError: x", "refused"), ("a.b.StaticException", "refused"),
    ("Failed: DID NOT RAISE TileTypeError", "not refused"),
    (ERROR, "error"), ("its process ended: it crashed, or took too long", "error"), ("", "error"),
    ("MyTileError: x", "error"),
])
def test_the_way_of_a_failure(why, way):
    assert how(why) == way


def test_wrong_results_come_first_then_tests_of_few_clauses():
    rows = together({"f.py::a[1]": (ERROR, ["A-1"]), "f.py::a[2]": (WRONG, ["A-1", "A-2", "A-3"]),
                     "f.py::b": (WRONG, ["A-2"]), "f.py::c": ("Failed: DID NOT RAISE X", ["A-3"])})
    assert [(r["how"], r["test"]) for r in rows] == [
        ("wrong result", "f.py::b"), ("wrong result", "f.py::a"), ("not refused", "f.py::c"), ("error", "f.py::a")]


def test_the_tests_of_a_function_that_fail_alike_are_a_row_with_the_clauses_of_the_narrowest():
    wide, first, second = ("wide", ["A-1", "A-2"]), ("AssertionError: 1", ["A-3"]), ("AssertionError: 2", ["A-4"])
    [row] = together({"f.py::a[0]": ("AssertionError: " + wide[0], wide[1]), "f.py::a[1]": first, "f.py::a[2]": second})
    assert row == {"how": "wrong result", "test": "f.py::a", "tests": 3, "each": 1, "clauses": ["A-3", "A-4"],
                   "why": "AssertionError: 1"}


def test_many_clauses_in_a_line():
    assert named(["A-1", "A-2"]) == "A-1, A-2" and named(list("abcdefg")) == "a, b, c, d, e and 2 more"
