"""Dividends that are as large as their divisors tell, or much larger: what a compiler finds from operands to results,
and from results to operands.

A quotient of an infinite number, or one that becomes infinite, is where a reciprocal gives NaN. So each kernel here
reaches infinities at scales at which a rule of either way that told too little would keep them out of sight.
"""

import numpy as np
import pytest

from conformance.harness.api import clause, ct
from conformance.test_quotient_limits import compare, compare_all
from conformance.test_row_division import COLUMNS, F32, F64, largest, total

AGAIN = 40  # times that an operation is repeated: bounds that are too small add up
LITTLE = 2.0**-60


def minus(t, c):
    for _ in ct.static_iter(range(AGAIN)):
        t = t - c
    return t


def plus(t, c):
    for _ in ct.static_iter(range(AGAIN)):
        t = t + c
    return t


def turned_plus(t, c):
    for _ in ct.static_iter(range(AGAIN)):
        t = c + t
    return t


def turned_minus(t, c):
    for _ in ct.static_iter(range(AGAIN)):
        t = c - t
    return t


#: divisors of numbers up to 2**32, and the exponent of a scale at which the largest of these numbers become infinite
TOLD = {
    "differences": (lambda t: abs(minus(t, LITTLE)), 97),
    "differences from little": (lambda t: abs(turned_minus(t, LITTLE)), 97),
    "sums": (lambda t: abs(plus(t, LITTLE)), 97),
    "turned sums": (lambda t: abs(turned_plus(t, LITTLE)), 97),
    "quotients by much": (lambda t: abs(t) / 1.5e18, 80),
    "quotients by a large negative": (lambda t: abs(t / -1.5e18), 80),
    "quotients by little": (lambda t: abs(t) / 1.5e-3, 97),
    "magnitudes": (lambda t: abs(abs(-t)), 97),
    "casts": (lambda t: abs(t.astype(F64)).astype(F32), 97),
}
OF_ROWS = {"largest": largest, "largest, NaN too": lambda t: ct.max(t, axis=1, keepdims=True, propagate_nan=True),
           "total": total}


@clause("ARITH-4.float")
@pytest.mark.parametrize("row", OF_ROWS)
@pytest.mark.parametrize("name", TOLD)
def test_what_divisors_tell(name, row):
    (by, k), of = TOLD[name], OF_ROWS[row]
    x = np.ldexp(np.linspace(0.6, 0.95, 4 * COLUMNS), np.repeat([1, 20, 30, 32], COLUMNS)).reshape(4, COLUMNS)
    x = np.concatenate([x, -x, x * (np.arange(COLUMNS) == COLUMNS - 1)])
    scales = tuple(2.0**j for j in range(k - 1, k + 10, 3))
    compare_all(lambda t, c: (t * c, of(by(t))), x.astype(np.float32), scales, F32, True)


SQUARED = {
    "squares": lambda t: t * t,
    "squares of magnitudes": lambda t: abs(t) * abs(t),
    "squares and little": lambda t: t * t + 2.0**-145,
    "squares and parts": lambda t: t * t + abs(t) * 2.0**-80,
    "products": lambda t: abs(t) * 2.0**-66,
    "roots": lambda t: ct.sqrt(abs(t)) * 2.0**-100,
}


@clause("ARITH-4.float")
@pytest.mark.parametrize("row", OF_ROWS)
@pytest.mark.parametrize("name", SQUARED)
def test_small_numbers_that_are_scaled_up(name, row):
    """Divisors are in the middle, and tell much of very small numbers, which are scaled up until they are infinite."""
    squared, of = SQUARED[name], OF_ROWS[row]
    x = np.ldexp(np.linspace(0.6, 0.95, 4 * COLUMNS), np.repeat([-64, -67, -68, -72], COLUMNS)).reshape(4, COLUMNS)
    x = x * (np.arange(COLUMNS) == COLUMNS - 1)
    scales = tuple((2.0**(k // 2), 2.0**(k - k // 2)) for k in range(190, 212, 3))
    compare_all(lambda t, c: (t * c[0] * c[1], of(squared(t)) * 2.0**90 * 2.0**90), x.astype(np.float32), scales, F32,
                True)


TINY = 2.0**-40
#: large numbers below zero, that are computed of such as are not, and small ones above zero
BELOW_ZERO = {
    "quotient by a negative": lambda t: abs(t) / -1.5,
    "quotient by a negative power": lambda t: abs(t) / -2.0,
    "product with a negative": lambda t: abs(t) * -1.5,
    "difference from little": lambda t: TINY - abs(t),
    "total": lambda t: ct.broadcast_to(total(-abs(t)), t.shape),
    "total of either sign": lambda t: ct.broadcast_to(total(ct.where(t > 1, -t, TINY)), t.shape),
    "smallest": lambda t: ct.broadcast_to(ct.min(-abs(t), axis=1, keepdims=True), t.shape),
    "opposite of a root": lambda t: -ct.sqrt(abs(t)) * 2.0**60,
    "opposite of a power": lambda t: -ct.exp2(t),
    "least": lambda t: ct.minimum(abs(t), -abs(t)),
}


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", BELOW_ZERO)
def test_large_numbers_below_zero(name):
    of = BELOW_ZERO[name]

    def both(t, c):
        e = ct.where(t > 1, of(t), TINY)
        return e, largest(e) * c

    compare(both, "f32", (0, 4), half=True)


#: sums that are NaN where their dividends are infinite
WITHOUT = {
    "root": lambda t, inf: inf + ct.sqrt(t),
    "turned root": lambda t, inf: ct.sqrt(t) + inf,
    "difference": lambda t, inf: inf - ct.sqrt(t),
    "both not negative": lambda t, inf: ct.sqrt(t) + abs(inf),
    "product": lambda t, inf: inf * ct.maximum(t, 0.0),
    "square and root": lambda t, inf: inf * inf + ct.sqrt(t),
    "quotient": lambda t, inf: inf / ct.sqrt(t),
}


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", WITHOUT)
@pytest.mark.parametrize("source", ["i8", "f16"])
def test_infinite_dividends_where_what_bounds_them_is_nan(name, source):
    """A largest number passes over NaN, and so says nothing of what made it."""
    of = WITHOUT[name]

    def both(t, c):
        e = ct.where(t < 0, float("inf"), t)
        return e, largest(of(t, e)) * c

    compare(both, source, (0, 3), half=True)


@clause("ARITH-4.float")
@pytest.mark.parametrize("number", [3.0, -3.0, 1.0])
@pytest.mark.parametrize("source", ["f16", "f32", "i8"])
def test_dividends_that_are_quotients_of_a_number(number, source):
    """Of zeros and very small numbers they are infinite."""
    compare(lambda t, c: (number / t * c, ct.full((1, 1), 0.3, F32)), source, (0, 60, 72, 77))


@clause("ARITH-4.float")
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("k", [-45, -44])
def test_totals_of_many_large_numbers(sign, k):
    """Each is so small that its quotient is finite."""
    x = np.full((2, COLUMNS), 65504 * sign, np.float16)
    x[1, ::2] = 0
    compare_all(lambda t, c: (ct.broadcast_to(total(t), t.shape) * c, ct.full((1, 1), 1.1 * 2.0**k, F32)), x,
                tuple(2.0**j for j in range(52, 66)), F32, False)
