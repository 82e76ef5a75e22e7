"""Quotients of very large and very small numbers, of which a compiler knows how large they can be, and of which not.

As in `test_row_division`, but each kernel divides at several scales, all over the range in which ends what a reciprocal
can do. `test_quotient_edges` has the scales where it ends.
"""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, same_bits
from conformance.test_row_division import COLUMNS, F16, F32, F64, largest, rows, total

SOME = 5  # every so many rows of the samples


def flat(t):
    return ct.permute(t.reshape((1, 1, COLUMNS)), (2, 0, 1)).reshape((1, COLUMNS))


def but_small(t):
    """Half of what is at most 1, and all of what is larger."""
    return ct.where(t > 1, t, t * 0.5)


def doubled(t):
    return total(t + t)


def carried(t):
    """A power of what a loop carries on."""
    for _ in range(2):
        t = t * 0.5
    return ct.exp2(t)


#: what is computed of numbers of float16 before it is scaled and divided
DIVIDENDS = {
    "number": lambda t: t,
    "square": lambda t: t * t,
    "product": lambda t: t * abs(t),
    "sum": lambda t: t + abs(t),
    "difference": lambda t: t - abs(t),
    "fused": lambda t: t * t + t,
    "fused by another": lambda t: abs(t) * t + 1.0,
    "quotient": lambda t: t / 3.0,
    "quotient by a negative": lambda t: abs(t) / -0.75,
    "total": lambda t: ct.broadcast_to(total(t), (1, COLUMNS)),
    "largest": lambda t: ct.broadcast_to(largest(t), t.shape),
    "smallest": lambda t: ct.broadcast_to(ct.min(t, axis=1, keepdims=True), t.shape),
    "least": lambda t: ct.minimum(t, 0.75),
    "greatest": lambda t: ct.maximum(t, 0.375),
    "chosen": lambda t: ct.where(t > 0, t * 3.0, -0.0),
    "magnitude": lambda t: abs(t) * 0.625,
    "opposite": lambda t: -t,
    "root": lambda t: ct.sqrt(abs(t)),
    "power": lambda t: ct.exp(t - largest(t)),
    "power of two": lambda t: ct.exp2((t - largest(t)) * 0.5),
    "moved": lambda t: flat(t) * 5.0,
    "of a constant": lambda t: ct.full((1, COLUMNS), 0.8125, t.dtype) * t,
    "zero": lambda t: t * 0.0,
    "by zero": lambda t: t / 0.0,
    "by infinity": lambda t: t / float("inf"),
    "by another": lambda t: t / (abs(t) + 1.0),
    "root of a root": lambda t: ct.sqrt(ct.sqrt(abs(t))),
    "quotient by little": lambda t: t / 3e-6,
    "power of a difference": lambda t: ct.exp(t - abs(t)),
    "power of what is carried": carried,
    "power of a root": lambda t: ct.exp2(ct.sqrt(abs(t))),
}
#: what is computed of numbers of float16 and a scale to divide by
DIVISORS = {
    "total": lambda t, c: ct.maximum(total(abs(t)) * c, 1.0),
    "at least": lambda t, c: ct.maximum(largest(abs(t)), c),
    "more": lambda t, c: abs(largest(abs(t))) + c,
    "total of powers": lambda t, c: total(ct.exp(t - largest(t))) * c,
    "root": lambda t, c: ct.sqrt(total(t * t) + c),
    "quotient": lambda t, c: ct.maximum(total(abs(t)), 0.5) / c,
    "fused": lambda t, c: largest(abs(t)) * largest(abs(t)) + c,
    "constant": lambda t, c: ct.full((1, 1), 1.5, F32) * c,
    "number": lambda t, c: c * 1.25,
    "by a negative": lambda t, c: ct.maximum(total(abs(t)), 0.5) / (c * -1.5),
    "power": lambda t, c: ct.full((1, 1), 1.0, F32) * c,
    "root of what is at least": lambda t, c: ct.sqrt(ct.maximum(largest(abs(t)), c * c)),
    "least": lambda t, c: ct.minimum(ct.maximum(total(abs(t)), c), 2.0**40),
    "product": lambda t, c: ct.maximum(largest(abs(t)), 0.5) * ct.maximum(total(abs(t)), c),
    "powers of two": lambda t, c: total(ct.exp2((t - largest(t)) * 0.5)) * c,
    "greatest of negatives": lambda t, c: ct.maximum(largest(t), -c),
    "opposite": lambda t, c: -ct.maximum(largest(t), c),
    "root of much": lambda t, c: ct.sqrt(ct.maximum(largest(abs(t)), 2.0**20)) * c,
    "scaled again and again": lambda t, c: ct.maximum(largest(abs(t)), 0.5) * c**0.25 * c**0.25 * c**0.25 * c**0.25,
}
#: divisors, computed of the numbers that are divided and a scale
BOUNDS = {
    "total": lambda t, c: total(abs(t) * c),
    "largest": lambda t, c: largest(abs(t) * c),
    "largest, NaN too": lambda t, c: ct.max(abs(t) * c, axis=1, keepdims=True, propagate_nan=True),
    "squares": lambda t, c: total(t * t * c),
    "root of squares": lambda t, c: ct.sqrt(total(t * t * c)),
    "fused squares": lambda t, c: total(t * t + c),
    "scaled fused squares": lambda t, c: total(t * t + 1.0) * c,
    "sums": lambda t, c: total((abs(t) + 1.0) * c),
    "differences": lambda t, c: total(abs((t - 1.0) * c)),
    "quotients": lambda t, c: total(abs(t) / ct.minimum(abs(t) * 0.0 + 2.0, 3.0)) * c,
    "root": lambda t, c: ct.sqrt(largest(abs(t) * c)),
    "moved": lambda t, c: total(abs(flat(t)) * c),
    "opposite": lambda t, c: total(abs(-t) * c),
    "at least": lambda t, c: ct.maximum(largest(abs(t)) * c, 1.0),
    "cast": lambda t, c: total(abs(t).astype(F64)).astype(F32) * c,
    "signed": lambda t, c: total(t * c),
    "negative factor": lambda t, c: largest(abs(t) * -c),
    "negative term": lambda t, c: total(abs(t) + -c),
    "sum of either sign": lambda t, c: total(abs(t) + t * c),
    "product of either sign": lambda t, c: largest(t * abs(t) * c),
    "fused of either sign": lambda t, c: total(t * t + t * c),
    "chosen": lambda t, c: largest(ct.where(t > 0, t, -c)),
    "chosen numbers": lambda t, c: total(ct.where(t > 0, t, c)),
    "by a negative": lambda t, c: total(abs(t) / (-2.0 * c)),
    "by either": lambda t, c: total(abs(t) / ct.where(t > 1, 2.0, 3.0)) * c,
    "greatest": lambda t, c: total(ct.maximum(t, c)),
    "greatest of negatives": lambda t, c: total(ct.maximum(t, -c)),
    "by another": lambda t, c: total(abs(t) / (abs(t) + 1.0)) * c,
    "rounded": lambda t, c: total(abs(t).astype(F16).astype(F32)) * c,
    "cancelled": lambda t, c: total(abs(t) - abs(flat(t))) * c,
    "differences that cancel": lambda t, c: total(abs(abs(t) - but_small(abs(t)))) * c,
    "sums that cancel": lambda t, c: total(abs(abs(t) + -but_small(abs(t)))) * c,
    "turned sums that cancel": lambda t, c: total(abs(-but_small(abs(t)) + abs(t))) * c,
}
#: divisors that are scaled at the end: so each number is bounded by what the scale leaves of the divisor's bound
AROUND = {
    "total": lambda t, c: total(abs(t)) * c,
    "root": lambda t, c: ct.sqrt(largest(abs(t))) * c,
    "squares": lambda t, c: total(t * t) * c,
    "fused squares": lambda t, c: total(t * t + 1.0) * c,
    "doubled": lambda t, c: doubled(abs(t)) * c,
    "sum with much": lambda t, c: total(abs(t) + 2.0**100) * c,
    "quotient": lambda t, c: total(abs(t) / 3.0) * c,
    "cast": lambda t, c: largest(abs(t).astype(F64)).astype(F32) * c,
}
#: what is computed of numbers of any size and a scale, and divided by its own sum or maximum
OWN = {
    "quotient": lambda t, c: t / (abs(t) + 1.0) * c,
    "root": lambda t, c: ct.sqrt(abs(t) * c),
    "square": lambda t, c: t * t * c,
    "difference": lambda t, c: t - c,
    "sum": lambda t, c: abs(t) + c,
    "scaled": lambda t, c: t * c,
    "greatest": lambda t, c: ct.maximum(t, c),
}


def spread(first, last, step):
    """Some numbers, with the first and the last one."""
    return (*range(first, last, step), last)


def compare(f, source, exponents, dtype=F32, half=False):
    """The quotients at all these scales, perhaps rounded to float16, which loses the small ones; `f` gives what is
    divided, and by what.
    """
    compare_all(f, rows(source)[::SOME], tuple(2.0**k for k in exponents), dtype, half)


def compare_all(f, x, scales, dtype, half):
    """The same of these rows, at scales of any form."""

    @ct.kernel
    def k(x, e, s, q):
        b = ct.bid(0)
        t = ct.load(x, (b, 0), (1, COLUMNS)).astype(dtype)
        for j, c in ct.static_iter(tuple(enumerate(scales))):
            a, d = f(t, c)
            ct.store(e, (b, j, 0), a.reshape((1, 1, COLUMNS)))
            ct.store(s, (b, j, 0), ct.broadcast_to(d, (1, 1)).reshape((1, 1, 1)))
            ct.store(q, (b, j, 0), (a / d).reshape((1, 1, COLUMNS)).astype(q.dtype))

    floats = np.float64 if dtype is F64 else np.float32
    e, q = (np.empty((len(x), len(scales), COLUMNS), t) for t in (floats, np.float16 if half else floats))
    s = np.empty((len(x), len(scales), 1), floats)
    launch(k, x, e, s, q, grid=(len(x),))
    with np.errstate(all="ignore"):
        same_bits(q, (e / s).astype(q.dtype))


@clause("ARITH-4.float")
@pytest.mark.parametrize("exponents", [spread(30, 83, 11), spread(-84, -25, 15)], ids=["large", "small"])
@pytest.mark.parametrize("name", DIVIDENDS)
def test_dividends(name, exponents):
    of = DIVIDENDS[name]
    compare(lambda t, c: (of(t) * c, ct.full((1, 1), 0.3, F32)), "f16", exponents)


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", DIVIDENDS)
def test_dividends_that_are_divided_by_little(name):
    """Quotients become infinite."""
    of = DIVIDENDS[name]
    compare(lambda t, c: (of(t) * c, ct.maximum(largest(abs(t)) * 0.0, 2.0**-42)), "f16", spread(48, 83, 7))


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", DIVIDENDS)
def test_dividends_that_are_divided_by_much(name):
    """Quotients are subnormal."""
    of = DIVIDENDS[name]
    compare(lambda t, c: (of(t) * c, ct.full((1, 1), 1.3 * 2.0**44, F32)), "f16", spread(-88, -37, 9))


@clause("ARITH-4.float")
@pytest.mark.parametrize("exponents", [range(-90, -60, 4), range(16, 60, 4)], ids=["smaller", "larger"])
@pytest.mark.parametrize("source", ["f32", "bf16"])
def test_small_dividends(source, exponents):
    """What remains of a quotient by its divisor, subtracted from the dividend, may be too small for a float."""
    compare(lambda t, c: (ct.minimum(abs(t), 2.0**-40) * c, ct.full((1, 1), 0.3, F32)), source, exponents)
    compare(lambda t, c: (ct.minimum(abs(t), 2.0**-40) * c, ct.maximum(largest(abs(t)) * 0.0, 0.7)), source, exponents)


def powers_up_to_one(t):
    return ct.exp2((t - largest(t)) * 2.0**-12)


@clause("ARITH-4.float")
@pytest.mark.parametrize("of, exponents", [
    (lambda t: powers_up_to_one(t) * 2.0**77, spread(-64, -37, 14)),
    (lambda t: powers_up_to_one(t) * 2.0**77, spread(36, 63, 14)),
    (lambda t: t * 2.0**-56, spread(-64, -31, 17)), (lambda t: t * 2.0**-56, spread(30, 63, 17)),
], ids=["large by small", "large by large", "small by small", "small by large"])
@pytest.mark.parametrize("name", DIVISORS)
def test_divisors_of_what_is_scaled(name, of, exponents):
    """Quotients at both ends of what floats can be."""
    by = DIVISORS[name]
    compare(lambda t, c: (of(t), by(t * 2.0**-30, c)), "f16", exponents)


@clause("ARITH-4.float")
@pytest.mark.parametrize("exponents", [spread(16, 49, 11), spread(-54, -37, 9), spread(-8, 7, 5)],
                         ids=["large", "small", "middle"])
@pytest.mark.parametrize("name", DIVISORS)
def test_divisors(name, exponents):
    by = DIVISORS[name]
    compare(lambda t, c: (t * 3.0, by(t, c)), "f16", exponents)


@clause("ARITH-4.float")
@pytest.mark.parametrize("exponents", [spread(-50, -21, 10), spread(-124, -97, 9)], ids=["small", "very small"])
@pytest.mark.parametrize("name", BOUNDS)
def test_divisors_that_bound_the_dividend(name, exponents):
    by = BOUNDS[name]
    compare(lambda t, c: (t, by(t, c)), "f32", exponents, half=True)


@clause("ARITH-4.float")
@pytest.mark.parametrize("exponents", [spread(-50, -21, 15), spread(20, 49, 15)], ids=["small", "large"])
@pytest.mark.parametrize("by", [total, largest, lambda u: total(u * u), lambda u: ct.sqrt(largest(abs(u)))],
                         ids=["total", "largest", "squares", "root"])
@pytest.mark.parametrize("name", OWN)
def test_dividends_that_are_bounded_by_themselves(name, by, exponents):
    of = OWN[name]

    def both(t, c):
        u = of(t, c)
        return u, by(u)

    compare(both, "f32", exponents, half=True)


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", AROUND)
def test_dividends_that_are_scaled_up_after_their_bound(name):
    """Some become infinite."""
    by = AROUND[name]
    scales = tuple((2.0**d, *(2.0**min(max(u - k, 0), 100) for k in (0, 100, 200)))
                   for d, u in ((-80, 7), (-62, 60), (-40, 60), (0, 60), (0, 100), (40, 140), (80, 200), (118, 280)))
    compare_all(lambda t, c: (t * c[1] * c[2] * c[3], by(t, c[0])), rows("f32"), scales, F32, True)


@clause("ARITH-4.float")
@pytest.mark.parametrize("bound", ["largest", "total"])
@pytest.mark.parametrize("source", ["i8", "u8", "i32"])
def test_dividends_of_integers(source, bound):
    by = BOUNDS[bound]
    compare(lambda t, c: (t * c, ct.full((1, 1), 0.3, F32)), source, spread(40, 83, 7))
    compare(lambda t, c: (t, (largest(t) if bound == "largest" else total(t)) * c), source, spread(-50, -5, 9))
    compare(lambda t, c: (t, by(t, c)), source, spread(-50, -5, 9))
    compare(lambda t, c: (t, largest(t) + c), source, spread(-4, 3, 3))


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", ["square", "sum", "total", "root"])
def test_dividends_of_float64(name):
    of = DIVIDENDS[name]
    compare(lambda t, c: (of(t) * c, ct.maximum(largest(abs(t)), 0.5)), "f32", spread(500, 810, 31), F64)
