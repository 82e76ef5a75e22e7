"""unique_by_key: which neighbours are compared, and keys and items of other kinds."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute
from cutile.compute import OpKind
from cutile.compute.plans import Plan
from cutile.compute.unique_by_key import UniqueByKey
from tests.compute.compactions import heads, run_unique


@pytest.mark.parametrize("n", [1, 2, 50, 5000])
def test_neighbours_are_compared(n):
    """Not a key with the first one of its run: the operator need be no equivalence."""
    x = np.random.default_rng(n).integers(0, 9, n).astype(np.int32)
    for equal in (lambda a, b: abs(a - b) < 3, lambda a, b: a < b, lambda a, b: b - a):
        assert run_unique(x, n, np.int32, equal)[1] == heads(x.tolist(), equal)


@pytest.mark.parametrize("on_host", [True, False])
def test_memory_is_checked_once(monkeypatch, on_host):
    checks = []
    monkeypatch.setattr(Plan, "on_host", on_host)
    monkeypatch.setattr(Plan, "apart", lambda self, lines, many, in_place=False: in_place or checks.append(many))
    arrays = [np.zeros(9, np.int32) for _ in range(4)]
    UniqueByKey()._plan(None, (*arrays, np.zeros(1, np.int64), OpKind.EQUAL_TO, 9), [])
    assert checks == [3]


def test_nan_and_zeros():
    x = np.array([0.0, -0.0, np.nan, np.nan, 1, 1], np.float64)
    assert run_unique(x, 6, np.float64, OpKind.EQUAL_TO)[1] == [0, 2, 3, 4]


def test_structs_and_conversions():
    Key = compute.gpu_struct({"a": np.int32, "b": np.int8})
    keys = np.array([(1, 1), (1, 1), (1, 2), (1, 2), (3, 2)], Key.dtype)
    items = np.array([10, 20, 30, 40, 50], np.int16)
    out, values, count = np.zeros(5, Key.dtype), np.zeros(5, np.float32), np.zeros(1, np.uint8)
    unique = compute.make_unique_by_key(keys, items, out, values, count, lambda p, q: p.a == q.a and p.b == q.b)
    same = lambda p, q: p.a == q.a and p.b == q.b
    storage = np.zeros(unique(None, keys, items, out, values, count, same, 5), np.uint8)
    unique(storage, d_in_keys=keys, d_in_items=items, d_out_keys=out, d_out_items=values, d_out_num_selected=count,
           op=same, num_items=5)
    assert count[0] == 3 and values.tolist() == [10, 30, 50, 0, 0] and out[:3].tolist() == [(1, 1), (1, 2), (3, 2)]


def test_zipped_keys():
    a, b = np.array([1, 1, 2, 2], np.int32), np.array([5, 5, 5, 6], np.int32)
    x, y, items, count = np.zeros(4, np.int32), np.zeros(4, np.int32), np.zeros(4, np.int64), np.zeros(1, np.int32)
    compute.unique_by_key(compute.ZipIterator(a, b), compute.CountingIterator(0), compute.ZipIterator(x, y), items,
                          count, lambda p, q: p[0] == q[0] and p[1] == q[1], 4)
    assert count[0] == 3 and items[:3].tolist() == [0, 2, 3] and y[:3].tolist() == [5, 5, 6]
