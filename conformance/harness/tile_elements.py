"""What a tile of an array holds, element by element.

The oracles are loops over Python integers: they share no arithmetic with the code under test.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np


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
