"""Indices that are computed: tiles within an array, over its edge and beyond it, wherever the index comes from.

Compilers leave out checks of bounds where they know an index well enough. Here each index takes values at both ends.
"""

import functools

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run

TILE, BLOCKS = 4, 5
SIZES = (10, 256)

#: index of a tile, from the block, the counter of a loop, and the number of tiles
INDICES = {
    "sum": lambda b, i, n: b + i,
    "difference": lambda b, i, n: b - i,
    "scaled": lambda b, i, n: 2 * b - 3 * i + 1,
    "product": lambda b, i, n: b * i,
    "negative": lambda b, i, n: -b + i,
    "from the end": lambda b, i, n: n - 1 - b + i,
    "remainder": lambda b, i, n: (b + 2 * i) % 3,
    "remainder of negatives": lambda b, i, n: (b - i - 7) % 4,
    "remainder by tiles": lambda b, i, n: (b + i) % n,
    "remainder of a narrow range": lambda b, i, n: (i + 4) % 8 - 4,
    "remainder of a far range": lambda b, i, n: (i + 801) % 8 - 1,
    "remainder from a multiple": lambda b, i, n: (i + 9) % 8 - 1,
    "remainder by a negative": lambda b, i, n: (b + i) % -3,
    "remainder by a counter": lambda b, i, n: b % (i + 2),
    "remainder by what falls": lambda b, i, n: (b + 5) % (8 - (b & 3)),
    "remainder of a square": lambda b, i, n: (b * b + 1) % 4,
    "quotient": lambda b, i, n: (3 * b + i) // 2,
    "quotient by a negative": lambda b, i, n: (b + i) // -2 + 3,
    "quotient by a counter": lambda b, i, n: (b + 3) // (i + 2),
    "quotient of negatives": lambda b, i, n: (i - 2 * b) // 3 + 1,
    "quotient up": lambda b, i, n: ct.cdiv(b + 3 * i, 2),
    "quotient up of a few": lambda b, i, n: ct.cdiv((b & 1) + 2, 2) + 1,
    "remainder of a few": lambda b, i, n: (b + 1) % 2,
    "remainder of few negatives": lambda b, i, n: (b % 3 - 3) % 2,
    "quotient by either sign": lambda b, i, n: (b + 6) // (2 * i - 5) + 6,
    "remainder by either sign": lambda b, i, n: (b + 6) % (2 * i - 5) + 2,
    "least": lambda b, i, n: min(b + i, 2),
    "largest": lambda b, i, n: max(b - i, 1),
    "clamped": lambda b, i, n: max(0, min(b + i - 2, n - 1)),
    "clamped too far": lambda b, i, n: max(-1, min(b + i - 2, n)),
    "masked": lambda b, i, n: (b + i) & 3,
    "masked counter": lambda b, i, n: i & 3,
    "shifted": lambda b, i, n: (b << 1) + (i >> 1),
    "shifted down": lambda b, i, n: (b + 7 * i - 3) >> 2,
    "or": lambda b, i, n: b | i,
    "chosen": lambda b, i, n: ct.where(b > i, b - i, i),
    "chosen counter": lambda b, i, n: ct.where(b > 2, 0, i),
    "chosen counter first": lambda b, i, n: ct.where(b > 2, i, 0),
    "chosen before counter": lambda b, i, n: ct.where(b > 2, 2, i - 2),
    "chosen before counter first": lambda b, i, n: ct.where(b > 2, i - 2, 2),
    "chosen end": lambda b, i, n: ct.where(b > 2, n, 0),
    "chosen begin": lambda b, i, n: ct.where(b > 2, 0, n),
    "chosen before": lambda b, i, n: ct.where(b > 2, -1, 0) + ct.where(b > 3, 0, -1),
    "of int64": lambda b, i, n: ct.int64(b) + i,
    "of int16": lambda b, i, n: ct.astype(b, ct.int16) - ct.astype(i, ct.int16),
    "constant": lambda b, i, n: 2,
    "last": lambda b, i, n: n - 1,
    "behind the last": lambda b, i, n: n,
    "absolute": lambda b, i, n: abs(b - i),
    "blocks": lambda b, i, n: ct.num_blocks(0) - 5 + i,
    "blocks before": lambda b, i, n: b - ct.num_blocks(0) + i,
    "negative of negatives": lambda b, i, n: -(b - 6) - 4,
    "twice negative": lambda b, i, n: -(2 * b) + 3 * i,
    "from a number": lambda b, i, n: 8 - i,
    "negative counter": lambda b, i, n: -i + 8,
    "scaled sum": lambda b, i, n: (b + 2) * 3,
    "next counter": lambda b, i, n: i + 1,
    "counter": lambda b, i, n: i,
    "product of counters": lambda b, i, n: b * b + i,
    "product with a number": lambda b, i, n: 3 * (2 * i),
    "product of negatives": lambda b, i, n: (b - 5) * (i - 7),
    "least of negatives": lambda b, i, n: min(b - i, -1),
    "largest of negatives": lambda b, i, n: max(b - i, -3),
    "largest of negatives, turned": lambda b, i, n: max(-3, b - i),
    "least of negatives, turned": lambda b, i, n: min(-1, b - i),
    "narrow multiple": lambda b, i, n: (b + 8) % 16,
    "shifted number": lambda b, i, n: 1 << 2,
    "of a truth": lambda b, i, n: ct.astype(b > i, ct.int32) + i,
}
LOOPS = {  # over what the counter goes, in a block and with so many tiles
    "one": lambda b, n: range(2, 3),
    "downward bounds": lambda b, n: range(3 - b, 4),
    "steps": lambda b, n: range(1, 6, 2),
    "from the block": lambda b, n: range(b, 5),
    "shared out": lambda b, n: range(b, n, 2),
    "up to one": lambda b, n: range(-1, 1),
}


class Numbers:
    """What an index calls, in Python's numbers."""

    int16 = int32 = int64 = int

    @staticmethod
    def cdiv(x, y):
        return -(-x // y)

    @staticmethod
    def where(c, x, y):
        return x if c else y

    @staticmethod
    def num_blocks(axis):
        return BLOCKS

    @staticmethod
    def assume_divisible_by(x, divisor):
        return x

    @staticmethod
    def astype(x, dtype):
        return dtype(x)


@functools.cache
def in_python(f):
    """The function of an index as one of Python's numbers."""
    return type(f)(f.__code__, {"ct": Numbers})


def reached(f, over, n):
    """The indices that blocks access where there are n tiles."""
    return [int(in_python(f)(b, i, n)) for b in range(BLOCKS) for i in over(b, n)]


def fitting(f, over, distance):
    """Sizes just large enough for all tiles that blocks access, or all but one before the array, and one less."""
    found = set()
    for n in range(1, 65):
        indices = [i + distance for i in reached(f, over, n)]
        if indices and min(indices) >= -1 and max(indices) in (n - 1, n):
            found |= {TILE * n, TILE * n - 1}
    return sorted(found)[:4]


@clause("LOAD-5.edge", "LOAD-5.outside", "STORE-1.edge", "STORE-1.outside")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("index", INDICES)
def test_tiles_at_computed_indices(index, loop):
    f, over = INDICES[index], LOOPS[loop]
    first = min(reached(f, over, 3), default=0)
    for distance in dict.fromkeys((0, -first, -first - 1)):
        compare(f, over, distance)


def compare(f, over, distance):
    """The tiles at an index that is so much larger, in the kernel and in NumPy."""
    @ct.kernel
    def k(x, sums, y):
        b, n = ct.bid(0), ct.num_tiles(x, 0, (TILE,))
        total = ct.zeros((TILE,), ct.int32)
        for i in over(b, n):
            at = f(b, i, n)
            if distance != 0:
                at = at + distance
            total = total * 3 + ct.load(x, at, (TILE,), padding_mode=ct.PaddingMode.ZERO)
            ct.store(y, (b, at), ct.full((1, TILE), i + 2, ct.int32))
        ct.store(sums, (b, 0), total.reshape((1, TILE)))

    for size in sorted({*(SIZES if distance == 0 else ()), *fitting(f, over, distance)}):
        x = np.arange(1, size + 1, dtype=np.int32)
        sums, y, n = np.zeros((BLOCKS, TILE), np.int32), np.zeros((BLOCKS, size), np.int32), -(-size // TILE)
        run(k, x, sums, y, grid=(BLOCKS,))
        padded = np.concatenate([np.zeros(4000, np.int32), x, np.zeros(4000, np.int32)])
        written, want = np.zeros((BLOCKS, len(padded)), np.int32), np.zeros_like(sums)
        for b in range(BLOCKS):
            for i in over(b, n):
                at = 4000 + TILE * (int(in_python(f)(b, i, n)) + distance)
                want[b] = want[b] * 3 + padded[at:at + TILE]
                written[b, at:at + TILE] = i + 2
        assert sums.tolist() == want.tolist() and y.tolist() == written[:, 4000:4000 + size].tolist()


WHOLE = 16  # elements of a tile that fills its array


@clause("LOAD-5.outside", "STORE-1.outside")
@pytest.mark.parametrize("loop", ["downward bounds", "up to one", "steps"])
@pytest.mark.parametrize("index", INDICES)
def test_computed_indices_below_the_number_of_tiles(index, loop):
    """Whether they are also at least 0, an index must tell; hints may keep the tiles from a tensor map."""
    f, over = INDICES[index], LOOPS[loop]

    @ct.kernel
    def k(x, sums):
        b, n = ct.bid(0), ct.num_tiles(x, 0, (WHOLE,))
        total = ct.zeros((WHOLE,), ct.int32)
        for i in over(b, n):
            at = f(b, i, n)
            if at < n:
                total = total * 3 + ct.load(x, at, (WHOLE,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
        ct.store(sums, (b, 0), total.reshape((1, WHOLE)))

    for n in (1, 6):
        x, sums = np.arange(1, n * WHOLE + 1, dtype=np.int32), np.zeros((BLOCKS, WHOLE), np.int32)
        run(k, x, sums, grid=(BLOCKS,))
        want = np.zeros_like(sums)
        for b in range(BLOCKS):
            for i in over(b, n):
                at = int(in_python(f)(b, i, n))
                if at < n:
                    want[b] = want[b] * 3 + (x.reshape(n, WHOLE)[at] if at >= 0 else 0)
        assert sums.tolist() == want.tolist()
