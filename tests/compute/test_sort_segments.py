"""Segmented sort: segments of every length, in any order, with gaps, against NumPy's stable sort of each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import compute
from cutile.compute import DoubleBuffer, SortOrder
from tests.compute.checks import assemble_launches, at_levels, both_ways, check_docstring, deep_but, once  # noqa: F401
from tests.gpu.tileir.tool import needs_tool

UP, DOWN = SortOrder.ASCENDING, SortOrder.DESCENDING


def expected(keys, values, starts, ends, order, out, moved):
    """What is in `out` and `moved` afterwards."""
    out, moved = out.copy(), moved.copy()
    for a, b in zip(starts, ends, strict=True):
        if b > a:
            part = keys[a:b].astype(np.float64)
            want = np.argsort(part if order == UP else -part, kind="stable")
            out[a:b], moved[a:b] = keys[a:b][want], values[a:b][want]
    return out, moved


def check(keys, starts, ends, order):
    n, values = len(keys), np.arange(len(keys), dtype=np.int32)
    out, moved = np.full(n, 55).astype(keys.dtype), np.full(n, -1, np.int32)
    want = expected(keys, values, starts, ends, order, out, moved)
    before = keys.copy()
    compute.segmented_sort(keys, out, values, moved, n, len(starts), starts, ends, order)
    assert np.array_equal(out, want[0]) and np.array_equal(moved, want[1]) and np.array_equal(keys, before)


@given(st.data(), st.integers(1, 60), st.integers(1, 700), st.sampled_from(SortOrder))
@settings(max_examples=25)
def test_segments_at_random(data, segments, n, order):
    """Disjoint, in any order, with gaps, and empty ones; some end before they begin."""
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    cuts = np.sort(rng.integers(0, n + 1, 2 * segments))
    at = rng.permutation(segments)
    starts, ends = cuts[::2][at], cuts[1::2][at]
    empty = starts == ends
    check(rng.integers(-20, 20, n).astype(np.int16), starts, np.where(empty, ends - 1, ends), order)


@pytest.mark.parametrize("length", [1, 7, 8, 9, 16, 17, 32, 33, 511, 513, 5000])
def test_lengths(length):
    rng, segments = np.random.default_rng(length), 3 if length > 600 else 40
    starts = np.arange(segments) * length
    check(rng.integers(0, 99, segments * length).astype(np.float32), starts, starts + length, UP)
    check(rng.integers(0, 99, segments * length).astype(np.uint8), starts, starts + length - length // 2, DOWN)


@pytest.mark.parametrize("dtype", deep_but(["bool", "int8", "int64", "uint64", "float16", "float64", "bfloat16",
                                            "float8_e4m3fn"], "int64", "bfloat16"))
def test_dtypes(dtype):
    keys = np.random.default_rng(1).integers(0, 15, 333).astype(np.float32).astype(dtype)
    for order in SortOrder:
        check(keys, np.array([200, 0]), np.array([333, 190]), order)


def test_signs_and_nan():
    keys = np.array([np.nan, 0.0, -0.0, -np.inf, 1, -np.nan, -0.0], np.float32)
    out, at = np.zeros_like(keys), np.array([0, 7])
    compute.segmented_sort(keys, out, None, None, 7, 1, at[:1], at[1:], UP)
    assert out.tobytes() == keys[[5, 3, 1, 2, 6, 4, 0]].tobytes()


def test_double_buffers_and_objects():
    keys, at, n = np.array([5, 3, 9, 1, 7, 2], np.int64), np.array([0, 4, 6], np.int16), 6
    buffers = DoubleBuffer(keys.copy(), np.zeros_like(keys)), DoubleBuffer(np.arange(6), np.zeros(6, int))
    sort = compute.make_segmented_sort(buffers[0], None, buffers[1], None, at[:2], at[1:], UP)
    storage = np.empty(sort(None, buffers[0], None, buffers[1], None, n, 2, at[:2], at[1:]), np.uint8)
    assert buffers[0].selector == 0 and buffers[0].current().tolist() == keys.tolist()
    sort(storage, buffers[0], None, buffers[1], None, n, 2, at[:2], at[1:])
    assert buffers[0].current().tolist() == [1, 3, 5, 9, 2, 7] and buffers[1].current().tolist() == [3, 1, 0, 2, 5, 4]
    assert buffers[0].selector == buffers[1].selector == 1
    sort(storage, buffers[0], None, buffers[1], None, n, 0, at[:0], at[:0])
    assert buffers[0].selector == 1
    big, out = np.arange(3000)[::-1].copy(), np.zeros(3000, int)
    sort = compute.make_segmented_sort(big, out, None, None, at[:2], at[1:], UP)
    need = sort(None, big, out, None, None, 3000, 2, at[:2], at[1:])
    with pytest.raises(ValueError, match=f"{need} are needed"):
        sort(np.empty(need - 1, np.uint8), big, out, None, None, 3000, 2, at[:2], at[1:])
    assert not out.any()
    with pytest.raises(TypeError, match="`end_offsets_in`"):
        sort(None, big, out, None, None, 3000, 2, at[:2], at[1:].astype(int))


def test_offsets_that_are_iterators_and_offsets_outside():
    keys = np.random.default_rng(2).integers(0, 99, 1000)
    rows = compute.TransformIterator(compute.CountingIterator(np.int32(0)), lambda v: v * 100)
    out = np.zeros(1000, int)
    compute.segmented_sort(keys, out, None, None, 1000, 10, rows, rows + 1, UP)
    assert np.array_equal(out.reshape(10, 100), np.sort(keys.reshape(10, 100), 1))
    out = np.zeros(1200, int)
    compute.segmented_sort(keys, out[100:-100], None, None, 1000, 1, np.array([-50]), np.array([1050]), UP)
    assert np.array_equal(out[100:-100], np.sort(keys)) and not out[:100].any() and not out[-100:].any()


@pytest.mark.parametrize("schedule", ["block", "batch"])
def test_schedules_agree(schedule, monkeypatch):
    monkeypatch.setenv("CUTILE_SCHEDULE", schedule)
    check(np.random.default_rng(3).integers(0, 9, 300), np.array([0, 100, 290]), np.array([90, 270, 300]), DOWN)


def test_refusals():
    x, o, at = np.arange(9), np.zeros(9, int), np.array([0, 9])
    usual = {"num_items": 9, "num_segments": 1, "start_offsets_in": at[:1], "end_offsets_in": at[1:], "order": UP}
    for error, match, change in (
            (ValueError, "`num_segments`", {"num_segments": 2}), (ValueError, "`num_segments`", {"num_segments": -1}),
            (ValueError, "`num_items`", {"num_items": 10}), (TypeError, "`num_items`", {"num_items": None}),
            (TypeError, "`order`", {"order": None}), (ValueError, "share memory", {"d_out_keys": x}),
            (TypeError, "`start_offsets_in`.*integers", {"start_offsets_in": np.zeros(1)}),
            (ValueError, "`d_out_values` is None", {"d_in_values": x})):
        with pytest.raises(error, match=match):
            compute.segmented_sort(**{"d_in_keys": x, "d_out_keys": o, **usual, **change})
    assert not o.any()


@pytest.mark.parametrize("function", [compute.segmented_sort, compute.make_segmented_sort], ids=lambda f: f.__name__)
def test_docstrings(function):
    check_docstring(function)


@needs_tool
@once
@at_levels
def test_kernels_are_assembled(level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    starts = np.array([0, 1500])
    check(np.random.default_rng(4).normal(size=3000).astype(np.float32), starts, starts + 1400, DOWN)
    assert {"count_lanes", "place_lanes", "sort_segments", "merge_segments"} <= set(seen)
