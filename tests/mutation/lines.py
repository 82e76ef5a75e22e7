"""Which lines of the mutated files each test of a judge executes, and how long it takes.

Each test runs in a process of its own, forked where all tests have been collected: as on a mutant, nothing is there
that another test left behind. A folder gets a file of each process with a line of JSON for each test,
{"test": id, "seconds": …, "lines": {path: [numbers]}}, and early.json: what ran before the first test did. Tests that
fail are left out. Needs Python 3.12 and os.fork.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType

import pytest

from tests.mutation.names import lines_that_mention
from tests.mutation.processes import finish, shared_out
from tests.mutation.sites import ROOT, TARGETS, Mutant

TOOL = 4  # a number that sys.monitoring gives to no particular kind of tool
EARLY = "early.json"
PATIENCE, GRACE = 6, 60.0  # a run may take so many times as long as it should, and so many seconds more
Line = tuple[str, int]


class Monitor:
    """Line events of TARGETS, each line once."""

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


class Recorder:
    """A pytest plugin: records the collected tests instead of running them."""

    def __init__(self, folder: Path, jobs: int):
        self.folder, self.jobs, self.monitor = folder, jobs, Monitor()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        (self.folder / EARLY).write_text(json.dumps(self.monitor.end()))
        gc.collect()
        gc.freeze()
        finish(shared_out(session.items, self.jobs, self._record))
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


class _Outcome:
    seconds: float | None = None
    failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed
        if report.when == "call" and report.passed:
            self.seconds = round(report.duration, 4)


def record(arguments: list[str], folder: Path, jobs: int) -> None:
    """Fill a new folder with what the tests that pytest finds with these arguments execute; not half of it."""
    unfinished = folder.with_name(f"{folder.name}.unfinished-{os.getpid()}")
    unfinished.mkdir(parents=True)
    code = pytest.main([*arguments, "-q", "-s", "-p", "no:cacheprovider"], plugins=[Recorder(unfinished, jobs)])
    if code:
        raise RuntimeError(f"recording failed: pytest ended with {code}")
    unfinished.rename(folder)


class Coverage:
    """What has been recorded of the lines that these mutants need."""

    def __init__(self, folder: Path, mutants: Iterable[Mutant]):
        wanted = set().union(*map(_lines_of, mutants))
        self.seconds: dict[str, float] = {}
        self.tests: dict[Line, set[str]] = defaultdict(set)
        for part in sorted(folder.glob("*.jsonl")):
            with part.open() as f:
                for row in map(json.loads, f):
                    self.seconds[row["test"]] = row["seconds"]
                    for line in wanted & _flat(row["lines"]):
                        self.tests[line].add(row["test"])
        if not self.seconds:
            raise SystemExit(f"no test is recorded in {folder}")
        self._early = _flat(json.loads((folder / EARLY).read_text()))

    def early(self, m: Mutant) -> bool:
        """Whether the mutated statement runs before the first test does: at import, or where kernels are decorated."""
        return m.at_import or any((m.path, n) in self._early for n in m.lines)

    def of(self, m: Mutant) -> list[str]:
        """The tests that execute the mutated statement, or what is made of it at import."""
        return self.ordered(set().union(*(self.tests[line] for line in _lines_of(m))))

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

    def limit(self, tests: Iterable[str]) -> float:
        return GRACE + PATIENCE * sum(self.seconds[t] for t in tests)


def _flat(lines: dict[str, list[int]]) -> set[Line]:
    return {(path, n) for path, numbers in lines.items() for n in numbers}


def _lines_of(m: Mutant) -> set[Line]:
    own = {(m.path, n) for n in m.lines}
    return own | lines_that_mention(m.path, m.lines) if m.at_import else own
