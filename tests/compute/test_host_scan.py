"""Scans in host memory by one block: sizes around its tiles, in place, and outputs that cannot be advanced."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute
from cutile.compute import CountingIterator, OpKind, PermutationIterator, ReverseIterator, host_scan
from tests.compute.checks import forget_plans

SIZES = [1, 2, 3, 15, 16, 17, 31, 32, 33, 100]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    forget_plans()
    monkeypatch.setattr(host_scan, "TILE", 16)
    yield
    forget_plans()


def integers(n):
    return np.random.default_rng(n).integers(-9, 9, n).astype(np.int32)


@pytest.mark.parametrize("kind, ufunc", [(OpKind.PLUS, np.add), (lambda a, b: a * b, np.multiply),
                                         (OpKind.MAXIMUM, np.maximum), (OpKind.BIT_XOR, np.bitwise_xor)])
def test_sizes(kind, ufunc):
    for n in SIZES:
        x, o = integers(n), np.full(n + 2, 77, np.int32)
        compute.inclusive_scan(x, o, kind, None, n)
        assert np.array_equal(o[:n], ufunc.accumulate(x, dtype=np.int32)), n
        later = ufunc.accumulate(np.array([5, *x], np.int32), dtype=np.int32)
        compute.inclusive_scan(x, o, kind, np.int32(5), n)
        assert np.array_equal(o[:n], later[1:]), n
        compute.exclusive_scan(x, o, kind, np.int32(5), n)
        assert np.array_equal(o[:n], later[:-1]) and (o[n:] == 77).all(), n


@pytest.mark.parametrize("n", SIZES)
def test_in_place(n):
    """An exclusive scan writes behind what it reads, and loses none of it, backwards neither."""
    x = integers(n)
    y, z, w = x.copy(), x.copy(), x.copy()
    compute.inclusive_scan(y, y, OpKind.PLUS, None, n)
    compute.exclusive_scan(z, z, OpKind.PLUS, np.int32(3), n)
    compute.exclusive_scan(ReverseIterator(w), ReverseIterator(w), OpKind.PLUS, np.int32(3), n)
    assert y.tolist() == np.cumsum(x).tolist() and z.tolist() == (np.cumsum(x) - x + 3).tolist()
    assert w[::-1].tolist() == (np.cumsum(x[::-1]) - x[::-1] + 3).tolist()


def test_outputs_that_are_counted():
    n = 50
    x, o = integers(n), np.zeros(n, np.int32)
    counted = PermutationIterator(o, CountingIterator(np.int32(0)))
    assert not host_scan.advances(counted) and host_scan.advances(PermutationIterator(o, np.arange(n)))
    compute.exclusive_scan(x, counted, OpKind.PLUS, np.int32(1), n)
    assert o.tolist() == (np.cumsum(x) - x + 1).tolist()


def test_floats_are_added_in_order():
    n = 100
    x, o = np.random.default_rng(1).standard_normal(n).astype(np.float32), np.zeros(n, np.float32)
    compute.inclusive_scan(x[:16], o, OpKind.PLUS, None, 16)
    assert np.array_equal(o[:16], np.add.accumulate(x[:16]))
    compute.inclusive_scan(x, o, lambda a, b: a + b, None, n)
    assert np.allclose(o, np.cumsum(x.astype(float)), atol=1e-5)
