"""Processes of xdist report a setup or teardown only if it did not pass; outside of them pytest does what it does."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from conformance.harness import many_tests


@pytest.fixture
def item(monkeypatch):
    """An item of such a process, what its hooks were told, and what running it reports."""
    told, reports = [], []
    ihook = SimpleNamespace(**{
        f"pytest_runtest_{name}": lambda name=name, **what: told.append((name, what.get("report")))
        for name in ("logstart", "logreport", "logfinish")})
    monkeypatch.setattr(many_tests, "runtestprotocol", lambda item, log, nextitem: reports)
    config = SimpleNamespace(workerinput={})
    return SimpleNamespace(ihook=ihook, config=config, nodeid="a", location=("a", 1, "a"), told=told, reports=reports)


def report(when: str, outcome: str) -> SimpleNamespace:
    return SimpleNamespace(when=when, passed=outcome == "passed")


@pytest.mark.parametrize("outcomes, sent", [
    (("passed", "passed", "passed"), [1]), (("passed", "failed", "passed"), [1]),
    (("passed", "skipped", "passed"), [1]), (("failed", "passed"), [0]), (("skipped", "passed"), [0]),
    (("passed", "passed", "failed"), [1, 2])])
def test_what_is_reported(item, outcomes, sent):
    stages = ("setup", "call", "teardown") if len(outcomes) == 3 else ("setup", "teardown")
    item.reports += map(report, stages, outcomes)
    assert many_tests.pytest_runtest_protocol(item, None) is True
    assert item.told == [("logstart", None), *(("logreport", item.reports[k]) for k in sent), ("logfinish", None)]


def test_alone_pytest_reports(item):
    del item.config.workerinput
    assert many_tests.pytest_runtest_protocol(item, None) is None and not item.told
