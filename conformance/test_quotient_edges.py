"""Quotients at the scales where what a compiler knows of their operands ends.

The kernels of `test_quotient_limits`, each at few scales: those where a bound of the operands, added up rule by rule,
reaches the end of what a reciprocal can do, and the next one. Whatever is divided and multiplied there, quotients are
rounded once.
"""

import ml_dtypes
import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, same_bits
from conformance.test_quotient_limits import BOUNDS, DIVIDENDS, DIVISORS, compare, compare_all, flat
from conformance.test_row_division import BF16, COLUMNS, F16, F32, F64, largest, rows, total

SOME = 7  # every so many rows of the samples

#: exponents of scales at which dividends become as large as they may be
LARGE = {
    "number": 62, "square": 44, "product": 44, "sum": 60, "difference": 60, "fused": 42, "fused by another": 42,
    "quotient": 62, "quotient by a negative": 60, "total": 47, "largest": 62, "smallest": 62, "least": 62,
    "greatest": 62, "chosen": 59, "magnitude": 61, "opposite": 62, "root": 69, "power": 78, "power of two": 78,
    "moved": 58, "of a constant": 61, "zero": 61, "root of a root": 72, "by zero": 0, "by infinity": 0,
    "by another": 0, "quotient by little": 0, "power of a difference": 0, "power of what is carried": 0,
    "power of a root": 0,
}
#: those that may be small too
ROUNDED = ("quotient", "quotient by a negative", "root", "root of a root", "power", "power of two", "power of a root",
           "power of a difference", "power of what is carried", "quotient by little", "by zero", "by infinity",
           "by another")
#: and as small
SMALL = {
    "number": -56, "square": -32, "product": -32, "sum": -56, "difference": -56, "fused": -32, "fused by another": -32,
    "total": -56, "largest": -56, "smallest": -56, "least": -56, "greatest": -56, "chosen": -56, "magnitude": -53,
    "opposite": -56, "power": 69, "power of two": 69, "moved": -56, "of a constant": -52, "zero": -56, "root": 69,
    "quotient": 69,
}
#: and divisors, both ways
ENDS = {
    "at least": (-45, 45), "more": (-45, 43), "total of powers": (-44, 28), "root": (-90, 85), "quotient": (-12, 44),
    "fused": (-45, 43), "constant": (-45, 43), "number": (-45, 45), "power": (-45, 43), "total": (1, 12),
    "root of what is at least": (-45, 44), "least": (-45, 40, 45), "product": (0, -44), "powers of two": (-44, 28),
    "root of much": (-55, 21, 32), "scaled again and again": (-44, 24), "opposite": (0,), "by a negative": (0,),
    "greatest of negatives": (0, -45),
}
#: scales at which what bounds a divisor bounds the dividend as far as it must
BOUND = {
    "total": -32, "largest": -33, "largest, NaN too": -33, "squares": -110, "root of squares": -63,
    "scaled fused squares": -110, "sums": -32, "differences": -30, "quotients": -34, "root": 14, "moved": -32,
    "opposite": -32, "at least": -33, "cast": -30, "greatest": -32, "rounded": -32, "cancelled": -32,
    "differences that cancel": -30, "sums that cancel": -30, "turned sums that cancel": -30, "by another": -34,
}


def near(k):
    """Beside a scale."""
    return range(k - 1, k + 1)


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", LARGE)
def test_large_dividends(name):
    """If small ones among them are not known to be multiples of a number, their quotients are rounded to zero."""
    of = DIVIDENDS[name]
    compare(lambda t, c: (of(t) * c, ct.full((1, 1), 0.3, F32)), "f16", near(LARGE[name]), half=name in ROUNDED)


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", SMALL)
def test_small_dividends(name):
    of = DIVIDENDS[name]
    compare(lambda t, c: (of(t) * c, ct.full((1, 1), 0.3, F32)), "f16", near(SMALL[name]))


@clause("ARITH-4.float")
@pytest.mark.parametrize("name, k", [(name, k) for name, ks in ENDS.items() for k in ks])
def test_divisors(name, k):
    by = DIVISORS[name]
    compare(lambda t, c: (t * 3.0, by(t, c)), "f16", near(k))


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", [*BOUNDS, "fused by another"])
def test_divisors_that_bound_the_dividend(name):
    by = BOUNDS.get(name, lambda t, c: total(abs(t) * abs(flat(t)) + 1.0) * c)
    compare(lambda t, c: (t, by(t, c)), "f32", near(BOUND.get(name, -33)), half=True)


#: squares of squares and the like: what is known of their roots adds up
REPEATED = {
    "squares of squares": (lambda t: total(t * t * (t * t)), 1.99 * 2.0**52),
    "fused squares of squares": (lambda t: total((t * t + 1.0) * (t * t + 1.0)), 1.99 * 2.0**52),
    "roots of roots": (lambda t: ct.sqrt(ct.sqrt(ct.sqrt(total(abs(t))))), 2.0**-40),
    "negative squares": (lambda t: -total(-(t * t)), 2.0**30),
    "sums of sums": (lambda t: total(abs(t) + abs(t) + (abs(t) + abs(t))), 2.0**20),
    "totals of totals": (lambda t: total(ct.broadcast_to(total(abs(t)), t.shape)), 2.0**20),
    "thirds of thirds": (lambda t: total(abs(t) / 3.0 / 3.0 / 3.0 / 3.0), 2.0**20),
    "scaled": (lambda t: total(abs(t) * 0.75 * 0.75 * 0.75 * 0.75 * 0.75), 2.0**20),
}


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", REPEATED)
def test_bounds_that_add_up(name):
    """Each number is a root, or a part, of what the divisor bounds. Some quotients become infinite."""
    by, scale = REPEATED[name]

    def both(t, c):
        d = by(t)
        for _ in ct.static_iter(range(2)):
            d = d * c
        return t * scale, d

    x = np.ldexp(np.linspace(0.5, 0.95, 6 * COLUMNS), np.repeat([4, 12, 20, 28, 30, 32], COLUMNS)).reshape(6, COLUMNS)
    x = np.concatenate([x, x * (np.arange(COLUMNS) == COLUMNS - 1)])
    compare_all(both, x.astype(np.float32), (2.0**-86, 2.0**-60, 2.0**-20, 1.0), F32, True)


@clause("ARITH-4.float")
@pytest.mark.parametrize("source, k", [("i8", 69), ("u8", 69), ("i32", 45), ("i8", -80), ("u8", -80), ("i32", -80)])
def test_dividends_of_integers(source, k):
    compare(lambda t, c: (t * c, ct.full((1, 1), 0.3, F32)), source, near(k))


@clause("ARITH-4.float")
@pytest.mark.parametrize("source", ["i8", "u8"])
def test_integers_and_the_largest(source):
    compare(lambda t, c: (t * 2.0**70, largest(t) * c), source, near(39))


@clause("ARITH-4.float")
@pytest.mark.parametrize("number, wide, narrow", [(65530.0, F32, F16), (2.0**128 - 2.0**100, F64, F32)])
def test_dividends_that_casts_make_infinite(number, wide, narrow):
    """They round up to a power of two that is out of range."""
    compare(lambda t, c: (ct.full((1, COLUMNS), number, wide).astype(narrow).astype(F32) * 2.0**-60,
                          ct.full((1, 1), 0.3, F32)), "f32", (0,))


TINY = 2.0**-40
#: large numbers below zero where those of a tile are above 1, small ones above zero elsewhere
SIGNED = {
    "chosen": lambda t: ct.where(t > 1, -t, TINY),
    "opposite": lambda t: -ct.where(t > 1, t, -TINY),
    "opposite magnitude": lambda t: ct.where(t > 1, -abs(t), TINY),
    "quotient": lambda t: ct.where(t > 1, -t, TINY) / ct.maximum(abs(t) * 0.0, 1.5),
    "quotient by either sign": lambda t: ct.where(t > 1, abs(t), TINY) / ct.where(t > 1, -1.5, 1.5),
    "quotient by a number": lambda t: ct.where(t > 1, -t, TINY) / 1.5,
    "quotient by a negative": lambda t: ct.where(t > 1, t, -TINY) / -1.5,
    "product": lambda t: ct.where(t > 1, abs(t), TINY) * ct.where(t > 1, -1.5, 1.5),
    "turned product": lambda t: ct.where(t > 1, -1.5, 1.5) * ct.where(t > 1, abs(t), TINY),
    "sum": lambda t: ct.where(t > 1, -t, 0.0) + TINY,
    "turned sum": lambda t: TINY + ct.where(t > 1, -t, 0.0),
    "difference": lambda t: TINY - ct.where(t > 1, abs(t), 0.0),
    "fused": lambda t: ct.where(t > 1, abs(t), 0.0) * ct.where(t > 1, -1.5, 1.5) + TINY,
    "least": lambda t: ct.minimum(ct.where(t > 1, -t, TINY), ct.where(t > 1, abs(t), TINY)),
    "greatest": lambda t: ct.maximum(ct.where(t > 1, -t, TINY), -2.0**126),
    "moved": lambda t: flat(ct.where(t > 1, -t, TINY)) * 3.0,
    "sum of a root": lambda t: ct.sqrt(abs(t)) * 0.0 + ct.where(t > 1, -t, TINY),
}


@clause("ARITH-4.float")
@pytest.mark.parametrize("by", [largest, lambda u: ct.max(u, axis=1, keepdims=True, propagate_nan=True),
                                lambda u: largest(ct.sqrt(u) * 2.0**10)], ids=["largest", "largest, NaN too", "root"])
@pytest.mark.parametrize("name", SIGNED)
def test_dividends_of_which_the_largest_is_small(name, by):
    """Others are far below zero."""
    of = SIGNED[name]

    def both(t, c):
        u = of(t) * c
        return u, by(u)

    compare(both, "f32", (0,), half=True)


@clause("ARITH-4.float")
@pytest.mark.parametrize("by", [largest, lambda u: ct.max(u, axis=1, keepdims=True, propagate_nan=True)],
                         ids=["largest", "largest, NaN too"])
@pytest.mark.parametrize("other", [float("inf"), -float("inf"), float("nan")], ids=str)
def test_dividends_with_special_numbers_among_them(other, by):
    def both(t, c):
        u = ct.where(t > c, abs(t), other)
        return u, by(u)

    compare(both, "f32", (0, -20), half=True)


@clause("ARITH-4.float")
@pytest.mark.parametrize("columns", [16, 32, 64])
def test_quotients_by_powers_of_two(columns):
    powers = tuple(2.0**k for k in (-149, -127, -126, -125, -24, -1, 0, 1, 23, 125, 126, 127))

    @ct.kernel
    def k(x, q):
        b = ct.bid(0)
        for j, c in ct.static_iter(tuple(enumerate((*powers, 3.0, -0.5)))):
            ct.store(q, (b, j, 0), (ct.load(x, (b, 0), (1, columns)) / c).reshape((1, 1, columns)))

    x = rows("f32")[::SOME, :columns].copy()
    q = np.empty((len(x), len(powers) + 2, columns), np.float32)
    launch(k, x, q, grid=(len(x),))
    with np.errstate(all="ignore"):
        same_bits(q, x[:, None] / np.float32([*powers, 3.0, -0.5])[:, None])


@clause("ARITH-4.float")
@pytest.mark.parametrize("k", [100, -100])
@pytest.mark.parametrize("by", [lambda t, c: ct.maximum(largest(abs(t)) * 0.0, c), lambda t, c: total(abs(t)) * c],
                         ids=["at least", "total"])
def test_divisors_of_float64(by, k):
    compare(lambda t, c: (t * 3.0, by(t, c)), "f32", near(k), F64)


@clause("ARITH-4.float")
@pytest.mark.parametrize("k", [672, 782, -651, -800])
def test_dividends_of_float64(k):
    compare(lambda t, c: (t * c, ct.full((1, 1), 0.3, F64)), "f32", near(k), F64)
    compare(lambda t, c: (t.astype(F16).astype(F64) * c, ct.full((1, 1), 0.3, F64)), "f32", near(k), F64)


@clause("ARITH-4.float")
@pytest.mark.parametrize("by", [
    lambda t: ct.full((1, 1), 0.3, t.dtype), lambda t: largest(abs(t)), lambda t: ct.maximum(total(abs(t)), 1.0),
    lambda t: ct.full((1, 1), 0.25, t.dtype), lambda t: ct.full((1, 1), -4.0, t.dtype)],
    ids=["constant", "largest", "at least one", "power", "negative power"])
@pytest.mark.parametrize("dtype", [BF16, F16, F32, F64], ids=["bf16", "f16", "f32", "f64"])
@pytest.mark.parametrize("shape", [(1, 16), (1, 32), (2, 32), (64, 1)])
def test_dtypes(dtype, by, shape):
    """Tiles of few elements and many, each in its own dtype."""
    numpy = {BF16: ml_dtypes.bfloat16, F16: np.float16, F32: np.float32, F64: np.float64}[dtype]

    @ct.kernel
    def k(x, s, q):
        b = ct.bid(0)
        t = ct.load(x, (b, 0, 0), (1, *shape)).reshape(shape)
        d = ct.broadcast_to(by(t), (shape[0], 1))
        ct.store(s, (b, 0, 0), d.reshape((1, shape[0], 1)))
        ct.store(q, (b, 0, 0), (t / by(t)).reshape((1, *shape)))

    x = rows({BF16: "bf16", F16: "f16", F32: "f32", F64: "f64"}[dtype])[::SOME]
    x = x[:, np.arange(shape[0] * shape[1]) % COLUMNS].reshape(-1, *shape)
    s, q = np.empty((len(x), shape[0], 1), numpy), np.empty_like(x)
    launch(k, x, s, q, grid=(len(x),))
    with np.errstate(all="ignore"):
        same_bits(q.astype(np.float64), (x / s).astype(numpy).astype(np.float64))
