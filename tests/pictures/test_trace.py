"""Running a launch to see what it does: arrays stay as they were, failures are shown, blocks are chosen."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.gpu import driver as drivers
from cutile.pictures import trace as traces
from cutile.pictures.trace import DETAILED, trace
from tests.gpu.arrays import Cuda
from tests.gpu.fake_driver import FakeDriver
from tests.runtime.test_host_copies import scale


@ct.kernel
def adds(x, y):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), (4,)) + ct.load(y, ct.bid(0), (4,)))


@ct.kernel
def fails(x):
    t = ct.load(x, ct.bid(0), (4,))
    ct.assert_(ct.bid(0) != 1, "no block 1")
    ct.store(x, ct.bid(0), t + 1.0)


def test_arrays_are_put_back():
    x, y = np.ones(8, np.float32), np.arange(8, dtype=np.float32)
    found = trace(adds, (2,), (x, y))
    assert y.tolist() == list(range(8)) and not found.findings and found.error is None


def test_an_error_of_the_launch_is_kept_and_what_ran_before_is_seen():
    x = np.zeros(12, np.float32)
    with settings.override(SCHEDULE="block"):
        found = trace(fails, (3,), (x,))
    assert type(found.error) is ct.TileAssertionError and not x.any()
    assert found.recorder.reads.tolist() == [1] * 8 + [0] * 4 and found.recorder.writes.tolist() == [1] * 4 + [0] * 8


def test_settings_that_leave_blocks_out_or_change_them_do_not_count():
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    with settings.override(BLOCK="1", PROFILE="1", SANITIZE="all", UNDETERMINED="poison"):
        found = trace(adds, (2,), (x, y))
    assert found.recorder.writes.tolist() == [0] * 8 + [1] * 8


def test_arrays_on_a_gpu_are_copied(monkeypatch):
    monkeypatch.setattr(drivers, "_driver", FakeDriver().start())
    x, y = np.arange(40, dtype=np.float32), np.full(50, 7, np.float32)
    found = trace(scale, (4,), (Cuda(x), Cuda(y), 2.0, 16), 77)
    assert y.tolist() == [7] * 50
    assert found.recorder.writes[40:].tolist() == [1] * 50
    assert [f.array for f in found.findings if f.check == "bounds"] == ["x"]


def test_arrays_that_are_only_read_may_be_read_only():
    x, y = np.broadcast_to(np.float32(3), (8,)), np.zeros(8, np.float32)
    assert trace(copies, (2,), (x, y)).recorder.reads.tolist() == [1] * 8 + [0] * 8


def test_loops_of_elements_beyond_the_end_are_no_finding():
    x = np.arange(7, dtype=np.float32)
    assert not trace(halves, (2,), (x,)).findings


def halved(x):
    while x > 1:
        x = x / 2
    return x


@ct.kernel
def halves(x):
    ct.store(x, ct.bid(0), ct.elementwise(halved, ct.load(x, ct.bid(0), 4)))


@ct.kernel
def copies(x, y):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), (4,)))


@pytest.mark.parametrize("grid", [(1, 1, 1), (48, 1, 1), (7, 5, 3), (1000, 1, 1), (1, 1, 5000), (300, 200, 2)])
def test_chosen_blocks(grid):
    found = traces._chosen(grid)
    assert len(found) == len(set(found)) == min(DETAILED, int(np.prod(grid)))
    assert all(0 <= i < n for block in found for i, n in zip(block, grid, strict=True))
    assert {(0, 0, 0), tuple(n - 1 for n in grid)} <= set(found)


def test_an_empty_grid():
    found = trace(adds, (0,), (np.ones(8, np.float32), np.ones(8, np.float32)))
    assert found.recorder.arrays is None and not found.recorder.steps


X = np.ones(4, np.float32)


@pytest.mark.parametrize("kernel, grid, args, more, error, says", [
    (print, (1,), (), {}, TypeError, "first argument of view"),
    (adds, (1,), [X, X], {}, TypeError, "args must be a tuple, got list"),
    (adds, 1, (X, X), {}, TypeError, r"grid must be a tuple .* write \(1,\)"),
    (adds, (1,), (X,), {}, TypeError, "expects 2 argument"),
    (adds, (2,), (X, X), {"blocks": [(2,)]}, ValueError, r"block \(2, 0, 0\) is outside the grid \(2, 1, 1\)"),
    (adds, (2,), (X, X), {"blocks": ["a"]}, ValueError, "'a' is no block: write"),
])
def test_wrong_arguments(kernel, grid, args, more, error, says):
    with pytest.raises(error, match=says):
        trace(kernel, grid, args, **more)


def test_arrays_that_are_too_large(monkeypatch):
    monkeypatch.setattr(traces, "MOST_ELEMENTS", 15)
    with pytest.raises(ct.TileUnsupportedFeatureError, match="adds was launched on arrays of 16 elements"):
        trace(adds, (2,), (np.ones(8, np.float32), np.ones(8, np.float32)))
