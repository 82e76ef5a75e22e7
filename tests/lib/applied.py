"""A function of tiles, run on arrays, and how far its results are from exact ones."""

from __future__ import annotations

import ml_dtypes
import mpmath
import numpy as np
import pytest

import cutile as ct
from cutile.errors import TileStaticAssertionError

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)


def applied(f, *xs, shape=None, dtype=None, out=None):
    """What `f` gives for tiles of these arrays, which have the shapes of tiles. Without `shape` and `dtype` the result
    is like the first array.
    """
    first = xs[0]
    out = np.zeros(first.shape if shape is None else shape, dtype or first.dtype)
    to, starts, shapes = (0,) * out.ndim, tuple((0,) * x.ndim for x in xs), tuple(x.shape for x in xs)

    @ct.kernel
    def kernel(xs, y):
        tiles = tuple(ct.load(xs[k], starts[k], shapes[k]) for k in ct.static_iter(range(len(shapes))))
        ct.store(y, to, ct.reshape(f(*tiles), ct.static_eval(out.shape)))

    ct.launch(None, (1,), kernel, (xs, out))
    return out


def refused(f, *xs, says):
    with pytest.raises((TileStaticAssertionError, ct.TileTypeError), match=says) as caught:
        applied(f, *xs)
    return caught.value


def errors(x, y, exact, *, relative_to=None) -> np.ndarray:
    """How far each result is from the exact value of mpmath, in ulp of it; or in 2**-p of the magnitude of x, for a
    dtype of p digits. Results that are NaN, infinite or beyond the dtype must be so exactly.
    """
    kind = ml_dtypes.finfo(y.dtype)
    found = []
    with mpmath.workdps(40):
        for a, b in zip(x.astype(float).ravel(), y.astype(float).ravel(), strict=True):
            e = exact(mpmath.mpf(a))
            if mpmath.isnan(e):
                found.append(0 if np.isnan(b) else np.inf)
            elif mpmath.isinf(e) or abs(e) > float(kind.max):
                found.append(0 if b == np.sign(float(e)) * np.inf else np.inf)
            elif relative_to == "x":
                found.append(float(abs(b - e) / abs(a) * 2**(kind.nmant + 1)) if a else 0)
            else:
                exponent = max(int(mpmath.floor(mpmath.log(abs(e), 2))) if e else kind.minexp, kind.minexp)
                found.append(float(abs(b - e) / mpmath.mpf(2)**(exponent - kind.nmant)))
    return np.array(found)


def samples(dtype, most, n=512):
    """Numbers of both signs up to `most`: evenly spread, near zero, and of all magnitudes."""
    rng = np.random.default_rng(0)
    scales = np.exp(rng.uniform(np.log(max(1e-30, float(ml_dtypes.finfo(dtype).tiny))), np.log(most), n // 2))
    spread, near = rng.uniform(-most, most, n // 4), rng.uniform(-1.5, 1.5, n // 4)
    return np.concatenate([spread, near, scales * rng.choice([-1, 1], n // 2)]).astype(dtype)


def identical(a, b):
    """Whether two arrays have the same values, signs of zeros included; any NaN is like any other."""
    numbers = ~np.isnan(a)
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a[numbers]), np.signbit(b[numbers]))


def close(a, b):
    """Whether all is within the last digits."""
    return np.allclose(a.astype(float), b.astype(float), rtol=2e-7 if a.itemsize > 2 else 2**-7, atol=0)
