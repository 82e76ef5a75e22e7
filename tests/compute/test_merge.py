"""Merge sort: against Python's stable sort, at every size around lanes, tiles and powers of two."""

from __future__ import annotations

import functools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cutile as ct
from cutile import compute
from cutile.compute import OpKind, merge
from cutile.compute.lanes import EACH, FEW
from cutile.compute.merge import HOST_TILE, TILE
from cutile.compute.plans import Plan
from tests.compute.checks import assemble_launches, at_levels, check_docstring, deep_but, forget_plans
from tests.gpu.tileir.tool import needs_tool
from tests.interp.debugging.sessions import line_of, pdb

sort = compute.merge_sort
SIZES = [0, 1, FEW - 1, FEW, FEW + 1, EACH - 1, EACH, EACH + 1, 2 * EACH + 1, HOST_TILE - 1, HOST_TILE,
         HOST_TILE + 1, 1025, 4097, 20_001]
DTYPES = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16,
          np.float32, np.float64, np.dtype("bfloat16"), np.dtype("float8_e4m3fn")]


def sorted_by(before, keys, values):
    """Python's stable sort by a comparison; keys and values, as lists."""
    def compare(p, q):
        return -1 if before(p[0], q[0]) else int(before(q[0], p[0]))
    pairs = sorted(zip(keys, values, strict=True), key=functools.cmp_to_key(compare))
    return [list(part) for part in zip(*pairs, strict=True)] if pairs else [[], []]


def near(a, b):
    """Tens, from the largest one down; the digit of units does not count."""
    return a // 10 > b // 10


@pytest.fixture(params=["host", "gpu"])
def way(request, monkeypatch):
    forget_plans()
    if request.param == "gpu":
        monkeypatch.setattr(Plan, "on_host", False)
    yield request.param
    forget_plans()


@pytest.mark.parametrize("n", [*SIZES, TILE - 1, TILE])
def test_sizes(n, way):
    keys, values = np.random.default_rng(n).integers(0, 99, n).astype(np.int32), np.arange(n, dtype=np.int16)
    out, moved = np.full(n + 3, 7, np.int32), np.full(n + 2, 7, np.int16)
    sort(keys, values, out, moved, n, near)
    order = np.argsort(-(keys // 10), kind="stable")
    assert np.array_equal(out[:n], keys[order]) and np.array_equal(moved[:n], values[order])
    assert (out[n:] == 7).all() and (moved[n:] == 7).all()
    sort(keys, None, out, None, n, near)
    assert np.array_equal(out[:n], keys[order]) and (out[n:] == 7).all()
    sort(keys, None, keys, None, n, OpKind.LESS)
    assert np.array_equal(keys, np.sort(out[:n]))


ORDERS = {"less": OpKind.LESS, "greater": OpKind.GREATER, "halves": lambda a, b: a // 2 < b // 2}
SHORT = (np.int8, np.uint8, np.int16, np.uint16, np.int32)
DIGITS = [(name, dtype) for name in ("less", "greater") for dtype in SHORT]
MERGED = deep_but([("halves", dtype) for dtype in SHORT] + [
    (name, dtype) for name in ("less", "greater") for dtype in (np.uint32, np.int64, np.float32)],
    ("halves", np.int8), ("halves", np.int32), ("less", np.int64), ("less", np.float32), ("greater", np.uint32))


@pytest.mark.parametrize("case, n", [(case, n) for case in DIGITS for n in (0, 1, TILE - 1, 2 * TILE + 5)])
def test_integers_in_their_order_are_sorted_by_digits_on_a_gpu(case, n, monkeypatch):
    """From as many items on as it takes less time: in place, too, and stable."""
    check_order(*case, n, monkeypatch)


@pytest.mark.parametrize("case", MERGED)
def test_all_others_are_merged_on_a_gpu(case, monkeypatch):
    check_order(*case, EACH, monkeypatch)


def check_order(name, dtype, n, monkeypatch):
    launched, launch = set(), Plan.launch
    monkeypatch.setattr(Plan, "launch", lambda plan, blocks, kernel, *args: (
        launched.add(kernel.__name__), launch(plan, blocks, kernel, *args)))
    monkeypatch.setattr(Plan, "on_host", False)
    for d in (ct.int16, ct.uint16, ct.int32, ct.uint32):
        monkeypatch.setitem(merge.BY_DIGITS, d, n + (d is ct.uint32))
    forget_plans()
    drawn = np.random.default_rng(n).integers(-99, 99, n)
    keys, values = drawn.astype(dtype), np.arange(n)
    if n > 1:
        keys[:2] = (0, 1) if dtype == np.float32 else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    order = np.argsort(keys // 2 if name == "halves" else keys, kind="stable")
    if name == "greater":
        order = n - 1 - np.argsort(keys[::-1], kind="stable")[::-1]
    want, out = keys[order], np.zeros(n, dtype)
    sort(keys, None, out, None, n, ORDERS[name])
    sort(keys, values, keys, values, n, ORDERS[name])
    forget_plans()
    assert np.array_equal(keys, want) and np.array_equal(values, order) and np.array_equal(out, want)
    digits = (name, dtype) in DIGITS
    if n:
        assert ("move_items" in launched) == digits and ("sort_lanes" in launched) != digits


@pytest.mark.parametrize("dtype", deep_but(DTYPES, np.int32, np.float64, np.dtype("bfloat16")), ids=str)
@given(items=st.lists(st.integers(0, 16), min_size=1, max_size=150), down=st.booleans())
@settings(max_examples=6)
def test_agrees_with_python(dtype, items, down):
    keys = np.array(items, np.float32).astype(dtype)
    before = (lambda a, b: ct.float32(a) > ct.float32(b)) if down else (lambda a, b: ct.float32(a) < ct.float32(b))
    want = sorted_by((lambda a, b: a > b) if down else (lambda a, b: a < b), keys.astype(float), range(len(keys)))
    values = np.arange(len(keys), dtype=np.float64)
    sort(keys, values, keys, values, len(keys), before)
    assert [keys.astype(float).tolist(), values.tolist()] == want


@pytest.mark.parametrize("schedule", ["block", "batch"])
def test_schedules_agree(schedule, monkeypatch):
    monkeypatch.setenv("CUTILE_SCHEDULE", schedule)
    keys, values = np.random.default_rng(1).integers(0, 99, 1100), np.arange(1100)
    want = sorted_by(near, keys.tolist(), values.tolist())
    sort(keys, values, keys, values, 1100, near)
    assert [keys.tolist(), values.tolist()] == want


def test_structs():
    """As keys and values, packed and aligned, and keys that are zipped."""
    Key = compute.gpu_struct({"major": np.int8, "inner": {"minor": np.float32, "rest": np.uint16}}, "Key")

    def before(p, q):
        return p.major < q.major or (p.major == q.major and p.inner.minor > q.inner.minor)
    rng, n = np.random.default_rng(3), 1500
    keys, values = np.zeros(n, Key.dtype), np.zeros(n, np.dtype([("x", np.int32), ("y", np.float32)]))
    keys["major"], keys["inner"]["minor"], values["x"] = rng.integers(0, 9, n), rng.integers(0, 9, n), np.arange(n)
    keys["inner"]["rest"] = np.arange(n)
    order = sorted(range(n), key=lambda k: (keys["major"][k], -keys["inner"]["minor"][k]))
    out, moved = np.zeros_like(keys), np.zeros_like(values)
    sort(keys, values, out, moved, n, before)
    assert out.tolist() == keys[order].tolist() and moved.tolist() == values[order].tolist()
    major, minor = keys["major"].copy(), keys["inner"]["minor"].copy()
    zipped = compute.ZipIterator(major, minor)
    sort(zipped, None, zipped, None, n, lambda p, q: p[0] < q[0] or (p[0] == q[0] and p[1] > q[1]))
    assert np.array_equal(major, keys["major"][order]) and np.array_equal(minor, keys["inner"]["minor"][order])


def test_iterators_and_strides():
    n = 777
    x = np.random.default_rng(4).integers(-50, 50, 2 * n).astype(np.int32)
    out, moved = np.zeros(3 * n, np.int32)[::3], np.zeros(n, np.int64)
    sort(compute.TransformIterator(x[::2], lambda v: abs(v)), compute.CountingIterator(100), out,
         compute.ReverseIterator(moved), n, lambda a, b: a < b)
    order = np.argsort(np.abs(x[::2]), kind="stable")
    assert np.array_equal(out, np.abs(x[::2])[order]) and np.array_equal(moved[::-1], order + 100)
    grid = x[:1400].reshape(28, 50)
    want = np.sort(grid, None)
    sort(grid, None, grid, None, 1400, OpKind.LESS)
    assert np.array_equal(grid.ravel(), want)


@pytest.mark.parametrize("before", [
    lambda a, b: True, lambda a, b: 0, lambda a, b: a <= b, lambda a, b: (a * 7 + b * 3) % 5 < 2, lambda a, b: a != b],
    ids=["always", "never", "not strict", "any", "unequal"])
@pytest.mark.parametrize("n", deep_but([100, HOST_TILE, 3333], HOST_TILE))
def test_each_item_is_there_once_whatever_the_comparison_says(before, n):
    keys, values = np.random.default_rng(5).integers(0, 1000, n), np.arange(n)
    out, moved = np.full(n + 1000, -1), np.full(n + 1000, -1)
    sort(keys, values, out[500:-500], moved[500:-500], n, before)
    assert np.array_equal(np.sort(moved[500:-500]), values) and np.array_equal(out[500:-500], keys[moved[500:-500]])
    assert (out[:500] == -1).all() and (out[-500:] == -1).all() and (moved[-500:] == -1).all()


def test_nan():
    """With < NaN are no part of the order; an operator may put them last."""
    keys = np.random.default_rng(6).normal(size=5000).astype(np.float32)
    keys[::97] = np.nan
    out = np.zeros_like(keys)
    sort(keys, None, out, None, 5000, lambda a, b: a < b)
    assert np.array_equal(np.sort(out), np.sort(keys), equal_nan=True)
    sort(keys, None, out, None, 5000, lambda a, b: a < b or (b != b and a == a))
    assert np.array_equal(out, np.sort(keys), equal_nan=True)
    zeros = np.array([0.0, -0.0, 0.0, -0.0] * 10, np.float32)
    sort(zeros, None, out, None, 40, OpKind.LESS)
    assert np.array_equal(np.signbit(out[:40]), np.signbit(zeros))


def test_storage_and_other_calls():
    n = 3000
    x, o = np.random.default_rng(7).integers(0, 99, n), np.zeros(n, np.int64)
    made = compute.make_merge_sort(x, None, o, None, near)
    need = made(None, x, None, o, None, n, near)
    assert not o.any()
    whole = np.empty(need + 8, np.uint8)
    with pytest.raises(ValueError, match=f"{need} are needed"):
        made(whole[:need - 1], x, None, o, None, n, near)
    start = 1 - whole.ctypes.data % 8 if whole.ctypes.data % 8 else 1
    with pytest.raises(ValueError, match="no multiple of 8"):
        made(whole[start:start + need], x, None, o, None, n, near)
    assert not o.any()
    assert made(temp_storage=whole[:need], d_in_keys=x, d_in_values=None, d_out_keys=o, d_out_values=None, num_items=n,
                op=near) == need
    assert np.array_equal(o, x[np.argsort(-(x // 10), kind="stable")])
    made(whole, x[5:], None, x[5:], None, 9, near)
    for name, call in {"d_in_keys": lambda: made(None, x.astype(float), None, o, None, n, near),
                       "d_in_values": lambda: made(None, x, x, o, None, n, near),
                       "d_out_keys": lambda: made(None, x, None, o.astype(float), None, n, near),
                       "op": lambda: made(None, x, None, o, None, n, OpKind.LESS)}.items():
        with pytest.raises(TypeError, match=f"`{name}`"):
            call()


def test_refusals():
    x, o = np.arange(9), np.zeros(9, int)
    for error, match, call in (
            (ValueError, "`d_out_values` is None", lambda: sort(x, x, o, None, 9, near)),
            (ValueError, "`d_in_values` is None", lambda: sort(x, None, o, x, 9, near)),
            (ValueError, "`num_items`", lambda: sort(x, None, o, None, 10, near)),
            (ValueError, "`num_items`", lambda: sort(x, None, o, None, -1, near)),
            (TypeError, "`num_items`", lambda: sort(x, None, o, None, op=near)),
            (TypeError, "`op`", lambda: sort(x, None, o, None, 9)),
            (TypeError, "`op`.*truth value", lambda: sort(x, None, o, None, 9, lambda a, b: (a, b))),
            (TypeError, "`d_out_keys`.*float64", lambda: sort(x, None, o.astype(float), None, 9, near)),
            (TypeError, "`d_out_keys`.*array", lambda: sort(x, None, compute.DiscardIterator(x), None, 9, near)),
            (ValueError, "`d_out_keys`.*output", lambda: sort(x, None, compute.CountingIterator(0), None, 9, near)),
            (ct.TileTypeError, "complex128", lambda: sort(x.astype(complex), None, o.astype(complex), None, 9, near))):
        with pytest.raises(error, match=match):
            call()
    assert not o.any()


@pytest.mark.parametrize("function", [compute.merge_sort, compute.make_merge_sort], ids=lambda f: f.__name__)
def test_docstrings(function):
    check_docstring(function)


@needs_tool
@at_levels
def test_kernels_are_assembled(level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    keys, values = np.random.default_rng(8).normal(size=5000).astype(np.float32), np.arange(5000)
    want = np.argsort(keys, kind="stable")
    sort(keys, values, keys.copy(), values, 5000, lambda a, b: a < b)
    assert np.array_equal(values, want)
    assert set(seen) == {"sort_lanes", "find_splits", "merge_lanes"}


SCRIPT = """
import numpy as np
from cutile import compute
def earlier(one, other):
    gap = other - one
    return gap > 0
keys = np.array([3, 1, 2], np.float32)
compute.merge_sort(keys, None, keys, None, 3, earlier)
print("keys", keys.tolist())
"""


def test_a_breakpoint_in_a_comparison(tmp_path):
    script = tmp_path / "user.py"
    script.write_text(SCRIPT)
    line = line_of("return gap > 0", script)
    a = pdb(sys.executable, [f"b user.py:{line}", "c", "p one, other, gap", "cl 1", "c"], script)
    assert a[1].stop == ("user.py", line, "earlier")
    assert a[2].text.strip() == "(f32 1.0, f32 3.0, f32 2.0)"
    assert "keys [1.0, 2.0, 3.0]" in a[-1].text
