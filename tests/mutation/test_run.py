"""Counting verdicts, sharing work among processes, and reading what was recorded."""

from __future__ import annotations

import json
import math
import sys
from types import SimpleNamespace

import pytest

from tests.mutation import lines, mutant_process, names, processes, run, sites

pytestmark = [
    pytest.mark.skipif(not hasattr(processes.os, "fork"), reason="no os.fork here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]
FIRST, LAST = run.JUDGES[-2:]  # these judges try the mutants of passes


def mutant(code: str) -> sites.Mutant:
    return sites.Mutant("a.py", 0, 1, "", "operator", 1, f"{code} changed", (1,), False, code)


def row(judge: run.Judge, killer: str | None, of: str = "a") -> dict:
    return {"path": "a.py", "code": of, "what": f"{of} changed", "judge": judge.impl, "killer": killer, "tests": 2,
            "left": 0}


def drawn(number: int, code: str, *rows: dict) -> run.Drawn:
    return run.Drawn("passes", number, mutant(code), list(rows))


def test_equivalent_mutants_are_not_counted_and_told_if_killed(monkeypatch):
    monkeypatch.setattr(run, "why_equivalent", lambda m: "no one can tell" if m.code.startswith("same") else None)
    text = run.table([
        drawn(0, "a", row(FIRST, "t")), drawn(1, "b", row(FIRST, None), row(LAST, None)), drawn(2, "c"),
        drawn(3, "same", row(FIRST, None), row(LAST, None)), drawn(4, "same too", row(FIRST, None), row(LAST, "t2"))])
    assert "all              2       1" in text
    assert "and 2 equivalent ones, 1 of them killed" in text
    assert "4 killed although listed as equivalent, by t2" in text and "1 survived 4 tests" in text


def test_a_mutant_is_judged_once_it_is_killed_or_all_have_tried():
    assert [d.judged for d in (drawn(0, "a"), drawn(0, "a", row(FIRST, None)), drawn(0, "a", row(FIRST, "t")),
                               drawn(0, "a", row(FIRST, None), row(LAST, None)))] == [False, False, True, True]


def test_verdicts_of_changed_mutants_do_not_count(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "draw", lambda paths, seed, count: list(map(mutant, "abc")))
    rows = [row(FIRST, "t"), row(FIRST, None), row(FIRST, "t", "another")]
    (tmp_path / "passes.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = run.read(tmp_path, "passes", 0, 3)
    assert [len(d.rows) for d in found] == [1, 0, 0] and found[0].killer is None  # the last verdict holds
    assert not any(d.rows for d in run.read(tmp_path, "front", 0, 3))


def trial(folder, deadline=math.inf, budget=math.inf) -> run.Trial:
    t = run.Trial(FIRST, folder, [], budget, deadline, 1)
    t.coverage = SimpleNamespace(ordered=lambda m, all_tests: ["t", "u", "v"] if all_tests else ["t"],
                                 within=lambda tests, _: tests, limit=lambda tests: 100.0 * len(tests))
    return t


def test_what_a_judge_says_is_written(tmp_path):
    given = []

    def killer(m, tests, limit):
        given.append((tests, limit))
        return "u"

    trial(tmp_path).verdict(drawn(0, "a"), killer, all_tests=True)
    assert given == [(["t", "u", "v"], 300.0)]
    written = json.loads((tmp_path / "passes.jsonl").read_text())
    assert written | {"seconds": 0} == row(FIRST, "u") | {"tests": 3, "seconds": 0}


def test_after_the_deadline_there_is_no_verdict(tmp_path):
    trial(tmp_path, deadline=0).verdict(drawn(0, "a"), None, all_tests=False)
    soon = run.time.monotonic() + 5
    trial(tmp_path, deadline=soon).verdict(drawn(0, "a"), lambda *_: mutant_process.TIME, all_tests=False)
    assert not list(tmp_path.iterdir())


def test_every_item_is_worked_on_once(tmp_path):
    def work(item):
        with (tmp_path / "done").open("a") as f:
            f.write(f"{item}\n")

    processes.finish(processes.shared_out(list(range(30)), 3, work))
    assert sorted(map(int, (tmp_path / "done").read_text().split())) == list(range(30))
    processes.finish(processes.shared_out([], 3, work))


def test_a_fault_is_told(capfd):
    with pytest.raises(RuntimeError, match="see above"):
        processes.finish(processes.shared_out([0, 1], 2, lambda item: 1 // item))
    assert "ZeroDivisionError" in capfd.readouterr().err
    with pytest.raises(RuntimeError, match="see above"):
        processes.apart(lambda: 1 // 0)


@pytest.fixture
def sources(monkeypatch, tmp_path):
    """Files of the package, by their text."""
    def write(**texts):
        folder = tmp_path / "sources"
        folder.mkdir()
        for name, text in texts.items():
            (folder / f"{name}.py").write_text(text)
        for module in (sites, names):
            monkeypatch.setattr(module, "ROOT", folder)
            monkeypatch.setattr(module, "TARGETS", tuple(f"{n}.py" for n in texts))

    caches = names._uses, names._lines_by_word, names.functions_by_word
    for c in caches:
        c.cache_clear()
    yield write
    for c in caches:
        c.cache_clear()


def test_records_of_several_processes_are_one(tmp_path, sources):
    sources(a="x = 1")
    for name, tests in (("1", {"t": 1.0, "u": 0.5}), ("2", {"v": 0.1, "w": 3})):
        (tmp_path / f"{name}.jsonl").write_text("".join(
            json.dumps({"test": t, "seconds": s, "lines": {"a.py": [1] if t != "w" else [2]}}) + "\n"
            for t, s in tests.items()))
    (tmp_path / lines.EARLY).write_text('{"a.py": [2]}')
    coverage = lines.Coverage(tmp_path, [mutant("a")])
    assert coverage.of(mutant("a")) == {"v", "u", "t"} and not coverage.early(mutant("a"))
    assert coverage.seconds == {"t": 1.0, "u": 0.5, "v": 0.1, "w": 3}
    (tmp_path / lines.EARLY).write_text('{"a.py": [1]}')
    assert lines.Coverage(tmp_path, [mutant("a")]).early(mutant("a"))
    (tmp_path / "none").mkdir()
    with pytest.raises(SystemExit, match="no test is recorded"):
        lines.Coverage(tmp_path / "none", [])


def test_tests_of_the_mutated_words_come_first(tmp_path, sources):
    sources(a="OPS = {\n  'first': 10,\n  'second': 11,\n}\ndef f():\n    lower('second')\n",
            t="@mark('first')\ndef test_1(): pass\ndef test_2(): pass\n")
    with (tmp_path / "1.jsonl").open("w") as f:
        for test, seconds, line in (("u.py::test_a", 0.1, 5), ("u.py::test_b", 9.0, 6), ("u.py::test_c[1]", 0.2, 5),
                                    ("u.py::test_c[2]", 0.3, 5), ("t.py::test_1", 5, 5), ("t.py::test_2", 0.5, 5)):
            f.write(json.dumps({"test": test, "seconds": seconds, "lines": {"a.py": [line]}}) + "\n")
    (tmp_path / lines.EARLY).write_text("{}")
    table, number = (next(m for site in sites.mutants("a.py") for m in site if m.what == what)
                     for what in ("'first': 10 → 11", "11 → 12"))
    coverage = lines.Coverage(tmp_path, [table, number])
    rest = ["u.py::test_a", "t.py::test_2", "u.py::test_c[1]", "u.py::test_b", "u.py::test_c[2]"]  # one of each file
    assert coverage.ordered(table, all_tests=True) == ["t.py::test_1", *rest]  # it has the word
    assert coverage.ordered(number, all_tests=True)[0] == "u.py::test_b"  # it executes a line with the word
    assert coverage.ordered(number, all_tests=False) == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in Python 3.12")
def test_what_tests_execute_is_recorded(tmp_path):
    processes.apart(lambda: lines.record(["conformance/test_grid.py", "--rootdir", str(sites.ROOT)], tmp_path / "r", 2))
    of = sites.draw(["cutile/ops/grid.py"], 1, 10)
    coverage = lines.Coverage(tmp_path / "r", of)
    assert all(t.startswith("conformance/test_grid.py::") for t in coverage.seconds)
    assert any(coverage.of(m) for m in of if not m.at_import) and all(coverage.early(m) for m in of if m.at_import)
