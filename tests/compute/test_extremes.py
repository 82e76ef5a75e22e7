"""Which operators are the larger or smaller of two integers: each that is found gives what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.compute.operators import operator
from cutile.compute.results import result_of
from cutile.compute.ufuncs import ufunc_to_reduce
from cutile.compute.value_types import Number


def early(a, b):
    if a >= b:
        return a
    return b


def otherwise(a, b):
    if a < b:
        found = b
    else:
        found = a
    return found


def helped(a, b):
    return early(b, a)


FOUND = [(lambda a, b: a if a > b else b, "maximum"), (lambda a, b: b if a > b else a, "minimum"),
         (lambda a, b: a if a <= b else b, "minimum"), (lambda x, y: y if y < x else x, "minimum"), (early, "maximum"),
         (otherwise, "maximum"), (helped, "maximum"), (lambda a, b: a if not a < b else b, None),
         (lambda a, b: a if a > 3 else b, ""),
         (lambda a, b: a if a > b else a, ""), (lambda a, b: a + b if a > b else b, ""),
         (lambda a, b: a if a == b else b, ""), (lambda a, b: 3 if a > b else b, "")]


@pytest.mark.parametrize("op, name", FOUND)
def test_what_is_found(op, name):
    t = Number(ct.int32)
    single = result_of(operator(op), t, t).single
    assert name is None or single == name
    floats = Number(ct.float32)
    assert result_of(operator(op), floats, floats).single == ""  # NaN tells them apart
    if single:
        assert ufunc_to_reduce(operator(op), t).op == single


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_values(dtype):
    x, out = np.frombuffer(np.random.default_rng(0).bytes(5000 * np.dtype(dtype).itemsize), dtype), np.zeros(1, dtype)
    for op, name in FOUND:
        if name:
            compute.reduce_into(x, out, len(x), op)
            assert out[0] == (x.max() if name == "maximum" else x.min())
