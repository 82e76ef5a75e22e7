"""Accesses to elements at indices that keep the axes of an array apart, against element by element."""

import itertools

import numpy as np
import pytest

from cutile import dtypes
from cutile._support.strides import without_repetition
from cutile.interp.memory import elements, separable
from cutile.interp.memory.array_view import wrap

H, W = 40, 50
ROWS = {  # coordinates along an axis of 40
    "inside": np.arange(4, 36), "over the start": np.arange(-3, 29), "over the end": np.arange(20, 52),
    "wrapped": np.arange(-2, 30) % H, "clamped": np.clip(np.arange(-8, 24), 0, H - 1), "outside": np.arange(90, 122),
    "falling": np.arange(35, 3, -1), "scattered": np.random.default_rng(0).permutation(H)[:32],
    "far": np.where(np.arange(32) == 5, 2**62, np.arange(32)), "one": np.full(32, 7),
}
COLUMNS = {"inside": np.arange(16), "over the end": np.arange(40, 56),
           "scattered": np.random.default_rng(1).permutation(W)[:16]}


def tiles(rows, columns, layout):
    """Index tiles, of 4 blocks or of one, and the shape of a tile."""
    if layout == "blocks by rows":  # rows vary along the batch axis and along the first axis of the tile
        return rows.reshape(4, 1, 1, 8, 1), columns.reshape(1, 1, 1, 1, 16), (8, 16)
    if layout == "transposed":
        return rows.reshape(1, 1, 1, 1, 32), columns.reshape(1, 1, 1, 16, 1), (16, 32)
    return rows.reshape(32, 1), columns.reshape(1, 16), (32, 16)


@pytest.mark.parametrize("layout", ["blocks by rows", "transposed", "one for all"])
@pytest.mark.parametrize("rows, columns", list(itertools.product(ROWS, COLUMNS)))
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16], ids=str)
def test_gather_and_scatter_do_as_element_by_element(rows, columns, layout, dtype):
    i, j, shape = tiles(ROWS[rows], COLUMNS[columns], layout)
    full = np.broadcast_shapes(i.shape, j.shape)
    i, j = np.broadcast_to(i, full), np.broadcast_to(j, full)
    storage = dtypes.info(dtype).storage
    memory = np.arange(H * W).reshape(H, W).astype(storage)
    exist = (0 <= i) & (i < H) & (0 <= j) & (j < W)
    want = np.where(exist, memory[np.where(exist, i, 0), np.where(exist, j, 0)], 99)
    for writable in (False, True):
        got = wrap(memory.copy(), dtype, writable=writable).gather((i, j), None, np.float32(99), shape)
        assert got.dtype == np.float32 and (np.broadcast_to(got, full) == want).all()
    mask = np.arange(full[-1]) % 3 > 0
    got = wrap(memory, dtype).gather((i, j), np.broadcast_to(mask, full), np.float32(99), shape)
    assert (np.broadcast_to(got, full) == np.where(mask, want, 99)).all()

    value = np.random.default_rng(2).integers(0, 100, full).astype(np.float32)
    expected, written = memory.copy(), memory.copy()
    for at in np.ndindex(full):
        if exist[at]:
            expected[i[at], j[at]] = value[at]
    wrap(written, dtype).scatter((i, j), value, None, shape)
    assert (written == expected).all()


def test_slices_are_shifted_and_bounded():
    memory = np.arange(H * W, dtype=np.float32).reshape(H, W)
    part = wrap(memory, dtypes.float32).slice(0, np.int32(10), np.int32(30))
    i, j = np.broadcast_arrays(np.arange(-2, 30)[:, None], np.arange(16)[None, :])
    got = part.gather((i, j), None, np.float32(-1), (32, 16))
    assert (got == np.where((i >= 0) & (i < 20), memory[np.clip(i + 10, 0, H - 1), j], -1)).all()


def test_indices_that_share_an_axis_are_not_separable():
    bounds = wrap(np.zeros((H, W), np.float32), dtypes.float32).bounds
    diagonal = np.arange(32)[:, None] + np.zeros((1, 16), int)
    assert separable.separable(bounds, (diagonal, diagonal), (32, 16)) is None


def test_a_value_that_several_blocks_write_is_left_to_the_general_way():
    """The last block wins there."""
    memory = np.zeros((H, W), np.float32)
    i, j = np.broadcast_arrays(np.arange(32).reshape(1, 32, 1), np.arange(16).reshape(1, 1, 16))
    value = np.arange(3.0, dtype=np.float32).reshape(3, 1, 1) + np.zeros((3, 32, 16), np.float32)
    wrap(memory, dtypes.float32).scatter((i, j), value, None, (32, 16))
    assert (memory[:32, :16] == 2).all()


def test_repetition_is_taken_away():
    x = np.broadcast_to(np.arange(5)[:, None], (3, 5, 7))
    assert without_repetition(x).shape == (1, 5, 1)
    assert (elements.coordinates(wrap(np.zeros((9, 9), np.float32), dtypes.float32).bounds, (x, x), 3)[1][0]
            == np.arange(5).reshape(1, 5, 1)).all()
