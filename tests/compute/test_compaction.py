"""What select, partition and unique share: every size around tiles, dtypes, iterators, storage, and memory that
operands share. Each test runs the way for host memory and the one for GPUs, in the interpreter.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cutile as ct
from cutile import compute
from cutile.compute import algorithm, compact_once, compaction
from cutile.compute.plans import Plan
from cutile.compute.select import Select
from cutile.errors import TileValueError
from tests.compute.checks import assemble_launches, at_levels, deep_but, forget_plans
from tests.compute.compactions import heads, parted, run_partition, run_select, run_unique, selected
from tests.elements import under_debugger
from tests.gpu.tileir.tool import needs_tool

SIZES = sorted({0, 1, 2, *(k + d for k in (64, compaction.TILE, compaction.HOST_TILE, 3 * compaction.HOST_TILE,
                                                     compaction.GROUP * compaction.TILE)
                           for d in (-1, 0, 1, 2))})
DTYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16, np.float32,
          np.float64, np.bool_, ml_dtypes.bfloat16]


@pytest.fixture(autouse=True)
def fresh():
    """Plans are made anew: those of other tests may be for the other way."""
    forget_plans()
    yield
    forget_plans()


WAYS = {"host": {}, "gpu": {"AHEAD": 2048, "ONCE": 1 << 16}, "gpu, two launches": {"ONCE": 0},
        "gpu, many": {"ONCE": 0, "MANY": 1}, "gpu, groups": {"ONCE": 0, "MANY": 1, "GROUPED": 1},
        "gpu, each item once": {}}


def choose(monkeypatch, way: str) -> None:
    if way != "host":
        monkeypatch.setattr(Plan, "on_host", False)
    if way == "gpu, each item once":
        monkeypatch.setattr(Plan, "captures", True)
    for name, value in WAYS[way].items():
        monkeypatch.setattr(compaction, name, value)


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    choose(monkeypatch, request.param)
    return request.param


def small(v):
    return v < 1


def odd(v):
    return v > 2


def same(a, b):
    return a == b


def compare(d_in, n: int, dtype, items: list) -> None:
    """All three, beside a loop in Python over `items`."""
    assert run_select(d_in, n, dtype, small) == selected(items, small)
    assert run_partition(d_in, n, dtype, small, odd) == parted(items, small, odd)
    first = heads(items, same)
    assert run_unique(d_in, n, dtype, same) == ([items[k] for k in first], first)


def numbers(n: int, dtype=np.int32) -> np.ndarray:
    """Few different numbers, so that there are runs."""
    return np.random.default_rng(n).integers(0, 5, n).astype(dtype)


@pytest.mark.parametrize("n", SIZES)
def test_sizes(n, way):
    compare(numbers(n), n, np.int32, numbers(n).tolist())


@pytest.mark.parametrize("dtype", deep_but(DTYPES, np.int8, np.float64, ml_dtypes.bfloat16),
                         ids=lambda d: np.dtype(d).name)
def test_dtypes(dtype, way):
    compare(numbers(5000, dtype), 5000, dtype, numbers(5000, dtype).tolist())


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64], ids=lambda t: t.__name__)
def test_tiles_that_are_counted_together(dtype, monkeypatch):
    """Groups of tiles that are all there, and one that is not, for items of each size."""
    choose(monkeypatch, "gpu, groups")
    seen = set()

    def launch(plan, blocks, kernel, *args, real=Plan.launch):
        if kernel.__name__ == "count_flags":
            *_, tile, group, together, whole = args
            seen.add((together > 1, whole))
            assert group == compaction.GROUP and (together == 1 or whole)
            assert together * tile * np.dtype(dtype).itemsize <= compaction.COUNTED
        return real(plan, blocks, kernel, *args)
    monkeypatch.setattr(Plan, "launch", launch)
    for groups, more in ((1, 0), (2, 77)):
        n = groups * compaction.GROUP * compaction.SPARSE + more
        compare(numbers(n, dtype), n, dtype, numbers(n, dtype).tolist())
    assert {(True, True), (False, False)} <= seen


@pytest.mark.parametrize("kept", [True, False])
def test_all_and_nothing(kept, way):
    x = numbers(9000)
    assert run_select(x, 9000, np.int32, lambda v: kept) == (x.tolist() if kept else [])
    assert run_unique(x, 9000, np.int32, lambda a, b: kept)[1] == ([0] if kept else [*range(9000)])
    one, two, rest = run_partition(x, 9000, np.int32, lambda v: False, lambda v: kept)
    assert (one, two, rest) == ([], x.tolist(), []) if kept else ([], [], x.tolist())


@settings(max_examples=15, deadline=None)
@given(n=st.sampled_from(SIZES), first=st.integers(0, 3), step=st.sampled_from([1, 2, 3, -1]), kind=st.sampled_from(
    ["array", "reversed", "permuted", "transformed", "advanced"]), way=st.sampled_from(list(WAYS)))
def test_strided_arrays_and_iterators(n, first, step, kind, way):
    whole = numbers(3 * n + 10)
    x = whole[first:][::step][:n]
    order = np.random.default_rng(1).permutation(n)
    given_, items = {
        "array": lambda: (x, x),
        "reversed": lambda: (compute.ReverseIterator(x) if n else x, x[::-1]),
        "permuted": lambda: (compute.PermutationIterator(x, order), x[order]),
        "transformed": lambda: (compute.TransformIterator(x, lambda v: v // 2), x // 2),
        "advanced": lambda: (compute.TransformIterator(whole, lambda v: v + 1) + 5, whole[5:5 + n] + 1)}[kind]()
    with pytest.MonkeyPatch.context() as patch:
        choose(patch, way)
        forget_plans()
        compare(given_, n, np.int32, items.tolist())


def test_positions_beyond_int32(way, monkeypatch):
    """Kernels for 2^31 items and more have positions of int64; here they run on fewer."""
    monkeypatch.setattr(algorithm, "WIDE", 1)
    seen = []
    for module in (compaction, compact_once):
        monkeypatch.setattr(module, "kernels_for", lambda key, make, *args: seen.append(key) or make(*args))
    compare(numbers(9000), 9000, np.int32, numbers(9000).tolist())
    if way == "host":  # NumPy moves items there, but for those that are converted
        compare(numbers(9000), 9000, np.float64, numbers(9000).tolist())
    assert any(key[-1] is True for key in seen) and not any(key[-1] is False for key in seen)


@pytest.mark.parametrize("n", [5, 5000])
@pytest.mark.parametrize("many", [1, compaction.MANY])
def test_an_operator_that_captures_an_array_sees_each_item_once(monkeypatch, n, many):
    """It may count them."""
    monkeypatch.setattr(Plan, "on_host", False)
    monkeypatch.setattr(compaction, "MANY", many)
    x, seen = numbers(n), np.zeros(5, np.int32)

    def counted(v):
        ct.atomic_add(seen, v, 1)
        return v < 1
    assert run_select(x, n, np.int32, counted) == selected(x.tolist(), small)
    assert seen.tolist() == np.bincount(x, minlength=5).tolist()


def halved(v):
    while v > 1:
        v = v // 2
    return v == 1


@pytest.mark.parametrize("n, op, kernels", [
    (compaction.ONCE, small, ["in one launch"]), (5, halved, ["count", "move"]),
    (compaction.ONCE + 1, small, ["count", "move"]), (compaction.MANY - 1, small, ["count", "move"]),
    (compaction.MANY, small, ["count", "add up", "move"])])
def test_how_many_launches_there_are(monkeypatch, n, op, kernels):
    """Few for few items; where an operator has a loop, a block does not repeat it for all items before its own."""
    found: list[str] = []
    monkeypatch.setattr(Plan, "on_host", False)
    monkeypatch.setattr(compaction, "kernels_for", lambda key, *_: key[0])
    monkeypatch.setattr(Plan, "launch", lambda self, blocks, kernel, *_: found.append(kernel) if blocks else None)
    x, count = np.broadcast_to(np.int32(1), n), np.zeros(1, np.int64)
    Select()._plan(None, (x, np.zeros(n, np.int32), count, op, n), [])
    assert found == kernels


def test_one_block_after_another_gives_the_same(way, monkeypatch):
    """As under a debugger, where an operator runs item by item."""
    monkeypatch.setenv("CUTILE_SCHEDULE", "block")
    compare(numbers(5000), 5000, np.int32, numbers(5000).tolist())
    under_debugger(lambda: compare(numbers(70), 70, np.int32, numbers(70).tolist()))


def test_structs(way):
    Point = compute.gpu_struct({"x": np.float32, "tag": np.int16})
    n = 5000
    x = np.zeros(n, Point.dtype)
    x["x"], x["tag"] = numbers(n), np.arange(n)
    outs, counts = [np.zeros(n, Point.dtype) for _ in range(3)], np.zeros(2, np.int64)
    compute.three_way_partition(x, *outs, counts, lambda p: p.x < 1, lambda p: p.tag & 1, n)
    want = parted(x, lambda p: p["x"] < 1, lambda p: p["tag"] & 1)
    assert [out[:len(w)].tolist() for out, w in zip(outs, want, strict=True)] == [[v.item() for v in w] for w in want]
    assert counts.tolist() == [len(w) for w in want[:2]]


@pytest.mark.parametrize("dtype", deep_but((np.complex64, np.complex128), np.complex64))
def test_items_of_several_wide_numbers(way, dtype):
    """Which lanes of a GPU load beside each other."""
    Point = compute.gpu_struct({"real": dtype().real.dtype, "tag": np.int32})
    for x in (numbers(5000).astype(dtype) * (1 + 2j), np.zeros(5000, Point.dtype)):
        if x.dtype.names:
            x["real"], x["tag"] = numbers(5000), np.arange(5000)
        real = x["real"] if x.dtype.names else x.real
        outs, counts = [np.zeros_like(x) for _ in range(3)], np.zeros(2, np.int64)
        compute.three_way_partition(x, *outs, counts, lambda v: v.real < 1, lambda v: v.real > 2, len(x))
        want = x[real < 1], x[real > 2], x[(real >= 1) & (real <= 2)]
        assert all(np.array_equal(out[:len(w)], w) for out, w in zip(outs, want, strict=True))
        compute.select(x, outs[0], counts, lambda v: v.real < 1, len(x))
        assert counts[0] == len(want[0]) and np.array_equal(outs[0][:len(want[0])], want[0])


def test_outputs_that_are_iterators(way):
    n, x = 5000, numbers(5000)
    backwards, rest, counts = np.zeros(n, np.float64), np.zeros(n, np.int32), np.zeros(2, np.int64)
    doubled = compute.TransformOutputIterator(rest, lambda v: v * 2, np.int32)
    compute.three_way_partition(x, compute.ReverseIterator(backwards), compute.DiscardIterator(x), doubled,
                                compute.TransformOutputIterator(counts, lambda v: v + 100, np.int64), small, odd, n)
    want = parted(x.tolist(), small, odd)
    assert backwards[::-1][:len(want[0])].tolist() == want[0]
    assert rest[:len(want[2])].tolist() == [2 * v for v in want[2]]
    assert counts.tolist() == [len(want[0]) + 100, len(want[1]) + 100]


def test_storage(way):
    n, x = 50_000, numbers(50_000)
    out, count = np.full(n, 7, np.int32), np.full(1, -1, np.int64)
    selector = compute.make_select(x, out, count, small)
    need = selector(None, x, out, count, small, n)
    whole = np.empty(need + 16, np.uint8)
    wrong = [(np.empty(need - 1, np.uint8), f"has {need - 1} bytes, and {need} are needed")]
    if way not in ("host", "gpu"):  # where it has truth values alone, or nothing
        wrong.append((whole[1 + -whole.ctypes.data % 8:][:need], "no multiple of [48]"))
    for storage, error in wrong:
        with pytest.raises(ValueError, match=error):
            selector(storage, x, out, count, small, n)
    assert count[0] == -1 and (out == 7).all()
    storage = np.full(need, 255, np.uint8)
    for k in (n, 17, 0, n - 1):  # storage is not cleared between calls
        assert selector(storage, x, out, count, small, k) <= need
        assert out[:count[0]].tolist() == selected(x[:k].tolist(), small)


def test_memory_that_operands_share(way):
    x, n = numbers(400), 100
    counts = np.zeros(2, np.int64)
    for out in (x, x[99:], x[:150][::-1], x.view(np.int64), compute.ReverseIterator(x[:150])):
        with pytest.raises(ValueError, match="`d_out` and `d_in` share memory"):
            compute.select(x, out, counts, small, n)
    before = x[:100].tolist()
    compute.select(x, x[100:], counts, small, n)
    assert x[100:][:counts[0]].tolist() == selected(before, small)
    compute.select(x[::-1], x, counts, small, n)
    with pytest.raises(ValueError, match="`d_first_part_out` and `d_unselected_out` share memory"):
        compute.three_way_partition(x, x[200:], x[300:], x[290:], counts, small, odd, n)
    y = numbers(400)
    want = selected(y[::2].tolist(), small)
    compute.select(y[::2], y[1::2], counts, small, 200)
    assert y[1::2][:counts[0]].tolist() == want
    with pytest.raises(ValueError, match="`d_out_keys` and `d_in_items` share memory"):
        compute.unique_by_key(x, y, y, x[200:], counts, same, n)
    with pytest.raises(ValueError, match="`d_out` and `d_num_selected_out` share memory"):
        compute.select(x, counts, counts, small, n)


def test_outputs_that_are_too_short(way):
    """In host memory that is an error; nowhere is anything written beyond an array."""
    whole, x, counts = np.full(40, 7, np.int32), np.zeros(5000, np.int32), np.zeros(1, np.int64)
    if way == "host":
        with pytest.raises(TileValueError, match="`d_out` has 30 items, and 5000 are written"):
            compute.select(x, whole[:30], counts, small, 5000)
    else:
        compute.select(x, whole[:30], counts, small, 5000)
    assert (whole[30:] == 7).all()


def test_wrong_arguments():
    x, out, counts = numbers(10), np.zeros(10, np.int32), np.zeros(2, np.int64)
    selector = compute.make_select(x, out, counts, small)
    for what, call in {"d_in": lambda: selector(None, x.astype(float), out, counts, small, 9),
                       "d_out": lambda: selector(None, x, out.astype(float), counts, small, 9),
                       "d_num_selected_out": lambda: selector(None, x, out, counts.astype(np.int32), small, 9),
                       "cond": lambda: selector(None, x, out, counts, odd, 9)}.items():
        with pytest.raises(TypeError, match=f"`{what}`"):
            call()
    with pytest.raises(TypeError, match="`cond`: a predicate returns a truth value"):
        compute.select(x, out, counts, lambda v: (v, v), 10)
    with pytest.raises(TypeError, match="counts are integers"):
        compute.select(x, out, counts.astype(float), small, 10)
    with pytest.raises(ValueError, match="`d_num_selected_out` has 1 items, and 2 are needed"):
        compute.three_way_partition(x, out, out.copy(), out.copy(), counts[:1], small, odd, 10)
    for n, error in ((11, "has 10 items"), (-1, "negative")):
        with pytest.raises(ValueError, match=error):
            compute.select(x, out, counts, small, n)
    with pytest.raises(ValueError, match="does not support output"):
        compute.select(x, compute.CountingIterator(0), counts, small, 10)


def test_the_sanitizer_has_nothing_to_report(way, monkeypatch):
    monkeypatch.setenv("CUTILE_SANITIZE", "all")
    compare(numbers(5000), 5000, np.int32, numbers(5000).tolist())


@needs_tool
@at_levels
@pytest.mark.parametrize("way, kernels, wide", [
    # wide positions take the same way, and many launches have the kernels of two
    pytest.param(way, kernels, wide, marks=[pytest.mark.deep] * (wide is (way in ("gpu", "gpu, two launches"))))
    for way, kernels in (("gpu", {"compact"}), ("gpu, two launches", {"count_flags", "move"}),
                         ("gpu, many", {"count_flags", "add_up", "move"}),
                         ("gpu, each item once", {"clear_words", "compact_once"})) for wide in (False, True)])
def test_kernels_are_assembled(way, kernels, wide, level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    choose(monkeypatch, way)
    monkeypatch.setattr(algorithm, "WIDE", 1 if wide else algorithm.WIDE)
    compare(numbers(5000), 5000, np.int32, numbers(5000).tolist())
    Range = compute.gpu_struct({"low": np.float32, "high": np.float64})
    x, out, count = np.zeros(5000, Range.dtype), np.zeros(5000, Range.dtype), np.zeros(1, np.int64)
    compute.select(x, out, count, lambda r: r.low == r.high, 4999)
    compute.select(x, out, count, lambda r: r.low == r.high, 0)
    assert set(seen) == {"store_zeros"} | kernels
