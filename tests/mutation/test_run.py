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
FIRST, MIDDLE, LAST = (j for j in run.JUDGES if "passes" in j.groups)


def mutant(code: str) -> sites.Mutant:
    return sites.Mutant("a.py", 0, 1, "", "operator", 1, f"{code} changed", (1,), False, code)


def row(judge: run.Judge, killer: str | None, of: str = "a") -> dict:
    return {"path": "a.py", "code": of, "what": f"{of} changed", "judge": judge.name, "killer": killer, "tests": 2,
            "left": 0}


SURVIVED = [row(j, None) for j in (FIRST, MIDDLE, LAST)]


def drawn(number: int, code: str, *rows: dict) -> run.Drawn:
    return run.Drawn("passes", number, mutant(code), list(rows))


def test_equivalent_mutants_are_not_counted_and_told_if_killed(monkeypatch):
    monkeypatch.setattr(run, "why_equivalent", lambda m: "no one can tell" if m.code.startswith("same") else None)
    text = run.table([
        drawn(0, "a", row(FIRST, "t")), drawn(1, "b", *SURVIVED), drawn(2, "c"),
        drawn(3, "same", *SURVIVED), drawn(4, "same too", row(FIRST, None), row(LAST, "t2"))])
    assert "all              2       1" in text
    assert "and 2 equivalent ones, 1 of them killed" in text
    assert "4 killed although listed as equivalent, by t2" in text and "1 survived 6 tests" in text


def test_a_mutant_is_judged_once_it_is_killed_or_all_have_tried():
    assert [d.judged for d in (drawn(0, "a"), drawn(0, "a", row(FIRST, None)), drawn(0, "a", row(FIRST, "t")),
                               drawn(0, "a", *SURVIVED))] == [False, False, True, True]


def test_verdicts_of_changed_mutants_do_not_count(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "draw", lambda paths, seed, count: list(map(mutant, "abc")))
    rows = [row(FIRST, "t"), row(FIRST, None), row(FIRST, "t", "another")]
    (tmp_path / "passes.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = run.read(tmp_path, "passes", 0, 3)
    assert [len(d.rows) for d in found] == [1, 0, 0] and found[0].killer is None  # the last verdict holds
    assert not any(d.rows for d in run.read(tmp_path, "front", 0, 3))


def trial(folder, deadline=math.inf, budget=math.inf) -> run.Trial:
    t = run.Trial(FIRST, folder, [], budget, deadline, 1)
    t.coverage = SimpleNamespace(ordered=lambda m: ["t", "u", "v"], recorded={"t", "u"},
                                 within=lambda tests, _: tests, limit=lambda tests: 100.0 * len(tests))
    return t


def test_what_a_judge_says_is_written(tmp_path):
    given = []

    def killer(m, tests, limit):
        given.append((tests, limit))
        return "u"

    trial(tmp_path).verdict(drawn(0, "a"), killer)
    assert given == [(["t", "u", "v"], 300.0)]
    written = json.loads((tmp_path / "passes.jsonl").read_text())
    assert written | {"seconds": 0} == row(FIRST, "u") | {"tests": 3, "seconds": 0}


def test_the_first_tests_run_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "FIRST", 1)
    given = []
    trial(tmp_path).verdict(drawn(0, "a"), lambda m, tests, limit: given.append(tests))
    assert given == [["t"], ["u", "v"]]


def test_a_test_that_fails_without_a_mutant_does_not_kill(tmp_path):
    trial(tmp_path).verdict(drawn(0, "a"), lambda m, tests, limit: "v" if "v" in tests else None)
    assert json.loads((tmp_path / "passes.jsonl").read_text())["killer"] is None
    trial(tmp_path).verdict(drawn(0, "b"), lambda m, tests, limit: "v" if m and "v" in tests else None)
    assert json.loads((tmp_path / "passes.jsonl").read_text().splitlines()[1])["killer"] == "v"


def test_after_the_deadline_there_is_no_verdict(tmp_path):
    trial(tmp_path, deadline=0).verdict(drawn(0, "a"), None)
    soon = run.time.monotonic() + 5
    trial(tmp_path, deadline=soon).verdict(drawn(0, "a"), lambda *_: mutant_process.TIME)
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

    caches = names._uses, names._elsewhere, names._lines_by_word, names.functions_by_word
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
    (tmp_path / lines.OTHERS).write_text("[]")
    coverage = lines.Coverage(tmp_path, [mutant("a")])
    assert coverage.of(mutant("a")) == {"v", "u", "t"} and not coverage.early(mutant("a"))
    assert coverage.seconds == {"t": 1.0, "u": 0.5, "v": 0.1, "w": 3}
    (tmp_path / lines.EARLY).write_text('{"a.py": [1]}')
    assert lines.Coverage(tmp_path, [mutant("a")]).early(mutant("a"))
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / lines.OTHERS).write_text('["t"]')
    with pytest.raises(SystemExit, match="no test is recorded"):
        lines.Coverage(tmp_path / "none", [])


class Item:
    def __init__(self, nodeid, **indices):
        self.nodeid, self.callspec = nodeid, SimpleNamespace(indices=indices)


def test_some_tests_of_each_function_are_recorded(monkeypatch):
    monkeypatch.setattr(lines, "SAMPLE", 2)
    chosen = lines.sample([Item("t[1]"), Item("t[2]"), Item("u"), Item("t[3]"), Item("t[4]")])
    assert [i.nodeid for i in chosen] == ["t[1]", "u", "t[3]"]
    several = [Item(f"t[{a}-{b}]", a=a, b=b) for a in range(4) for b in range(3)]
    assert [i.nodeid for i in lines.sample(several)] == ["t[0-0]", "t[2-0]", "t[0-1]", "t[0-2]", "t[1-0]", "t[3-0]"]


def test_other_tests_of_a_function_count_like_those_recorded(tmp_path, sources):
    sources(a="x = 1")
    (tmp_path / "1.jsonl").write_text('{"test": "t[1]", "seconds": 2, "lines": {"a.py": [1]}}\n')
    (tmp_path / lines.EARLY).write_text("{}")
    (tmp_path / lines.OTHERS).write_text('["t[2]", "u"]')
    coverage = lines.Coverage(tmp_path, [mutant("a")])
    assert coverage.of(mutant("a")) == {"t[1]", "t[2]"} and coverage.seconds == {"t[1]": 2, "t[2]": 2}
    assert coverage.recorded == {"t[1]"}


def test_what_is_made_at_import_is_noticed_by_what_uses_it(tmp_path, sources):
    sources(a="TABLE = (1, 2, 3)\nMORE = TABLE\ndef f():\n    MORE\ndef g():\n    2\n")
    (tmp_path / "1.jsonl").write_text(
        "".join(f'{{"test": "{t}", "seconds": 1, "lines": {{"a.py": [{n}]}}}}\n' for t, n in (("uses", 4), ("not", 6))))
    (tmp_path / lines.OTHERS).write_text("[]")
    cell = next(m for site in sites.mutants("a.py") for m in site if m.kind == "table")
    for early, needed in ({"a.py": [1, 2]}, {"uses"}), ({"a.py": [1, 2, 4]}, {"uses", "not"}):
        (tmp_path / lines.EARLY).write_text(json.dumps(early))
        assert lines.Coverage(tmp_path, [cell]).needed(cell) == needed


def test_tests_of_the_mutated_words_come_first(tmp_path, sources, monkeypatch):
    sources(a="OPS = {\n  'first': 10,\n  'second': 11,\n}\ndef f():\n    lower('second')\n",
            t="@mark('first')\ndef test_1(): pass\ndef test_2(): pass\n")
    with (tmp_path / "1.jsonl").open("w") as f:
        for test, seconds, line in (("u.py::test_a", 0.1, 5), ("u.py::test_b", 9.0, 6), ("u.py::test_c[1]", 0.2, 5),
                                    ("u.py::test_c[2]", 0.3, 5), ("t.py::test_1", 5, 5), ("t.py::test_2", 0.5, 5)):
            f.write(json.dumps({"test": test, "seconds": seconds, "lines": {"a.py": [line]}}) + "\n")
    (tmp_path / lines.EARLY).write_text("{}")
    (tmp_path / lines.OTHERS).write_text("[]")
    table, number = (next(m for site in sites.mutants("a.py") for m in site if m.what == what)
                     for what in ("'first': 10 → 11", "11 → 12"))
    coverage = lines.Coverage(tmp_path, [table, number])
    rest = ["u.py::test_a", "t.py::test_2", "u.py::test_c[1]", "u.py::test_b", "u.py::test_c[2]"]  # one of each file
    monkeypatch.setattr(lines, "makes_names", lambda path, numbers: False)
    assert coverage.ordered(table) == ["t.py::test_1", *rest]  # it has the word
    assert coverage.ordered(number)[0] == "u.py::test_b"  # it executes a line with the word


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in Python 3.12")
def test_what_tests_execute_is_recorded(tmp_path):
    processes.apart(lambda: lines.record(["conformance/test_grid.py", "--rootdir", str(sites.ROOT)], tmp_path / "r", 2))
    of = sites.draw(["cutile/ops/grid.py"], 1, 10)
    coverage = lines.Coverage(tmp_path / "r", of)
    assert all(t.startswith("conformance/test_grid.py::") for t in coverage.seconds)
    assert any(coverage.of(m) for m in of if not m.at_import) and all(coverage.early(m) for m in of if m.at_import)
