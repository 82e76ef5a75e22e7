"""segmented_reduce: segments of every kind, against a fold in Python."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from cutile import compute
from cutile.compute import CountingIterator, OpKind
from cutile.compute import segmented_reduce as one_shot
from tests.compute.checks import assemble_launches, check_docstring
from tests.gpu.tileir.tool import needs_tool


def larger(a, b):
    if a > b:
        return a
    return b


def expected(x, starts, ends, f, init):
    return [functools.reduce(f, x[s:e].tolist(), init) for s, e in zip(starts.tolist(), ends.tolist(), strict=True)]


@pytest.mark.parametrize("segments, mean", [(1, 5000), (3, 0), (7, 700), (300, 3), (2048, 1), (2049, 2), (40, 90)])
def test_segments(segments, mean):
    rng = np.random.default_rng(segments)
    sizes = rng.integers(0, 2 * mean + 1, segments)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    x, o = rng.integers(-99, 99, offsets[-1]).astype(np.int32), np.zeros(segments, np.int64)
    one_shot(x, o, segments, offsets[:-1], offsets[1:], OpKind.PLUS, np.array([3], np.int64))
    assert o.tolist() == expected(x, offsets[:-1], offsets[1:], lambda a, b: a + b, 3)
    starts = compute.CacheModifiedInputIterator(offsets)
    one_shot(x, o, segments, starts, starts + 1, larger, np.int32(-50), max_segment_size=1)
    assert o.tolist() == expected(x, offsets[:-1], offsets[1:], max, -50)


def test_any_segments():
    """They overlap, leave gaps, stand in any order, and end before they begin [SEG-1]."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 1 << 20, 3000).astype(np.uint64)
    starts, ends = rng.integers(0, 3000, (2, 500)).astype(np.int16)
    o = np.full(500, 7, np.uint64)
    one_shot(x, o, 499, starts, ends, OpKind.BIT_XOR, np.uint64(0))
    assert o[:499].tolist() == expected(x, starts[:499], ends[:499], lambda a, b: a ^ b, 0) and o[499] == 7


def test_iterators_structs_and_loops():
    Range = compute.gpu_struct({"low": np.int32, "high": np.float32})

    def joined(a, b):
        return Range(min(a.low, b.low), max(a.high, b.high))

    def divisor(a, b):
        while b != 0:
            a, b = b, a % b
        return a
    o = np.zeros(30, Range.dtype)
    squares = compute.TransformIterator(CountingIterator(np.int32(0)), lambda i: Range(i - 5, i * i))
    tens = compute.TransformIterator(CountingIterator(np.int32(0)), lambda i: i * 10)
    one_shot(squares, o, 30, tens, tens + 1, joined, Range(9, -1.0))
    assert o["low"].tolist() == [min(10 * k - 5, 9) for k in range(30)]
    assert o["high"].tolist() == [float((10 * k + 9) ** 2) for k in range(30)]
    one_shot(CountingIterator(12), d := np.zeros(3, np.int64), 3, np.array([0, 6, 3]), np.array([1, 7, 3]), divisor, 30)
    assert d.tolist() == [6, 6, 30]


def test_a_call_of_an_object():
    x, offsets, o = np.arange(50.0), np.arange(0, 60, 10), np.zeros(5)
    reduce = compute.make_segmented_reduce(x, o, offsets, offsets, OpKind.PLUS, 0.0)
    need = reduce(None, x, o, 5, offsets[:-1], offsets[1:], OpKind.PLUS, 0.0)
    assert not o.any()
    for first in (0.0, 1.5):
        for source in (x, x + 1):
            reduce(np.empty(need, np.uint8), source, o, 5, offsets[:-1], offsets[1:], OpKind.PLUS, first)
            assert np.array_equal(o, source.reshape(5, 10).sum(1) + first)
    reduce(np.empty(need, np.uint8), x, o, 0, offsets, offsets, OpKind.PLUS, 3.0)
    assert o[0] == 1.5 + 55


def test_what_is_refused():
    x, i, o = np.zeros(4), np.zeros(4, np.int32), np.zeros(4)
    with pytest.raises(TypeError, match="`h_init`: segments without items need an initial value"):
        one_shot(x, o, 4, i, i, OpKind.PLUS, None)
    with pytest.raises(TypeError, match="`end_offsets_in`: offsets are integers, not float64"):
        one_shot(x, o, 4, i, x, OpKind.PLUS, 0.0)
    with pytest.raises(ValueError, match="`num_segments` is 5, but `d_out` has 4 items"):
        one_shot(x, o, 5, i, i, OpKind.PLUS, 0.0)
    with pytest.raises(ValueError, match="`num_segments` is negative"):
        one_shot(x, o, -1, i, i, OpKind.PLUS, 0.0)
    many = compute.ConstantIterator(0)
    with pytest.raises(RuntimeError, match="at most 2147483647 segments"):
        one_shot(x, compute.DiscardIterator(), 1 << 31, many, many, OpKind.PLUS, 0.0)
    reduce = compute.make_segmented_reduce(x, o, i, i, OpKind.PLUS, 0.0)
    with pytest.raises(TypeError, match="`start_offsets_in`: this object was made for array of int32, got array of"):
        reduce(None, x, o, 4, i.astype(np.int64), i, OpKind.PLUS, 0.0)


@pytest.mark.parametrize("function", [one_shot, compute.make_segmented_reduce])
def test_documentation(function):
    check_docstring(function)


@needs_tool
def test_kernels_are_assembled(monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path)
    x, offsets, o = np.arange(900, dtype=np.float32), np.arange(0, 910, 9), np.zeros(100, np.float32)
    one_shot(x, o, 100, offsets[:-1], offsets[1:], larger, np.float32(5))
    assert np.array_equal(o, np.maximum(x.reshape(100, 9).max(1), 5))
    one_shot(x, o, 100, offsets[:-1], offsets[1:], OpKind.PLUS, 0.0, 1000)
    assert seen == ["reduce_segments"] * 2
