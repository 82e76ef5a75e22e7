"""Operators that NumPy combines a tile by in one call: the same results as by any other way, and when they are not."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.compute import OpKind, reduce_into
from cutile.compute.operators import operator
from cutile.compute.ufuncs import ufunc_to_reduce, ufunc_to_scan
from cutile.compute.value_types import Number

REDUCE = sys.modules["cutile.compute.reduce"]
FOLDS = {OpKind.PLUS: np.add, OpKind.MULTIPLIES: np.multiply, OpKind.MINIMUM: np.fmin, OpKind.MAXIMUM: np.fmax,
         OpKind.BIT_AND: np.bitwise_and, OpKind.BIT_OR: np.bitwise_or, OpKind.BIT_XOR: np.bitwise_xor}


def test_which_are_ufuncs():
    i32, f32, f16 = Number(ct.int32), Number(ct.float32), Number(ct.float16)
    for op in (OpKind.PLUS, lambda a, b: a + b, lambda a, b: b + a, lambda a, b: helper(a, b)):
        assert all(find(operator(op), t) for find in (ufunc_to_reduce, ufunc_to_scan) for t in (i32, f32))
        assert ufunc_to_reduce(operator(op), f16) is None is ufunc_to_scan(operator(op), f16)
    larger = operator(lambda a, b: a if a > b else b)
    assert ufunc_to_reduce(larger, i32) and ufunc_to_reduce(larger, f32) is None  # a NaN tells it from max
    for op in (lambda a, b: max(a, b), OpKind.MAXIMUM):
        assert ufunc_to_reduce(operator(op), f32) and ufunc_to_scan(operator(op), f32)
    for op in (lambda a, b: a - b, lambda a, b: a + b + 0, lambda a, b: a + a, lambda a, b: a + 1):
        assert ufunc_to_reduce(operator(op), i32) is None


def helper(a, b):
    return a + b


@pytest.fixture
def small_tiles(monkeypatch):
    compute.clear_all_caches()
    monkeypatch.setattr(REDUCE, "FOLDED", 64)
    monkeypatch.setattr(REDUCE, "REST", 8)
    yield
    compute.clear_all_caches()


@pytest.mark.parametrize("kind", FOLDS)
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32])
def test_sizes(small_tiles, kind, dtype):
    if dtype is np.float32 and kind in (OpKind.BIT_AND, OpKind.BIT_OR, OpKind.BIT_XOR):
        return
    for n in (1, 2, 7, 8, 9, 63, 64, 65, 71, 72, 73, 200, 203):
        x = np.random.default_rng(n).integers(1, 4, n).astype(dtype)
        if kind == OpKind.MULTIPLIES:
            x[9:] = 1
        o = np.zeros(1, dtype)
        reduce_into(compute.CacheModifiedInputIterator(x), o, n, kind)
        assert o[0] == FOLDS[kind].reduce(x, dtype=dtype), n


def test_zeros_and_nan(small_tiles):
    """What stands in the place of items that are not there is not seen."""
    o = np.ones(1, np.float32)
    for n in (1, 5, 71):
        reduce_into(np.full(n, -0.0, np.float32), o, n, OpKind.PLUS)
        assert o[0] == 0 and np.signbit(o[0])
        reduce_into(np.full(n, np.nan, np.float32), o, n, OpKind.MAXIMUM)
        assert np.isnan(o[0])
        reduce_into(np.full(n, -np.inf, np.float32), o, n, OpKind.MAXIMUM)
        assert o[0] == -np.inf
        x = np.full(n, np.nan, np.float32)
        x[-1] = -3
        reduce_into(x, o, n, lambda a, b: min(a, b))
        assert o[0] == -3


def test_a_debugger_sees_the_operator():
    """Beside a debugger no operator is a ufunc; without one it is again."""
    add = operator(OpKind.PLUS)
    sys.settrace(lambda *args: None)
    try:
        assert ufunc_to_reduce(add, Number(ct.int32)) is None
    finally:
        sys.settrace(None)
    assert ufunc_to_reduce(add, Number(ct.int32)) is not None
