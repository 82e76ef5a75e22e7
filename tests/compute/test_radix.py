"""Radix sort: against a stable sort of keys as unsigned integers, for every dtype, both orders, parts of the bits."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.compute import DoubleBuffer, OpKind, SortOrder, digits, merge, scan, search, sort_segments
from cutile.compute.digits import TILE
from cutile.compute.plans import Plan
from tests.compute.checks import assemble_launches, at_levels, both_ways, check_docstring, forget_plans, once  # noqa: F401
from tests.gpu.tileir.tool import needs_tool

UP, DOWN = SortOrder.ASCENDING, SortOrder.DESCENDING
DTYPES = [np.dtype(d) for d in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                                "float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2",
                                "float8_e8m0fnu")]


def transformed(keys: np.ndarray) -> list[int]:
    """Keys as unsigned integers of the same order [RDX-2]."""
    width, kind = keys.itemsize * 8, keys.dtype.name
    sign, found = 1 << (width - 1), []
    for u in keys.view(f"u{keys.itemsize}").tolist():
        if "float" in kind and kind != "float8_e8m0fnu":
            u = 0 if u == sign else u
            u = u ^ (2 * sign - 1) if u & sign else u | sign
        elif kind.startswith("int"):
            u ^= sign
        found.append(u)
    return found


def order_of(keys, order, begin=0, end=None):
    width = keys.itemsize * 8
    mask = (1 << ((width if end is None else end) - begin)) - 1
    parts = [(u if order == UP else u ^ ((1 << width) - 1)) >> begin & mask for u in transformed(keys)]
    return sorted(range(len(keys)), key=parts.__getitem__)


def any_keys(dtype, n, seed=0):
    """All bit patterns, some of them often: NaN, infinity, zeros of both signs, the least and largest integers."""
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, (n, dtype.itemsize)).astype(np.uint8)
    raw[rng.integers(0, 3, n) == 0] = 0
    raw[rng.integers(0, 9, n) == 0, -1] = 128
    if dtype == np.float16:  # the CPU has no signaling NaN of it
        raw[np.isnan(raw.reshape(-1).view(dtype)), -1] |= 2
    return raw.reshape(-1).view(dtype) if dtype != np.bool_ else raw[:, 0] > 100


def same(a, b):
    return a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("order", SortOrder)
def test_every_dtype(dtype, order):
    n = TILE + 300
    keys, values = any_keys(dtype, n), np.arange(n, dtype=np.int16)
    before, out, moved = keys.copy(), np.zeros_like(keys), np.zeros_like(values)
    compute.radix_sort(keys, out, values, moved, n, order)
    want = order_of(keys, order)
    assert same(out, keys[want]) and moved.tolist() == want and same(keys, before)


@once
@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
@pytest.mark.parametrize("order", SortOrder)
def test_keys_of_64_bits_on_a_gpu(dtype, order, monkeypatch):
    """All bits are sorted by merges there, some of them by digits, and both are the same order."""
    monkeypatch.setattr(Plan, "on_host", False)
    forget_plans()
    n = TILE + 300
    keys, values = any_keys(np.dtype(dtype), n), np.arange(n, dtype=np.int16)
    for begin, end in ((0, None), (0, 60), (5, 13)):
        out, moved = np.zeros_like(keys), np.zeros_like(values)
        compute.radix_sort(keys, out, values, moved, n, order, begin, end)
        want = order_of(keys, order, begin, end)
        assert same(out, keys[want]) and moved.tolist() == want
    forget_plans()


@pytest.mark.parametrize("n", [0, 1, 2, TILE - 1, TILE, TILE + 1, 2 * TILE, 9001])
def test_sizes(n):
    keys = np.random.default_rng(n).integers(-200, 200, n).astype(np.int16)
    out = np.full(n + 4, 7, np.int16)
    compute.radix_sort(keys, out, None, None, n, DOWN)
    assert np.array_equal(out[:n], np.sort(keys)[::-1]) and (out[n:] == 7).all()


@pytest.mark.parametrize("value", [0, 0x33333333, -1])
def test_a_digit_that_all_keys_of_a_tile_have(value):
    """The counts of a lane fit in four bits, those of a tile in a field."""
    assert digits.LANE < 16 and 1 << digits.FIELD > TILE
    keys = np.full(2 * TILE + 9, value, np.int32)
    keys[[5, TILE, -1]] = 7
    out, moved = np.zeros_like(keys), np.zeros(len(keys), np.int32)
    compute.radix_sort(keys, out, np.arange(len(keys), dtype=np.int32), moved, len(keys), UP)
    want = np.argsort(keys, kind="stable")
    assert np.array_equal(moved, want) and np.array_equal(out, keys[want])


@pytest.mark.parametrize("begin, end", [(0, 0), (0, 1), (3, 9), (4, 8), (31, 32), (0, None), (None, 17), (32, 32)])
def test_parts_of_the_bits(begin, end):
    n = 700
    keys, values = any_keys(np.dtype(np.float32), n, 1), np.arange(n)
    out, moved = np.zeros_like(keys), np.zeros_like(values)
    for order in SortOrder:
        want = order_of(keys, order, begin or 0, end)
        compute.radix_sort(keys, out, values, moved, n, order, begin, end)
        assert moved.tolist() == want and same(out, keys[want])
        buffers = DoubleBuffer(keys.copy(), np.zeros_like(keys)), DoubleBuffer(values.copy(), np.zeros_like(values))
        compute.radix_sort(buffers[0], None, buffers[1], None, n, order, begin, end)
        assert buffers[1].current().tolist() == want and same(buffers[0].current(), keys[want])
        assert buffers[0].selector == buffers[1].selector and buffers[0].alternate() is not buffers[0].current()


def test_double_buffers_in_an_object():
    keys, n = np.array([5, 3, 9, 1], np.int64), 4
    buffer = DoubleBuffer(keys.copy(), np.zeros_like(keys))
    sort = compute.make_radix_sort(buffer, None, None, None, UP)
    storage = np.empty(sort(None, buffer, None, None, None, n), np.uint8)
    assert buffer.selector == 0 and buffer.current().tolist() == keys.tolist()
    for bits in (4, 8):  # into the other buffer, then there and back
        sort(storage, buffer, None, None, None, n, 0, bits)
        assert buffer.current().tolist() == [1, 3, 5, 9] and buffer.selector == 1
    sort(storage, buffer, None, None, None, 0)
    assert buffer.selector == 1
    with pytest.raises(TypeError, match="`d_in_keys`.*DoubleBuffer"):
        sort(storage, keys, keys.copy(), None, None, n)


def test_iterators_and_strides():
    n = 500
    x = np.random.default_rng(2).integers(-50, 50, 3 * n).astype(np.int32)
    out, moved = np.zeros(2 * n, np.int32)[::2], np.zeros(n, np.int64)
    compute.radix_sort(compute.TransformIterator(x[::3], lambda v: abs(v)), out, compute.CountingIterator(3),
                       compute.ReverseIterator(moved), n, UP)
    want = np.argsort(np.abs(x[::3]), kind="stable")
    assert np.array_equal(out, np.abs(x[::3])[want]) and np.array_equal(moved[::-1], want + 3)


@pytest.mark.parametrize("schedule", ["block", "batch"])
def test_schedules_agree(schedule, monkeypatch):
    monkeypatch.setenv("CUTILE_SCHEDULE", schedule)
    keys = any_keys(np.dtype(np.float16), 1100, 3)
    out = np.zeros_like(keys)
    compute.radix_sort(keys, out, None, None, 1100, DOWN)
    assert same(out, keys[order_of(keys, DOWN)])


def test_storage_and_other_calls():
    n = 2000
    keys, out = any_keys(np.dtype(np.int32), n), np.zeros(n, np.int32)
    sort = compute.make_radix_sort(keys, out, None, None, UP)
    need = sort(None, keys, out, None, None, n)
    with pytest.raises(ValueError, match=f"{need} are needed"):
        sort(np.empty(need - 1, np.uint8), keys, out, None, None, n)
    assert not out.any()
    assert sort(np.empty(need, np.uint8), keys, out, None, None, n) == need
    assert np.array_equal(out, np.sort(keys))
    assert sort(None, keys, out, None, None, 0) == 1
    for name, args in {"d_in_keys": (keys.astype(float), out, None, None), "d_out_keys": (keys, out.astype(float), None,
                       None), "d_in_values": (keys, out, keys, out.copy())}.items():
        with pytest.raises(TypeError, match=f"`{name}`"):
            sort(None, *args, n)


def test_refusals():
    x, o, pair = np.arange(9), np.zeros(9, int), np.zeros(9, [("a", int), ("b", int)])
    buffer = DoubleBuffer(x, o.copy())
    for error, match, args in (
            (ValueError, "`d_out_values` is None", (x, o, x, None, 9, UP)),
            (ValueError, "`d_in_values` is None", (x, o, None, o.copy(), 9, UP)),
            (ValueError, "`num_items`", (x, o, None, None, 10, UP)),
            (ValueError, "`num_items`", (x, o, None, None, -1, UP)),
            (TypeError, "`num_items`", (x, o)),
            (TypeError, "`order`", (x, o, None, None, 9)),
            (ValueError, "SortOrder", (x, o, None, None, 9, 3)),
            (ValueError, "`order`", (x, o, None, None, 9, x)),
            (ValueError, "`order`", (x, o, None, None, 9, OpKind.IDENTITY)),
            (TypeError, "`begin_bit` must be an int", (x, o, None, None, 9, UP, 1.0)),
            (TypeError, "`begin_bit` must be an int", (x, o, None, None, 9, UP, UP)),
            (TypeError, "`end_bit` must be an int", (x, o, None, None, 9, UP, None, x)),
            (TypeError, "`end_bit` must be an int", (x, o, None, None, 9, UP, None, float("inf"))),
            (ValueError, "bits 3 to 2", (x, o, None, None, 9, UP, 3, 2)),
            (ValueError, "bits 0 to 65", (x, o, None, None, 9, UP, None, 65)),
            (ValueError, "share memory", (x, x, None, None, 9, UP)),
            (ValueError, "share memory", (x[:5], x[4:], None, None, 5, UP)),
            (TypeError, "`d_in_keys`.*merge_sort", (pair, pair.copy(), None, None, 9, UP)),
            (TypeError, "`d_out_keys`.*float64", (x, o.astype(float), None, None, 9, UP)),
            (ValueError, "`d_out_keys`.*None", (buffer, o, None, None, 9, UP)),
            (ValueError, "`d_in_values`.*DoubleBuffer", (buffer, None, x, None, 9, UP)),
            (ValueError, "`d_in_values`.*DoubleBuffer", (x, o, buffer, None, 9, UP))):
        with pytest.raises(error, match=match):
            compute.radix_sort(*args)
    assert not o.any() and buffer.selector == 0


@pytest.mark.deep
def test_positions_of_64_bits(monkeypatch):
    """All sorts and searches, as if there were 2^31 items."""
    for module in (digits, merge, scan, search, sort_segments):
        monkeypatch.setattr(module, "is_wide", lambda *_: True)
    compute.clear_all_caches()
    n = 1300
    keys, values = np.random.default_rng(9).integers(-99, 99, n).astype(np.int32), np.arange(n)
    out, moved, want = np.zeros_like(keys), np.zeros_like(values), np.argsort(keys, kind="stable")
    for sort in (lambda: compute.merge_sort(keys, values, out, moved, n, lambda a, b: a < b),
                 lambda: compute.radix_sort(keys, out, values, moved, n, UP),
                 lambda: compute.segmented_sort(keys, out, values, moved, n, 1, np.array([0]), np.array([n]), UP)):
        moved[:] = 0
        sort()
        assert np.array_equal(moved, want) and np.array_equal(out, keys[want])
    compute.lower_bound(out, n, keys, n, moved)
    assert np.array_equal(moved, np.searchsorted(out, keys))
    compute.clear_all_caches()


@pytest.mark.deep
def test_the_sanitizer_finds_nothing():
    n = 1100
    keys, values, at = np.random.default_rng(9).integers(-99, 99, n).astype(np.int32), np.arange(n), np.array([0, 700])
    out, moved = np.zeros_like(keys), np.zeros_like(values)
    with ct.sanitize("all"):
        for op in (lambda a, b: a < b, lambda a, b: (a * 7 + b * 3) % 5 < 2):
            compute.merge_sort(keys, values, out, moved, n, op)
        compute.radix_sort(keys, out, values, moved, n, UP)
        compute.segmented_sort(keys, out, values, moved, n, 2, at, at + 390, UP)
        compute.upper_bound(np.sort(keys), n, keys, n, moved)
    assert np.array_equal(moved, np.searchsorted(np.sort(keys), keys, "right"))


@pytest.mark.parametrize("function", [compute.radix_sort, compute.make_radix_sort], ids=lambda f: f.__name__)
def test_docstrings(function):
    check_docstring(function)


@needs_tool
@once
@at_levels
def test_kernels_are_assembled(level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    keys, values = any_keys(np.dtype(np.float16), 3000), np.arange(3000)
    out, moved = np.zeros_like(keys), np.zeros_like(values)
    compute.radix_sort(keys, out, values, moved, 3000, DOWN)
    assert moved.tolist() == order_of(keys, DOWN)
    assert {"count_digits", "move_items"} <= set(seen)
