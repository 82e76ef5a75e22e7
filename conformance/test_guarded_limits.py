"""Tiles at indices of which comparisons alone tell the least and the largest value: behind branches and loops.

Compilers leave out checks of bounds where comparisons keep an index inside. Here nothing but comparisons tells an
index, and every block has another one. Once the least index that is reached is the first tile, of arrays of every
number of tiles up to those that are reached, and of one that ends one element before; once it is one before the first.
"""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch

TILE, BLOCKS = 4, 9
FAR = 64  # tiles of an array that ends far behind all tiles


def hidden(b):
    """A number from -4 to 4, by block, whose range takes more than arithmetic on limits to tell."""
    return (b - 4) // -1


#: conditions on a number from -4 to 4; each bounds it on one side at least
CONDITIONS = {
    "above": lambda u: u > -1,
    "at least": lambda u: u >= 0,
    "turned above": lambda u: -1 < u,
    "turned at least": lambda u: 0 <= u,
    "not below": lambda u: not u < 0,
    "not at most": lambda u: not u <= -1,
    "below": lambda u: u < 2,
    "at most": lambda u: u <= 1,
    "turned below": lambda u: 2 > u,
    "turned at most": lambda u: 1 >= u,
    "not above": lambda u: not u > 1,
    "not at least": lambda u: not u >= 2,
    "equal": lambda u: u == 1,
    "unequal": lambda u: u != 1,
    "not equal": lambda u: not u == 1,
    "not unequal": lambda u: not u != 1,
    "between": lambda u: 0 <= u < 2,
    "both": lambda u: u > -1 and u < 2,
    "both, and a third": lambda u: u > -1 and (u < 2 and u != 7),
    "both of three": lambda u: (u > -1 and u < 3) and u < 2,
    "either": lambda u: u > 1 or u < -1,
    "either, and another": lambda u: (u > 1 or u < -1) and u < 3,
    "neither": lambda u: not (u < 0 or u > 1),
    "neither of three": lambda u: not (u < 0 or (u > 1 or u == 7)),
    "not both": lambda u: not (u >= 0 and u <= 1),
    "bits": lambda u: (u > -1) & (u < 2),
    "either bit": lambda u: (u > 1) | (u < -1),
    "no bit": lambda u: not ((u < 0) | (u > 1)),
    "inverted bits": lambda u: ~((u < 0) | (u > 1)),
    "inverted": lambda u: ~(u < 0),
    "not not": lambda u: not (not u > -1),
    "exclusive": lambda u: (u < 2) ^ (u < 0),
    "of a sum": lambda u: u + 3 < 5,
    "of a difference": lambda u: 5 - u > 3,
    "of a negative": lambda u: -u < 1,
    "of a multiple": lambda u: 2 * u < 3,
    "with itself": lambda u: u + u < u + 2,
    "wrapping above": lambda u: u + 2147483646 < 2147483647,
    "wrapping below": lambda u: u - 2147483646 > -2147483647,
    "by a choice": lambda u: (u < 2 if u > -1 else False),
    "by another choice": lambda u: (True if u > 1 else u == 0),
    "by a choice of truths": lambda u: (False if u > 1 else True),
    "always": lambda u: u < 9,
    "never": lambda u: (False if u > 1 else ct.bool_(False)),
    "never, as computed": lambda u: (u > u if u > 1 else u < u),
    "not always": lambda u: not (True if u > 1 else ct.bool_(True)),
    "not never": lambda u: not (ct.bool_(False) if u > 1 else False),
    "on one side": lambda u: (ct.bool_(False) if u > 1 else True),
}


def wrap(n):
    return (n + (1 << 31)) % (1 << 32) - (1 << 31)


IN_NUMBERS = {
    "wrapping above": lambda u: wrap(u + 2147483646) < 2147483647,
    "wrapping below": lambda u: wrap(u - 2147483646) > -2147483647,
    "inverted bits": lambda u: not (u < 0 or u > 1),
    "inverted": lambda u: u >= 0,
    "never": lambda u: False, "not always": lambda u: False, "not never": lambda u: True,
    "on one side": lambda u: u <= 1,
}


def in_a_branch(u, holds, work):
    if holds(u):
        work(u)


def in_the_other_branch(u, holds, work):
    if holds(u):
        work(u)
    else:
        pass


def behind_an_exit(u, holds, work):
    if not holds(u):
        return
    work(u)


def behind_the_other_exit(u, holds, work):
    if holds(u):
        pass
    else:
        return
    work(u)


def in_a_loop(u, holds, work):
    for _ in range(1):
        if not holds(u):
            continue
        work(u)


def while_it_holds(u, holds, work):
    if u < 8:
        once = True
        while once and holds(u):
            work(u)
            once = False


def while_a_variable_holds(u, holds, work):
    if u < 8:
        again = holds(u)
        while again:
            work(u)
            again = False


def while_nothing_else(u, holds, work):
    while holds(u):
        work(u)
        if u < 8:
            break


def in_neither_branch(u, holds, work):
    if holds(u):
        pass
    elif u < 8:
        work(u)


FORMS = (in_the_other_branch, behind_an_exit, behind_the_other_exit, in_a_loop, while_it_holds, while_a_variable_holds,
         while_nothing_else, in_neither_branch)
IN_FORMS = ("at least", "below", "equal", "unequal", "both", "neither")


@clause("LOAD-5.edge", "LOAD-5.outside", "COND-1.bool")
@pytest.mark.parametrize(
    "condition, form", [*((c, in_a_branch) for c in CONDITIONS), *((c, f) for f in FORMS for c in IN_FORMS)],
    ids=lambda v: getattr(v, "__name__", v))
@pytest.mark.parametrize("bounded", ["below", "above"])
def test_what_comparisons_tell(condition, form, bounded):
    """Another comparison bounds the index on one side, so that the condition tells the other one."""
    holds = CONDITIONS[condition]
    true = IN_NUMBERS.get(condition, holds)
    reached = [u for u in range(4, -5, -1) if bool(true(u)) == (form is not in_neither_branch)
               and (u >= -1 if bounded == "below" else u <= 2)]
    first, last = (min(reached), max(reached)) if reached else (0, 0)
    tiles = last - first + 1
    compare(holds, form, bounded, -first, reached, [*range(1, tiles + 1), tiles - 1 / TILE, FAR])
    compare(holds, form, bounded, -first - 1, reached, [FAR])


def compare(holds, form, bounded, shift, reached, sizes):
    """Load what is reached of arrays of so many tiles."""
    @ct.kernel
    def k(x, y):
        b = ct.bid(0)

        def work(u):
            ct.store(y, (b, 0), ct.load(x, u + shift, (TILE,), padding_mode=ct.PaddingMode.ZERO).reshape((1, TILE)))

        u = hidden(b)
        if bounded == "below":
            if u >= -1:
                form(u, holds, work)
        else:
            if u <= 2:
                form(u, holds, work)

    index = 4 - np.arange(BLOCKS)[:, None]
    elements = TILE * (index + shift) + np.arange(TILE) + 1
    for tiles in sizes:
        x, y = np.arange(1, int(TILE * tiles) + 1, dtype=np.int32), np.full((BLOCKS, TILE), -1, np.int32)
        launch(k, x, y, grid=(BLOCKS,))
        inside = np.where((elements > 0) & (elements <= len(x)), elements, 0)
        assert y.tolist() == np.where(np.isin(index, reached), inside, -1).tolist(), tiles
