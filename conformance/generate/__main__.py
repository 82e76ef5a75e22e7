"""python -m conformance.generate [--count N] [--first SEED] [--print]: what programs there are, and how often."""

from __future__ import annotations

import argparse
import time

from conformance.generate import Options, generate
from conformance.generate.counts import Counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--official", action="store_true", help="leave out what the official implementation lacks")
    parser.add_argument("--print", action="store_true", help="print the programs")
    parser.add_argument("--module", default="cutile", help="what the printed programs import as ct")
    given = parser.parse_args()
    options, counts, start = Options(official=given.official, sm_100=not given.official), Counts(), time.perf_counter()
    for seed in range(given.first, given.first + given.count):
        program = generate(seed, options)
        if given.print:
            print(program.source(given.module))
        counts.add(program)
    seconds = time.perf_counter() - start
    print(counts)
    print(f"{given.count / seconds:.0f} programs a second")


if __name__ == "__main__":
    main()
