"""python -m tests.digests record | compare | diff OLD NEW: digests of the bytecode of every conformance program.

  record          write tests/data/digests.json
  compare         name the tests that compile to something else than what is recorded there; exit status 1 if any does
  diff OLD NEW    two files that --details wrote: launch by launch

  --details FILE  also write a digest for every launch and target
  --jobs N        processes (2)
  --files F …     only these files of the suite, as test_casts.py; `programs.py` has the generated programs
  --kinds K …     what compare looks at: bytecode, positions, messages (all)

Recording or comparing all takes three quarters of an hour of processor time, half of that on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.digests import store

ROOT = Path(__file__).parents[2]
SUITE, GENERATED = ROOT / "conformance", Path(__file__).parent / "programs.py"
ADAPTER = "tests.digests.adapter:Recording"


def measured(files: list[str], jobs: int = 1, targets: str | None = None) -> store.Found:
    """Run the suite, or some of its files, and give what was compiled. SystemExit if a test fails.

    Each file has a process of its own: what a test compiles may depend on what ran before it, as results are cached.
    """
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CUTILE_", "PYTEST_"))}
        env |= {"CONFORMANCE_IMPL": ADAPTER, "DIGESTS_PARTS": folder, "OPENBLAS_NUM_THREADS": "1"}
        if targets is not None:
            env["DIGESTS_TARGETS"] = targets
        failed = [said for said in pool.map(partial(_run, env), paths(files)) if said]
        if failed:
            raise SystemExit("\n".join([*failed, "no digests, as tests fail"]))
        return store.merged(Path(folder).glob("*.json"))


def _run(env: dict[str, str], path: Path) -> str | None:
    """Record a file; what pytest says if that fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.digests.plugin", "-p", "no:cacheprovider",
               "--tb=short", str(path)]
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    return done.stdout if done.returncode else None


def paths(files: list[str]) -> list[Path]:
    """The files by their names, or all, those first that take long."""
    found = {p.name: p for p in [GENERATED, *sorted(SUITE.rglob("test_*.py"), key=lambda p: -p.stat().st_size)]}
    if unknown := set(files) - set(found):
        raise SystemExit(f"the suite has no {', '.join(sorted(unknown))}")
    return [found[name] for name in files or found]


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.digests", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare", "diff"])
    parser.add_argument("old_new", nargs="*", type=Path)
    parser.add_argument("--details", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--files", nargs="+", default=[])
    parser.add_argument("--kinds", nargs="+", choices=store.KINDS, default=list(store.KINDS))
    given = parser.parse_args()
    if given.action == "diff":
        old, new = (json.loads(p.read_text()) for p in given.old_new)
        lines = list(store.details_that_differ(old, new))
        print("\n".join(lines) or "equal")
        return int(bool(lines))
    found = measured(given.files, given.jobs)
    if given.details:
        store.write(given.details, found)
    new = store.summary(found)
    old = json.loads(store.KEPT.read_text()) if store.KEPT.is_file() else {}
    if given.action == "record":
        store.write(store.KEPT, {**old, **new} if given.files else new)
        print(said(new))
        return 0
    return compared({f: v for f, v in old.items() if f in new} if given.files else old, new, given.kinds)


def said(kept: dict) -> str:
    tests = sum(len(of["tests"]) for of in kept.values())
    return f"{len(kept)} files, {tests} tests: " + ", ".join(f"{k} {store.whole(kept, k)}" for k in store.KINDS)


def compared(old: dict, new: dict, kinds: list[str]) -> int:
    differing = store.tests_that_differ(old, new)
    looked_at = {k: tests for k, tests in differing.items() if k in (*kinds, "new", "gone")}
    columns: dict[str, list[str]] = {}
    for file, column in store.columns_that_differ(old, new):
        columns.setdefault(file, []).append(column)
    for kind, tests in looked_at.items():
        for test in tests:
            print(f"{kind:9} {test}")
    for file, names in columns.items():
        print(f"{file}: {', '.join(names)}")
    print(said(new))
    print(", ".join(f"{k}: {len(tests)} differ" if k in kinds else f"{k}: {len(tests)}"
                    for k, tests in looked_at.items()))
    return int(any(looked_at[k] for k in looked_at))


if __name__ == "__main__":
    raise SystemExit(main())
