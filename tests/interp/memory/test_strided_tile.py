"""Tiles at lines of tile indices: as `tile` finds them at the same indices written out, or not at all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import dtypes as dt
from cutile.interp.memory import strided_tile
from cutile.interp.memory.array_view import wrap
from cutile.interp.memory.tile_access import StridedIndex
from tests.interp.memory.test_array_view import FILL, layouts

SETTINGS = settings(max_examples=150, deadline=None)


@st.composite
def lines(draw, lead):
    moves = [draw(st.integers(-2, 2)) if n > 1 and draw(st.booleans()) else 0 for n in lead]
    shape = tuple(n if d or draw(st.booleans()) else 1 for n, d in zip(lead, moves))
    return StridedIndex(draw(st.integers(-1, 4)), tuple(moves), shape)


@st.composite
def cases(draw):
    _, a = draw(layouts())
    lead = draw(st.sampled_from([(1, 1, 1), (4, 1, 1), (2, 3, 1), (2, 1, 2)]))
    origin = [draw(st.one_of(lines(lead), st.integers(-1, 3).map(lambda i: np.asarray(i, np.int32)))) for _ in a.shape]
    tile = tuple(draw(st.sampled_from([1, 2, 4])) for _ in a.shape)
    steps = draw(st.one_of(st.none(), st.tuples(*[st.integers(1, 3)] * a.ndim)))
    return a, origin, tile, tuple(draw(st.permutations(range(a.ndim)))), steps


def written_out(origin):
    return [j.array().astype(np.int32) if type(j) is StridedIndex else j for j in origin]


@SETTINGS
@given(cases())
def test_a_spot_is_the_tile(case):
    a, origin, tile, order, steps = case
    view = wrap(a, dt.float32)
    view.buffer.may_change = False
    want = view.tile(written_out(origin), tile, order, FILL, steps)
    got = view.inside(origin, tile, order, steps)
    assert (got is None) == (FILL in want)
    if got is not None:
        assert not got.flags.writeable and np.shares_memory(got, a)
        assert np.array_equal(np.broadcast_to(got, np.broadcast_shapes(got.shape, want.shape)),
                              np.broadcast_to(want, np.broadcast_shapes(got.shape, want.shape)))


@SETTINGS
@given(cases())
def test_alone_means_that_no_element_is_there_twice(case):
    a, origin, tile, order, steps = case
    numbers = np.arange(a.size).reshape(a.shape)
    place = wrap(numbers, dt.int64).buffer.place
    spot = strided_tile.find(place.strides, (0,) * a.ndim, a.shape, origin, tile, order, steps)
    if spot is not None and spot.alone:
        there = spot.of(place)
        assert np.unique(there).size == there.size


@pytest.mark.parametrize("moves", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_blocks_that_share_a_tile_are_not_alone(moves):
    origin = [StridedIndex(0, (moves[0], moves[1], 0), (2, 2, 1))]
    spot = strided_tile.find((4,), (0,), (64,), origin, (8,), (0,), None)
    assert spot.shape == (2, 2, 1, 8) and not spot.alone
    origin = [StridedIndex(0, (1, 0, 0), (2, 1, 1)), StridedIndex(0, (0, 1, 0), (1, 2, 1))]
    assert strided_tile.find((64, 4), (0, 0), (16, 16), origin, (8, 8), (0, 1), None).alone


def test_indices_that_are_no_lines_have_no_spot():
    assert strided_tile.find((4,), (0,), (64,), [np.arange(2)], (8,), (0,), None) is None
