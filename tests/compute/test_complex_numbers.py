"""Complex numbers as items: arithmetic as NumPy's, in every kind of algorithm, and what they have no meaning for."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.compute import OpKind
from cutile.compute.transform import UnaryTransform
from tests.gpu.arrays import Cuda
from tests.gpu.fake_driver import installed

DTYPES = [np.complex64, np.complex128]
N = 700


def numbers(dtype, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(N) + 1j * rng.standard_normal(N)).astype(dtype)


def assert_near(got, want, units=4):
    want = np.asarray(want)
    assert (np.abs(got - want) <= units * np.finfo(got.dtype).eps * np.abs(want).max()).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic(dtype):
    x, y, o, b = numbers(dtype), numbers(dtype, 1), np.zeros(N, dtype), np.zeros(N, bool)
    for kind, ufunc in ((OpKind.PLUS, np.add), (OpKind.MINUS, np.subtract), (OpKind.MULTIPLIES, np.multiply),
                        (OpKind.DIVIDES, np.divide)):
        compute.binary_transform(x, y, o, kind, N)
        assert_near(o, ufunc(x.astype(complex), y), 8)
    y[::3] = x[::3]
    for kind, ufunc in ((OpKind.EQUAL_TO, np.equal), (OpKind.NOT_EQUAL_TO, np.not_equal)):
        compute.binary_transform(x, y, b, kind, N)
        assert np.array_equal(b, ufunc(x, y))
    compute.unary_transform(x, o, OpKind.NEGATE, N)
    assert np.array_equal(o, -x)
    compute.unary_transform(x, o, lambda z: 1 - z.conjugate() * 2 / 4 + z.real, N)
    assert_near(o, 1 - x.conj() / 2 + x.real)
    compute.unary_transform(x, o, lambda z: z * z if z.real > 0 else -z, N)
    assert_near(o, np.where(x.real > 0, x * x, -x))
    compute.unary_transform(x, o, lambda z: (z.imag, z.real), N)
    assert np.array_equal(o, x.imag + 1j * x.real)


@pytest.mark.parametrize("dtype", DTYPES)
def test_magnitudes(dtype):
    """That of huge and tiny numbers neither overflows nor underflows; an infinite part decides, also beside a NaN."""
    f = np.finfo(dtype)
    x = numbers(dtype)
    x[:8] = [0, 3 - 4j, f.max / 2 * (1 + 1j), f.tiny * (1 + 1j), complex(-np.inf, 1), complex(np.nan, np.inf),
             complex(np.nan, 1), complex(-0.0, 0)]
    want = np.hypot(x.real, x.imag)
    for op in (lambda z: abs(z), lambda z: np.abs(z), lambda z: np.absolute(z)):
        o = np.full(N, -1, f.dtype)
        compute.unary_transform(x, o, op, N)
        assert (np.isnan(o) == np.isnan(want)).all() and (np.isinf(o) == np.isinf(want)).all()
        real = np.isfinite(want)
        assert (np.abs(o[real] - want[real]) <= 4 * f.eps * want[real]).all()
    assert o[1] == 5 and o[0] == 0
    one = np.zeros(1, f.dtype)
    compute.reduce_into(compute.TransformIterator(x[8:], lambda z: abs(z)), one, N - 8, OpKind.MAXIMUM)
    assert one[0] == o[8:].max()


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(dtype):
    x, o = numbers(dtype), np.zeros(N, dtype)
    x = (x / np.abs(x)).astype(dtype)
    for n in (-3, -1, 0, 1, 2, 3, 7, 100):
        compute.unary_transform(x, o, lambda z, n=n: z**n, N)
        assert_near(o, x.astype(complex)**n, 300)
    squared = np.zeros(N, dtype)
    compute.unary_transform(x, squared, lambda z: z * z, N)
    compute.unary_transform(x, o, lambda z: +z**2, N)
    assert np.array_equal(o, squared)


@pytest.mark.parametrize("op", [lambda z: z**0.5, lambda z: z**101, lambda z: z**z.real, lambda z: z**z],
                         ids=["half", "large", "varying", "complex"])
def test_other_powers_are_refused(op):
    with pytest.raises(ct.TileStaticAssertionError, match="powers by integers from -100 to 100, by constants"):
        compute.unary_transform(numbers(np.complex64), np.zeros(N, np.complex64), op, N)


NUMBER, TYPED = 2 + 1j, np.complex64(2 + 1j)


@pytest.mark.parametrize("op", [lambda z: z * 1j, lambda z: 1j * z, lambda z: z + (1 + 2j), lambda z: z == 1j,
                                lambda z: z * NUMBER, lambda z: z - TYPED])
def test_complex_constants_are_refused_with_what_to_write(op):
    with pytest.raises(ct.TileTypeError, match=r"as \(-z.imag, z.real\) for z \* 1j, or gets the constant as an item"):
        compute.unary_transform(numbers(np.complex64), np.zeros(N, np.complex64), op, N)


def test_what_to_write_for_complex_constants():
    x, o = numbers(np.complex64), np.zeros(N, np.complex64)
    compute.unary_transform(x, o, lambda z: (-z.imag, z.real), N)
    assert np.array_equal(o, x * np.complex64(1j))
    compute.binary_transform(x, compute.ConstantIterator(NUMBER), o, lambda z, k: z * k, N)
    assert_near(o, x.astype(complex) * NUMBER, 8)


def test_division_does_not_overflow():
    x, y, o = np.array([1e30 + 1e30j], np.complex64), np.array([2e30 - 1e30j], np.complex64), np.zeros(1, np.complex64)
    compute.binary_transform(x, y, o, OpKind.DIVIDES, 1)
    assert_near(o, x.astype(complex) / y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_algorithms(dtype):
    x, o, one = numbers(dtype), np.zeros(N, dtype), np.zeros(1, dtype)
    compute.reduce_into(x, one, N, OpKind.PLUS, dtype(1 + 2j))
    assert_near(one, [x.sum() + 1 + 2j], N)
    compute.reduce_into(x.real, one, N, lambda a, b: a + b, np.zeros(1, dtype))  # real numbers convert
    assert_near(one, [x.real.sum()], N)
    unit = x / np.abs(x)
    compute.inclusive_scan(unit, o, lambda a, b: a * b, None, N)
    assert_near(o, np.cumprod(unit.astype(complex)), 4 * N)
    count = np.zeros(1, np.int32)
    compute.select(x, o, count, lambda z: z.imag > 0, N)
    assert np.array_equal(o[:count[0]], x[x.imag > 0])
    compute.merge_sort(x, None, o, None, N, lambda a, b: a.real < b.real)
    assert np.array_equal(o, x[np.argsort(x.real, kind="stable")])
    compute.unary_transform(compute.ZipIterator(x[::-2], compute.ConstantIterator(2 - 1j)), o, lambda p: p[0] + p[1], 9)
    assert np.array_equal(o[:9], (x[::-2][:9] + (2 - 1j)).astype(dtype))


def test_on_a_gpu(monkeypatch):
    compute.clear_all_caches()
    fake = installed(monkeypatch)
    for k in range(2):
        x, o = Cuda(numbers(np.complex64)), Cuda(np.zeros(N, np.complex64))
        compute.unary_transform(x, o, lambda z: z * z, N)
        given = {int.from_bytes(p, "little") for p in fake.launches[k]["parameters"] if len(p) == 8}
        start, target = x.array.ctypes.data, o.array.ctypes.data
        assert {start, start + 4, target, target + 4} <= given
    assert len(UnaryTransform.plans) == 1
    x = Cuda(numbers(np.complex64)[::-2])
    compute.unary_transform(x, o, lambda z: z * z, 9)
    given = {int.from_bytes(p, "little") for p in fake.launches[-1]["parameters"] if len(p) == 8}
    assert {x.array.ctypes.data, x.array.ctypes.data + 4} <= given


def test_in_structs():
    Item = compute.gpu_struct({"z": np.complex64, "n": np.int32})
    x, o = np.zeros(5, Item.dtype), np.zeros(5, Item.dtype)
    x["z"] = np.arange(5) + 1j
    compute.unary_transform(x, o, lambda s: Item(s.z * s.z, s.n + 1), 5)
    assert np.array_equal(o["z"], x["z"] ** 2) and (o["n"] == 1).all()


def test_what_they_are_refused_for():
    x, f = numbers(np.complex64), np.zeros(N, np.float32)
    for kind in (OpKind.LESS, OpKind.MAXIMUM, OpKind.BIT_AND):
        with pytest.raises(ct.TileTypeError, match="complex64"):
            compute.binary_transform(x, x, x, kind, N)
    with pytest.raises(ct.TileTypeError, match="complex64"):
        compute.unary_transform(x, f, OpKind.IDENTITY, N)
    with pytest.raises(TypeError, match="numbers of one byte or more, not complex64"):
        compute.radix_sort(x, x.copy(), None, None, N, compute.SortOrder.ASCENDING)
