"""Invariant ops leave their loops, and programs print the same."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.ir.nodes import For, Op
from cutile.ir.walk import walk
from cutile.passes.licm import licm
from tests.front.compiling import A1, F32, I32, typed
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
