"""Branches, loops and calls over sets of blocks, against Python's own for each block."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile.errors import TileStepLimitError, TileValueError
from cutile.interp.exec import divergence
from cutile.interp.exec.block_set import BlockGrid, Launch
from cutile.interp.exec.divergence import MergePoint, RegionCode
from cutile.spans import Span
from tests.interp.block_sets import EXTENTS, grid, per_block, value

SPAN = Span("<test>", 1, 0, 1, 1, "kernel")
POINT = MergePoint((0,), SPAN, np.dtype(np.int32))
SETTINGS = settings(max_examples=80, deadline=None)


def region(function, leaving=False, ranks=()) -> RegionCode:
    return RegionCode(ranks, leaving, function)


def numbers(ctx, x) -> list[int]:
    return [int(v) for v in per_block(ctx, x, 0).values()]


@SETTINGS
@given(EXTENTS, st.integers(0, 10**6))
def test_branch(extent, seed):
    rng = np.random.default_rng(seed)
    ctx = grid(extent)
    cond, x = value(rng, ctx, ()) % 2 == 0, value(rng, ctx, ())
    yes = region(lambda ctx, x: (x + 1,), ranks=(0,))
    no = region(lambda ctx, x: (x * 2,), ranks=(0,))
    (got,) = divergence.branch_all(ctx, cond, yes, (x,), no, (x,), POINT)
    want = [a + 1 if c else a * 2 for c, a in zip(numbers(ctx, cond), numbers(ctx, x))]
    assert numbers(ctx, got) == want


def test_blocks_that_agree_are_not_split():
    ctx, seen = grid((4, 1, 1)), []
    side = region(lambda ctx: seen.append(ctx) or (np.zeros(()),))
    divergence.branch_all(ctx, np.ones((4, 1, 1), bool), side, (), side, (), POINT)
    assert seen == [ctx]


def test_only_blocks_that_reach_the_end_come_out_of_a_branch():
    ctx = grid((4, 1, 1))
    cond = np.array([1, 0, 0, 1], bool).reshape(4, 1, 1)
    stay = region(lambda ctx: (ctx, (ctx.bid(0),)), leaving=True)
    leave = region(lambda ctx: None, leaving=True)
    out, (x,) = divergence.branch(ctx, cond, stay, (), leave, (), POINT)
    assert out.blocks() == [(0, 0, 0), (3, 0, 0)] and numbers(out, x) == [0, 3]
    assert divergence.branch(ctx, cond, leave, (), leave, (), POINT) is None


@SETTINGS
@given(EXTENTS, st.integers(0, 10**6), st.booleans())
def test_for(extent, seed, uniform):
    """Bounds that are the same for all blocks, or differ; the body sees its blocks' part of what it captures."""
    rng = np.random.default_rng(seed)
    ctx = grid(extent)
    bounds = [np.asarray(rng.integers(low, 7)) if uniform else value(rng, ctx, ()) % 6 + low for low in (0, 0, 1)]
    x, y = value(rng, ctx, ()), value(rng, ctx, ())

    def body(ctx, i, total, y):
        assert i.dtype == np.int32
        return (total * 3 + i + y,)

    out, (got,) = divergence.for_loop(ctx, tuple(bounds), (x,), region(body, ranks=(0,)), (y,), POINT)
    assert out is ctx
    want = []
    for start, stop, step, a, b in zip(*(numbers(ctx, v) for v in (*bounds, x, y))):
        for i in range(start, stop, step):
            a = a * 3 + i + b
        want.append(a)
    assert numbers(ctx, got) == want


def test_for_that_blocks_leave():
    """Blocks break at their own time, with values of their own."""
    ctx = grid((5, 1, 1))

    def body(ctx, i, total, breaks, continues):
        done = ctx.bid(0) == i
        if done.all() or not done.any():
            if done.any():
                breaks.append((ctx, (total + 100,)))
                return None
            return ctx, (total + 1,)
        out, rest = ctx.split(done)
        take = ctx.narrowing
        breaks.append((out, (take(out).take(total, 0) + 100,)))
        continues.append((rest, (take(rest).take(total, 0) + 1,)))
        return None

    bounds = tuple(map(np.asarray, (0, 3, 1)))
    out, (x,) = divergence.for_loop(ctx, bounds, (np.zeros((), int),), region(body, leaving=True), (), POINT)
    assert out is ctx and numbers(ctx, x) == [100, 101, 102, 3, 3]


@SETTINGS
@given(EXTENTS, st.integers(0, 10**6))
def test_while(extent, seed):
    rng = np.random.default_rng(seed)
    ctx = grid(extent)
    x, limit = value(rng, ctx, ()), value(rng, ctx, ())
    cond = region(lambda ctx, x, limit: (x < limit,), ranks=(0,))
    body = region(lambda ctx, x, limit: (x * 2 + 1,), ranks=(0,))
    _, (got,) = divergence.while_loop(ctx, (x,), cond, (limit,), body, (limit,), MergePoint((0,), SPAN), (0,))
    want = []
    for a, b in zip(numbers(ctx, x), numbers(ctx, limit)):
        while a < b:
            a = a * 2 + 1
        want.append(a)
    assert numbers(ctx, got) == want


def test_a_call_from_which_blocks_return_early():
    ctx = grid((4, 1, 1))

    def body(ctx, returns):
        out, rest = ctx.split(ctx.bid(0) > 1)
        returns.append((out, (out.bid(0) * 10,)))
        return rest, (rest.bid(0),)

    (x,) = divergence.frame(ctx, region(body, leaving=True), (), POINT)
    assert numbers(ctx, x) == [0, 1, 20, 30]


@pytest.mark.parametrize("step", [0, -1])
def test_steps_are_positive(step):
    ctx = grid((2, 1, 1))
    for steps in (np.asarray(step), np.array([1, step]).reshape(2, 1, 1)):
        with pytest.raises(TileValueError, match=f"positive, got {step}"):
            divergence.for_loop(ctx, (np.asarray(0), np.asarray(3), steps), (), region(lambda *x: ()), (), POINT)


def test_iterations_are_counted_for_each_block():
    ctx = BlockGrid(Launch((3, 1, 1), 8), (0, 0, 0), (3, 1, 1))
    bounds = tuple(map(np.asarray, (0, 3, 1)))
    with pytest.raises(TileStepLimitError, match=r"more than 8 iterations.*block \(0, 0, 0\)"):
        divergence.for_loop(ctx, bounds, (), region(lambda *x: ()), (), POINT)
