"""CUTILE_MEMORY: launches stay within the memory that is given to the tiles of blocks, with the same results. And grids
of very many blocks, and arrays of gigabytes.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import cutile as ct
from cutile import settings

BUDGET = 1 << 19
N, BLOCKS = 64, 1024


@ct.kernel
def elementwise(x, y, N: ct.Constant[int]):
    t = ct.load(x, ct.bid(0), N)
    a, b, c = ct.exp(t), ct.sin(t), ct.tanh(t)
    ct.store(y, ct.bid(0), a * b + c)


@ct.kernel
def reduced(x, y, N: ct.Constant[int]):
    t = ct.load(x, ct.bid(0), N)
    ct.store(y, ct.bid(0), ct.cumsum(t - ct.max(t), 0))


@ct.kernel
def indexed(x, y, N: ct.Constant[int]):
    i = ct.bid(0) * N + ct.arange(N, dtype=ct.int32)
    ct.scatter(y, i, ct.gather(x, i ^ 1) + ct.gather(x, i))


@ct.kernel
def looping(x, y, N: ct.Constant[int]):
    t = ct.load(x, ct.bid(0), N)
    for k in range(ct.bid(0) % 3):
        if ct.sum(t) > k:
            t = t * 0.5 + 1
    ct.store(y, ct.bid(0), t)


@ct.kernel
def product(x, y, N: ct.Constant[int]):
    t = ct.reshape(ct.load(x, ct.bid(0), N), (8, N // 8))
    ct.store(y, ct.bid(0), ct.reshape(t @ t, (N,)))


@ct.kernel
def scanned(x, y, N: ct.Constant[int]):
    ct.store(y, ct.bid(0), ct.scan(ct.load(x, ct.bid(0), N), 0, lambda a, b: a * 0.5 + b, 0.0))


KERNELS = (elementwise, reduced, indexed, looping, product, scanned)


def operands(dtype):
    x = np.random.default_rng(2).standard_normal(N * BLOCKS, np.float32).astype(dtype)
    return x, np.zeros_like(x)


def launched(kernel, dtype, memory: int | None) -> tuple[bytes, int]:
    """The result, and the most bytes that a repeated launch takes."""
    x, y = operands(dtype)
    with settings.override(MEMORY=memory):
        ct.launch(None, (BLOCKS,), kernel, (x, y, N))
        tracemalloc.start()
        try:
            ct.launch(None, (BLOCKS,), kernel, (x, y, N))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    return y.tobytes(), peak


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("dtype", [np.float16, pytest.param(np.float32, marks=pytest.mark.deep), np.float64])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_launches_stay_within_their_memory(kernel, dtype, compiled):
    with settings.override(COMPILED=compiled):
        x, usual = operands(dtype)
        ct.launch(None, (BLOCKS,), kernel, (x, usual, N))
        bounded, peak = launched(kernel, dtype, BUDGET)
        assert bounded == usual.tobytes()
        assert peak <= BUDGET


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_more_memory_than_is_useful_changes_nothing(kernel):
    assert launched(kernel, np.float32, 1 << 40)[1] <= 2 * launched(kernel, np.float32, None)[1]


@ct.kernel
def small_blocks(x, y, count):
    i = ct.bid(0)
    t = ct.gather(x, i)
    if t > 0:
        t = t * 3
        ct.atomic_add(count, 0, 1)
    ct.scatter(y, i, t)


@pytest.mark.parametrize("blocks", [1 << 16, pytest.param(1_000_000, marks=pytest.mark.deep)])
@pytest.mark.parametrize("memory", [None, 4 << 20])
def test_many_small_blocks(blocks, memory):
    x = np.arange(blocks, dtype=np.int32) % 7 - 3
    y, count = np.zeros_like(x), np.zeros(1, np.int32)
    with settings.override(MEMORY=memory):
        ct.launch(None, (blocks,), small_blocks, (x, y, count))
    assert count[0] == (x > 0).sum() and np.array_equal(y, np.where(x > 0, 3 * x, x))


@ct.kernel
def incremented(x: ct.IndexedWithInt64, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(x, i, ct.load(x, i, N) + ct.astype(ct.bid(0), ct.uint8))


@pytest.mark.deep
def test_arrays_of_more_than_two_gigabytes():
    tile, blocks = 1 << 20, (1 << 11) + 1
    x = np.ones(tile * blocks - 3, np.uint8)
    with settings.override(MEMORY=64 << 20):
        ct.launch(None, (blocks,), incremented, (x, tile))
    for b in (0, 1, 255, blocks - 2, blocks - 1):
        assert (x[b * tile:(b + 1) * tile] == (1 + b) % 256).all()
