"""What counts as the same result of two configurations."""

import ml_dtypes
import numpy as np
import pytest

from cutile.functions.tuning_check import Outcome, agree


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
