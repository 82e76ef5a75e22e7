"""The clauses by id, read from conformance/spec/*.md, and the list of those that no test can show.

A clause is one falsifiable statement: a line `- [ID]  text`, continued by indented lines; it is Markdown, so a
backslash precedes a plain `*`, `_` or `<`. `untested.txt` holds lines `ID  reason`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "spec"
_LINE = re.compile(r"^- \[([A-Z]+-\d+(?:\.[\w.+-]+)*)\]\s+(.*)$")
_ESCAPED = re.compile(r"\\([*_<])")


@dataclass(frozen=True)
class Clause:
    """One falsifiable statement about the language."""

    id: str
    text: str
    chapter: str  # the name of its file

    @property
    def group(self) -> str:
        """The letters of the id: UN, CAST, LOOP."""
        return self.id.split("-")[0]


@functools.cache
def clauses() -> dict[str, Clause]:
    """All clauses by id."""
    found: dict[str, Clause] = {}
    for path in sorted(FOLDER.glob("*.md")):
        for c in parse(path.read_text(), path.stem):
            assert c.id not in found, f"clause {c.id} stands in {found[c.id].chapter} and in {path.stem}"
            found[c.id] = c
    return found


def parse(text: str, chapter: str) -> list[Clause]:
    """The clauses of a page of the spec."""
    out: list[Clause] = []
    for line in _ESCAPED.sub(r"\1", text).splitlines():
        if m := _LINE.match(line):
            out.append(Clause(m[1], m[2].strip(), chapter))
        elif out and line.startswith("  ") and line.strip():
            last = out.pop()
            out.append(Clause(last.id, f"{last.text} {line.strip()}", chapter))
    return out


@functools.cache
def untested() -> dict[str, str]:
    """Clauses that no test can show, with the reason."""
    path = FOLDER / "untested.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#"))
