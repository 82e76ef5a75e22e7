"""Loops split at a condition on their counter: no branch is left, and programs print the same."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.ir.nodes import For, If
from cutile.ir.walk import walk
from cutile.passes.flatten_frames import flatten_frames
from cutile.passes.licm import licm
from cutile.passes.loop_split import loop_split
from tests.front.compiling import A1, I32, typed
from tests.passes.random_programs import printed, program, trace
from tests.seeds import seeds


def nodes(kernel, kind) -> int:
    return sum(isinstance(n, kind) for n in walk(kernel.body))


@seeds(20, 40)
def test_random_programs(seed):
    kernel = loop_split(licm(flatten_frames(program(seed))))
    assert trace(kernel, seed) == printed(seed)


def hoisted(fn, *kinds):
    return licm(flatten_frames(typed(fn, *kinds)))


def less(n):
    s = 0
    for j in range(n):
        if j < 3:
            s = s + j
        else:
            s = s - 7
        print(j, s)


def less_equal(n):
    s = 0
    for j in range(1, n):
        x = s * 2
        if 3 >= j:
            x = x + 100
            s = x
        print(j, s, x)


def greater(n):
    for j in range(n):
        print("a")
        if j > n - 2:
            print("b", j)
            continue
        print("c", j)


def greater_equal(n):
    for j in range(n):
        if 2147483647 <= j:
            print("never")
        if j >= -5:
            print("always", j)


def at_the_end(n):
    for j in range(n):
        if j <= 2147483647:
            print("always", j)


@pytest.mark.parametrize("fn", [less, less_equal, greater, greater_equal, at_the_end])
def test_split(fn):
    kernel = hoisted(fn, I32)
    split = loop_split(kernel)
    assert nodes(split, For) == 2 and nodes(split, If) == 2 * (nodes(kernel, If) - 1)
    for seed in range(7):
        assert trace(split, seed) == trace(kernel, seed)
    assert trace(split, -3) == trace(kernel, -3)


def test_not_split():
    def step(n):
        for j in range(0, n, 2):
            if j < 3:
                print(j)

    def breaks(n):
        for j in range(n):
            if j < 3:
                break

    def moving(n):
        m = n
        for j in range(n):
            m = m - 1
            if j < m:
                print(j)

    def outer(n, a):
        for j in range(n):
            if j < 3:
                print(j)
            for i in range(j):
                ct.store(a, i, 1.0)

    for fn, kinds in ((step, [I32]), (breaks, [I32]), (moving, [I32]), (outer, [I32, A1])):
        kernel = hoisted(fn, *kinds)
        assert loop_split(kernel) is kernel
