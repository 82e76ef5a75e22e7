"""How many elements an access reaches: every kind of access, against counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.interp import CompiledKernel, HostLaunch
from cutile.interp.traces.elements import reached
from cutile.interp.traces.watchers import Watcher, watched
from cutile.runtime import launch_plan
from tests.interp.traces.test_watchers import SCHEDULES


class Counter(Watcher):
    def __init__(self):
        self.counts = {}

    def accessed(self, access, place, ctx):
        name = access.op.op.spelling
        self.counts[name] = self.counts.get(name, 0) + reached(place, ctx)


def counts(kernel, grid, *args, schedule="batch"):
    counter = Counter()
    plan, values = launch_plan.find(kernel, args, None)
    with settings.override(SCHEDULE=schedule):
        HostLaunch(CompiledKernel(watched(plan.program.kernel, counter)), False).run((*grid, 1, 1)[:3], None, values,
                                                                                      False)
    return counter.counts


@ct.kernel
def tiles(x):
    t = ct.load(x, (ct.bid(0), ct.bid(1)), (4, 8), padding_mode=ct.PaddingMode.ZERO)
    ct.store(x.slice(0, 2, 7), (ct.bid(0), ct.bid(1)), t, check_bounds=True)


@ct.kernel
def gathers(x, out):
    i = ct.arange(8, dtype=ct.int32) + ct.bid(0) * 8
    v = ct.gather(x, i, mask=i % 2 == 0)
    ct.scatter(out, i, v)
    ct.atomic_add(out, i // 4, 1.0)


@ct.kernel
def advanced(x, which):
    rows = ct.load(which, 0, (4,))
    t = ct.load_advanced_indexing(x, (rows, ct.Slice(2, 4)))
    ct.store_advanced_indexing(x, (rows, ct.Slice(0, 4)), t)


@ct.kernel
def others(x, arrays, k):
    raw = x.get_raw_memory()
    o = ct.arange(4, dtype=ct.int32)
    raw.store_offset(o, raw.load_offset(o, mask=o > 0, padding_value=0.0))
    v = x.tiled_view((4,), traversal_steps=(3,))
    t = v.load(3)
    v.atomic_store_add(ct.bid(0), t)
    ct.store(arrays[ct.bid(0) + k], 0, t)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_elements_inside_the_array(schedule):
    x = np.zeros((10, 20), np.float32)
    assert counts(tiles, (3, 3), x, schedule=schedule) == {"load": 200, "store": 5 * 20}  # rows 2 to 6
    y = np.zeros(30, np.float32)
    assert counts(gathers, (4,), y, np.zeros(20, np.float32), schedule=schedule) == {
        "gather": 15, "scatter": 20, "atomic_add": 32}
    which = np.array([0, 9, 10, 3], np.int32)  # 10 is outside
    assert counts(advanced, (1,), np.zeros((10, 5), np.float32), which, schedule=schedule) == {
        "load": 4, "load_advanced_indexing": 3 * 3, "store_advanced_indexing": 3 * 4}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_raw_memory_views_and_lists(schedule):
    arrays = [np.zeros(n, np.float32) for n in (2, 9)]
    found = counts(others, (3,), np.zeros(12, np.float32), arrays, 0, schedule=schedule)
    assert found == {"load_offset": 3 * 3, "store_offset": 3 * 4, "load": 3 * 3, "atomic_store_add": 3 * 4,
                     "store": 2 + 4}  # of block 2 there is no array


@ct.kernel
def far(x: ct.IndexedWithInt64, j: ct.ScalarInt64):
    ct.load(x, j, (4,))


@pytest.mark.parametrize("j", [-1, -(1 << 62), 1 << 62, 5])
def test_tiles_far_away_reach_nothing(j):
    assert counts(far, (1,), np.zeros(12, np.float32), j) == {"load": 0}
