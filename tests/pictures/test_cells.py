"""Grids and arrays in cells."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from cutile.pictures.cells import Cells

SHAPES = [(), (1,), (7,), (5000,), (100, 64), (3, 1, 1), (1, 4000, 3), (70, 70, 70), (0, 5), (2, 3, 4, 5)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("most", [1, 10, 4096])
def test_cells_cover_the_shape(shape, most):
    cells = Cells(shape, most)
    assert prod(cells.counts) <= most
    assert all((n - 1) * c < size <= n * c for n, c, size in zip(cells.counts, cells.cell, shape, strict=True) if size)
    if prod(shape) <= most:
        assert cells.cell == (1,) * len(shape)


@pytest.mark.parametrize("shape", [s for s in SHAPES if prod(s)])
@pytest.mark.parametrize("most", [1, 10, 4096])
def test_means_are_those_of_the_elements_of_each_cell(shape, most):
    cells, rng = Cells(shape, most), np.random.default_rng(0)
    x = rng.integers(0, 9, shape)
    at = np.broadcast_to(cells.of(np.indices(shape)), shape).reshape(-1)
    expected = [x.reshape(-1)[at == i].mean() for i in range(prod(cells.counts))]
    np.testing.assert_allclose(cells.mean(x).reshape(-1), expected)


def test_cells_are_as_square_as_they_can_be():
    assert Cells((100, 64), 4096).cell == (2, 1) and Cells((4000, 4000), 100).cell == (512, 512)
