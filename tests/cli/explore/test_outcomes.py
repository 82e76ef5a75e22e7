"""What a launch did in some order of its blocks."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.cli.explore.outcomes import Rerun
from cutile.cli.script import Caught
from cutile.interp.exec.turn_order import Drawn, Listed


@ct.kernel
def adds(xs, out, n):
    i = ct.bid(0)
    print("block", i)
    t = ct.load(xs[0], i, (2,))
    ct.store(out, i, t + n)
    ct.assert_(i < 3, "too far")


def rerun(blocks: int = 3) -> tuple[Rerun, list]:
    xs, out = [np.arange(8, dtype=np.float32)], np.zeros(8, np.float32)
    return Rerun(Caught((blocks,), adds, (xs, out, 5))), [*xs, out]


def test_arrays_prints_and_steps():
    launch, (x, out) = rerun()
    outcome, steps, races = launch.run(Listed([(2, 0, 0)]))
    assert launch.names == ["xs[0]", "out"] and launch.kernel == "adds"
    assert launch.elements(outcome, 1).tolist() == [5, 6, 7, 8, 9, 10, 0, 0]
    assert outcome.printed == "block 0\nblock 1\nblock 2\n" and outcome.error == "" and races == {}
    assert [s.block[0] for s in steps] == [2, 2, 2, 0, 0, 0, 1, 1, 1]
    assert [s.at and s.at.source_line().strip() for s in steps[:3]] == [
        None, "t = ct.load(xs[0], i, (2,))", "ct.store(out, i, t + n)"]


def test_arrays_are_put_back():
    launch, (x, out) = rerun()
    expected = launch.run(Drawn(3)).outcome
    assert [launch.run(order).outcome for order in (Drawn(1), Listed([]), Drawn(2))] == [expected] * 3
    assert not out.any()


def test_errors_are_outcomes():
    launch, (x, out) = rerun(4)
    outcome = launch.run(Listed([])).outcome
    assert "TileAssertionError: assertion failed: too far in block (3, 0, 0)" in outcome.error
    assert launch.elements(outcome, 1).tolist() == [5, 6, 7, 8, 9, 10, 11, 12] and not out.any()


def test_what_is_wrong_with_a_launch_is_its_error():
    with pytest.raises(TypeError):
        Rerun(Caught((1,), adds, (1, 2, 3, 4)))


@ct.kernel
def reads_what_others_write(x, out):
    i = ct.bid(0)
    ct.store(out, i, ct.load(x, 0, (1,)) + ct.load(x, 5, (1,)))
    ct.store(x, 0, 1.0)
    ct.assert_(i < 1, "too far")


def test_races_and_other_findings_are_told_apart():
    """Races are no part of the outcome. What other checks find is, where the settings ask for them."""
    def run(**settings_):
        launch = Rerun(Caught((2,), reads_what_others_write, (np.zeros(4, np.float32), np.zeros(2, np.float32))))
        with settings.override(**settings_):
            return launch.run(Listed([]))

    usual = run()
    assert sorted((r.array, r.loc.line) for r in usual.races.values()) == sorted(
        (r.array, r.loc.line) for r in run(SANITIZE="all").races.values()) and len(usual.races) == 2
    assert "TileAssertionError: assertion failed: too far in block (1, 0, 0)" in usual.outcome.error
    error = run(SANITIZE="all").outcome.error
    assert error.startswith("TileSanitizerError: bounds: ") and "race" not in error
