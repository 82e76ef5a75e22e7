"""Does the conformance suite notice when an op means something else? Draws mutants, runs the suite on each, reports.

    MUTATION_LINES=lines.json pytest conformance -p tests.mutation.lines     # once: what executes which line
    python -m tests.mutation.run lines.json out.jsonl                        # all; goes on where it stopped
    python -m tests.mutation.run lines.json again.jsonl --only 17 40         # some, by number

A mutant is killed by a test that fails, by an error while tests are collected, or by taking far too long. Only tests
that execute the mutated statement can notice it, so only those run, cheap and different ones first; all tests for a
mutant of what runs at import. Needs Python 3.12 and os.fork.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import ml_dtypes  # noqa: F401  (what forked processes need is imported once)
import mpmath  # noqa: F401
import numpy  # noqa: F401
import pytest

from tests.mutation import running
from tests.mutation.names import lines_that_mention
from tests.mutation.sites import ROOT, Mutant, draw

SEED, COUNT = 3, 300
PATIENCE, GRACE = 6, 60.0  # a run may take so many times as long as it should, and so many seconds more


class Coverage:
    """What lines.py has recorded."""

    def __init__(self, path: Path):
        data = json.loads(path.read_text())
        self.seconds: dict[str, float] = data["tests"]
        self.ids = list(self.seconds)
        self.lines: dict[str, dict[str, list[int]]] = data["lines"]

    def of(self, m: Mutant) -> list[str]:
        """The tests that execute the mutated statement, or what is made of it at import."""
        lines = {(m.path, n) for n in m.lines}
        if m.at_import:
            lines |= lines_that_mention(m.path, m.lines)
        return self.ordered({self.ids[t] for path, n in lines for t in self.lines.get(path, {}).get(str(n), ())})

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
        tests += coverage.ordered(set(coverage.ids) - set(tests))
    some = list(coverage.within(tests, budget))
    found = killer(m, some, coverage.limit(some))
    took = round(time.monotonic() - began, 1)
    return {"killer": found, "tests": len(some), "left": len(tests) - len(some), "seconds": took}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lines", type=Path, help="what lines.py has written")
    parser.add_argument("out", type=Path, help="verdicts, one JSON object a line; those that it has are kept")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds of tests for each (default: all)")
    args = parser.parse_args()
    lines, out = args.lines.resolve(), args.out.resolve()
    os.chdir(ROOT)
    coverage = Coverage(lines)
    done = {r["number"] for r in results(out)}
    todo = [(i, m) for i, m in enumerate(draw(args.seed, args.count))
            if i not in done and (args.only is None or i in args.only)]

    def judge(mutants: list[tuple[int, Mutant]], killer: Callable, all_tests: bool) -> None:
        for number, m in mutants:
            r = {"number": number, "mutant": str(m), "kind": m.kind,
                 **verdict(m, coverage, killer, args.budget, all_tests)}
            with out.open("a") as f:
                f.write(json.dumps(r, ensure_ascii=False) + "\n")
            print(f"{number:4} {'killed' if r['killer'] else 'SURVIVED'} {r['seconds']:6.1f} s  {m}", flush=True)

    def inside(m: Mutant) -> bool:
        return not m.at_import and bool(coverage.of(m))  # a function may be called at import only

    judge([(i, m) for i, m in todo if not inside(m)], running.at_import, all_tests=True)
    functions = [(i, m) for i, m in todo if inside(m)]
    pytest.main(["conformance", "-q", "-s", "-p", "no:cacheprovider"],
                plugins=[running.Collected(lambda c: judge(functions, c.killer, all_tests=False))])
    print(table(results(out)))


def results(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(rows: list[dict]) -> str:
    """Kind × verdict, and the survivors."""
    lines = [f"{'kind':12} drawn  killed"]
    for kind in (*sorted({r["kind"] for r in rows}), "all"):
        of = [r for r in rows if kind in (r["kind"], "all")]
        lines.append(f"{kind:12} {len(of):5} {sum(bool(r['killer']) for r in of):7}")
    lines += [f"{r['number']:4} survived {r['tests']} tests ({r['left']} left out): {r['mutant']}"
              for r in rows if not r["killer"]]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
