"""Breakpoints in operators: they stop for each item, with scalars under the user's names."""

from __future__ import annotations

import io
import pdb
import re
import sys

import numpy as np
import pytest

from cutile import compute


def joined(older, newer):
    both = older + newer
    return both


def doubled(older):
    newer = older * 2
    return newer


def large(older):
    chosen = older > 2
    return chosen


def alike(older, newer):
    same = older // 2 == newer // 2
    return same


def first(older, newer):
    less = older < newer
    return less


X = np.arange(1, 6, dtype=np.int32)
CALLS = {
    "unary_transform": (doubled, lambda o: compute.unary_transform(X, o, doubled, 5), [2, 4, 6, 8, 10]),
    "binary_transform": (joined, lambda o: compute.binary_transform(X, X, o, joined, 5), [2, 4, 6, 8, 10]),
    "reduce_into": (joined, lambda o: compute.reduce_into(X, o, 5, joined, np.int32(0)), [15, 0, 0, 0, 0]),
    "inclusive_scan": (joined, lambda o: compute.inclusive_scan(X, o, joined, None, 5), [1, 3, 6, 10, 15]),
    "exclusive_scan": (joined, lambda o: compute.exclusive_scan(X, o, joined, np.int32(0), 5), [0, 1, 3, 6, 10]),
    "segmented_reduce": (joined, lambda o: compute.segmented_reduce(
        X, o, 2, np.array([0, 2]), np.array([2, 5]), joined, np.int32(0)), [3, 12, 0, 0, 0]),
    "select": (large, lambda o: compute.select(X, o, COUNTS, large, 5), [3, 4, 5, 0, 0]),
    "three_way_partition": (large, lambda o: compute.three_way_partition(
        X, o, X.copy(), X.copy(), COUNTS, large, lambda v: v > 1, 5), [3, 4, 5, 0, 0]),
    "unique_by_key": (alike, lambda o: compute.unique_by_key(X, X, o, X.copy(), COUNTS, alike, 5), [1, 2, 4, 0, 0]),
    "reduce_by_key": (joined, lambda o: compute.reduce_by_key(
        X // 2, X, X.copy(), o, COUNTS, joined, 5), [1, 5, 9, 0, 0]),
    "run_length_encode": (alike, lambda o: compute.run_length_encode(
        X, X.copy(), o, COUNTS, 5, alike), [1, 2, 2, 0, 0]),
    "merge_sort": (first, lambda o: compute.merge_sort(X[::-1].copy(), None, o, None, 5, first), [1, 2, 3, 4, 5]),
    "lower_bound": (first, lambda o: compute.lower_bound(X, 5, X, 5, o, first), [0, 1, 2, 3, 4]),
    "upper_bound": (first, lambda o: compute.upper_bound(X, 5, X, 5, o, first), [1, 2, 3, 4, 5]),
    "TransformIterator": (doubled, lambda o: compute.reduce_into(
        compute.TransformIterator(X, doubled), o, 5, compute.OpKind.PLUS), [30, 0, 0, 0, 0]),
}
COUNTS = np.zeros(2, np.int32)
OTHERS = {"histogram_even", "radix_sort", "segmented_sort", "top_k"}  # which take no operator


def test_each_algorithm_is_there():
    names = {n.removeprefix("make_") for n in compute.__all__ if n.startswith("make_")}
    assert names == {n for n in CALLS if n != "TransformIterator"} | OTHERS


@pytest.mark.parametrize("name", CALLS)
def test_a_breakpoint_stops(name):
    operator, call, want = CALLS[name]
    o, shown, before = np.zeros(5, np.int32), io.StringIO(), sys.gettrace()
    debugger = pdb.Pdb(stdin=io.StringIO("p str(older)\nc\n" * 1000), stdout=shown, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    debugger.set_break(__file__, operator.__code__.co_firstlineno + 2)
    try:
        debugger.runcall(call, o)
    finally:
        debugger.clear_all_breaks()
        sys.settrace(before)
    stops = re.findall(r"'i32 (-?\d+)'", shown.getvalue())
    assert len(stops) >= 4 and o.tolist() == want, shown.getvalue()
    assert name != "unary_transform" or stops == ["1", "2", "3", "4", "5"]
    assert f"{operator.__name__}()" in shown.getvalue()
