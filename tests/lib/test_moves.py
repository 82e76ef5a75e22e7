"""flip, roll and one_hot against NumPy, on every kind of element."""

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile import lib
from tests.lib.applied import applied, refused

RNG = np.random.default_rng(0)
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.int8, np.uint64, np.bool_]


def numbers(shape, dtype):
    return RNG.integers(0, 2 if dtype is np.bool_ else 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    x = numbers((4, 8), dtype)
    assert np.array_equal(applied(lambda t: lib.flip(t, 1), x), np.flip(x, 1))
    assert np.array_equal(applied(lambda t: lib.roll(t, 3, 1), x), np.roll(x, 3, 1))


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 2), (-1, 0), ()])
def test_axes_of_flip(axis):
    x = numbers((2, 8, 4), np.int32)
    assert np.array_equal(applied(lambda t: lib.flip(t, axis), x), np.flip(x, axis))


@pytest.mark.parametrize("shape", [(1,), (2,), (1, 1), (64,), (2, 1, 4)])
@pytest.mark.parametrize("shift", [0, 1, -1, 2, 5, 63, 64, -100, 10**6 + 3])
def test_shifts(shape, shift):
    x = numbers(shape, np.int32)
    for axis in (None, *range(len(shape))):
        assert np.array_equal(applied(lambda t: lib.roll(t, shift, axis), x), np.roll(x, shift, axis))  # noqa: B023


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8, np.int64])
def test_a_shift_of_run_time(dtype):
    x, shifts = numbers((8, 16), np.float32), np.array([0, 1, 5, 16, 17, 100, -1, -37]).astype(dtype)
    shifts = shifts if np.dtype(dtype).kind == "i" else np.abs(shifts.astype(np.int8)).astype(dtype)

    @ct.kernel
    def kernel(x, shifts, y):
        row = ct.bid(0)
        ct.store(y, (row, 0), lib.roll(ct.load(x, (row, 0), (1, 16)), ct.gather(shifts, row), 1))

    y = np.zeros_like(x)
    ct.launch(None, (8,), kernel, (x, shifts, y))
    assert np.array_equal(y, np.stack([np.roll(r, int(s)) for r, s in zip(x, shifts, strict=True)]))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.bool_])
def test_one_hot(dtype):
    x = numbers((2, 4), dtype)
    x = x if dtype is np.bool_ else x % x.dtype.type(16)
    want = np.eye(16, dtype=np.float32)[x.astype(np.int64)]
    assert np.array_equal(applied(lambda t: lib.one_hot(t, 16), x, shape=(2, 4, 16), dtype=np.float32), want)


def test_one_hot_of_other_dtypes_and_indices_out_of_range():
    x = np.array([-1, 3, 4, 300], np.int32)
    got = applied(lambda t: lib.one_hot(t, 4, ct.int8), x, shape=(4, 4), dtype=np.int8)
    assert got.tolist() == [[0] * 4, [0, 0, 0, 1], [0] * 4, [0] * 4]
    x = np.array([127, -1], np.int8)
    wide = applied(lambda t: lib.one_hot(t, 512, ct.bool_), x, shape=(2, 512), dtype=np.bool_)
    assert wide.sum(1).tolist() == [1, 0]


@pytest.mark.parametrize(("f", "says"), [
    (lambda t: lib.flip(t, 2), "flip.*axis 2 is out of range for rank 2"),
    (lambda t: lib.flip(t, 1.0), "flip.*axis 1.0"),
    (lambda t: lib.roll(t, 1.5), "roll.*shift must be an integer, got the number 1.5"),
    (lambda t: lib.roll(t, t), r"roll.*shift must be an integer, got float32 of shape \(4, 8\)"),
    (lambda t: lib.roll(t, 1, (0, 1)), "roll.*one integer or None"),
    (lambda t: lib.one_hot(t, 4), "one_hot.*expected a tile of integers, got float32"),
    (lambda t: lib.one_hot(t.astype(ct.int32), 5), "one_hot.*power of two.*the number 5"),
])
def test_what_is_refused(f, says):
    refused(f, np.zeros((4, 8), np.float32), says=says)


def test_an_array_is_refused():
    @ct.kernel
    def kernel(x, y):
        ct.store(y, 0, lib.flip(x))

    with pytest.raises(ct.TileStaticAssertionError, match="flip.*expected a tile, got an array of float32"):
        ct.launch(None, (1,), kernel, (np.zeros(4, np.float32), np.zeros(4, np.float32)))
