"""Device-wide algorithms that keep some of the items [SEL, RBK]."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, same_bits

N = 6001
X = np.random.default_rng(9).integers(-4, 5, N).astype(np.int32)


def positive(v):
    return v > 0


@clause("SEL-1.order", "SEL-1.rest", "SEL-2.count")
@pytest.mark.parametrize("n", [1, 2, 127, 2048, 2049, N])
def test_select(n):
    out, count = np.full(N, 99, np.int32), np.full(2, -3, np.int64)
    ct.compute.select(d_in=X, d_out=out, d_num_selected_out=count, cond=positive, num_items=n)
    want = X[:n][X[:n] > 0]
    assert count.tolist() == [len(want), -3]
    same_bits(out[:len(want)], want)
    assert (out[len(want):] == 99).all()


@clause("SEL-1.place")
def test_outputs_apart_from_inputs():
    x = X.copy()
    with pytest.raises(ValueError):
        ct.compute.select(x, x, np.zeros(1, np.int64), positive, N)
    with pytest.raises(ValueError):
        ct.compute.select(x, x[10:], np.zeros(1, np.int64), positive, 100)
    same_bits(x, X)


@clause("SEL-3.parts", "SEL-3.counts")
def test_three_way_partition():
    outs, counts = [np.zeros(N, np.int32) for _ in range(3)], np.full(3, -3, np.int32)
    ct.compute.three_way_partition(X, *outs, counts, positive, lambda v: v % 2 == 0, N)
    parts = X[X > 0], X[(X <= 0) & (X % 2 == 0)], X[(X <= 0) & (X % 2 != 0)]
    assert counts.tolist() == [len(parts[0]), len(parts[1]), -3]
    for out, want in zip(outs, parts, strict=True):
        same_bits(out[:len(want)], want)
        assert not out[len(want):].any()


@clause("SEL-3.second")
def test_the_second_predicate_is_asked_where_the_first_is_false():
    outs, counts = [np.zeros(N, np.int32) for _ in range(3)], np.zeros(2, np.int32)
    ct.compute.three_way_partition(X, *outs, counts, lambda v: v == 0, lambda v: 12 // v > 5, N)
    want = [v for v in X.tolist() if v != 0 and 12 // v > 5]
    assert outs[1][:counts[1]].tolist() == want


@clause("SEL-4.true")
def test_what_is_true():
    x = np.array([0, 2, 0, 256, -1], np.int32)
    out, count = np.zeros(5, np.int32), np.zeros(1, np.int64)
    for cond in (lambda v: v, lambda v: v * 0.001):
        ct.compute.select(x, out, count, cond, 5)
        assert out[:count[0]].tolist() == [2, 256, -1]


@clause("SEL-5.first", "SEL-5.neighbours")
@pytest.mark.parametrize("n", [1, 2, 128, 2049, 4097, N])
def test_unique_by_key(n):
    for equal in (lambda a, b: a == b, lambda a, b: a < b):
        keys, items, count = np.zeros(N, np.int32), np.full(N, -3, np.int16), np.zeros(1, np.int64)
        ct.compute.unique_by_key(X, ct.compute.CountingIterator(0), keys, items, count, equal, n)
        want = [k for k in range(n) if k == 0 or not equal(X[k - 1], X[k])]
        assert count[0] == len(want)
        same_bits(keys[:len(want)], X[want])
        assert items[:len(want)].tolist() == want and (items[len(want):] == -3).all()


@clause("SEL-6.nothing", "SEL-7.dtype")
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_counts(dtype):
    out, counts = X.copy(), np.full(2, 7, dtype)
    ct.compute.select(X, out, counts, positive, 0)
    assert counts.tolist() == [0, 7]
    ct.compute.three_way_partition(X, out, np.zeros(9), np.zeros(9), counts, positive, positive, 0)
    assert counts.tolist() == [0, 0]
    counts[0] = 7
    ct.compute.unique_by_key(X, X, out, np.zeros(9), counts, lambda a, b: a == b, 0)
    assert counts.tolist() == [0, 0]
    same_bits(out, X)
    ct.compute.select(X, out, counts, lambda v: True, 100)
    assert counts.tolist() == [100, 0]


@clause("RBK-1.reduce", "RBK-1.equal", "RBK-1.nothing", "RBK-2.lengths")
@pytest.mark.parametrize("n", [0, 1, 2, 33, 1025, N])
@pytest.mark.parametrize("equal", [None, lambda a, b: a <= b])
def test_runs(n, equal):
    keys, sums, lengths, runs = np.zeros(N, np.int32), np.zeros(N, np.int64), np.zeros(N, np.int32), np.full(1, -1)
    ct.compute.reduce_by_key(X, ct.compute.CountingIterator(1), keys, sums, runs, lambda a, b: a + b, n, equal)
    same = equal or (lambda a, b: a == b)
    first = [k for k in range(n) if k == 0 or not same(X[k - 1], X[k])]
    ends = [*first[1:], n][:len(first)]
    assert runs[0] == len(first)
    same_bits(keys[:len(first)], X[first])
    assert sums[:len(first)].tolist() == [sum(range(a + 1, b + 1)) for a, b in zip(first, ends, strict=True)]
    ct.compute.run_length_encode(X, keys, lengths, runs, n, equal)
    assert runs[0] == len(first) and lengths[:len(first)].tolist() == [b - a for a, b in zip(first, ends, strict=True)]
    same_bits(keys[:len(first)], X[first])


@clause("TOP-1.largest", "TOP-1.smallest", "TOP-1.values", "TOP-1.equal")
@pytest.mark.parametrize("k", [1, 700, N])
def test_top_k(k):
    places = np.arange(N, dtype=np.int32)
    for reverse in (False, True):
        keys, values = np.zeros(k + 1, np.int32), np.zeros(k + 1, np.int32)
        ct.compute.top_k(d_in_keys=X, d_out_keys=keys, d_in_values=places, d_out_values=values, num_items=N, k=k,
                         reverse=reverse)
        at = np.argsort(X if reverse else -X, kind="stable")[:k]
        same_bits(keys[:k], X[at])
        same_bits(values[:k], places[at])
        assert keys[k] == values[k] == 0


@clause("TOP-1.nan")
def test_top_k_of_special_floats():
    x = np.array([0.0, np.nan, -0.0, np.inf, -np.nan, -np.inf, 1.0], np.float32)
    for reverse, order in ((False, [1, 3, 6, 0, 2, 5, 4]), (True, [4, 5, 0, 2, 6, 3, 1])):
        for k in (4, 7):
            out = np.zeros(k, np.float32)
            ct.compute.top_k(x, out, None, None, 7, k, reverse)
            same_bits(out, x[order[:k]])


@clause("TOP-1.many", "TOP-1.nothing")
def test_top_k_of_too_many_and_none():
    out = np.full(5, 7, np.int32)
    for n, k in ((3, 4), (N, 6)):
        with pytest.raises(ValueError):
            ct.compute.top_k(X, out, None, None, n, k)
    ct.compute.top_k(X, out, None, None, N, 0)
    ct.compute.top_k(X, out, None, None, 0, 0)
    assert out.tolist() == [7] * 5


@clause("DLG-1.choice", "DLG-2.equal", "DLG-4.object", "DLG-5.host")
def test_ways_to_sort():
    before = ct.compute.backend()
    try:
        for way in ("own", "auto", "cccl"):
            assert ct.compute.backend(way) == way == ct.compute.backend()
            assert ct.compute.make_select(X, X, X, positive).backend == "own"
            keys, order = np.zeros_like(X), ct.compute.SortOrder.DESCENDING
            ct.compute.radix_sort(X, keys, None, None, N, order)
            same_bits(keys, -np.sort(-X))
        with pytest.raises(ValueError):
            ct.compute.backend("other")
    finally:
        ct.compute.backend(before)
