"""Repeated ops are merged, nothing else, and programs print the same."""

from __future__ import annotations

import math

import cutile as ct
from cutile.ir.nodes import Op
from cutile.ir.walk import walk
from cutile.passes.cse import cse
from cutile.passes.dce import dce
from tests.front.compiling import A1, F32, I32, typed
from tests.passes.random_programs import printed, program, trace
from tests.seeds import seeds


@seeds(25, 60)
def test_random_programs(seed):
    assert trace(cse(program(seed)), seed) == printed(seed)


def count(fn, *kinds, op: str) -> int:
    return sum(isinstance(n, Op) and n.op.name == op for n in walk(dce(cse(typed(fn, *kinds))).body))


def test_merged_and_kept():
    def kernel(a, x, n):
        y = ct.exp(x) + ct.exp(x)
        if n > 3:
            y = y + ct.exp(x)
            z = ct.sin(x)
        else:
            z = ct.sin(x)
        ct.store(a, n, y + z)

    assert count(kernel, A1, F32, I32, op="exp") == 1
    assert count(kernel, A1, F32, I32, op="sin") == 2  # neither is visible to the other


def test_constants_that_look_alike():
    def kernel(a, x):
        ct.store(a, 0, x * 0.0)
        ct.store(a, 1, x * -0.0)

    assert count(kernel, A1, F32, op="mul") == 2


def test_nans_that_look_alike():
    def kernel(a, x):
        ct.store(a, 0, x * math.nan)
        ct.store(a, 1, x * -math.nan)
        ct.store(a, 2, x * -math.nan)

    assert count(kernel, A1, F32, op="mul") == 2


def test_loads_are_not_merged():
    def kernel(a):
        x = ct.load(a, 0, ())
        ct.store(a, 0, x + 1)
        ct.store(a, 1, ct.load(a, 0, ()))

    assert count(kernel, A1, op="load") == 2


def test_nothing_to_merge():
    def kernel(a, x, n):
        for i in range(n):
            if i > 2:
                ct.store(a, i, ct.exp(x))

    before = cse(typed(kernel, A1, F32, I32))
    assert cse(before) is before
