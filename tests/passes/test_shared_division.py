"""Divisions by what a row shares: the same bits as the division, and which of them are replaced."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

import cutile as ct
from cutile import interp, settings
from cutile.dtypes import info
from cutile.front.program import Embedded, type_kernel
from cutile.gpu.tileir.lower import after_passes
from cutile.ir.check import check
from cutile.ir.nodes import If, Kernel, Op
from cutile.ir.walk import regions, walk
from cutile.ops import arithmetic
from cutile.passes.fma import fma
from cutile.passes.shared_division import shared_division
from cutile.types import ArrayType

COLUMNS = 64
RN, RZ, RM, RP, FULL, APPROX = (getattr(ct.RoundingMode, m) for m in "RN RZ RM RP FULL APPROX".split())


def passed(fn, *kinds) -> tuple[Kernel, Kernel]:
    """A kernel as the pass gets it, and as it gives it."""
    with settings.override(HINTS=False):
        before = after_passes(fma(type_kernel(fn, kinds).kernel))
    after = shared_division(before)
    check(after)
    return before, after


def array(dtype, ndim: int = 2) -> ArrayType:
    return ArrayType(dtype, ndim)


# ------------------------------------------------------------------ kernels: rows of x divided by what each row shares


def softmax(x, y, R):
    t = ct.load(x, (0, 0), (R, COLUMNS)).astype(ct.float32)
    e = ct.exp(t - ct.max(t, axis=1, keepdims=True))
    ct.store(y, (0, 0), (e / ct.sum(e, axis=1, keepdims=True)).astype(y.dtype))


def weights(x, y, R):
    """Of nonnegative terms that are not made by exp, in the dtype of x."""
    a = abs(ct.load(x, (0, 0), (R, COLUMNS)))
    ct.store(y, (0, 0), (a / ct.sum(a, axis=1, keepdims=True)).astype(y.dtype))


def of_largest(x, y, R):
    t = ct.load(x, (0, 0), (R, COLUMNS)).astype(ct.float32)
    a = ct.maximum(ct.max(abs(t), axis=1, keepdims=True), 1e-8) / 127.0
    ct.store(y, (0, 0), (t / a + 0.5).astype(y.dtype))


def of_largest_number(x, y, R):
    """The maximum of all elements in one scalar, NaN where there is one."""
    t = abs(ct.load(x, (0, 0), (R, COLUMNS)).astype(ct.float32))
    ct.store(y, (0, 0), (t / ct.max(t, propagate_nan=True)).astype(y.dtype))


def unit(x, y, R):
    t = ct.load(x, (0, 0), (R, COLUMNS)).astype(ct.float32)
    ct.store(y, (0, 0), (t / ct.sqrt(ct.sum(t * t, axis=1, keepdims=True) + 1e-6)).astype(y.dtype))


def normal(x, y, R):
    t = ct.load(x, (0, 0), (R, COLUMNS)).astype(ct.float32)
    d = t - ct.sum(t, axis=1, keepdims=True) / COLUMNS
    v = ct.sum(d * d, axis=1, keepdims=True) / COLUMNS
    ct.store(y, (0, 0), (d / ct.sqrt(v + 1e-5)).astype(y.dtype))


def by_first(x, y, R):
    """By numbers that may be anything."""
    t = ct.load(x, (0, 0), (R, COLUMNS)).astype(ct.float32)
    s = ct.load(x, (0, 0), (R, 1)).astype(ct.float32)
    ct.store(y, (0, 0), (t / s).astype(y.dtype))


def by_smallest(x, y, R):
    """By the least of four numbers, which may be anything."""
    t = ct.load(x, (0, 0), (R, COLUMNS)).astype(ct.float32)
    s = ct.min(ct.load(x, (0, 0), (R, 4)), axis=1, keepdims=True).astype(ct.float32)
    ct.store(y, (0, 0), (t / s).astype(y.dtype))


def softmax_of_columns(x, y, R):
    t = ct.load(x, (0, 0), (COLUMNS, COLUMNS)).astype(ct.float32)
    e = ct.exp(t - ct.max(t, axis=0).reshape((COLUMNS, 1)))
    ct.store(y, (0, 0), (e / ct.sum(e, axis=1, keepdims=True)).astype(y.dtype))


def by_negative(x, y, R):
    ct.store(y, (0, 0), (ct.load(x, (0, 0), (R, COLUMNS)).astype(ct.float32) / -3.0).astype(y.dtype))


def by_power(x, y, R):
    t = ct.load(x, (0, 0), (R, COLUMNS))
    ct.store(y, (0, 0), (t / -8.0 + t / 0.5).astype(y.dtype))


def by_extreme_power(x, y, R):
    """By the largest power of two of float32 whose inverse is normal, in a tile that comes broadcast."""
    t = ct.load(x, (0, 0), (R, COLUMNS)).astype(ct.float32)
    ct.store(y, (0, 0), (t / ct.full((R, 1), 2.0**126, ct.float32)).astype(y.dtype))


def sixteen(x, y, R):
    """A quotient of float16."""
    t = ct.load(x, (0, 0), (R, COLUMNS))
    ct.store(y, (0, 0), t / (abs(ct.load(x, (0, 0), (R, 1))) + 0.25))


def by_constant(x, y, R):
    ct.store(y, (0, 0), (ct.load(x, (0, 0), (R, COLUMNS)).astype(ct.float32) / 0.3).astype(y.dtype))


H, S, D, B, I8, I32 = ct.float16, ct.float32, ct.float64, ct.bfloat16, ct.int8, ct.int32
ALWAYS = [  # kernel, dtypes of x and y: no divisor needs a check
    (softmax, H, H), (softmax, S, H), (softmax, B, H), (of_largest, H, S), (of_largest, H, I8), (unit, H, H),
    (unit, H, S), (normal, H, H), (by_constant, H, S), (by_constant, I32, S), (by_constant, H, H), (sixteen, H, H),
]
POWERS = [(by_power, d, d) for d in (H, B, S, D)] + [(by_extreme_power, d, S) for d in (H, B, S)]
CHECKED = [
    (weights, S, H), (weights, H, H), (weights, D, H), (of_largest, S, S), (of_largest, B, I8),
    (of_largest_number, H, S), (of_largest_number, B, H), (unit, S, H), (normal, S, H), (by_smallest, H, S),
    (by_smallest, H, H), (by_smallest, I8, S),
]
STAYS = {
    (softmax, H, S): "exp may give what is too small, and float32 can tell it from zero",
    (softmax, S, B): "and so can bfloat16",
    (softmax_of_columns, H, H): "what is subtracted is not the largest of the row",
    (weights, B, H): "a quotient of bfloat16",
    (normal, H, S): "a difference may be small",
    (by_first, H, H): "nothing is reduced, so that a branch would keep accesses apart",
    (by_smallest, S, H): "the numbers may be too large",
    (by_smallest, B, H): "and so may those of bfloat16",
    (by_constant, S, H): "and those of float32 whatever they are divided by",
    (by_negative, H, H): "-0 / -3 would lose its sign",
}


def passed_case(case, rows: int) -> tuple[Kernel, Kernel]:
    return passed(case[0], array(case[1]), array(case[2]), Embedded(rows))


def divided(kernel: Kernel) -> list[str]:
    """Where tiles are divided: "always", or "branch"."""
    found = []
    for region, holder in regions(kernel.body):
        found += ["branch" if isinstance(holder, If) else "always" for n in region.nodes if isinstance(n, Op)
                  and n.op is arithmetic.truediv and n.results[0].type.size >= COLUMNS]
    return found


name = "{0[0].__name__}-{0[1].name}-{0[2].name}".format


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("case", ALWAYS, ids=name)
def test_no_check(case, rows):
    before, after = passed_case(case, rows)
    assert divided(before) == ["always"] and divided(after) == []
    assert not any(isinstance(n, If) for n in walk(after.body))


@pytest.mark.parametrize("case", CHECKED, ids=name)
def test_one_divisor_is_checked(case):
    before, after = passed_case(case, 1)
    assert divided(before) == ["always"] and divided(after) == ["branch"]


@pytest.mark.parametrize("case", [c for c in CHECKED if c[0] is not of_largest_number], ids=name)
def test_several_divisors_are_not_checked(case):
    before, after = passed_case(case, 4)
    assert before is after


@pytest.mark.parametrize("case", STAYS, ids=name)
def test_what_stays(case):
    before, after = passed_case(case, 1)
    assert before is after, STAYS[case]


@pytest.mark.parametrize("mode, flush, stays", [
    (None, False, False), (RN, False, False), (RZ, False, True), (RM, False, True), (RP, False, True),
    (FULL, False, True), (APPROX, False, True), (None, True, True), (RN, True, True), (APPROX, True, True)])
@pytest.mark.parametrize("divisor", [3.0, 4.0])
def test_divisions_that_do_not_round_to_nearest_stay(mode, flush, stays, divisor):
    def kernel(x, y):
        t = ct.load(x, (0, 0), (4, COLUMNS)).astype(ct.float32)
        ct.store(y, (0, 0), ct.truediv(t, divisor, rounding_mode=mode, flush_to_zero=flush).astype(y.dtype))

    before, after = passed(kernel, array(H), array(H))
    assert (before is after) is stays


@pytest.mark.parametrize("case", POWERS, ids=name)
def test_powers_of_two(case):
    """One product, for every dividend."""
    before, after = passed_case(case, 4)
    assert divided(before) and not divided(after)
    assert not any(isinstance(n, Op) and n.op is arithmetic.fma for n in walk(after.body))


def after_the_quotient(x, y, f):
    t = ct.load(x, (0, 0), (4, COLUMNS)).astype(ct.float32)
    e = ct.exp(t - ct.max(t, axis=1, keepdims=True))
    ct.store(y, (0, 0), f(e / ct.sum(e, axis=1, keepdims=True)).astype(y.dtype))


F4, F5 = ct.float8_e4m3fn, ct.float8_e5m2


@pytest.mark.parametrize("f, to, stays", [
    (lambda q: q, F4, False), (lambda q: q, F5, False), (lambda q: q, I8, False), (lambda q: q, D, True),
    (lambda q: q * 16.0, H, False), (lambda q: q * 32.0, H, True), (lambda q: 2.0**-20 * q, H, False),
    (lambda q: -q, H, False), (lambda q: q * 0.0, H, True), (lambda q: q * q, H, True), (lambda q: abs(q), H, True),
    (lambda q: q + 2.0**-7, S, False), (lambda q: q + 2.0**-8, S, True), (lambda q: q - 2.0**-7, S, False),
    (lambda q: -2.0**-7 - q, S, False), (lambda q: q - 2.0**-8, S, True)])
def test_quotients_that_are_too_small_to_matter(f, to, stays):
    """A quotient below 2**-35 may be zero: it matters where it comes to 2**-30, or to a unit of a sum in float32."""
    before, after = passed(after_the_quotient, array(H), array(to), Embedded(f))
    assert divided(before) == ["always"] and (before is after) is stays


@pytest.mark.parametrize("power, stays", [(31, False), (32, True)])
def test_the_largest_dividend(power, stays):
    """The divisor, at most 2**45, bounds each element by 2**47 where roundings count, and the product by 2**80."""
    def kernel(x, y):
        t = ct.load(x, (0, 0), (1, COLUMNS))
        ct.store(y, (0, 0), (t * 2.0**power / ct.sum(abs(t), axis=1, keepdims=True)).astype(y.dtype))

    before, after = passed(kernel, array(S), array(H))
    assert (before is after) is stays


@pytest.mark.parametrize("power", [2.0**127, 2.0**-127, 2.0**-149, 0.0, math.inf, math.nan])
def test_powers_without_an_inverse_stay(power):
    def kernel(x, y):
        ct.store(y, (0, 0), ct.load(x, (0, 0), (4, COLUMNS)) / power)

    before, after = passed(kernel, array(S), array(S))
    assert before is after


@pytest.mark.parametrize("columns", [16, 32])
def test_few_elements_for_each_divisor_stay(columns):
    def kernel(x, y, n):
        t = ct.load(x, (0, 0), (4, n))
        ct.store(y, (0, 0), t / (abs(ct.load(x, (0, 0), (4, 1))) + 1.0))

    before, after = passed(kernel, array(H), array(H), Embedded(columns))
    assert (before is after) is (columns == 16)


def test_hints_turn_it_off():
    with settings.override(HINTS=False):
        before, after = passed_case(ALWAYS[0], 1)
    assert before is after


# ------------------------------------------------------------------ bits


def run(kernel: Kernel, *arrays: np.ndarray) -> list[np.ndarray]:
    """What a kernel leaves in copies of the arrays, as bits. All NaNs count as one."""
    mine = [a.copy() for a in arrays]
    interp.launch(kernel, (1, 1, 1), mine)
    return [np.where(a != a, a.dtype.type(0), a).view(f"V{a.itemsize}") for a in mine] + [a != a for a in mine]


def same(case, x: np.ndarray) -> None:
    """Both kernels give the same bits on the rows of x."""
    _, source, target = case
    before, after = _both(case, len(x))
    y = np.zeros(x.shape, info(target).storage)
    x = np.ascontiguousarray(x.astype(info(source).storage))
    for one, other in zip(run(before, x, y), run(after, x, y), strict=True):
        np.testing.assert_array_equal(one, other)


@functools.cache
def _both(case, rows: int) -> tuple[Kernel, Kernel]:
    return passed_case(case, rows)


def specials(dtype) -> np.ndarray:
    """Values at the ends of a dtype's range and of the domains, among ordinary ones."""
    if not info(dtype).floating:
        return np.array([0, 1, -1, 3, 100, -128, 127])
    found = [0.0, 1.0, 1.5, 3.0, 127.0, math.inf, math.nan, info(dtype).format.max]
    for k in (-149, -148, -130, -126, -102, -81, -80, -79, -46, -45, -25, -24, -14, 14, 45, 46, 79, 80, 127):
        found += [2.0**k, 3 * 2.0**k, (2 - 2**-23) * 2.0**k]
    return np.array(found + [-v for v in found])


@pytest.mark.parametrize("case", ALWAYS + POWERS + CHECKED, ids=name)
@examples(max_examples=12, deadline=None)
@given(st.data())
def test_bits(case, data):
    """Rows of ordinary numbers of any scale, with some special values among them."""
    rng, rows = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))), 4 if case not in CHECKED else 1
    x = rng.standard_normal((rows, COLUMNS)) * 2.0**rng.integers(-50, 50, (rows, 1))
    if data.draw(st.booleans()):
        x = x * 2.0**rng.integers(-120, 20, x.shape)
    if data.draw(st.booleans()):
        x = abs(x)
    if data.draw(st.booleans()):
        some = rng.random(x.shape) < data.draw(st.sampled_from([0.02, 0.3]))
        x = np.where(some, rng.choice(specials(case[1]), x.shape), x)
    x[:, 0] = np.where(rng.random(rows) < 0.7, x[:, 0], rng.choice(specials(case[1]), rows))  # a divisor
    with np.errstate(all="ignore"):
        if not info(case[1]).floating:
            x = np.clip(np.nan_to_num(x), -128, 127)
        same(case, x)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.deep)])
@pytest.mark.parametrize("case", ALWAYS + POWERS + CHECKED, ids=name)
def test_bits_of_every_special_value(case, step):
    """Each fills a row, stands among others, and is a divisor."""
    values = specials(case[1])
    with np.errstate(all="ignore"):
        for v in values[::step]:
            x = np.resize(values, (4, COLUMNS)).astype(float)
            x[0], x[1, ::2], x[2, 0] = v, v, v
            for part in (x,) if case not in CHECKED else x[:, None]:
                same(case, part)
