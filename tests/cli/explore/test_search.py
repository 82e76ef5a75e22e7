"""Shortening lists of steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutile.cli.explore.search import shortened

BLOCKS = [(k, 0, 0) for k in range(4)]


@given(st.lists(st.sampled_from(BLOCKS), max_size=40), st.lists(st.sampled_from(BLOCKS), max_size=4))
def test_what_is_needed_stays(items, needed):
    """Of lists that fail if they have some items in order, those items are left."""
    def fails(x):
        rest = iter(x)
        return all(n in rest for n in needed)

    if fails(items):
        assert shortened(items, fails, 10_000) == needed


@pytest.mark.parametrize("runs", [0, 1, 5, 30])
def test_the_number_of_tries_is_limited(runs):
    tried = []

    def fails(x):
        tried.append(x)
        return len(x) % 2 == 0

    found = shortened(BLOCKS * 20, fails, runs)
    assert len(tried) <= runs and fails(found)
