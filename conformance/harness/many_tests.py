"""What a run of tens of thousands of short tests takes beside the tests. Each conftest.py imports these hooks."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from _pytest.runner import runtestprotocol


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collecting tests makes a million objects, which all stay: looking for garbage among them took half of the time.
    In a process of xdist the collector passes them by later, too. Kernels have many objects: it looks less often than
    Python's own threshold has it.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        if hasattr(session.config, "workerinput"):
            gc.freeze()
        gc.set_threshold(10_000, 10, 10)
        if enabled:
            gc.enable()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A process of xdist reports a setup or teardown only if it did not pass. Two of three reports do that: sending
    them and taking them in took a millisecond for each test.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
