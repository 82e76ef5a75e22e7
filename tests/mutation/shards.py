"""All mutants of a draw in minutes: each process has a part of the tests, and tries every mutant with them.

    python -m tests.mutation.shards FOLDER --jobs 15 --seconds 500          # bytecode of programs, then tests
    python -m tests.mutation.shards FOLDER --impl tests.mutation.programs:Interpreted --no-programs
    python -m tests.mutation.shards FOLDER --groups passes --all --tests conformance/test_row_division.py
    python -m tests.mutation.fresh FOLDER --jobs 15 --seconds 100           # what survived, imported anew
    python -m tests.mutation.shards FOLDER --table

A process collects all tests, runs its part of a sample of them, and notes the lines that each executes and what it
launches (`programs.py`). Then each mutant runs in forked processes, from where everything is imported: first programs
that execute the mutated statement are compiled again, later tests that execute it run, each time for longer. A mutant
that one process kills is left alone by the others: FOLDER/killed has a byte for each. FOLDER/N-IMPL.jsonl gets what
process N finds, and FOLDER/near-… the tests that are likeliest to notice what is left, for `fresh`.

Compared with `tests.mutation.run`, which runs all tests that can notice a mutant, this kills most mutants in a
hundredth of the time. It sees less: what was read or made before the first mutant stays, and of the tests of one
function only some run. So what survives here is not known to survive there.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import mmap
import os
import time
import types
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import ml_dtypes  # noqa: F401  (what forked processes need is imported once)
import mpmath  # noqa: F401
import pytest

from cutile._support.lru import LruDict
from cutile.runtime.kernel import LIMIT, Kernel, KernelPlans
from tests.mutation import live_import, mutant_process
from tests.mutation.fresh import MOST, NEAR, STAGE
from tests.mutation.lines import Line, Monitor, function_of, import_all, sample
from tests.mutation.names import lines_of_rare_words, lines_that_mention, tests_named_after
from tests.mutation.processes import finish, shared_out
from tests.mutation.programs import Program
from tests.mutation.run import COUNT, SEED
from tests.mutation.sites import GROUPS, ROOT, TARGETS, Mutant, draw, why_equivalent
from tests.tileir_eval import kernels as tileir_kernels

SHARDED = ("front", "passes", "tileir")
TESTS = ("conformance", "tests/mutation/generated_programs.py")
PROGRAMS = 0.15  # seconds of programs for a mutant, in each process
ROUNDS = (0.25, 0.7, 2, 6, 20, 60)  # seconds of tests for a mutant, in each process, round by round
NEEDS_IMPORT = "needs an import"
Drawn = tuple[str, int, Mutant]  # group and number


def drawn(seed: int, count: int) -> list[Drawn]:
    """The mutants, those of the groups in turn."""
    of = [[(g, i, m) for i, m in enumerate(draw(GROUPS[g], seed, count))] for g in SHARDED]
    return [d for k in range(max(map(len, of))) for ds in of for d in ds[k:k + 1]]


def order_of(number: int, given: argparse.Namespace, todo: list[Drawn]) -> list[tuple[int, str, int, Mutant]]:
    """The mutants of the given groups, with their places in the whole draw, each process beginning with others."""
    mine = [(i, *d) for i, d in enumerate(todo) if d[0] in given.groups]
    start = number * len(mine) // given.jobs
    return mine[start:] + mine[:start]


class Shard:
    """What one process does. A pytest plugin, for its part of the collected tests."""

    def __init__(self, number: int, given: argparse.Namespace, todo: list[Drawn]):
        self.number, self.given = number, given
        self.todo = order_of(number, given, todo)
        self.monitor = Monitor()
        self.monitor.end()
        self.tests: dict[str, tuple[int, float, pytest.Item]] = {}  # rank among those of its function, seconds
        self.tests_of: dict[Line, list[str]] = defaultdict(list)
        self.unstable: set[str] = set()  # tests that fail in a forked process without a mutant

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        from conformance.harness.api import impl  # loaded by the suite

        import_all()
        self._run_once(session)
        self.programs = self._recorded(list(impl.programs.values())) if self.given.programs else []
        self._ready()
        self._say(f"{len(self.tests)} tests, {len(self.programs)} programs")
        with open(self.given.folder / f"{self.number}-{impl.name.split(':')[-1]}.jsonl", "a") as self.out, \
                open(self.given.folder / "killed", "r+b") as f, mmap.mmap(f.fileno(), 0) as self.killed:
            self._try_programs()
            for seconds in ROUNDS:
                self._try_tests(seconds)
                self._say(f"after {seconds} s of tests each: {sum(self.killed[:])} killed")
            self._note_near()
        return True

    def _say(self, text: str) -> None:
        print(f"\n[{self.number}] {text}", flush=True)

    def _left(self) -> float:
        return self.given.deadline - time.monotonic()

    # -------------------------------------------------------------- without a mutant

    def _run_once(self, session: pytest.Session) -> None:
        """Run a part of the tests, for a sixth of the time at most, and note which lines those execute that pass."""
        outcome, until, ranks = _Outcome(), time.monotonic() + self.given.seconds / 6, Counter()
        tables = [f for f in _cached_functions() if not f.__wrapped__.__code__.co_argcount]
        session.config.pluginmanager.register(outcome)
        tests = session.items if self.given.all else list(sample(session.items))
        for item in tests[self.number::self.given.jobs]:
            if time.monotonic() > until:
                break
            outcome.passed = outcome.failed = False
            for made_once in tables:  # else only the first test executes what makes them
                made_once.cache_clear()
            self.monitor.begin()
            began = time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            lines = self.monitor.end()
            if outcome.passed and not outcome.failed:
                ranks[function_of(item.nodeid)] += 1
                self.tests[item.nodeid] = ranks[function_of(item.nodeid)], time.monotonic() - began, item
                for path, numbers in lines.items():
                    for n in numbers:
                        self.tests_of[path, n].append(item.nodeid)
        session.config.pluginmanager.unregister(outcome)

    def _recorded(self, programs: list[Program]) -> list[Program]:
        until = time.monotonic() + self.given.seconds / 6
        return [p for p in programs if time.monotonic() < until and p.record(SHARDED, self.monitor)]

    def _ready(self) -> None:
        self.functions = [f for f in gc.get_objects()
                          if isinstance(f, types.FunctionType) and f.__code__.co_filename in _PATHS]
        self.caches = _cached_functions()
        self.kernels = [k for k in gc.get_objects() if isinstance(k, Kernel)]
        live_import.ready()
        gc.collect()
        gc.freeze()

    # -------------------------------------------------------------- with mutants

    def _open(self) -> Iterator[tuple[int, str, int, Mutant]]:
        for i, group, number, m in self.todo:
            if not self.killed[i] and self._left() > 0:
                yield i, group, number, m

    def _try_programs(self) -> None:
        for i, group, number, m in self._open():
            lines = _lines_of(m)
            near = lines_of_rare_words(m)
            found = _spread([(p.test, p.seconds[group], p) for p in self.programs
                             if not lines.isdisjoint(p.lines[group])],
                            lambda f, group=group, near=near: not near.isdisjoint(f[2].lines[group]))
            some = _within(PROGRAMS, found)

            def kills(among=some, group=group):
                return next((test for test, _, p in among if p.changed(group)), None)

            self._verdict(i, group, number, m, "programs", kills, some, len(found))

    def _try_tests(self, seconds: float) -> None:
        for i, group, number, m in self._open():
            names = {t for line in _lines_of(m) for t in self.tests_of.get(line, ())} - self.unstable
            near = self._near(m, names)
            found = _spread([(t, self.tests[t][1], self.tests[t][2]) for t in names], lambda f, near=near: f[0] in near)
            some = _within(seconds, found)
            if some and (seconds == ROUNDS[0] or len(_within(ROUNDS[ROUNDS.index(seconds) - 1], found)) < len(found)):
                self._verdict(i, group, number, m, "tests", functools.partial(self._failing, some), some, len(found))

    def _near(self, m: Mutant, names: set[str]) -> set[str]:
        """Those of these tests that are likeliest to notice a mutant."""
        named = set(tests_named_after(m, self.tests))
        return names & named.union(*(self.tests_of.get(line, ()) for line in lines_of_rare_words(m)))

    def _note_near(self) -> None:
        """Write, for each mutant that is left, tests to run where it is imported anew, each with a rank."""
        rows = []
        for i, group, number, m in self.todo:
            if self.killed[i]:
                continue
            named = dict.fromkeys(tests_named_after(m, self.tests), 0)
            near = dict.fromkeys((t for line in lines_of_rare_words(m) for t in self.tests_of.get(line, ())), 1)
            own = dict.fromkeys((t for line in _lines_of(m) for t in self.tests_of.get(line, ())), 2)
            ranks = own | near | named
            found = sorted(ranks.keys() - self.unstable, key=lambda t, r=ranks: (r[t], *self.tests[t][:2]))[:MOST]
            rows.append((group, number, [(ranks[t], t) for t in found]))
        (self.given.folder / NEAR.replace("*", f"{self.number}-{time.time_ns()}")).write_text(json.dumps(rows))

    def _verdict(self, i: int, group: str, number: int, m: Mutant, stage: str, kills: Callable[[], str | None],
                 some: list, available: int) -> None:
        """Try a mutant and write what came of it. A test that fails without the mutant, too, does not count."""
        began = time.monotonic()
        limit = max(1.0, min(20 + 6 * sum(seconds for _, seconds, _ in some), self._left()))
        killer = self._with(m, True, kills, limit) if some else None
        if killer == mutant_process.TIME and self._left() <= 0:
            return
        if killer in {test for test, _, _ in some}:
            again = self._with(m, False, kills, 60)
            if again is not None:  # it does not pass in a forked process, or when the statement as it is runs again
                self.unstable.add(again)
                killer = NEEDS_IMPORT if m.at_import else None
        if killer not in (None, NEEDS_IMPORT):
            self.killed[i] = 1
        row = {"group": group, "number": number, "stage": stage, "killer": killer, "ran": len(some),
               "available": available, "seconds": round(time.monotonic() - began, 2)}
        self.out.write(json.dumps(row) + "\n")
        self.out.flush()

    def _with(self, m: Mutant, mutated: bool, kills: Callable[[], str | None], limit: float) -> str | None:
        """What kills the mutant in a forked process. Not `mutated`: what fails without it."""
        def work(tell):
            try:
                if m.at_import:
                    live_import.apply(m, mutated)
                elif mutated:
                    mutant_process.Collected.mutate(self, m)
            except live_import.NeedsImport:
                return tell(NEEDS_IMPORT)
            except AssertionError:
                raise
            except Exception as e:
                return tell(f"{type(e).__name__} at import")
            for cached in self.caches:
                cached.cache_clear()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                killer = kills()
            if killer is not None:
                tell(killer)

        return mutant_process.forked(work, limit)

    def _failing(self, some: list[tuple[str, float, pytest.Item]]) -> str | None:
        """The first of these tests that fails. Kernels are typed and compiled again."""
        for k in self.kernels:
            k._programs, k._by_options, k.plans = LruDict(LIMIT), LruDict(LIMIT), KernelPlans()
        tileir_kernels._compiled.clear()
        tileir_kernels._variants.clear()
        outcome = _Outcome()
        items = [item for *_, item in some]
        items[0].config.pluginmanager.register(outcome)
        for item, following in zip(items, [*items[1:], None], strict=True):
            try:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            except BaseException:  # errors that pytest takes for its own end, or does not survive
                return item.nodeid
            if outcome.failed:
                return item.nodeid
        return None


_PATHS = {str(ROOT / t) for t in TARGETS}


def _cached_functions() -> list:
    """The functions of mutated files that keep their results."""
    return [f for f in gc.get_objects() if isinstance(f, functools._lru_cache_wrapper)
            and getattr(getattr(f.__wrapped__, "__code__", None), "co_filename", None) in _PATHS]


class _Outcome:
    """A pytest plugin: whether the tests since the last reset passed."""

    passed = failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed or report.skipped
        self.passed |= report.when == "call" and report.passed


def _lines_of(m: Mutant) -> set[Line]:
    own = {(m.path, n) for n in m.lines}
    return own | lines_that_mention(m.path, m.lines) if m.at_import else own


def _spread(found: list[tuple], near: Callable[[tuple], bool] = lambda f: False) -> list[tuple]:
    """Those near the mutated code first; of these one of each test function first; of these, cheap ones first."""
    seen: Counter[str] = Counter()
    ranked = []
    for i, f in enumerate(sorted(found, key=lambda f: f[1])):
        ranked.append((not near(f), seen[function_of(f[0])], i, f))
        seen[function_of(f[0])] += 1
    return [f for *_, f in sorted(ranked, key=lambda r: r[:3])]


def _within(budget: float, found: list[tuple]) -> list[tuple]:
    out = []
    for f in found:
        if budget <= 0:
            break
        out.append(f)
        budget -= f[1] + 0.002  # what running it takes besides
    return out


# ------------------------------------------------------------------ the whole draw


def work(number: int, given: argparse.Namespace, todo: list[Drawn]) -> None:
    arguments = ["--impl", given.impl, *given.tests, "-q", "-s", "-p", "no:cacheprovider", "--tb=no", "-W", "ignore"]
    code = pytest.main(arguments, plugins=[Shard(number, given, todo)])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):  # tests that fail anyway are left out
        raise RuntimeError(f"pytest ended with {code}")


def table(folder: Path, todo: list[Drawn]) -> str:
    """By group, how many mutants were killed and by what, and the survivors with what they survived."""
    rows: dict[tuple[str, int], list[dict]] = defaultdict(list)
    for path in folder.glob("*.jsonl"):
        for row in map(json.loads, path.read_text().splitlines()):
            rows[row["group"], row["number"]].append(row)
    out = []
    for group in dict.fromkeys(g for g, *_ in todo):
        counts, survivors = Counter(), []
        for _, number, m in (d for d in todo if d[0] == group):
            tried = rows[group, number]
            listed = why_equivalent(m) is not None
            killers = {r["stage"] for r in tried if r["killer"] not in (None, NEEDS_IMPORT)
                       and (not listed or _contradicts(r))}
            kind = "equivalent" if listed else "counted"
            counts[kind] += 1
            counts[f"{kind}, killed"] += bool(killers)
            counts[f"{kind}, killed by tests alone"] += bool(killers) and "programs" not in killers
            if listed == bool(killers):
                ran, available = (sum(r[k] for r in tried) for k in ("ran", "available"))
                imported = any(r["stage"] == STAGE for r in tried)
                state = ("needs an import" if any(r["killer"] == NEEDS_IMPORT for r in tried) and not imported else
                         "no test executes it" if not available else f"survived {ran} of {available}")
                state += ", imported" * imported
                survivors.append(f"{number:4} {'killed although listed' if listed else state}: {m}\n     {m.code}")
        out.append("\n".join([f"{group}: " + ", ".join(f"{k} {n}" for k, n in counts.items()), *survivors]))
    return "\n\n".join(out)


def _contradicts(row: dict) -> bool:
    """Whether a verdict shows that a mutant is not equivalent: other bytecode may have the same results, and tests of
    the project may ask for more than the language.
    """
    return row["stage"] != "programs" and row["killer"].removeprefix("collecting ").startswith("conformance")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="verdicts; what it has is kept")
    parser.add_argument("--groups", nargs="*", default=list(SHARDED), choices=SHARDED)
    parser.add_argument("--impl", default="tests.mutation.programs:ThroughBytecode", help="an adapter of programs.py")
    parser.add_argument("--no-programs", dest="programs", action="store_false", help="run tests alone")
    parser.add_argument("--tests", nargs="*", default=TESTS, metavar="FILE", help="conformance among them")
    parser.add_argument("--all", action="store_true", help="all tests of each function, not a sample")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT, help="how many of each group, equivalent ones not counted")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--table", action="store_true", help="run nothing")
    given = parser.parse_args()
    given.deadline, given.folder = time.monotonic() + given.seconds, given.folder.resolve()
    os.chdir(ROOT)
    todo = drawn(given.seed, given.count)
    if not given.table:
        given.folder.mkdir(parents=True, exist_ok=True)
        if not (given.folder / "killed").is_file():
            (given.folder / "killed").write_bytes(bytes(len(todo)))
        finish(shared_out(list(range(given.jobs)), given.jobs, lambda n: work(n, given, todo)))
    print(table(given.folder, [d for d in todo if d[0] in given.groups]))


if __name__ == "__main__":
    main()
