"""Reductions and scans with functions of the user, of floats without arithmetic: they choose the larger element."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch

DTYPES = ("tfloat32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu")
X = np.array([[1, 2, 4, 0.5], [16, 0.5, 2, 1]], np.float32)  # powers of two, which all these dtypes have
LEAST = 0.25


@clause("RED-9.x")
@pytest.mark.parametrize("name", DTYPES)
def test_larger_elements(name):
    dtype, mode = getattr(ct, name), ct.RoundingMode.RZ if name == "float8_e8m0fnu" else None

    def larger(a, b):
        return ct.where(a.astype(ct.float32) > b.astype(ct.float32), a, b)

    @ct.kernel
    def k(x, one, two, parts):
        t = ct.load(x, (0, 0), (2, 4)).astype(dtype, rounding_mode=mode)
        ct.store(one, 0, ct.reduce(t, 1, larger, LEAST).astype(ct.float32))
        u, v = ct.reduce((t, t), 1, lambda a, b, c, d: (larger(a, c), larger(b, d)), (LEAST, LEAST))
        ct.store(two, 0, u.astype(ct.float32) + v.astype(ct.float32))
        ct.store(parts, (0, 0), ct.scan(t, 1, larger, LEAST).astype(ct.float32))

    one, two, parts = np.zeros(2, np.float32), np.zeros(2, np.float32), np.zeros((2, 4), np.float32)
    launch(k, X, one, two, parts)
    assert one.tolist() == X.max(1).tolist() and two.tolist() == (2 * X.max(1)).tolist()
    assert parts.tolist() == np.maximum.accumulate(X, 1).tolist()
