"""Sets of running blocks: splitting, narrowing and joining, against the same done block by block."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile.dtypes import bool_, int32
from cutile.interp.exec.block_set import BlockGrid, BlockList, Launch, Single, Widened
from cutile.interp.exec.merge import ARRAY, RECORD, merge, narrow
from cutile.ops._op import Sig
from cutile.types import TileType

EXTENTS = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))


def box(extent, origin=(0, 0, 0)) -> BlockGrid:
    return BlockGrid(Launch((9, 9, 9)), origin, extent)


def value(rng, ctx, core: tuple[int, ...]) -> np.ndarray:
    """A random value: the same for all blocks, or with some leading axes of length 1."""
    if rng.random() < 0.2:
        return rng.integers(0, 99, core)
    return rng.integers(0, 99, tuple(n if rng.random() < 0.6 else 1 for n in ctx.batch_shape) + core)


def per_block(ctx, x: np.ndarray, rank: int) -> dict:
    return dict(zip(ctx.blocks(), ctx.flat(x, rank), strict=True))


def random_subsets(rng, ctx):
    """Disjoint sets that came from splitting again and again."""
    mask = value(rng, ctx, ()) % 2 == 0
    if mask.all() or not mask.any():
        return [ctx]
    parts = list(ctx.split(mask))
    return [s for p in parts for s in (random_subsets(rng, p) if rng.random() < 0.5 else [p])]


@settings(max_examples=150, deadline=None)
@given(EXTENTS, st.integers(0, 10**6), st.sampled_from([(), (2,), (1, 3)]))
def test_split_narrow_merge(extent, seed, core):
    rng = np.random.default_rng(seed)
    ctx = box(extent, (1, 0, 2))
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


def test_a_split_along_one_axis_stays_a_box():
    ctx = box((4, 3, 1))
    yes, no = ctx.split(np.array([1, 0, 0, 1], bool).reshape(4, 1, 1))
    assert isinstance(yes, BlockGrid) and yes.batch_shape == (2, 3, 1) and no.batch_shape == (2, 3, 1)
    assert yes.bid(0).ravel().tolist() == [0, 3] and yes.bid(1).shape == (1, 3, 1)
    yes, no = ctx.split(np.eye(4, 3, dtype=bool).reshape(4, 3, 1))
    assert isinstance(yes, BlockList) and yes.batch_shape == (3,) and no.batch_shape == (9,)
    assert yes.blocks() == [(0, 0, 0), (1, 1, 0), (2, 2, 0)]


def test_neighbours_are_narrowed_without_copying():
    ctx = box((4, 1, 1))
    x = np.arange(8).reshape(4, 1, 1, 2)
    yes, _ = ctx.split(np.array([0, 1, 1, 0], bool).reshape(4, 1, 1))
    (y,) = narrow(ctx, yes, (x,), (1,))
    assert np.shares_memory(x, y) and y.ravel().tolist() == [2, 3, 4, 5]


def test_merging_all_of_one_part_copies_nothing():
    ctx = box((3, 1, 1))
    x = np.zeros((3, 1, 1))
    assert merge(ctx, [(ctx, (x,))], (0,)) == (ctx, (x,))
    yes, no = ctx.split(np.array([0, 1, 1], bool).reshape(3, 1, 1))
    u = np.zeros(())
    assert merge(ctx, [(yes, (u,)), (no, (u,))], (0,))[1][0] is u


def test_narrow_passes_records_and_asks_arrays():
    class Descriptor:
        def lanes(self, take):
            return take(np.arange(3).reshape(3, 1, 1), 0)

    ctx = box((3, 1, 1))
    yes, _ = ctx.split(np.array([0, 1, 1], bool).reshape(3, 1, 1))
    record = []
    a, r = narrow(ctx, yes, (Descriptor(), record), (ARRAY, RECORD))
    assert a.ravel().tolist() == [1, 2] and r is record


@pytest.mark.parametrize("block", [(0, 0, 0), (2, 1, 5)])
def test_single(block):
    ctx = Single(Launch((9, 9, 9)), block)
    assert [ctx.bid(k).item() for k in range(3)] == list(block)
    assert ctx.bid(0).dtype == np.int32 and ctx.bid(0).shape == ()
    assert ctx.num_blocks(1).item() == 9 and ctx.batch_shape == () and ctx.blocks() == [block]


def test_each_goes_block_by_block():
    ctx = box((2, 2, 1))
    sig = Sig((TileType(int32, (2,)), TileType(int32)), ())
    x, y = np.arange(4).reshape(2, 1, 1, 2), np.asarray(7)
    got = [(a.tolist(), b.item()) for a, b in ctx.each(sig, (x, y))]
    assert got == [([0, 1], 7), ([0, 1], 7), ([2, 3], 7), ([2, 3], 7)]


def test_failures_are_those_of_their_blocks():
    ctx = box((3, 1, 1), (4, 0, 0))
    sig = Sig((TileType(bool_, (2,)),), ())
    ctx.fail(sig, np.array([[1, 1], [0, 1], [1, 0]], bool).reshape(3, 1, 1, 2), "first")
    ctx.fail(sig, np.zeros((2,), bool), "second")
    assert {b: e.message for b, e in ctx.launch.failed.items()} == {
        (4, 0, 0): "assertion failed: second in block (4, 0, 0)",
        (5, 0, 0): "assertion failed: first in block (5, 0, 0)",
        (6, 0, 0): "assertion failed: first in block (6, 0, 0)"}


def test_widened_block_coordinates():
    ctx = Widened(box((3, 1, 1)), 2)
    assert ctx.bid(0).shape == (3, 1, 1, 1, 1)
