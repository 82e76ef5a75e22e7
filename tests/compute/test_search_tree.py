"""Searches by a tree: every number of items around whole trees and groups, what is no order, and when there is one. In
the interpreter.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cutile as ct
from cutile import compute
from cutile.compute import search_tree
from cutile.compute.plans import Plan
from tests.compute.checks import assemble_launches, at_levels, launched_as_on_a_gpu
from tests.gpu.tileir.tool import needs_tool

TILE = 16


@pytest.fixture(autouse=True)
def launched(monkeypatch):
    """The names of the kernels that are launched."""
    found = launched_as_on_a_gpu(monkeypatch)
    for name, value in {"LEAST_WORK": 0, "LEAST_ITEMS": 8, "MOST_BYTES": 1 << 40, "TILE": TILE, "BUILT": 32}.items():
        monkeypatch.setattr(search_tree, name, value)
    compute.clear_all_caches()
    yield found
    compute.clear_all_caches()


def both(data, values, comp=None, dtype=np.uint64):
    n, m = len(data), len(values)
    low, high = np.full(m + 1, 77, dtype), np.full(m + 1, 77, dtype)
    compute.lower_bound(data, n, values, m, low, comp)
    compute.upper_bound(data, n, values, m, high, comp)
    assert low[m] == high[m] == 77
    return low[:m], high[:m]


def check(data, values, **kw):
    for found, side in zip(both(data, values, **kw), ("left", "right"), strict=True):
        np.testing.assert_array_equal(found, np.searchsorted(data, values, side))


def numbers(rng, most, n, dtype):
    return (rng.integers(0, most, n) - most // 2 * (np.dtype(dtype).kind != "u")).astype(dtype)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float32, np.int64, np.float64], ids=lambda t: t.__name__)
def test_sizes(dtype, launched):
    """Of one and more levels, of trees that are whole, and one group or item more or fewer; with equal items."""
    whole = [k * (k + 1) ** level for k in (2, 4) for level in range(1, 5)]
    rng = np.random.default_rng(1)
    for n in sorted({*range(8, 30), *(w + d for w in whole for d in (-4, -1, 0, 1, 3, 4))} - set(range(8))):
        for most in (5, 10_000):
            check(np.sort(numbers(rng, most, n, dtype)), numbers(rng, most + 4, 2 * TILE + n % 3, dtype))
    assert set(launched) == {"write_nodes", "search_by_tree"}


@given(st.integers(8, 1 << 29), st.sampled_from([2, 4]))
@settings(max_examples=300)
def test_shapes(n, k):
    shape = search_tree.shape_of(n, k)
    above = [(k + 1) ** level for level in range(shape.levels)]  # the nodes of each level, were all of them whole
    assert shape.groups == n // k <= (k + 1) * above[-1] and (shape.levels == 1 or shape.groups > above[-1])
    assert shape.nodes == sum(above[:-1]) - (-shape.groups // (k + 1))
    assert shape.bottom == sum(above) and shape.nodes * k < n
    assert n > search_tree.MOST_ITEMS or (k + 1) * above[-1] * k < 1 << 31  # the largest number in the kernels


@pytest.mark.parametrize("schedule", ["block", "batch"])
def test_schedules(schedule, monkeypatch):
    monkeypatch.setenv("CUTILE_SCHEDULE", schedule)
    rng = np.random.default_rng(2)
    check(np.sort(numbers(rng, 99, 103, np.int32)), numbers(rng, 99, TILE + 1, np.int32))


def test_operators_and_positions():
    rng = np.random.default_rng(3)
    data, values = np.sort(numbers(rng, 300, 517, np.float32)), numbers(rng, 310, 70, np.float32)
    for dtype in (np.int32, np.uint32, np.int64):
        check(data, values, dtype=dtype)
    check(data, values.astype(np.int16))  # values are converted

    def before(a, b):
        while a > 2 * b + 1000:
            a -= 1
        return a < b
    check(data, values, comp=before)
    low, high = both(data[::-1].copy(), values, compute.OpKind.GREATER)
    np.testing.assert_array_equal(low, 517 - np.searchsorted(data, values, "right"))
    np.testing.assert_array_equal(high, 517 - np.searchsorted(data, values))


def test_some_of_an_array_that_begins_anywhere():
    rng = np.random.default_rng(4)
    data, values = np.sort(numbers(rng, 300, 203, np.float64)), numbers(rng, 310, 40, np.float64)
    for first in range(4):
        out = np.zeros(40, np.int64)
        compute.lower_bound(data[first:], 190, values, 40, out)
        np.testing.assert_array_equal(out, np.searchsorted(data[first:first + 190], values))


def test_what_is_in_no_order():
    """NaN, zeros of both signs, data that are not sorted, comparisons that are none: positions from 0 to n."""
    data = np.array([-1, -0.0, 0.0, 2, 3, 4, 5, 6, 7, np.nan], np.float32)
    assert [x.tolist() for x in both(data, np.array([0.0, -0.0], np.float32))] == [[1, 1], [3, 3]]
    rng = np.random.default_rng(5)
    for comp in (None, lambda a, b: (a * 7 + b * 3) % 5 < 2, lambda a, b: True, lambda a, b: 0):
        for n in (9, 103, 1001):
            for found in both(numbers(rng, 99, n, np.int32), numbers(rng, 99, 50, np.int32), comp):
                assert (found <= n).all()
    assert all(found[0] <= 10 for found in both(data, np.array([np.nan], np.float32)))


def test_what_is_searched_in_the_data_themselves(launched, monkeypatch):
    """Items that 16 bytes hold one or more than four of, other operands than arrays, and operators that capture."""
    seen = np.zeros(1, np.int32)

    def before(a, b):
        ct.atomic_add(seen, 0, 1)
        return a < b
    x = np.arange(40)
    for data, comp in ((x.astype(np.int16), None), (x.astype(np.int8), None), (compute.CountingIterator(0), None),
                       (x.astype(np.complex64), lambda a, b: a.real < b.real), (x, before)):
        out = np.zeros(3, np.int64)
        compute.lower_bound(data, 40, np.array([3, 9, 50]).astype(getattr(data, "dtype", np.int64)), 3, out, comp)
        assert out.tolist() == [3, 9, 40]
    assert set(launched) == {"search_tiles"} and seen[0] > 0


@pytest.mark.parametrize("dtype, n, m, pays", [
    (np.int32, 1 << 20, 1 << 20, True), (np.float64, 1 << 20, 1 << 20, True), (np.int32, 1 << 16, 1 << 16, False),
    (np.int32, 1 << 18, 1 << 18, True), (np.int32, 1 << 18, 1 << 17, False), (np.int32, 1 << 10, 1 << 20, True),
    (np.int32, 1 << 10, 1 << 19, False), (np.int32, 1 << 8, 1 << 22, False), (np.int32, 1 << 22, 1 << 20, True),
    (np.int32, 1 << 23, 1 << 20, False), (np.int64, 1 << 22, 1 << 20, False), (np.int32, 1 << 29, 1 << 28, False)])
def test_when_there_is_a_tree(dtype, n, m, pays, monkeypatch):
    monkeypatch.undo()

    class OnGpu(Plan):
        on_host = False
    data = compute.iterators.memory.in_memory(np.zeros(1, dtype))
    assert search_tree.pays(OnGpu([data]), data, n, m) is pays
    assert not search_tree.pays(Plan([data]), data, n, m)


@needs_tool
@at_levels
def test_kernels_are_assembled(level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    rng = np.random.default_rng(6)
    check(np.sort(numbers(rng, 99, 103, np.int32)), numbers(rng, 99, 2 * TILE, np.int32))
    assert seen == ["write_nodes", "search_by_tree"] * 2
