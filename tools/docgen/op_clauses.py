"""The clauses that the docstrings of ops state, by id."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from cutile.ops._op import OpDef, meaning_doc

_CLAUSE = re.compile(r"^\[([A-Z]+-?\d*(?:\.[\w.+-]+)*)\]\s+(.*)$")


def parse_clauses(doc: str) -> dict[str, str]:
    """Clauses of a docstring: lines that begin with `[ID]`, continued by lines indented deeper."""
    found: dict[str, str] = {}
    current = None
    for line in inspect.cleandoc(doc).splitlines():
        if m := _CLAUSE.match(line):
            current = m[1]
            assert current not in found, f"clause {current} stands twice"
            found[current] = m[2]
        elif current and line.startswith("  "):
            found[current] += " " + line.strip()
        else:
            current = None
    return found


def without_clauses(doc: str) -> Iterator[str]:
    """The lines of a docstring outside its clauses."""
    inside = False
    for line in inspect.cleandoc(doc).splitlines():
        inside = line.startswith("[") and "]  " in line or inside and line.startswith("  ")
        if not inside:
            yield line


def sections(doc: str) -> dict[str, str]:
    """The sections of a docstring in NumPy's form, without clauses, by title; the title of what comes first is ""."""
    text = "\n".join(without_clauses(doc)).strip()
    first, *rest = re.split(r"^(\w+)\n-+$\n?", text, flags=re.M)
    found = {"": first, **dict(zip(rest[::2], rest[1::2], strict=True))}
    return {title: body.strip() for title, body in found.items() if body.strip()}


def prose(doc: str) -> str:
    """A docstring without clauses, errors and examples."""
    first, *rest = sections(doc).items() or [("", "")]
    return "\n\n".join([first[1], *(f"{title}\n{'-' * len(title)}\n{body}" for title, body in rest
                                    if title not in ("Raises", "Notes", "Examples"))])


def clauses(o: OpDef) -> dict[str, str]:
    """The clauses of an op."""
    return parse_clauses(meaning_doc(o) or "")
