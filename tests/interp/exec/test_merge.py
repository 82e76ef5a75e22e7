"""Values of blocks that part and meet, against the same done block by block."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import dtypes as dt
from cutile.interp.exec.merge import Kind, merge, narrow
from cutile.interp.memory.array_view import wrap
from tests.interp.block_sets import EXTENTS, grid, per_block, random_subsets, value


@settings(max_examples=150, deadline=None)
@given(EXTENTS, st.integers(0, 10**6), st.sampled_from([(), (2,), (1, 3)]))
def test_split_narrow_merge(extent, seed, core):
    rng = np.random.default_rng(seed)
    ctx = grid(extent, (1, 0, 2))
    x = value(rng, ctx, core)
    whole = per_block(ctx, x, len(core))
    sets = random_subsets(rng, ctx)
    assert sorted(b for s in sets for b in s.blocks()) == ctx.blocks()
    parts = []
    for s in sets:
        (y,) = narrow(ctx, s, (x,), (len(core),))
        axes = y.shape[:y.ndim - len(core)]
        assert axes == () or len(axes) == 3 or axes == s.batch_shape
        assert all((whole[b] == v).all() for b, v in per_block(s, y, len(core)).items())
        parts.append((s, (y + 1,)))
    keep = [p for p in parts if rng.random() < 0.8] or parts[:1]
    target, (z,) = merge(ctx, keep, (len(core),))
    assert target.blocks() == sorted(b for s, _ in keep for b in s.blocks())
    assert all((v == whole[b] + 1).all() for b, v in per_block(target, z, len(core)).items())
    if len(keep) == len(parts) and len(parts) > 1:
        assert target is ctx


def test_neighbours_are_narrowed_without_copying():
    ctx = grid((4, 1, 1))
    x = np.arange(8).reshape(4, 1, 1, 2)
    yes, _ = ctx.split(np.array([0, 1, 1, 0], bool).reshape(4, 1, 1))
    (y,) = narrow(ctx, yes, (x,), (1,))
    assert np.shares_memory(x, y) and y.ravel().tolist() == [2, 3, 4, 5]


def test_merging_all_of_one_part_copies_nothing():
    ctx = grid((3, 1, 1))
    x = np.zeros((3, 1, 1))
    assert merge(ctx, [(ctx, (x,))], (0,)) == (ctx, (x,))
    yes, no = ctx.split(np.array([0, 1, 1], bool).reshape(3, 1, 1))
    u = np.zeros(())
    assert merge(ctx, [(yes, (u,)), (no, (u,))], (0,))[1][0] is u


def test_narrow_passes_records_and_asks_arrays():
    class Descriptor:
        def for_blocks(self, take):
            return take(np.arange(3).reshape(3, 1, 1), 0)

    ctx = grid((3, 1, 1))
    yes, _ = ctx.split(np.array([0, 1, 1], bool).reshape(3, 1, 1))
    record = []
    a, r = narrow(ctx, yes, (Descriptor(), record), (Kind.ARRAY, Kind.SHARED))
    assert a.ravel().tolist() == [1, 2] and r is record


def test_arrays_that_differ_meet_as_one_of_them_per_block():
    ctx = grid((3, 1, 1))
    yes, no = ctx.split(np.array([0, 1, 1], bool).reshape(3, 1, 1))
    a, b = (wrap(np.full(4, x, np.float32), dt.float32) for x in (1, 2))
    target, (y,) = merge(ctx, [(yes, (a,)), (no, (b,))], (Kind.ARRAY,))
    assert target is ctx and y.tile([np.asarray(0)], (4,), (0,), 0)[..., 0].ravel().tolist() == [2, 1, 1]
    assert merge(ctx, [(yes, (a,)), (no, (a,))], (Kind.ARRAY,))[1][0] is a
