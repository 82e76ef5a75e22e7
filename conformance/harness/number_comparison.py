"""Assertions that compare numbers: bit for bit, or within units in the last place."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from conformance.harness.number_formats import FORMATS


def assert_within(got, want, bound, name, of: Sequence[np.ndarray] = ()):
    """Assert that numbers are within `bound` units in the last place of finite references; specials and overflows are
    exact. `of`: the operands that gave the numbers, for the message.
    """
    f = FORMATS[name]
    top = math.ldexp(2 - 2.0**-f.fraction, -f.emin + 1)
    unit = np.ldexp(1.0, np.maximum(np.frexp(want)[1] - 1, f.emin) - f.fraction)
    plain = np.isfinite(want) & (np.abs(want) < top) & (want != 0)
    with np.errstate(all="ignore"):
        error = np.abs(got - want) / unit
    bad = np.flatnonzero(plain & ~(error <= bound))
    if len(bad):
        i = bad[0]
        raise AssertionError(f"{error[i]} ulp at {i}: {_shown(got[i])} for {_shown(want[i])}{_operands(i, of)}")
    huge = np.isfinite(want) & (np.abs(want) >= top * (1 + 2.0**-f.fraction))
    same_numbers(got[huge], np.copysign(np.inf, want[huge]), name, of=[v[huge] for v in of])
    rest = ~np.isfinite(want) | (want == 0)
    same_numbers(got[rest], want[rest], name, of=[v[rest] for v in of])


def same_numbers(got: np.ndarray, want: np.ndarray, about: object = "", of: Sequence[np.ndarray] = ()) -> None:
    """Assert that doubles are equal, with the signs of zeros; any NaN equals any NaN.

    `about` and the operands `of` that gave the numbers are for the message.
    """
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    ok = got == want
    if got.dtype.kind == "f":
        ok = ok & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
    bad = np.flatnonzero(~ok)
    if len(bad):
        i = bad[0]
        raise AssertionError(f"{about}: {len(bad)} of {got.size} differ, first at {i}: got {_shown(got.flat[i])}, "
                             f"wanted {_shown(want.flat[i])}{_operands(i, of)}")


def _shown(x: np.generic) -> str:
    return repr(x.item())


def _operands(i: int, of: Sequence[np.ndarray]) -> str:
    """The operands at a place, for a message."""
    return f"; of {', '.join(_shown(v.flat[i]) for v in of)}" if of else ""
