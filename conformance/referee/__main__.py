"""python -m conformance.referee --first A --second B: run programs on implementations and compare the results.

A and B are "reference" (the generator's own meanings), a name that the suite knows, package.module:Adapter, or
exported:API:FOLDER for programs that `python -m conformance.referee.export` wrote there. Several --second are
compared with the first in one run.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path

from conformance.generate import Options
from conformance.harness.known_differences import PROGRAMS, read
from conformance.referee.cases import pages_folder
from conformance.referee.compare import Verdict
from conformance.referee.implementations import implementation, known_as
from conformance.referee.judging import Investigator, Judge, Settings
from conformance.referee.sharding import CHUNK, Done, End, Lost, each
from conformance.referee.summary import LOST, Against, Summary


def main() -> int:
    given = arguments()
    options = Options(official=given.official, sm_100=not given.official)
    settings = Settings(given.first, tuple(given.second or ["reference"]), options)
    for name in {"reference", "cutile:interp"} & {settings.first, *settings.others}:
        implementation(name)  # loaded once for all processes; others might touch a GPU before the processes start
    seeds = range(given.seed, given.seed + given.count)
    against = [Against(name, read(known_as(name), PROGRAMS)) for name in settings.others]
    run = Summary(settings.first, against, given.jobs, seeds)
    judge(run, settings, given)
    run.stop()
    if given.report:
        run.write(given.report)  # written before the pages, which may take long
    investigate(run, settings, given)
    print("\n".join(run.lines()))
    if given.report:
        run.write(given.report)
    return int(run.wrong > 0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m conformance.referee", description=__doc__)
    parser.add_argument("--first", default="cutile:interp")
    parser.add_argument("--second", action="append", help='"reference" if there is none')
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--official", action="store_true", help="leave out what the official implementation lacks")
    parser.add_argument("--stop", type=int, default=5, help="end after so many disagreements; 0: never")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--chunk", type=int, default=CHUNK, help="programs of a process")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one program")
    parser.add_argument("--seconds", type=float, help="begin no more programs after so many")
    parser.add_argument("--report", type=Path, help="a JSON file for all that was found")
    parser.add_argument("--cases", type=Path, default=pages_folder(), metavar="FOLDER",
                        help="where pages about disagreements go (default: conformance/found of a checkout; where the "
                             "suite is installed, ./found)")
    parser.add_argument("--pages", type=int, default=20, help="how many pages at most")
    parser.add_argument("--no-shrink", action="store_true")
    return parser.parse_args()


def judge(run: Summary, settings: Settings, given: argparse.Namespace) -> None:
    """Run the programs. Disagreements are printed as they come; progress goes to stderr."""
    said = time.monotonic()
    for found in each(partial(Judge, settings), run.seeds, jobs=given.jobs, chunk=given.chunk, limit=given.limit,
                      seconds=given.seconds):
        if isinstance(found, End):
            run.tally.add(found.value)
            run.memory = max(run.memory, found.memory)
            continue
        run.ran += 1
        verdicts = found.value if isinstance(found, Done) else [Verdict(LOST, detail=found.why)] * len(run.against)
        for a, v in zip(run.against, verdicts, strict=True):
            if a.add(found.seed, v):
                print(f"program {found.seed}: {v}" + f" [{a.name}]" * (len(run.against) > 1), flush=True)
        if given.stop and run.wrong >= given.stop:
            return
        if time.monotonic() - said > 10:
            said = time.monotonic()
            print(run.progress(), file=sys.stderr, flush=True)


def investigate(run: Summary, settings: Settings, given: argparse.Namespace) -> None:
    """Write a page about each disagreement, in processes."""
    for a in run.against:
        wrong = {s: v for s, v in sorted(a.wrong.items())[:given.pages] if v.kind != LOST}
        two = Settings(settings.first, (a.name,), settings.options)
        make = partial(Investigator, two, given.cases, wrong, not given.no_shrink)
        for found in each(make, list(wrong), jobs=given.jobs, chunk=1, limit=300):
            if isinstance(found, Done):
                a.pages[found.seed] = found.value
                print(f"  {found.value}", flush=True)
            elif isinstance(found, Lost):
                print(f"  no page about program {found.seed}: {found.why}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
