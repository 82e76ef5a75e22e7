"""Generate programs and count what occurs in them: ops, ops x dtypes, statements.

Prints a summary, compared with the counts that 100,000 programs must have, scaled to the number of programs, and with
at least one of everything (so a thousand programs fall short). `--details` lists all that falls short, `--report FILE`
writes all counts as JSON, and `--merge` adds such files up. The exit status is 1 if anything falls short. `--print`
prints the programs themselves.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from conformance.generate import Options, generate
from conformance.generate.counts import Counts


def counted(first: int, count: int, options: Options) -> Counts:
    counts = Counts()
    for seed in range(first, first + count):
        counts.add(generate(seed, options))
    return counts


def in_processes(first: int, count: int, options: Options, jobs: int) -> Counts:
    if jobs == 1:
        return counted(first, count, options)
    starts = [first + count * k // jobs for k in range(jobs + 1)]
    with ProcessPoolExecutor(jobs) as pool:
        parts = [pool.submit(counted, a, b - a, options) for a, b in zip(starts, starts[1:], strict=False)]
        return sum((p.result() for p in parts), Counts())


def main() -> int:
    parser = argparse.ArgumentParser("python -m conformance.generate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many programs (1000)")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first (0)")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--official", action="store_true", help="leave out what the official implementation lacks")
    parser.add_argument("--print", action="store_true", help="print the programs instead")
    parser.add_argument("--module", default="cutile", help="what the printed programs import as ct")
    parser.add_argument("--details", action="store_true", help="list everything that falls short")
    parser.add_argument("--report", type=Path, metavar="FILE", help="where to write the counts")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE", help="add up reports, and generate nothing")
    given = parser.parse_args()
    options = Options(official=given.official, sm_100=not given.official)
    if given.print:
        for seed in range(given.first, given.first + given.count):
            print(generate(seed, options).source(given.module))
        return 0
    start = time.perf_counter()
    if given.merge:
        counts = sum((Counts.of(json.loads(p.read_text())) for p in given.merge), Counts())
    else:
        counts = in_processes(given.first, given.count, options, given.jobs)
    seconds = time.perf_counter() - start
    print(counts.details() if given.details else counts)
    if not given.merge:
        print(f"{'speed':20}{given.count / seconds:.0f} programs a second")
    if given.report:
        given.report.write_text(json.dumps(counts.json()))
    return 1 if counts.lacking() else 0


if __name__ == "__main__":
    raise SystemExit(main())
