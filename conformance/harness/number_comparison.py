"""Assertions that compare numbers: bit for bit, or within units in the last place."""

from __future__ import annotations

import math

import numpy as np

from conformance.harness.number_formats import FORMATS


def assert_within(got, want, bound, name):
    """Assert that numbers are within `bound` units in the last place of finite references; specials and overflows are
    exact.
    """
    f = FORMATS[name]
    top = math.ldexp(2 - 2.0**-f.fraction, -f.emin + 1)
    unit = np.ldexp(1.0, np.maximum(np.frexp(want)[1] - 1, f.emin) - f.fraction)
    plain = np.isfinite(want) & (np.abs(want) < top) & (want != 0)
    with np.errstate(all="ignore"):
        error = np.abs(got - want) / unit
    bad = np.flatnonzero(plain & ~(error <= bound))
    assert not len(bad), f"{error[bad[0]]} ulp at {bad[0]}: {got[bad[0]]!r} for {want[bad[0]]!r}"
    huge = np.isfinite(want) & (np.abs(want) >= top * (1 + 2.0**-f.fraction))
    same_numbers(got[huge], np.copysign(np.inf, want[huge]))
    rest = ~np.isfinite(want) | (want == 0)
    same_numbers(got[rest], want[rest], name)


def same_numbers(got: np.ndarray, want: np.ndarray, about: object = "") -> None:
    """Assert that doubles are equal, with the signs of zeros; any NaN equals any NaN."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    ok = got == want
    if got.dtype.kind == "f":
        ok = ok & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
    bad = np.flatnonzero(~ok)
    assert not len(bad), (
        f"{about}: {len(bad)} of {got.size} differ, first at {bad[0]}: got {got[bad[0]]!r}, wanted {want[bad[0]]!r}"
    )
