"""cutile.bounds: how far implementations may differ, and that it follows what a kernel computes."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile.bounds import bounds, rules
from cutile.dtypes import float16, float32, float64
from cutile.ir.terms import Leaf
from cutile.ops._freedom import order
from cutile.ops._op import REDUCTION, op, registry
from cutile.ops.math import float_unary
from cutile.types import TileType

N = 16


def data(dtype=np.float32, low=-2.0, high=2.0, shape=(N,)):
    return np.random.default_rng(0).uniform(low, high, shape).astype(dtype)


def run(kernel, *args, grid=(1,), **options):
    """Value and bound of the last array."""
    found = bounds(kernel, grid, args, **options)
    return found.arrays[-1].value, found.arrays[-1].bound


def of(body, x, out=None):
    """Value and bound of `body` of one tile."""
    @ct.kernel
    def k(x, y):
        ct.store(y, (0,), body(ct.load(x, (0,), (N,))))

    return run(k, x, np.zeros(N, x.dtype) if out is None else out)


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


# ------------------------------------------------------------------ what is open


def test_a_transcendental_has_its_ulps():
    value, bound = of(lambda t: ct.exp2(t), data())
    assert np.array_equal(bound, 4 * rules.spacing(value, float32))  # 3 of an implementation, 1 of ours


def test_options_have_their_own():
    _, exact = of(lambda t: ct.truediv(t, 3.0), data())
    _, full = of(lambda t: ct.truediv(t, 3.0, rounding_mode=ct.RoundingMode.FULL), data())
    assert not exact.any() and full.all()


@pytest.mark.parametrize("order", [np.add.reduce, lambda v: np.cumsum(v)[-1], lambda v: np.cumsum(v[::-1])[-1],
                                   lambda v: (v[:8] + v[8:]).sum()])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_order_of_a_sum_is_within(order, dtype):
    x = data(dtype)
    value, bound = of(lambda t: ct.full((N,), ct.sum(t), t.dtype), x)
    assert abs(float(order(x)) - float(value[0])) <= bound[0]
    assert 0 < bound[0] < 2000 * np.finfo(dtype).eps


def test_sums_of_integers_are_exact():
    _, bound = of(lambda t: ct.cumsum(t) + ct.sum(t), np.arange(N, dtype=np.int32))
    assert not bound.any()


def test_matrix_products():
    @ct.kernel
    def k(x, y):
        t = ct.load(x, (0, 0), (4, 4))
        ct.store(y, (0, 0), ct.mma(t, t, ct.zeros((4, 4), ct.float32)))

    x = data(shape=(4, 4))
    value, bound = run(k, x, np.zeros((4, 4), np.float32))
    exact = x.astype(float) @ x.astype(float)
    assert (np.abs(value - exact) <= bound).all() and (bound < 1e-4).all() and bound.all()


def test_a_user_function_that_only_picks_is_exact_and_another_is_unknown():
    _, picked = of(lambda t: t + ct.reduce(t, 0, max, float("-inf")), data())
    _, summed = of(lambda t: t * 0 + ct.reduce(t, 0, lambda a, b: a + b, 0.0), data())
    _, odd = of(lambda t: t * 0 + ct.reduce(t, 0, lambda a, b: a + b + a * b, 0.0), data())
    assert not picked.any() and np.isfinite(summed).all() and summed.all() and np.isinf(odd).all()


def test_contraction():
    body = lambda t: t * t + t

    @ct.kernel
    def k(x, y):
        ct.store(y, (0,), body(ct.load(x, (0,), (N,))))

    args = data(), np.zeros(N, np.float32)
    assert not run(k, *args)[1].any()
    value, bound = run(k, *args, contraction=True)
    x = args[0]
    assert (np.abs(x * x + x - value) <= bound).all() and bound.all()


# ------------------------------------------------------------------ how errors go on


@pytest.mark.parametrize("name, body", [
    ("mul", lambda t: t * 8), ("add", lambda t: t + 100), ("div", lambda t: 1 / t), ("exp", lambda t: ct.exp(t)),
    ("log", lambda t: ct.log(t)), ("sin", lambda t: ct.sin(t)), ("tan", lambda t: ct.tan(t)),
    ("cosh", lambda t: ct.cosh(t)),
    ("pow", lambda t: t**1.5), ("powi", lambda t: t**3), ("negpow", lambda t: t**-2),
    ("max", lambda t: ct.maximum(t, 1.0)),
    ("tanh", lambda t: ct.tanh(t)), ("cumprod", lambda t: ct.cumprod(t)), ("f16", lambda t: t.astype(ct.float16)),
    ("rsqrt", lambda t: ct.rsqrt(t)), ("atan2", lambda t: ct.atan2(t, t + 1)), ("prod", lambda t: ct.prod(t) + t),
])
def test_another_implementation_stays_within(name, body):
    """One whose exp2 is off by as much as it may be."""
    x = data(low=0.25, high=1.5)
    value, bound = of(lambda t: body(ct.exp2(t)), x, np.zeros(N, np.float16 if name == "f16" else np.float32))
    for sign in (-1, 1):
        moved = [v + sign * 3 * s for v, s in zip(_exp2(x), rules.spacing(_exp2(x), float32), strict=True)]
        other, _ = of(body, np.array(moved, np.float32), np.zeros(N, value.dtype))
        assert (np.abs(other.astype(float) - value.astype(float)) <= bound).all(), name
    assert np.isfinite(bound).all() and bound.any()


def _exp2(x):
    return np.exp2(x.astype(float)).astype(np.float32).astype(float)


def test_a_comparison_that_may_turn_is_unknown():
    x = np.array([1, 2, 3, 5] * 4, np.float32)
    value, bound = of(lambda t: (ct.exp2(t) > 8.0).astype(ct.int32), x, np.zeros(N, np.int32))
    assert np.array_equal(np.isinf(bound), x == 3) and not bound[x != 3].any()


def test_a_cast_to_an_integer_near_a_step():
    x = np.array([1, 1.3, 2, 2.6] * 4, np.float32)
    _, bound = of(lambda t: ct.exp2(t).astype(ct.int32), x, np.zeros(N, np.int32))
    assert np.array_equal(np.isinf(bound), (x == 1) | (x == 2))


def test_a_branch_that_may_turn_is_inconclusive():
    @ct.kernel
    def k(x, y):
        s = ct.sum(ct.load(x, (0,), (N,)))
        if s == 0:
            ct.store(y, (0,), s)

    found = bounds(k, (1,), (np.array([1, -1] * 8, np.float32), np.zeros(1, np.float32)))
    assert "the branch in line" in found.inconclusive and np.isinf(found.arrays[1].bound).all()


def test_an_index_that_may_turn_is_inconclusive():
    @ct.kernel
    def k(x, y):
        i = ct.exp2(ct.load(x, (0,), (N,))).astype(ct.int32)
        ct.store(y, (0,), ct.gather(x, i))

    assert "an index or mask" in bounds(k, (1,), (np.ones(N, np.float32), np.zeros(N, np.float32))).inconclusive


def test_argmax_between_rivals():
    x = np.array([1, 1, 0, 0] * 4, np.float32)
    y = np.zeros(N, np.int32)
    _, near = of(lambda t: ct.full((N,), ct.argmax(ct.exp2(t)), ct.int32), x, y)
    _, far = of(lambda t: ct.full((N,), ct.argmax(ct.exp2(t)), ct.int32), np.arange(N, dtype=np.float32), y)
    assert np.isinf(near).all() and not far.any()


# ------------------------------------------------------------------ memory, calls, lists


def test_errors_go_through_memory():
    @ct.kernel
    def k(x, z, y):
        ct.store(z, (0,), ct.exp(ct.load(x, (0,), (N,))))
        ct.store(y, (0,), ct.load(z, (0,), (N,)))

    z = np.zeros((N, 2), np.float32)[:, 0]
    value, bound = run(k, data(), z, np.zeros(N, np.float32))
    assert bound.all() and np.isfinite(bound).all()


def helper(t):
    if ct.bid(0) > 0:
        return ct.exp(t)
    return t


def test_calls_lists_and_tuples():
    @ct.kernel
    def k(xs, pair, y):
        t = helper(ct.load(xs[ct.bid(0)], (0,), (N,)))
        ct.store(y, (ct.bid(0),), t + ct.load(pair[0], (0,), (N,)))

    found = bounds(k, (2,), ([data(), data()], (data(), 3), np.zeros(2 * N, np.float32)))
    bound = found.arrays[-1].bound
    assert len(found.arrays) == 4 and not bound[:N].any() and bound[N:].all()


def test_atomics_of_floats():
    @ct.kernel
    def k(x, y):
        ct.atomic_add(y, 0, ct.load(x, (ct.bid(0),), ()))

    value, bound = run(k, data(), np.zeros(1, np.float32), grid=(N,))
    assert 0 < bound[0] < 1e-4 and abs(float(value[0]) - float(data().astype(float).sum())) <= bound[0]


def test_blocks_that_wait_are_inconclusive():
    @ct.kernel
    def k(y):
        while ct.atomic_cas(y, 0, 0, 1) != 0:
            pass
        ct.atomic_xchg(y, 0, 0)

    assert "waits" in bounds(k, (2,), (np.zeros(1, np.int32),)).inconclusive


def test_spacing():
    assert rules.spacing(np.array([1.0, 1.99, 2.0]), float32).tolist() == [2.0**-23, 2.0**-23, 2.0**-22]
    assert rules.spacing(np.array([0.0]), float16) == 2.0**-24
    assert rules.spacing(np.array([1.0]), float64) == 2.0**-52


@pytest.mark.parametrize("body", [
    lambda u, t: t * 0 * u, lambda u, t: u * (t * 0) + t, lambda u, t: t - u * (t * 0),
    lambda u, t: ct.sum(u * 0 + t) + t, lambda u, t: ct.full((N,), 0, t.dtype) / u,
    lambda u, t: ct.pow(u * 0, 2) + ct.maximum(t, u),
])
def test_zero_times_the_unknown_is_unknown(body):
    def whole(t):
        e = ct.exp(t)
        return body((e + e > 2 * ct.exp(t)).astype(t.dtype), t)

    assert np.isinf(of(whole, data())[1]).all()


def test_infinities_that_are_certain():
    low = -np.inf
    assert not of(lambda t: low - ct.exp(t), data())[1].any()
    assert not of(lambda t: ct.exp(t) + ct.full((N,), np.inf, t.dtype), data())[1].any()
    value, bound = of(lambda t: ct.exp2(low - ct.exp(t)), data())
    assert not value.any() and bound.max() < 1e-40
    assert np.isinf(of(lambda t: ct.exp(100 * ct.exp(t)) - ct.exp(t), data(low=1.5))[1]).all()  # may not overflow


def test_a_running_softmax_is_known():
    @ct.kernel
    def k(x, y):
        top, total = ct.full((), -np.inf, ct.float32), ct.zeros((), ct.float32)
        for i in range(4):
            t = ct.sin(ct.load(x, (i,), (4,)))
            new = max(top, ct.max(t))
            total = total * ct.exp(top - new) + ct.sum(ct.exp(t - new))
            top = new
        ct.store(y, 0, total)

    value, bound = run(k, data(), np.zeros(1, np.float32))
    assert 0 < bound[0] < 1e-4 * value[0]


# ------------------------------------------------------------------ ops of which nothing is declared


def defined(name, rule, meaning, **properties):
    """An op for one test."""
    op(rule, name=name, **properties)(meaning)
    return registry().pop(name)


def test_an_op_that_declares_nothing_is_unknown_where_operands_are_inexact():
    def cube(x, /):
        """The cube."""
        return x * x * x

    o = defined("cube", float_unary, cube)
    value, bound = of(lambda t: o(t), data())
    assert not bound.any() and np.array_equal(value, data() * data() * data())
    _, bound = of(lambda t: o(ct.where(t > 0, ct.exp(t), t)), data())
    assert np.array_equal(np.isinf(bound), data() > 0) and not bound[data() <= 0].any()


def test_a_free_order_of_which_nothing_is_known_is_unknown():
    def total(x, /, *, axis, sig):
        """The sum."""
        return np.add.reduce(x, axis)

    def rule(b, op, x):
        return Leaf(b.op1(op, x.value, result=TileType(x.type.dtype), axis=-1))

    o = defined("total", rule, total, accumulates=REDUCTION, freedom=order("total"), signature=lambda x, /: None)
    _, bound = of(lambda t: t + o(t), data())
    assert np.isinf(bound).all()
