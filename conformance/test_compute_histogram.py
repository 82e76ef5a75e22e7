"""Histograms with bins of equal width [HST]."""

import ml_dtypes
import numpy as np
import pytest

from conformance.harness.api import clause, ct

X = np.random.default_rng(11).integers(-100, 101, 5001)


def counted(samples, levels, lower, upper):
    out = np.full(levels, 5, np.int32)
    ct.compute.histogram_even(d_samples=samples, d_histogram=out, num_output_levels=levels, lower_level=lower,
                              upper_level=upper, num_samples=len(samples))
    assert out[-1] == 5
    return out[:-1].tolist()


@clause("HST-1.bins", "HST-1.overwrite", "HST-2.integers")
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("levels, lower, upper", [(2, 0, 1), (8, -50, 41), (201, -100, 100), (5, -(1 << 60), 1 << 60)])
def test_integers(dtype, levels, lower, upper):
    want = [0] * (levels - 1)
    for s in X.tolist():
        if lower <= s < upper:
            want[(s - lower) * (levels - 1) // (upper - lower)] += 1
    assert counted(X.astype(dtype), levels, lower, upper) == want


@clause("HST-2.integers")
def test_large_integers():
    x = np.array([0, 1, 1 << 63, (1 << 64) - 1], np.uint64)
    assert counted(x, 2, np.uint64(0), np.uint64((1 << 64) - 1)) == [3]
    assert counted(x >> np.uint64(1), 3, np.uint64(0), np.uint64((1 << 63) - 1)) == [2, 1]


@clause("HST-2.floats", "HST-4.bfloat16")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_floats(dtype):
    """Samples and levels that are exact, so that no sample is at the edge of two bins by rounding."""
    x = (X / 32).astype(dtype)
    want = np.histogram(x.astype(np.float64), 16, (-4, 4))[0].tolist()
    x = np.concatenate((x, np.array([np.nan, np.inf, -np.inf, 4], dtype)))
    assert counted(x, 17, -4.0, 4.0) == want
    assert counted(x, 17, dtype(-4), dtype(4)) == want


@clause("HST-2.beyond", "HST-3.dtypes", "HST-6.levels")
@pytest.mark.parametrize("levels, lower, upper, error", [
    (5, -(1 << 62), 1 << 62, RuntimeError), (5, 0, 4.0, TypeError), (5, np.int32(0), np.int64(4), TypeError),
    (1, 0, 4, ValueError), (5, 4, 4, ValueError), (5, 5.0, 4.0, ValueError)])
def test_what_is_refused(levels, lower, upper, error):
    with pytest.raises(error):
        counted(X, levels, lower, upper)


@clause("HST-5.bounds")
def test_objects():
    out = np.zeros(10, np.int64)
    counter = ct.compute.make_histogram_even(X, out, np.array([11]), np.array([-100]), np.array([100]), len(X))
    storage = np.zeros(counter(None, X, out, np.array([11]), np.array([-100]), np.array([100]), len(X)), np.uint8)
    counter(storage, X, out, np.array([11]), np.array([0]), np.array([10]), len(X))
    assert out.tolist() == np.bincount(X[(X >= 0) & (X < 10)], minlength=10).tolist()
    with pytest.raises(TypeError):
        counter(storage, X, out, np.array([10]), np.array([0]), np.array([9]), len(X))
