"""Products of matrices given as codes, and their exact values."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from conformance.harness.api import ct, run
from conformance.harness.code_kernels import dtype, numbers_of
from conformance.harness.number_formats import FORMATS, encode, width


def product(fn, d, e, a, x, y, z, o=None):
    """The numbers of fn(x, y, z), given codes of matrices of dtypes d, e, a; the result has dtype o or a."""
    dd, ee, aa, oo = dtype(d), dtype(e), dtype(a), dtype(o or a)
    WORD = getattr(ct, f"uint{width(o or a)}")
    xs, ys, zs = x.shape, y.shape, z.shape
    zero = [(0,) * len(s) for s in (xs, ys, zs)]
    i, j, k_ = zero

    @ct.kernel
    def k(x, y, z, out):
        r = fn(ct.bitcast(ct.load(x, i, xs), dd), ct.bitcast(ct.load(y, j, ys), ee), ct.bitcast(ct.load(z, k_, zs), aa))
        right = r.dtype == oo
        ct.static_assert(right and r.shape == zs)
        ct.store(out, k_, ct.bitcast(r, WORD))

    return numbers_of(o or a, run(k, x, y, z, np.zeros(zs, f"u{width(o or a) // 8}")))


def small(name, shape, seed, high=3):
    """Codes of small integers, whose products and sums are exact everywhere."""
    v = np.random.default_rng(seed).integers(-high, high + 1, shape)
    if name in FORMATS:
        return encode(name, v.astype(float).ravel()).reshape(shape)
    return (np.abs(v) if name[0] == "u" else v).astype(name).view(f"u{width(name) // 8}")


def exactly(x, y, z):
    """x @ y + z in Python's numbers, with batch axes."""
    x, y = np.asarray(x), np.asarray(y)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = np.broadcast_to(x, batch + x.shape[-2:]), np.broadcast_to(y, batch + y.shape[-2:])
    out = np.empty(np.shape(z), object)
    for b in itertools.product(*map(range, batch)):
        for m, n in itertools.product(range(x.shape[-2]), range(y.shape[-1])):
            out[(*b, m, n)] = sum(
                Fraction(p) * Fraction(q) for p, q in zip(x[b][m].tolist(), y[b][:, n].tolist(), strict=True)
            ) + Fraction(z[(*b, m, n)].item())
    return out
