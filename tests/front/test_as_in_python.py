"""Random functions compute and print the same in a kernel as in Python, block after block."""

from __future__ import annotations

import contextlib
import io
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cutile as ct
from conformance.generate.random_modules import USED, RandomModule
from cutile import settings as options
from tests.front.compiling import cell

BLOCKS = 3


def outcome(run) -> tuple[list[int], str]:
    out, text = np.zeros(BLOCKS, np.int32), io.StringIO()
    with contextlib.redirect_stdout(text):
        run(out)
    return out.tolist(), text.getvalue()


def check(rng: Random, a: int, b: int) -> None:
    source = RandomModule(rng).source()
    f = cell(source, **USED)["f"]

    def in_python(out):
        for i in range(BLOCKS):
            out[i] = f(a + i, b)

    @ct.kernel
    def in_tile_code(out, a, b):
        ct.scatter(out, ct.bid(0), f(a + ct.bid(0), b))

    wanted = outcome(in_python)
    for schedule in ("batch", "block"):
        with options.override(SCHEDULE=schedule, STEP_LIMIT=100_000):
            got = outcome(lambda out: ct.launch(None, (BLOCKS,), in_tile_code, (out, a, b)))
        assert got == wanted, f"{schedule}\n{source}"


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(-9, 20), st.integers(-3, 9))
def test_random_functions(rng, a, b):
    check(rng, a, b)


@pytest.mark.deep
@pytest.mark.parametrize("part", range(50))
def test_many_random_functions(part):
    for seed in range(part * 1000, part * 1000 + 1000):
        rng = Random(seed)
        check(rng, rng.randrange(-9, 21), rng.randrange(-3, 10))
