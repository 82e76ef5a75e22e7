"""Known differences of an implementation: conformance/known/<name>.txt, one a line; every report counts them.

    test_casts.py::test_narrowing[e4m3-*] | saturates where it should not | CAST-7
    program *: differ: mine fails with OutOfLuck* | the assembler rejects cdiv of floats | ARITH-6.float

A line has a pattern for test ids (for a generated program: "program <seed>: <verdict>"), why the implementation
differs, and the clause or policy that says what is right. Patterns are those of fnmatch, except that brackets are
plain text. `#` begins a comment. Listed tests still run, and count as known instead of broken. A line begins a
section: `[launching]` tests that differ only where kernels are launched, `[exporting]` tests of export and
signatures, `[compiling]` tests that differ only where kernels are compiled and not launched (acceptance.py),
`[programs]` generated programs.
"""

from __future__ import annotations

import fnmatch
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "known"
LAUNCHING, EXPORTING, COMPILING, PROGRAMS = SECTIONS = ("[launching]", "[exporting]", "[compiling]", "[programs]")
TESTS = ""  # lines before any section


@dataclass(frozen=True)
class Difference:
    """A line of a list."""

    pattern: str
    reason: str
    says: str  # the clause or policy

    def covers(self, test: str) -> bool:
        return fnmatch.fnmatchcase(test, self.pattern.replace("[", "[[]"))


@dataclass
class Known:
    """The list of one implementation, and how often each line explained something."""

    name: str
    lines: list[Difference] = field(default_factory=list)
    seen: Counter = field(default_factory=Counter)

    def find(self, test: str) -> Difference | None:
        """The line that covers a test."""
        return next((d for d in self.lines if d.covers(test)), None)

    def explains(self, test: str) -> Difference | None:
        """The line that covers a differing test; it counts as met."""
        found = self.find(test)
        if found is not None:
            self.seen[found] += 1
        return found

    def report(self) -> str:
        unused = [d.pattern for d in self.lines if not self.seen[d]]
        tail = f"; not met: {', '.join(unused)}" if unused else ""
        return f"known differences of {self.name}: {len(self.lines)} listed, {self.seen.total()} met{tail}"


def read(name: str, *sections: str, folder: Path = FOLDER) -> Known:
    """The named sections of an implementation's list, or all of them; empty if there is no file.

    ValueError for a line that is not a section and has not three parts.
    """
    stem = name.rpartition(":")[2] if name.startswith("cutile:") else name
    path = folder / f"{stem.split(':')[0]}.txt"
    known, section = Known(name), TESTS
    if not path.is_file():
        return known
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line.strip() in SECTIONS:
            section = line.strip()
            continue
        parts = [p.strip() for p in line.split("|")]
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"{path.name}:{number}: expected `pattern | reason | clause or policy`, got {line!r}")
        if not sections or section in sections:
            known.lines.append(Difference(*parts))
    return known
