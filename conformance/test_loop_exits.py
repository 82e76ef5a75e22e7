# ruff: noqa: B007 -- tile code under test, not code to tidy
"""How loops at run time end: by `break`, `return` and `while`, never, and in other blocks otherwise."""

import contextlib

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, refuses, run
from conformance.harness.tile_code import rejects, result


@contextlib.contextmanager
def counted(out):
    ct.store(out, 0, ct.load(out, 0, 1) + 1)
    yield
    ct.store(out, 1, ct.load(out, 1, 1) + 1)


@clause("LOOP-9.break", "LOOP-9.continue", "LOOP-9.if")
def test_values_at_the_exit():
    def f(n):
        s = t = 0
        for i in range(10):
            s = s + 1
            if i % 2 == 0:
                if n > 0:
                    continue
            t = t + i
            if i > 4:
                if n > 0:
                    t = t + 1000
                    break
        return s, t

    # odd i: 1, 3, then 5 leaves
    assert result(f, 1) == [6, 1009] and result(f, 0) == [10, 45]


@clause("LOOP-9.return", "LOOP-9.with")
def test_leaving_by_with():
    def g(out, n):
        for i in range(10):
            with counted(out):
                if i == 1:
                    continue
                if i == n:
                    break
                for j in range(5):
                    with counted(out):
                        if i + j == 6:
                            return i * 10 + j
        return -i_or(n)

    def i_or(n):
        return n

    @ct.kernel
    def k(n, out):
        ct.store(out, 2, g(out, n))

    # n = 2: i = 0 runs 1 + 5, i = 1 enters, i = 2 enters and leaves
    assert run(k, 2, np.zeros(3, np.int32)).tolist() == [8, 8, -2]
    # n = 99: 6, 1, then i = 2 enters once and j = 0..4 reach 6 at j = 4
    assert run(k, 99, np.zeros(3, np.int32)).tolist() == [13, 13, 24]


@clause("LOOP-10")
def test_loops_without_end():
    @ct.kernel
    def k(n):
        if n > 0:
            while True:
                pass

    accepts(k, 1)
    launch(k, 0)


@clause("LOOP-10")
@pytest.mark.parametrize("count", [0, -1])
def test_loops_without_end_in_loops_that_never_run(count):
    @ct.kernel
    def k(n, y):
        for i in range(n):
            while True:
                i = i + 1
        ct.store(y, 0, 7)

    assert run(k, count, np.zeros(1, np.int32)).tolist() == [7]


@clause("LOOP-11")
def test_loops_in_reductions():
    def f(a, b):
        for i in range(2):
            a = a + b
        return a

    def g(a, b):
        while True:
            break
        return a + b

    for h in (f, g):
        rejects("TileSyntaxError", lambda n, h=h: ct.reduce(ct.zeros((4,), ct.int32), 0, h, 0), 1)
        rejects("TileSyntaxError", lambda n, h=h: ct.scan(ct.zeros((4,), ct.int32), 0, h, 0), 1)


@clause("LOOP-13.while")
def test_the_condition_of_a_while():
    def more(out, n):
        ct.store(out, 0, ct.load(out, 0, 1) + 1)
        return n > 0

    @ct.kernel
    def k(n, out):
        while more(out, n):
            n = n - 1

    assert run(k, 4, np.zeros(1, np.int32)).tolist() == [5]
    assert run(k, -1, np.zeros(1, np.int32)).tolist() == [1]


@clause("LOOP-13.blocks")
def test_blocks_loop_differently():
    @ct.kernel
    def k(out):
        b = ct.bid(0)
        s = n = 0
        for i in range(b):
            if i == 4:
                break
            if i == 1:
                continue
            s = s * 10 + i + 1
        m = b
        while m > 0:
            m = m // 2
            n = n + 1
        ct.store(out, (b, 0), s)
        ct.store(out, (b, 1), n)

    got = run(k, np.zeros((7, 2), np.int32), grid=(7,))
    assert got[:, 0].tolist() == [0, 1, 1, 13, 134, 134, 134]
    assert got[:, 1].tolist() == [b.bit_length() for b in range(7)]


@clause("LOOP-13.blocks", "LOOP-9.return")
def test_blocks_return_from_loops():
    @ct.kernel
    def k(out):
        b = ct.bid(0)
        for i in range(5):
            for j in range(5):
                if i * j == b:
                    ct.store(out, b, i * 10 + j + 100)
                    return
        ct.store(out, b, -1)

    want = [next((i * 10 + j + 100 for i in range(5) for j in range(5) if i * j == b), -1) for b in range(18)]
    assert run(k, np.zeros(18, np.int32), grid=(18,)).tolist() == want
    refuses("TileTypeError", k, 1)
