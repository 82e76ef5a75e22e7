"""A run of the referee from the command line: what it prints, its report, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.referee import __main__ as verb
from conformance.referee.judging import Judge, Settings, Tally
from tests.conformance.altered_meanings import Swapped


class Fatal(Swapped):
    """Ends its process."""

    name = "toy:fatal"

    def launch(self, grid, kernel, args):
        raise SystemExit("gone")


@pytest.fixture
def run(monkeypatch, capfd, tmp_path):
    def call(*arguments: str):
        monkeypatch.setattr("sys.argv", ["referee", *arguments, "--report", str(tmp_path / "report.json"), "--cases",
                                         str(tmp_path / "cases")])
        code = verb.main()
        return code, capfd.readouterr().out, json.loads((tmp_path / "report.json").read_text())

    return call


def test_agreement(run):
    code, out, report = run("--count", "12", "--jobs", "2", "--chunk", "3", "--second", "reference", "--second",
                            "tests.conformance.altered_meanings:ByBlock")
    assert code == 0 and out.startswith("12 programs on cutile:interp and reference: ")
    first, second = report["against"]
    assert second["name"] == "tests.conformance.altered_meanings:ByBlock" and sum(second["verdicts"].values()) == 12
    assert set(first["verdicts"]) <= {"same", "within", "inconclusive"} and not first["disagreements"]
    assert report["programs"] == 12 and report["seeds"] == [0, 12]
    assert report["occurrences"]["counted"] == 12 and report["occurrences"]["ops"] and report["versions"]["numpy"]
    rates = report["programs a second of one process"]
    assert {"generate", "cutile:interp", "reference"} <= set(rates) and all(r > 0 for r in rates.values())


def test_a_disagreement_is_printed_and_becomes_a_page(run):
    code, out, report = run("--count", "300", "--second", "tests.conformance.altered_meanings:Swapped", "--stop", "1",
                            "--no-shrink")
    assert code == 1 and out.startswith("program ")
    found, = report["against"][0]["disagreements"]
    assert out.splitlines()[0] == f"program {found['seed']}: {found['verdict']}"
    assert "@ct.kernel" in Path(found["page"]).read_text() and found["page"] in out


def test_what_is_known_is_no_disagreement(run, monkeypatch, tmp_path):
    from conformance.harness import known_differences

    (tmp_path / "tests.conformance.altered_meanings.txt").write_text("program *: differ: * | it is a toy | ARITH-9\n")
    monkeypatch.setattr(verb, "read", lambda name, *_: known_differences.read(name, folder=tmp_path))
    code, out, report = run("--count", "24", "--second", "tests.conformance.altered_meanings:Swapped", "--no-shrink")
    assert code == 0, out
    assert report["against"][0]["verdicts"]["known"] > 0 and "1 listed" in out


def test_time_is_up(run):
    code, out, report = run("--count", "100000", "--seconds", "1")
    assert code == 0 and 0 < report["programs"] < 1000 and report["seconds"] < 20


def test_an_implementation_that_leaves(run):
    with pytest.raises(SystemExit, match="gone"):
        run("--count", "2", "--second", f"{__name__}:Fatal")


def test_tallies_add_up():
    settings, whole, parts = Settings("cutile:interp", (), verb.Options()), Tally(), Tally()
    judges = [Judge(settings) for _ in range(3)]
    for seed in range(6):
        judges[0](seed)
        judges[1 + seed % 2](seed)
    whole.add(judges[0].end())
    for j in judges[1:]:
        parts.add(j.end())
    assert parts.counts.ops == whole.counts.ops and parts.counts.programs == 6 == parts.runs["generate"]
    assert len(str(parts.counts)) > 100
