"""cummax, cummin and topk against NumPy, with ties, zeros of both signs, infinities and NaN."""

import numpy as np
import pytest

import cutile as ct
from cutile import lib
from tests.lib.applied import FLOATS, applied, identical, refused

RNG = np.random.default_rng(0)
INF, NAN = np.inf, np.nan
INTEGERS = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64]


def numbers(dtype, shape=(4, 16)):
    if np.dtype(dtype).kind in "iu":
        i = np.iinfo(dtype)
        return RNG.integers(i.min, i.max, shape, dtype, endpoint=True)
    return RNG.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_running_extremes(dtype):
    x = numbers(dtype)
    for f, numpy in [(lib.cummax, np.maximum), (lib.cummin, np.minimum)]:
        for axis in (0, 1, -1):
            assert np.array_equal(applied(lambda t: f(t, axis), x), numpy.accumulate(x, axis))  # noqa: B023
        back = applied(lambda t: f(t, 1, reverse=True), x)  # noqa: B023
        assert np.array_equal(back, numpy.accumulate(x[:, ::-1], 1)[:, ::-1])


def test_special_values_of_running_extremes():
    x = np.array([-0.0, 0.0, -INF, NAN, INF, 1, 2, 3], np.float32)
    assert identical(applied(lib.cummax, x), np.array([-0.0, 0.0, 0.0, *[NAN] * 5], np.float32))
    assert identical(applied(lib.cummin, x), np.array([-0.0, -0.0, -INF, *[NAN] * 5], np.float32))


def test_booleans_are_counted_as_integers():
    x = np.array([False, True, False, True])
    assert applied(lib.cummax, x, dtype=np.int32).tolist() == [0, 1, 1, 1]


def expected(x, k):
    """Values and positions: NaN first, then falling, the first of equal ones first."""
    def key(row, i):
        v = row[i].item() if row.dtype.kind in "iu" else float(row[i])
        return (v == v, -v if v == v else 0, i)

    order = np.array([sorted(range(len(r)), key=lambda i: key(r, i))[:k] for r in x], np.int32)
    return np.take_along_axis(x, order.astype(np.int64), 1), order



@pytest.mark.parametrize("k", [1, 4, 16])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_topk(dtype, k):
    x = numbers(dtype)
    values, indices = expected(x, k)
    assert np.array_equal(applied(lambda t: lib.topk(t, k)[0], x, shape=(4, k)), values)
    assert np.array_equal(applied(lambda t: lib.topk(t, k)[1], x, shape=(4, k), dtype=np.int32), indices)


SPECIAL = np.array([[1, NAN, INF, -INF, NAN, 1, 0.0, -0.0], [-INF] * 8, [NAN] * 8, [0.0, -0.0] * 2 + [-1] * 4],
                   np.float32)


def test_topk_of_special_values():
    values, indices = expected(SPECIAL, 8)
    assert np.array_equal(applied(lambda t: lib.topk(t, 8)[1], SPECIAL, dtype=np.int32), indices)
    assert identical(applied(lambda t: lib.topk(t, 8)[0], SPECIAL), values)


def test_topk_of_the_least_integers():
    x = np.array([[-128, -128, -128, -127]], np.int8)
    assert applied(lambda t: lib.topk(t, 4)[1], x, dtype=np.int32).tolist() == [[3, 0, 1, 2]]


def test_topk_of_other_ranks():
    x = numbers(np.float32, (2, 2, 8))
    assert np.array_equal(applied(lambda t: lib.topk(t, 2)[0], x, shape=(2, 2, 2)), -np.sort(-x, -1)[..., :2])
    assert np.array_equal(applied(lambda t: lib.topk(t, 2)[0], x[0, 0], shape=(2,)), -np.sort(-x[0, 0])[:2])


@pytest.mark.parametrize(("f", "says"), [
    (lambda t: lib.topk(t, 3), "topk.*power of two.*got the number 3"),
    (lambda t: lib.topk(t, 16), r"topk.*at most the size \(8,\) of a row, got the number 16"),
    (lambda t: lib.topk(ct.sum(t), 1), "topk.*of a row"),
    (lambda t: lib.cummax(t, 7), "axis 7 is out of range"),
    (lambda t: lib.cummax(1.5), "cummax.*expected a tile, got the number 1.5"),
])
def test_what_is_refused(f, says):
    refused(f, np.zeros((4, 8), np.float32), says=says)
