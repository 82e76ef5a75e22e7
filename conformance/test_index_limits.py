"""Tiles at indices of which the least and the largest value can be told: arrays that end there, a little earlier, and
tiles that begin just before them.

Compilers leave out checks of bounds where they know an index well enough. What they know of each operation shows where
an array of one tile less, or an index of one less, lies outside.
"""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch
from conformance.test_computed_indices import in_python

TILE, BLOCKS = 4, 5
MOST = 1 << 31  # what no int32 reaches
FAR = 64  # tiles of an array that ends far behind all tiles

#: indices, from the block: those that cannot be told as well as others, and those at whose ends rules change
INDICES = {
    "remainder of zero and one less": lambda b: (b % 2 - 1) % 4,
    "remainder of a few and one less": lambda b: (b % 3 - 1) % 4,
    "remainder of negatives by what grows": lambda b: (b - 5) % (b + 3),
    "remainder of both signs by what grows": lambda b: (b - 2) % (b + 2),
    "remainder of less than the divisor": lambda b: (b % 2 + 1) % (b + 3),
    "remainder by one": lambda b: (b - 2) % 1,
    "remainder by one and more": lambda b: (b + 2) % (b % 2 + 1),
    "remainder by zero in no block": lambda b: (b + 2) % (b + b // 7 + 1),
    "quotient of both signs by what grows": lambda b: (3 * b - 7) // (b + 1),
    "quotient up of both signs by what grows": lambda b: ct.cdiv(3 * b - 7, b + 1),
    "quotient of negatives by what grows": lambda b: (b - 9) // (b + 1),
    "quotient up of negatives by what grows": lambda b: ct.cdiv(b - 9, b + 1),
    "quotient by one": lambda b: (b - 2) // 1 + b // (b % 2 + 1),
    "quotient up by one": lambda b: ct.cdiv(b - 2, 1) + ct.cdiv(b, b % 2 + 1),
    "masked by one": lambda b: b & 1,
    "masked of two": lambda b: (b % 2 + 2) & 1,
    "mask of negatives": lambda b: (b - 3) & 3,
    "mask of negatives, turned": lambda b: 3 & (b - 3),
    "both masked": lambda b: (b + 1) & (7 - b),
    "both negative": lambda b: (b - 9) & -4,
    "one of them negative": lambda b: (b - 3) & (b + 2),
    "shifted by nothing": lambda b: ((b - 2) << 0) + ((b - 2) >> 0),
    "shifted by what grows": lambda b: (1 << b) - (16 >> b),
    "negatives shifted": lambda b: (b - 5) << 2,
    "negatives shifted down": lambda b: (b - 7) >> 1,
    "product of both signs": lambda b: (b - 2) * (b - 3),
    "product of negatives": lambda b: (b - 6) * (b - 7),
    "product of unlike signs": lambda b: (b - 6) * (b + 1),
    "product with zero": lambda b: (b - 2) * (b % 2),
    "least": lambda b: min(b - 2, 1 - b),
    "least of apart": lambda b: min(b - 9, b + 1),
    "largest": lambda b: max(b - 2, 1 - b),
    "largest of apart": lambda b: max(b + 9, b - 1),
    "chosen of apart": lambda b: ct.where(b > 1, b - 5, b + 5),
    "chosen of apart, turned": lambda b: ct.where(b > 1, b + 5, b - 5),
    "truth": lambda b: ct.astype(b > 1, ct.int32) - 2,
    "no truth": lambda b: ct.astype(b > 7, ct.int32),
    "from a wider number": lambda b: ct.astype(ct.int64(b) * 3 - 5, ct.int32),
    "from a narrower number": lambda b: ct.astype(ct.astype(b, ct.int16) - 3, ct.int32),
    "assumed": lambda b: ct.assume_divisible_by(2 * b - 4, 2),
    "many terms": lambda b: b + b // 2 + b // 3 + b // 4 + b % 2 + b % 3 + b % 4 + (b & 1) + (b & 2) - 5,
    "terms of both signs": lambda b: b // 2 - b % 3 + 2 * (b // 3) - 3 * (b % 2),
    "terms that cancel": lambda b: (b % 3 + b // 2) - b % 3,
    "quotient by a negative": lambda b: (b - 2) // -1,
    "quotient by one or two": lambda b: (b + 3) // (b % 2 + 1),
}


def tiles(f, shift, sizes, grid):
    """The tiles that blocks load at f(block) + shift, for arrays of each of these sizes."""
    @ct.kernel
    def k(x, y):
        b = ct.bid(0)
        at = f(b)
        if shift != 0:
            at = at + shift
        ct.store(y, (b, 0), ct.load(x, at, (TILE,), padding_mode=ct.PaddingMode.ZERO).reshape((1, TILE)))

    for size in sizes:
        x, y = np.arange(1, size + 1, dtype=np.int32), np.zeros((grid[0], TILE), np.int32)
        launch(k, x, y, grid=grid)
        yield x, y.tolist()


def at(x, index):
    """The tile of an array at an index, with zeros outside."""
    places = range(TILE * index, TILE * index + TILE)
    return [int(x[i]) if 0 <= i < len(x) else 0 for i in places]


def around(low, high):
    """Shifts of an index between these, and the sizes of arrays for each: those that end at the last element, and one
    before; those that the first tile precedes; all in between.
    """
    every = sorted({TILE * n - less for n in range(1, high - low + 2) for less in (0, 1)})
    yield -low, every[-8:] + [TILE * FAR]
    yield -low - 1, [TILE * (high - low), TILE * FAR]
    yield -high, [TILE, TILE - 1, TILE * FAR]


@clause("LOAD-5.edge", "LOAD-5.outside")
@pytest.mark.parametrize("index", INDICES)
def test_least_and_largest_index(index):
    f = in_python(INDICES[index])
    values = [int(f(b)) for b in range(BLOCKS)]
    for shift, sizes in around(min(values), max(values)):
        for x, got in tiles(INDICES[index], shift, sizes, (BLOCKS, 1, 1)):
            assert got == [at(x, v + shift) for v in values], (len(x), shift)


def wrap(n, bits=32):
    """A number as it is in a signed dtype of so many bits."""
    return (n + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


#: indices whose numbers leave their dtype in some block, in the kernel and in Python
WRAPPING = {
    "below the least": (lambda b: max(b - (MOST - 1) - 3, 0), lambda b: max(wrap(b - MOST - 2), 0)),
    "above the largest": (lambda b: min(b + (MOST - 3), 2), lambda b: min(wrap(b + MOST - 3), 2)),
    "product above": (lambda b: min((b * 40000) * (b * 40000), 2), lambda b: min(wrap((40000 * b) ** 2), 2)),
    "product below": (lambda b: max((b * -40000) * (b * 40000), 0), lambda b: max(wrap(-(40000 * b) ** 2), 0)),
    "scaled above": (lambda b: min(b * (1 << 30), 2), lambda b: min(wrap(b << 30), 2)),
    "scaled below": (lambda b: max(b * -(1 << 30) - 1, 0), lambda b: max(wrap(-(b << 30) - 1), 0)),
    "negative of the least": (lambda b: min(-(b - (MOST - 1) - 1), 2), lambda b: min(wrap(MOST - b), 2)),
    "shifted above": (lambda b: min((b + 1) << 30, 2), lambda b: min(wrap(b + 1 << 30), 2)),
    "shifted below": (lambda b: max((b - 4) << 30, 0), lambda b: max(wrap(b - 4 << 30), 0)),
    "cast above": (lambda b: min(ct.astype(ct.int64(b) + (MOST - 3), ct.int32), 2),
                   lambda b: min(wrap(b + MOST - 3), 2)),
    "cast below": (lambda b: max(ct.astype(ct.int64(b) - (MOST + 2), ct.int32), 0),
                   lambda b: max(wrap(b - MOST - 2), 0)),
    "cast to int8 above": (lambda b: min(ct.astype(b + 125, ct.int8), 2), lambda b: min(wrap(b + 125, 8), 2)),
    "cast to int8 below": (lambda b: max(ct.astype(b - 130, ct.int8), 0), lambda b: max(wrap(b - 130, 8), 0)),
    "sum of int8": (lambda b: min(ct.astype(b, ct.int8) + ct.int8(125), 2), lambda b: min(wrap(b + 125, 8), 2)),
    "difference of int8": (lambda b: max(ct.astype(b, ct.int8) - ct.int8(126) - ct.int8(4), 0),
                           lambda b: max(wrap(b - 130, 8), 0)),
    "cast to uint8 below": (lambda b: ct.astype(ct.astype(b - 1, ct.uint8), ct.int32), lambda b: (b - 1) % 256),
    "cast to uint8 above": (lambda b: min(ct.astype(ct.astype(b + 254, ct.uint8), ct.int32), 255) - 252,
                            lambda b: (b + 254) % 256 - 252),
    "difference of uint8": (lambda b: ct.astype(ct.astype(b, ct.uint8) - ct.uint8(1), ct.int32),
                            lambda b: (b - 1) % 256),
    "int64 as an index": (lambda b: ct.int64(b) - (1 << 32), lambda b: b),
    "far int64 as an index": (lambda b: ct.int64(b) + (1 << 32) - 2, lambda b: b - 2),
}


@clause("LOAD-5.edge", "LOAD-5.outside", "GEN-4.add", "ARITH-1.int", "IDX-2.wide")
@pytest.mark.parametrize("index", WRAPPING)
def test_indices_that_wrap_around(index):
    f, in_numbers = WRAPPING[index]
    values = [in_numbers(b) for b in range(BLOCKS)]
    for shift in (0, 1):
        sizes = sorted({TILE * n - less for n in range(1, 8) for less in (0, 1)}) + [TILE * FAR]
        for x, got in tiles(f, shift, sizes, (BLOCKS, 1, 1)):
            assert got == [at(x, v + shift) for v in values], (len(x), shift)
