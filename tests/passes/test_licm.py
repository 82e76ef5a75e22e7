"""Invariant ops leave their loops, and programs print the same."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.ir.nodes import For, Op
from cutile.ir.walk import walk
from cutile.passes.licm import licm
from tests.front.compiling import A1, AI, F32, I32, cell, typed
from tests.passes.random_programs import program, trace


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    kernel = program(seed)
    assert trace(licm(kernel), seed) == trace(kernel, seed)


def in_loops(fn, *kinds) -> set[str]:
    loops = [n for n in walk(licm(typed(fn, *kinds)).body) if isinstance(n, For)]
    return {n.op.name for loop in loops for n in walk(loop.body) if isinstance(n, Op)}


def test_out_of_two_loops():
    def kernel(a, x, n):
        for i in range(n):
            for _ in range(n):
                ct.store(a, i, ct.exp(x) + 1.0)

    assert in_loops(kernel, A1, F32, I32) == {"store"}


def test_what_stays():
    def kernel(a, x, n, m):
        for i in range(n):
            if i > 2:
                ct.store(a, i, ct.exp(x))
            ct.store(a, n // m, ct.load(a, n // 3, ()))

    assert in_loops(kernel, A1, F32, I32, I32) >= {"store", "load", "exp", "floordiv"}
    assert sum(1 for n in walk(licm(typed(kernel, A1, F32, I32, I32)).body)
               if isinstance(n, Op) and n.op.name == "floordiv") == 2


@pytest.mark.parametrize("divisor, stays", [
    ("3", False), ("0", True), ("m", True), ("ct.full((4,), 3, ct.int32)", False),
    ("ct.full((2, 2), 3, ct.int64).reshape((4,)).astype(ct.int32)", False), ("ct.full((4,), m, ct.int32)", True),
    ("ct.cat((ct.full((2,), 3, ct.int32), ct.full((2,), 3, ct.int32)), 0)", True),
    ("ct.cat((ct.full((2,), 3, ct.int32), ct.full((2,), m, ct.int32)), 0)", True)])
def test_divisions_by_what_may_be_zero_stay(divisor, stays):
    """Others leave: by a number that is known, also cast or in each element of a tile."""
    kernel = cell(f"""def kernel(a, n, m):
        x = ct.load(a, 0, 4)
        d = {divisor}
        for i in range(n):
            ct.store(a, i, x // d)
    """)["kernel"]
    assert ("floordiv" in in_loops(kernel, AI, I32, I32)) is stays
