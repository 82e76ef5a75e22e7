"""A pytest plugin: which lines of the mutated files each test executes, and how long it takes.

    pytest conformance -n auto -p tests.mutation.lines        # with MUTATION_LINES=FOLDER; needs Python 3.12

Each process writes a file of JSON into the folder, which must not hold any from before:
{"tests": {id: seconds}, "lines": {path: {line: [positions of tests]}}}; tests that fail are left out.
What cutile's functions remember from one test to the next is dropped before each, so that none runs on another's work,
but for parsed files: to parse again takes long, and runs nothing that is mutated.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from types import CodeType

import pytest

from tests.mutation.sites import ROOT, TARGETS

PARSED = "cutile.front.source"
TOOL = 4  # a number that sys.monitoring gives to no particular kind of tool


class Lines:
    """Records line events of TARGETS; every line counts once for each test."""

    def __init__(self, path: Path):
        self.path = path
        self.names = {str(ROOT / t): t for t in TARGETS}
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self.now: set[tuple[str, int]] = set()
        sys.monitoring.use_tool_id(TOOL, "mutation")
        sys.monitoring.register_callback(TOOL, sys.monitoring.events.LINE, self.line)

    def line(self, code: CodeType, number: int) -> object:
        if code.co_filename in self.names:
            self.now.add((code.co_filename, number))
        return sys.monitoring.DISABLE

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        _forget()
        self.now = set()
        sys.monitoring.restart_events()
        sys.monitoring.set_events(TOOL, sys.monitoring.events.LINE)
        try:
            return (yield)
        finally:
            sys.monitoring.set_events(TOOL, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" or report.outcome != "passed":
            return
        position = len(self.seconds)
        self.seconds[report.nodeid] = report.duration
        for file, number in self.now:
            self.lines[self.names[file]][number].append(position)

    def pytest_sessionfinish(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"tests": self.seconds, "lines": self.lines}))


@functools.cache
def _caches() -> list:
    return [f for name, m in list(sys.modules.items()) if name.split(".")[0] == "cutile" and name != PARSED
            for f in vars(m).values() if hasattr(f, "cache_clear")]


def _forget() -> None:
    for f in _caches():
        f.cache_clear()


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None):
        return  # the workers run the tests
    process = os.environ.get("PYTEST_XDIST_WORKER", "all")
    config.pluginmanager.register(Lines(Path(os.environ["MUTATION_LINES"], f"{process}.json")), "mutation-lines")
