"""Compositions of iterators, of any depth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import compute
from cutile.compute import (
    ConstantIterator,
    CountingIterator,
    OpKind,
    PermutationIterator,
    ReverseIterator,
    TransformIterator,
    ZipIterator,
)
from cutile.compute.iterators.memory import as_iterator

N = 13
X = np.random.default_rng(4).normal(size=N).astype(np.float32)
AT = np.random.default_rng(5).permutation(N).astype(np.int32)


def streams():
    """Iterators of floats of N items, each with the array that it reads."""
    leaves = st.one_of(
        st.just((X, X)), st.integers(-100, 100).map(lambda k: (CountingIterator(np.int32(k)), np.arange(k, k + N))),
        st.integers(-9, 9).map(lambda k: (ConstantIterator(np.float32(k)), np.full(N, k))))

    def larger(inner):
        return st.one_of(
            inner.map(lambda p: (TransformIterator(p[0], lambda v: v if v > 3 else -v),
                                 np.where(p[1] > 3, p[1], -p[1]))),
            inner.map(lambda p: (PermutationIterator(p[0], AT), p[1][AT])),
            inner.map(lambda p: (ReverseIterator(as_iterator(p[0]) + (N - 1)), p[1][::-1])),
            st.tuples(inner, inner).map(lambda p: (TransformIterator(ZipIterator(p[0][0], p[1][0]), lambda z: max(
                z[0], z[1])), np.maximum(p[0][1], p[1][1]))))
    return st.recursive(leaves, larger, max_leaves=4)


def reads(made) -> None:
    it, want = made
    out = np.zeros(N, np.float32)
    compute.unary_transform(it, out, OpKind.IDENTITY, N)
    assert np.array_equal(out, np.asarray(want, np.float32))


@settings(max_examples=500, deadline=None)
@given(streams())
def test_compositions(made):
    reads(made)


@pytest.mark.deep
@settings(max_examples=20_000, deadline=None)
@given(streams())
def test_many_compositions(made):
    reads(made)
