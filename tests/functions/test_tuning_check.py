"""What counts as the same result of two configurations."""

import ml_dtypes
import numpy as np
import pytest

from cutile.functions import tuning_check
from cutile.functions.tuning_check import Outcome, agree, as_begun, clear, differing
from tests.gpu.fake_driver import installed


def outcome(*a, dtype=np.float32):
    return Outcome(("y",), (np.array(a, dtype),))


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("a, b, dtype", [
    ((1, 2), (1, 2), np.int32), ((1.0, NAN, INF), (1.0, NAN, INF), np.float32), 
    ((1000, 0.01), (1000.001, 0.011), np.float32),
    ((1.0, 100.0), (1.003, 100.0), ml_dtypes.bfloat16), ((), (), np.float64), ((True,), (True,), bool),
])
def test_equal_enough(a, b, dtype):
    assert agree(outcome(*a, dtype=dtype), outcome(*b, dtype=dtype)) is None


@pytest.mark.parametrize("a, b, dtype, where", [
    ((1, 2), (1, 3), np.int32, "[1]"), ((1.0, NAN), (1.0, 1.0), np.float32, "[1]"),
    ((INF,), (-INF,), np.float32, "[0]"),
    ((1.0, 2.0), (1.0, 2.1), np.float32, "[1]"), ((0.0,), (1e-30,), np.float32, "[0]"),
    ((INF,), (1.0,), np.float32, "[0]"),
    ((1.0,), (NAN,), np.float16, "[0]"), ((True,), (False,), bool, "[0]"),
])
def test_different(a, b, dtype, where):
    why = agree(outcome(*a, dtype=dtype), outcome(*b, dtype=dtype))
    assert why.startswith(f"`y`{where} is ") and f"of {len(a)} elements differ" in why


def test_other_shapes():
    assert "shape" in agree(outcome(1), outcome(1, 2)) and "arrays" in agree(Outcome((), ()), outcome(1))


@pytest.mark.parametrize("shape", [(3, 250001), (70001, 3), (1,), ()])  # with threads, without, one part
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_arrays_are_compared_in_parts(shape, order):
    a = np.asarray(np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) + 1, order=order)
    want = Outcome(("y",), (a,))
    assert want.scales == (a.max(),) and differing(Outcome(("y",), (a.copy(),)), want) is None
    last = tuple(n - 1 for n in shape)
    b = a.copy()
    b[last] = np.nan
    b[(0,) * len(shape)] *= 1 + 2.0**-12 if a.size == 1 else 1
    found = differing(Outcome(("y",), (b,)), want)
    assert found.index == last and found.count == 1 and found.size == a.size
    aside = np.zeros(shape, bool)
    aside[last] = True
    assert differing(Outcome(("y",), (b,)), want, {"y": aside}) is None
    assert differing(Outcome(("y",), (b,)), want, {"x": aside}) is not None


def test_tolerances_are_those_of_the_output():
    """A reference in float64 allows what the dtype of the output does."""
    want = Outcome(("y",), (np.ones(4),))
    for dtype, far in ((np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2), (np.float32, 1e-4)):
        assert agree(outcome(*[1 + far] * 4, dtype=dtype), want) is None
        assert agree(outcome(*[1 + 8 * far] * 4, dtype=dtype), want) is not None
    assert agree(outcome(1, 1, 1, 1, dtype=np.int32), want) is None
    assert agree(outcome(1, 1, 1, 2, dtype=np.int32), want) is not None


def test_what_elements_begin_as():
    for dtype, begun in ((np.float32, np.nan), (ml_dtypes.bfloat16, np.nan), (np.int8, -128), (np.uint16, 2**16 - 1),
                         (bool, True)):
        assert as_begun(np.array([begun, 0, 1 - bool(dtype is bool)], dtype)).tolist() == [True, False, False]


def test_outputs_are_cleared(monkeypatch):
    a = np.full((2, 3), 7, np.int16)
    clear(a)
    assert not a.any()
    fake = installed(monkeypatch)
    set_to = []
    monkeypatch.setattr(fake, "cuMemsetD8", lambda p, v, n: set_to.append((p, v, n)) or (0,), raising=False)
    there = type("There", (), {"__cuda_array_interface__": {"data": (1 << 20, False), "shape": (2, 3), "version": 3,
                                                            "typestr": "<f4", "strides": None}})()
    monkeypatch.setattr(tuning_check, "wait", lambda ordinal, stream: set_to.append(ordinal))
    clear(there)
    assert set_to == [(1 << 20, 0, 24), 0]
