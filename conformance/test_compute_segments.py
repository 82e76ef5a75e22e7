"""Device-wide algorithms on segments of the items [SEG]."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, same_bits

SIZES = [0, 1, 5, 0, 300, 2, 2048, 17]
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int32)
X = np.random.default_rng(3).integers(-50, 51, OFFSETS[-1]).astype(np.int32)


def larger(a, b):
    if a > b:
        return a
    return b


@clause("SEG-1.segments", "SEG-1.empty")
@pytest.mark.parametrize("longest", [None, 2048])
def test_segments(longest):
    out = np.zeros(len(SIZES), np.int64)
    ct.compute.segmented_reduce(d_in=X, d_out=out, num_segments=len(SIZES), start_offsets_in=OFFSETS[:-1],
                                end_offsets_in=OFFSETS[1:], op=larger, h_init=np.array([-60], np.int32),
                                max_segment_size=longest)
    want = [max([-60, *X[a:b].tolist()]) for a, b in zip(OFFSETS[:-1], OFFSETS[1:], strict=True)]
    same_bits(out, np.array(want))


@clause("SEG-1.any")
def test_segments_overlap_and_stand_in_any_order():
    starts, ends = np.array([100, 3, 0, 7, 50], np.int64), np.array([220, 9, 2373, 5, 50], np.int64)
    out = np.zeros(5, np.int32)
    ct.compute.segmented_reduce(X, out, 5, starts, ends, lambda a, b: a + b, np.int32(1))
    want = [1 + int(X[a:b].sum()) for a, b in zip(starts, ends, strict=True)]
    same_bits(out, np.array(want, np.int32))


@clause("SEG-1.iterator")
def test_ends_are_starts_advanced_by_one():
    out = np.zeros(20, np.int32)
    tens = ct.compute.TransformIterator(ct.compute.CountingIterator(np.int32(0)), lambda k: k * 10)
    ct.compute.segmented_reduce(X, out, 20, tens, tens + 1, lambda a, b: a + b, np.int32(0))
    same_bits(out, X[:200].reshape(20, 10).sum(1).astype(np.int32))


@clause("SEG-1.nothing")
def test_no_segments():
    out = np.full(3, 7, np.int32)
    ct.compute.segmented_reduce(X, out, 0, OFFSETS, OFFSETS, larger, np.int32(0))
    assert out.tolist() == [7, 7, 7]


@clause("SEG-2.hint")
def test_the_hint_changes_no_result():
    out = np.zeros(2, np.int32)
    for hint in (1, 64, 5000):
        ct.compute.segmented_reduce(X, out, 2, np.array([0, 10]), np.array([2000, 11]), larger, np.int32(-60), hint)
        assert out.tolist() == [X[:2000].max(), X[10]]


@clause("CNV-8.segments")
def test_too_many_segments():
    zeros, nowhere = ct.compute.ConstantIterator(np.int32(0)), ct.compute.DiscardIterator(X)
    with pytest.raises(RuntimeError):
        ct.compute.segmented_reduce(X, nowhere, 2**31, zeros, zeros, larger, np.int32(0))
