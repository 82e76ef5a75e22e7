"""Sorts by NumPy, with what they take for themselves. `test_radix.py` and others compare them with stable sorts."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.compute import SortOrder
from cutile.compute.host_sort import _in_order_of_numpy, _length_of_rows, _order, _order_in_segments
from cutile.compute.operators import operator
from cutile.compute.pairs import bits_order
from cutile.compute.value_types import value_type

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64",
                                   "bfloat16", "float8_e4m3fn", "float8_e8m0fnu"])
@pytest.mark.parametrize("order", SortOrder)
def test_bits_without_choices_are_the_same(dtype, order):
    dtype = np.dtype(dtype) if hasattr(np, dtype) else np.dtype(getattr(ml_dtypes, dtype))
    raw = RNG.integers(0, 256, (3000, dtype.itemsize)).astype(np.uint8)
    raw[::7] = 0
    raw[::14, -1] = 128
    keys = raw.reshape(-1).view(dtype) if dtype != np.bool_ else raw[:, 0] > 99
    bits = bits_order(value_type(dtype), order)
    found = [np.zeros(len(keys), np.uint64) for _ in range(2)]
    for out, of in zip(found, (operator(lambda k: bits.of(k)), operator(lambda k: bits.of_many(k))), strict=True):
        compute.unary_transform(keys, out, of.function, len(keys))
    assert np.array_equal(*found)


@pytest.mark.parametrize("width", [8, 32, 64])
def test_order_is_stable(width):
    found = RNG.integers(0, 20, 1000).astype(np.uint32 if width < 64 else np.uint64)
    assert np.array_equal(_order(found, width), np.argsort(found, kind="stable"))
    for segments in ([(0, 400), (400, 800)], [(700, 1000), (0, 3)], []):
        places = _order_in_segments(found, segments, width)
        for a, b in segments:
            assert np.array_equal(places[a:b], a + np.argsort(found[a:b], kind="stable"))


def test_rows():
    assert _length_of_rows([(5, 8), (8, 11)]) == 3
    assert [_length_of_rows(s) for s in ([], [(0, 3), (4, 7)], [(0, 3), (3, 7)], [(3, 6), (0, 3)])] == [None] * 4


def test_floats_that_numpy_orders_otherwise():
    assert _in_order_of_numpy(np.array([1, -np.inf, 0.0])) and _in_order_of_numpy(np.array([3, -1]))
    assert not _in_order_of_numpy(np.array([1, np.nan])) and not _in_order_of_numpy(np.array([1, -0.0]))


def test_one_storage_for_all_bits():
    """The size that an object asks for does not depend on the bits of a call."""
    keys, out = RNG.integers(-9, 9, 300), np.zeros(300, int)
    sort = compute.make_radix_sort(keys, out, None, None, SortOrder.ASCENDING)
    assert sort(None, keys, out, None, None, 300) == sort(None, keys, out, None, None, 300, 0, 4)


def test_keys_that_operators_make_are_made_once():
    """An iterator as input is read once, though its items have bits and are moved."""
    calls = np.zeros(1, np.int64)

    def counted(v):
        ct.atomic_add(calls, 0, 1)
        return v % 7

    out = np.zeros(50, int)
    compute.radix_sort(compute.TransformIterator(np.arange(50), counted), out, None, None, 50, SortOrder.DESCENDING)
    assert out.tolist() == sorted((v % 7 for v in range(50)), reverse=True) and calls[0] == 50
