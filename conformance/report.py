"""The report: clause × verdict, as a terminal table, JSON and a page."""

from __future__ import annotations

import html
import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from conformance import differences
from conformance.clauses import Clause, clauses, untested

VERDICTS = ("holds", "broken", "known", "not applicable", "reasoned", "no test")


class Recorder:
    """Collects what tests say about clauses; on a worker of a distributed run, hands it to the controller."""

    def __init__(self, config: pytest.Config):
        self.config = config
        self.outcomes: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self.known = differences.read(config.getoption("--impl"))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = clauses()
        for item in items:
            ids = [i for m in item.iter_markers("clause") for i in m.args]
            unknown = [i for i in ids if i not in known]
            if unknown:
                raise pytest.UsageError(f"{item.nodeid} cites unknown clauses: {', '.join(unknown)}")
            item.user_properties.append(("clauses", ids))
            if d := self.known.find(_plain(item.nodeid)):
                item.add_marker(pytest.mark.xfail(reason=f"known: {d.reason} ({d.says})", strict=False))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ids = dict(report.user_properties).get("clauses", ())
        if _outcome(report) == "known":
            self.known.explains(_plain(report.nodeid))
        if report.when == "call" or report.outcome != "passed":
            for i in ids:
                self.outcomes[i].append((_outcome(report), report.nodeid))

    def verdict(self, c: Clause) -> str:
        seen = {o for o, _ in self.outcomes.get(c.id, ())}
        if "failed" in seen:
            return "broken"
        if "known" in seen:
            return "known"
        if "passed" in seen:
            return "holds"
        if "skipped" in seen:
            return "not applicable"
        return "reasoned" if c.id in untested() else "no test"

    def pytest_terminal_summary(self, terminalreporter) -> None:
        if hasattr(self.config, "workerinput") or not self.outcomes:
            return
        table: dict[str, Counter] = defaultdict(Counter)
        for c in clauses().values():
            table[c.group][self.verdict(c)] += 1
        tr = terminalreporter
        tr.section(f"clauses, implementation {self.config.getoption('--impl')}")
        tr.write_line(f"{'group':10}" + "".join(f"{v:>16}" for v in VERDICTS))
        for group, row in table.items():
            tr.write_line(f"{group:10}" + "".join(f"{row[v] or '':>16}" for v in VERDICTS))
        total = sum(table.values(), Counter())
        tr.write_line(f"{'all':10}" + "".join(f"{total[v]:>16}" for v in VERDICTS))
        tr.write_line(self.known.report())
        folder = self.config.getoption("--report")
        if folder:
            write(Path(folder), self, self.config.getoption("--impl"))
            tr.write_line(f"report: {folder}/report.html, report.json")


def _plain(test: str) -> str:
    """A test's id as lists of known differences have it."""
    return test.removeprefix("conformance/")


def _outcome(report: pytest.TestReport) -> str:
    """passed, failed, skipped, or known: failed as the list of known differences says."""
    return "known" if report.outcome == "skipped" and hasattr(report, "wasxfail") else report.outcome


def write(folder: Path, r: Recorder, impl: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"id": c.id, "group": c.group, "chapter": c.chapter, "text": c.text, "verdict": r.verdict(c),
             "reason": untested().get(c.id), "tests": [n for _, n in r.outcomes.get(c.id, ())]}
            for c in clauses().values()]
    (folder / "report.json").write_text(json.dumps({"impl": impl, "clauses": rows}, indent=1) + "\n")
    (folder / "report.html").write_text(page(rows, impl))


_STYLE = """body{font:15px/1.5 system-ui;margin:2rem auto;max-width:70rem;padding:0 1rem}table{border-collapse:collapse;
width:100%}td,th{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
.holds{color:#176b2c}.broken{color:#b00020;font-weight:600}.no{color:#b36b00}code{font-size:13px}"""


def page(rows: list[dict], impl: str) -> str:
    """One page: totals, then a table for each chapter."""
    count = Counter(row["verdict"] for row in rows)
    title = f"Conformance of {html.escape(impl)}"
    out = [f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>",
           f"<h1>{title}</h1><p>" + " · ".join(f"{v}: {count[v]}" for v in VERDICTS) + "</p>"]
    chapters: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        chapters[row["chapter"]].append(row)
    for chapter, members in chapters.items():
        out.append(f"<h2>{html.escape(chapter)}</h2><table><tr><th>clause<th>statement<th>verdict<th>tests")
        for row in members:
            word = row["verdict"].split()[0]
            more = f"<br><small>{html.escape(row['reason'])}</small>" if row["verdict"] == "reasoned" else ""
            out.append(f"<tr><td><code>{row['id']}</code><td>{html.escape(row['text'])}<td class={word}>"
                       f"{row['verdict']}{more}<td>{len(row['tests'])}")
        out.append("</table>")
    return "\n".join(out) + "\n"
