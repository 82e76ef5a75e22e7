"""Arrays of every layout between guard bytes, which show writes outside the array; values to fill them with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest

from conformance.harness.api import needs
from conformance.harness.dtype_names import NUMPY

GUARD = 64  # guard bytes before the first and after the last element
FILL = 0xA5  # the value of bytes that belong to no element

# ------------------------------------------------------------------ layouts


def _c(shape: Sequence[int]) -> list[int]:
    return [prod(shape[k + 1:]) for k in range(len(shape))]


def _f(shape: Sequence[int]) -> list[int]:
    return [prod(shape[:k]) for k in range(len(shape))]


def _gaps(shape: Sequence[int]) -> list[int]:
    return [2 * s for s in _c([2 * n + 1 for n in shape])]


def _signs(strides: list[int]) -> list[int]:
    return [s if k % 2 else -s for k, s in enumerate(strides)]


LAYOUTS: dict[str, Callable[[Sequence[int]], list[int]]] = {  # strides in elements, from the shape
    "contiguous": _c,
    "transposed": _f,
    "gaps": _gaps,
    "reversed": lambda shape: [-s for s in _c(shape)],
    "mixed": lambda shape: _signs(_gaps(shape[::-1])[::-1]),
}
layouts = pytest.mark.parametrize("layout", [
    pytest.param(n, marks=needs("negative strides")) if n in ("reversed", "mixed") else n for n in LAYOUTS])


@dataclass
class Guarded:
    """An array between guard bytes."""

    array: np.ndarray
    buffer: np.ndarray
    own: np.ndarray

    def check(self, want: np.ndarray) -> None:
        """Assert that the array holds `want`, and that no other byte has changed."""
        same(self.array, want)
        touched = np.flatnonzero((self.buffer != FILL) & ~self.own)
        assert not len(touched), f"{len(touched)} bytes that are no element's have changed, first at {touched[0]}"


def guarded(values: np.ndarray, layout: str = "contiguous") -> Guarded:
    """An array with these values and the strides of a layout."""
    values = np.asarray(values)
    size = values.itemsize
    strides = [s * size for s in LAYOUTS[layout](values.shape)]
    low = sum(s * (n - 1) for s, n in zip(strides, values.shape) if s < 0 and n)
    reach = sum(abs(s) * (n - 1) for s, n in zip(strides, values.shape) if n) + size
    buffer = np.full(2 * GUARD + reach, FILL, np.uint8)
    own = np.zeros(len(buffer), bool)
    a = np.ndarray(values.shape, values.dtype, buffer, GUARD - low, strides)
    a[...] = values
    np.ndarray((*values.shape, size), bool, own, GUARD - low, (*strides, 1))[...] = True
    return Guarded(a, buffer, own)


# ------------------------------------------------------------------ values


def numbers(shape: Sequence[int] | int, dtype: Any = np.int32, start: int = 1) -> np.ndarray:
    """start, start + 1, … in row-major order."""
    n = prod(shape) if not isinstance(shape, int) else shape
    return (np.arange(n) + start).astype(dtype).reshape(shape)


def sample(short: str, shape: Sequence[int] | int, seed: int = 0) -> np.ndarray:
    """Random values over the whole range of a dtype, without NaN."""
    rng = np.random.default_rng(seed)
    n = prod(shape) if not isinstance(shape, int) else shape
    d = np.dtype(NUMPY[short])
    if short == "b1":
        return rng.integers(0, 2, n).astype(bool).reshape(shape)
    top = 16 if short == "e2m1" else 256
    codes = rng.integers(0, top, (n, d.itemsize), np.uint8)
    x = codes.reshape(-1).view(d)
    if d.kind not in "iu" and short != "e2m1":
        with np.errstate(invalid="ignore"):
            x = np.where(np.isnan(x.astype(np.float64)), np.ones_like(x), x)
    return np.ascontiguousarray(x).reshape(shape)


def same(got: np.ndarray, want: np.ndarray) -> None:
    """Assert that arrays are equal byte for byte."""
    got, want = np.asarray(got), np.asarray(want)
    kinds = [f"{x.dtype}{x.shape}" for x in (got, want)]
    assert kinds[0] == kinds[1], f"{kinds[0]} is not {kinds[1]}"
    size = got.itemsize
    a, b = (np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(-1, size) for x in (got, want))
    bad = np.flatnonzero((a != b).any(1))
    at = tuple(int(i) for i in np.unravel_index(bad[0], got.shape)) if len(bad) else ()
    assert not len(bad), f"{len(bad)} of {got.size} differ, first at {at}: got {got[at]!r}, wanted {want[at]!r}"
