"""Activation functions against mpmath."""

import mpmath
import numpy as np
import pytest

from cutile import lib
from tests.lib.applied import FLOATS, applied, close, errors, identical, samples

INF, NAN = np.inf, np.nan


def gelu_tanh(x):
    return x / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)))


def softplus(x):
    return mpmath.log1p(mpmath.exp(x))


def silu(x):
    return x / (1 + mpmath.exp(-x))


# The function, its exact value, the largest operand, and the stated ulp of float32 and float64.
IN_ULP = {lib.sigmoid: (mpmath.sigmoid if hasattr(mpmath, "sigmoid") else lambda x: 1 / (1 + mpmath.exp(-x)), 100, 4),
          lib.silu: (silu, 80, 5), lib.softplus: (softplus, 100, 6)}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("f", IN_ULP)
def test_accuracy(f, dtype):
    exact, most, ulp = IN_ULP[f]
    x = samples(dtype, most)
    assert errors(x, applied(f, x), exact).max() <= (ulp if np.dtype(dtype).itemsize > 2 else 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("f", "exact"), [(lib.gelu, lambda x: x * mpmath.ncdf(x)), (lib.gelu_tanh, gelu_tanh)])
def test_accuracy_beside_the_operand(f, exact, dtype):
    x = samples(dtype, 12)
    assert errors(x, applied(f, x), exact, relative_to="x").max() <= 4


@pytest.mark.parametrize("dtype", FLOATS[:2])
@pytest.mark.parametrize(("f", "exact"), [(lib.gelu, lambda x: x * mpmath.ncdf(x)), (lib.gelu_tanh, gelu_tanh)])
def test_short_floats_are_rounded_once(f, exact, dtype):
    x = samples(dtype, 3)
    assert errors(x, applied(f, x), exact).max() <= 1


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.float32, -120, -80), (np.float64, -760, -650)])
def test_silu_far_to_the_left(dtype, low, high):
    """Near the subnormal numbers exp has few digits."""
    x = np.linspace(low, high, 256, dtype=dtype)
    y, smallest = applied(lib.silu, x), mpmath.mpf(2)**(-149 if dtype is np.float32 else -1074)
    in_ulp = errors(x, y, silu)
    for v, got, ulp in zip(map(float, x), map(float, y), in_ulp, strict=True):
        assert ulp <= 5 or abs(got - silu(mpmath.mpf(v))) <= 2 * abs(v) * smallest


SPECIAL = np.array([0.0, -0.0, INF, -INF, NAN, 1e4, -1e4, 1], np.float32)


@pytest.mark.parametrize(("f", "want"), [
    (lib.sigmoid, [0.5, 0.5, 1, 0, NAN, 1, 0, 0.7310586]),
    (lib.silu, [0.0, -0.0, INF, -0.0, NAN, 1e4, -0.0, 0.7310586]),
    (lib.gelu, [0.0, -0.0, INF, -0.0, NAN, 1e4, -0.0, 0.8413447]),
    (lib.gelu_tanh, [0.0, -0.0, INF, -0.0, NAN, 1e4, -0.0, 0.841192]),
    (lib.softplus, [0.6931472, 0.6931472, INF, 0, NAN, 1e4, 0, 1.3132617])])
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(f, want, dtype):
    want = np.array(want).astype(dtype)
    got = applied(f, SPECIAL.astype(dtype))
    exact = np.isin(want.astype(float), (0, 0.5, 1, 1e4, INF, -INF)) | np.isnan(want)
    assert identical(got[exact], want[exact]), got
    assert close(got[~exact], want[~exact]), got
