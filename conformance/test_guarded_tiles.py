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
    "unequal": lambda i, n: i != 1,
    "not less": lambda i, n: not i < 2,
    "not at least": lambda i, n: not i >= n,
    "not unequal": lambda i, n: not i != 2,
    "not equal": lambda i, n: not i == 2,
    "between": lambda i, n: 1 <= i < n,
    "and": lambda i, n: i >= 1 and i < 3,
    "or": lambda i, n: i < 1 or i >= 3,
    "not or": lambda i, n: not (i < 1 or i >= n),
    "not and": lambda i, n: not (i >= 1 and i < n),
    "bits": lambda i, n: (i >= 1) & (i < n),
    "not bits": lambda i, n: not ((i < 1) | (i >= n)),
    "sum": lambda i, n: i + i < n + 1,
    "difference": lambda i, n: n - i > 1,
    "negative": lambda i, n: -i > -n,
    "choice": lambda i, n: (i < n if i > 1 else False),
    "other choice": lambda i, n: (True if i > 2 else i == 0),
    "wrapping": lambda i, n: i + 2147483646 < 2147483647,
    "remainder": lambda i, n: i % 2 < 1,
    "always": lambda i, n: i >= 0,
}
#: the index of the tile
INDICES = {"i": lambda i, n: i, "from the end": lambda i, n: n - 1 - i, "from three": lambda i, n: 3 - i,
           "before": lambda i, n: i - 1, "next": lambda i, n: i + 1, "twice": lambda i, n: 2 * i}


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
    return bool(holds(i, n))


def sizes(holds, at):
    """Sizes just large enough for all tiles that blocks access, and one less."""
    found = {6}
    for n in range(1, 2 * BLOCKS + 1):
        if len(found) == 5:
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
