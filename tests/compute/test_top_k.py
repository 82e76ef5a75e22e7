"""top_k against a stable sort: types, special values, equal keys, sizes, values, and what is refused."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import compute
from cutile.compute import SortOrder, algorithm
from cutile.compute.plans import Plan
from tests.compute.checks import (  # noqa: F401
    assemble_launches,
    at_levels,
    both_ways,
    check_docstring,
    deep_but,
    forget_plans,
    once,
)
from tests.gpu.tileir.tool import needs_tool

top_k = sys.modules[compute.top_k.__module__]
RNG = np.random.default_rng(5)


def expected(keys, values, k, reverse):
    """The first k of a radix sort."""
    out, moved = np.zeros_like(keys), None if values is None else np.zeros_like(values)
    order = SortOrder.ASCENDING if reverse else SortOrder.DESCENDING
    compute.radix_sort(keys, out, values, moved, len(keys), order)
    return out[:k], None if values is None else moved[:k]


def check(keys, k, reverse=False, values=True):
    n = len(keys)
    given_values = np.arange(n, dtype=np.int32) if values else None
    out, moved = np.zeros_like(keys, shape=k + 2), np.full(k + 2, -7, np.int32) if values else None
    compute.top_k(keys, out, given_values, moved, n, k, reverse)
    want, want_values = expected(keys, given_values, k, reverse)
    assert out[:k].tobytes() == want.tobytes()
    assert not out[k:].astype(float).any()
    if values:
        assert moved.tolist() == [*want_values.tolist(), -7, -7]


DTYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
          np.float64, ml_dtypes.bfloat16, np.bool_]


@pytest.mark.parametrize("dtype", deep_but(DTYPES, np.float32))
@pytest.mark.parametrize("reverse", [False, True])
def test_each_dtype(dtype, reverse):
    bits = RNG.integers(0, 256, 3000 * np.dtype(dtype).itemsize, dtype=np.uint8)
    keys = bits.view(dtype) if dtype is not np.bool_ else bits[:3000] % 2 == 1
    if keys.dtype == np.float16:  # signaling NaN become quiet here
        keys = np.where(np.isnan(keys), np.float16(np.nan), keys)
    for k in (1, 100, 3000):
        check(keys, k, reverse)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=60), st.data(), st.booleans())
@settings(max_examples=5, deadline=None)
def test_equal_keys(items, data, reverse):
    check(np.array(items, np.int16), data.draw(st.integers(0, len(items))), reverse)


def test_special_floats_are_in_the_order_of_radix_sort():
    keys = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0, 0.0, -0.0, 1e-45], np.float32)
    for k in range(len(keys) + 1):
        for reverse in (False, True):
            check(keys, k, reverse)


@pytest.mark.parametrize("n", [1, 1023, 1025, (1 << 14) - 1, (1 << 14) + 1])
def test_sizes(n):
    keys = RNG.integers(-50, 50, n).astype(np.int32)
    check(keys, n // 2 + 1, values=False)


def test_many_keys(monkeypatch):
    monkeypatch.setattr(top_k, "FEW", 100)
    forget_plans()
    check(RNG.standard_normal(3001).astype(np.float32), 2000)


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    monkeypatch.setattr(Plan, "on_host", False)
    forget_plans()
    yield monkeypatch
    forget_plans()


def kinds_of_keys(n):
    """Keys of all values, of few, of one, skewed, and in order."""
    yield RNG.integers(-1 << 31, (1 << 31) - 1, n).astype(np.int32)
    yield RNG.standard_normal(n).astype(np.float32)
    yield np.arange(n, dtype=np.int32) * 7 % 11 - 5
    yield np.full(n, -3, np.int32)
    yield np.where(RNG.random(n) < 0.01, RNG.integers(0, 1 << 30, n), 0).astype(np.int32)
    yield np.arange(n, dtype=np.int32)


@once
@pytest.mark.parametrize("sampled", [False, True])
def test_tiles_that_are_counted_first(as_on_a_gpu, sampled):
    """Whether some tiles say from which digit on the others count: from the least that surely is not above that of the
    last key, even where these tiles have other keys than the rest."""
    as_on_a_gpu.setattr(top_k, "SAMPLED", 4 if sampled else 1 << 30)
    as_on_a_gpu.setattr(top_k, "SAMPLE", 2)
    launches = []
    launch = Plan.launch
    as_on_a_gpu.setattr(Plan, "launch", lambda plan, blocks, kernel, *args: (
        launches.append((kernel.__name__, blocks)), launch(plan, blocks, kernel, *args))[1])
    tiles = 17
    for keys in kinds_of_keys(tiles * top_k.TILE - 5):
        for k, reverse in ((1, True), (512, False), (513, True)):
            del launches[:]
            check(keys, k, reverse, values=k == 512)
            counted = [blocks for name, blocks in launches if name == "count_digits" and blocks in (2, tiles)]
            assert counted in ([[2, tiles] * 4, []] if sampled and k <= 512 else [[tiles] * 4, []])


@once
@pytest.mark.parametrize("k", [1, 31, 32, 33, 1024, 1025])
def test_ranks(as_on_a_gpu, k):
    """On a GPU each of few keys is compared with all, and equal keys keep their order."""
    for reverse, keys in enumerate(list(kinds_of_keys(1100))[:4]):
        check(keys, k, bool(reverse % 2))


@once
def test_more_keys_than_are_compared_with_all(as_on_a_gpu):
    as_on_a_gpu.setattr(top_k, "RANKED", 30)
    for k in (30, 31):
        check(RNG.integers(0, 9, 100).astype(np.int32), k)


@once
@pytest.mark.parametrize("copies", [1, 16, 64])
def test_copies_of_counters(as_on_a_gpu, copies):
    as_on_a_gpu.setattr(top_k, "SHARED", 1)
    as_on_a_gpu.setattr(top_k, "COPIES", max(copies, top_k.ROWS))
    check(RNG.integers(0, 300, 70 * top_k.TILE).astype(np.int32), 1000)


@once
def test_positions_beyond_int32(as_on_a_gpu):
    """Kernels for 2^31 keys and more have positions of int64; here they run on fewer."""
    as_on_a_gpu.setattr(algorithm, "WIDE", 1)
    check(RNG.integers(0, 300, 3000).astype(np.int32), 700)


def test_iterators_structs_and_objects():
    Pair = compute.gpu_struct({"x": np.float32, "y": np.int32}, "Pair")
    keys = RNG.integers(0, 1000, 500).astype(np.int32)
    values = np.zeros(500, Pair.dtype)
    values["x"], values["y"] = np.arange(500), keys
    out, moved = np.zeros(9, np.int32), np.zeros(9, Pair.dtype)
    halves = compute.TransformIterator(keys, lambda v: v // 2)
    compute.top_k(halves, out, values, moved, 500, 9, reverse=True)
    at = np.argsort(keys // 2, kind="stable")[:9]
    assert out.tolist() == (keys // 2)[at].tolist() and moved.tolist() == values[at].tolist()
    made = compute.make_top_k(keys, out)
    storage = np.empty(made(None, keys, out, None, None, 500, 9), np.uint8)
    made(storage, keys, out, None, None, 500, 9)
    assert out.tolist() == np.sort(keys)[::-1][:9].tolist()
    with pytest.raises(TypeError, match="argument `d_in_keys`"):
        made(None, keys.astype(np.int64), out, None, None, 500, 9)


def test_what_is_refused():
    keys, out = np.arange(10), np.zeros(5, int)
    for args, error, text in (
            ((keys, out, None, None, 10, 11), ValueError, "argument `k` is 11"),
            ((keys, out, None, None, 10, 6), ValueError, "argument `k` is 6, but `d_out_keys` has 5"),
            ((keys, out, None, None, 4, 5), ValueError, "argument `k` is 5, and there are 4 items"),
            ((keys, out, None, None, 10, -1), ValueError, "argument `k` is negative"),
            ((keys, out, None, None, 10, None), TypeError, "argument `k` is missing"),
            ((keys, keys[:5], None, None, 10, 5), ValueError, "share memory"),
            ((keys, out, keys, None, 10, 5), ValueError, "argument `d_out_values` is None"),
            ((keys, np.zeros(5, np.float32), None, None, 10, 5), TypeError, "argument `d_out_keys`: expected int64"),
            ((keys, compute.DiscardIterator(keys), None, None, 10, 5), TypeError, "argument `d_out_keys`")):
        with pytest.raises(error, match=text):
            compute.top_k(*args)
    assert not out.any()


@needs_tool
@once
@at_levels
def test_kernels_are_assembled(level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    keys, out = RNG.standard_normal(5000).astype(np.float32), np.zeros(3, np.float32)
    compute.top_k(keys, out, None, None, 5000, 3)
    assert out.tolist() == np.sort(keys)[:-4:-1].tolist()
    assert {"begin_selection", "count_digits", "choose_digit", "compact", "put_by_rank"} <= set(seen)


@pytest.mark.parametrize("function", [compute.top_k, compute.make_top_k])
def test_documentation(function):
    check_docstring(function)
