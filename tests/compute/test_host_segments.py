"""Segments in host memory: beside the launches that GPUs have, for segments of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute
from cutile.compute import OpKind, host_segments
from cutile.compute.plans import Plan
from cutile.errors import TileValueError
from tests.compute.checks import forget_plans

N = 200
SEGMENTS = {
    "rows": (np.arange(0, N, 20), np.arange(20, N + 1, 20)),
    "gaps": (np.array([3, 50, 190]), np.array([9, 51, 200])),
    "empty": (np.array([0, 5, 5, 200, 7]), np.array([5, 5, 9, 200, 3])),
    "descending": (np.array([150, 100, 0]), np.array([200, 150, 100])),
    "overlapping": (np.array([0, 10, 5, 0]), np.array([200, 200, 150, 200])),
    "ends before": (np.array([0, 10]), np.array([200, 20])),
    "none": (np.array([4, 9]), np.array([4, 9])),
}


def reduced(items, start, end, op, initial, out_dtype, monkeypatch, on_host):
    forget_plans()
    out = np.full(len(start), 77, out_dtype)
    with monkeypatch.context() as patch:
        if not on_host:
            patch.setattr(Plan, "on_host", False)
        compute.segmented_reduce(items, out, len(start), start, end, op, initial)
    return out


@pytest.fixture
def folds(monkeypatch):
    found = []
    fold = host_segments._fold
    monkeypatch.setattr(host_segments, "_fold", lambda *args: found.append(1) or fold(*args))
    yield found
    forget_plans()


@pytest.mark.parametrize("segments", SEGMENTS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64])
def test_integers(dtype, segments, folds, monkeypatch):
    x = np.frombuffer(np.random.default_rng(0).bytes(N * np.dtype(dtype).itemsize), dtype)
    for op in (OpKind.PLUS, OpKind.MULTIPLIES, OpKind.MINIMUM, OpKind.BIT_XOR, lambda a, b: b if a < b else a):
        way = [reduced(x, *SEGMENTS[segments], op, dtype(3), dtype, monkeypatch, on) for on in (True, False)]
        assert way[0].tolist() == way[1].tolist()
    assert len(folds) == 5


@pytest.mark.parametrize("segments", SEGMENTS)
def test_conversions_and_iterators(segments, folds, monkeypatch):
    """The type is that of the initial value; offsets and outputs may be iterators."""
    x = np.random.default_rng(0).integers(-9, 9, N).astype(np.int8)
    start, end = (a.astype(np.uint32) for a in SEGMENTS[segments])
    items = compute.TransformIterator(compute.ReverseIterator(x), lambda v: v * 2)
    for out in (np.float64, np.int16):
        way = [reduced(items, start, compute.PermutationIterator(end, np.arange(len(end))), OpKind.PLUS,
                       np.float32(0.5), out, monkeypatch, on) for on in (True, False)]
        assert way[0].tolist() == way[1].tolist()
    assert len(folds) == (2 if items.size() is not None else 0)


def test_minimum_of_floats_is_that_of_the_language(folds, monkeypatch):
    """It passes over NaN, as kernels do."""
    x = np.array([np.nan, 2.0, np.nan, 1.0])
    out = reduced(x, np.array([0, 2]), np.array([2, 4]), OpKind.MINIMUM, 5.0, float, monkeypatch, True)
    assert out.tolist() == [2.0, 1.0] and not folds


@pytest.mark.parametrize("op", [OpKind.PLUS, lambda a, b: a + b * 1 - 0 * a])
@pytest.mark.parametrize("start, end", [(-1, 3), (0, 5), (4, 5)])
def test_segments_beyond_the_items(op, start, end):
    x, out = np.ones(4), np.full(2, 7.0)
    with pytest.raises(TileValueError, match=f"segment 1 has items {start} to {end - 1}, but argument `d_in` has 4"):
        compute.segmented_reduce(x, out, 2, np.array([0, start]), np.array([1, end]), op, 0.0)
    assert out.tolist() == [7, 7]
    compute.segmented_reduce(x, out, 2, np.array([9, -3]), np.array([9, -4]), op, 0.0)  # they are empty
    assert out.tolist() == [0, 0]
