"""Arrays that operators capture: read when the operator runs, by every algorithm, and updated by atomics."""

from __future__ import annotations

import gc
import io
import pdb
import sys
import weakref

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.compute import OpKind, TransformIterator, TransformOutputIterator, ZipIterator, algorithm
from tests.gpu.arrays import Cuda
from tests.gpu.fake_driver import installed

X = np.arange(8, dtype=np.int32)
TABLE = np.arange(8, dtype=np.float32) * 10


def looked_up(table):
    return lambda v: table[v] + 1


def helper(v):
    return TABLE[v]


def transformed(op):
    o = np.zeros(8, np.float32)
    compute.unary_transform(X, o, op, 8)
    return o.tolist()


def test_contents_and_arrays_may_change():
    """Arrays of one dtype share code, whatever their contents and sizes."""
    table = TABLE.copy()
    op = looked_up(table)
    assert transformed(op) == (table + 1).tolist()
    table[:] = 7
    assert transformed(op) == [8.0] * 8
    before = len(algorithm._kernels)
    for other in (TABLE + 3, np.ones(20, np.float32)):
        assert transformed(looked_up(other)) == (other[:8] + 1).tolist()
    assert transformed(looked_up(TABLE[:2])) == [1, 11, 1, 1, 1, 1, 1, 1]  # as ct.gather out of range
    assert len(algorithm._kernels) == before
    assert transformed(looked_up(np.arange(8))) == (X + 1.0).tolist()
    assert transformed(looked_up(np.arange(16, dtype=np.float32)[::2])) == (X * 2.0 + 1).tolist()
    assert transformed(lambda v: helper(v) - ct.gather(table, v)) == (TABLE - 7).tolist()


def test_no_cache_keeps_them():
    table = TABLE.copy()
    transformed(looked_up(table))
    gone = weakref.ref(table)
    del table
    gc.collect()
    assert gone() is None


def test_every_algorithm():
    rank = np.array([5, 3, 4, 0, 7, 1, 2, 6])
    keep = np.array([1, 0, 0, 1, 1, 0, 1, 0], np.int8)
    o, count = np.zeros(8, np.int32), np.zeros(1, np.int32)
    compute.merge_sort(X, None, o, None, 8, lambda a, b: rank[a] < rank[b])
    assert o.tolist() == np.argsort(rank).tolist()
    compute.select(X, o, count, lambda v: keep[v], 8)
    assert o[:count[0]].tolist() == X[keep > 0].tolist()
    compute.binary_transform(X, X, o, lambda a, b: rank[a] * keep[b], 8)
    assert o.tolist() == (rank * keep).tolist()
    one = np.zeros(1, np.int32)
    compute.reduce_into(TransformIterator(X, lambda v: rank[v]), one, 8, OpKind.PLUS, np.int32(0))
    assert one[0] == 28
    compute.reduce_into(X, one, 8, lambda a, b: a if rank[a] > rank[b] else b)
    assert one[0] == 4
    compute.inclusive_scan(X, o, lambda a, b: a if rank[a] > rank[b] else b, None, 8)
    assert o.tolist() == [0, 0, 0, 0, 4, 4, 4, 4]

    def double(v: np.int32):
        return v * rank[0]
    compute.unary_transform(X, TransformOutputIterator(o, double), OpKind.IDENTITY, 8)
    assert o.tolist() == (X * 5).tolist()


@pytest.mark.parametrize("n", [8, 3000])
def test_atomic_updates(n):
    """Each item once, also where tiles are not whole, in both schedules."""
    x = np.random.default_rng(n).integers(0, 8, n).astype(np.int32)
    counts, odd, o = np.zeros(8, np.int32), np.zeros(1, np.int64), np.zeros(n, np.int32)

    def count(v):
        ct.atomic_add(counts, v, 1)
        if v % 2 == 1:
            ct.atomic_add(odd, 0, 1)
        return v
    compute.unary_transform(x, o, count, n)
    assert counts.tolist() == np.bincount(x, minlength=8).tolist() and odd[0] == (x % 2).sum()
    assert np.array_equal(o, x)
    with ct.sanitize("all"):
        compute.unary_transform(x, o, count, n)
    assert counts.sum() == 2 * n


def test_a_breakpoint_in_an_operator_that_captures():
    counts, o, shown, before = np.zeros(8, np.int32), np.zeros(8, np.float32), io.StringIO(), sys.gettrace()

    def count(v):
        ct.atomic_add(counts, v, 1)
        return TABLE[v]
    debugger = pdb.Pdb(stdin=io.StringIO("p str(v)\nc\n" * 100), stdout=shown, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    debugger.set_break(__file__, count.__code__.co_firstlineno + 2)
    try:
        debugger.runcall(compute.unary_transform, X, o, count, 8)
    finally:
        debugger.clear_all_breaks()
        sys.settrace(before)
    assert "'i32 5'" in shown.getvalue() and counts.tolist() == [1] * 8 and o.tolist() == TABLE.tolist()


def test_on_a_gpu(monkeypatch):
    """The array is a further parameter, with the address that it has at each call."""
    fake = installed(monkeypatch)
    x, o = Cuda(X.copy()), Cuda(np.zeros(8, np.float32))
    for table in (Cuda(TABLE.copy()), Cuda(TABLE.copy())):
        compute.unary_transform(x, o, looked_up(table), 8)
        assert table.array.ctypes.data in {int.from_bytes(p, "little") for p in fake.launches[-1]["parameters"]}
    with pytest.raises((TypeError, ValueError), match="memory"):
        compute.unary_transform(x, o, looked_up(TABLE), 8)


def test_refusals():
    for table, message in ((np.zeros((2, 2)), "has one axis, and this one has 2"),
                           (np.zeros(3, [("a", "i4")]), "holds numbers")):
        with pytest.raises(TypeError, match=message):
            transformed(looked_up(table))
    a, b = TABLE.copy(), TABLE + 1
    same = ZipIterator(TransformIterator(X, looked_up(a)), TransformIterator(X, looked_up(a)))
    o = np.zeros(8, np.float32)
    compute.unary_transform(same, o, lambda p: p[0] + p[1], 8)
    assert o.tolist() == (2 * TABLE + 2).tolist()
    two = ZipIterator(TransformIterator(X, looked_up(a)), TransformIterator(X, looked_up(b)))
    with pytest.raises(ct.TileUnsupportedFeatureError, match="equal code capture different arrays"):
        compute.unary_transform(two, o, lambda p: p[0] + p[1], 8)
    with pytest.raises(ct.TileSyntaxError, match="ct.load"):
        transformed(lambda v: ct.load(TABLE, (v,), (1,)).item())
