"""The pages of docs/conformance: the runs, from their reports, and the known differences, from their lists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from conformance.harness import known_differences
from conformance.harness.clauses import clauses
from tools.docgen.markdown import plain

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "conformance"
BUGS = "assembler-bugs.md"
LISTS = {"cuda.tile": "the official implementation, release 1.7.0", "cutile:gpu": "cutile's GPU back end"}

RUNS = """# Conformance, as run

{note} Each run has its report here: `report.html` to read, `report.json` with the same for programs.
[The suite's README](../../conformance/README.md) explains the verdicts. To make such a report:

```sh
python -m conformance --impl cutile:gpu -n 8 --tb=line --report docs/conformance/cutile-gpu
python -m tools.docgen        # this page, from the reports that are here
```

| implementation | version | date | hardware | Python, NumPy | tests | seconds |
|---|---|---|---|---|---|---|
{runs}

Clauses by verdict:

| implementation | {verdicts} |
|---|{rules}
{counts}
{notes}{broken}
Where an implementation is known to differ, and what is right there: [differences.md](differences.md).
"""


def reports() -> dict[str, dict[str, Any]]:
    """The reports that are here, by folder."""
    return {p.parent.name: json.loads(p.read_text()) for p in sorted(FOLDER.glob("*/report.json"))}


def runs(note: str) -> str:
    """The page of all runs."""
    found = reports()
    heads = list(next(iter(found.values()))["verdicts"]) if found else []
    rows, counts = [], []
    for folder, r in found.items():
        run = r["run"]
        tests = ", ".join(f"{n} {kind}" for kind, n in run["tests"].items() if n)
        tests += "; interrupted" if run["interrupted"] else ""
        link = f"[{run['implementation']}]({folder}/report.html)"
        facts = (link, run["version"], run["date"], run["hardware"], f"{run['python']}, {run['numpy']}", tests)
        rows.append(f"| {' | '.join(facts)} | {run['seconds']} |")
        counts.append(f"| {link} | " + " | ".join(str(r["verdicts"].get(h, 0)) for h in heads) + " |")
    return RUNS.format(note=note, runs="\n".join(rows), verdicts=" | ".join(heads), rules="---|" * len(heads),
                       counts="\n".join(counts), notes=_notes(found), broken=_broken(found))


def _notes(found: dict[str, dict[str, Any]]) -> str:
    """Later news about a run, from the note.md beside its report."""
    notes = {r["run"]["implementation"]: FOLDER / folder / "note.md" for folder, r in found.items()}
    return "".join(f"\n{name}: {path.read_text().strip()}\n" for name, path in notes.items() if path.is_file())


def _broken(found: dict[str, dict[str, Any]]) -> str:
    """The clauses that are broken, each with a test."""
    out = []
    for r in found.values():
        rows = [c for c in r["clauses"] if c["verdict"] == "broken"]
        if rows:
            out.append(f"\nBroken in {r['run']['implementation']}:\n")
            out += [f"- `{c['id']}` {plain(c['text'])} ({plain(next(iter(c['failing'])))})" for c in rows]
    return "\n".join([*out, ""]) if out else ""


# ------------------------------------------------------------------ known differences

DIFFERENCES = """# Known differences

{note} The lists are `conformance/known/*.txt`. The listed tests still run, and every report counts them; a line that no
test meets any more is reported too. Clauses are those of `conformance/spec`, decisions those of
[decisions.md](../decisions.md).
"""


def known(note: str) -> str:
    """The page of all lists; lines with one reason form a group."""
    decided = _decisions()
    out = [DIFFERENCES.format(note=note)]
    for name, what in LISTS.items():
        lines = known_differences.read(name).lines
        out.append(f"## {name}\n\n{what[0].upper()}{what[1:]}: {len(lines) or 'no'} line{'s' * (len(lines) != 1)}.\n")
        groups: dict[tuple[str, str], list[str]] = {}
        for d in lines:
            groups.setdefault((d.reason, d.says), []).append(d.pattern)
        for (reason, says), patterns in groups.items():
            out.append(f"### {plain(reason[0].upper() + reason[1:])}\n")
            out += [f"- {_said(one.strip(), decided)}" for one in says.split(",")]
            out.append(f"- Met by {', '.join(f'`{p}`' for p in patterns)}\n")
    return "\n".join(out)


def _decisions() -> dict[str, str]:
    """The rows of decisions.md by id, as text."""
    rows = re.findall(r"^\| (D-\d+) \| (.*?) \| (.*?) \|$", (ROOT / "docs" / "decisions.md").read_text(), re.M)
    return {i: f"{question}: {answer}" for i, question, answer in rows}


def _said(says: str, decided: dict[str, str]) -> str:
    """The right behaviour: a decision, a clause, a group of clauses, a fault of the assembler, or the words of the
    list.
    """
    if says in decided:
        return f"Decision {says}. {decided[says]}."
    members = [c for c in clauses().values() if c.id == says or c.id.startswith(f"{says}.")]
    if members:
        shown = "; ".join(f"{plain(c.text)} (`{c.id}`)" for c in members[:6])
        return f"The language: {shown}" + ("; …" if len(members) > 6 else ".")
    if says.startswith(BUGS):
        return f"A fault of the assembler: [{BUGS}](../{BUGS}), number{says.removeprefix(BUGS)}."
    return f"Right: {plain(says)}."
