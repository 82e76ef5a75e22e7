"""Means, variances, norms, logsumexp and softmax against sums of mpmath and NumPy's float64."""

import math

import numpy as np
import pytest

import cutile as ct
from cutile import lib
from tests.lib.applied import FLOATS, applied, refused

RNG = np.random.default_rng(0)
INF, NAN = np.inf, np.nan
ROWS = RNG.normal(3, 2, (4, 128))


def unit(dtype):
    """The unit of the bounds: 2**-24 or 2**-53; short floats are computed in float32."""
    return 2.0**-53 if np.dtype(dtype) == np.float64 else 2.0**-24


def rounding(dtype, want):
    """How much rounding short floats once may add."""
    return np.abs(want) * {2: 2.0**-8}.get(np.dtype(dtype).itemsize, 0)


def exact_sum(values):
    return math.fsum(map(float, values))


def per_row(f, x):
    return np.array([f([float(v) for v in row]) for row in x])


def exact_mean(row):
    return exact_sum(row) / len(row)


def exact_var(row):
    m = exact_mean(row)
    return exact_sum((v - m)**2 for v in row) / len(row)


@pytest.mark.parametrize("dtype", FLOATS)
def test_mean(dtype):
    x = ROWS.astype(dtype)
    got, want = applied(lambda t: lib.mean(t, 1), x, shape=(4,)).astype(float), per_row(exact_mean, x)
    assert (np.abs(got - want) <= 130 * unit(dtype) * np.abs(x.astype(float)).mean(1) + rounding(dtype, want)).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shift", [0, 1000])
def test_var(dtype, shift):
    x = (ROWS + shift).astype(dtype)
    got, want = applied(lambda t: lib.var(t, 1), x, shape=(4,)).astype(float), per_row(exact_var, x)
    u = unit(dtype)
    bound = 136 * u * want + (132 * u * np.abs(x.astype(float)).mean(1))**2 + rounding(dtype, want)
    assert (np.abs(got - want) <= bound).all()


def test_axes_and_shapes():
    x = RNG.normal(size=(2, 4, 8)).astype(np.float32)
    for f, numpy in [(lib.mean, np.mean), (lib.var, np.var), (lib.std, np.std)]:
        for axis in (None, 0, -1, (0, 2), (1, -1)):
            for keep in (False, True):
                want = numpy(x.astype(float), axis=axis, keepdims=keep)
                got = applied(lambda t: f(t, axis, keepdims=keep), x, shape=want.shape or (1,))  # noqa: B023
                np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-5, atol=1e-7)
    for f, numpy in [(lib.norm, lambda v, a, k: np.sqrt((v * v).sum(a, keepdims=k))),
                     (lib.logsumexp, lambda v, a, k: np.log(np.exp(v).sum(a, keepdims=k)))]:
        for axis in (None, 0, -1, (0, 2)):
            for keep in (False, True):
                want = numpy(x.astype(float), axis, keep)
                got = applied(lambda t: f(t, axis, keepdims=keep), x, shape=want.shape or (1,))  # noqa: B023
                np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-6)


def test_the_shapes_are_those_of_numpy():
    @ct.kernel
    def kernel(x, out):
        t = ct.load(x, (0, 0), (4, 8))
        a, b, c, d = lib.norm(t, 1), lib.norm(t), lib.mean(t, 0, keepdims=True), lib.logsumexp(t, -1)
        ct.static_assert((a.shape, b.shape, c.shape, d.shape) == ((4,), (), (1, 8), (4,)))
        ct.store(out, (0,), a)

    ct.launch(None, (1,), kernel, (np.zeros((4, 8), np.float32), np.zeros(4, np.float32)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_elements_that_count(dtype):
    x = ROWS.astype(dtype)
    x[:, 100:] = 1000
    inner = x[:, :100].astype(float)
    for f, numpy in [(lib.mean, np.mean), (lib.var, np.var), (lib.std, np.std)]:
        def masked(t):
            return f(t, 1, where=ct.arange(128, dtype=ct.int32) < 100)  # noqa: B023
        got = applied(masked, x, shape=(4,)).astype(float)
        np.testing.assert_allclose(got, numpy(inner, axis=1), rtol=1e-5 if np.dtype(dtype).itemsize > 2 else 2**-8)


def test_degrees_of_freedom():
    x = ROWS.astype(np.float32)
    np.testing.assert_allclose(applied(lambda t: lib.var(t, 1, ddof=1), x, shape=(4,)), ROWS.var(1, ddof=1), rtol=1e-5)

    def masked(t):
        return lib.std(t, 1, ddof=1, where=ct.arange(128, dtype=ct.int32) < 3)
    np.testing.assert_allclose(applied(masked, x, shape=(4,)), ROWS[:, :3].std(1, ddof=1), rtol=1e-5)


def test_no_element_counts():
    got = applied(lambda t: lib.mean(t, where=t > 1e9), ROWS.astype(np.float32), shape=(1,))
    assert np.isnan(got).all()


def test_integers_become_float32():
    x = np.full((4, 8), 100, np.int8)
    assert applied(lambda t: lib.mean(t, 1), x, shape=(4,), dtype=np.float32).tolist() == [100] * 4
    assert applied(lambda t: lib.norm(t, 1), x, shape=(4,), dtype=np.float32)[0] == pytest.approx(282.8427)


@pytest.mark.parametrize("scale", [1, 1e30, 1e-30, 3e38 / 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norm(dtype, scale):
    x = (ROWS * scale).astype(dtype)
    got = applied(lambda t: lib.norm(t, 1), x, shape=(4,)).astype(float)
    want = per_row(lambda r: math.hypot(*r), x)
    assert (np.abs(got - want) <= 68 * unit(dtype) * want).all()


def test_special_values_of_norm():
    x = np.array([[0, 0], [-0.0, 0], [INF, 1], [-INF, INF], [NAN, 1], [NAN, INF], [1e-45, 0], [3e38, 0]], np.float32)
    got = applied(lambda t: lib.norm(t, 1), x, shape=(8,))
    np.testing.assert_array_equal(got, np.array([0, 0, INF, INF, NAN, NAN, 1e-45, 3e38], np.float32))


@pytest.mark.parametrize("shift", [0, 90, -500, 3e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logsumexp(dtype, shift):
    x = (ROWS + shift).astype(dtype)
    got = applied(lambda t: lib.logsumexp(t, 1), x, shape=(4,)).astype(float)
    most = x.astype(float).max(1)
    want = most + np.log(per_row(exact_sum, np.exp(x.astype(float) - most[:, None])))
    u = unit(dtype)
    assert (np.abs(got - want) <= 136 * u + 2 * u * np.abs(most) + 2.0**-51 * np.abs(want)).all()


def test_special_values_of_logsumexp():
    x = np.array([[-INF, -INF], [-INF, 1], [INF, 1], [INF, INF], [INF, -INF], [NAN, 1], [NAN, INF], [NAN, NAN]],
                 np.float32)
    got = applied(lambda t: lib.logsumexp(t, 1), x, shape=(8,))
    np.testing.assert_array_equal(got, np.array([-INF, 1, INF, INF, INF, NAN, NAN, NAN], np.float32))


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax(dtype):
    x = (ROWS * 5).astype(dtype)
    got, v = applied(lib.softmax, x).astype(float), x.astype(float)
    distance = np.abs(v - v.max(1, keepdims=True))
    e = np.exp(v - v.max(1, keepdims=True))
    want = e / per_row(exact_sum, e)[:, None]
    smallest = {2: 2.0**-24, 4: 2.0**-149, 8: 0}[np.dtype(dtype).itemsize]
    assert (np.abs(got - want) <= (136 + distance) * unit(dtype) * want + rounding(dtype, want) + smallest).all()


def test_softmax_along_other_axes():
    x = RNG.normal(size=(4, 8)).astype(np.float32)
    e = np.exp(x.astype(float))
    for axis, total in [(0, e.sum(0, keepdims=True)), (None, e.sum()), ((0, 1), e.sum()), (1, e.sum(1, keepdims=True))]:
        np.testing.assert_allclose(applied(lambda t: lib.softmax(t, axis), x), e / total, rtol=2e-6)  # noqa: B023


def test_special_values_of_softmax():
    x = np.array([[-INF, 0], [-INF, -INF], [INF, 0], [NAN, 0]], np.float32)
    np.testing.assert_array_equal(applied(lib.softmax, x), [[0, 1], [NAN, NAN], [NAN, NAN], [NAN, NAN]])


@pytest.mark.parametrize("f", [lib.mean, lib.var, lib.std, lib.norm, lib.logsumexp, lib.softmax])
def test_an_axis_out_of_range(f):
    e = refused(lambda t: f(t, 5), np.zeros((4, 8), np.float32), says="axis 5 is out of range for rank 2")
    assert __file__ in str(e)
