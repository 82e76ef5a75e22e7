"""erf, log1p, expm1, rint and trunc against mpmath and NumPy."""

import mpmath
import numpy as np
import pytest

from cutile import lib
from tests.lib.applied import FLOATS, applied, close, errors, identical, refused, samples

INF, NAN = np.inf, np.nan


def log1p(x):
    return mpmath.log1p(x) if x > -1 else mpmath.mpf("-inf") if x == -1 else mpmath.nan


# The function, its exact value, the largest operand, and the stated ulp of float32 and float64.
ACCURACY = {lib.erf: (mpmath.erf, 8, 2), lib.log1p: (log1p, 6e4, 4), lib.expm1: (mpmath.expm1, 100, 6)}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("f", ACCURACY)
def test_accuracy(f, dtype):
    exact, most, ulp = ACCURACY[f]
    x = samples(dtype, most)
    assert errors(x, applied(f, x), exact).max() <= (ulp if np.dtype(dtype).itemsize > 2 else 1)


SPECIAL = np.array([0.0, -0.0, INF, -INF, NAN, 1000, -100, -1], np.float32)


@pytest.mark.parametrize(("f", "want"), [
    (lib.erf, [0.0, -0.0, 1, -1, NAN, 1, -1, -0.8427008]),
    (lib.log1p, [0.0, -0.0, INF, NAN, NAN, 6.908755, NAN, -INF]),
    (lib.expm1, [0.0, -0.0, INF, -1, NAN, INF, -1, -0.63212055])])
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(f, want, dtype):
    want = np.array(want).astype(dtype)
    got = applied(f, SPECIAL.astype(dtype))
    exact = np.isin(want.astype(float), (0, 1, -1, INF, -INF)) | np.isnan(want)
    assert identical(got[exact], want[exact]), got
    assert close(got[~exact], want[~exact]), got


def test_tiny_operands():
    x = np.array([1e-40, -1e-40, 1e-45, -3e-39], np.float32)
    for f in ACCURACY:
        assert errors(x, applied(f, x), ACCURACY[f][0]).max() <= 1


def test_integers_become_float32():
    x = np.arange(-4, 4, dtype=np.int8)
    for f in ACCURACY:
        assert np.array_equal(applied(f, x, dtype=np.float32), applied(f, x.astype(np.float32)), equal_nan=True)


ROUNDED = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -0.3, 0.0, -0.0, 3.2, -3.7, 1023.5, -1024, 5e4, INF, -INF, NAN])
LARGE = np.array([8388607.5, 8388608.5, -8388607.5, 4503599627370495.5, -4503599627370496.5, 1e300, -1e300, 2.0**62])


@pytest.mark.parametrize(("f", "numpy"), [(lib.rint, np.rint), (lib.trunc, np.trunc)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_to_integers(f, numpy, dtype):
    for x in (ROUNDED, samples(np.float64, 300), *([LARGE] if dtype is np.float64 else [])):
        x = x.astype(dtype)
        assert identical(applied(f, x).astype(float), numpy(x.astype(float)))


@pytest.mark.parametrize("f", [lib.rint, lib.trunc])
def test_rounding_an_integer_is_refused(f):
    refused(f, np.zeros(4, np.int32), says=f"{f.__name__}.*expected a tile of floats, got int32.*leave it out")
