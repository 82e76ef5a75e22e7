"""The page about a disagreement: a small kernel, both values, the first statement that differs, the clauses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from conformance.generate import Program
from conformance.referee.compare import DIFFER, Verdict, compare
from conformance.referee.first import First, first_difference
from conformance.referee.implementations import Implementation
from conformance.referee.shrink import shrink

CLAUSE = re.compile(r"^\[([A-Z]+-\S+)\]")


def pages_folder() -> Path:
    """Where pages go: conformance/found of a checkout, or `found` in the current folder if the suite is installed."""
    own = Path(__file__).resolve().parents[1] / "found"
    return own if own.is_dir() else Path("found")


def clauses_of(ops: tuple[str, ...]) -> list[str]:
    """Ids of the clauses of these ops, from their docstrings, of which spec/operations.md is made."""
    import cutile

    docs = [getattr(cutile, o, None).__doc__ or "" for o in ops if hasattr(cutile, o)]
    return [m[1] for doc in docs for line in doc.splitlines() if (m := CLAUSE.match(line.strip()))]


def like(verdict: Verdict) -> Callable[[Verdict], bool]:
    """Whether a verdict is of the same kind: a wrong value that became a refusal, or another refusal, is not."""
    def test(v: Verdict) -> bool:
        cause = lambda d: d.split(":")[0]
        alike = v.kind == verdict.kind and bool(v.array) == bool(verdict.array)
        return alike and cause(v.detail) == cause(verdict.detail)

    return test


def investigate(program: Program, first: Implementation, second: Implementation, verdict: Verdict,
                attempts: int = 400) -> tuple[Program, Verdict, First | None]:
    """The smallest program with the disagreement, its verdict, and the first value that differs."""
    alike = like(verdict)
    small = shrink(program, lambda p: alike(compare(p, first, second)), attempts)
    verdict = compare(small, first, second)
    found = None
    if verdict.kind == DIFFER and verdict.array:
        try:
            found = first_difference(small, first, second)
        except Exception as e:
            verdict.detail = f"recording the values failed: {e}"
    return small, verdict, found


def text(program: Program, verdict: Verdict, found: First | None, names: tuple[str, str]) -> str:
    """The text of the page."""
    out = [f"# Program {program.seed}: {names[0]} and {names[1]} differ", "", str(verdict), ""]
    if found is not None:
        out += [f"The first value that differs is `{found.variable}`, in block {found.block} of the grid "
                f"{program.grid}, assigned for the {found.round + 1}. time:", "", f"    {found.statement}", "",
                f"- {names[0]}: `{found.first.tolist()}`", f"- {names[1]}: `{found.second.tolist()}`", ""]
        clauses = clauses_of(found.ops)
        out += [f"Ops: {', '.join(found.ops)}. Clauses that name them: {', '.join(clauses) or 'none'}.", ""]
    return "\n".join([*out, "```python", program.source("cutile").rstrip(), "```", ""])


def file(folder: Path, page: str, seed: object, names: tuple[str, str]) -> Path:
    """Write a page. Gives its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'-'.join(re.sub(r'[^a-z0-9]+', '_', n.lower()) for n in names)}-{seed}.md"
    path.write_text(page)
    return path
