"""Known differences in the report of the suite: they run, fail, and count as known."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from conformance import differences
from conformance.report import Recorder


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    (tmp_path / "mine.txt").write_text("test_bits.py::test_x[*] | rounds twice | BIT-1\n")
    real = differences.read
    monkeypatch.setattr(differences, "read", lambda name: real(name, tmp_path))
    return Recorder(SimpleNamespace(getoption=lambda name: {"--impl": "mine", "--report": None}[name]))


class Item:
    def __init__(self, name: str):
        self.nodeid, self.user_properties, self.markers = f"conformance/{name}", [], []

    def iter_markers(self, name):
        return [SimpleNamespace(args=("BIT-1.and.int",))]

    def add_marker(self, marker):
        self.markers.append(marker)


def finished(item: Item, outcome: str, **more):
    return SimpleNamespace(outcome=outcome, when="call", nodeid=item.nodeid, user_properties=item.user_properties,
                           **more)


CLAUSE = SimpleNamespace(id="BIT-1.and.int")


def test_a_known_difference(recorder):
    listed, other = Item("test_bits.py::test_x[i8]"), Item("test_bits.py::test_y")
    recorder.pytest_collection_modifyitems([listed, other])
    assert listed.markers[0].kwargs["reason"] == "known: rounds twice (BIT-1)" and not other.markers
    recorder.pytest_runtest_logreport(finished(other, "passed"))
    assert recorder.verdict(CLAUSE) == "holds"
    recorder.pytest_runtest_logreport(finished(listed, "skipped", wasxfail="known"))
    assert recorder.verdict(CLAUSE) == "known"
    assert recorder.known.report() == "known differences of mine: 1 listed, 1 met"
    recorder.pytest_runtest_logreport(finished(other, "failed"))
    assert recorder.verdict(CLAUSE) == "broken"


def test_one_that_has_gone_is_not_met(recorder):
    listed = Item("test_bits.py::test_x[i8]")
    recorder.pytest_collection_modifyitems([listed])
    recorder.pytest_runtest_logreport(finished(listed, "passed", wasxfail="known"))
    assert recorder.verdict(CLAUSE) == "holds"
    assert recorder.known.report().endswith("0 met; not met: test_bits.py::test_x[*]")
