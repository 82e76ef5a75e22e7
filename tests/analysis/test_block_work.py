"""What a block does in the mean, by an estimate; the interpreter counts the same where nothing depends on data."""

from collections import Counter

import numpy as np
import pytest

import cutile as ct
from cutile.analysis.block_work import block_work
from cutile.analysis.cost import MATRIX, OTHER, Work
from cutile.functions.profiling import _counted
from cutile.passes.flatten_frames import flatten_frames

Int = ct.Constant[int]
X, Y = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)


def work(kernel, grid, *args):
    """Arguments that are constants come last."""
    program = flatten_frames(kernel.program(kernel.classify(args)).kernel)
    pairs = list(zip(program.params, args))
    return block_work(program, grid, {p: v.shape for p, v in pairs if isinstance(v, np.ndarray)},
                      {p: v for p, v in pairs if type(v) is int})


def tile(x, i, j, t):
    return ct.load(x, (i, j), (t, t))


@ct.kernel
def product(x, y, T: Int):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((T, T), ct.float32)
    for k in range(ct.cdiv(x.shape[1], T)):
        acc = ct.mma(tile(x, i, k, T), tile(x, k, j, T), acc)
    ct.store(y, (i, j), acc)


@ct.kernel
def triangle(x, y, n: int, T: Int):
    i = ct.bid(0)
    acc = ct.zeros((T, T), ct.float32)
    for k in range(i, n):
        acc += ct.exp(tile(x, i, k, T))
    ct.store(y, (i, 0), acc)


@ct.kernel
def persistent(x, y, T: Int):
    for i in range(ct.bid(0), ct.num_tiles(x, 0, (T, T)), ct.num_blocks(0)):
        ct.store(y, (i, 0), tile(x, i, 0, T) * 2)


@pytest.mark.parametrize("kernel, grid, args", [(product, (4, 4, 1), (X, Y, 16)), (product, (2, 2, 1), (X, Y, 32)),
                                                (triangle, (4, 1, 1), (X, Y, 4, 16)),
                                                (persistent, (2, 1, 1), (X, Y, 16))])
def test_all_blocks_together(kernel, grid, args):
    """As many bytes and operations as the interpreter counts; the ends of loops depend on blocks."""
    found, blocks = work(kernel, grid, *args), np.prod(grid)
    read, written, operations = _counted(kernel, grid, args)
    estimated: Counter = Counter({w: n * blocks for w, n in found.operations.items() if n})
    for (w, _), n in found.products.items():
        estimated[w] += n * blocks
    assert {f"{w.unit} {w.dtype.name}": n for w, n in estimated.items()} == pytest.approx(operations)
    assert (found.read * blocks, found.written * blocks) == (read, written)


def test_rows_of_products_and_tiles_that_are_held():
    found = work(product, (4, 4, 1), X, Y, 16)
    assert found.products == {(Work(MATRIX, ct.float32), 16): 4 * 2 * 16**3}
    assert found.held == 2 * 16 * 16 * 4 and found.turns == 4


def test_a_number_that_is_not_known():
    program = flatten_frames(triangle.program(triangle.classify((X, Y, 4, 16))).kernel)
    shapes = dict.fromkeys(program.params[:2], X.shape)
    assert block_work(program, (4, 1, 1), shapes, {}).turns == 1


def test_branches_and_loops_without_an_end():
    @ct.kernel
    def k(x, y):
        t = ct.load(x, (0, 0), (8, 8))
        if ct.bid(0) > 2:
            t = t * 3
        while ct.sum(t) > 1:
            t = t + ct.sqrt(t)
        ct.store(y, (0, 0), t)

    found = work(k, (4, 1, 1), X, Y)
    assert found.operations[Work(OTHER, ct.float32)] == 64 / 2 + 63 + 2 * 64
    assert found.turns == 1 and found.held == 2 * 256
