"""cutile.bounds: how far implementations may differ, and that it follows what a kernel computes."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile.bounds import bounds
from tests.bounds.one_tile import N, data, of

# ------------------------------------------------------------------ where nothing is open


@pytest.mark.parametrize("body", [
    lambda t: t + t * t, lambda t: t / 3, lambda t: ct.sqrt(abs(t)), lambda t: ct.floor(t), lambda t: ct.max(t) - t,
    lambda t: ct.where(t > 0, t, -t), lambda t: ct.cat((ct.extract(t, (0,), (8,)), ct.extract(t, (1,), (8,))), 0),
])
def test_exact_kernels_have_no_bound(body):
    value, bound = of(body, data())
    assert not bound.any() and value.any()


def test_values_are_those_of_a_launch_and_arguments_stay():
    @ct.kernel
    def k(x, y):
        i = ct.bid(0)
        t = ct.load(x, (i,), (4,))
        for _ in range(3):
            t = ct.exp(t) * 0.25
            if i == 2:
                break
        ct.store(y, (i,), t)

    x, y, want = data(), np.zeros(N, np.float32), np.zeros(N, np.float32)
    ct.launch(None, (4,), k, (x, want))
    found = bounds(k, (4,), (x, y))
    assert not y.any() and np.array_equal(found.arrays[1].value, want)
    assert [a.name for a in found.arrays] == ["x", "y"] and not found.arrays[0].bound.any()
    assert (found.arrays[1].bound[:8] > found.arrays[1].bound[8:12].max()).any()  # three times exp, or once
