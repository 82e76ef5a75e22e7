"""Whether a tool follows kernels line by line: a debugger, or coverage of branches.

Profilers and coverage of lines do not: these see the lines of kernels under every schedule.
"""

from __future__ import annotations

import sys
from typing import Any

_MEASURING = ("coverage", "trace", "_lsprof", "cProfile", "profile", "viztracer", "line_profiler", "pytest_cov")

_MONITORING = getattr(sys, "monitoring", None)  # Python 3.12 and later
_PYDEVD = frozenset({"_pydevd_bundle.pydevd_constants", "debugpy"})


def follows() -> str | None:
    """Why a kernel must run as its author wrote it, one block after another; None if nothing follows it."""
    if attached():
        return "a debugger is attached"
    coverage = sys.modules.get("coverage")
    if coverage is not None and _measures_branches(coverage):
        return "coverage of branches is measured"
    return None


def _measures_branches(coverage: Any) -> bool:
    """Whether coverage of branches is being measured: it asks which line followed which."""
    current = getattr(getattr(coverage, "Coverage", None), "current", None)
    running = current() if current is not None else None
    return running is not None and bool(running.get_option("run:branch"))


def attached() -> bool:
    """Whether a debugger traces this thread, or is attached to the process without tracing."""
    if sys.gettrace() is not None and _traced() or _MONITORING is not None and _monitored():
        return True
    return not sys.modules.keys().isdisjoint(_PYDEVD) and _pydevd()


def _traced() -> bool:
    trace = sys.gettrace()
    return trace is not None and not _measures(trace)


def _measures(trace) -> bool:
    """Whether a trace function belongs to a measuring tool: by its module, by that of the object whose method it is, or
    by the one that `python -m` runs.
    """
    owner = getattr(trace, "__self__", None) or trace
    modules = [getattr(x, "__module__", None) for x in (trace, owner, type(owner))]
    function = getattr(trace, "__func__", trace)
    modules.append(getattr(getattr(function, "__globals__", {}).get("__spec__"), "name", None))
    return any((m or "").split(".")[0] in _MEASURING for m in modules)


def _monitored() -> bool:
    if _MONITORING is None:
        return False
    tool = _MONITORING.get_tool(_MONITORING.DEBUGGER_ID)
    return tool is not None and tool.split(".")[0] not in _MEASURING


def _pydevd() -> bool:
    """Whether debugpy or PyCharm is connected. These may trace single code objects only, so `sys.gettrace` shows
    nothing until a breakpoint is hit.
    """
    modules = sys.modules
    if "_pydevd_bundle.pydevd_constants" in modules:
        holder = getattr(modules["_pydevd_bundle.pydevd_constants"], "GlobalDebuggerHolder", None)
        if getattr(holder, "global_dbg", None) is not None:
            return True
    if "debugpy" not in modules:
        return False
    connected = getattr(modules["debugpy"], "is_client_connected", None)
    return bool(connected and connected())
