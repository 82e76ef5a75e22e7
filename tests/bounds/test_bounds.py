"""cutile.bounds: how far implementations may differ, and that it follows what a kernel computes."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile.bounds import bounds
from tests.bounds.one_tile import N, data, of

# ------------------------------------------------------------------ where nothing is open


@pytest.mark.parametrize("body", [
    lambda t: t + t * t, lambda t: t / 3, lambda t: ct.sqrt(abs(t)), lambda t: ct.floor(t), lambda t: ct.max(t) - t,
    lambda t: ct.where(t > 0, t, -t), lambda t: ct.cat((ct.extract(t, (0,), (8,)), ct.extract(t, (1,), (8,))), 0),
])
def test_exact_kernels_have_no_bound(body):
    value, bound = of(body, data())
    assert not bound.any() and value.any()


def test_values_are_those_of_a_launch_and_arguments_stay():
    @ct.kernel
    def k(x, y):
        i = ct.bid(0)
        t = ct.load(x, (i,), (4,))
        for _ in range(3):
            t = ct.exp(t) * 0.25
            if i == 2:
                break
        ct.store(y, (i,), t)

    x, y, want = data(), np.zeros(N, np.float32), np.zeros(N, np.float32)
    ct.launch(None, (4,), k, (x, want))
    found = bounds(k, (4,), (x, y))
    assert not y.any() and np.array_equal(found.arrays[1].value, want)
    assert [a.name for a in found.arrays] == ["x", "y"] and not found.arrays[0].bound.any()
    assert (found.arrays[1].bound[:8] > found.arrays[1].bound[8:12].max()).any()  # three times exp, or once


# ------------------------------------------------------------------ distance from real numbers


@ct.kernel
def rounds(x, y, z):
    a, b = ct.load(x, 0, 64), ct.load(y, 0, 64)
    t = ct.exp(a) / (b * b + 1.0) - a * 3.0
    ct.store(z, 0, ct.sum(t) + t.astype(ct.float16).astype(ct.float32))


def test_rounding_is_part_of_the_error_on_request():
    rng = np.random.default_rng(0)
    for scale in (0.01, 1, 2):
        x, y, z = (rng.standard_normal(64).astype(np.float32) * np.float32(scale) for _ in range(3))
        exact = x.astype(np.float64), y.astype(np.float64)
        t = np.exp(exact[0]) / (exact[1]**2 + 1) - exact[0] * 3
        b = bounds(rounds, (1,), (x, y, z), rounding=True).arrays[2]
        error = np.abs(b.value - (t.sum() + t))
        assert (error <= b.bound).all() and (b.bound < 2.0**-9 * (np.abs(t).sum() + np.abs(t))).all()


@ct.kernel
def moves(x, y):
    ct.store(y, 0, ct.where(ct.load(x, 0, 64) > 0, ct.maximum(ct.load(x, 0, 64), 0.5), -ct.load(x, 0, 64)))


def test_what_is_not_rounded_has_no_error():
    x = np.linspace(-2, 2, 64, dtype=np.float32)
    assert not bounds(moves, (1,), (x, x.copy()), rounding=True).arrays[1].bound.any()


@ct.kernel
def product(x, y):
    ct.store(y, 0, ct.load(x, 0, 64) * 3.0)


def test_a_rounding_is_half_a_unit():
    x = np.linspace(1, 7, 64, dtype=np.float32)
    b = bounds(product, (1,), (x, x.copy()), rounding=True).arrays[1]
    assert (b.bound == np.spacing(b.value).astype(np.float64) / 2).all()
    assert not bounds(product, (1,), (x, x.copy())).arrays[1].bound.any()


def test_functions():
    """A function has the launch of its call, or with a grid is its kernel."""
    @ct.kernel
    def k(x: ct.Array["N"], y, factor, T: ct.Constant[int]):  # noqa: UP037
        ct.store(y, ct.bid(0), ct.exp(ct.load(x, ct.bid(0), T)) * factor)

    f = ct.jit(k, grid="cdiv(N, T)", out=ct.Out("N", name="y"), defaults={"T": 4})
    x, y = np.linspace(0, 1, 10, dtype=np.float32), np.zeros(10, np.float32)
    want = bounds(k, (3,), (x, y, 2.0, 4), rounding=True).arrays[1]
    for found in (bounds(f, None, (x, 2.0), rounding=True), bounds(f, (3,), (x, y, 2.0, 4), rounding=True)):
        got = found.arrays[1]
        assert got.name == "y" and np.array_equal(got.value, want.value) and np.array_equal(got.bound, want.bound)
    assert got.bound.any() and not y.any()
    with pytest.raises(TypeError, match="of a kernel needs the grid"):
        bounds(k, None, (x, y, 2.0, 4))
    with pytest.raises(TypeError, match="takes a kernel or a function made by ct.jit, not <function"):
        bounds(lambda x: x, (1,), (x,))
    with pytest.raises(TypeError, match="missing a required argument: 'factor'"):
        bounds(f, None, (x,))
