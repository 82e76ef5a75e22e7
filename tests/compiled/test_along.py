"""Extrema, their places, sums, products and prefixes along an axis: the compiled forms against the NumPy forms that
define them, on every dtype, length and layout.
"""

from __future__ import annotations

import numpy as np
import pytest

from cutile import dtypes as dt
from cutile import settings
from cutile.ops import _combine, _rounding
from tests.compiled.numpy_forms import ALONG, built
from tests.compiled.test_compiled import assert_same_bits, edges, nans

LENGTHS = [1 << k for k in range(8)]
SHAPES = [(), (3,), (70,), (5, 9), (2, 3, 37)]  # of the other axes; few rows, and many
rng = np.random.default_rng(24)


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def numbers(d: dt.DType, shape: tuple[int, ...]) -> np.ndarray:
    """Carriers of a dtype: numbers of all magnitudes, few of them so large that sums overflow, and many equal ones."""
    i = dt.info(d)
    if i.kind != "f":
        x = rng.integers(0, 256, (*shape, i.carrier.itemsize), np.uint8).view(i.carrier).reshape(shape)
        return np.where(rng.random(shape) < 0.3, i.carrier.type(3), x)
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 12, shape)
    x = _rounding.round_to(d, x.astype(i.carrier))
    return np.where(rng.random(shape) < 0.2, rng.choice(np.array([0.0, -0.0, 1, -1], i.carrier), shape), x)


def layouts(x: np.ndarray):
    """The array in several layouts: packed, transposed, reversed, with gaps, unaligned, and without an axis' stride."""
    yield x
    yield np.ascontiguousarray(x.T).T
    yield np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    wide = np.zeros(tuple(2 * n for n in x.shape), x.dtype)
    part = wide[tuple(slice(None, None, 2) for _ in x.shape)]
    part[...] = x
    yield part
    moved = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    moved[...] = x
    yield moved
    if x.ndim > 1:
        yield np.broadcast_to(x[:1], x.shape)


def assert_equal(name: str, x: np.ndarray, axis: int) -> None:
    """Both forms give the same bits; the compiled one may leave a sum with a NaN to the other."""
    d, numpy_form = ALONG[name]
    for backwards in (False, True)[:1 + ("prefixes" in name)]:
        got = built()[name](x, axis, backwards)
        with settings.override(COMPILED=False, PORTABLE="halves" in name):
            want = numpy_form(x, d, axis, backwards)
        if got is None:
            assert np.isnan(want).any() and name.startswith(("add", "mul", "sum"))
        else:
            assert_same_bits(got if "prefixes" in name else got.squeeze(axis), want)


@pytest.mark.parametrize("name", ALONG)
def test_numbers(name):
    d, _ = ALONG[name]
    for i, n in enumerate(LENGTHS):
        for others in (SHAPES[i % len(SHAPES)], SHAPES[-1 - i % 2]):
            for k in range(len(others) + 1 if not name.startswith("sum") else 1):
                axis = -1 - k
                shape = (*others[:len(others) - k], n, *others[len(others) - k:])
                x = numbers(d, shape)
                assert_equal(name, x, axis)
                if n in (2, 16):
                    for y in layouts(x):
                        assert_equal(name, y, axis)


@pytest.mark.parametrize("name", [n for n, (d, _) in ALONG.items() if dt.info(d).kind == "f"])
def test_nans_infinities_and_zeros(name):
    d, _ = ALONG[name]
    carrier = dt.info(d).carrier
    values = _rounding.round_to(d, np.concatenate([edges(carrier), nans(carrier)]))
    for n in (1, 2, 8, 64):
        assert_equal(name, rng.choice(values, (100, n)), -1)
        few = np.array([0.0, -0.0, np.nan, -np.inf, np.inf], carrier)
        assert_equal(name, rng.choice(few, (200, n), p=(0.3, 0.3, 0.2, 0.1, 0.1)), -1)
        assert_equal(name, rng.choice(few[:2], (200, n)), -1)
        assert_equal(name, np.full((40, n), np.nan, carrier), -1)


@pytest.mark.parametrize("name", ["max float32", "sum float32", "add prefixes int32", "argmin float64"])
def test_the_result_lies_in_memory_as_the_operand_does(name):
    x = numbers(ALONG[name][0], (16, 40, 50)).transpose(1, 2, 0).copy().transpose(2, 0, 1)
    got = built()[name](x, 0)
    order = [k for k in (0, 1, 2) if got.shape[k] > 1]
    assert sorted(order, key=got.strides.__getitem__) == sorted(order, key=x.strides.__getitem__)


def test_no_rows_give_no_results():
    for shape, axis in (((0, 8), 1), ((3, 0, 8), 2)):
        assert built()["max float32"](np.zeros(shape, np.float32), axis).shape == (*shape[:-1], 1)
        assert built()["add prefixes float32"](np.zeros(shape, np.float32), axis).shape == shape


def test_what_is_no_row_of_a_suitable_length_is_refused():
    largest = built()["max float32"]
    for x, axis in ((np.zeros((4, 6), np.float32), 1), (np.zeros((4, 256), np.float32), 1),
                    (np.zeros((4, 8), np.float32), 2), (np.zeros((0, 8), np.float32), 0)):
        with pytest.raises(ValueError, match="no such axis"):
            largest(x, axis)
    with pytest.raises(TypeError, match="expected an array"):
        largest(np.zeros((4, 8), np.int32), 1)


def test_ops_use_them(monkeypatch):
    asked = []
    monkeypatch.setattr(_combine, "form", lambda name: asked.append(name))
    for name, (d, numpy_form) in ALONG.items():
        asked.clear()
        with settings.override(PORTABLE="halves" in name):
            numpy_form(numbers(d, (3, 8)), d, -1, False)
        assert asked == [name]
