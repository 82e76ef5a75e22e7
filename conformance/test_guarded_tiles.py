"""Tiles that are accessed only where a comparison holds: behind branches, early exits, in loops.

Compilers leave out checks of bounds where comparisons keep an index inside. Here arrays end just behind what a
comparison lets through, and one element before.
"""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch

TILE, BLOCKS = 4, 5
LEFT = 64  # elements before the array, in what tests compare

#: conditions on a block i, of an array of n tiles
CONDITIONS = {
    "less": lambda i, n: i < n,
    "less than all but one": lambda i, n: i < n - 1,
    "at most the last": lambda i, n: i <= n - 1,
    "at most": lambda i, n: i <= n,
    "turned less": lambda i, n: n > i,
    "turned at most": lambda i, n: n >= i + 1,
    "less than two": lambda i, n: i < 2,
    "at most two": lambda i, n: i <= 2,
    "more than two": lambda i, n: i > 2,
    "at least two": lambda i, n: i >= 2,
    "turned more than two": lambda i, n: 2 < i,
    "turned at least two": lambda i, n: 2 <= i,
    "equal": lambda i, n: i == 1,
    "equal to the first": lambda i, n: i == 0,
    "turned equal": lambda i, n: 1 == i,
    "unequal": lambda i, n: i != 1,
    "not less": lambda i, n: not i < 2,
    "not at least": lambda i, n: not i >= n,
    "not more than two": lambda i, n: not i > 2,
    "not at most two": lambda i, n: not i <= 2,
    "not more than the last": lambda i, n: not i > n - 1,
    "not unequal": lambda i, n: not i != 2,
    "not equal": lambda i, n: not i == 2,
    "between": lambda i, n: 1 <= i < n,
    "and": lambda i, n: i >= 1 and i < 3,
    "or": lambda i, n: i < 1 or i >= 3,
    "not or": lambda i, n: not (i < 1 or i >= n),
    "not and": lambda i, n: not (i >= 1 and i < n),
    "bits": lambda i, n: (i >= 1) & (i < n),
    "not bits": lambda i, n: not ((i < 1) | (i >= n)),
    "one bit of two": lambda i, n: (i < 1) | (i >= 3),
    "one bit alone": lambda i, n: (i < 1) ^ (i >= 3),
    "not both bits": lambda i, n: not ((i >= 1) & (i < 3)),
    "sum": lambda i, n: i + i < n + 1,
    "difference": lambda i, n: n - i > 1,
    "negative": lambda i, n: -i > -n,
    "choice": lambda i, n: (i < n if i > 1 else False),
    "other choice": lambda i, n: (True if i > 2 else i == 0),
    "wrapping": lambda i, n: i + 2147483646 < 2147483647,
    "more than a negative": lambda i, n: -7 < i - 9,
    "wrapping down": lambda i, n: i < i - 2147483647 - 9,
    "remainder": lambda i, n: i % 2 < 1,
    "always": lambda i, n: i >= 0,
}
#: the index of the tile
INDICES = {"i": lambda i, n: i, "from the end": lambda i, n: n - 1 - i, "from three": lambda i, n: 3 - i,
           "from four": lambda i, n: 4 - i,
           "before": lambda i, n: i - 1, "next": lambda i, n: i + 1, "twice": lambda i, n: 2 * i,
           "far before": lambda i, n: i - 4}


def behind_a_branch(x, y, i, holds, at):
    n = ct.num_tiles(x, 0, (TILE,))
    if holds(i, n):
        ct.store(y, at(i, n), ct.load(x, at(i, n), (TILE,), padding_mode=ct.PaddingMode.ZERO) + 100)


def behind_a_return(x, y, i, holds, at):
    n = ct.num_tiles(x, 0, (TILE,))
    if not holds(i, n):
        return
    ct.store(y, at(i, n), ct.load(x, at(i, n), (TILE,), padding_mode=ct.PaddingMode.ZERO) + 100)


def in_the_other_branch(x, y, i, holds, at):
    n = ct.num_tiles(x, 0, (TILE,))
    if not holds(i, n):
        pass
    else:
        ct.store(y, at(i, n), ct.load(x, at(i, n), (TILE,), padding_mode=ct.PaddingMode.ZERO) + 100)


def behind_a_continue(x, y, i, holds, at):
    n = ct.num_tiles(x, 0, (TILE,))
    for j in range(i, i + 1):
        if not holds(j, n):
            continue
        ct.store(y, at(j, n), ct.load(x, at(j, n), (TILE,), padding_mode=ct.PaddingMode.ZERO) + 100)


def in_a_while_loop(x, y, i, holds, at):
    n = ct.num_tiles(x, 0, (TILE,))
    once = 0
    while once < 1 and holds(i, n):
        ct.store(y, at(i, n), ct.load(x, at(i, n), (TILE,), padding_mode=ct.PaddingMode.ZERO) + 100)
        once += 1


FORMS = [behind_a_return, in_the_other_branch, behind_a_continue, in_a_while_loop]
SOME = ["less", "at most the last", "turned less", "more than two", "between", "or", "not or", "not bits"]


def wrapped(v):
    return (int(v) + (1 << 31)) % (1 << 32) - (1 << 31)


def lets_through(holds, i, n):
    if holds is CONDITIONS["wrapping"]:
        return wrapped(i + 2147483646) < 2147483647
    if holds is CONDITIONS["wrapping down"]:
        return i < wrapped(i - 2147483656)
    return bool(holds(i, n))


def sizes(holds, at):
    """Sizes just large enough for all tiles that blocks access, and one less; others."""
    found = {6, 16 * TILE}
    for n in range(1, 2 * BLOCKS + 1):
        if len(found) == 6:
            break
        reached = [at(i, n) for i in range(BLOCKS) if lets_through(holds, i, n)]
        if reached and min(reached) >= 0 and max(reached) <= n:
            found |= {TILE * n, TILE * n - 1}
    return sorted(found)


@clause("LOAD-5.edge", "LOAD-5.outside", "STORE-1.edge", "STORE-1.outside", "COND-1.bool")
@pytest.mark.parametrize(
    "condition, form", [*((c, behind_a_branch) for c in CONDITIONS), *((c, f) for f in FORMS for c in SOME)],
    ids=lambda v: getattr(v, "__name__", v))
def test_guarded_tiles(condition, form):
    holds = CONDITIONS[condition]
    for at in INDICES.values():
        @ct.kernel
        def k(x, y):
            form(x, y, ct.bid(0), holds, at)

        for size in sizes(holds, at):
            x, y = np.arange(1, size + 1, dtype=np.int32), np.zeros(size, np.int32)
            launch(k, x, y, grid=(BLOCKS,))
            n, want = -(-size // TILE), np.zeros(LEFT + size + 8 * TILE * BLOCKS, np.int32)
            for i in range(BLOCKS):
                if lets_through(holds, i, n):
                    first = LEFT + TILE * at(i, n)
                    want[first:first + TILE] = np.arange(first - LEFT + 1, first - LEFT + TILE + 1) + 100
            assert y.tolist() == want[LEFT:LEFT + size].tolist(), (size, at)


ONE_SIDED = {  # conditions on an index of which nothing else is known
    "not negative": lambda i, n: i >= 0,
    "behind the first": lambda i, n: i > 0,
    "not before the second": lambda i, n: not i < 1,
    "below": lambda i, n: i < n,
    "not behind": lambda i, n: not i >= n,
    "below the last": lambda i, n: i < n - 1,
    "not above the last": lambda i, n: not i > n - 1,
    "different": lambda i, n: i != n,
    "one of two sides": lambda i, n: i < 0 or i >= n,
}


WHOLE = 16  # elements of a tile; arrays hold whole tiles


@clause("LOAD-5.outside", "STORE-1.outside", "COND-1.bool")
@pytest.mark.parametrize("tile", [TILE, WHOLE])
@pytest.mark.parametrize("condition", ONE_SIDED)
def test_loaded_indices_behind_one_comparison(condition, tile):
    """An index from memory that a comparison bounds on one side alone may lie outside on the other."""
    holds, tiles = ONE_SIDED[condition], 3

    @ct.kernel
    def k(x, indices, y):
        b, n = ct.bid(0), ct.num_tiles(x, 0, (tile,))
        i = ct.load(indices, b, ()).item()
        if holds(i, n):
            t = ct.load(x, i, (tile,), padding_mode=ct.PaddingMode.ZERO, allow_tma=tile != WHOLE)
            ct.store(y, (b, i), t.reshape((1, tile)) + 100, allow_tma=tile != WHOLE)

    indices = np.array([-(1 << 31), -5, -1, 0, 1, 2, 3, 4, 9, (1 << 27) - 1, 1 << 27, (1 << 29) - 1, 1 << 29,
                        (1 << 31) - 1], np.int32)
    for size in (tiles * tile, tiles * tile - 1):
        x, y = np.arange(1, size + 1, dtype=np.int32), np.zeros((len(indices), size), np.int32)
        launch(k, x, indices, y, grid=(len(indices),))
        want = np.zeros_like(y)
        for b, i in enumerate(map(int, indices)):
            if holds(i, tiles) and 0 <= i < tiles:
                want[b, tile * i:tile * (i + 1)] = x[tile * i:tile * (i + 1)] + 100
        assert y.tolist() == want.tolist()


LAPS = {  # indices of tiles, by block, number of tiles and of blocks
    "all": lambda b, n, blocks: range(n),
    "shared out": lambda b, n, blocks: range(b, n, blocks),
    "from before": lambda b, n, blocks: range(b - 2, n),
    "but the last": lambda b, n, blocks: range(n - 1),
    "and one more": lambda b, n, blocks: range(b, n + 1),
    "by a step": lambda b, n, blocks: range(b, n, b + 1),
    "one by one": lambda b, n, blocks: range(b, min(b + 1, n)),
}


@clause("LOAD-5.outside", "STORE-1.outside", "LOOP-1.start", "LOOP-1.stop", "LOOP-1.step")
@pytest.mark.parametrize("shift", [-1, 0, 1])
@pytest.mark.parametrize("lap", LAPS)
def test_tiles_of_arrays_that_they_fill(lap, shift):
    """Tiles below the number of tiles lie inside, if they fill the array; hints may keep them from a tensor map."""
    indices = LAPS[lap]

    @ct.kernel
    def k(x, y):
        b, n = ct.bid(0), ct.num_tiles(x, 0, (WHOLE,))
        for i in indices(b, n, ct.num_blocks(0)):
            t = ct.load(x, i + shift, (WHOLE,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
            ct.store(y, (b, i + shift), t.reshape((1, WHOLE)) + 100, allow_tma=False)

    for n in (1, 2, 5, 8):
        x, y = np.arange(n * WHOLE, dtype=np.int32), np.zeros((BLOCKS, n * WHOLE), np.int32)
        launch(k, x, y, grid=(BLOCKS,))
        want = np.zeros((BLOCKS, n, WHOLE), np.int32)
        for b in range(BLOCKS):
            for i in indices(b, n, BLOCKS):
                if 0 <= i + shift < n:
                    want[b, i + shift] = x.reshape(n, WHOLE)[i + shift] + 100
        assert y.tolist() == want.reshape(BLOCKS, -1).tolist()


@clause("LOAD-5.outside", "STORE-1.outside")
@pytest.mark.parametrize("condition", SOME)
def test_guarded_tiles_of_arrays_that_they_fill(condition):
    holds = CONDITIONS[condition]
    for at in INDICES.values():
        @ct.kernel
        def k(x, y):
            i, n = ct.bid(0), ct.num_tiles(x, 0, (WHOLE,))
            if holds(i, n):
                t = ct.load(x, at(i, n), (WHOLE,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
                ct.store(y, (i, 0), t.reshape((1, WHOLE)) + 100)

        for n in (1, 3, 5):
            x, y = np.arange(n * WHOLE, dtype=np.int32), np.zeros((BLOCKS, WHOLE), np.int32)
            launch(k, x, y, grid=(BLOCKS,))
            want = np.zeros((BLOCKS, WHOLE), np.int32)
            for i in range(BLOCKS):
                if holds(i, n):
                    want[i] = (x.reshape(n, WHOLE)[at(i, n)] if 0 <= at(i, n) < n else 0) + 100
            assert y.tolist() == want.tolist()


#: conditions on an index that is at least 0 and at most 0, with which an array may have no tile
LOOSE = {
    "less": lambda i, n: i < n,
    "far less": lambda i, n: i - 5 < n,
    "one less": lambda i, n: i - 1 < n,
    "at most": lambda i, n: i <= n,
    "not equal": lambda i, n: i != n,
}


@clause("LOAD-5.outside", "STORE-1.outside")
@pytest.mark.parametrize("condition", LOOSE)
def test_first_tiles_of_arrays_that_may_have_none(condition):
    holds = LOOSE[condition]

    @ct.kernel
    def k(x, y):
        i, n = min(ct.bid(0), 0), ct.num_tiles(x, 0, (WHOLE,))
        if holds(i, n):
            t = ct.load(x, i, (WHOLE,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
            ct.store(y, 0, t + 100)

    for n in (0, 1, 2):
        x, y = np.arange(n * WHOLE, dtype=np.int32), np.zeros(WHOLE, np.int32)
        launch(k, x, y)
        assert y.tolist() == [v + 100 if holds(0, n) else 0 for v in (range(WHOLE) if n else (0,) * WHOLE)]


#: indices from an array, and from its size
LAST = {
    "element": (lambda x: x.shape[0] - 1, lambda size: size - 1),
    "tile": (lambda x: ct.num_tiles(x, 0, (WHOLE,)) - 1, lambda size: -(-size // WHOLE) - 1),
    "four": (lambda x: ct.cdiv(x.shape[0], 4) - 1, lambda size: -(-size // 4) - 1),
}


@clause("LOAD-5.outside", "STORE-1.outside")
@pytest.mark.parametrize("name", LAST)
def test_indices_from_the_size_of_another_array(name):
    """The last element of an empty array would lie before its first."""
    last, last_of = LAST[name]

    @ct.kernel
    def k(other, x, y):
        i = last(other)
        if i < ct.num_tiles(x, 0, (WHOLE,)):
            t = ct.load(x, i, (WHOLE,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
            ct.store(y, 0, t + 100)

    x = np.arange(3 * WHOLE, dtype=np.int32)
    for size in (0, 1, 2, 16):
        at, y = last_of(size), np.zeros(WHOLE, np.int32)
        launch(k, np.zeros(size, np.int32), x, y)
        want = np.zeros(WHOLE, np.int32) if at >= 3 else (x.reshape(3, WHOLE)[at] if at >= 0 else 0 * y) + 100
        assert y.tolist() == want.tolist()
