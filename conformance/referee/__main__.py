"""python -m conformance.referee --first A --second B: programs run on two implementations, and what became of them.

A and B are "reference" (the generator's own meanings), a name that the suite knows, or package.module:Adapter.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

from conformance.differences import read
from conformance.generate import Options, generate
from conformance.referee.cases import FOUND, file, investigate, text
from conformance.referee.compare import DIFFER, INCONCLUSIVE, REFUSED, compare
from conformance.referee.implementations import implementation


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", default="cutile:interp")
    parser.add_argument("--second", default="reference")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--official", action="store_true", help="leave out what the official implementation lacks")
    parser.add_argument("--stop", type=int, default=5, help="end after so many disagreements; 0: never")
    parser.add_argument("--cases", type=Path, default=FOUND, help="the folder for cases")
    parser.add_argument("--no-shrink", action="store_true")
    given = parser.parse_args()
    first, second = implementation(given.first), implementation(given.second)
    options, known = Options(official=given.official, sm_100=not given.official), read(given.second)
    kinds, start, generating = Counter(), time.perf_counter(), 0.0
    for seed in range(given.seed, given.seed + given.count):
        before = time.perf_counter()
        program = generate(seed, options)
        generating += time.perf_counter() - before
        verdict = compare(program, first, second)
        explained = verdict.kind in (DIFFER, REFUSED) and known.explains(f"program {seed}: {verdict}")
        kinds["known" if explained else verdict.kind] += 1
        if verdict.kind not in (DIFFER, REFUSED) or explained:
            continue
        print(f"program {seed}: {verdict}", flush=True)
        names = (first.name, second.name)
        small, verdict, found = (program, verdict, None) if given.no_shrink else investigate(
            program, first, second, verdict)
        print(f"  {file(given.cases, text(small, verdict, found, names), seed, names)}", flush=True)
        if given.stop and kinds[DIFFER] + kinds[REFUSED] >= given.stop:
            break
    n, seconds = sum(kinds.values()), time.perf_counter() - start
    print(f"{n} programs on {first.name} and {second.name}: {', '.join(f'{k} {v}' for k, v in kinds.items())}")
    print(f"inconclusive {kinds[INCONCLUSIVE] / n:.2%}; {n / seconds:.1f} programs a second, "
          f"{n / max(generating, 1e-9):.0f} a second made")
    print(known.report())
    return 1 if kinds[DIFFER] + kinds[REFUSED] else 0


if __name__ == "__main__":
    raise SystemExit(main())
