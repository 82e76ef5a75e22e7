"""Every schedule gives what one block after another gives, for every program that has one result."""

from __future__ import annotations

import contextlib
import io
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cutile import interp
from cutile import settings as options
from cutile.ir.check import check
from cutile.ir.text import parse, to_text
from tests.interp import reference
from tests.interp.ir_programs import RandomKernel
from tests.seeds import seeds

GRIDS = ((1, 1, 1), (5, 1, 1), (3, 2, 1), (2, 3, 2), (1, 4, 1), (1, 2, 3))


def trace(kernel, grid, args, schedule) -> str:
    """What a program prints, block after block."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), options.override(CHECK=True, STEP_LIMIT=20000):
        interp.run(kernel, grid, args, schedule=schedule)
    return out.getvalue()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.sampled_from(GRIDS))
def test_random_programs(rng, grid):
    kernel = RandomKernel(rng).make()
    check(kernel)
    expected = reference.run(kernel, grid, [4])
    assert trace(kernel, grid, [4], "block") == expected
    assert trace(kernel, grid, [4], "batch") == expected
    assert trace(kernel, grid, [4], "interleave") == expected


@seeds(20, 40)
def test_seeded_programs(seed):
    kernel = RandomKernel(Random(seed), 40).make()
    grid = GRIDS[seed % len(GRIDS)]
    expected = reference.run(kernel, grid, [seed])
    assert trace(kernel, grid, [seed], "block") == expected
    assert trace(kernel, grid, [seed], "batch") == expected
    assert trace(kernel, grid, [seed], "interleave") == expected


def test_the_traces_say_something():
    """Most seeded programs print more than one line per block, and blocks differ."""
    texts = [reference.run(RandomKernel(Random(s), 40).make(), (5, 1, 1), [s]) for s in range(20)]
    assert sum(len(set(t.splitlines())) > 5 for t in texts) > 8


@pytest.mark.parametrize("seed", range(5))
def test_printed_and_parsed_again(seed):
    kernel = RandomKernel(Random(seed), 40).make()
    again = parse(to_text(kernel))
    assert trace(again, (3, 2, 1), [seed], "batch") == trace(kernel, (3, 2, 1), [seed], "batch")
