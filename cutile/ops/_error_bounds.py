"""How errors of operands pass through elementwise ops: the functions that an op names as its `error_bound=`.

An error is how far a number may be from the one that the interpreter has: an absolute distance, 0 or more, inf where
nothing is known. An error bound is called as bound(*operands, *errors, result), and returns for each element how far
the exact result may move. All are float64 arrays that broadcast: x, y and z are operands, ex, ey and ez their errors
(e that of a single operand), r is the result. Rounding the result, and what the op itself leaves open, are added
elsewhere. A bound must never be too small. If an op has no error bound, every result element that an
inexact operand reaches is unknown.

    @op(float_unary, error_bound=monotone(np.exp), …)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

INF = np.inf
ErrorBound = Callable[..., np.ndarray]


def monotone(f: Callable, least: float = -INF) -> ErrorBound:
    """Bound for a function of one operand that is monotone on all x >= least, without a pole: it is evaluated at x - e
    and x + e.
    """

    def bound(x, e, r):
        y = f(x)
        moved = np.maximum(np.abs(f(x + e) - y), np.abs(f(x - e) - y))
        return np.where(e == 0, 0, np.where((x - e < least) | ~np.isfinite(e), INF, moved))

    return bound


def monotone_in_each(f: Callable, defined: Callable) -> ErrorBound:
    """Bound for a function of two operands that is monotone in each: it is evaluated at the four corners of x±ex, y±ey.

    `defined(x, y, ex, ey)` says where it is monotone on that whole rectangle; elsewhere nothing is known.
    """

    def bound(x, y, ex, ey, r):
        r = f(x, y)
        moved = np.max([np.abs(f(x + a * ex, y + b * ey) - r) for a in (-1, 1) for b in (-1, 1)], axis=0)
        exact = (ex == 0) & (ey == 0)
        return np.where(exact, 0, np.where(defined(x, y, ex, ey), moved, INF))

    return bound


def of_sign(x, e, r):
    """Bound for ops that at most change signs."""
    return e


def of_wave(x, e, r):
    """Bound for functions between -1 and 1 that are nowhere steeper than 1: sine and cosine."""
    return np.minimum(e, 2)


def of_tan(x, e, r):
    """Bound for the tangent, by its slope 1 + r². Unknown near a pole."""
    return np.where(np.abs(np.cos(x)) > 4 * e, 2 * e * (1 + r * r), np.where(e > 0, INF, 0))


def of_cosh(x, e, r):
    """Bound for the hyperbolic cosine, which is steepest at the end away from 0."""
    return np.where(e > 0, np.cosh(np.abs(x) + e) - np.cosh(x), 0)


def of_sum(x, y, ex, ey, r):
    """Bound for sums and differences. An infinity without error stays what it is, whatever finite number is added."""
    certain = np.isinf(x) & (ex == 0) & np.isfinite(y) & np.isfinite(ey)
    certain |= np.isinf(y) & (ey == 0) & np.isfinite(x) & np.isfinite(ex)
    return np.where(certain, 0, ex + ey)


def of_product(x, y, ex, ey, r):
    """Bound for products."""
    return np.where(ex > 0, np.abs(y) * ex, 0) + np.where(ey > 0, np.abs(x) * ey, 0) + np.where(
        (ex > 0) & (ey > 0), ex * ey, 0)


def of_quotient(x, y, ex, ey, r):
    """Bound for quotients x / y. Unknown where the divisor may be 0."""
    left = np.abs(y) - ey
    return np.where(left > 0, (ex + np.where(ey > 0, np.abs(r) * ey, 0)) / left, np.where((ex > 0) | (ey > 0), INF, 0))


def of_fma(x, y, z, ex, ey, ez, r):
    """Bound for x * y + z."""
    return of_product(x, y, ex, ey, r) + ez


def of_larger(x, y, ex, ey, r):
    """Bound for the larger or smaller of x and y."""
    return np.maximum(*np.broadcast_arrays(ex, ey))


def of_choice(chosen, x, y, error, ex, ey, r):
    """Bound for x where `chosen` is not 0, else y. Where `chosen` has an error, either may be the result."""
    return np.where(error > 0, np.where((x == y) & (ex == 0) & (ey == 0), 0, INF), np.where(chosen != 0, ex, ey))


def of_comparison(x, y, ex, ey, r):
    """Bound for comparisons: unknown where the order of the sides may change."""
    return np.where((ex + ey > 0) & ~(np.abs(x - y) > ex + ey), INF, 0)


def of_nan_test(x, e, r):
    """Bound for isnan: a finite error makes no NaN."""
    return np.where(np.isfinite(e), 0, INF)
