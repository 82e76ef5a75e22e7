"""What an assertion about numbers says: the first that differs, and the operands that gave it."""

import numpy as np
import pytest

from conformance.harness.number_comparison import assert_within, same_numbers

X, Y = np.array([1.0, 2.0, -0.0]), np.array([5, 6, 7], np.int16)


def test_the_operands_of_the_first_that_differs():
    with pytest.raises(AssertionError, match=r"add: 2 of 3 differ, first at 1: got 8.0, wanted 9.0; of 2.0, 6$"):
        same_numbers(X + Y, np.array([6.0, 9.0, 8.0]), "add", [X, Y])
    with pytest.raises(AssertionError, match=r"wanted 9.0$"):
        same_numbers(X + Y, np.array([6.0, 9.0, 7.0]))


def test_zeros_have_signs_and_any_nan_equals_any():
    same_numbers(np.array([np.nan, -0.0]), np.array([-np.nan, -0.0]))
    with pytest.raises(AssertionError, match="got 0.0, wanted -0.0; of -0.0"):
        same_numbers(np.abs(X), X, of=[X])


def test_units_in_the_last_place():
    want = np.array([1.0, 2.0, np.inf])
    near = np.nextafter(want, 0, dtype=np.float32).astype(float)
    near[2] = np.inf
    assert_within(near, want, 1, "float32", [X])
    with pytest.raises(AssertionError, match=r"ulp at 0: .* for 1.0; of 1.0$"):
        assert_within(want + 1e-3, want, 1, "float32", [X])
    with pytest.raises(AssertionError, match="got 3.0, wanted inf; of -0.0"):
        assert_within(np.array([1.0, 2.0, 3.0]), want, 1, "float32", [X])
