"""Reductions of arrays in host memory by NumPy: beside the kernels that reduce iterators, and what is left to these."""

from __future__ import annotations

import functools
import operator

import ml_dtypes
import numpy as np
import pytest

from cutile import compute
from cutile.compute import Determinism, OpKind, host_reduce, steps
from tests.compute.checks import forget_plans

KINDS = {OpKind.PLUS: operator.add, OpKind.MULTIPLIES: operator.mul, OpKind.MINIMUM: min, OpKind.MAXIMUM: max,
         OpKind.BIT_AND: operator.and_, OpKind.BIT_OR: operator.or_, OpKind.BIT_XOR: operator.xor}
NAN = np.nan


@pytest.fixture
def asked(monkeypatch):
    """What `host_reduce` took over, call by call."""
    forget_plans()
    found, reduce = [], host_reduce.reduce
    monkeypatch.setattr(host_reduce, "reduce", lambda *args: found.append(reduce(*args)) or found[-1])
    yield found
    forget_plans()


def reduced(x, op, initial=None, dtype=None, **options):
    out = np.full(2, 77).astype(x.dtype if dtype is None else dtype)
    compute.reduce_into(x, out, len(x), op, initial, **options)
    assert out[1] == np.array(77).astype(out.dtype)
    return out[0]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("op", KINDS, ids=lambda op: op.name)
def test_integers_wrap_as_in_exact_arithmetic(op, dtype, asked):
    info = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(info.min, info.max, 700, dtype=dtype, endpoint=True)
    for items, first in ((x, info.max), (x[::-3], info.min), (x[:1], 3)):
        exact = functools.reduce(KINDS[op], map(int, items), int(first))
        want = (exact - info.min) % (1 << info.bits) + info.min
        assert reduced(items, op, np.array([first], dtype)) == want
    assert all(asked)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("items", [[1, NAN, 3], [NAN, NAN], [0.0, -0.0], [-0.0, -0.0], [-np.inf, NAN], [2, 0.0, -0.0]])
@pytest.mark.parametrize("first", [None, NAN, 0.0, -0.0, 5.0, -np.inf])
def test_extremes_of_floats_are_those_of_kernels(dtype, items, first, asked):
    x = np.array(items, dtype)
    through = compute.TransformIterator(x, lambda v: v)
    for op in (OpKind.MINIMUM, OpKind.MAXIMUM):
        first_item = None if first is None else np.array([first], dtype)
        out = np.zeros(1, dtype)
        compute.reduce_into(through, out, len(x), op, first_item)
        found = reduced(x, op, first_item)
        assert str(found) == str(out[0])  # tells zeros apart, and takes NaN for NaN
    assert {*asked} == {True, False}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_of_any_length(dtype, asked):
    every = 9 if dtype == "float16" else 1  # of which kernels reduce some
    for n in (*range(1, 140, every), 255, 256, 257, 1000):
        x = np.random.default_rng(n).permutation(n).astype(dtype)
        x[n // 2] = np.nan if n > 1 else 0
        seen = x[~np.isnan(x)]
        assert reduced(x, OpKind.MAXIMUM) == seen.max() and reduced(x, OpKind.MINIMUM) == seen.min(), n
        assert str(reduced(np.full(n, -0.0, dtype), OpKind.PLUS)) == "-0.0", n
        assert str(reduced(np.full(n, -0.0, dtype), OpKind.PLUS, np.array([-0.0], dtype))) == "-0.0", n
        assert reduced(np.full(n, -1, dtype), OpKind.MULTIPLIES) == (-1) ** n, n
    assert dtype == "float16" or all(asked)


def test_sums_convert_as_kernels_do(asked):
    x = np.arange(-50, 77, dtype=np.int8)
    assert reduced(x, OpKind.PLUS, np.int64(1000), np.int64) == 1000 + x.astype(int).sum()
    thousands = x.astype(np.int64) * 1000
    assert reduced(thousands, OpKind.PLUS, dtype=np.int16) == thousands.sum().astype(np.int16)
    assert reduced(x.astype(np.float32), lambda a, b: a + b, np.float32(0.5)) == x.astype(int).sum() + 0.5
    assert asked == [True, True, True]
    assert reduced(x, OpKind.PLUS, np.float32(0.5), np.float32) == x.astype(int).sum() + 0.5
    assert reduced(x.astype(ml_dtypes.bfloat16), OpKind.MAXIMUM) == 76
    assert reduced(x > 0, OpKind.MAXIMUM, np.int32(0), np.int32) == 1
    assert not any(asked[3:])


def test_what_kernels_reduce(asked, monkeypatch):
    x = np.arange(100, dtype=np.int32)
    assert reduced(x, lambda a, b: a + b + 0 * a * b) == 4950
    assert reduced(x, OpKind.PLUS, determinism=Determinism.GPU_TO_GPU) == 4950
    assert not any(asked)
    assert reduced(x, OpKind.PLUS) == 4950 and asked == [True]
    monkeypatch.setenv("CUTILE_SANITIZE", "all")  # another plan, though all else is the same
    assert reduced(x, OpKind.PLUS) == 4950 and asked == [True, False]


PICKS = [lambda a, b: a if a > b else b, lambda a, b: b if a > b else a, lambda a, b: a if a >= b else b,
         lambda a, b: b if b < a else a]


# Each run takes two dtypes of an operator, and each dtype with two or three; the deep session takes all.
@pytest.mark.parametrize("op, dtype", [
    pytest.param(op, dtype, id=f"{name}-{dtype}", marks=[pytest.mark.deep] * ((i + k) % 3 == 2 or (i, k) == (3, 2)))
    for i, (name, op) in enumerate(zip(("greater", "smaller", "greater or equal", "less"), PICKS, strict=True))
    for k, dtype in enumerate(("float32", "float64", "float16"))])
def test_picks_of_floats_are_those_of_kernels(op, dtype):
    """Bit for bit, whatever a NaN or zeros of both signs make of the order, and whatever the initial value is."""
    rng, some = np.random.default_rng(6), [NAN, -NAN, 0.0, -0.0, np.inf, -np.inf, 1.5, -2.0, 5e-324]
    arrays = [rng.normal(size=n) for n in (1, 1025, 5000)] + [rng.choice(some, n) for n in (2, 3, 40, 3000)]
    arrays += [-abs(rng.normal(size=300)).round() * 1.0, np.zeros(9), np.where(np.arange(700) == 650, NAN, 1.0)]
    for x in arrays:
        x = x.astype(dtype)
        for first in (None, NAN, 0.0, -0.0, np.inf, -np.inf):
            initial, through, out = first if first is None else np.array([first], dtype), x, np.zeros(2, dtype)
            for k, items in enumerate((x, compute.TransformIterator(through, lambda v: v))):
                compute.reduce_into(items, out[k:], len(x), op, initial)
            assert out[:1].tobytes() == out[1:].tobytes(), (x, first)


def test_picks_in_one_call(monkeypatch):
    """Without NaN and zeros no kernel runs; with them one does, in the same plan."""
    ran, x, out = [], np.array([3.0, -1.0, 2.0]), np.zeros(1)
    run = steps.Step.run
    monkeypatch.setattr(steps.Step, "run", lambda self, *args: ran.append(self) or run(self, *args))
    for items, first, right, kernels in (
            ([3, -1, 2], None, 3, 0), ([NAN, NAN, NAN], None, NAN, 1), ([-3, -0.0, -2], None, 0, 1),
            ([3, -1, 2], 7, 7, 0), ([-3, -1, -2], 0, 0, 1), ([5, 4, 3], None, 5, 0)):
        ran.clear()
        x[:] = items
        compute.reduce_into(x, out, 3, PICKS[0], first if first is None else np.float64(first))
        assert np.array_equal(out, [right], equal_nan=True) and len(ran) == kernels
    ran.clear()
    monkeypatch.setenv("CUTILE_SANITIZE", "bounds")
    x[:] = 1, 2, 3
    compute.reduce_into(x, out, 3, PICKS[0])
    assert out[0] == 3 and len(ran) == 1
