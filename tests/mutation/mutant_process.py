"""Running tests on a mutant in a forked process, to find the test that kills it.

A mutant inside a function gives the live function other code, so the tests are collected once for all mutants. A
mutant of code that runs at import is imported from the mutated text, before the rest of the package. Nothing is
written into the checkout. Only tests run that pass without a mutant, so a skipped test shows a refusal, and kills.
"""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType

import pytest

from tests.mutation.lines import import_all
from tests.mutation.sites import ROOT, TARGETS, Mutant, module_name

TIME = "too much time"
FAULT = "fault of the tool: "


def forked(work: Callable[[Callable[[str], None]], None], limit: float) -> str | None:
    """Run `work(tell)` in a forked process. Gives what it told first, TIME if it took more than `limit` seconds, how
    the process ended if not by itself, or None.

    RuntimeError if `work` raised.
    """
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.setpgid(0, 0)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        try:
            work(lambda text: os.write(write, text.encode() + b"\n"))
        except BaseException:
            os.write(write, f"{FAULT}{traceback.format_exc()!r}\n".encode())
        os._exit(0)
    os.close(write)
    end = time.monotonic() + limit
    with os.fdopen(read) as pipe:
        while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
            if time.monotonic() > end:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return TIME
            time.sleep(0.02)
        told = pipe.readline().strip()
    if told.startswith(FAULT):
        raise RuntimeError(told)
    return told or (f"the process ended with {ended[1]}" if ended[1] else None)


# ------------------------------------------------------------------ what runs before the tests do


def before_tests(m: Mutant | None, ids: list[str], limit: float, *, arguments: Sequence[str] = ()) -> str | None:
    """The test, among these, that fails when the mutated text is imported. pytest gets these arguments, too."""
    def work(tell):
        if m is not None:
            import_mutated(m)
        files = dict.fromkeys(t.partition("::")[0] for t in ids)
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *arguments, *files], plugins=[_Only(ids, tell)])
        if code == pytest.ExitCode.USAGE_ERROR:
            raise RuntimeError("pytest did not take its arguments")
        if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            tell(f"exit {code}")

    return forked(work, limit)


def import_mutated(m: Mutant) -> None:
    """From now on, import the mutated text. The module must not be imported yet."""
    assert module_name(m.path) not in sys.modules
    sys.meta_path.insert(0, _Mutated(m))


def mutants_come_first() -> None:
    """Import mutated texts rather than what finders find that were put before them meanwhile."""
    sys.meta_path.sort(key=lambda finder: not isinstance(finder, _Mutated))


class _Only:
    """Keeps the tests with these ids, in this order, and tells which one failed."""

    def __init__(self, ids: list[str], tell: Callable[[str], None]):
        self.order, self.tell = {t: i for i, t in enumerate(ids)}, tell

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.skipped:
            self.tell(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.tell(f"collecting {report.nodeid}")


class _Mutated(importlib.abc.MetaPathFinder):
    """Imports the mutated text in place of one module."""

    def __init__(self, m: Mutant):
        self.name, self.path, self.source = module_name(m.path), str(ROOT / m.path), m.source()

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        loader = importlib.machinery.SourceFileLoader(name, self.path)
        loader.get_code = lambda _: compile(self.source, self.path, "exec", dont_inherit=True)
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


# ------------------------------------------------------------------ what functions do


class Collected:
    """A pytest plugin: instead of running the collected tests once, `loop(self)` runs some of them on each mutant."""

    def __init__(self, loop: Callable[[Collected], None]):
        self.loop = loop

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {i.nodeid: i for i in session.items}
        import_all()  # some are imported only by the first launch
        names = {str(ROOT / t) for t in TARGETS}
        self.functions = [f for f in gc.get_objects()
                          if isinstance(f, FunctionType) and f.__code__.co_filename in names]
        gc.collect()
        gc.freeze()  # forked processes share memory that they do not write to
        self.loop(self)
        return True

    def killer(self, m: Mutant | None, ids: list[str], limit: float) -> str | None:
        """The test, among these, that fails when functions have the mutated code."""
        def work(tell):
            if m is not None:
                self.mutate(m)
            failed = []
            items = [self.items[i] for i in ids]
            items[0].config.pluginmanager.register(_Failures(failed))
            for item, following in zip(items, [*items[1:], None], strict=True):
                try:
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                except BaseException:  # errors that pytest takes for its own end, or does not survive
                    failed.append(item.nodeid)
                if failed:
                    return tell(failed[0])

        return forked(work, limit)

    def mutate(self, m: Mutant) -> None:
        path = str(ROOT / m.path)
        texts = (ROOT / m.path).read_text(), m.source()
        old, new = (compile(text, path, "exec", dont_inherit=True) for text in texts)
        changed = {a: b for a, b in _pairs(old, new) if a != b}
        found = [(f, changed[f.__code__]) for f in self.functions if f.__code__ in changed]
        assert found, f"no function has the code of {m}"
        for f, code in found:
            f.__code__ = code


class _Failures:
    def __init__(self, failed: list[str]):
        self.failed = failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.skipped:
            self.failed.append(report.nodeid)


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Corresponding code objects of two versions of a module. If the compiler leaves out a function that can no
    longer be reached, the enclosing pair stands for all inside.
    """
    yield old, new
    before, after = ([c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new))
    if len(before) == len(after):
        for a, b in zip(before, after, strict=True):
            yield from _pairs(a, b)
