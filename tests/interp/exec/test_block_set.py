"""Sets of running blocks: who they are, splitting, and what meanings ask of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile.dtypes import bool_, int32
from cutile.interp.exec.block_set import BlockGrid, BlockList, Launch, Single, Widened
from cutile.interp.memory.strided_index import StridedIndex
from cutile.ops._op import Sig
from cutile.types import TileType
from tests.interp.block_sets import EXTENTS, grid, random_subsets


def test_a_split_along_one_axis_stays_a_grid():
    ctx = grid((4, 3, 1))
    yes, no = ctx.split(np.array([1, 0, 0, 1], bool).reshape(4, 1, 1))
    assert isinstance(yes, BlockGrid) and yes.batch_shape == (2, 3, 1) and no.batch_shape == (2, 3, 1)
    assert yes.bid(0).ravel().tolist() == [0, 3] and yes.bid(1).shape == (1, 3, 1)
    yes, no = ctx.split(np.eye(4, 3, dtype=bool).reshape(4, 3, 1))
    assert isinstance(yes, BlockList) and yes.batch_shape == (3,) and no.batch_shape == (9,)
    assert yes.blocks() == [(0, 0, 0), (1, 1, 0), (2, 2, 0)]


COEFFICIENTS = st.tuples(*[st.sampled_from([0, 0, 1, 1, -2, 3, 1 << 30])] * 3)


@settings(max_examples=150, deadline=None)
@given(EXTENTS, st.integers(0, 10**6), st.integers(-5, 5), COEFFICIENTS.filter(any))
def test_an_index_is_that_function_of_the_block_indices(extent, seed, constant, coefficients):
    whole = grid(extent, (1, 0, 2))
    for ctx in (whole, *random_subsets(np.random.default_rng(seed), whole)):
        got = ctx.index((constant, *coefficients))
        exact = [constant + sum(c * i for c, i in zip(coefficients, b)) for b in ctx.blocks()]
        wrapped = np.array(exact, np.int64).astype(np.int32).tolist()
        if isinstance(got, StridedIndex):
            assert wrapped == exact
            got = got.array()
        else:
            assert got.dtype == np.int32
        assert np.broadcast_to(got, ctx.batch_shape).ravel().tolist() == wrapped
    assert isinstance(whole.index((1, 1, 2, 0)), StridedIndex)


@pytest.mark.parametrize("block", [(0, 0, 0), (2, 1, 5)])
def test_single(block):
    ctx = Single(Launch((9, 9, 9)), block)
    assert [ctx.bid(k).item() for k in range(3)] == list(block)
    assert ctx.bid(0).dtype == np.int32 and ctx.bid(0).shape == ()
    assert ctx.num_blocks(1).item() == 9 and ctx.batch_shape == () and ctx.blocks() == [block]


def test_each_goes_block_by_block():
    ctx = grid((2, 2, 1))
    sig = Sig((TileType(int32, (2,)), TileType(int32)), ())
    x, y = np.arange(4).reshape(2, 1, 1, 2), np.asarray(7)
    got = [(a.tolist(), b.item()) for a, b in ctx.each(sig, (x, y))]
    assert got == [([0, 1], 7), ([0, 1], 7), ([2, 3], 7), ([2, 3], 7)]


def test_failures_are_those_of_their_blocks():
    ctx = grid((3, 1, 1), (4, 0, 0))
    sig = Sig((TileType(bool_, (2,)),), ())
    ctx.fail(sig, np.array([[1, 1], [0, 1], [1, 0]], bool).reshape(3, 1, 1, 2), "first")
    ctx.fail(sig, np.zeros((2,), bool), "second")
    assert {b: e.message for b, e in ctx.launch.failed.items()} == {
        (4, 0, 0): "assertion failed: second in block (4, 0, 0)",
        (5, 0, 0): "assertion failed: first in block (5, 0, 0)",
        (6, 0, 0): "assertion failed: first in block (6, 0, 0)"}


def test_widened_block_coordinates():
    ctx = Widened(grid((3, 1, 1)), 2)
    assert ctx.bid(0).shape == (3, 1, 1, 1, 1)
