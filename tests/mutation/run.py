"""Does the conformance suite notice when the code means something else? Draws mutants, runs tests on each, reports.

    python -m tests.mutation.run FOLDER --jobs 8                           # all groups; goes on where it stopped
    python -m tests.mutation.run FOLDER --groups passes --only 17 40       # some, by number
    python -m tests.mutation.run FOLDER --table                            # the figures of what has run

FOLDER gets what each test executes (lines-…, recorded first if missing) and the verdicts (GROUP.jsonl). Judges try
the mutants of a group one after another, until one kills: the suite and the referee's programs on the interpreter; all
operations of Tile IR as NVIDIA's disassembler reads them; the suite and the programs through bytecode, through bytecode
without checks of bounds, after each pass, through older bytecode that begins reductions with their identities.

Mutants that equivalent.txt lists are drawn and run like others but not counted, and as many more are drawn. If a test
kills one of them, the list is wrong.

These kill a mutant: a test that fails or is skipped, an error while tests are collected, the end of the process, and
taking far too long. Only tests that execute the mutated statement can notice it, so only those run, or all tests if
the statement runs before the tests. Tests related to rare words of the mutated code come first, spread over files.
Needs Python 3.12, os.fork, and `tileirdisasm` (TILEIRDISASM says where).
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes  # noqa: F401  (what forked processes need is imported once)
import mpmath  # noqa: F401
import numpy  # noqa: F401
import pytest

from tests.mutation import mutant_process
from tests.mutation.lines import Coverage, record
from tests.mutation.processes import apart, finish, shared_out
from tests.mutation.sites import GROUPS, ROOT, Mutant, draw, why_equivalent

SEED, COUNT = 3, 300
FIRST = 24  # so many tests run before the others are collected
TESTS = ("conformance", "tests/mutation/generated_programs.py")


@dataclass(frozen=True)
class Judge:
    """An implementation on which the tests run, and the groups whose mutants it tries; or tests of their own."""

    name: str
    groups: tuple[str, ...]
    tests: tuple[str, ...] = ()

    def lines(self, folder: Path) -> Path:
        return folder / f"lines-{self.name.rpartition(':')[2].replace(' ', '-')}"

    def arguments(self, tests: Sequence[str]) -> list[str]:
        """What pytest gets, to run tests on this implementation."""
        return list(self.tests) or ["--impl", self.name, *tests]


JUDGES = (
    Judge("cutile:interp", ("ops", "front")),
    Judge("each operation, disassembled", ("tileir",), ("tests/gpu/tileir/test_operations.py",)),
    Judge("tests.tileir_eval.adapter:Disassembled", ("front", "passes", "tileir")),
    Judge("tests.tileir_eval.adapter:Unchecked", ("passes",)),
    Judge("tests.passes.adapter:EachPass", ("passes",)),
    Judge("tests.tileir_eval.adapter:Oldest", ("tileir",)),
)


@dataclass
class Drawn:
    """A mutant and the judges' verdicts on it, which are rows of its group's file."""

    group: str
    number: int
    mutant: Mutant
    rows: list[dict] = field(default_factory=list)

    @property
    def killer(self) -> str | None:
        return next((r["killer"] for r in self.rows if r["killer"]), None)

    @property
    def judged(self) -> bool:
        """Killed, or tried by all judges of its group."""
        return bool(self.killer) or all(self.tried_by(j) for j in JUDGES if self.group in j.groups)

    def tried_by(self, judge: Judge) -> bool:
        return any(r["judge"] == judge.name for r in self.rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what tests execute, and verdicts; what it has is kept")
    parser.add_argument("--groups", nargs="*", default=list(GROUPS), choices=GROUPS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT, help="how many of each group, equivalent ones not counted")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants")
    parser.add_argument("--tests", nargs="*", default=TESTS, metavar="FILE", help="what judges (with another FOLDER)")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds of tests for each (default: all)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="give no verdict after so many seconds")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()
    deadline, folder = time.monotonic() + args.seconds, args.folder.resolve()
    os.chdir(ROOT)
    for judge in () if args.table else JUDGES:
        drawn = [d for g in args.groups if g in judge.groups for d in read(folder, g, args.seed, args.count)]
        todo = [d for d in drawn if not d.judged and not d.tried_by(judge)
                and (args.only is None or d.number in args.only)]
        if todo and time.monotonic() < deadline:
            trial = Trial(judge, folder, args.tests, args.budget, deadline, args.jobs)
            if not judge.lines(folder).is_dir():
                apart(trial.record)
            apart(functools.partial(trial.run, todo))
    for group in args.groups:
        print(f"{group}:\n{table(read(folder, group, args.seed, args.count))}\n")


def read(folder: Path, group: str, seed: int, count: int) -> list[Drawn]:
    """The drawn mutants of a group, each with the last verdict of each judge. A verdict on a changed line does not
    count.
    """
    out = folder / f"{group}.jsonl"
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    found = {(*(r[k] for k in IDENTITY), r["judge"]): r for r in rows}
    return [Drawn(group, i, m, [found[k] for j in JUDGES if (k := (m.path, m.code, m.what, j.name)) in found])
            for i, m in enumerate(draw(GROUPS[group], seed, count))]


IDENTITY = ("path", "code", "what")  # a mutant's, wherever its line stands
Killer = Callable[[Mutant | None, list[str], float], str | None]


@dataclass
class Trial:
    """A judge trying mutants."""

    judge: Judge
    folder: Path
    tests: Sequence[str]
    budget: float
    deadline: float
    jobs: int

    def record(self) -> None:
        """Record what the tests execute, if that is missing."""
        record(self.judge.arguments(self.tests), self.judge.lines(self.folder), self.jobs)

    def run(self, todo: list[Drawn]) -> None:
        """Try these mutants: those that take long first, or last if there is a deadline."""
        self.coverage = Coverage(self.judge.lines(self.folder), [d.mutant for d in todo])
        tests = {id(d): self.coverage.needed(d.mutant) for d in todo}
        todo = sorted(todo, key=lambda d: self.coverage.limit(tests[id(d)]), reverse=math.isinf(self.deadline))
        early = [d for d in todo if self.coverage.early(d.mutant)]
        late = [d for d in todo if not self.coverage.early(d.mutant)]
        killer = functools.partial(mutant_process.before_tests, arguments=self.judge.arguments(()))
        first = shared_out(early, self.jobs, lambda d: self.verdict(d, killer))
        if self.jobs == 1:
            finish(first)
            first = []
        code = pytest.main([*self.judge.arguments(self.tests), "-q", "-s", "-p", "no:cacheprovider"],
                           plugins=[mutant_process.Collected(lambda c: finish(shared_out(
                               late, self.jobs, lambda d: self.verdict(d, c.killer))))])
        finish(first)
        if code:
            raise RuntimeError(f"pytest ended with {code}")

    def verdict(self, d: Drawn, killer: Killer) -> None:
        """Try a mutant and write the verdict: the test that killed it, if any, how many tests ran at most, how many
        more there are, and the seconds.

        The first tests run alone, since collecting only theirs takes less time. No more tests begin once those that
        ran should have taken `budget` seconds. After the deadline there is no verdict.
        """
        began = time.monotonic()
        tests = self.coverage.ordered(d.mutant)
        some = list(self.coverage.within(tests, self.budget))
        found = None
        for part in (some[:FIRST], some[FIRST:]):
            while part:
                if (left := self.deadline - time.monotonic()) <= 0:
                    return
                limit = self.coverage.limit(part)
                found = killer(d.mutant, part, min(limit, left))
                if found == mutant_process.TIME and left < limit:
                    return
                if found not in part or self.passes(found, killer):
                    break
                part.remove(found)
                found = None
            if found:
                break
        row = {**{k: getattr(d.mutant, k) for k in IDENTITY}, "judge": self.judge.name, "killer": found,
               "tests": len(some), "left": len(tests) - len(some), "seconds": round(time.monotonic() - began, 1)}
        with (self.folder / f"{d.group}.jsonl").open("a") as f:
            f.write(json.dumps(row, ensure_ascii=False) + "\n")
        said = "killed" if found else "SURVIVED"
        print(f"{d.group} {d.number:4} {said} {row['seconds']:6.1f} s  {d.mutant}", flush=True)


    def passes(self, test: str, killer: Killer) -> bool:
        """Whether the test passes without a mutant."""
        if test not in self.coverage.recorded and killer(None, [test], self.coverage.limit([test])) is None:
            self.coverage.recorded.add(test)
        return test in self.coverage.recorded


def table(drawn: Iterable[Drawn]) -> str:
    """The table of kinds and verdicts of the counted mutants, the survivors, and lines about the others."""
    judged = [d for d in drawn if d.judged]
    counted = [d for d in judged if why_equivalent(d.mutant) is None]
    listed = [d for d in judged if why_equivalent(d.mutant) is not None]
    lines = [f"{'kind':12} count  killed"]
    for kind in (*sorted({d.mutant.kind for d in counted}), "all"):
        of = [d for d in counted if kind in (d.mutant.kind, "all")]
        lines.append(f"{kind:12} {len(of):5} {sum(bool(d.killer) for d in of):7}")
    wrong = [d for d in listed if d.killer]
    lines.append(f"and {len(listed)} equivalent ones, {len(wrong)} of them killed")
    lines += [f"{d.number:4} killed although listed as equivalent, by {d.killer}: {d.mutant}" for d in wrong]
    for d in counted:
        if not d.killer:
            ran, left = (sum(r[k] for r in d.rows) for k in ("tests", "left"))
            lines.append(f"{d.number:4} survived {ran} tests ({left} left out): {d.mutant}\n     {d.mutant.code}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
