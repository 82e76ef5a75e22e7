"""Operators: the well-known ones, what kernels share, and what is captured."""

from __future__ import annotations

import dataclasses
import functools

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.compute import OpKind, RawOp, algorithm, operators
from cutile.errors import UnsupportedCallError

A = np.array([-7, -3, 0, 5, 8, 9], np.int32)
B = np.array([2, -2, 3, 5, -3, 4], np.int32)


def quotient(a, b):
    return np.trunc(a / b)


@pytest.mark.parametrize("kind, want", [
    (OpKind.PLUS, A + B), (OpKind.MINUS, A - B), (OpKind.MULTIPLIES, A * B), (OpKind.DIVIDES, quotient(A, B)),
    (OpKind.MODULUS, np.fmod(A, B)), (OpKind.EQUAL_TO, A == B), (OpKind.NOT_EQUAL_TO, A != B), (OpKind.GREATER, A > B),
    (OpKind.LESS, A < B), (OpKind.GREATER_EQUAL, A >= B), (OpKind.LESS_EQUAL, A <= B),
    (OpKind.LOGICAL_AND, (A != 0) & (B != 0)), (OpKind.LOGICAL_OR, (A != 0) | (B != 0)), (OpKind.BIT_AND, A & B),
    (OpKind.BIT_OR, A | B), (OpKind.BIT_XOR, A ^ B), (OpKind.MINIMUM, np.minimum(A, B)),
    (OpKind.MAXIMUM, np.maximum(A, B))], ids=lambda k: getattr(k, "name", ""))
def test_well_known_of_two(kind, want):
    o = np.zeros(len(A), np.int32)
    compute.binary_transform(A, B, o, kind, len(A))
    assert o.tolist() == np.asarray(want).astype(np.int32).tolist()


@pytest.mark.parametrize("kind, want", [(OpKind.NEGATE, -A), (OpKind.BIT_NOT, ~A), (OpKind.IDENTITY, A),
                                        (OpKind.LOGICAL_NOT, A == 0)], ids=lambda k: getattr(k, "name", ""))
def test_well_known_of_one(kind, want):
    o = np.zeros(len(A), np.int32)
    compute.unary_transform(A, o, kind, len(A))
    assert o.tolist() == np.asarray(want).astype(np.int32).tolist()


def test_floats():
    x, y, o = np.array([1, np.nan, 7.5], np.float32), np.array([4, 2, np.nan], np.float32), np.zeros(3, np.float32)
    for kind, want in ((OpKind.DIVIDES, x / y), (OpKind.MAXIMUM, np.fmax(x, y)), (OpKind.MINIMUM, np.fmin(x, y))):
        compute.binary_transform(x, y, o, kind, 3)
        assert np.array_equal(o, want, equal_nan=True)


def made(k):
    return lambda v: v * k + helper(v)


def helper(v):
    return v if v > 0 else 0


def test_a_fresh_function_runs_what_was_compiled():
    o = np.zeros(len(A), np.int32)
    compute.unary_transform(A, o, made(4), len(A))
    before = len(algorithm._kernels)
    compute.unary_transform(A, o, made(4), len(A))
    assert len(algorithm._kernels) == before
    compute.unary_transform(A, o, made(5), len(A))
    assert len(algorithm._kernels) == before + 1
    compute.clear_all_caches()
    compute.unary_transform(A, o, made(4), len(A))
    assert o.tolist() == (A * 4 + np.maximum(A, 0)).tolist()


def test_refusals():
    for op, error in ((3, TypeError), (OpKind.STATEFUL, ValueError), (None, TypeError), (int, TypeError),
                      (RawOp(ltoir=b"", name="f"), ct.TileUnsupportedFeatureError)):
        with pytest.raises(error, match="`op`"):
            compute.unary_transform(A, A.copy(), op, 3)
    with pytest.raises(ct.TileSyntaxError, match="print"):
        compute.unary_transform(A, A.copy(), lambda v: print(v), 3)


@dataclasses.dataclass(frozen=True)
class Scale:
    k: int

    def __call__(self, v):
        return v * self.k

    def moved(self, v):
        return v + self.k

    @classmethod
    def less(cls, v):
        return v - 2

    @staticmethod
    def more(v):
        return v + 2


class Plain:
    k = 3

    def __call__(self, v):
        return v * self.k


def test_objects_and_methods():
    """Methods of frozen dataclasses, of classes, and objects that have __call__; each look-up is no new operator."""
    o, two = np.zeros_like(A), Scale(2)
    for op, want in ((two, A * 2), (Scale(5), A * 5), (two.moved, A + 2), (Scale.less, A - 2), (two.less, A - 2),
                     (Scale.more, A + 2), (Scale(3).__call__, A * 3)):
        compute.unary_transform(A, o, op, len(A))
        assert np.array_equal(o, want)
    for look_up in (lambda: two, lambda: two.moved, lambda: Scale.less):
        assert operators.operator(look_up()) is operators.operator(look_up())
    for op in (Plain(), Plain().__call__):
        with pytest.raises(ct.TileTypeError, match="no attribute `k` in tile code") as info:
            compute.unary_transform(A, o, op, len(A))
        assert info.value.loc.function == "__call__" and "argument `op`" in str(info.value)


def test_classes_are_no_operators():
    for op, name in ((int, "int"), (np.float32, r"np\.float32"), (Scale, "Scale")):
        with pytest.raises(TypeError, match=f"argument `op`: expected a function .*, got the class {name}; write lamb"):
            compute.unary_transform(A, A.copy(), op, 3)


@ct.function
def seven(v):
    return v * 7


@ct.function(tile=False)
def for_the_host(v):
    return v * 7


def test_declared_functions():
    """Those that ct.function declares, as operators and in them."""
    o = np.zeros_like(A)
    for op, want in ((seven, A * 7), (lambda v: seven(v) + 1, A * 7 + 1),
                     (ct.function(made(2), host=True), A * 2 + np.maximum(A, 0))):
        compute.unary_transform(A, o, op, len(A))
        assert np.array_equal(o, want)
    for op in (for_the_host, lambda v: for_the_host(v)):
        with pytest.raises(UnsupportedCallError, match=r"declared host only[\s\S]*argument `op`"):
            compute.unary_transform(A, o, op, len(A))


def test_wrappers_take_what_they_take():
    """Not what the wrapped function does."""
    def scale(k, v):
        return k * v

    @functools.wraps(scale)
    def doubled(v):
        return scale(2, v)
    o = np.zeros_like(A)
    compute.unary_transform(A, o, doubled, len(A))
    assert np.array_equal(o, A * 2)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_floats_of_eight_bits(dtype):
    """Well-known operators compute in float32, and round once."""
    dtype = getattr(ml_dtypes, dtype)
    x = np.array([3, -0.5, np.nan, 448, -7]).astype(dtype)
    y = np.array([1, 2, 2, -0.0, -7]).astype(dtype)
    wide = x.astype(np.float32), y.astype(np.float32)
    o, b = np.zeros(5, dtype), np.zeros(5, bool)
    for kind, ufunc in ((OpKind.PLUS, np.add), (OpKind.MULTIPLIES, np.multiply), (OpKind.MAXIMUM, np.fmax)):
        compute.binary_transform(x, y, o, kind, 5)
        assert np.array_equal(o.astype(float), ufunc(*wide).astype(dtype).astype(float), equal_nan=True)
    for kind, ufunc in ((OpKind.LESS, np.less), (OpKind.EQUAL_TO, np.equal)):
        compute.binary_transform(x, y, b, kind, 5)
        assert b.tolist() == ufunc(*wide).tolist()
    keys = np.array([3, -1, 2, 0.5]).astype(dtype)
    compute.merge_sort(keys, None, keys, None, 4, OpKind.LESS)
    assert keys.astype(float).tolist() == [-1, 0.5, 2, 3]


TRUTHS = {OpKind.PLUS: lambda a, b: a + b, OpKind.MINUS: lambda a, b: a - b, OpKind.MULTIPLIES: lambda a, b: a * b,
          OpKind.MINIMUM: min, OpKind.MAXIMUM: max, OpKind.DIVIDES: lambda a, b: a // b, OpKind.MODULUS: lambda a, b: 0}


@pytest.mark.parametrize("kind", TRUTHS, ids=lambda kind: kind.name)
def test_arithmetic_of_truth_values_is_that_of_integers(kind):
    """Whose results become truth values where these are stored."""
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    truths, numbers = np.zeros(4, bool), np.zeros(4, int)
    n = 4
    if kind in (OpKind.DIVIDES, OpKind.MODULUS):
        a, b, n = a[1::2], b[1::2], 2  # not by 0
    right = [TRUTHS[kind](int(x), int(y)) for x, y in zip(a, b, strict=True)]
    compute.binary_transform(a, b, numbers, kind, n)
    compute.binary_transform(a, b, truths, kind, n)
    assert numbers[:n].tolist() == right and truths[:n].tolist() == list(map(bool, right))


@pytest.mark.parametrize(("kind", "fold"), [(OpKind.PLUS, np.any), (OpKind.MAXIMUM, np.any),
                                            (OpKind.MULTIPLIES, np.all), (OpKind.MINIMUM, np.all)])
@pytest.mark.parametrize("n", [1, 2, 700, 5000])
def test_sums_of_truth_values(kind, fold, n):
    for x in (np.zeros(n, bool), np.ones(n, bool), np.arange(n) == n // 2, np.arange(n) != n // 2):
        out, scanned = np.zeros(1, bool), np.zeros(n, bool)
        compute.reduce_into(x, out, n, kind)
        compute.inclusive_scan(x, scanned, kind, None, n)
        assert out[0] == fold(x) and scanned.tolist() == [fold(x[:k + 1]) for k in range(n)]
