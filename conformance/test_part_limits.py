"""Tiles in parts of arrays, in arrays of lists, in views and in loops, at indices that end where these do.

Sizes differ by block, or from one array of a list to the next: the smallest one counts, and indices follow from sizes.
"""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch

TILE, BLOCKS = 4, 4
ZERO = ct.PaddingMode.ZERO


def tile(x, index, step=TILE):
    """The tile of an array, with zeros outside."""
    return [int(x[i]) if 0 <= i < len(x) else 0 for i in range(step * index, step * index + TILE)]


#: where a part of 32 elements begins and ends, by block
PARTS = {
    "whole": lambda b: (0, 32),
    "of one length": lambda b: (4 * b, 4 * b + 8),
    "shorter by block": lambda b: (4 * b, 16),
    "longer by block": lambda b: (4, 4 * b + 8),
    "shorter by one": lambda b: (b, 16),
    "longer by one": lambda b: (2, b + 9),
    "empty at last": lambda b: (5 * b, 15),
    "of either": lambda b: (4 * b, 4 * b + (b % 2) * 4 + 4),
    "by remainders": lambda b: (b % 3, b % 2 + 12),
    "by numbers that are not told": lambda b: (b // -1 + 3, b // -2 + 12),
}
#: indices of tiles in a part of n tiles and s elements
INDICES = {
    "first": lambda n, s: 0,
    "second": lambda n, s: 1,
    "third": lambda n, s: 2,
    "last": lambda n, s: n - 1,
    "behind the last": lambda n, s: n,
    "from the size": lambda n, s: s // TILE - 1,
    "before the first": lambda n, s: 1 - n,
    "from the negative size": lambda n, s: 3 - s,
}


@clause("SLICE-1.size", "SLICE-2.bounds", "LOAD-5.edge", "LOAD-5.outside")
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("part", PARTS)
def test_tiles_of_parts(part, index):
    bounds, at = PARTS[part], INDICES[index]

    @ct.kernel
    def k(x, y):
        b = ct.bid(0)
        begin, end = bounds(b)
        p = x.slice(0, begin, end)
        i = at(ct.num_tiles(p, 0, (TILE,)), p.shape[0])
        ct.store(y, (b, 0), ct.load(p, i, (TILE,), padding_mode=ZERO).reshape((1, TILE)))

    x, y = np.arange(1, 33, dtype=np.int32), np.zeros((BLOCKS, TILE), np.int32)
    launch(k, x, y, grid=(BLOCKS,))
    parts = [x[slice(*bounds(b))] for b in range(BLOCKS)]
    assert y.tolist() == [tile(p, at(-(-len(p) // TILE), len(p))) for p in parts]


@clause("ARG-7.list", "ARG-7.index", "LOAD-5.edge", "LOAD-5.outside")
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("sizes", [(12, 8), (8, 12), (12, 11, 12), (4, 32, 8), (16,), (1, 2, 0)], ids=str)
def test_tiles_of_arrays_of_lists(sizes, index):
    at = INDICES[index]

    @ct.kernel
    def k(xs, y):
        b = ct.bid(0)
        x = xs[b]
        i = at(ct.num_tiles(x, 0, (TILE,)), x.shape[0])
        ct.store(y, (b, 0), ct.load(x, i, (TILE,), padding_mode=ZERO).reshape((1, TILE)))

    xs = [np.arange(1, n + 1, dtype=np.int32) + 100 * k for k, n in enumerate(sizes)]
    y = np.zeros((len(xs), TILE), np.int32)
    launch(k, xs, y, grid=(len(xs),))
    assert y.tolist() == [tile(x, at(-(-len(x) // TILE), len(x))) for x in xs]


@clause("ARG-7.list", "LOAD-5.edge", "LOAD-5.outside")
@pytest.mark.parametrize("shift", [-3, -2, -1, 0])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_lengths_of_lists(count, shift):
    @ct.kernel
    def k(xs, x, y):
        ct.store(y, 0, ct.load(x, len(xs) + shift, (TILE,), padding_mode=ZERO))

    xs, y = [np.zeros(1, np.int32)] * count, np.zeros(TILE, np.int32)
    for size in (64, TILE * (count + 1), TILE * count, TILE * count - 1, TILE):
        x = np.arange(1, size + 1, dtype=np.int32)
        launch(k, xs, x, y)
        assert y.tolist() == tile(x, count + shift)


#: the number of tiles of an array, with its sizes, in the kernel and in Python
COUNTS = {
    "of rows": (lambda x: ct.num_tiles(x, 0, (2, 4)), lambda m, n: -(-m // 2)),
    "of columns": (lambda x: ct.num_tiles(x, 1, (2, 4)), lambda m, n: -(-n // 4)),
    "of turned rows": (lambda x: ct.num_tiles(x, 1, (4, 2), order="F"), lambda m, n: -(-m // 2)),
    "of turned columns": (lambda x: ct.num_tiles(x, 0, (4, 2), order="F"), lambda m, n: -(-n // 4)),
    "of a view's rows": (lambda x: x.tiled_view((2, 4)).num_tiles(0), lambda m, n: -(-m // 2)),
    "of a view's columns": (lambda x: x.tiled_view((2, 4)).num_tiles(1), lambda m, n: -(-n // 4)),
    "rows": (lambda x: x.shape[0], lambda m, n: m),
    "columns": (lambda x: x.shape[1], lambda m, n: n),
    "of blocks": (lambda x: ct.num_blocks(0), lambda m, n: 1),
    "of blocks along the second axis": (lambda x: ct.num_blocks(1), lambda m, n: 2),
    "of blocks along the third axis": (lambda x: ct.num_blocks(2), lambda m, n: 3),
    "stride": (lambda x: x.strides[0] // x.strides[1], lambda m, n: n),
}


@clause("SPACE-2.whole", "SPACE-2.edge", "SPACE-4.F", "LOAD-5.edge", "LOAD-5.outside")
@pytest.mark.parametrize("count", COUNTS)
def test_indices_from_numbers_of_tiles(count):
    in_tiles, in_numbers = COUNTS[count]
    for shift in (-1, 0, 1):
        @ct.kernel
        def k(other, x, y):
            i = in_tiles(other) - 1 + shift
            ct.store(y, 0, ct.load(x, i, (TILE,), padding_mode=ZERO))

        for m, n in ((5, 7), (1, 40), (8, 16)):
            last, y = in_numbers(m, n) - 1 + shift, np.zeros(TILE, np.int32)
            for size in (TILE * (last + 1), TILE * (last + 1) - 1, TILE * last, TILE * 64):
                x = np.arange(1, max(size, 1) + 1, dtype=np.int32)
                launch(k, np.zeros((m, n), np.int32), x, y, grid=(1, 2, 3))
                assert y.tolist() == tile(x, last), size


@clause("TV-3.overhang", "TV-3.gap", "TV-2.steps", "LOAD-5.edge", "LOAD-5.outside")
@pytest.mark.parametrize("step", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("shift", [-2, -1, 0])
def test_last_tiles_of_views(shift, step):
    """Tiles that overlap or leave gaps: the last one may reach over the end."""
    @ct.kernel
    def k(x, y):
        v = x.tiled_view((TILE,), traversal_steps=(step,), padding_mode=ZERO)
        ct.store(y, 0, v.load(v.num_tiles(0) + shift))

    for size in range(4, 20):
        x, y = np.arange(1, size + 1, dtype=np.int32), np.zeros(TILE, np.int32)
        launch(k, x, y)
        assert y.tolist() == tile(x, -(-size // step) + shift, step)


#: what a counter goes over, in block b
LOOPS = {
    "up": lambda b: range(b, 6),
    "to the block": lambda b: range(b + 1),
    "by two": lambda b: range(1, 8, 2),
    "by two from the block": lambda b: range(b, 8, 2),
    "by more": lambda b: range(0, 9, b + 2),
    "by what is not told": lambda b: range(b, 5, (b * b + 1) % 4),
    "from what is not told": lambda b: range(b // -1 + 3, 5),
    "to what is not told": lambda b: range(b // -1 + 5),
    "none": lambda b: range(5, b),
    "one": lambda b: range(b, b + 1),
    "negative": lambda b: range(-3, b - 2),
    "once, to the last": lambda b: range(3, 4, 5),
    "once": lambda b: range(2, 7, 5),
    "twice": lambda b: range(2, 8, 5),
}


@clause("LOAD-5.edge", "LOAD-5.outside", "LOOP-1.start", "LOOP-1.stop", "LOOP-1.step")
@pytest.mark.parametrize("loop", LOOPS)
def test_tiles_at_counters(loop):
    over = LOOPS[loop]
    reached = [i for b in range(BLOCKS) for i in over(b)] or [0]
    for shift in sorted({-min(reached), -min(reached) - 1, -max(reached)}):
        @ct.kernel
        def k(x, y):
            b = ct.bid(0)
            total = ct.zeros((TILE,), ct.int32)
            for i in over(b):
                total = total * 3 + ct.load(x, i + shift, (TILE,), padding_mode=ZERO)
            ct.store(y, (b, 0), total.reshape((1, TILE)))

        last = max(reached) + shift
        for size in sorted({TILE * (last + 1), TILE * (last + 1) - 1, max(TILE * last, 1), TILE * 64}):
            x, y = np.arange(1, size + 1, dtype=np.int32), np.zeros((BLOCKS, TILE), np.int32)
            launch(k, x, y, grid=(BLOCKS,))
            want = np.zeros((BLOCKS, TILE), np.int32)
            for b in range(BLOCKS):
                for i in over(b):
                    want[b] = want[b] * 3 + tile(x, i + shift)
            assert y.tolist() == want.tolist(), size


@clause("LOAD-5.outside", "LOOP-1.start", "LOOP-1.stop", "GEN-4.add")
@pytest.mark.parametrize("more", [1, 2, 3])
def test_counters_near_the_largest_number(more):
    """The sum wraps, so the comparison holds where the counter is large."""
    @ct.kernel
    def k(x, y):
        b = ct.bid(0)
        for i in range((1 << 31) - 3, (1 << 31) - 1, (b * b + 1) % 4):
            if i >= 0 and i + more < 4:
                ct.store(y, (b, 0), ct.load(x, i, (TILE,), padding_mode=ZERO).reshape((1, TILE)))

    x, y = np.arange(1, 65, dtype=np.int32), np.full((BLOCKS, TILE), -1, np.int32)
    launch(k, x, y, grid=(BLOCKS,))
    reached = [any(i + more >= 1 << 31 for i in range((1 << 31) - 3, (1 << 31) - 1, (b * b + 1) % 4))
               for b in range(BLOCKS)]
    assert y.tolist() == [[0 if r else -1] * TILE for r in reached]
