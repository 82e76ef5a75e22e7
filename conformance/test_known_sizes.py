"""Tiles outside of arrays whose sizes are known when the kernel is compiled.

Compilers leave out checks of bounds where tiles divide a size that they know, as if each tile began inside. Here sizes
are constants of the program or of its arguments, tiles divide them or do not, and some tiles are wholly outside.
"""

from typing import Annotated, Any

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch
from conformance.test_computed_indices import in_python

TILE, AROUND = 4, 16  # elements of a tile, and of memory on each side of the array

#: which tile a block takes, from the block b, that is 0 to 3
INDICES = {"block": lambda b: b, "constant": lambda b: 2, "first": lambda b: 0, "before": lambda b: b - 1,
           "computed": lambda b: b * 2 - 1, "of int64": lambda b: ct.int64(b) + 1}
SIZES = [TILE, TILE + 1, 2 * TILE]
BLOCKS = 4


def sliced(x, size):
    return x.slice(0, AROUND, AROUND + size)


def tiles(index, size):
    """For each block: the tile that it takes, and the positions of its elements that are inside."""
    for b in range(BLOCKS):
        i = int(in_python(INDICES[index])(b))
        yield b, [(j, i * TILE + j) for j in range(TILE) if 0 <= i * TILE + j < size]


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("known", ["slice", "argument"])
class TestOneDimension:
    def arrays(self, known, size):
        """Memory, and what a kernel gets of it."""
        memory = np.arange(1, 2 * AROUND + size + 1, dtype=np.int32)
        return memory, memory if known == "slice" else memory[AROUND:AROUND + size]

    def annotation(self, known):
        return Any if known == "slice" else Annotated[Any, ct.ArrayAnnotation(static_shape_dims=(0,))]

    @clause("LOAD-5.outside", "LOAD-5.edge", "ANN-3.shape", "SLICE-1.size")
    def test_loads(self, known, size, index):
        f, part = INDICES[index], sliced if known == "slice" else (lambda x, size: x)

        @ct.kernel
        def k(x: self.annotation(known), y):
            b = ct.bid(0)
            ct.store(y, (b, 0), ct.load(part(x, size), f(b), (TILE,), padding_mode=ct.PaddingMode.ZERO)
                     .reshape((1, TILE)))

        (memory, x), y = self.arrays(known, size), np.full((BLOCKS, TILE), 7, np.int32)
        launch(k, x, y, grid=(BLOCKS,))
        want = np.zeros_like(y)
        for b, inside in tiles(index, size):
            for j, position in inside:
                want[b, j] = memory[AROUND + position]
        assert y.tolist() == want.tolist()

    @clause("STORE-1.outside", "STORE-1.edge", "ANN-3.shape", "SLICE-1.size")
    def test_stores(self, known, size, index):
        f, part = INDICES[index], sliced if known == "slice" else (lambda x, size: x)

        @ct.kernel
        def k(x: self.annotation(known)):
            ct.store(part(x, size), f(ct.bid(0)), ct.full((TILE,), -5, ct.int32))

        memory, x = self.arrays(known, size)
        want = memory.copy()
        launch(k, x, grid=(BLOCKS,))
        for _, inside in tiles(index, size):
            for _, position in inside:
                want[AROUND + position] = -5
        assert memory.tolist() == want.tolist()


@clause("LOAD-5.outside", "STORE-1.outside", "ANN-3.shape")
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("shape", [(4, 8), (8, 4), (5, 8), (4, 6), (1, 1)])
def test_two_dimensions(axes, shape):
    """A loop goes over more tiles of each axis than there are."""
    @ct.kernel
    def k(x: Annotated[Any, ct.ArrayAnnotation(static_shape_dims=axes)],
          y: Annotated[Any, ct.ArrayAnnotation(static_shape_dims=axes)], sums):
        total = ct.zeros((4, 4), ct.int32)
        for i in range(3):
            for j in ct.static_iter(range(3)):
                total = total * 3 + ct.load(x, (i, j), (4, 4), padding_mode=ct.PaddingMode.ZERO)
                ct.store(y, (i, j), ct.full((4, 4), i * 3 + j + 1, ct.int32))
        ct.store(sums, (0, 0), total)

    def inner(array):
        return array[12:12 + shape[0], 12:12 + shape[1]]

    big, target = np.arange(1, 1601, dtype=np.int32).reshape(40, 40), np.zeros((40, 40), np.int32)
    sums, want = np.zeros((4, 4), np.int32), target.copy()
    launch(k, inner(big), inner(target), sums)
    padded, total = np.zeros((12, 12), np.int32), np.zeros((4, 4), np.int32)
    padded[:shape[0], :shape[1]] = inner(big)
    for i, j in np.ndindex(3, 3):
        total = total * 3 + padded[4 * i:4 * i + 4, 4 * j:4 * j + 4]
    for position in np.ndindex(shape):
        inner(want)[position] = position[0] // 4 * 3 + position[1] // 4 + 1
    assert sums.tolist() == total.tolist() and target.tolist() == want.tolist()


@clause("STORE-1.outside", "LOAD-5.outside", "SLICE-1.size")
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("size", [16, 32, 128])
def test_large_tiles(dtype, size):
    """Tiles that the hardware could copy as a whole."""
    @ct.kernel
    def k(x, y):
        b = ct.bid(0)
        some = ct.load(x.slice(0, 128, 128 + size), b, (16,), padding_mode=ct.PaddingMode.ZERO)
        ct.store(y.slice(0, 128, 128 + size), 9 - b, some + 1)

    x, y = (np.arange(512) % 100).astype(dtype), np.zeros(512, dtype)
    launch(k, x, y, grid=(10,))
    want, padded = np.zeros_like(y), np.zeros(160, dtype)
    padded[:size] = x[128:128 + size]
    for b in range(10):
        if 9 - b < size // 16:
            want[128 + 16 * (9 - b):][:16] = padded[16 * b:][:16] + 1
    assert y.tolist() == want.tolist()
