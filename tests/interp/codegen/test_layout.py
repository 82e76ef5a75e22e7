"""Which programs have their blocks last in memory, and that no result depends on it."""

from random import Random

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.interp.codegen import batch_analysis, layout
from cutile.ops import _layout
from tests.interp.ir_programs import RandomKernel
from tests.interp.test_schedules_agree import GRIDS, trace
from tests.seeds import seeds


def chosen(kernel, *args, grid=(64,)):
    """Launch a kernel. Whether its blocks were laid last."""
    found = []
    real = layout.ops_to_move
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_analysis, "ops_to_move", lambda *of: found.append(real(*of)) or found[-1])
        ct.launch(None, grid, ct.kernel(kernel), args)
    return bool(found[0])


def ranks(x, y):
    """Of each of 8 elements, how many are smaller."""
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (4, 8))
    ct.store(y, (i, 0), ct.sum((t[:, None, :] < t[:, :, None]).astype(ct.int32), axis=1))


def copied(x, y):
    i = ct.bid(0)
    ct.store(y, (i, 0), ct.load(x, (i, 0), (4, 8)))


def smallest(x, y):
    """NumPy finds places of extrema along the last axis in memory only."""
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (4, 8))
    ct.store(y, (i, 0), t + ct.argmin(t, axis=1, keepdims=True).astype(ct.float32))


def constants(x, y):
    """What is computed from constants alone does not run."""
    i = ct.bid(0)
    k = ct.arange(8, dtype=ct.float32)
    few = ct.sum((k[None, :] < k[:, None]).astype(ct.float32) * k[None, :], axis=1)
    ct.store(y, (i, 0), ct.load(x, (i, 0), (4, 8)) * few)


def until_small(x, y):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (4, 8))
    while ct.max(t) > 1:
        t = t * 0.5 + ct.min(t, axis=1, keepdims=True) * 0.25 - ct.max(t, axis=0, keepdims=True) * 0.25
    ct.store(y, (i, 0), t.astype(y.dtype))


def product(x, y):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (4, 8))
    ct.store(y, (i, 0), ct.matmul(t, ct.matmul(ct.transpose(t), t)).astype(y.dtype))


def rows(x, y):
    i = ct.bid(0)
    t = ct.load(x, (0, 0), (256, 8))
    ct.store(y, (i, 0), (ct.sum(t) + ct.load(x, (i, 0), (4, 8))).astype(y.dtype))


@pytest.mark.parametrize("kernel, last", [(ranks, True), (copied, False), (smallest, False),
                                          (constants, False), (until_small, False), (product, False), (rows, False)])
def test_short_tiles_that_are_worked_on_have_their_blocks_last(kernel, last):
    x = np.random.default_rng(0).standard_normal((256, 8)).astype(np.float32)
    y = np.zeros((256, 8), np.int32 if kernel is ranks else np.float32)
    assert chosen(kernel, x, y) == last


@pytest.mark.parametrize("blocks", [1, 31, 32, 64, 1000])
def test_the_number_of_blocks_changes_no_result(blocks):
    x = np.random.default_rng(0).standard_normal((4 * blocks - 3, 8)).astype(np.float32)  # the last tile is clipped
    found = []
    for schedule in ("batch", "block"):
        y = np.zeros(x.shape, np.int32)
        with settings.override(SCHEDULE=schedule):
            ct.launch(None, (blocks,), ct.kernel(ranks), (x, y))
        found.append(y)
    assert (found[0] == found[1]).all() and (np.sort(found[0], axis=1) == np.arange(8)).all()


@seeds(25, 60)
def test_random_programs_give_the_same_with_blocks_last(seed, monkeypatch):
    monkeypatch.setattr(_layout, "ENOUGH", 1)
    monkeypatch.setattr(batch_analysis, "ops_to_move", lambda *of: frozenset(layout._sources(*of)))
    kernel = RandomKernel(Random(1000 + seed), 40).make()
    grid = GRIDS[seed % len(GRIDS)]
    assert trace(kernel, grid, [seed], "batch") == trace(kernel, grid, [seed], "block")
