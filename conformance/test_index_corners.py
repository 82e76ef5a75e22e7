"""Tiles at indices at which rules about limits change: divisors that may be zero or negative, operands in either order,
ranges of one value, tiles that reach over the end of an array that others fill.
"""

from typing import Annotated, Any

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch
from conformance.test_computed_indices import in_python
from conformance.test_index_limits import BLOCKS, TILE, around, at, tiles

ZERO = ct.PaddingMode.ZERO

#: indices, from the block
INDICES = {
    "quotient by either sign": lambda b: (b + 6) // (2 * b - 3),
    "quotient up by either sign": lambda b: ct.cdiv(b + 6, 2 * b - 3),
    "remainder by either sign": lambda b: (b + 6) % (2 * b - 3),
    "quotient by what may be zero, as far as is told": lambda b: (b + 3) // ((b * b + 1) % 4),
    "quotient up by what may be zero, as far as is told": lambda b: ct.cdiv(b + 3, (b * b + 1) % 4),
    "remainder by what may be zero, as far as is told": lambda b: (b + 3) % ((b * b + 1) % 4),
    "remainder by the divisor or more": lambda b: (b % 2 + 5) % (b + 5),
    "remainder by two": lambda b: (b + 1) % 2,
    "remainder of negatives by four": lambda b: (3 * b - 13) % 4,
    "remainder in the second turn": lambda b: (b + 33) % 16,
    "remainder in the fourth turn": lambda b: (b + 65) % 16,
    "remainder at the end of a turn": lambda b: (b + 11) % 16,
    "remainder behind the end of a turn": lambda b: (b + 12) % 16,
    "remainder of the divisor": lambda b: (b % 2 + 4) % 5,
    "mask of zero and one less": lambda b: (b % 2 - 1) & 3,
    "mask of zero and one less, turned": lambda b: 3 & (b % 2 - 1),
    "least of apart, turned": lambda b: min(b + 1, b - 9),
    "largest of apart, turned": lambda b: max(b - 1, b + 9),
    "least that meets": lambda b: min(b, 4 - b),
    "largest that meets": lambda b: max(b, 4 - b),
    "product of one value": lambda b: (b // 7 + 2) * (b - 1),
    "chosen of one value": lambda b: ct.where(b > 1, b // 7 + 2, b // 7 - 2),
}


@clause("LOAD-5.edge", "LOAD-5.outside")
@pytest.mark.parametrize("index", INDICES)
def test_corners(index):
    f = in_python(INDICES[index])
    values = [int(f(b)) for b in range(BLOCKS)]
    for shift, sizes in around(min(values), max(values)):
        for x, got in tiles(INDICES[index], shift, sizes, (BLOCKS, 1, 1)):
            assert got == [at(x, v + shift) for v in values], (len(x), shift)


@clause("LOAD-5.edge", "LOAD-5.outside", "LOOP-1.step")
@pytest.mark.parametrize("shift", [-1, 0])
def test_counters_by_steps_that_differ(shift):
    @ct.kernel
    def k(x, y):
        b = ct.bid(0)
        total = ct.zeros((TILE,), ct.int32)
        for i in range(0, 10, b % 2 + 2):
            total = total * 3 + ct.load(x, i + shift, (TILE,), padding_mode=ZERO)
        ct.store(y, (b, 0), total.reshape((1, TILE)))

    for size in (TILE * (9 + shift), TILE * (10 + shift) - 1, TILE * (10 + shift), TILE * 64):
        x, y = np.arange(1, size + 1, dtype=np.int32), np.zeros((2, TILE), np.int32)
        want = np.zeros_like(y)
        launch(k, x, y, grid=(2,))
        for b in range(2):
            for i in range(0, 10, b % 2 + 2):
                want[b] = want[b] * 3 + at(x, i + shift)
        assert y.tolist() == want.tolist()


#: indices from the size of a part of a list's array, or of a slice, in another array
SIZES = {
    "tiles": (lambda p: ct.num_tiles(p, 0, (TILE,)), lambda n: -(-n // TILE)),
    "elements": (lambda p: p.shape[0], lambda n: n),
    "tiles of a view": (lambda p: p.tiled_view((TILE,)).num_tiles(0), lambda n: -(-n // TILE)),
}


@clause("SLICE-1.size", "ARG-7.list", "LOAD-5.edge", "LOAD-5.outside")
@pytest.mark.parametrize("lengths", [(1, 2, 0), (0, 7, 9), (9, 4, 5), (3, 3, 3)], ids=str)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("of", ["list", "slices"])
def test_indices_from_sizes_that_differ(of, size, lengths):
    in_tiles, in_numbers = SIZES[size]
    values = [in_numbers(n) for n in lengths]
    for shift, sizes in around(min(values), max(values)):
        @ct.kernel
        def k(xs, whole, x, y):
            b = ct.bid(0)
            if of == "list":
                i = in_tiles(xs[b])
            else:
                first, stop = ct.where(b == 0, 1, 2), ct.where(b == 0, 1 + lengths[0], ct.where(
                    b == 1, 2 + lengths[1], 2 + lengths[2]))
                i = in_tiles(whole.slice(0, first, stop))
            ct.store(y, (b, 0), ct.load(x, i + shift, (TILE,), padding_mode=ZERO).reshape((1, TILE)))

        xs = [np.zeros(n, np.int32) for n in lengths]
        for n in [s for s in sizes if s]:
            x, y = np.arange(1, n + 1, dtype=np.int32), np.zeros((len(xs), TILE), np.int32)
            launch(k, xs, np.zeros(16, np.int32), x, y, grid=(len(xs),))
            assert y.tolist() == [at(x, v + shift) for v in values], n


WHOLE = 16
LAPS = {  # over what a counter goes, by the number of tiles, and an index from the counter and the block
    "all": (lambda n: range(n), lambda i, b: i),
    "from one": (lambda n: range(1, n), lambda i, b: i + 1),
    "from two": (lambda n: range(2, n), lambda i, b: 2 * i),
    "and the next": (lambda n: range(n), lambda i, b: i + (b & 1)),
    "and the one before": (lambda n: range(n), lambda i, b: i - (b & 1)),
    "up to the last": (lambda n: range(n - 1), lambda i, b: i + 1),
}


@clause("LOAD-5.edge", "LOAD-5.outside", "LOOP-1.start", "LOOP-1.stop")
@pytest.mark.parametrize("lap, step", [(lap, step) for lap in LAPS for step in (8, WHOLE, 32)
                                       if (lap, step) != ("and the one before", 8)])
def test_tiles_below_the_number_of_tiles(lap, step):
    """They lie inside only if they fill the array, which they may not do, or if they overlap."""
    laps, index = LAPS[lap]

    @ct.kernel
    def k(x, y):
        b, v = ct.bid(0), x.tiled_view((WHOLE,), traversal_steps=(step,), padding_mode=ZERO)
        total = ct.zeros((WHOLE,), ct.int32)
        for i in laps(v.num_tiles(0)):
            total = total * 3 + v.load(index(i, b), allow_tma=False)
        ct.store(y, (b, 0), total.reshape((1, WHOLE)))

    for size in (1, 8, 15, 16, 17, 32, 40, 48, 63, 64):
        x, y = np.arange(1, size + 1, dtype=np.int32), np.zeros((2, WHOLE), np.int32)
        want = np.zeros_like(y)
        launch(k, x, y, grid=(2,))
        padded = np.concatenate([np.zeros(64, np.int32), x, np.zeros(400, np.int32)])
        for b in range(2):
            for i in laps(-(-size // step)):
                first = 64 + step * index(i, b)
                want[b] = want[b] * 3 + padded[first:first + WHOLE]
        assert y.tolist() == want.tolist(), size


@clause("LOAD-5.outside", "COND-1.bool")
@pytest.mark.parametrize("many", [1, 4])
def test_behind_conditions_on_floats(many):
    @ct.kernel
    def k(x, weights, y):
        b = ct.bid(0)
        w = ct.load(weights, b, ()).item()
        if w > 0.5 and b < 3:
            ct.store(y, (b, 0), ct.load(x, b, (TILE,), padding_mode=ZERO).reshape((1, TILE)))

    x, y = np.arange(1, TILE * many + 1, dtype=np.int32), np.zeros((BLOCKS, TILE), np.int32)
    launch(k, x, np.array([1, 0, 2, 3, 4], np.float32), y, grid=(BLOCKS,))
    assert y.tolist() == [at(x, b) if b in (0, 2) else [0] * TILE for b in range(BLOCKS)]


@clause("LOAD-5.outside", "COND-1.bool")
@pytest.mark.parametrize("tiles_of", [1, 2, 3, 8])
def test_behind_a_branch_that_returns(tiles_of):
    """A condition that one branch alone assigns, as the other one returns."""
    @ct.kernel
    def k(x, y):
        u = (ct.bid(0) - 4) // -1
        if u > 1:
            return
        else:
            holds = u > -1
        if holds:
            ct.store(y, (u, 0), ct.load(x, u, (TILE,), padding_mode=ZERO).reshape((1, TILE)))

    x, y = np.arange(1, TILE * tiles_of + 1, dtype=np.int32), np.zeros((BLOCKS, TILE), np.int32)
    launch(k, x, y, grid=(9,))
    assert y.tolist() == [at(x, u) if u < 2 else [0] * TILE for u in range(BLOCKS)]


@clause("TVOP-4.add", "TVOP-4.max", "LOOP-1.stop")
@pytest.mark.parametrize("kind", ["add", "max"])
@pytest.mark.parametrize("known", [False, True], ids=["of any size", "of a constant size"])
def test_atomic_stores_to_arrays_that_they_fill(kind, known):
    """They have no checks that could be left out."""
    many = 3

    @ct.kernel
    def k(x: Annotated[Any, ct.ArrayAnnotation(static_shape_dims=(0,) if known else ())], y):
        v, n = x.tiled_view((WHOLE,)), many if known else ct.num_tiles(x, 0, (WHOLE,))
        for i in range(n):
            t = ct.load(y, i, (WHOLE,), allow_tma=False)
            getattr(v, "atomic_store_" + kind)(i, t)

    x, y = np.arange(many * WHOLE, dtype=np.int32), np.arange(many * WHOLE, dtype=np.int32)[::-1] * 2
    want = {"add": np.add, "max": np.maximum}[kind](x, y)
    launch(k, x, y.copy())
    assert x.tolist() == want.tolist()
