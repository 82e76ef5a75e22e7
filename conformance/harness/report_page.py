"""The report as one self-contained page."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from typing import Any

from conformance.harness import failure_groups

_STYLE = """body{font:15px/1.5 system-ui;margin:2rem auto;max-width:70rem;padding:0 1rem}table{border-collapse:collapse;
width:100%}td,th{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
.holds{color:#176b2c}.broken{color:#b00020;font-weight:600}.absent,.no{color:#b36b00}.known{color:#5b3fa8}
code{font-size:13px}summary{cursor:pointer}li{overflow-wrap:anywhere}"""
_SHOWN = 12  # tests listed for a clause


def page(contents: dict[str, Any]) -> str:
    """A page of a report's contents: the run, totals, known differences, then a table for each chapter."""
    run = contents["run"]
    title = f"Conformance of {escape(run['implementation'])} {escape(run['version'])}"
    out = ["<!doctype html><html lang=en><meta charset=utf-8>"
           f"<meta name=viewport content='width=device-width'><title>{title}</title><style>{_STYLE}</style>",
           f"<h1>{title}</h1>", *_run(run), *_verdicts(contents["verdicts"]), *_tests(contents["failing"]),
           *_absent(contents["absent"]), *_broken(contents["clauses"]), *_known(contents["known"])]
    chapters: dict[str, list[dict]] = defaultdict(list)
    for row in contents["clauses"]:
        chapters[row["chapter"]].append(row)
    for chapter, rows in chapters.items():
        out.append(f"<h2>{escape(chapter)}</h2><table><tr><th>clause<th>statement<th>verdict<th>tests")
        out += map(_clause, rows)
        out.append("</table>")
    return "\n".join(out) + "\n"


def _run(run: dict[str, Any]) -> list[str]:
    tests = ", ".join(f"{n} {kind}" for kind, n in run["tests"].items() if n)
    if run["interrupted"]:
        tests += "; the run was interrupted, and verdicts rest on the tests that ran"
    facts = {"date": run["date"], "hardware": run["hardware"], "system": run["system"],
             "Python": f"{run['python']}, NumPy {run['numpy']}, ml_dtypes {run['ml_dtypes']}",
             "tests": f"{tests}, in {run['seconds']} s"}
    return ["<table>", *(f"<tr><th>{k}<td>{escape(v)}" for k, v in facts.items()), "</table>"]


def _verdicts(count: dict[str, int]) -> list[str]:
    return ["<h2>Clauses</h2><table><tr>" + "".join(f"<th class={v.split()[0]}>{v}" for v in count),
            "<tr>" + "".join(f"<td>{n}" for n in count.values()), "</table>"]


def _tests(rows: list[dict[str, Any]]) -> list[str]:
    """The failing tests by function and kind of failure."""
    lines = [f"<tr><td>{row['how']}<td>{row['tests']}<td><code>{escape(row['test'])}</code><td>"
             f"<code>{failure_groups.named(row['clauses'], _link)}</code><td>{escape(row['why'])}" for row in rows]
    return ["<h2>Failing tests</h2><p>Wrong results first, and of these the tests of the fewest clauses: a failing "
            "test breaks each of its clauses, also where one of them alone is not kept.",
            "<table><tr><th>how<th>tests<th>function<th>clauses<th>the first says", *lines, "</table>"] if rows else []


def _absent(names: dict[str, int]) -> list[str]:
    """The names that the implementation lacks."""
    rows = [f"<tr><td><code>{escape(name)}</code><td>{n}" for name, n in names.items()]
    return ["<h2>Absent</h2><table><tr><th>name<th>tests that need it", *rows, "</table>"] if rows else []


def _broken(clauses: list[dict[str, Any]]) -> list[str]:
    """All broken clauses."""
    rows = [row for row in clauses if row["verdict"] == "broken"]
    return ["<h2>Broken</h2><table><tr><th>clause<th>statement<th>verdict<th>tests", *map(_broken_clause, rows),
            "</table>"] if rows else []


def _known(lines: list[dict[str, Any]]) -> list[str]:
    if not lines:
        return ["<p>No difference is known."]
    rows = [f"<tr><td><code>{escape(d['pattern'])}</code><td>{escape(d['reason'])}<td>{escape(d['says'])}<td>{d['met']}"
            for d in lines]
    return [f"<h2>Known differences</h2><p>{len(lines)} are listed, {sum(d['met'] for d in lines)} tests met one.",
            "<table><tr><th>tests<th>difference<th>what is right<th>met", *rows, "</table>"]


def _broken_clause(row: dict[str, Any]) -> str:
    return f"<tr><td><code>{_link(row['id'])}</code>{_cells(row)}"


def _clause(row: dict[str, Any]) -> str:
    """The row of a clause that links lead to."""
    return f"<tr id='{row['id']}'><td><code>{row['id']}</code>{_cells(row)}"


def _link(clause: str) -> str:
    return f"<a href='#{clause}'>{clause}</a>"


def _cells(row: dict[str, Any]) -> str:
    """What a clause states, the verdict and what did not pass, and how many tests there were."""
    more = f"<br><small>{escape(row['reason'])}</small>" if "reason" in row else ""
    return (f"<td>{escape(row['text'])}<td class={row['verdict'].split()[0]}>"
            f"{row['verdict']}{more}{_not_passed(row['failing'])}<td>{row['tests'] or ''}")


def _not_passed(tests: dict[str, str]) -> str:
    """The tests that did not pass, folded away."""
    if not tests:
        return ""
    items = [f"<li><code>{escape(test)}</code> {escape(why)}" for test, why in list(tests.items())[:_SHOWN]]
    rest = f"<li>and {len(tests) - _SHOWN} more" if len(tests) > _SHOWN else ""
    head = f"<summary><small>{len(tests)} not passed</small></summary>"
    return f"<details>{head}<ul>{''.join(items)}{rest}</ul></details>"
