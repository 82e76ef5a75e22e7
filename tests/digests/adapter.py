"""The interpreter, which also records what every launch compiles to: `--impl tests.digests.adapter:Recording`."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from conformance.adapters.cutile_interp import Interp
from cutile.compute import steps
from tests.digests import compiling
from tests.digests.compiling import NEWEST, TARGETS, VERSIONS, Launch

# What is recorded beside the bytecode for each target:
OLDEST = "oldest"  # bytecode for sm_90, in the oldest version that expresses the program
EXPORTS = "exports"  # what tests compile ahead of time, for the target and in the version that they ask for
POSITIONS = "positions"  # of the source, operation by operation
MESSAGES = "messages"  # of errors and warnings
OLDEST_FOR = "sm_90"
# In texts of the bytecode: addresses of what is printed, and nanoseconds of the clock in names of kernels.
CHANGING = rb"0x[0-9a-f]{6,}|[0-9]{19}"
BESIDE_A_TEST = "imported"  # what is compiled while no test runs


def digest(*texts: str | bytes) -> str:
    h = hashlib.sha256()
    for t in texts:
        data = t.encode() if isinstance(t, str) else t
        h.update(b"%d\0" % len(data) + data)
    return h.hexdigest()[:16]


def name_of(target: str | None) -> str:
    return target or "every target"


_typing: ContextVar[bool] = ContextVar("typing", default=False)  # whether a kernel is being typed for a record


class Recorder:
    """What was compiled: for each test and column the digests in order."""

    def __init__(self, targets: tuple[str | None, ...] = TARGETS):
        self.targets = targets
        self.found: dict[str, dict[str, list[str]]] = {}
        self._known: dict[str, dict[str, str]] = {}

    def note(self, test: str, column: str, what: str) -> None:
        self.found.setdefault(test, {}).setdefault(column, []).append(what)

    def launch(self, test: str, kernel: Any, args: tuple) -> bool:
        """Record what a launch compiles to. False where it does not get so far: the launch tells the test why, or its
        kernel is being typed for another record, of whose own launch it was part.
        """
        if _typing.get():
            return False
        before = _typing.set(True)
        try:
            launch = compiling.launched(kernel, args)
        except Exception:
            return False
        finally:
            _typing.reset(before)
        for column, what in self._compiled(launch).items():
            self.note(test, column, what)
        return True

    def export(self, test: str, launch: Launch, target: Any, version: Any) -> None:
        what, messages = _tried(launch, None if target is None else str(target), version)
        self.note(test, EXPORTS, f"{target} {version} {what}")
        self.note(test, MESSAGES, messages)

    def error(self, test: str, e: BaseException) -> None:
        self.note(test, MESSAGES, digest(said(e)))

    def _compiled(self, launch: Launch) -> dict[str, str]:
        key = digest(launch.text)
        if key not in self._known:
            self._known[key] = dict(self._columns(launch))
        return self._known[key]

    def _columns(self, launch: Launch) -> Iterator[tuple[str, str]]:
        messages = []
        for target in self.targets:
            what, message = _tried(launch, target, NEWEST)
            messages.append(message)
            yield name_of(target), what
        for version in VERSIONS:
            what, message = _tried(launch, OLDEST_FOR, version)
            messages.append(message)
            if not what.startswith("Tile"):
                break
        yield OLDEST, f"{version} {what}"
        yield POSITIONS, _positions(launch)
        yield MESSAGES, digest(*messages)


_one_at_a_time = threading.Lock()  # who looks for warnings gets those of all threads


def _tried(launch: Launch, target: str | None, version: Any) -> tuple[str, str]:
    """The digest of the bytecode, or the name of the error; and that of the messages."""
    with _one_at_a_time, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            code = compiling.without_positions(compiling.compiled(launch, target, version))
            what = digest(re.sub(CHANGING, lambda found: b"0" * len(found[0]), code))
            messages = []
        except Exception as e:
            what, messages = type(e).__name__, [said(e)]
    return what, digest(*messages, *(str(w.message) for w in caught))


def _positions(launch: Launch) -> str:
    for target in (None, "sm_90", "sm_100", "sm_107"):
        try:
            return digest(compiling.positions(compiling.compiled(launch, target)))
        except Exception:
            continue
    return "none"


def said(e: BaseException) -> str:
    """The first line of an error, without paths and addresses."""
    text = str(getattr(e, "message", e)).partition("\n")[0]
    return f"{type(e).__name__}: {re.sub(r'0x[0-9a-f]+|(/[^/ :]+)+/', '', text)}"


class Recording(Interp):
    """`recorder` has what was found, by the test that runs."""

    name = "cutile:interp, recorded"

    def __init__(self) -> None:
        super().__init__()
        self.recorder = Recorder(chosen())
        launch = self.ct.launch
        export = self.ct.compilation.export_kernel

        @functools.wraps(launch)
        def recorded(*args: Any, **options: Any) -> Any:
            with self._errors():
                try:
                    return launch(*args, **options)
                finally:
                    if len(args) == 4 and isinstance(args[2], self.ct.kernel) and isinstance(args[3], tuple):
                        self.recorder.launch(running(), args[2], args[3])

        @functools.wraps(export)
        def exported(*args: Any, **options: Any) -> Any:
            with self._errors():
                return export(*args, **options)

        recording = self

        class Recorded(steps.Repeated):  # the launches of device-wide algorithms
            def __init__(self, kernel: Any, grid: tuple, args: tuple, *rest: Any):
                with recording._errors():
                    try:
                        super().__init__(kernel, grid, args, *rest)
                    finally:
                        recording.recorder.launch(running(), kernel, args)

        self.ct.launch, self.ct.compilation.export_kernel = recorded, exported
        steps.Repeated = Recorded  # type: ignore[misc]
        compiling.listen(lambda *compiled: self.recorder.export(running(), *compiled))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as e:
            self.recorder.error(running(), e)
            raise


def chosen() -> tuple[str | None, ...]:
    """The targets of $DIGESTS_TARGETS; all without it."""
    names = os.environ.get("DIGESTS_TARGETS")
    return tuple(t for t in TARGETS if names is None or name_of(t) in names.split(","))


def running() -> str:
    """The test that runs, by its file's name and its own."""
    file, parts, test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0].partition("::")
    return f"{file.rpartition('/')[2]}::{test}" if parts else BESIDE_A_TEST
