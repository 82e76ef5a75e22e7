"""Transforms of arrays and iterators."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from cutile import compute
from cutile.compute import OpKind
from cutile.compute.plans import Plan
from tests.compute.checks import forget_plans

SIZES = [0, 1, 2, 1023, 1024, 1025, 5000]


@pytest.mark.parametrize("n", SIZES)
def test_each_item(n):
    x, y, o = np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)[::-1], np.full(n + 3, -7, np.int64)
    compute.unary_transform(x, o, lambda v: v * 2 if v > 100 else -v, n)
    assert o[:n].tolist() == [int(v) * 2 if v > 100 else -int(v) for v in x] and (o[n:] == -7).all()
    compute.binary_transform(x, y, o, OpKind.MINUS, n)
    assert o[:n].tolist() == (x - y).tolist() and (o[n:] == -7).all()


@pytest.mark.parametrize("dtype, tile", [(np.int8, 2048), (np.int16, 1024), (np.float32, 1024), (np.int64, 512)])
def test_blocks_of_a_gpu_have_more_short_items_than_long_ones(dtype, tile, monkeypatch):
    blocks, launch = [], Plan.launch
    monkeypatch.setattr(Plan, "on_host", False)
    monkeypatch.setattr(Plan, "launch", lambda plan, many, *args: (blocks.append(many), launch(plan, many, *args)))
    forget_plans()
    for n in (tile - 1, tile, 2 * tile + 1):
        x, o = np.arange(n).astype(dtype), np.zeros(n + 1, dtype)
        compute.unary_transform(x, o, lambda v: -v, n)
        assert np.array_equal(o[:n], -x) and not o[n]
    forget_plans()
    assert blocks == [1, 1, 3]


def test_fewer_items_than_the_arrays_have():
    x, o = np.arange(3000, dtype=np.float32), np.zeros(3000, np.float32)
    compute.unary_transform(x, o, lambda v: v + 1, 1500)
    assert (o[:1500] == x[:1500] + 1).all() and not o[1500:].any()


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float16, np.float64, np.bool_])
def test_dtypes_convert_as_astype(dtype):
    x, o = np.arange(0 if np.dtype(dtype).kind == "u" else -50, 50).astype(np.int32), np.zeros(100, dtype)
    compute.unary_transform(x, o, lambda v: v / 3, len(x))
    assert np.array_equal(o[:len(x)], (x.astype(np.float32) / np.float32(3)).astype(dtype))


def test_in_place_and_strided():
    x = np.arange(4000, dtype=np.float32)
    every = x.copy()
    compute.unary_transform(every, every, lambda v: -v, 4000)
    assert np.array_equal(every, -x)
    compute.unary_transform(x[::2], every[1::2], lambda v: v, 2000)
    assert np.array_equal(every[1::2], x[::2]) and np.array_equal(every[::2], -x[::2])
    square = np.asfortranarray(x.reshape(40, 100))
    compute.unary_transform(square, every, lambda v: v, 4000)  # in memory order
    assert np.array_equal(every, square.reshape(-1, order="F"))


def test_objects():
    x, o = np.arange(2000, dtype=np.float32), np.zeros(2000, np.float32)
    double = compute.make_unary_transform(d_in=x, d_out=o, op=lambda v: v * 2)
    for part in (slice(0, 2000), slice(500, 700)):
        o[:] = 0
        double(d_in=x[part], d_out=o[part], op=lambda v: v * 2, num_items=len(x[part]))
        assert np.array_equal(o[part], x[part] * 2)
    add = compute.make_binary_transform(x, x, o, OpKind.PLUS)
    add(x, x, o, OpKind.PLUS, 2000)
    assert np.array_equal(o, x * 2)
    for what, call in {"d_in": lambda: double(x.astype(np.int32), o, lambda v: v * 2, 9),
                       "d_out": lambda: double(x, o.astype(np.int32), lambda v: v * 2, 9),
                       "op": lambda: double(x, o, lambda v: v * 3, 9),
                       "d_in2": lambda: add(x, 3, o, OpKind.PLUS, 9)}.items():
        with pytest.raises(TypeError, match=f"`{what}`"):
            call()


@pytest.mark.parametrize("n, error", [(-1, "negative"), (11, "has 10 items")])
def test_counts(n, error):
    with pytest.raises(ValueError, match=error):
        compute.unary_transform(np.zeros(10), np.zeros(20), OpKind.NEGATE, n)


def test_no_array():
    with pytest.raises(TypeError, match="`d_in`: Expected an iterator or a device array, got list"):
        compute.unary_transform([1, 2], np.zeros(2), OpKind.NEGATE, 2)
    with pytest.raises(ValueError, match="Non-contiguous"):
        compute.unary_transform(np.zeros((4, 4))[:, ::2], np.zeros(8), OpKind.NEGATE, 8)


def test_operators_run_for_items_only():
    """Under a debugger the operator of each algorithm runs one item at a time, and for items only."""
    def noted(v):
        return v + 1
    seen = []

    def watch(frame, event, argument):
        if event == "call" and frame.f_code.co_name == "noted":
            seen.append(str(frame.f_locals["v"]))
    x, o = np.arange(5, dtype=np.int32), np.zeros(5, np.int32)
    before = sys.gettrace()
    sys.settrace(watch)
    try:
        compute.unary_transform(x, o, noted, 5)
        compute.unary_transform(compute.TransformIterator(x, noted), o, OpKind.IDENTITY, 5)
    finally:
        sys.settrace(before)
    assert seen == [f"i32 {k}" for k in range(5)] * 2 and o.tolist() == [1, 2, 3, 4, 5]
