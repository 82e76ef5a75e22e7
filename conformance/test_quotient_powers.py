"""Quotients of powers by their totals, as a softmax has them: very small powers, and largest ones that are 1 or not."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, same_bits
from conformance.test_quotient_limits import compare, compare_all
from conformance.test_row_division import COLUMNS, F32, falling_powers, largest, rising_powers, total


@clause("ARITH-4.float")
@pytest.mark.parametrize("power", [ct.exp, ct.exp2], ids=["natural", "of two"])
def test_small_powers(power):
    """Some have few bits left, and become normal again where they are scaled."""
    x = -np.random.default_rng(7).uniform(64, 152, (16, COLUMNS)).astype(np.float32)
    x[:, 0] = 0
    x *= np.float32(np.log(2) if power is ct.exp else 1)
    compare_all(lambda t, c: (power(t - largest(t)) * 2.0**24, ct.full((1, 1), c, F32)), x,
                tuple(0.2 + i / 37 for i in range(24)), F32, False)


@clause("ARITH-4.float")
@pytest.mark.parametrize("power", [ct.exp, ct.exp2], ids=["natural", "of two"])
@pytest.mark.parametrize("columns", [1, 2, 8])
def test_powers_of_which_no_one_may_be_one(columns, power):
    """The largest of each row, and the total of each column."""
    n = 64

    @ct.kernel
    def k(x, e, s, q):
        t = ct.load(x, (0, 0), (n, columns))
        a = power(t - ct.max(t, axis=1, keepdims=True))
        d = ct.sum(a, axis=0, keepdims=True)
        ct.store(e, (0, 0), a)
        ct.store(s, (0, 0), d)
        ct.store(q, (0, 0), (a / d).astype(q.dtype))

    random = np.random.default_rng(5)
    x = (random.uniform(0, 4, (n, columns)) - 16 * np.arange(columns)).astype(np.float32)
    e, s, q = np.empty_like(x), np.empty((1, columns), np.float32), np.empty(x.shape, np.float16)
    launch(k, x, e, s, q)
    with np.errstate(all="ignore"):
        same_bits(q, (e / s).astype(q.dtype))


def carried_largest(t):
    m = largest(t)
    for _ in range(2):
        m = ct.maximum(m, -1.0)
    return m


#: what is subtracted from numbers before powers of them are taken
SUBTRACTED = {
    "total": total,
    "smallest": lambda t: ct.min(t, axis=1, keepdims=True),
    "largest": largest,
    "largest, NaN too": lambda t: ct.max(t, axis=1, keepdims=True, propagate_nan=True),
    "largest of another": lambda t: largest(t * 0.5),
    "largest of columns": lambda t: ct.max(t, axis=0, keepdims=True),
    "carried": carried_largest,
    "first": lambda t: ct.extract(t, (0, 0), (t.shape[0], 1)),
    "largest and more": lambda t: largest(t) + 1.0,
    "number": lambda t: 1.5,
    "sum": lambda t: t + largest(t),
    "largest of all": lambda t: ct.max(t),
    "largest, moved": lambda t: ct.max(t, axis=1).reshape((1, t.shape[0])),
    "root of the largest": lambda t: ct.sqrt(largest(abs(t))),
}


@clause("ARITH-4.float")
@pytest.mark.parametrize("size", [1.375, -1.375, 80.0])
@pytest.mark.parametrize("name", SUBTRACTED)
def test_powers(name, size):
    """Very small and very large ones, divided by their totals."""
    subtracted = SUBTRACTED[name]

    def both(t, c):
        e = ct.exp(t - subtracted(t))
        return e, total(e)

    x = np.random.default_rng(4).uniform(0.9, 1, (4, COLUMNS)) * [[1], [1], [0.5], [-1]]
    compare_all(both, (x * size).astype(np.float32), (1.0,), F32, True)


@clause("ARITH-4.float")
@pytest.mark.parametrize("powers", [falling_powers, rising_powers])
def test_scaled_powers(powers):
    compare(lambda t, c: powers(t * c), "f32", (0, 4), half=True)
