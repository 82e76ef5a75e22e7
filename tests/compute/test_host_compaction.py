"""What moves items in host memory. `test_compaction.py` compares it with the kernels for GPUs."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.errors import TileValueError


def test_operators_of_a_partition_run_where_they_are_asked():
    """The second one only for items of which the first one is false."""
    x, seen, outs = np.array([4, 0, -2, 6], np.int32), np.zeros(10, np.int32), [np.zeros(4, np.int32) for _ in range(3)]

    def large(v):
        return v > 3

    def counted(v):
        ct.atomic_add(seen, v + 2, 1)
        return v < 0

    count = np.zeros(2, int)
    compute.three_way_partition(x, *outs, count, large, counted, 4)
    assert [out[:k].tolist() for out, k in zip(outs, (2, 1, 1), strict=True)] == [[4, 6], [-2], [0]]
    assert count.tolist() == [2, 1] and seen.tolist() == [1, 0, 1, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("answer", [np.float32, np.bool_])
def test_any_result_but_zero_is_true(answer):
    x, out, count = np.array([0.0, -0.0, 0.25, np.nan, -3], np.float32), np.zeros(5, np.float32), np.zeros(1, int)
    compute.select(x, out, count, lambda v: answer(v), 5)
    assert count[0] == 3 and out[:3].tobytes() == x[2:].tobytes()


def test_short_outputs_stay_as_they_are():
    x, out, count = np.arange(10), np.full(3, 7), np.full(1, -1)
    with pytest.raises(TileValueError, match="`d_out` has 3 items, and 5 are written"):
        compute.select(x, out, count, lambda v: v % 2, 10)
    assert out.tolist() == [7, 7, 7]


def test_an_operator_that_changes_is_asked_anew():
    x, outs, count = np.arange(6), [np.zeros(6, int) for _ in range(3)], np.zeros(2, int)
    for least in (4, 2):
        compute.three_way_partition(x, *outs, count, lambda v, least=least: v >= least, lambda v: v == 0, 6)
        assert count.tolist() == [6 - least, 1]


def test_counts_wrap_where_they_do_not_fit():
    x, out, count = np.arange(300), np.zeros(300, int), np.zeros(1, np.uint8)
    compute.select(x, out, count, lambda v: v >= 0, 300)
    assert count[0] == 44
    compute.unique_by_key(x, x, out, compute.DiscardIterator(x), count, lambda a, b: a == b, 290)
    assert count[0] == 34


def test_what_is_discarded():
    """Beside what is kept, and alone; structs too."""
    x, out, count = np.arange(6, dtype=np.int32), np.zeros(6, np.int32), np.zeros(2, int)
    vanish = compute.DiscardIterator
    compute.select(x, vanish(), count, lambda v: v > 3, 6)
    assert count.tolist() == [2, 0]
    compute.three_way_partition(x, vanish(), out, vanish(x), count, lambda v: v > 3, lambda v: v > 1, 6)
    assert count.tolist() == [2, 2] and out[:2].tolist() == [2, 3]
    pairs = compute.ZipIterator(x, x)
    compute.three_way_partition(pairs, vanish(), vanish(), vanish(), count, lambda z: z[0] > 4, lambda z: z[1] > 0, 6)
    assert count.tolist() == [1, 4]
    compute.unique_by_key(x // 2, pairs, vanish(), vanish(), count, compute.OpKind.EQUAL_TO, 6)
    assert count[0] == 3
