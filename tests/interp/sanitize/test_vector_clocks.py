"""Vector clocks say what a search through all releases and acquires says."""

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from cutile.interp.sanitize import vector_clocks
from cutile.interp.sanitize.vector_clocks import VectorClocks

BLOCK, CLOCK = 36, 12
LOAD = SimpleNamespace(acquires=True, releases=False, stores=False)
STORE = SimpleNamespace(acquires=False, releases=True, stores=True)
RELAXED_STORE = SimpleNamespace(acquires=False, releases=False, stores=True)
UPDATE = SimpleNamespace(acquires=True, releases=True, stores=False)
RELEASING_UPDATE = SimpleNamespace(acquires=False, releases=True, stores=False)


class Search:
    """For each block and cell the set of accesses (block, number) that come before."""

    def __init__(self, blocks: int):
        self.known = [set() for _ in range(blocks + 1)]
        self.released: dict[int, set] = {}

    def step(self, b: int, cells: list[int], order) -> None:
        if order.acquires:
            for c in cells:
                self.known[b] |= self.released.get(c, set())
        for c in cells:
            if order.releases:
                before = set() if order.stores else self.released.get(c, set())
                self.released[c] = before | self.known[b]
            elif order.stores:
                self.released.pop(c, None)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_random_histories(seed, eager, monkeypatch):
    """`eager`: nothing stays put down."""
    if eager:
        monkeypatch.setattr(vector_clocks, "QUEUED_MOST", 0)
        monkeypatch.setattr(vector_clocks, "CLEAN_EVERY", 2)
    random, blocks = Random(seed), 5
    clocks, search, accesses = VectorClocks(blocks), Search(blocks), []
    for number in range(60):
        b = random.randint(1, blocks)
        before = b << BLOCK | int(clocks.clocks_of(np.array([b]))[0]) << CLOCK
        accesses.append((b, number, before))
        search.known[b].add((b, number))
        if random.random() < 0.7:
            cells = random.sample(range(4), random.randint(1, 2))
            order = random.choice([LOAD, STORE, RELAXED_STORE, UPDATE, RELEASING_UPDATE])
            clocks.pass_on(np.array(cells), np.full(len(cells), b), order, None)
            search.step(b, cells, order)
        if random.random() < 0.2:
            asking = random.randint(1, blocks)
            others = [a for a in accesses if a[0] != asking]
            if others:
                got = clocks.ordered(np.array([a[2] for a in others]), np.full(len(others), asking), BLOCK, CLOCK)
                assert got.tolist() == [a[:2] in search.known[asking] for a in others]


def test_an_update_that_changes_nothing_releases_nothing():
    clocks = VectorClocks(2)
    one = np.array([0])
    before = np.array([1 << BLOCK | 1 << CLOCK])
    for changed, expected in ((False, False), (True, True)):
        clocks.pass_on(one, np.array([1]), RELEASING_UPDATE, np.array([changed]))
        clocks.pass_on(one, np.array([2]), LOAD, None)
        assert clocks.ordered(before, np.array([2]), BLOCK, CLOCK).tolist() == [expected]


@pytest.mark.parametrize("released, acquired", [(1, 1), (1, 1000), (1000, 1), (1000, 1000)])
def test_wide_and_narrow_accesses_see_each_other(released, acquired):
    clocks = VectorClocks(2)
    clocks.pass_on(np.arange(released), np.full(released, 1), STORE, None)
    clocks.pass_on(np.arange(acquired), np.full(acquired, 2), LOAD, None)
    before = np.array([1 << BLOCK | 1 << CLOCK, 1 << BLOCK | 2 << CLOCK])
    assert clocks.ordered(before, np.array([2, 2]), BLOCK, CLOCK).tolist() == [True, False]
    assert not clocks.ordered(before, np.array([1, 1]), BLOCK, CLOCK).any()


def test_wide_accesses_elsewhere_order_nothing():
    clocks = VectorClocks(2)
    clocks.pass_on(np.arange(1000), np.full(1000, 1), STORE, None)
    clocks.pass_on(np.arange(5000, 6000), np.full(1000, 2), LOAD, None)
    assert not clocks.ordered(np.array([1 << BLOCK | 1 << CLOCK]), np.array([2]), BLOCK, CLOCK).any()


def test_very_many_blocks():
    """An acquire then orders its block after all others: nothing wrong is reported."""
    clocks = VectorClocks(vector_clocks.MAX_BLOCKS + 1)
    before = np.array([1 << BLOCK | 1 << CLOCK] * 2)
    clocks.pass_on(np.array([0]), np.array([2]), LOAD, None)
    assert clocks.ordered(before, np.array([2, 3]), BLOCK, CLOCK).tolist() == [True, False]
