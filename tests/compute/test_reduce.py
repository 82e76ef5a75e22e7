"""Reductions: every size around tiles and blocks, accumulators, storage, and what a call refuses."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cutile import compute
from cutile.compute import Determinism, OpKind
from cutile.compute.plans import Plan
from cutile.compute.reduce import BLOCKS, HOST_TILE, TILE, Reduce

SIZES = [1, 2, 3, 1000, TILE - 1, TILE, TILE + 1, 2 * TILE + 5, HOST_TILE - 1, HOST_TILE + 1,
         200_003]


def launched(monkeypatch, n: int) -> list[tuple]:
    """Numbers of items and blocks of the launches on a GPU, whether blocks have several tiles, and whether there is one
    with fewer items.
    """
    found = []
    monkeypatch.setattr(Plan, "on_host", False)
    monkeypatch.setattr(Plan, "launch", lambda self, blocks, kernel, *args: found.append((args[3], blocks, *args[5:])))
    x = np.broadcast_to(np.int32(1), n)
    Reduce((Determinism.RUN_TO_RUN,))._plan(None, (x, np.zeros(1, np.int32), OpKind.PLUS, n, None), [])
    return found


@pytest.mark.parametrize("n, blocks, several, rest", [
    (1, 1, False, False), (TILE, 1, False, False), (TILE + 1, 1, False, True), (3 * TILE, 2, True, False),
    (4 * TILE, 4, False, False), (4 * TILE + 7, 4, False, True), (7 * TILE - 1, 4, True, True),
    (2 * BLOCKS * TILE, BLOCKS, True, False)])
def test_a_kernel_has_code_for_what_there_is(monkeypatch, n, blocks, several, rest):
    second = [(blocks, 1, False, False)] if blocks > 1 else []
    assert launched(monkeypatch, n) == [(n, blocks, several, rest), *second]


def larger(a, b):
    if a > b:
        return a
    return b


def divisor(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@pytest.mark.parametrize("n", SIZES)
def test_sizes(n):
    x = np.random.default_rng(n).integers(-100, 100, n).astype(np.int32)
    o = np.zeros(1, np.int64)
    compute.reduce_into(x, o, n, lambda a, b: a + b, np.array([5]))
    assert o[0] == int(x.sum()) + 5
    compute.reduce_into(x, o, n, larger)
    assert o[0] == x.max()
    compute.reduce_into(x.astype(np.int64) * 12, o, n, OpKind.BIT_XOR)
    assert o[0] == np.bitwise_xor.reduce(x.astype(np.int64) * 12)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_short_integers_wrap(dtype):
    """As in steps of their own type, also where totals are held in a longer one, as on a GPU."""
    x = np.random.default_rng(4).integers(0, 256, 3 * TILE + 77).astype(dtype)
    for op, f in ((OpKind.PLUS, np.add), (lambda a, b: a + b, np.add), (OpKind.MULTIPLIES, np.multiply),
                  (OpKind.MINIMUM, np.minimum), (OpKind.MAXIMUM, np.maximum), (OpKind.BIT_XOR, np.bitwise_xor),
                  (OpKind.BIT_AND, np.bitwise_and), (larger, np.maximum)):
        items = x | 1 if f is np.multiply else x
        for init in (None, dtype(3)):
            o = np.zeros(1, dtype)
            compute.reduce_into(items, o, len(x), op, init, determinism=Determinism.GPU_TO_GPU)
            whole = items if init is None else np.concatenate([[init], items])
            assert o[0] == f.reduce(whole, dtype=dtype), (op, init)
            compute.reduce_into(items.astype(np.int64) + 512 * 65536, o, len(x), op, dtype(3) if init is None else init,
                                determinism=Determinism.GPU_TO_GPU)
            assert o[0] == f.reduce(np.concatenate([[dtype(3)], items]), dtype=dtype), "converted before"


def test_an_operator_with_a_loop():
    x, o = np.random.default_rng(1).integers(1, 50, 9001).astype(np.int32) * 6, np.zeros(1, np.int32)
    compute.reduce_into(x, o, len(x), divisor, 18)
    assert o[0] == math.gcd(18, *x.tolist())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_are_near_the_exact_sum(dtype):
    x, o = np.random.default_rng(2).normal(size=50_000).astype(dtype) / 64, np.zeros(1, dtype)
    compute.reduce_into(x, o, len(x), OpKind.PLUS)
    exact = sum(map(Fraction, x.tolist()))
    size = float(sum(abs(Fraction(v)) for v in x.tolist()))
    assert abs(o[0] - float(exact)) <= math.log2(len(x)) * 2 * np.finfo(dtype).eps * size


@pytest.mark.parametrize("n", [0, 1, 3000, 300_000])
def test_accumulators(n):
    """The accumulator is h_init's type, and the result is converted to that of d_out [RDC-2, RDC-6]."""
    x, o = np.full(n, 100, np.int8), np.zeros(1, np.float32)
    compute.reduce_into(x, o, n, OpKind.PLUS, np.array([7], np.int64))
    assert o[0] == n * 100 + 7
    o = np.zeros(1, np.int16)
    compute.reduce_into(x, o, n, OpKind.PLUS, np.float64(0.5))
    assert o[0] == np.array(n * 100, np.int64).astype(np.int16) or n > 300


def test_nothing():
    """Without items d_out is h_init, or stays as it is [RDC-3]."""
    o = np.full(2, 9, np.int32)
    compute.reduce_into(np.zeros(0, np.int32), o, 0, OpKind.PLUS)
    assert o.tolist() == [9, 9]
    compute.reduce_into(np.zeros(0, np.int32), o, 0, OpKind.PLUS, 4)
    assert o.tolist() == [4, 9]


def test_structs():
    Range = compute.gpu_struct({"low": np.float32, "high": np.float64})

    def joined(a, b):
        return Range(min(a.low, b.low), max(a.high, b.high))
    x = np.random.default_rng(3).normal(size=70_000).astype(np.float32)
    o = np.zeros(1, Range.dtype)
    compute.reduce_into(compute.TransformIterator(x, lambda v: Range(v, v)), o, len(x), joined, Range(np.inf, -np.inf))
    assert o[0].tolist() == (x.min(), x.max())


def test_storage():
    n = TILE * 16
    x, o = np.ones(n, np.float64), np.zeros(1)
    reducer = compute.make_reduce_into(x, o, OpKind.PLUS, 0.0, determinism=Determinism.GPU_TO_GPU)
    need = reducer(None, x, o, OpKind.PLUS, n, 0.0)
    assert o[0] == 0 and need >= 8 * 16
    for size, error in ((need - 1, f"has {need - 1} bytes, and {need} are needed"), (0, "are needed")):
        with pytest.raises(ValueError, match=error):
            reducer(np.empty(size, np.uint8), x, o, OpKind.PLUS, n, 0.0)
    with pytest.raises(ValueError, match="no multiple of 8"):
        whole = np.empty(need + 16, np.uint8)
        reducer(whole[1 + -whole.ctypes.data % 8:][:need], x, o, OpKind.PLUS, n, 0.0)
    assert o[0] == 0
    storage = np.empty(need // 4, np.int32)
    for items, begin in ((n, 0.0), (17, 3.0), (n - 1, -1.0)):  # pointers, sizes and initial values are free
        storage = np.empty(max(need, reducer(None, x, o, OpKind.PLUS, items, begin)), np.uint8)
        assert reducer(storage, x, o, OpKind.PLUS, items, begin) <= need
        assert o[0] == items + begin


def test_wrong_arguments():
    x, o = np.ones(10, np.float32), np.zeros(1, np.float32)
    reducer = compute.make_reduce_into(x, o, OpKind.PLUS, np.float32(0))
    for what, call in {"d_in": lambda: reducer(None, x.astype(int), o, OpKind.PLUS, 9, np.float32(0)),
                       "d_out": lambda: reducer(None, x, o.astype(int), OpKind.PLUS, 9, np.float32(0)),
                       "op": lambda: reducer(None, x, o, OpKind.MINIMUM, 9, np.float32(0)),
                       "h_init": lambda: reducer(None, x, o, OpKind.PLUS, 9, np.float64(0))}.items():
        with pytest.raises(TypeError, match=f"`{what}`"):
            call()
    with pytest.raises(TypeError, match="determinsm"):
        compute.reduce_into(x, o, 10, OpKind.PLUS, determinsm=1)
    with pytest.raises(ValueError, match="does not support output"):
        compute.reduce_into(x, compute.CountingIterator(0), 10, OpKind.PLUS)


def test_one_tree_for_every_device():
    """GPU_TO_GPU takes as many blocks as a GPU does."""
    n = TILE * 32
    x, o = np.ones(n, np.float32), np.zeros(1, np.float32)
    for kind, blocks in ((Determinism.RUN_TO_RUN, 0), (Determinism.GPU_TO_GPU, min(BLOCKS, n // TILE))):
        reducer = compute.make_reduce_into(x, o, OpKind.PLUS, determinism=kind)
        assert reducer(None, x, o, OpKind.PLUS, n) >= 4 * blocks
        compute.reduce_into(x, o, n, OpKind.PLUS, determinism=kind)
        assert o[0] == n
