"""Do two implementations accept and refuse the same programs?

    python -m conformance.acceptance [--report FOLDER] [what pytest takes: files, -k, -n]

The whole suite is loaded twice, with the adapters of `adapters/acceptance.py`: for cutile, and for the official
implementation (`pip install cuda-tile==1.7.0`; it type-checks without a GPU). Each kernel of each test is compiled for
the arguments that the test gives it. Programs on which the two differ must be listed in `known/cuda.tile.txt`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from conformance.harness import known_differences

ROOT = Path(__file__).resolve().parent.parent
OURS, OFFICIAL = "cutile:acceptance", "cuda.tile:acceptance"


@dataclass(frozen=True)
class Difference:
    """A program on which the verdicts differ: the `number`-th kernel that a test compiles."""

    test: str
    number: int
    arguments: tuple[str, ...]
    ours: str
    official: str

    @property
    def accepted_by(self) -> str:
        return "cutile" if self.ours == "accepted" else "cuda.tile"


@dataclass
class Comparison:
    """Counts of compared programs, and the differences."""

    programs: int = 0
    not_reached: int = 0
    differences: list[Difference] = field(default_factory=list)
    refusals: Counter = field(default_factory=Counter)  # (our error class, the other's) where both refuse


def record(impl: str, pytest_arguments: list[str]) -> dict[str, list[dict[str, Any]]]:
    """The verdicts of an implementation, by test."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdicts.jsonl"
        path.touch()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *with_files(pytest_arguments), "--impl", impl, "--assert=plain",
             "-p", "conformance.harness.verdict_plugin", "-p", "no:cacheprovider"],
            cwd=ROOT, env={**os.environ, "CONFORMANCE_VERDICTS": str(path)}, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{done.stdout[-4000:]}{done.stderr[-4000:]}\nthe suite could not be run with {impl}")
        return {t["test"]: t["verdicts"] for t in map(json.loads, path.read_text().splitlines())}


def with_files(pytest_arguments: list[str]) -> list[str]:
    """The arguments, after the whole suite if they name no file of it."""
    named = any((ROOT / a.partition("::")[0]).exists() for a in pytest_arguments)
    return pytest_arguments if named else ["conformance", *pytest_arguments]


def compare(ours: dict[str, list], official: dict[str, list]) -> Comparison:
    """Compare program by program. Where only one implementation went on with a test, its further programs count as
    not reached.
    """
    out = Comparison()
    for test, mine in ours.items():
        others = official.get(test, [])
        out.not_reached += abs(len(mine) - len(others))
        for number, (a, b) in enumerate(zip(mine, others)):
            if a["arguments"] != b["arguments"]:
                out.not_reached += 1
                continue
            out.programs += 1
            if a["verdict"] != b["verdict"]:
                out.differences.append(Difference(test, number, tuple(a["arguments"]), _said(a), _said(b)))
            elif a["verdict"] == "refused":
                out.refusals[a["error"], b["error"]] += 1
    return out


def _said(verdict: dict[str, Any]) -> str:
    return verdict["verdict"] if verdict["verdict"] == "accepted" else f"{verdict['error']}: {verdict['message']}"


def report(c: Comparison, known: known_differences.Known) -> Iterator[str]:
    """The lines to print; the last ones are the differences that are not listed."""
    lines = {d: known.explains(_plain(d.test)) for d in c.differences}
    yield f"{c.programs} programs compared, {c.programs - len(lines)} with the same verdict, {len(lines)} differ; " \
          f"{c.not_reached} not reached"
    yield f"refused by both: {c.refusals.total()}, with the same class " \
          f"{sum(n for (a, b), n in c.refusals.items() if a == b)}"
    yield known.report()
    for line in known.lines:
        where = [d for d, known_as in lines.items() if known_as is line]
        if not where:
            continue
        by = " and ".join(sorted({d.accepted_by for d in where}))
        yield f"{len(where):>6} accepted by {by:9} {line.says:8} {line.reason}"
    for d in unlisted(c, known):
        yield f"\nnot listed: {d.test} #{d.number} ({', '.join(d.arguments)})"
        yield f"  cutile:    {d.ours}"
        yield f"  cuda.tile: {d.official}"


def unlisted(c: Comparison, known: known_differences.Known) -> list[Difference]:
    """The differences that the list of known ones does not explain."""
    return [d for d in c.differences if known.explains(_plain(d.test)) is None]


def _plain(test: str) -> str:
    """A test's id without its folder, as in the list."""
    return test.removeprefix("conformance/")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance.acceptance", description=__doc__.split("\n")[0])
    parser.add_argument("--report", metavar="FOLDER", help="write acceptance.json there")
    options, pytest_arguments = parser.parse_known_args()
    c = compare(*(record(impl, pytest_arguments) for impl in (OURS, OFFICIAL)))
    known = known_differences.read("cuda.tile", known_differences.TESTS, known_differences.COMPILING)
    print("\n".join(report(c, known)))
    if options.report:
        folder = Path(options.report)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [asdict(d) for d in c.differences]
        text = json.dumps({"programs": c.programs, "not_reached": c.not_reached, "differences": rows}, indent=1)
        (folder / "acceptance.json").write_text(text + "\n")
    return bool(unlisted(c, known))


if __name__ == "__main__":
    raise SystemExit(main())
