"""Transforms in host memory by one call of NumPy: beside the kernels that transform what iterators give."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from cutile import compute
from cutile.compute import OpKind, steps
from cutile.compute.operators import operator
from cutile.compute.results import result_of
from cutile.compute.value_types import value_type
from tests.compute.checks import forget_plans

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def early(v):
    if v < 3:
        return 3
    return v


ONE = [OpKind.NEGATE, OpKind.BIT_NOT, lambda v: -v, lambda v: v & 7, lambda v: v + 1, lambda v: 100 - v,
       lambda v: v - v, lambda v: v << 3, lambda v: v >> 7, lambda v: 3 * v, lambda v: max(v, 5),
       lambda v: v if v > 5 else 5, lambda v: 5 if v > 5 else v, lambda v: 100 if 100 <= v else v, lambda v: early(v),
       lambda v: v // 3, lambda v: v // 16, lambda v: v // 100, lambda v: v ** 2]
TWO = [OpKind.PLUS, OpKind.MULTIPLIES, OpKind.MINIMUM, OpKind.MAXIMUM, OpKind.BIT_AND, OpKind.BIT_OR, OpKind.BIT_XOR,
       OpKind.MINUS, lambda a, b: b + a, lambda a, b: b - a, lambda a, b: a + a, lambda a, b: 7 ^ b,
       lambda a, b: a if a > b else b]
OTHERS = [lambda a, b: a if a > 5 else 6, lambda a, b: 5 if a > 5 else 5, lambda a, b: a if a == 5 else 5,
          lambda a, b: a if a > 5 else b, lambda a, b: a + b + 1, lambda a, b: b, lambda a, b: 5, lambda a, b: a << b,
          lambda a, b: a << 64, lambda a, b: 3 >> a, lambda a, b: a > b]  # which kernels compute

OTHERS_OF_ONE = [lambda v: v if v > 5 else 6, lambda v: 5 if v > 5 else 5, lambda v: v if v == 5 else 5,
                 lambda v: 7 if v > 5 else v, lambda v: v if v > 5 else v, lambda v: v if 5 < v < 9 else 5,
                 lambda v: 100 // v, lambda v: v // (v - v), lambda v: v // v, lambda v: v ** 3, lambda v: v ** 0,
                 lambda v: 2 ** v]


@pytest.fixture
def ran(monkeypatch):
    """The launches of kernels."""
    forget_plans()
    found, run = [], steps.Step.run
    monkeypatch.setattr(steps.Step, "run", lambda self, *args: found.append(self) or run(self, *args))
    yield found
    forget_plans()


def integers(dtype: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng, info = np.random.default_rng(n), np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max, n, dtype, endpoint=True) for _ in range(2))
    a[:2], b[:2] = info.min, (info.min, info.max)
    return a, b


def test_absolute_values_wrap(ran):
    x, out = np.array([-128, -127, 0, 127], np.int8), np.zeros(4, np.int8)
    compute.unary_transform(x, out, abs, 4)
    assert out.tolist() == [-128, 127, 0, 127] and not ran
    compute.unary_transform(x.view(np.uint8), out.view(np.uint8), abs, 4)
    assert out.tolist() == x.tolist() and ran  # no op at all


@pytest.mark.parametrize("dtype", ["float16", bfloat16])
@pytest.mark.parametrize(("op", "kernels"), [(lambda v: v, False), (lambda v: -v, False), (abs, False),
                                             (OpKind.NEGATE, False), (lambda v: -abs(v), True), (lambda v: v + 0, True),
                                             (lambda v: 2.0, True), (lambda v: -v if v < 0 else v, True)])
def test_signs_of_short_floats(op, kernels, dtype, ran):
    """Every bit pattern, also backwards and in place; which NaN a NaN becomes is open."""
    infinite = 0x7C00 if dtype == "float16" else 0x7F80
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    n, nan = x.size, (x.view(np.uint16) & 0x7FFF) > infinite
    right = np.zeros(n, dtype)
    compute.unary_transform(compute.TransformIterator(x, lambda v: v), right, op, n)
    assert ran
    place, behind = x.copy(), np.zeros(2 * n, dtype)[::-2]
    for source, target in ((x, np.zeros(n, dtype)), (x, behind), (np.repeat(x, 3)[::3], behind), (place, place)):
        ran.clear()
        compute.unary_transform(source, target, op, n)
        assert bool(ran) == kernels
        got, want = target.view(np.uint16), right.view(np.uint16)
        assert ((got == want) | nan & (got & 0x7FFF > infinite) & (want & 0x7FFF > infinite)).all()


def call(op, a, b, out, n):
    if b is None:
        compute.unary_transform(a, out, op, n)
    else:
        compute.binary_transform(a, b, out, op, n)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("by", range(-4, 3))
def test_signed_quotients(by, dtype, ran):
    """Of every divisor near zero, by NumPy and by the kernel; NumPy warns of two, which kernels compute."""
    a, _ = integers(dtype, 1001)
    out, right = np.zeros(1001, dtype), np.zeros(1001, dtype)
    compute.unary_transform(compute.TransformIterator(a, lambda v: v), right, lambda v: v // by, 1001)
    ran.clear()
    compute.unary_transform(a, out, lambda v: v // by, 1001)
    assert out.tobytes() == right.tobytes() and bool(ran) == (by in (0, -1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("op", "two"), [(op, False) for op in (*ONE, *OTHERS_OF_ONE)] +
                         [(op, True) for op in (*TWO, *OTHERS)])
def test_integers_wrap_as_in_kernels(op, two, dtype, ran):
    a, b = integers(dtype, 1001)
    b = b if two else None
    right, out = np.zeros(1001, dtype), np.full(1003, 7, dtype)
    call(op, compute.TransformIterator(a, lambda v: v), b, right, 1001)
    assert ran
    strided, place = np.repeat(a, 3)[::3], a.copy()
    for source, target in ((a, out[1:-1]), (strided, out[1:-1]), (a, out[-2:0:-1]), (place, place)):
        ran.clear()
        call(op, source, b, target, 1001)
        assert target.tobytes() == right.tobytes() and bool(ran) == (op in (*OTHERS, *OTHERS_OF_ONE))
    assert out[0] == out[-1] == 7
    out[:] = 7
    call(op, a, b, out, 5)
    assert out[:5].tobytes() == right[:5].tobytes() and (out[5:] == 7).all()


def test_what_kernels_transform(ran, monkeypatch):
    """Other dtypes of results, floats, truth values; and launches that are checked, by the plan that a call has."""
    x, out = np.arange(-50, 50, dtype=np.int8), np.zeros(100, np.int8)
    for source, target in ((x, np.zeros(100, np.int16)), (x.astype(np.float32), np.zeros(100, np.float32)),
                           (x > 0, np.zeros(100, bool)), (compute.ReverseIterator(x), out)):
        ran.clear()
        compute.unary_transform(source, target, OpKind.BIT_NOT if target.dtype == bool else OpKind.NEGATE, 100)
        assert ran
    for setting, launches in ((None, False), ("bounds", True), (None, False)):
        if setting is None:
            monkeypatch.delenv("CUTILE_SANITIZE", raising=False)
        else:
            monkeypatch.setenv("CUTILE_SANITIZE", setting)
        ran.clear()
        compute.unary_transform(x, out, OpKind.NEGATE, 100)
        assert out.tolist() == (-x).tolist() and bool(ran) == launches


def test_the_op_of_one_item():
    t = value_type(np.dtype(np.int32))
    for op, name in ((OpKind.NEGATE, "negative"), (OpKind.BIT_NOT, "bitwise_not"), (lambda v: ~v, "bitwise_not"),
                     (lambda v: v, ""), (lambda v: v * 2, ""), (lambda v: ~-v, ""), (abs, "")):
        assert result_of(operator(op), t).single == name
