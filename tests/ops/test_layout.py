"""Carriers whose blocks lie last in memory hold the same values at the same shapes."""

import numpy as np
import pytest

from cutile.ops import _layout

SHAPES = [((40, 1, 1), (8, 8)), ((4, 9, 1), (2, 1, 4)), ((64,), (16,)), ((512, 1, 1), (4, 4)), ((2, 1, 32), ())]


def carriers(batch_shape, tile_shape, dtype=np.float32):
    x = np.arange(np.prod(batch_shape + tile_shape)).reshape(batch_shape + tile_shape).astype(dtype)
    return x, len(tile_shape)


@pytest.mark.parametrize("batch_shape, tile_shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.float64])
def test_moved_values_are_equal(batch_shape, tile_shape, dtype):
    x, rank = carriers(batch_shape, tile_shape, dtype)
    y = _layout.with_blocks_last(x, rank)
    assert y.shape == x.shape and y.dtype == x.dtype and (y == x).all()
    assert _layout.lie_last(y, rank) == (rank > 0) and not _layout.lie_last(x, rank)
    assert (_layout.copied_apart(y, rank) == x).all()
    assert _layout.with_blocks_last(y, rank) is y or not rank


def test_few_blocks_stay():
    x, rank = carriers((4, 1, 1), (8, 8))
    assert _layout.with_blocks_last(x, rank) is x
    assert _layout.empty_result(2, x.dtype, x) is None


def test_a_place_has_the_shape_of_all_operands():
    x, y = np.zeros((64, 1, 1, 8, 1)), np.zeros((1, 4))
    assert _layout.empty_result(2, x.dtype, x, y).shape == (64, 1, 1, 8, 4)
    assert _layout.empty_result(2, x.dtype, y, y) is None


@pytest.mark.parametrize("shape", [(64,), (4, 16), (2, 2, 4, 4), (8, 1, 8), (1, 64)])
@pytest.mark.parametrize("permuted", [False, True])
def test_reshaped_tiles_are_those_of_row_major_order(shape, permuted):
    x, rank = carriers((512, 1, 1), (8, 8))
    y = _layout.with_blocks_last(x, rank)
    if permuted:  # then elements must move
        x, y = x.swapaxes(-1, -2), y.swapaxes(-1, -2)
    got = _layout.reshaped(y, rank, shape)
    assert (got == x.reshape((512, 1, 1, *shape))).all() and _layout.lie_last(got, len(shape))


def test_joined_tiles_keep_the_layout():
    x, rank = carriers((64, 1, 1), (4, 2))
    y = _layout.with_blocks_last(x, rank)
    for a in (x, y):
        got = _layout.joined([a, a + 1], rank, -2)
        assert (got == np.concatenate([x, x + 1], axis=-2)).all()
        assert _layout.lie_last(got, rank) == (a is y)
