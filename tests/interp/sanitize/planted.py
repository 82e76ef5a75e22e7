"""Kernels with a planted fault, each with a twin without it: what the sanitizer must report, and what it must not.

A fault stands in a line that ends in a comment `# fault: NAME`, somewhere in the file of the test.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import cutile as ct
from cutile import settings

SCHEDULES = ("batch", "block", "interleave")


class Fault(NamedTuple):
    """A launch with a fault, and one without.

    block    the first block that reports it
    array    the parameter that it is about
    element  the element of it, or None if there is none
    says     a part of the message
    twin     the arguments without the fault, or kernel and arguments
    """

    name: str
    kernel: Any
    grid: tuple[int, ...]
    args: Callable[[], tuple]
    block: tuple[int, int, int] | None
    array: str
    element: tuple[int, ...] | None
    says: str
    twin: Callable[[], tuple] | tuple[Any, Callable[[], tuple]]


def findings(check: str, kernel: Any, grid: tuple[int, ...], args: tuple, schedule: str = "batch",
             **others: Any) -> tuple[ct.TileSanitizerError, ...]:
    """What a launch reports under one check."""
    with settings.override(SANITIZE=check, SCHEDULE=schedule, **others):
        try:
            ct.launch(None, grid, kernel, args)
        except ct.TileSanitizerError as e:
            return e.errors
    return ()


def line_of(name: str, path: str) -> int:
    """The number of the line with a planted fault."""
    lines = Path(path).read_text().splitlines()
    (number,) = (i for i, text in enumerate(lines, 1) if text.endswith(f"# fault: {name}"))
    return number


def report(check: str, fault: Fault, schedule: str, path: str) -> None:
    """Assert that a check reports a fault in the file at `path`, alone and as it should be."""
    (e,) = findings(check, fault.kernel, fault.grid, fault.args(), schedule)
    assert (e.loc.filename, e.loc.line) == (path, line_of(fault.name, path))
    assert (e.check, e.block, e.array, e.element) == (check, fault.block, fault.array, fault.element)
    assert fault.says in str(e) and (fault.block is None or f"in block {fault.block}" in str(e))


def both_tests(check: str, faults: list[Fault], module: str) -> tuple[Callable, Callable]:
    """Two tests: that each fault is reported, alone and as it should be, and that no twin is."""
    path = sys.modules[module].__file__

    @pytest.mark.parametrize("schedule", SCHEDULES)
    @pytest.mark.parametrize("fault", faults, ids=[f.name for f in faults])
    def test_reported(fault: Fault, schedule: str) -> None:
        report(check, fault, schedule, path)

    @pytest.mark.parametrize("schedule", SCHEDULES)
    @pytest.mark.parametrize("fault", faults, ids=[f.name for f in faults])
    def test_twin_is_not_reported(fault: Fault, schedule: str) -> None:
        kernel, args = fault.twin if isinstance(fault.twin, tuple) else (fault.kernel, fault.twin)
        assert findings(check, kernel, fault.grid, args(), schedule) == ()

    return test_reported, test_twin_is_not_reported
