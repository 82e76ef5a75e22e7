"""Arrays in every layout inside guard bands, places where blocks look, and what tiles are, told element by element.

The oracles are loops over Python integers: nothing here shares arithmetic with what is tested.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest

from conformance.harness.api import needs
from conformance.harness.probing import NUMPY

GUARD = 64  # bytes before the first and after the last element
FILL = 0xA5  # what bytes hold that are no element's

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
    """An array among bytes that are not its own."""

    array: np.ndarray
    buffer: np.ndarray
    own: np.ndarray

    def check(self, want: np.ndarray) -> None:
        """The array holds `want`, and no other byte has changed."""
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
    """Values over the whole range of a dtype, none of them NaN."""
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
    """Equal byte for byte."""
    got, want = np.asarray(got), np.asarray(want)
    kinds = [f"{x.dtype}{x.shape}" for x in (got, want)]
    assert kinds[0] == kinds[1], f"{kinds[0]} is not {kinds[1]}"
    size = got.itemsize
    a, b = (np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(-1, size) for x in (got, want))
    bad = np.flatnonzero((a != b).any(1))
    at = tuple(int(i) for i in np.unravel_index(bad[0], got.shape)) if len(bad) else ()
    assert not len(bad), f"{len(bad)} of {got.size} differ, first at {at}: got {got[at]!r}, wanted {want[at]!r}"


# ------------------------------------------------------------------ tiles, element by element


def places(array_shape: Sequence[int], index: Sequence[int], shape: Sequence[int], order: Sequence[int] | None = None,
           steps: Sequence[int] | None = None):
    """(position in the tile, position in the array, whether that exists) of each element of a tile."""
    order = range(len(array_shape)) if order is None else order
    steps = shape if steps is None else steps
    for x in itertools.product(*map(range, shape)):
        at = [0] * len(array_shape)
        for i, k in enumerate(order):
            at[k] = index[i] * steps[i] + x[i]
        yield x, tuple(at), all(0 <= p < n for p, n in zip(at, array_shape))


def tile_of(a: np.ndarray, index: Sequence[int], shape: Sequence[int], pad: Any = 0, order=None,
    steps=None) -> np.ndarray:
    """The tile at a tile index."""
    out = np.empty(tuple(shape), a.dtype)
    for x, at, exists in places(a.shape, index, shape, order, steps):
        out[x] = a[at] if exists else pad
    return out


def put_tile(a: np.ndarray, index: Sequence[int], tile: np.ndarray, order=None, steps=None) -> None:
    """Store a tile at a tile index."""
    for x, at, exists in places(a.shape, index, tile.shape, order, steps):
        if exists:
            a[at] = tile[x]


# ------------------------------------------------------------------ where blocks look

GRID = (4, 3, 2)


def straight(a, b, c):
    return a, b, c


def backwards(a, b, c):
    return 3 - a, 2 - b, 1 - c


def swapped(a, b, c):
    return b, c, a


def strided(a, b, c):
    return 2 * a, 3 * b, 2 * c


def summed(a, b, c):
    return a + b, b + c, 5 - a


def one_axis(a, b, c):
    return b, 1, 1


def fixed(a, b, c):
    return 1, 0, 1


def curved(a, b, c):
    return a * a, a * b, b * c


def ragged(a, b, c):
    return (a * 5 + b * 3) % 7, (a * b + c) % 4, (a + 2 * b) % 3


LOOKS = (straight, backwards, swapped, strided, summed, one_axis, fixed, curved, ragged)
looks = pytest.mark.parametrize("look", LOOKS, ids=lambda f: f.__name__)


def blocks(grid: Sequence[int] = GRID):
    """Block coordinates in grid order: the first axis slowest."""
    return itertools.product(*map(range, (*grid, 1, 1, 1)[:3]))


def fitting(look: Callable, tile: Sequence[int], edge: Sequence[int]) -> tuple[int, ...]:
    """Array sizes so that every tile a look meets lies inside, but for `edge` elements beyond the end of the last."""
    top = [max(look(*b)[k] for b in blocks()) for k in range(len(tile))]
    return tuple((i + 1) * t - e for i, t, e in zip(top, tile, edge))
