"""Where permutations lead: places that are not there are refused in host memory, whichever argument leads there."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute
from cutile.compute import (
    CountingIterator,
    DiscardIterator,
    OpKind,
    PermutationIterator,
    ReverseIterator,
    SortOrder,
    TransformIterator,
    TransformOutputIterator,
    ZipIterator,
)

N, SIZE = 6, 5  # items of a call, and of what it permutes
INTEGERS = [np.dtype(kind + size) for kind in "iu" for size in "1248"]


def permuted(bad: int | None, place: int = 3) -> PermutationIterator:
    """The last item everywhere, but for one place."""
    indices = np.full(N, SIZE - 1)
    if bad is not None:
        indices[place] = bad
    return PermutationIterator(np.arange(SIZE, dtype=np.int32), indices)


def x() -> np.ndarray:
    return np.arange(N, dtype=np.int32)


def some() -> np.ndarray:
    return np.zeros(2, np.int64)


CALLS = {
    ("unary_transform", "d_in"): lambda p: compute.unary_transform(p, x(), OpKind.NEGATE, N),
    ("unary_transform", "d_out"): lambda p: compute.unary_transform(x(), p, OpKind.NEGATE, N),
    ("binary_transform", "d_in2"): lambda p: compute.binary_transform(x(), p, x(), OpKind.PLUS, N),
    ("reduce_into", "d_in"): lambda p: compute.reduce_into(p, x(), N, OpKind.PLUS, 0),
    ("reduce_into of any operator", "d_in"): lambda p: compute.reduce_into(p, x(), N, lambda a, b: a * b + a, 0),
    ("inclusive_scan", "d_in"): lambda p: compute.inclusive_scan(p, x(), OpKind.PLUS, None, N),
    ("exclusive_scan", "d_out"): lambda p: compute.exclusive_scan(x(), p, OpKind.PLUS, 0, N),
    ("segmented_reduce", "d_in"): lambda p: compute.segmented_reduce(
        p, x(), 2, np.array([0, 3]), np.array([3, N]), OpKind.PLUS, 0),
    ("segmented_reduce", "start_offsets_in"): lambda p: compute.segmented_reduce(
        x(), x(), N, p, np.zeros(N, int), OpKind.PLUS, 0),
    ("segmented_reduce", "d_out"): lambda p: compute.segmented_reduce(
        x(), p, N, np.zeros(N, int), np.zeros(N, int), OpKind.PLUS, 0),
    ("histogram_even", "d_samples"): lambda p: compute.histogram_even(p, x(), 4, 0, 3, N),
    ("merge_sort", "d_in_values"): lambda p: compute.merge_sort(x(), p, x(), x(), N, OpKind.LESS),
    ("radix_sort", "d_in_keys"): lambda p: compute.radix_sort(p, x(), None, None, N, SortOrder.ASCENDING),
    ("radix_sort", "d_out_keys"): lambda p: compute.radix_sort(x(), p, None, None, N, SortOrder.ASCENDING),
    ("segmented_sort", "end_offsets_in"): lambda p: compute.segmented_sort(
        x(), x(), None, None, N, N, np.full(N, N), p, SortOrder.ASCENDING),
    ("top_k", "d_in_keys"): lambda p: compute.top_k(p, x(), None, None, N, 2),
    ("top_k", "d_out_keys"): lambda p: compute.top_k(x(), p, None, None, N, N),
    ("select", "d_in"): lambda p: compute.select(p, x(), some(), lambda v: v > 0, N),
    ("select", "d_out"): lambda p: compute.select(x(), p, some(), lambda v: v >= 0, N),
    ("three_way_partition", "d_unselected_out"): lambda p: compute.three_way_partition(
        x(), x(), x(), p, some(), lambda v: v < 0, lambda v: v < 0, N),
    ("unique_by_key", "d_in_keys"): lambda p: compute.unique_by_key(p, x(), x(), x(), some(), OpKind.EQUAL_TO, N),
    ("unique_by_key", "d_out_items"): lambda p: compute.unique_by_key(x(), x(), x(), p, some(), OpKind.EQUAL_TO, N),
    ("reduce_by_key", "d_in_values"): lambda p: compute.reduce_by_key(x(), p, x(), x(), some(), OpKind.PLUS, N),
    ("reduce_by_key", "d_out_values"): lambda p: compute.reduce_by_key(x(), x(), x(), p, some(), OpKind.PLUS, N),
    ("run_length_encode", "d_in"): lambda p: compute.run_length_encode(p, x(), x(), some(), N),
    ("run_length_encode", "d_out_lengths"): lambda p: compute.run_length_encode(x(), x(), p, some(), N),
    ("lower_bound", "d_data"): lambda p: compute.lower_bound(p, N, x(), N, x()),
    ("upper_bound", "d_values"): lambda p: compute.upper_bound(x(), N, p, N, x()),
    ("lower_bound", "d_out"): lambda p: compute.lower_bound(x(), N, x(), N, p),
}


@pytest.mark.parametrize("schedule", ["batch", "block"])
@pytest.mark.parametrize(("name", "argument"), CALLS)
def test_each_argument(name, argument, schedule, monkeypatch):
    monkeypatch.setenv("CUTILE_SCHEDULE", schedule)
    call = CALLS[name, argument]
    with np.errstate(all="raise"):
        call(PermutationIterator(x(), x()) if "out" in argument else permuted(None))
    for bad in (SIZE, -1, -(1 << 63), 1 << 40):
        with pytest.raises(IndexError, match=f"`{argument}`: index {bad} of a PermutationIterator, at place 3, is out "
                                             f"of range: there are {SIZE} items"):
            call(permuted(bad))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_indices_of_each_dtype(dtype):
    """Also where other iterators compute with them."""
    values, out, back = np.arange(100, 110, dtype=np.int32), np.zeros(3, int), np.arange(109, 99, -1)
    for strided in (np.array([3, 0, 9], dtype), np.array([3, 7, 0, 7, 9, 7], dtype)[::2]):
        for source, right in ((values, [103, 100, 109]), (ReverseIterator(values), back[[3, 0, 9]].tolist()),
                              (CountingIterator(np.int64(5)), [8, 5, 14]),
                              (PermutationIterator(ReverseIterator(values), np.arange(10)), [106, 109, 100])):
            compute.unary_transform(PermutationIterator(source, strided), out, OpKind.IDENTITY, 3)
            assert out.tolist() == right
            target = np.zeros(10, np.int32)
            compute.unary_transform(out, PermutationIterator(ReverseIterator(target), strided), OpKind.IDENTITY, 3)
            assert target[::-1][[3, 0, 9]].tolist() == right
    worst = np.array([0, np.iinfo(dtype).max], dtype)
    with pytest.raises(IndexError, match=f"index {worst[1]} .* at place 1, .* 10 items"):
        compute.unary_transform(PermutationIterator(values, worst), out, OpKind.IDENTITY, 2)
    if dtype.kind == "i":
        with pytest.raises(IndexError, match="`d_in`: index -2 of a PermutationIterator, at place 0, is negative"):
            compute.unary_transform(PermutationIterator(CountingIterator(0), np.array([-2, 3], dtype)), out,
                                    OpKind.IDENTITY, 2)


@pytest.mark.parametrize(("made", "text"), [
    (lambda v: PermutationIterator(v, TransformIterator(CountingIterator(0), lambda i: 2 * i)), "index 6 .* place 3"),
    (lambda v: PermutationIterator(PermutationIterator(v, np.array([0, 5, 1])), np.array([0, 2, 0, 1])),
     "index 5 .* place 3, .* 5 items"),
    (lambda v: PermutationIterator(PermutationIterator(v, np.array([0, 5, 1])), np.array([0, 2, 0, 3])),
     "index 3 .* place 3, .* 3 items"),
    (lambda v: PermutationIterator(v, PermutationIterator(np.array([0, 1, 2, 7]), np.arange(4))), "index 7 .* place 3"),
    (lambda v: PermutationIterator(compute.CacheModifiedInputIterator(v) + 2, np.array([0, 1, 2, 3])),
     "index 3 .* 3 items"),
    (lambda v: TransformIterator(ZipIterator(v, PermutationIterator(v, np.array([0, 1, 2, 5]))), lambda z: z[0]),
     "index 5 .* 5 items"),
    (lambda v: ReverseIterator(PermutationIterator(v, np.array([5, 1, 2, 3])) + 3), "index 5 .* place 3"),
    (lambda v: PermutationIterator(ReverseIterator(v), np.array([0, 1, 4, 5])), "index 5 .* 5 items"),
    (lambda v: PermutationIterator(v, np.array([9, 0, 1, 2, 5])) + 1, "index 5 .* place 3"),
])
def test_compositions(made, text):
    source, out = made(np.arange(5, dtype=np.int32)), np.full(4, 7)
    compute.unary_transform(source, out, OpKind.IDENTITY, 3)  # the first ones are there
    with pytest.raises(IndexError, match=text):
        compute.unary_transform(source, out, OpKind.IDENTITY, 4)


def test_only_places_that_are_reached_count():
    """An output's as far as items are kept, an input's as far as segments take them."""
    values, out, count = np.arange(9, dtype=np.int32), np.zeros(9, np.int32), np.zeros(1, int)
    compute.select(values, PermutationIterator(out, np.array([8, 1, 2, 99])), count, lambda v: v > 5, 9)
    assert count[0] == 3 and out[[8, 1, 2]].tolist() == [6, 7, 8]
    with pytest.raises(IndexError, match="`d_out`: index 99 .* place 3"):
        compute.select(values, PermutationIterator(out, np.array([8, 1, 2, 99])), count, lambda v: v > 4, 9)
    source, sums = PermutationIterator(values, np.array([0, 1, 99, 3, 4])), np.zeros(2, int)
    compute.segmented_reduce(source, sums, 2, np.array([0, 3]), np.array([2, 5]), OpKind.PLUS, 0)
    assert sums.tolist() == [1, 7]
    with pytest.raises(IndexError, match="`d_in`: index 99 .* place 2"):
        compute.segmented_reduce(source, sums, 2, np.array([0, 2]), np.array([2, 5]), OpKind.PLUS, 0)


def test_later_calls_and_what_they_leave():
    """A call that finds its plan looks anew, and writes nothing where it refuses."""
    values, indices, out = np.arange(5), np.array([0, 1, 4]), np.full(3, 7)
    made = compute.make_unary_transform(PermutationIterator(values, indices), out, OpKind.NEGATE)
    for k, fine in ((4, True), (5, False), (3, True), (-1, False)):
        indices[2], out[:] = k, 7
        if fine:
            made(PermutationIterator(values, indices), out, OpKind.NEGATE, 3)
            assert out.tolist() == [0, -1, -k]
        else:
            with pytest.raises(IndexError, match=f"index {k} "):
                made(PermutationIterator(values, indices), out, OpKind.NEGATE, 3)
            assert out.tolist() == [7, 7, 7]


def test_permuted_keys_are_no_output():
    """Runs of them are found where no array holds them."""
    keys, out = np.array([5, 5, 2, 2, 2, 1], np.int32), np.zeros(6, np.int32)
    target, count = np.zeros(6, np.int32), np.zeros(1, int)
    back = PermutationIterator(keys, np.arange(6)[::-1].copy())
    twice = TransformOutputIterator(PermutationIterator(target, np.arange(6)), lambda v: 2 * v, np.int32)
    compute.run_length_encode(back, out, twice, count, 6)
    assert count[0] == 3 and out[:3].tolist() == [1, 2, 5] and target[:3].tolist() == [2, 6, 4]
    target[:] = 0
    compute.reduce_by_key(back, back, DiscardIterator(out), twice, count, OpKind.PLUS, 6)
    assert count[0] == 3 and target[:3].tolist() == [2, 12, 20]
