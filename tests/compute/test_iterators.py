"""Iterators as inputs and outputs, nested."""

from __future__ import annotations

import numpy as np
import pytest

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
from cutile.compute.value_types import Number

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
    assert DiscardIterator(X).value_type == Number(ct.float32)


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


MASKED = {dtype: np.ma.masked_array(np.zeros(4, dtype), [True, False, False, False])
          for dtype in ("int32", "complex64", "complex128", "i4,f8")}


@pytest.mark.parametrize("name, call", [
    ("d_in", lambda x, o: compute.unary_transform(x, o, lambda v: v, 4)),
    ("d_out", lambda x, o: compute.unary_transform(o, x, lambda v: v, 4)),
    ("d_in2", lambda x, o: compute.binary_transform(o, x, o, lambda a, b: a, 4)),
    ("d_in", lambda x, o: compute.select(x, o, np.zeros(1, np.int64), lambda v: True, 4)),
    ("d_in_values", lambda x, o: compute.radix_sort(np.arange(4), np.arange(4), x, o, 4, compute.SortOrder.ASCENDING)),
    ("d_out_items", lambda x, o: compute.unique_by_key(np.arange(4), o, np.arange(4), x, np.zeros(1, np.int64),
                                                       compute.OpKind.EQUAL_TO, 4))])
@pytest.mark.parametrize("dtype", MASKED)
def test_masked_arrays_are_refused(dtype, name, call):
    with pytest.raises(TypeError, match=f"argument `{name}`.*no masked arrays"):
        call(MASKED[dtype], np.zeros(4, dtype))


def test_other_subclasses_are_memory():
    class Tagged(np.ndarray):
        def __array_ufunc__(self, *args, **kw):
            raise AssertionError("no function of the subclass runs")
    for dtype in ("int32", "complex64", "i4,f8"):
        x, o = np.ones(4, dtype), np.zeros(4, dtype)
        compute.unary_transform(x.view(Tagged), o.view(Tagged), lambda v: v, 4)
        assert (o == x).all()
    r = np.zeros(4, "i4,f8").view(np.recarray)
    compute.unary_transform(np.ones(4, "i4,f8").view(np.recarray), r, lambda v: v, 4)
    assert r.tolist() == [(1, 1.0)] * 4
