"""pytest conformance --impl NAME: which implementation is tested, and the report clause by clause."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from conformance import report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--impl", default=os.environ.get("CONFORMANCE_IMPL", "cutile:interp"),
                     help="cutile:interp (default), cutile:gpu, cuda.tile, or package.module:AdapterClass")
    parser.addoption("--report", default=None, metavar="FOLDER", help="write report.json and report.html there")


def pytest_configure(config: pytest.Config) -> None:
    os.environ["CONFORMANCE_IMPL"] = config.getoption("--impl")
    config.addinivalue_line("markers", "clause(*ids): the clauses that a test shows")
    config.addinivalue_line("markers", "deep: too long for each change")
    config.pluginmanager.register(report.Recorder(config), "conformance-report")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """A test of what the hardware lacks is not applicable there."""
    from conformance.api import impl

    try:
        return (yield)
    except impl.not_applicable as e:
        pytest.skip(f"not applicable: {e}")
