"""How verdicts are counted, work is shared out, and what has been recorded is read."""

from __future__ import annotations

import json

import pytest

from tests.mutation import run, sites

pytestmark = [
    pytest.mark.skipif(not hasattr(run.os, "fork"), reason="no os.fork here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]


def mutant(code: str) -> sites.Mutant:
    return sites.Mutant("a.py", 0, 1, "", "operator", 1, f"{code} changed", (1,), False, code)


def test_equivalent_mutants_are_not_counted_and_told_if_killed(monkeypatch):
    monkeypatch.setattr(run, "why_equivalent", lambda m: "no one can tell" if m.code.startswith("same") else None)
    verdicts = [(i, mutant(code), {"killer": killer, "tests": 2, "left": 0})
                for i, (code, killer) in enumerate([("a", "t"), ("b", None), ("same", None), ("same too", "t2")])]
    text = run.table(verdicts)
    assert "all              2       1" in text
    assert "and 2 equivalent ones, 1 of them killed" in text
    assert "3 killed although listed as equivalent, by t2" in text and "1 survived 2 tests" in text


def test_verdicts_of_changed_mutants_do_not_count(tmp_path):
    out, drawn = tmp_path / "out", list(enumerate(map(mutant, "abc")))
    rows = [{"number": 0, "mutant": str(drawn[0][1])}, {"number": 1, "mutant": "another"}]
    out.write_text("\n".join(map(json.dumps, rows)))
    assert [i for i, *_ in run.judged(drawn, out)] == [0]
    assert run.judged(drawn, tmp_path / "none") == []


def test_every_item_is_worked_on_once(tmp_path):
    def work(item):
        with (tmp_path / "done").open("a") as f:
            f.write(f"{item}\n")

    run.finish(run.shared_out(list(range(30)), 3, work))
    assert sorted(map(int, (tmp_path / "done").read_text().split())) == list(range(30))
    run.finish(run.shared_out([], 3, work))


def test_a_fault_is_told(capfd):
    with pytest.raises(RuntimeError, match="see above"):
        run.finish(run.shared_out([0, 1], 2, lambda item: 1 // item))
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_records_of_several_processes_are_one(tmp_path):
    for name, tests, line in (("gw0", {"t": 1.0, "u": 0.5}, "7"), ("gw1", {"v": 0.1}, "7")):
        (tmp_path / f"{name}.json").write_text(json.dumps(
            {"tests": tests, "lines": {"a.py": {line: list(range(len(tests)))}}}))
    coverage = run.Coverage(tmp_path)
    assert coverage.tests["a.py", 7] == {"t", "u", "v"} and coverage.ordered("tuv") == ["v", "u", "t"]
    with pytest.raises(SystemExit, match="no test is recorded"):
        run.Coverage(tmp_path / "none")
