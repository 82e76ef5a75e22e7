"""Integers: ranges, wrapping, and operands that cover them."""

from __future__ import annotations

import numpy as np

from conformance.harness.code_kernels import apply, binary, dtype, numbers_of


def limits(name):
    """Smallest and largest value of an integer dtype."""
    w = dtype(name).bitwidth
    return (-(1 << (w - 1)), (1 << (w - 1)) - 1) if name[0] == "i" else (0, (1 << w) - 1)


def wrap(x, name):
    """An integer wrapped to a dtype."""
    w = dtype(name).bitwidth
    x %= 1 << w
    return x - (1 << w) if name[0] == "i" and x >> (w - 1) else x


def integer_pairs(name):
    """Operands of an integer dtype, each with each: all values of 8 bits, else ends, powers of two and random ones."""
    low, high = limits(name)
    if high < 256:
        xs = np.arange(low, high + 1)
    else:
        rng = np.random.default_rng(7)
        some = {
            low,
            low + 1,
            low // 2,
            -1,
            0,
            1,
            2,
            3,
            7,
            10,
            high // 2,
            high - 1,
            high,
            *(1 << k for k in range(0, 63, 5)),
        }
        some |= {int(v) for v in rng.integers(low, high, 40, np.dtype(name), endpoint=True)} | {-v for v in list(some)}
        xs = np.array(sorted(v for v in some if low <= v <= high), name)
    xs = xs.astype(name)
    return np.repeat(xs, len(xs)), np.tile(xs, len(xs))


def of_integers(fn, name, x, y):
    """fn(x, y) in a kernel, for arrays of an integer dtype."""
    return numbers_of(
        name, apply(binary(fn, name, name, name), name, x.view(f"u{x.itemsize}"), y.view(f"u{y.itemsize}"))
    )
