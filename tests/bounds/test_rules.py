"""How far ops leave their results open, and how they pass on the errors of their operands."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile.bounds import rules
from cutile.dtypes import float16, float32, float64
from cutile.ir.terms import Leaf
from cutile.ops._freedom import order
from cutile.ops._op import REDUCTION, op, registry
from cutile.ops.math import float_unary
from cutile.types import TileType
from tests.bounds.one_tile import N, data, of, run


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
    """An implementation whose exp2 is as far off as it may be."""
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


def test_argmax_between_rivals():
    x = np.array([1, 1, 0, 0] * 4, np.float32)
    y = np.zeros(N, np.int32)
    _, near = of(lambda t: ct.full((N,), ct.argmax(ct.exp2(t)), ct.int32), x, y)
    _, far = of(lambda t: ct.full((N,), ct.argmax(ct.exp2(t)), ct.int32), np.arange(N, dtype=np.float32), y)
    assert np.isinf(near).all() and not far.any()


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
