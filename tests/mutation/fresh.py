"""Mutants that live ones have not killed, each imported from its text in a process of its own.

    python -m tests.mutation.fresh FOLDER --jobs 30 --seconds 120     # after `shards`, with its FOLDER
    python -m tests.mutation.fresh FOLDER --jobs 30 --suite           # the suite and the referee's programs alone
    python -m tests.mutation.fresh FOLDER --groups front --only 17 40

Whatever a table gives other code at import comes from the mutated text here, and so does what is read or made before
the first test. The processes fork from one that has imported what others wrote and nothing of this project, so an
import takes half a second. Each runs a few tests: those whose text has rare tokens of the mutated code, those of the
file that mirrors the mutated one (`tests/test_mirror.py` says which), and those that `shards` chose: tests named after
the mutated code, then tests that execute lines with its words, then tests that execute it. With --suite these are tests
of the suite and the referee's programs alone, if those of `shards` were, and then the files of the suite that are about
the mutated one (suite_files.py). Mutants of `passes` and `tileir` then run through bytecode, on all programs of the
referee if nothing else kills them: those of `passes` without checks of bounds where a launch may leave them out, those
of `tileir` if NVIDIA's disassembler reads it as we do. Before, mutants of INTERPRETED run on the interpreter.
FOLDER/import.jsonl gets the verdicts, which `shards --table` counts with the others.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.mutation import mutant_process
from tests.mutation.names import functions_by_word, tokens_of
from tests.mutation.processes import finish, shared_out
from tests.mutation.run import COUNT, SEED
from tests.mutation.sites import GROUPS, ROOT, Mutant, draw, why_equivalent
from tests.mutation.suite_files import files_about
from tests.test_mirror import TESTED_ELSEWHERE

STAGE, VERDICTS, NEAR = "import", "import.jsonl", "near-*.json"
MOST = 24  # test functions that are chosen by words, and tests that `shards` chooses
ANY = "conformance/test_programs.py"  # where nothing is chosen: importing may fail
RARE = 30  # a word that more test functions have is not rare
IMPLEMENTATION = "cutile:interp"
OF_SUITE = {"front": IMPLEMENTATION, "passes": "tests.tileir_eval.adapter:Unchecked",  # on which --suite runs
            "tileir": "tests.tileir_eval.adapter:Disassembled"}
#: files whose meaning the interpreter shows above all: how it runs blocks that wait, and what it is given of calls.
#: With --suite their mutants run there first.
INTERPRETED = {"cutile/analysis/spin_wait.py", "cutile/analysis/live.py", "cutile/passes/fma.py",
               "cutile/passes/flatten_frames.py", "cutile/passes/lift.py"}
WHOLE = {"front": (), "passes": ("tests/mutation/generated_programs.py",),  # with --suite, what runs after all others
         "tileir": ("tests/gpu/tileir/test_operations.py", "conformance/test_exported_functions.py",
                    "conformance/test_versions.py", "tests/mutation/generated_programs.py")}
FOLDERS = {"front": ("conformance", "tests/front"), "passes": ("conformance", "tests/passes", "tests/analysis"),
           "tileir": ("tests/gpu/tileir",)}


def mirror(path: str) -> list[str]:
    """The file of tests that mirrors a file of source."""
    module = path.removeprefix("cutile/").removesuffix(".py")
    folder, _, name = module.rpartition("/")
    tests = f"tests/{TESTED_ELSEWHERE[module][0]}" if module in TESTED_ELSEWHERE else f"tests/{folder}/test_{name}.py"
    return [tests] if (ROOT / tests).is_file() else []


def by_words(m: Mutant, folders: Sequence[str]) -> list[str]:
    """The test functions with rare tokens of the mutated code, those with the rarest words first."""
    files = [str(p.relative_to(ROOT)) for f in folders for p in sorted((ROOT / f).rglob("test_*.py"))]
    found = {w: [t for f in files for t in sorted(functions_by_word(f).get(w, ()))] for w in tokens_of(m)}
    rare = sorted((len(tests), w) for w, tests in found.items() if 0 < len(tests) <= RARE)
    return list(dict.fromkeys(t for _, w in rare for t in found[w]))[:MOST]


def chosen(m: Mutant, group: str, suite: bool, near: list[str]) -> list[str]:
    """The tests to run on a mutant, of the suite and the referee alone if so asked."""
    folders = ("conformance",) if suite else FOLDERS[group]
    found = [*by_words(m, folders), *([] if suite else mirror(m.path)), *near]
    return list(dict.fromkeys((*found, *((*files_about(m.path), *WHOLE[group]) if suite else ())))) or [ANY]


def seen(folder: Path) -> dict[tuple[str, int], list[str]]:
    """By mutant, the tests that `shards` expects to notice it."""
    found: dict[tuple[str, int], list[tuple[int, int, str]]] = defaultdict(list)
    for part in sorted(folder.glob(NEAR)):
        for group, number, tests in json.loads(part.read_text()):
            found[group, number] += [(rank, place, test) for place, (rank, test) in enumerate(tests)]
    return {key: list(dict.fromkeys(t for *_, t in sorted(of)))[:MOST] for key, of in found.items()}


def killed(folder: Path) -> set[tuple[str, int]]:
    """What has been killed, and what an earlier run of this has tried."""
    rows = [json.loads(line) for p in folder.glob("*.jsonl") for line in p.read_text().splitlines()]
    return {(r["group"], r["number"]) for r in rows
            if r["stage"] == STAGE or r["killer"] not in (None, "needs an import")}


# ------------------------------------------------------------------ trying


def failing(m: Mutant | None, tests: Sequence[str], limit: float, impl: str) -> str | None:
    """The first test that fails when the mutated text is imported, TIME, or how the process ended."""
    def work(tell):
        if m is not None:
            mutant_process.import_mutated(m)
        arguments = ["-x", "-q", "-p", "no:cacheprovider", "--tb=no", "-W", "ignore"]
        os.environ["CONFORMANCE_IMPL"] = impl
        code = pytest.main([*arguments, *tests], plugins=[_Failures(tell)])
        if code == pytest.ExitCode.USAGE_ERROR:
            raise RuntimeError(f"pytest did not take its arguments: {tests}")
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            tell(f"exit {code}")

    return mutant_process.forked(work, limit)


class _Failures:
    """A pytest plugin: tells what failed."""

    def __init__(self, tell):
        self.tell = tell

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        """Where this project is installed, pytest would itself import its modules, from their files."""
        mutant_process.mutants_come_first()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.tell(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.tell(f"collecting {report.nodeid}")


def killer(m: Mutant, tests: list[str], limit: float, impl: str) -> str | None:
    """What kills a mutant. What fails without it too does not, and is left out."""
    end = time.monotonic() + limit
    left_out: list[str] = []
    while (left := end - time.monotonic()) > 0:
        found = failing(m, [*tests, *(f"--deselect={t}" for t in left_out)], left, impl)
        if found in (None, mutant_process.TIME):
            return None
        alone = [found.removeprefix("collecting ")] if "::" in found or found.startswith("collecting ") else tests
        if failing(None, alone, 60, impl) is None:
            return found
        if "::" not in found or found in left_out:
            return None
        left_out.append(found)
    return None


def warm() -> None:
    """Import what others wrote, once for all processes."""
    for name in ("numpy", "ml_dtypes", "mpmath", "hypothesis", "torch"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def open_mutants(given: argparse.Namespace) -> Iterator[tuple[str, int, Mutant]]:
    done = set() if given.only else killed(given.folder)
    for group in given.groups:
        for number, m in enumerate(draw(GROUPS[group], given.seed, given.count)):
            if (group, number) not in done and why_equivalent(m) is None and number in (given.only or [number]):
                yield group, number, m


def judges(m: Mutant, group: str) -> list[str]:
    """The implementations on which the suite runs, one after the other."""
    return [IMPLEMENTATION] * (m.path in INTERPRETED) + [OF_SUITE[group]]


def attempt(given: argparse.Namespace, near: dict[tuple[str, int], list[str]], d: tuple[str, int, Mutant]) -> None:
    group, number, m = d
    began = time.monotonic()
    if began > given.deadline:
        return
    tests = given.tests or chosen(m, group, given.suite, near.get((group, number), []))
    limit = min(given.budget, given.deadline - began)
    found = None
    impls = judges(m, group) if given.suite else [given.impl]
    for k, impl in enumerate(impls):
        left = began + limit - time.monotonic()
        found = found or killer(m, tests, left / (len(impls) - k), impl)
    row = {"group": group, "number": number, "stage": STAGE, "killer": found, "ran": len(tests),
           "available": len(tests), "seconds": round(time.monotonic() - began, 1)}
    with (given.folder / VERDICTS).open("a") as f:
        f.write(json.dumps(row) + "\n")
    print(f"{group} {number:4} {row['seconds']:5} s {found or 'SURVIVED'}: {m}", flush=True)


def run(given: argparse.Namespace) -> None:
    warm()
    todo = list(open_mutants(given))
    finish(shared_out(todo, given.jobs, functools.partial(attempt, given, seen(given.folder))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder of `shards`")
    parser.add_argument("--groups", nargs="*", default=list(FOLDERS), choices=FOLDERS)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants")
    parser.add_argument("--suite", action="store_true", help="choose tests of the suite and the referee alone")
    parser.add_argument("--tests", nargs="*", metavar="TEST", help="run these, not the chosen ones")
    parser.add_argument("--impl", default=IMPLEMENTATION)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seconds", type=float, default=500, help="for all")
    parser.add_argument("--budget", type=float, default=100, help="seconds for a mutant")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    given.deadline, given.folder = time.monotonic() + given.seconds, given.folder.resolve()
    given.folder.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    run(given)


if __name__ == "__main__":
    main()
