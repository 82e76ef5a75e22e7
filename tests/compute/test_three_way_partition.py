"""three_way_partition: which predicate is asked, and operands by position and keyword."""

from __future__ import annotations

import numpy as np

from cutile import compute
from tests.compute.compactions import parted, run_partition


def test_the_first_predicate_decides():
    """Where both are true, the item goes to the first output."""
    x = np.arange(50, dtype=np.int64)
    assert run_partition(x, 50, np.int64, lambda v: v % 2 == 0, lambda v: v % 3 == 0) == parted(
        x.tolist(), lambda v: v % 2 == 0, lambda v: v % 3 == 0)


def test_the_second_is_asked_only_where_the_first_is_false():
    """So it may divide by what the first one excludes."""
    x = np.array([0, 4, 5, 0, 9], np.int32)
    assert run_partition(x, 5, np.int32, lambda v: v == 0, lambda v: 20 % v == 0) == ([0, 0], [4, 5], [9])


def test_nan():
    x = np.array([np.nan, 1, -1, np.nan], np.float32)
    outs, counts = [np.zeros(4, np.float32) for _ in range(3)], np.zeros(2, np.int8)
    compute.make_three_way_partition(x, *outs, counts, lambda v: v < 0, lambda v: v >= 0)
    compute.three_way_partition(
        d_in=x, d_first_part_out=outs[0], d_second_part_out=outs[1], d_unselected_out=outs[2],
        d_num_selected_out=counts, select_first_part_op=lambda v: v < 0, select_second_part_op=lambda v: v >= 0,
        num_items=4)
    assert counts.tolist() == [1, 1] and outs[0][0] == -1 and outs[1][0] == 1 and np.isnan(outs[2][:2]).all()
