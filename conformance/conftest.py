"""pytest conformance --impl NAME: which implementation is tested, and the report clause by clause."""

from __future__ import annotations

import os

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
