"""The report of a run: a verdict for each clause, and the failing tests (failure_groups.py).

It is written as a table in the terminal, as JSON, and as a page (report_page.py).
"""

from __future__ import annotations

import datetime
import json
import platform
import re
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from conformance.harness import failure_groups, known_differences, report_page
from conformance.harness.clauses import FOLDER, Clause, clauses, untested

VERDICTS = ("holds", "broken", "absent", "known", "not applicable", "reasoned", "no test")
# The verdict on a clause: that of the first of these outcomes that one of its tests has.
DECIDES = {"failed": "broken", "absent": "absent", "known": "known", "passed": "holds", "skipped": "not applicable"}
_FOLDERS = re.compile(r"(?<![\w.)\]/])(?:/[\w.+-]+)+/(?=[\w.+-])")  # in absolute paths
_SHOWN = 20  # rows of failing tests, and absent names, in the terminal
_LACKS = "it has no "  # before the names that a test needs and the implementation lacks


@dataclass(frozen=True)
class Outcome:
    """The outcome of a test: a key of DECIDES, and why it did not pass."""

    kind: str
    test: str
    why: str = ""


class Recorder:
    """Collects the outcomes of tests by clause; a worker of a distributed run sends them to the controller."""

    def __init__(self, config: pytest.Config):
        self.config = config
        self.outcomes: dict[str, list[Outcome]] = defaultdict(list)
        self.tests: dict[str, Outcome] = {}
        self.clauses_of: dict[str, list[str]] = {}
        self.known = _known(config.getoption("--impl"))
        self.folder: tempfile.TemporaryDirectory | None = None
        self.began = time.time()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = clauses()
        for item in items:
            ids = [i for m in item.iter_markers("clause") for i in m.args]
            unknown = [i for i in ids if i not in known]
            if unknown:
                raise pytest.UsageError(f"{item.nodeid} cites unknown clauses: {', '.join(unknown)}")
            item.user_properties.append(("clauses", ids))
            self.clauses_of[item.nodeid] = ids
            if d := self.known.find(_plain(item.nodeid)):
                item.add_marker(pytest.mark.xfail(reason=f"known: {d.reason} ({d.says})", strict=False))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Have a worker write down which clauses its tests show, for tests that end with their process."""
        if self.folder is None:
            self.folder = tempfile.TemporaryDirectory()
        node.workerinput["conformance_folder"] = self.folder.name

    def pytest_collection_finish(self) -> None:
        inputs = getattr(self.config, "workerinput", {})
        if "conformance_folder" in inputs:
            path = Path(inputs["conformance_folder"]) / f"{inputs['workerid']}.json"
            path.write_text(json.dumps(self.clauses_of))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome, ids = _outcome(report), dict(report.user_properties).get("clauses")
        if report.when not in ("setup", "call", "teardown"):  # the process has ended
            if report.nodeid in self.tests:
                return
            ids = self._written(report.nodeid)
            outcome = Outcome("failed", report.nodeid, "its process ended: it crashed, or took too long")
            if self.known.find(_plain(report.nodeid)):
                outcome = Outcome("known", report.nodeid, outcome.why)
        elif report.when != "call" and report.outcome == "passed":
            return
        if outcome.kind == "known":
            self.known.explains(_plain(report.nodeid))
        self.tests[report.nodeid] = outcome
        for i in ids or ():
            self.outcomes[i].append(outcome)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """If a file cannot be loaded, no test shows the clauses that it names."""
        if not report.failed:
            return
        outcome = Outcome("failed", report.nodeid, f"the file cannot be loaded: {_why(report.longrepr)}")
        path = FOLDER.parent / Path(report.nodeid.partition("::")[0]).name
        named = re.findall(r'"([^"\n]*)"', path.read_text()) if path.is_file() else ()
        for i in sorted(clauses().keys() & set(named)):
            self.outcomes[i].append(outcome)

    def _written(self, test: str) -> list[str]:
        """The clauses of a test, as a worker wrote them down."""
        if not self.clauses_of and self.folder:
            path = next(Path(self.folder.name).glob("*.json"), None)
            self.clauses_of = json.loads(path.read_text()) if path else {}
        return self.clauses_of.get(test, [])

    def verdict(self, c: Clause) -> str:
        seen = {o.kind for o in self.outcomes.get(c.id, ())}
        if seen:
            return next(v for k, v in DECIDES.items() if k in seen)
        return "reasoned" if c.id in untested() else "no test"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter, exitstatus: int) -> Any:
        """Write the tables below pytest's own list of failures, which may be long."""
        result = yield
        if not hasattr(self.config, "workerinput") and self.outcomes:
            self._summary(terminalreporter, exitstatus == pytest.ExitCode.INTERRUPTED)
        return result

    def _summary(self, tr: Any, interrupted: bool) -> None:
        table: dict[str, Counter] = defaultdict(Counter)
        for c in clauses().values():
            table[c.group][self.verdict(c)] += 1
        tr.section(f"clauses, implementation {self.config.getoption('--impl')}")
        tr.write_line(f"{'group':10}" + "".join(f"{v:>16}" for v in VERDICTS))
        for group, row in table.items():
            if not set(row) <= {"reasoned", "no test"}:  # nothing to say about a group that was not run
                tr.write_line(f"{group:10}" + "".join(f"{row[v] or '':>16}" for v in VERDICTS))
        total = sum(table.values(), Counter())
        tr.write_line(f"{'all':10}" + "".join(f"{total[v]:>16}" for v in VERDICTS))
        tr.write_line(self.known.report())
        _write_failing(tr, self.failing())
        _write_absent(tr, self.absent())
        folder = self.config.getoption("--report")
        if folder:
            write(Path(folder), self.contents(interrupted))
            tr.write_line(f"report: {folder}/report.html, report.json")

    def contents(self, interrupted: bool = False) -> dict[str, Any]:
        """The contents of a report: the run, the known differences, and each clause."""
        rows = [{"id": c.id, "chapter": c.chapter, "text": c.text, "verdict": self.verdict(c), **self._evidence(c)}
                for c in clauses().values()]
        lines = [{"pattern": d.pattern, "reason": d.reason, "says": d.says, "met": self.known.seen[d]}
                 for d in self.known.lines]
        count = Counter(row["verdict"] for row in rows)
        return {"run": {**self.run(), "interrupted": interrupted}, "verdicts": {v: count[v] for v in VERDICTS},
                "failing": self.failing(), "absent": self.absent(), "known": lines, "clauses": rows}

    def failing(self) -> list[dict[str, Any]]:
        """The failing tests, the most telling first."""
        tests: dict[str, tuple[str, list[str]]] = {}
        for i, outcomes in self.outcomes.items():
            for o in outcomes:
                if o.kind == "failed":
                    tests.setdefault(_plain(o.test), (o.why, []))[1].append(i)
        return failure_groups.together(tests)

    def absent(self) -> dict[str, int]:
        """The names that the implementation lacks, each with how many tests need it, the most needed first."""
        count = Counter(
            n for o in self.tests.values() if o.kind == "absent" for n in o.why.removeprefix(_LACKS).split(", "))
        return dict(sorted(count.items(), key=lambda item: (-item[1], item[0])))

    def _evidence(self, c: Clause) -> dict[str, Any]:
        """How many tests showed a clause, which did not pass and why, and why it has no tests."""
        outcomes = self.outcomes.get(c.id, [])
        found = {"tests": len(outcomes), "failing": {_plain(o.test): o.why for o in outcomes if o.kind != "passed"}}
        return {**found, "reason": untested()[c.id]} if not outcomes and c.id in untested() else found

    def run(self) -> dict[str, Any]:
        """What ran, and on what."""
        from conformance.harness.api import impl

        tests = Counter(o.kind for o in self.tests.values())
        return {"implementation": self.config.getoption("--impl"), "version": impl.version(),
                "hardware": impl.hardware(), "date": datetime.date.today().isoformat(),
                "seconds": round(time.time() - self.began), "python": platform.python_version(),
                "numpy": version("numpy"), "ml_dtypes": version("ml_dtypes"),
                "system": f"{platform.system()} {platform.machine()}",
                "tests": {k: tests[k] for k in DECIDES}}


def _write_failing(tr: Any, rows: list[dict[str, Any]]) -> None:
    """Write the first rows of failing tests, where a reader begins."""
    if rows:
        tr.write_line("failing tests, wrong results first, and of these the tests of the fewest clauses:")
    for row in rows[:_SHOWN]:
        tr.write_line(f"{row['how']:>13} {row['tests']:>4} × {row['test']}: {failure_groups.named(row['clauses'])}")
        tr.write_line(f"{'':21}{row['why'][:120]}")
    if len(rows) > _SHOWN:
        tr.write_line(f"{'':13}  and {sum(row['tests'] for row in rows[_SHOWN:])} tests of {len(rows) - _SHOWN} more "
                      "functions: see the report (--report FOLDER)")


def _write_absent(tr: Any, names: dict[str, int]) -> None:
    if names:
        shown = [f"{name} ({n})" for name, n in list(names.items())[:_SHOWN]]
        more = f" and {len(names) - _SHOWN} more: see the report" if len(names) > _SHOWN else ""
        tr.write_line(f"absent, by the number of tests that need them: {', '.join(shown)}{more}")


def _known(name: str) -> known_differences.Known:
    """The differences that a run of this implementation may meet; one named …:export launches nothing."""
    launched = () if name.endswith(":export") else (known_differences.TESTS, known_differences.LAUNCHING)
    return known_differences.read(name, *launched, known_differences.EXPORTING)


def _plain(test: str) -> str:
    """A test's id, as in the lists of known differences."""
    return test.removeprefix("conformance/")


def _outcome(report: pytest.TestReport) -> Outcome:
    """The outcome of a test; `known` if it failed as the list of known differences says."""
    absent = dict(report.user_properties).get("absent")
    if report.outcome == "skipped" and hasattr(report, "wasxfail"):
        return Outcome("known", report.nodeid, report.wasxfail)
    if report.outcome == "failed" and absent:
        return Outcome("absent", report.nodeid, _LACKS + absent)
    return Outcome(report.outcome, report.nodeid, _why(getattr(report, "longrepr", None)))


def _why(longrepr: Any) -> str:
    """The first line about a failure, or all text about a skip, without the folders of this machine."""
    if isinstance(longrepr, tuple):
        return _FOLDERS.sub("", str(longrepr[2]).removeprefix("Skipped: "))
    crash = getattr(longrepr, "reprcrash", None)
    text = crash.message if crash else str(longrepr or "")
    return _FOLDERS.sub("", text.strip().split("\n")[0])[:300]


def write(folder: Path, contents: dict[str, Any]) -> None:
    """Write report.json and report.html. The JSON has one clause a line."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for key, value in contents.items():
        items = ",\n".join(json.dumps(v) for v in value) if isinstance(value, list) else None
        parts.append(f"{json.dumps(key)}: " + (json.dumps(value) if items is None else f"[\n{items}\n]"))
    (folder / "report.json").write_text("{" + ",\n".join(parts) + "}\n")
    (folder / "report.html").write_text(report_page.page(contents))
