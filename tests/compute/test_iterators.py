"""Iterators as inputs and outputs, nested."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cutile as ct
from cutile import compute
from cutile.compute import (
    CacheModifiedInputIterator,
    ConstantIterator,
    CountingIterator,
    DiscardIterator,
    PermutationIterator,
    ReverseIterator,
    TransformIterator,
    TransformOutputIterator,
    ZipIterator,
)

N = 1500
X = np.random.default_rng(4).normal(size=N).astype(np.float32)
AT = np.random.default_rng(5).permutation(N).astype(np.int32)


def read(it, n=N, dtype=np.float32) -> np.ndarray:
    out = np.zeros(n, dtype)
    compute.unary_transform(it, out, lambda v: v, n)
    return out


def written(make, values, n=N) -> np.ndarray:
    out = np.full(N, -1, np.float32)
    compute.unary_transform(values, make(out), lambda v: v, n)
    return out


@pytest.mark.parametrize("it, want", [
    (CountingIterator(np.int32(3)), np.arange(3, N + 3)),
    (CountingIterator(np.float32(0.5)), np.arange(N) + 0.5),
    (CountingIterator(7) + 10, np.arange(17, N + 17)),
    (ConstantIterator(np.float64(2.5)), np.full(N, 2.5)),
    (CacheModifiedInputIterator(X, "stream"), X),
    (CacheModifiedInputIterator(X, "volatile") + 0, X),
    (TransformIterator(X, lambda v: v * 2 if v > 0 else 0), np.maximum(X, 0) * 2),
    (TransformIterator(CountingIterator(0), lambda i: i % 7), np.arange(N) % 7),
    (PermutationIterator(X, AT), X[AT]),
    (PermutationIterator(TransformIterator(X, lambda v: -v), AT), -X[AT]),
    (PermutationIterator(CountingIterator(5), AT), AT + 5),
    (PermutationIterator(X, TransformIterator(AT, lambda i: i // 2)), X[AT // 2]),
    (ReverseIterator(X), X[::-1]),
    (ReverseIterator(PermutationIterator(X, AT) + (N - 1)), X[AT][::-1]),
    (ReverseIterator(ReverseIterator(X) + (N - 1)), X),
    (TransformIterator(ZipIterator(X, CountingIterator(np.int32(0))), lambda z: z[0] + z.field_1), X + np.arange(N)),
    (TransformIterator(ReverseIterator(ZipIterator(X, X[::-1]) + (N - 1)), lambda z: z[0] - 2 * z[1]),
     X[::-1] - 2 * X),
], ids=str)
def test_inputs(it, want):
    assert np.array_equal(read(it), np.asarray(want).astype(np.float32))


@pytest.mark.parametrize("make, want", [
    (lambda o: ReverseIterator(o), X[::-1]),
    (lambda o: PermutationIterator(o, AT), np.ones(N, np.float32)),
    (lambda o: TransformOutputIterator(o, lambda v: v * 10, np.float32), X * 10),
    (lambda o: PermutationIterator(ReverseIterator(o), CountingIterator(0)), X[::-1]),
])
def test_outputs(make, want):
    got = written(make, X)
    if want[0] == 1:
        want = np.empty(N, np.float32)
        want[AT] = X
    assert np.array_equal(got, want)


def test_advanced_iterators():
    for k in (1, 700):
        n = N - k
        for it, want in ((TransformIterator(X, lambda v: v + 1) + k, X[k:] + 1), (PermutationIterator(X, AT) + k,
                                                                                X[AT[k:]]),
                         (ReverseIterator(X) + k, X[::-1][k:])):
            assert np.array_equal(read(it, n), want)
    out = np.zeros(N, np.float32)
    compute.unary_transform(X, ReverseIterator(out) + 2, lambda v: v, 100)
    assert np.array_equal(out[-102:-2], X[:100][::-1]) and not out[:-102].any() and not out[-2:].any()


def test_fewer_items_write_nothing_else():
    for make in (lambda o: ReverseIterator(o), lambda o: PermutationIterator(o, AT)):
        assert (written(make, X, 300) != -1).sum() == 300


def test_structs_are_zipped_and_discarded():
    a, b = np.zeros(N, np.float32), np.zeros(N, np.int16)
    compute.unary_transform(X, ZipIterator(a, DiscardIterator(), b), lambda v: (v + 1, 3, v * 100), N)
    assert np.array_equal(a, X + 1) and np.array_equal(b, (X * 100).astype(np.int16))
    with pytest.raises(ValueError):
        ZipIterator()


def test_counting_wraps():
    assert read(CountingIterator(np.uint8(250)), 10, np.int32).tolist() == [250, 251, 252, 253, 254, 255, 0, 1, 2, 3]
    assert (CountingIterator(np.uint8(250)) + 10).numbers == (4,)


def test_types():
    assert str(CountingIterator(0).value_type) == "int64"
    assert str(TransformIterator(np.zeros(3, np.int32), lambda v: v / 2).value_type) == "float32"

    def rounded(v: np.float32) -> np.int16:
        return v * 3
    assert str(TransformIterator(X, rounded).value_type) == "int16"
    assert read(TransformIterator(X, rounded)).tolist() == (X * 3).astype(np.int16).tolist()
    assert str(TransformOutputIterator(X, rounded).value_type) == "float32"
    with pytest.raises(ValueError, match="output_value_type"):
        TransformOutputIterator(X, lambda v: v)
    assert str(ZipIterator(X, AT).value_type.parts[1]) == "int32"
    assert DiscardIterator(X).value_type == ct.compute.iterators.Number(ct.float32)


def test_kinds_say_what_code_depends_on():
    def f(v):
        return v + 1
    assert TransformIterator(X, f).kind == TransformIterator(X[:7] * 2, lambda v: v + 1).kind != TransformIterator(
        X, lambda v: v + 2).kind
    assert CountingIterator(3).kind == CountingIterator(4).kind != CountingIterator(np.int32(3)).kind


def test_refusals():
    for make in (lambda: CacheModifiedInputIterator(X, "fast"), lambda: PermutationIterator(X, X),
                 lambda: compute.unary_transform(X, ConstantIterator(1), lambda v: v, 3),
                 lambda: compute.unary_transform(TransformOutputIterator(X, lambda v: v, np.float32), X.copy(),
                                                 lambda v: v, 3)):
        with pytest.raises((ValueError, TypeError)):
            make()


def streams(depth: int = 3):
    """Iterators of floats of N items, each with the array that it reads."""
    leaves = st.one_of(
        st.just((X, X)), st.integers(-100, 100).map(lambda k: (CountingIterator(np.int32(k)), np.arange(k, k + N))),
        st.integers(-9, 9).map(lambda k: (ConstantIterator(np.float32(k)), np.full(N, k))))

    def larger(inner):
        return st.one_of(
            inner.map(lambda p: (TransformIterator(p[0], lambda v: v if v > 3 else -v),
                                 np.where(p[1] > 3, p[1], -p[1]))),
            inner.map(lambda p: (PermutationIterator(p[0], AT), p[1][AT])),
            inner.map(lambda p: (ReverseIterator(compute.iterators.as_iterator(p[0]) + (N - 1)), p[1][::-1])),
            st.tuples(inner, inner).map(lambda p: (TransformIterator(ZipIterator(p[0][0], p[1][0]), lambda z: max(
                z[0], z[1])), np.maximum(p[0][1], p[1][1]))))
    return st.recursive(leaves, larger, max_leaves=4)


@settings(max_examples=40, deadline=None)
@given(streams())
def test_compositions(made):
    it, want = made
    assert np.array_equal(read(it), np.asarray(want, np.float32))


@pytest.mark.deep
@settings(max_examples=20_000, deadline=None)
@given(streams())
def test_many_compositions(made):
    it, want = made
    assert np.array_equal(read(it), np.asarray(want, np.float32))


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000])
def test_shuffled(n):
    o, again, other = (np.zeros(n, np.int64) for _ in range(3))
    for out, seed in ((o, 5), (again, 5), (other, -6)):
        compute.unary_transform(compute.ShuffleIterator(n, seed), out, compute.OpKind.IDENTITY, n)
        assert sorted(out) == list(range(n))
    assert np.array_equal(o, again) and (n < 4 or not np.array_equal(o, other))
    compute.unary_transform(compute.ShuffleIterator(n, 5) + 1, other, compute.OpKind.IDENTITY, n - 1)
    assert np.array_equal(other[:n - 1], o[1:])
    with pytest.raises(ValueError, match="positive number of items"):
        compute.ShuffleIterator(0)


def test_outputs_that_are_read_only():
    """They are refused where an object is made, and at the first call and later ones, before anything is written."""
    x, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    fixed = x.copy()
    fixed.flags.writeable = False
    one = np.zeros(4, np.int32)
    for target in (fixed, ReverseIterator(fixed), ZipIterator(one, fixed), PermutationIterator(fixed, x)):
        source = ZipIterator(x, x) if isinstance(target, ZipIterator) else x
        with pytest.raises(TypeError, match="`d_out` is written to, but the array is read-only"):
            compute.make_unary_transform(source, target, compute.OpKind.IDENTITY)
    for target, allowed in ((out, True), (fixed, False), (out, True), (fixed, False)):
        if allowed:
            compute.unary_transform(x, target, compute.OpKind.IDENTITY, 4)
        else:
            with pytest.raises(TypeError, match="`d_out` is written to, but the array is read-only"):
                compute.unary_transform(x, target, compute.OpKind.IDENTITY, 4)
    compute.unary_transform(fixed, PermutationIterator(out, fixed), compute.OpKind.NEGATE, 4)
    assert out.tolist() == [0, -1, -2, -3] and not one.any()
