"""python -m tests.conformance.seeded.run [--programs N] [NAME…]: how many seeded faults does the referee find?

Plants each fault in a copy of the tree, and runs programs there until one is judged wrong. Needs no GPU.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.conformance.seeded.faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[3]
PARTS = ("cutile", "conformance", "tests/tileir_eval")
WANTED = 18  # of 20


def plant(fault: Fault, tree: Path) -> None:
    """Plant the fault in a copy of the tree. ValueError unless its text occurs there exactly once."""
    path = tree / fault.file
    text = path.read_text()
    if text.count(fault.old) != 1:
        raise ValueError(f"{fault.name}: its text stands {text.count(fault.old)} times in {fault.file}")
    path.write_text(text.replace(fault.old, fault.new))


def judged(tree: Path, against: str, count: int, seed: int) -> tuple[int | None, str]:
    """The first program that is judged wrong in a tree, and the line that says so; without one, None and the last
    line.
    """
    env = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "conformance.referee", "--second", against, "--count", str(count),
               "--seed", str(seed), "--stop", "1", "--no-shrink", "--cases", str(tree / "cases")]
    out = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True)
    found = re.search(r"^program (\d+): (.*)$", out.stdout, re.M)
    if found:
        return int(found[1]), found[2]
    if out.returncode:
        raise RuntimeError(f"the referee failed:\n{out.stderr[-2000:]}")
    return None, out.stdout.strip().splitlines()[0]


def hunt(fault: Fault, right: Path, programs: int, seed: int) -> tuple[int | None, str]:
    """After how many programs the fault is found: by the first program that is wrong with the fault and right without
    it.
    """
    with tempfile.TemporaryDirectory() as folder:
        wrong = Path(folder) / "tree"
        shutil.copytree(right, wrong)
        plant(fault, wrong)
        start, end = seed, seed + programs
        while start < end:
            found, why = judged(wrong, fault.against, end - start, start)
            if found is None:
                return None, why
            if judged(right, fault.against, 1, found)[0] is None:
                return found - seed + 1, why
            start = found + 1
    return None, "what was found is wrong without the fault too"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("names", nargs="*", help="parts of names of faults")
    given = parser.parse_args()
    chosen = [f for f in FAULTS if not given.names or any(n in f.name for n in given.names)]
    hits = 0
    with tempfile.TemporaryDirectory() as folder:
        right = Path(folder)
        for part in PARTS:
            shutil.copytree(ROOT / part, right / part, ignore=shutil.ignore_patterns("__pycache__"))
        for fault in chosen:
            start = time.perf_counter()
            after, why = hunt(fault, right, given.programs, given.seed)
            hits += after is not None
            verdict = f"found after {after} programs" if after else "not found"
            seconds = time.perf_counter() - start
            print(f"{fault.part:18} {fault.name}: {verdict} in {seconds:.0f} s; {why[:110]}", flush=True)
    print(f"{hits} of {len(chosen)} found within {given.programs} programs each")
    return 0 if hits >= min(WANTED, len(chosen)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
