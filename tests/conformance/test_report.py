"""Known differences in the suite's report: the tests run, fail, and count as known."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from conformance.harness import known_differences, report_page
from conformance.harness.report import Recorder, _why, write


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    (tmp_path / "mine.txt").write_text("test_bits.py::test_x[*] | rounds twice | BIT-1\n")
    real = known_differences.read
    monkeypatch.setattr(known_differences, "read", lambda name, *sections: real(name, *sections, folder=tmp_path))
    return Recorder(SimpleNamespace(getoption=lambda name: {"--impl": "mine", "--report": None}[name]))


class Item:
    def __init__(self, name: str):
        self.nodeid, self.user_properties, self.markers = f"conformance/{name}", [], []

    def iter_markers(self, name):
        return [SimpleNamespace(args=("BIT-1.and.int",))]

    def add_marker(self, marker):
        self.markers.append(marker)


def finished(item: Item, outcome: str, **more):
    return SimpleNamespace(outcome=outcome, when="call", nodeid=item.nodeid, user_properties=item.user_properties,
                           **more)


CLAUSE = SimpleNamespace(id="BIT-1.and.int")


def test_a_known_difference(recorder):
    listed, other = Item("test_bits.py::test_x[i8]"), Item("test_bits.py::test_y")
    recorder.pytest_collection_modifyitems([listed, other])
    assert listed.markers[0].kwargs["reason"] == "known: rounds twice (BIT-1)" and not other.markers
    recorder.pytest_runtest_logreport(finished(other, "passed"))
    assert recorder.verdict(CLAUSE) == "holds"
    recorder.pytest_runtest_logreport(finished(listed, "skipped", wasxfail="known"))
    assert recorder.verdict(CLAUSE) == "known"
    assert recorder.known.report() == "known differences of mine: 1 listed, 1 met"
    recorder.pytest_runtest_logreport(finished(other, "failed"))
    assert recorder.verdict(CLAUSE) == "broken"


def test_failing_tests_are_those_that_no_list_knows(recorder):
    items = [Item(f"test_bits.py::{name}") for name in ("test_x[i8]", "test_y[1]", "test_y[2]", "test_z")]
    recorder.pytest_collection_modifyitems(items)
    for item, outcome in zip(items, ("skipped", "failed", "failed", "passed"), strict=True):
        more = {"wasxfail": "known"} if outcome == "skipped" else {}
        recorder.pytest_runtest_logreport(finished(item, outcome, longrepr="AssertionError: 1 of 4 differ", **more))
    [row] = recorder.failing()
    assert (row["test"], row["tests"], row["clauses"]) == ("test_bits.py::test_y", 2, ["BIT-1.and.int"])


def test_absent_names_are_those_that_most_tests_need_first(recorder):
    items = [Item(f"test_bits.py::{name}") for name in "abc"]
    recorder.pytest_collection_modifyitems(items)
    for item, names in zip(items, ("ct.mod", "ct.cat, ct.mod", "ct.cat, ct.mod"), strict=True):
        item.user_properties.append(("absent", names))
        recorder.pytest_runtest_logreport(finished(item, "failed"))
    assert list(recorder.absent().items()) == [("ct.mod", 3), ("ct.cat", 2)]


def test_one_that_has_gone_is_not_met(recorder):
    listed = Item("test_bits.py::test_x[i8]")
    recorder.pytest_collection_modifyitems([listed])
    recorder.pytest_runtest_logreport(finished(listed, "passed", wasxfail="known"))
    assert recorder.verdict(CLAUSE) == "holds"
    assert recorder.known.report().endswith("0 met; not met: test_bits.py::test_x[*]")


# ------------------------------------------------------------------ what a report says


def row(verdict, **failing):
    return {"id": "BIT-1.and.int", "chapter": "bits & pieces", "text": "x < y", "verdict": verdict, "tests": 20,
            "failing": failing}


def contents(*clauses, interrupted=False):
    run = {"implementation": "mine", "version": "3", "hardware": "A <GPU>", "date": "2026-01-02", "seconds": 7,
           "python": "3.12", "numpy": "2.4", "ml_dtypes": "0.6", "system": "Linux", "interrupted": interrupted,
           "tests": {"failed": 2, "passed": 18}}
    known = [{"pattern": "test_x*", "reason": "rounds twice", "says": "BIT-1", "met": 3}]
    failing = [{"how": "wrong result", "test": "test_x.py::test_y", "tests": 4, "each": 1, "clauses": ["BIT-1.and.int"],
                "why": "assert a<b"}] if clauses[0]["verdict"] == "broken" else []
    return {"run": run, "verdicts": {"broken": 1}, "failing": failing,
            "absent": {"ct.cat": 8, "ct.mod": 2} if failing else {}, "known": known, "clauses": list(clauses)}


def test_a_page_says_what_failed_and_where():
    text = report_page.page(contents(row("broken", **{f"t{i}": "assert a<b" for i in range(15)})))
    assert "A &lt;GPU&gt;" in text and "2 failed, 18 passed, in 7 s" in text and "bits &amp; pieces" in text
    assert "<h2>Broken</h2>" in text and "15 not passed" in text and "assert a&lt;b" in text and "and 3 more" in text
    assert "1 are listed, 3 tests met one" in text and "interrupted" not in text
    assert "<h2>Failing tests</h2>" in text and "<td>wrong result<td>4<td><code>test_x.py::test_y</code>" in text
    assert text.count("<a href='#BIT-1.and.int'>") == 2 and text.count("<tr id='BIT-1.and.int'>") == 1
    assert "<h2>Absent</h2>" in text and "<code>ct.cat</code><td>8" in text
    clean = report_page.page(contents(row("holds")))
    assert "<h2>Broken" not in clean and "<h2>Failing" not in clean and "<h2>Absent" not in clean
    assert "the run was interrupted" in report_page.page(contents(row("holds"), interrupted=True))


def test_files(tmp_path):
    write(tmp_path / "out", contents(row("holds")))
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == contents(row("holds"))
    assert (tmp_path / "out" / "report.html").read_text() == report_page.page(contents(row("holds")))


def test_the_first_line_of_why():
    crash = SimpleNamespace(reprcrash=SimpleNamespace(message="AssertionError: 3 differ\nassert not 3"))
    assert _why(crash) == "AssertionError: 3 differ" and _why(("f.py", 3, "Skipped: no GPU")) == "no GPU"
    assert _why("x" * 1000) == "x" * 300 and _why(None) == ""


def test_a_file_that_cannot_be_loaded_breaks_its_clauses(recorder):
    lost = SimpleNamespace(failed=True, nodeid="conformance/test_shape.py", longrepr="AttributeError: no ct.cat")
    recorder.pytest_collectreport(lost)
    some = [i for i in recorder.outcomes if i.startswith("SHAPE-")]
    assert some and recorder.verdict(SimpleNamespace(id=some[0])) == "broken"
    assert recorder.outcomes[some[0]][0].why == "the file cannot be loaded: AttributeError: no ct.cat"
