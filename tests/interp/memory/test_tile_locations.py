"""Where tiles lie: at strided indices as at the same indices written out, and as the elements say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import dtypes as dt
from cutile.interp.memory.array_view import wrap
from cutile.interp.memory.irregular_tiles import IrregularTiles
from cutile.interp.memory.strided_index import StridedIndex
from cutile.interp.memory.tile_locations import Clipped, Full, TileBounds, classify, locate
from tests.interp.memory.test_array_view import FILL, layouts

SETTINGS = settings(max_examples=150, deadline=None)


@st.composite
def strided_indices(draw, batch_shape):
    moves = [draw(st.integers(-2, 2)) if n > 1 and draw(st.booleans()) else 0 for n in batch_shape]
    shape = tuple(n if d or draw(st.booleans()) else 1 for n, d in zip(batch_shape, moves))
    return StridedIndex(draw(st.integers(-1, 4)), tuple(moves), shape)


@st.composite
def cases(draw):
    _, a = draw(layouts())
    batch_shape = draw(st.sampled_from([(1, 1, 1), (4, 1, 1), (2, 3, 1), (2, 1, 2)]))
    numbers = st.integers(-1, 3).map(lambda i: np.asarray(i, np.int32))
    origin = [draw(st.one_of(strided_indices(batch_shape), numbers)) for _ in a.shape]
    tile = tuple(draw(st.sampled_from([1, 2, 4])) for _ in a.shape)
    steps = draw(st.one_of(st.none(), st.tuples(*[st.integers(1, 3)] * a.ndim)))
    return a, origin, tile, tuple(draw(st.permutations(range(a.ndim)))), steps


def written_out(origin):
    return [j.array().astype(np.int32) if type(j) is StridedIndex else j for j in origin]


@SETTINGS
@given(cases())
def test_a_view_is_the_tile(case):
    a, origin, tile, order, steps = case
    view = wrap(a, dt.float32)
    view.buffer.may_change = False
    want = view.tile(written_out(origin), tile, order, FILL, steps)
    got = view.view(origin, tile, order, steps)
    assert (got is None) == (FILL in want)
    if got is not None:
        assert not got.flags.writeable and np.shares_memory(got, a)
        shape = np.broadcast_shapes(got.shape, want.shape)
        assert np.array_equal(np.broadcast_to(got, shape), np.broadcast_to(want, shape))


@SETTINGS
@given(cases())
def test_disjoint_means_that_no_element_is_there_twice(case):
    a, origin, tile, order, steps = case
    numbers = np.arange(a.size).reshape(a.shape)
    memory = wrap(numbers, dt.int64).buffer.stored_memory
    where = locate(memory.strides, TileBounds((0,) * a.ndim, a.shape, True), origin, tile, order, steps or tile)
    if isinstance(where, Full) and where.tile.disjoint:
        there = where.tile.of(memory)
        assert np.unique(there).size == there.size


@SETTINGS
@given(cases())
def test_parts_of_clipped_tiles_are_what_exists(case):
    a, origin, tile, order, steps = case
    memory = wrap(a, dt.float32).buffer.stored_memory
    where = locate(memory.strides, TileBounds((0,) * a.ndim, a.shape, True), origin, tile, order, steps or tile)
    want = wrap(a, dt.float32).tile(written_out(origin), tile, order, FILL, steps)
    if isinstance(where, Clipped):
        got = np.full(where.shape, FILL)
        for part, box in where.parts:
            assert np.all(got[part] == FILL)  # no part twice
            got[part] = box.of(memory)
        assert np.array_equal(got, np.broadcast_to(want, got.shape))
    else:
        assert isinstance(where, IrregularTiles) or FILL not in want


@pytest.mark.parametrize("moves", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_blocks_that_share_a_tile_are_not_disjoint(moves):
    origin = (StridedIndex(0, (moves[0], moves[1], 0), (2, 2, 1)),)
    tile = classify((4,), (0,), (64,), origin, (8,), (0,), (8,)).tile
    assert tile.shape == (2, 2, 1, 8) and not tile.disjoint
    origin = (StridedIndex(0, (1, 0, 0), (2, 1, 1)), StridedIndex(0, (0, 1, 0), (1, 2, 1)))
    assert classify((64, 4), (0, 0), (16, 16), origin, (8, 8), (0, 1), (8, 8)).tile.disjoint


def test_arrays_of_indices_are_looked_at():
    bounds = TileBounds((0,), (64,), True)
    assert isinstance(locate((4,), bounds, [np.arange(2)], (8,), (0,), (8,)), Full)
    assert isinstance(locate((4,), bounds, [np.array([7, 8])], (8,), (0,), (8,)), Clipped)
    assert isinstance(locate((4,), bounds, [np.array([0, 3, 1])], (8,), (0,), (8,)), IrregularTiles)
    assert isinstance(locate((4,), bounds, [np.arange(64)], (8,), (0,), (1,)), Clipped)
    assert isinstance(locate((4,), bounds, [np.arange(64)], (32,), (0,), (1,)), IrregularTiles)  # too many edges


def test_bounds_that_differ_by_block_are_as_good_where_every_tile_ends_before():
    starts, stops = np.array([0, 8, 16]), np.array([8, 16, 24])
    where = locate((4,), TileBounds((starts,), (stops,), False), [np.asarray(0)], (8,), (0,), (8,))
    assert isinstance(where, Full) and where.tile.shape == (3, 8) and where.tile.strides == (32, 4)
    where = locate((4,), TileBounds((starts,), (stops - 1,), False), [np.asarray(0)], (8,), (0,), (8,))
    assert isinstance(where, IrregularTiles)


@pytest.mark.parametrize("step", [1, 8])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float16], ids=str)
def test_tiles_that_edges_cut_differently_are_read_and_written_as_one_by_one(dtype, step):
    """With steps of 1, nearly every tile has a cut of its own; with 8, many have the same."""
    memory = np.arange(20 * 30).reshape(20, 30).astype(dt.info(dtype).storage)
    rng = np.random.default_rng(step)
    origin = [rng.integers(-2, n // step + 2, 200).astype(np.int32) for n in memory.shape]
    origin[0][:3], origin[1][:3] = (2**31 - 1, 0, -1), (0, -(2**31), 2)
    got = wrap(memory, dtype).tile(origin, (8, 8), (0, 1), 7, (step, step))
    written = memory.copy()
    wrap(written, dtype).put(origin, np.full((200, 8, 8), np.float32(3)), (8, 8), (0, 1), (step, step))
    expected = memory.copy()
    for i, j, tile in zip(*(o.tolist() for o in origin), got, strict=True):
        for a, b in np.ndindex(8, 8):
            y, x = i * step + a, j * step + b
            inside = i >= 0 and j >= 0 and y < 20 and x < 30
            assert tile[a, b] == (memory[y, x] if inside else 7)
            if inside:
                expected[y, x] = 3
    assert (written == expected).all()
