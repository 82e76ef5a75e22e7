"""Searches: every size around powers of two and tiles, dtypes, structs, iterators, and what a call refuses."""

from __future__ import annotations

import bisect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cutile as ct
from cutile import compute
from cutile.compute.search import TILE
from tests.compute.checks import assemble_launches, at_levels, check_docstring
from tests.gpu.tileir.tool import needs_tool
from tests.interp.debugging.sessions import line_of, pdb

DTYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64, np.float16, np.float32, np.float64,
          np.dtype("bfloat16"), np.dtype("float8_e4m3fn")]


def both(data, values, comp=None, dtype=np.int64):
    n, m = len(data), len(values)
    low, high = np.full(m, 7, dtype), np.full(m, 7, dtype)
    compute.lower_bound(data, n, values, m, low, comp)
    compute.upper_bound(data, n, values, m, high, comp)
    return low.tolist(), high.tolist()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 255, 256, 257, 65537])
@pytest.mark.parametrize("m", [1, TILE, TILE + 1])
def test_sizes(n, m):
    rng = np.random.default_rng(n + m)
    data, values = np.sort(rng.integers(0, 300, n).astype(np.int32)), rng.integers(-5, 305, m).astype(np.int32)
    want = np.searchsorted(data, values).tolist(), np.searchsorted(data, values, "right").tolist()
    for dtype in (np.int32, np.uint32, np.int64, np.uint64):
        assert both(data, values, None, dtype) == want
    assert both(data, values, lambda a, b: a < b) == want


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@given(data=st.lists(st.integers(0, 15), max_size=40), values=st.lists(st.integers(0, 16), min_size=1, max_size=9),
       down=st.booleans())
@settings(max_examples=20)
def test_agrees_with_bisect(dtype, data, values, down):
    sign = -1 if down else 1
    data = sorted(data, key=lambda v: sign * v)
    want = tuple([f(data, sign * v, key=lambda v: sign * v) for v in values]
                 for f in (bisect.bisect_left, bisect.bisect_right))
    items, wanted = np.array(data, np.float32).astype(dtype), np.array(values, np.float32).astype(dtype)
    if dtype == np.dtype("float8_e4m3fn"):  # which has comparisons for what it is converted to
        assert both(items, wanted, lambda a, b: (ct.float32(a) > ct.float32(b)) if down else
                    (ct.float32(a) < ct.float32(b))) == want
    else:
        assert both(items, wanted, (lambda a, b: a > b) if down else None) == want


@pytest.mark.parametrize("schedule", ["block", "batch"])
def test_schedules_agree(schedule, monkeypatch):
    monkeypatch.setenv("CUTILE_SCHEDULE", schedule)
    data, values = np.arange(0, 90, 3)[::-1], np.arange(-1, 60).astype(np.int16)
    want = [int((data > v).sum()) for v in values], [int((data >= v).sum()) for v in values]
    assert both(data, values, lambda a, b: float(a) > float(b)) == want


def test_structs_and_iterators():
    Pair = compute.gpu_struct({"major": np.int8, "minor": np.float32}, "Pair")

    def before(p, q):
        return p.major < q.major or (p.major == q.major and p.minor < q.minor)
    rng, n = np.random.default_rng(3), 500
    data, values = np.zeros(n, Pair.dtype), np.zeros(n, Pair.dtype)
    for a in (data, values):
        a["major"], a["minor"] = rng.integers(0, 4, n), rng.integers(0, 50, n)
    data.sort(order=("major", "minor"))
    items = data.tolist()
    want = [bisect.bisect_left(items, v) for v in values.tolist()], [bisect.bisect(items, v) for v in values.tolist()]
    assert both(data, values, before) == want
    o = np.zeros(n, np.uint64)
    zipped = compute.ZipIterator(data["major"].copy(), np.repeat(data["minor"], 2)[::2])
    compute.lower_bound(zipped, n, values, n, o, lambda p, q: before(Pair(p[0], p[1]), Pair(q[0], q[1])))
    assert o.tolist() == want[0]
    squares = compute.TransformIterator(compute.CountingIterator(np.int64(0)), lambda v: v * v)
    compute.upper_bound(squares, 1000, compute.CountingIterator(np.int64(0)), n, compute.ReverseIterator(o))
    assert o[::-1].tolist() == [int(k ** 0.5) + 1 for k in range(n)]


def test_signs_and_nan():
    """-0 and +0 are equal; with < all of a NaN's positions are at the end of what is not behind it."""
    data = np.array([-1, -0.0, 0.0, 2, np.nan], np.float32)
    assert both(data, np.array([0.0, -0.0], np.float32)) == ([1, 1], [3, 3])
    assert all(0 <= v <= 5 for found in both(data, np.array([np.nan], np.float32)) for v in found)


def test_data_that_are_not_sorted_and_comparisons_that_are_none():
    rng = np.random.default_rng(5)
    data, values = rng.integers(0, 99, 1001), rng.integers(0, 99, 1001)
    for comp in (lambda a, b: (a * 7 + b * 3) % 5 < 2, lambda a, b: True, lambda a, b: 0):
        assert all(0 <= v <= 1001 for found in both(data, values, comp) for v in found)


def test_an_object_takes_other_arrays():
    data, values, out = np.arange(100), np.array([5, 7]), np.zeros(2, np.uint64)
    bound = compute.make_upper_bound(data, values, out)
    bound(d_data=data * 2, num_items=50, d_values=values, num_values=2, d_out=out, comp=None)
    assert out.tolist() == [3, 4]
    bound(data, 100, values, 0, out, None)
    assert out.tolist() == [3, 4]
    for name, call in {"d_data": lambda: bound(data.astype(float), 9, values, 2, out, None),
                       "d_values": lambda: bound(data, 9, values.astype(float), 2, out, None),
                       "d_out": lambda: bound(data, 9, values, 2, out.astype(np.int64), None),
                       "comp": lambda: bound(data, 9, values, 2, out, compute.OpKind.GREATER)}.items():
        with pytest.raises(TypeError, match=f"`{name}`"):
            call()


def test_refusals():
    data, values = np.arange(9), np.arange(3)
    for error, out in ((TypeError, np.zeros(3)), (ValueError, np.zeros(3, np.int16)), (ValueError, np.zeros(2, int))):
        with pytest.raises(error, match="d_out"):
            compute.lower_bound(data, 9, values, 3, out)
    out = np.zeros(3, int)
    for n, m, name in ((10, 3, "num_items"), (-1, 3, "num_items"), (9, 4, "num_values"), (9, -1, "num_values")):
        with pytest.raises(ValueError, match=name):
            compute.lower_bound(data, n, values, m, out)
    with pytest.raises(ValueError, match="do not fit int32"):
        compute.lower_bound(compute.CountingIterator(0), 1 << 31, values, 3, out.astype(np.int32))
    with pytest.raises(TypeError, match="`comp`.*truth value"):
        compute.lower_bound(data, 9, values, 3, out, lambda a, b: (a, b))
    compute.lower_bound(compute.CountingIterator(0), (1 << 40) + 1, np.array([3, 1 << 40]), 2, out)
    assert out.tolist() == [3, 1 << 40, 0]


@pytest.mark.parametrize("function", [compute.lower_bound, compute.upper_bound, compute.make_lower_bound,
                                      compute.make_upper_bound], ids=lambda f: f.__name__)
def test_docstrings(function):
    check_docstring(function)


@needs_tool
@at_levels
def test_kernels_are_assembled(level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    data, values = np.arange(0, 90, 3, dtype=np.float32), np.arange(-1, 60, dtype=np.float32)
    assert both(data, values, lambda a, b: a < b, np.uint64)[0] == np.searchsorted(data, values).tolist()
    assert seen == ["search_tiles"] * 2


SCRIPT = """
import numpy as np
from cutile import compute
def earlier(item, value):
    gap = value - item
    return gap > 0
out = np.zeros(1, np.int64)
compute.lower_bound(np.array([1, 4, 9], np.float32), 3, np.array([5], np.float32), 1, out, earlier)
print("out", out.tolist())
"""


def test_a_breakpoint_in_a_comparison(tmp_path):
    script = tmp_path / "user.py"
    script.write_text(SCRIPT)
    line = line_of("return gap > 0", script)
    import sys
    a = pdb(sys.executable, [f"b user.py:{line}", "c", "p item, value, gap", "c", "p item, value, gap", "c"], script)
    assert a[1].stop == ("user.py", line, "earlier")
    assert a[2].text.strip() == "(f32 4.0, f32 5.0, f32 1.0)"
    assert a[4].text.strip() == "(f32 9.0, f32 5.0, f32 -4.0)"
    assert "out [2]" in a[5].text
