"""Which lines of the mutated files each test of a judge executes, and how long it takes.

Each test runs in a process of its own, forked after all tests have been collected, so it sees nothing that another
test left behind, as on a mutant. The folder gets a file for each process with a line of JSON for each test, {"test":
id, "seconds": …, "lines": {path: [numbers]}}, and early.json, the lines that ran before the first test. Failing tests
are left out. Of the tests of one function only some are recorded, with each value of each parameter; the others,
listed in others.json, count as executing what these do. Needs Python 3.12 and os.fork.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType

import pytest

from tests.mutation.names import functions_by_word, lines_by_word, lines_that_mention, makes_names
from tests.mutation.processes import finish, shared_out
from tests.mutation.sites import ROOT, TARGETS, Mutant, module_name

TOOL = 4  # a tool id that sys.monitoring reserves for no kind of tool
EARLY, OTHERS = "early.json", "others.json"
SAMPLE = 3  # so many tests of a function are recorded at least, where it has so many
PATIENCE, GRACE = 6, 60.0  # a run may take this many times as long as it should, and this many seconds more
Line = tuple[str, int]


class Monitor:
    """Records the executed lines of TARGETS, each line once."""

    def __init__(self) -> None:
        self.names = {str(ROOT / t): t for t in TARGETS}
        self.seen: set[Line] = set()
        sys.monitoring.use_tool_id(TOOL, "mutation")
        sys.monitoring.register_callback(TOOL, sys.monitoring.events.LINE, self._line)
        self.begin()

    def _line(self, code: CodeType, number: int) -> object:
        if code.co_filename in self.names:
            self.seen.add((self.names[code.co_filename], number))
        return sys.monitoring.DISABLE

    def begin(self) -> None:
        self.seen.clear()
        sys.monitoring.restart_events()
        sys.monitoring.set_events(TOOL, sys.monitoring.events.LINE)

    def end(self) -> dict[str, list[int]]:
        sys.monitoring.set_events(TOOL, 0)
        found = defaultdict(list)
        for path, number in sorted(self.seen):
            found[path].append(number)
        return found


def import_all() -> None:
    """Import what kernels and launches on CPU arrays may need, the mutated modules among it."""
    rooms = ("ir", "ops", "front", "analysis", "passes", "interp", "gpu/tileir", "runtime")
    for path in TARGETS + tuple(str(p.relative_to(ROOT)) for r in rooms for p in (ROOT / "cutile" / r).rglob("*.py")):
        importlib.import_module(module_name(path))


class Recorder:
    """A pytest plugin: records the collected tests instead of running them."""

    def __init__(self, folder: Path, jobs: int):
        self.folder, self.jobs, self.monitor = folder, jobs, Monitor()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        import_all()  # else each process would import what only a launch needs
        (self.folder / EARLY).write_text(json.dumps(self.monitor.end()))
        chosen = sample(session.items)
        (self.folder / OTHERS).write_text(json.dumps([i.nodeid for i in session.items if i not in chosen]))
        gc.collect()
        gc.freeze()
        finish(shared_out(list(chosen), self.jobs, self._record))
        return True

    def _record(self, item: pytest.Item) -> None:
        part = self.folder / f"{os.getpid()}.jsonl"
        if (pid := os.fork()) == 0:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            outcome = _Outcome()
            item.config.pluginmanager.register(outcome)
            self.monitor.begin()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            lines = self.monitor.end()
            if outcome.seconds is not None:
                with part.open("a") as f:
                    row = {"test": item.nodeid, "seconds": outcome.seconds, "lines": lines}
                    f.write(json.dumps(row, separators=(",", ":")) + "\n")
            os._exit(outcome.failed)
        if os.waitpid(pid, 0)[1]:
            print(f"left out, it fails without a mutant: {item.nodeid}", flush=True)


def function_of(test: str) -> str:
    return test.partition("[")[0]


def sample(items: Iterable[pytest.Item]) -> dict[pytest.Item, None]:
    """SAMPLE tests of each function, the first of each function first, and those in which a parameter has a value that
    no test before has given it: such tests may execute other code.
    """
    of: dict[str, list[pytest.Item]] = defaultdict(list)
    for i in items:
        of[function_of(i.nodeid)].append(i)
    chosen = {tests[k * len(tests) // SAMPLE]: None for k in range(SAMPLE) for tests in of.values()}
    seen = {v for i in chosen for v in _values(i)}
    for i in items:
        if not seen.issuperset(_values(i)):
            seen.update(_values(i))
            chosen[i] = None
    return chosen


def _values(item: pytest.Item) -> set[tuple[str, str, int]]:
    """Which value each parameter of a test has."""
    given = getattr(item, "callspec", None)
    return {(function_of(item.nodeid), *p) for p in given.indices.items()} if given else set()


class _Outcome:
    seconds: float | None = None
    failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed
        if report.when == "call" and report.passed:
            self.seconds = round(report.duration, 4)


def record(arguments: list[str], folder: Path, jobs: int) -> None:
    """Fill a new folder with what the tests execute that pytest finds with these arguments. The folder appears
    complete or not at all.
    """
    unfinished = folder.with_name(f"{folder.name}.unfinished-{os.getpid()}")
    unfinished.mkdir(parents=True)
    code = pytest.main([*arguments, "-q", "-s", "-p", "no:cacheprovider"], plugins=[Recorder(unfinished, jobs)])
    if code:
        raise RuntimeError(f"recording failed: pytest ended with {code}")
    unfinished.rename(folder)


class Coverage:
    """The tests of the lines that these mutants need."""

    def __init__(self, folder: Path, mutants: Iterable[Mutant]):
        mutants = list(mutants)
        wanted = set().union(*map(_lines_of, mutants), *(n for m in mutants for n in lines_by_word(m).values()))
        others: dict[str, list[str]] = defaultdict(list)
        for t in json.loads((folder / OTHERS).read_text()):
            others[function_of(t)].append(t)
        self.seconds: dict[str, float] = {}
        self.recorded: set[str] = set()
        self.tests: dict[Line, set[str]] = defaultdict(set)
        for part in sorted(folder.glob("*.jsonl")):
            with part.open() as f:
                for row in map(json.loads, f):
                    like = others[function_of(row["test"])]
                    self.recorded.add(row["test"])
                    self.seconds |= dict.fromkeys([row["test"], *like], row["seconds"])
                    for line in wanted & _flat(row["lines"]):
                        self.tests[line].update([row["test"]], like)
        if not self.seconds:
            raise SystemExit(f"no test is recorded in {folder}")
        self._by_word: dict[str, set[str]] = {}  # tests by the words of their text
        self._functions: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))  # tests, by file
        for t in self.seconds:
            self._functions[t.partition("::")[0]][function_of(t)].append(t)
        self._early = _flat(json.loads((folder / EARLY).read_text()))

    def early(self, m: Mutant) -> bool:
        """Whether the mutated statement runs before the first test does: at import, or where kernels are decorated."""
        return m.at_import or any((m.path, n) in self._early for n in m.lines)

    def of(self, m: Mutant) -> set[str]:
        """The tests that execute the mutated statement, or code that uses what it makes at import."""
        return set().union(*(self.tests[line] for line in _lines_of(m)))

    def needed(self, m: Mutant) -> set[str]:
        """The tests that can notice the mutant: those of `of`, or all if the statement, or code that uses what it
        makes, runs before the tests.
        """
        own = self.of(m)
        if not self.early(m):
            return own
        uses = _lines_of(m) - {(m.path, n) for n in m.lines}
        return own if m.at_import and makes_names(m.path, m.lines) and not uses & self._early else set(self.seconds)

    def ordered(self, m: Mutant) -> list[str]:
        """The tests that can notice the mutant. Those related to one of its words come first, beginning with the
        rarest word; then those that execute it, then the others. Each part is spread over files.
        """
        own, tests = self.of(m), self.needed(m)
        near = sorted((self._near(word, lines) & tests for word, lines in lines_by_word(m).items()), key=len)
        out: dict[str, None] = {}
        for group in (*near, own, tests):
            out |= dict.fromkeys(self.spread(group - out.keys()))
        return list(out)

    def _near(self, word: str, lines: Iterable[Line]) -> set[str]:
        """The tests that execute one of these lines, or that have the word in their text or name."""
        if word not in self._by_word:
            self._by_word[word] = {t for f in self._functions for g in functions_by_word(f).get(word, ())
                                   for t in self._functions[f][g]}
        return self._by_word[word].union(*(self.tests[line] for line in lines))

    def spread(self, tests: Iterable[str]) -> list[str]:
        """One test of each file before the second of any; within a file one of each function, cheap ones first."""
        of_function: Counter[str] = Counter()
        of_file: Counter[str] = Counter()
        ranked, placed = [], []
        for t in sorted(tests, key=lambda t: (self.seconds[t], t)):
            ranked.append((of_function[function_of(t)], self.seconds[t], t))
            of_function[function_of(t)] += 1
        for _, seconds, t in sorted(ranked):
            file = t.partition("::")[0]
            placed.append((of_file[file], seconds, t))
            of_file[file] += 1
        return [t for *_, t in sorted(placed)]

    def within(self, tests: Iterable[str], budget: float) -> Iterator[str]:
        for t in tests:
            if budget <= 0:
                return
            budget -= self.seconds[t]
            yield t

    def limit(self, tests: Iterable[str]) -> float:
        return GRACE + PATIENCE * sum(self.seconds[t] for t in tests)


def _flat(lines: dict[str, list[int]]) -> set[Line]:
    return {(path, n) for path, numbers in lines.items() for n in numbers}


def _lines_of(m: Mutant) -> set[Line]:
    own = {(m.path, n) for n in m.lines}
    return own | lines_that_mention(m.path, m.lines) if m.at_import else own
