"""What becomes of quotients is the same as of quotients that an array has kept, also where these are subnormal.

A compiler may lose the last bits of very small quotients only where what follows loses all of them.
"""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, same_bits
from conformance.test_quotient_limits import flat, spread
from conformance.test_row_division import BF16, COLUMNS, F16, F32, F64, largest, rows, total


def varying(c):
    """A tile of c and half of it."""
    return ct.where(ct.arange(COLUMNS, dtype=ct.int32) < 50, c, c * 0.5).reshape((1, COLUMNS))


#: what is computed of a quotient and a scale, and the exponents of scales that are large enough for small quotients to
#: matter
LATER = {
    "product": (lambda q, c: (q * c).astype(F16), 5),
    "product turned": (lambda q, c: (c * -q).astype(F16), 5),
    "product with a tile": (lambda q, c: q * varying(c), 80),
    "sum with a tile": (lambda q, c: q + varying(c), -90),
    "greatest": (lambda q, c: ct.maximum(q, c), -90),
    "sum": (lambda q, c: q + c, -7),
    "sum with a product": (lambda q, c: q * 8.0 + c, -3),
    "sum of a product with little": (lambda q, c: q * 4.0 + c, -90),
    "difference": (lambda q, c: c - q, -7),
    "difference turned": (lambda q, c: q - c, -7),
    "sum with much": (lambda q, c: (q + 2.0) * c, 100),
    "sum with little": (lambda q, c: q + c, -90),
    "sum with little that is scaled": (lambda q, c: (q + c * 2.0**-60) * 2.0**100, -40),
    "product with infinity": (lambda q, c: (q * float("inf") + c).astype(F16), 5),
    "quotient": (lambda q, c: (c / q).astype(F16), 60),
    "to float8": (lambda q, c: (q * c).astype(ct.float8_e4m3fn).astype(F32), 5),
    "to other float8": (lambda q, c: (q * c).astype(ct.float8_e5m2).astype(F32), 5),
    "to bfloat16": (lambda q, c: (q * c).astype(BF16).astype(F32), 5),
    "to integers": (lambda q, c: (q * c).astype(ct.int32), 5),
    "to float64": (lambda q, c: (q.astype(F64) * c).astype(F16), 100),
    "moved": (lambda q, c: (-ct.broadcast_to(flat(q), (1, COLUMNS)) * c).astype(F16), 5),
    "scaled twice": (lambda q, c: (q * c * c).astype(F16), 3),
    "scaled up and down": (lambda q, c: (q * c * 0.25).astype(F16), 5),
    "used twice": (lambda q, c: (q * c).astype(F16).astype(F32) + q * 2.0**100, 5),
    "largest": (lambda q, c: ct.broadcast_to(largest(q) * c, (1, COLUMNS)).astype(F16), 100),
}


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", LATER)
def test_what_becomes_of_quotients(name):
    then, k = LATER[name]
    random = np.random.default_rng(6)
    x = np.ldexp(random.uniform(0.5, 1, (4, COLUMNS)), -random.integers(80, 146, (4, COLUMNS))).astype(np.float32)
    x[:, 0] = np.ldexp(random.uniform(0.5, 1, 4), [-44, -43, -20, 20])
    compare_later(then, x, (k - 1, k))


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", LATER)
def test_what_becomes_of_quotients_of_any_size(name):
    x = rows("f32")[::5]
    compare_later(LATER[name][0], x[np.isfinite(x).all(1) & (x != 0).any(1)], spread(-12, 11, 8))


@clause("ARITH-4.float")
@pytest.mark.parametrize("name", LATER)
def test_what_becomes_of_small_quotients(name):
    """Their scale is that of what is added to them."""
    random = np.random.default_rng(6)
    x = np.ldexp(random.uniform(0.5, 1, (4, COLUMNS)), -random.integers(96, 127, (4, COLUMNS))).astype(np.float32)
    x[:, 0] = np.ldexp(random.uniform(0.5, 1, 4), -43)
    compare_later(LATER[name][0], x, spread(-90, -22, 17))


def compare_later(then, x, exponents):
    scales = tuple(2.0**k for k in exponents)

    @ct.kernel
    def k(x, s, y):
        b = ct.bid(0)
        for j, c in ct.static_iter(tuple(enumerate(scales))):
            t = ct.load(x, (b, 0), (1, COLUMNS))  # anew, so that each quotient has one use
            d = total(abs(t))
            ct.store(s, (b, 0), d)
            ct.store(y, (b, j, 0), then(t / d, c).astype(F32).reshape((1, 1, COLUMNS)))

    @ct.kernel
    def again(q, y):
        b = ct.bid(0)
        for j, c in ct.static_iter(tuple(enumerate(scales))):
            ct.store(y, (b, j, 0), then(ct.load(q, (b, 0), (1, COLUMNS)), c).astype(F32).reshape((1, 1, COLUMNS)))

    s, (got, want) = np.empty((len(x), 1), np.float32), np.empty((2, len(x), len(scales), COLUMNS), np.float32)
    launch(k, x, s, got, grid=(len(x),))
    with np.errstate(all="ignore"):
        q = x / s
    launch(again, np.where(np.isfinite(q), q, 0), want, grid=(len(x),))
    same_bits(got[np.isfinite(q).all(1)], want[np.isfinite(q).all(1)])
