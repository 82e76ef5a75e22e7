"""Errors along a program: memory, calls, lists, branches and loops, and where the walk ends without an answer."""

from __future__ import annotations

import numpy as np

import cutile as ct
from cutile.bounds import bounds
from tests.bounds.one_tile import N, data, run


def test_a_branch_that_may_turn_is_inconclusive():
    @ct.kernel
    def k(x, y):
        s = ct.sum(ct.load(x, (0,), (N,)))
        if s == 0:
            ct.store(y, (0,), s)

    found = bounds(k, (1,), (np.array([1, -1] * 8, np.float32), np.zeros(1, np.float32)))
    assert "the branch in line" in found.inconclusive and np.isinf(found.arrays[1].bound).all()


def test_an_index_that_may_turn_is_inconclusive():
    @ct.kernel
    def k(x, y):
        i = ct.exp2(ct.load(x, (0,), (N,))).astype(ct.int32)
        ct.store(y, (0,), ct.gather(x, i))

    assert "an index or mask" in bounds(k, (1,), (np.ones(N, np.float32), np.zeros(N, np.float32))).inconclusive


def test_errors_go_through_memory():
    @ct.kernel
    def k(x, z, y):
        ct.store(z, (0,), ct.exp(ct.load(x, (0,), (N,))))
        ct.store(y, (0,), ct.load(z, (0,), (N,)))

    z = np.zeros((N, 2), np.float32)[:, 0]
    value, bound = run(k, data(), z, np.zeros(N, np.float32))
    assert bound.all() and np.isfinite(bound).all()


def helper(t):
    if ct.bid(0) > 0:
        return ct.exp(t)
    return t


def test_calls_lists_and_tuples():
    @ct.kernel
    def k(xs, pair, y):
        t = helper(ct.load(xs[ct.bid(0)], (0,), (N,)))
        ct.store(y, (ct.bid(0),), t + ct.load(pair[0], (0,), (N,)))

    found = bounds(k, (2,), ([data(), data()], (data(), 3), np.zeros(2 * N, np.float32)))
    bound = found.arrays[-1].bound
    assert len(found.arrays) == 4 and not bound[:N].any() and bound[N:].all()


def test_atomics_of_floats():
    @ct.kernel
    def k(x, y):
        ct.atomic_add(y, 0, ct.load(x, (ct.bid(0),), ()))

    value, bound = run(k, data(), np.zeros(1, np.float32), grid=(N,))
    assert 0 < bound[0] < 1e-4 and abs(float(value[0]) - float(data().astype(float).sum())) <= bound[0]


def test_blocks_that_wait_are_inconclusive():
    @ct.kernel
    def k(y):
        while ct.atomic_cas(y, 0, 0, 1) != 0:
            pass
        ct.atomic_xchg(y, 0, 0)

    assert "waits" in bounds(k, (2,), (np.zeros(1, np.int32),)).inconclusive


def test_a_running_softmax_is_known():
    @ct.kernel
    def k(x, y):
        top, total = ct.full((), -np.inf, ct.float32), ct.zeros((), ct.float32)
        for i in range(4):
            t = ct.sin(ct.load(x, (i,), (4,)))
            new = max(top, ct.max(t))
            total = total * ct.exp(top - new) + ct.sum(ct.exp(t - new))
            top = new
        ct.store(y, 0, total)

    value, bound = run(k, data(), np.zeros(1, np.float32))
    assert 0 < bound[0] < 1e-4 * value[0]


def lost(body, *arrays):
    """Why and in which line a bound was lost."""
    @ct.kernel
    def k(x, y):
        body(ct.exp(ct.load(x, 0, N)), y)

    found = bounds(k, (1,), (*arrays, np.zeros(N, np.float32)), rounding=True)
    return found.lost and (found.lost.why, found.lost.span.source_line().strip())


def test_where_a_bound_is_lost():
    def compared(t, y):
        ct.store(y, 0, ct.where(t > 1.0, t, 0.0))

    def divided(t, y):
        small = t - t
        ct.store(y, 0, t / small)

    def too_large(t, y):
        ct.store(y, 0, (t * 65000.0).astype(ct.float16).astype(ct.float32))

    def kept(t, y):
        ct.store(y, 0, t + 1)

    zeros = np.zeros(N, np.float32)
    assert lost(compared, zeros) == ("a result of dtype bool_ follows from a rounded number",
                                     "ct.store(y, 0, ct.where(t > 1.0, t, 0.0))")
    assert lost(divided, zeros)[0].startswith("the divisor may be 0") and "t / small" in lost(divided, zeros)[1]
    assert lost(too_large, np.full(N, 0.0077, np.float32))[0].endswith("its result out of the range of float16")
    assert lost(kept, zeros) is None
