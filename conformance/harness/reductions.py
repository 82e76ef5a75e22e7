"""Kernels that reduce a tile, and rows of numbers that are hard to reduce."""

from __future__ import annotations

import math

import numpy as np

from conformance.harness.api import ct, run
from conformance.harness.code_kernels import dtype, numbers_of
from conformance.harness.number_formats import width

inf, nan = math.inf, math.nan

TINY = [
    (2.0**-130, 1.0),
    (2.0**-127, 2.0**-127),
    (-(2.0**-130), -0.0),
    (2.0**-126, -(2.0**-127)),
    (2.0**-100, 2.0**-100),
    (3.0, 5.0),
    (2.0**-64, 2.0**-63),
    (2.0**-126, 0.5),
]

ROWS = [
    [1.0, nan, 3.0, 2.0],
    [nan] * 4,
    [nan, nan, -5.0, nan],
    [0.0, -0.0, 0.0, -0.0],
    [-0.0, -0.0, -0.0, -0.0],
    [-0.0, 0.0, nan, -0.0],
    [inf, -inf, 1.0, nan],
    [-inf, -inf, nan, -inf],
    [-3.0, -2.0, -1.0, -4.0],
    [0.0, -0.0, -1.0, 1.0],
    [-0.0, -1.0, -2.0, 0.0],
    [-1.0, -0.0, 0.0, -2.0],
    [1.0, 0.0, -0.0, 2.0],
    [nan, 1.0, 2.0, 3.0],
    [1.0, 2.0, 3.0, nan],
    [inf, inf, inf, inf],
]


def reduced(fn, c, d, shape, o):
    """The numbers of fn(tile): `c` holds the codes of a tile of dtype `d`; the result has dtype `o` and any shape."""
    dd, oo, n, w = dtype(d), dtype(o), c.size, dtype(f"uint{width(o)}")

    @ct.kernel
    def k(a, dims, out):
        x = ct.load(a, 0, n)
        y = fn(ct.reshape(x if dd == ct.bool_ else ct.bitcast(x, dd), shape))
        right = y.dtype == oo
        ct.static_assert(right)
        ct.store(dims, 0, y.ndim)
        for axis in ct.static_iter(range(y.ndim)):
            ct.store(dims, axis + 1, y.shape[axis])
        y = ct.reshape(y, (-1,))
        ct.store(out, 0, y if oo == ct.bool_ else ct.bitcast(y, w))

    dims, out = np.zeros(8, np.int32), np.zeros(2 * n, np.bool_ if o == "bool_" else f"u{width(o) // 8}")
    run(k, c.reshape(-1), dims, out)
    result = tuple(dims[1:1 + dims[0]].tolist())
    return numbers_of(o, out[:math.prod(result)]).reshape(result)
