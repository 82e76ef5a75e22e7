"""Stepping through a kernel visits the lines that stepping through the same Python would."""

from __future__ import annotations

import ast
import sys
import types
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import cutile as ct
from cutile.interp import debugger
from tests.interp.debugging import control_flow

FILE = Path(control_flow.__file__)


class Anything:
    def __getitem__(self, key):
        return self


# In place of `ct`, for block 0.
PYTHON = types.SimpleNamespace(
    kernel=lambda f: f, Constant=Anything(), bid=lambda axis: 0, load=lambda x, index, shape: x[:16].copy(),
    store=lambda *args: None, static_assert=lambda condition: None)


def as_python(monkeypatch) -> types.ModuleType:
    """The module of kernels, as functions that Python runs."""
    module = types.ModuleType("as_python")
    module.ct = PYTHON
    monkeypatch.setitem(sys.modules, "as_python", module)
    exec(compile(FILE.read_text().replace("import cutile as ct", ""), FILE, "exec"), vars(module))
    return module


def visited(run) -> list:
    """Names of functions entered and lines visited in the file, while `run` runs under a debugger."""
    seen: list = []

    def trace(frame, event, arg):
        if Path(frame.f_code.co_filename) != FILE or frame.f_code.co_name == "<module>":
            return None
        if event == "call":
            seen.append(frame.f_code.co_name)
        elif event == "line":
            seen.append(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return seen


def by_statement(seen: list) -> list:
    """Lines of simple statements and headers counted as their first line: a call's arguments are no stops of ours."""
    first: dict[int, int] = {}
    for n in ast.walk(ast.parse(FILE.read_text())):
        if isinstance(n, ast.stmt) and not isinstance(n, ast.Return):
            end = n.body[0].lineno - 1 if hasattr(n, "body") else n.end_lineno
            first |= {line: n.lineno for line in range(n.lineno, end + 1) if end > n.lineno}
    mapped = [first.get(x, x) for x in seen]
    return mapped[:1] + [y for (x, y), z in zip(pairwise(mapped), seen[1:], strict=True)
                         if not (x == y and z in first)]


@pytest.mark.parametrize("deep", [True, False])
@pytest.mark.parametrize("name", ["straight", "loops", "branches"])
def test_lines_are_visited_as_python_visits_them(name, deep, monkeypatch):
    x, out = np.zeros(16, np.float32), np.zeros(16, np.float32)
    kernel, args = getattr(control_flow, name), (x, out, 3, deep)
    plain = getattr(as_python(monkeypatch), name)
    python = visited(lambda: plain(*args))
    ours = visited(lambda: ct.launch(None, (1,), kernel, args))
    assert by_statement(ours) == by_statement(python)
    assert len(python) > 10


def test_a_trace_function_is_a_debugger_unless_it_measures(monkeypatch):
    def trace(frame, event, arg):
        return None

    attached = []
    visited(lambda: attached.append(debugger.attached()))
    monkeypatch.setattr(sys, "gettrace", lambda: types.MethodType(trace, Anything()))
    attached.append(debugger.attached())
    measuring = type("Tracer", (), {"__module__": "coverage.pytracer", "trace": trace})()
    monkeypatch.setattr(sys, "gettrace", lambda: measuring.trace)
    attached.append(debugger.attached())
    assert attached == [True, True, False]
