"""Does the conformance suite notice when an op means something else? Draws mutants, runs the suite on each, reports.

    MUTATION_LINES=lines pytest conformance -n 8 -p tests.mutation.lines     # once: what executes which line
    python -m tests.mutation.run lines out.jsonl --jobs 8                    # all; goes on where it stopped
    python -m tests.mutation.run lines again.jsonl --only 17 40              # some, by number
    python -m tests.mutation.run --table out.jsonl                           # the figures of what has run

Mutants that equivalent.txt lists are drawn and run like others but not counted, and as many more are drawn; that one is
killed is an error of the list.

A mutant is killed by a test that fails, by an error while tests are collected, or by taking far too long. Only tests
that execute the mutated statement can notice it, so only those run, cheap and different ones first; all tests for a
mutant of what runs at import. Needs Python 3.12 and os.fork.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (what forked processes need is imported once)
import mpmath  # noqa: F401
import numpy  # noqa: F401
import pytest

from tests.mutation import running
from tests.mutation.names import lines_that_mention
from tests.mutation.sites import ROOT, Mutant, draw, why_equivalent

SEED, COUNT = 3, 300
Numbered = tuple[int, Mutant]
PATIENCE, GRACE = 6, 60.0  # a run may take so many times as long as it should, and so many seconds more


class Coverage:
    """What lines.py has recorded, of all processes."""

    def __init__(self, folder: Path):
        self.seconds: dict[str, float] = {}
        self.tests: dict[tuple[str, int], set[str]] = defaultdict(set)
        for part in sorted(folder.glob("*.json")):
            data = json.loads(part.read_text())
            ids = list(data["tests"])
            self.seconds |= data["tests"]
            for path, lines in data["lines"].items():
                for number, positions in lines.items():
                    self.tests[path, int(number)].update(ids[p] for p in positions)
        if not self.seconds:
            raise SystemExit(f"no test is recorded in {folder}")

    def of(self, m: Mutant) -> list[str]:
        """The tests that execute the mutated statement, or what is made of it at import."""
        lines = {(m.path, n) for n in m.lines}
        if m.at_import:
            lines |= lines_that_mention(m.path, m.lines)
        return self.ordered(set().union(*(self.tests[line] for line in lines)))

    def ordered(self, tests: Iterable[str]) -> list[str]:
        """Cheap ones first, and one of each test function before the second of any."""
        rank: Counter[str] = Counter()
        keyed = []
        for t in sorted(tests, key=lambda t: (self.seconds[t], t)):
            function = t.partition("[")[0]
            keyed.append((rank[function], self.seconds[t], t))
            rank[function] += 1
        return [t for *_, t in sorted(keyed)]

    def within(self, tests: Iterable[str], budget: float) -> Iterator[str]:
        for t in tests:
            if budget <= 0:
                return
            budget -= self.seconds[t]
            yield t

    def limit(self, tests: list[str]) -> float:
        return GRACE + PATIENCE * sum(self.seconds[t] for t in tests)


def verdict(m: Mutant, coverage: Coverage, killer: Callable[[Mutant, list[str], float], str | None],
            budget: float, all_tests: bool) -> dict:
    """{"killer": test or None, "tests": how many ran at most, "left": how many more there are, "seconds": …}.

    No more tests are begun once those that ran should have taken `budget` seconds. `all_tests`: not only those that
    execute what is mutated.
    """
    began = time.monotonic()
    tests = coverage.of(m)
    if all_tests:
        tests += coverage.ordered(set(coverage.seconds) - set(tests))
    some = list(coverage.within(tests, budget))
    found = killer(m, some, coverage.limit(some))
    took = round(time.monotonic() - began, 1)
    return {"killer": found, "tests": len(some), "left": len(tests) - len(some), "seconds": took}


def shared_out(items: list, jobs: int, work: Callable[[Any], None]) -> list[int]:
    """Begin `work` on each item in that many forked processes, which take the next item when they are done with one.

    At most 16000 items. Returns the processes: `finish` them.
    """
    sys.stdout.flush()
    read, write = os.pipe()
    os.write(write, b"".join(i.to_bytes(4) for i in range(len(items))))
    os.close(write)
    pids = []
    for _ in range(min(jobs, len(items))):
        if pid := os.fork():
            pids.append(pid)
            continue
        try:
            while number := os.read(read, 4):
                work(items[int.from_bytes(number)])
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(read)
    return pids


def finish(pids: list[int]) -> None:
    statuses = [os.waitpid(pid, 0)[1] for pid in pids]
    if any(statuses):
        raise RuntimeError("a process of the tool failed, see above")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lines", type=Path, nargs="?", help="the folder that lines.py has filled")
    parser.add_argument("out", type=Path, help="verdicts, one JSON object a line; those that it has are kept")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT, help="how many, equivalent ones not counted")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds of tests for each (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()
    out = args.out.resolve()
    drawn = list(enumerate(draw(args.seed, args.count)))
    if not args.table:
        done = {number for number, *_ in judged(drawn, out)}
        todo = [(i, m) for i, m in drawn if i not in done and (args.only is None or i in args.only)]
        coverage = Coverage(args.lines.resolve())
        os.chdir(ROOT)
        run(todo, coverage, out, args.budget, args.jobs)
    print(table(judged(drawn, out)))


def run(todo: list[Numbered], coverage: Coverage, out: Path, budget: float, jobs: int) -> None:
    def judge(killer: Callable, all_tests: bool) -> Callable[[Numbered], None]:
        def one(numbered: Numbered) -> None:
            number, m = numbered
            r = {"number": number, "mutant": str(m), **verdict(m, coverage, killer, budget, all_tests)}
            with out.open("a") as f:
                f.write(json.dumps(r, ensure_ascii=False) + "\n")
            print(f"{number:4} {'killed' if r['killer'] else 'SURVIVED'} {r['seconds']:6.1f} s  {m}", flush=True)
        return one

    tests = {i: [] if m.at_import else coverage.of(m) for i, m in todo}  # a function may be called at import only
    first = shared_out([(i, m) for i, m in todo if not tests[i]], jobs, judge(running.at_import, all_tests=True))
    if jobs == 1:
        finish(first)
        first = []
    functions = sorted(((i, m) for i, m in todo if tests[i]), key=lambda n: -coverage.limit(tests[n[0]]))
    pytest.main(["conformance", "-q", "-s", "-p", "no:cacheprovider"], plugins=[running.Collected(
        lambda c: finish(shared_out(functions, jobs, judge(c.killer, all_tests=False))))])
    finish(first)


def judged(drawn: list[Numbered], out: Path) -> list[tuple[int, Mutant, dict]]:
    """The verdicts of these mutants, the last of each. One of what has changed since does not count."""
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    found = {r["number"]: r for r in rows}
    return [(i, m, found[i]) for i, m in drawn if i in found and found[i]["mutant"] == str(m)]


def table(verdicts: list[tuple[int, Mutant, dict]]) -> str:
    """Kind × verdict of those that count, the survivors, and what is to be said of the others."""
    counted = [v for v in verdicts if why_equivalent(v[1]) is None]
    listed = [v for v in verdicts if why_equivalent(v[1]) is not None]
    lines = [f"{'kind':12} count  killed"]
    for kind in (*sorted({m.kind for _, m, _ in counted}), "all"):
        of = [r for _, m, r in counted if kind in (m.kind, "all")]
        lines.append(f"{kind:12} {len(of):5} {sum(bool(r['killer']) for r in of):7}")
    wrong = [v for v in listed if v[2]["killer"]]
    lines.append(f"and {len(listed)} equivalent ones, {len(wrong)} of them killed")
    lines += [f"{i:4} killed although listed as equivalent, by {r['killer']}: {m}" for i, m, r in wrong]
    lines += [f"{i:4} survived {r['tests']} tests ({r['left']} left out): {m}\n     {m.code}"
              for i, m, r in counted if not r["killer"]]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
