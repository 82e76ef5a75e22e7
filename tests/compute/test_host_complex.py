"""Operators on complex numbers that are one function of NumPy: the bits of kernels, on all kinds of numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cutile import compute
from cutile.compute import OpKind
from tests.compute.test_host_transform import ran

__all__ = ["ran"]
DTYPES = [np.complex64, np.complex128]
ONE = [lambda z: z, lambda z: -z, lambda z: z.conjugate(), lambda z: z + 1, lambda z: 2.5 + z, lambda z: z - 3,
       lambda z: 1 - z, lambda z: z * 2, lambda z: 3 * z, lambda z: z * -1.75, lambda z: z + 0, OpKind.NEGATE]
TWO = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: b - a, OpKind.PLUS, OpKind.MINUS]
OTHERS_OF_ONE = [lambda z: z * z, lambda z: z * 0.3, lambda z: z * float("inf"), lambda z: z + z, lambda z: z / 2,
                 lambda z: z + 1 if z.real > 0 else z, lambda z: (z.imag, z.real), lambda z: (z.real, z.real),
                 lambda z: (-z.real, z.imag), lambda z: 2 * z + 1, lambda z: (z.real + 1, z.imag),
                 lambda z: (z.real - -0.0, z.imag - -0.0)]
OTHERS_OF_TWO = [lambda a, b: a * b, lambda a, b: a, lambda a, b: a / b, lambda a, b: a + b + 1,
                 lambda a, b: (a.real + b.real, a.real + b.imag)]


def numbers(dtype) -> np.ndarray:
    """All pairs of numbers at which rounding, zeros and infinities show, and random ones."""
    part = np.dtype(dtype).type(0).real.dtype
    f = np.finfo(part)
    edges = [0.0, -0.0, 1.0, -1.0, 1 / 3, f.max, -f.max, f.tiny, f.smallest_subnormal, -f.smallest_subnormal, np.inf,
             -np.inf, np.nan, 1 + f.eps]
    x = np.array(list(itertools.product(edges, edges)), part).reshape(-1).view(dtype)
    rng = np.random.default_rng(4)
    some = rng.standard_normal((1000, 2)) * 10.0 ** rng.integers(-44, 38, (1000, 2))
    return np.concatenate([x, some.astype(part).reshape(-1).view(dtype)])


def call(op, operands, out):
    if len(operands) == 1:
        compute.unary_transform(operands[0], out, op, len(out))
    else:
        compute.binary_transform(*operands, out, op, len(out))


def assert_same_bits(got: np.ndarray, want: np.ndarray) -> None:
    a, b = (np.where(np.isnan(p), np.nan, p) for p in (got.view(got.real.dtype), want.view(got.real.dtype)))
    assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("op", "two"), [(op, False) for op in (*ONE, *OTHERS_OF_ONE)]
                         + [(op, True) for op in (*TWO, *OTHERS_OF_TWO)])
def test_numpys_functions_have_the_bits_of_kernels(op, two, dtype, ran):
    x = numbers(dtype)
    operands = (x, np.random.default_rng(1).permutation(x)) if two else (x,)
    want, out = np.zeros_like(x), np.full(x.size + 2, 7, dtype)
    call(op, (compute.TransformIterator(x, lambda z: z), *operands[1:]), want)
    assert ran
    strided, place = np.repeat(x, 3)[::3], x.copy()
    for first, target in ((x, out[1:-1]), (strided, out[1:-1]), (x, out[-2:0:-1]), (place, place)):
        ran.clear()
        call(op, (first, *operands[1:]), target)
        assert bool(ran) == (op in (*OTHERS_OF_ONE, *OTHERS_OF_TWO))
        assert_same_bits(np.ascontiguousarray(target), want)
    assert out[0] == out[-1] == 7
    out[:] = 7
    call(op, operands, out[:5])
    assert_same_bits(out[:5].copy(), want[:5].copy())
    assert (out[5:] == 7).all()


def test_what_kernels_compute(ran, monkeypatch):
    """Other types of results, items with other names, and launches that are checked."""
    x = numbers(np.complex64)
    for target in (np.zeros(x.size, np.complex128), np.zeros(x.size, [("real", "f4"), ("imag", "f4")])):
        ran.clear()
        compute.unary_transform(x, target, lambda z: z + 1, x.size)
        assert ran
    out = np.zeros_like(x)
    monkeypatch.setenv("CUTILE_SANITIZE", "bounds")
    ran.clear()
    compute.unary_transform(x, out, lambda z: z + 1, x.size)
    assert ran
