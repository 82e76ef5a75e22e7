"""The adapter that runs the conformance suite after each pass notices a pass that changes what can be seen."""

from dataclasses import replace

import numpy as np
import pytest

import cutile as ct
from cutile.ir.nodes import Op
from cutile.ir.walk import rewrite
from cutile.ops import arithmetic
from tests.passes import adapter


@ct.kernel
def add_twice(x, y):
    t = u = ct.load(x, 0, 4)
    for _ in range(3):
        t = t + abs(u)
    ct.store(y, 0, t)
    ct.print(ct.bid(0))


@ct.kernel
def fail(x):
    ct.store(x, ct.bid(0), 1.0)
    ct.assert_(ct.bid(0) < 1, "only one")


def subtracting(kernel):
    """A wrong pass: every addition subtracts."""

    def wrong(old, n):
        return [replace(n, op=arithmetic.sub)] if isinstance(n, Op) and n.op is arithmetic.add else None

    return rewrite(kernel, wrong)


@pytest.fixture
def launch(monkeypatch):
    monkeypatch.setattr(adapter, "_after", type(adapter._after)())
    return adapter.EachPass().launch


def test_results_and_output_are_those_of_the_front_end(launch, capsys):
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    launch((1,), add_twice, (x, y))
    assert y.tolist() == (4 * x).tolist() and x.tolist() == [0, 1, 2, 3]
    assert capsys.readouterr().out == "0\n"


def test_errors_are_those_of_the_front_end(launch):
    with pytest.raises(ct.TileError, match="only one"):
        launch((2,), fail, (np.zeros(4, np.float32),))


def test_passes_are_run(launch):
    launch((1,), add_twice, (np.zeros(4, np.float32), np.zeros(4, np.float32)))
    (steps,) = adapter._after.values()
    assert any("licm" in name for name, _ in steps)


def test_a_wrong_pass_is_named(launch, monkeypatch):
    monkeypatch.setattr(adapter, "PASSES", (*adapter.PASSES, subtracting))
    with pytest.raises(AssertionError, match="subtracting changed the outcome of add_twice"):
        launch((1,), add_twice, (np.ones(4, np.float32), np.zeros(4, np.float32)))
