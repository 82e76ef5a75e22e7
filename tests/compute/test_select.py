"""select: predicates, what they capture, and a breakpoint in one."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from cutile import compute
from tests.interp.debugging.sessions import line_of, pdb


def chosen(x, cond):
    out, count = np.zeros_like(x), np.zeros(1, np.int32)
    compute.select(d_in=x, d_out=out, d_num_selected_out=count, cond=cond, num_items=len(x))
    return out[:count[0]]


def test_any_result_but_zero_is_true():
    x = np.array([0.0, -0.0, np.nan, 2, -1, np.inf], np.float32)
    assert np.array_equal(chosen(x, lambda v: v), x[2:], equal_nan=True)
    assert chosen(x, lambda v: v == 0).tolist() == [0, -0]
    assert chosen(np.arange(9), lambda v: v & 4).tolist() == [4, 5, 6, 7]
    assert len(chosen(x, lambda v: v != v)) == 1


def test_a_predicate_that_branches_and_loops():
    def prime(v):
        if v < 2:
            return False
        k = 2
        while k * k <= v:
            if v % k == 0:
                return False
            k += 1
        return True
    x = np.arange(60, dtype=np.int32)
    assert chosen(x, prime).tolist() == [v for v in range(60) if prime(v)]


def test_what_a_predicate_captures():
    """Numbers count anew at each call."""
    x, found = np.arange(100, dtype=np.int32), []
    for limit in (5, 90):
        found.append(chosen(x, lambda v: v >= limit).tolist())  # noqa: B023
    assert found == [[*range(5, 100)], [*range(90, 100)]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64])
def test_dtypes_of_counts(dtype):
    x, out, count = np.arange(300), np.zeros(300, np.int64), np.zeros(1, dtype)
    compute.select(x, out, count, lambda v: v >= 200, 300)
    assert count[0] == 100


SCRIPT = '''import numpy as np
from cutile import compute

def wanted(value):
    distance = abs(value - 3)
    return distance < 2

x, out, count = np.arange(6, dtype=np.float32), np.zeros(6, np.float32), np.zeros(1, np.int64)
compute.select(x, out, count, wanted, 6)
print("out", out[:count[0]].tolist())
'''


def test_a_breakpoint_in_a_predicate(tmp_path):
    script = tmp_path / "user.py"
    script.write_text(SCRIPT)
    line = line_of("return distance", script)
    a = pdb(sys.executable, [f"b user.py:{line}", "c", "p value, distance", "c", "p value, distance", "cl 1", "c"],
            script)
    assert a[1].stop == ("user.py", line, "wanted")
    assert a[2].text.strip() == "(f32 0.0, f32 3.0)" and a[4].text.strip() == "(f32 1.0, f32 2.0)"
    assert "out [2.0, 3.0, 4.0]" in a[6].text
