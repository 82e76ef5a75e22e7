"""cutile/ops/_hyperbolic.py against many digits."""

import math

import mpmath
import numpy as np
import pytest

from cutile import settings
from cutile.ops import _hyperbolic

rng = np.random.default_rng(0)
POINTS = np.concatenate([
    rng.uniform(-710, 710, 400), rng.uniform(-100.1, 100.1, 400), rng.uniform(-30, 30, 600), rng.uniform(-1, 1, 800),
    np.ldexp(1.5, -rng.integers(0, 1074, 200)), [710.4758600739439, -710.4, 100.0, 99.99999, 5e-324]])


@pytest.fixture(params=[True, False], ids=["compiled", "numpy"], autouse=True)
def way(request):
    with settings.override(COMPILED=request.param):
        yield


@pytest.mark.parametrize("name", ["sinh", "tanh"])
def test_within_one_unit(name):
    with np.errstate(all="ignore"):
        got = getattr(_hyperbolic, name)(POINTS)
    with mpmath.workdps(50):
        for x, y in zip(POINTS.tolist(), got.tolist(), strict=True):
            want = getattr(mpmath, name)(mpmath.mpf(x))
            assert abs(mpmath.mpf(y) - want) <= 0.7 * math.ulp(float(want)), x


@pytest.mark.parametrize("name, xs, want", [
    ("sinh", [0.0, -0.0, math.inf, -math.inf, math.nan, 711.0, -1e300], 
     [0.0, -0.0, math.inf, -math.inf, math.nan, math.inf, -math.inf]),
    ("tanh", [0.0, -0.0, math.inf, -math.inf, math.nan, 50.0, -1e300], [0.0, -0.0, 1.0, -1.0, math.nan, 1.0, -1.0])])
def test_special_values(name, xs, want):
    with np.errstate(all="ignore"):
        got = getattr(_hyperbolic, name)(np.array(xs))
    assert np.array_equal(got, want, equal_nan=True) and np.array_equal(np.signbit(got[:4]), np.signbit(want[:4]))
    assert getattr(_hyperbolic, name)(np.float64(0.0)) == 0.0
