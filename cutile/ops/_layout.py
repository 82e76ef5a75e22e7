"""Where the leading axes of carriers, which count blocks, lie in memory: first, or last.

They come first in every shape. If they lie last in memory, NumPy's inner loops run over blocks, which pays where the
last axes of tiles are short. NumPy gives results the layout of operands. Here are the operations for which it does
not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

ENOUGH = 32  # blocks, for an inner loop of NumPy
# Addresses that differ by multiples of so many bytes share few lines of the cache: reading elements that lie so takes
# up to six times as long, and copying them apart first pays [measured].
CONFLICT = 1024


def lie_last(x: np.ndarray, rank: int) -> bool:
    """Whether the blocks of a carrier of tiles of `rank` dimensions lie last in memory."""
    n = x.ndim - rank
    if x.flags.c_contiguous or not n:
        return False
    nearest = min((s for s, m in zip(x.strides[:n], x.shape[:n], strict=True) if m > 1), default=0)
    return nearest > 0 and all(nearest < s for s, m in zip(x.strides[n:], x.shape[n:], strict=True) if m > 1)


def with_blocks_last(x: np.ndarray, rank: int) -> np.ndarray:
    """The carrier in memory where the blocks lie last; as it is if they are few."""
    n = x.ndim - rank
    if not n or prod(x.shape[:n]) < ENOUGH or lie_last(x, rank):
        return x
    if any(m > 1 and s % CONFLICT == 0 for s, m in zip(x.strides[:n], x.shape[:n], strict=True)):
        size = prod(x.shape[n:])
        there = np.empty((*x.shape[:n], size + 64 // x.itemsize), x.dtype)[..., :size].reshape(x.shape)
        there[...] = x
        x = there
    y = empty_last(x.shape, rank, x.dtype)
    y[...] = x
    return y


def empty_result(rank: int, dtype: np.dtype, *operands: np.ndarray) -> np.ndarray | None:
    """Memory for the result of an elementwise op, where the blocks lie last; None if there are none, or few."""
    shape = np.broadcast_shapes(*(x.shape for x in operands))
    n = len(shape) - rank
    return None if not n or prod(shape[:n]) < ENOUGH else empty_last(shape, rank, dtype)


def copied_apart(x: np.ndarray, rank: int) -> np.ndarray:
    """The carrier, copied if the blocks lie last and it could only be read slowly tile by tile."""
    if not lie_last(x, rank) or _gap(prod(x.shape[:x.ndim - rank]), x.itemsize) == 0:
        return x
    y = empty_last(x.shape, rank, x.dtype)
    y[...] = x
    return y


def empty_last(shape: Sequence[int], rank: int, dtype: np.dtype) -> np.ndarray:
    """New memory for a carrier, where the blocks lie last."""
    n = len(shape) - rank
    count, tile_shape = prod(shape[:n]), tuple(shape[n:])
    y = np.empty((*tile_shape, count + _gap(count, dtype.itemsize)), dtype)[..., :count]
    return y.reshape(tile_shape + tuple(shape[:n])).transpose((*range(rank, len(shape)), *range(rank)))


def _gap(count: int, size: int) -> int:
    """How many elements of this size to leave free behind each `count`."""
    return 64 // size if count * size % CONFLICT == 0 else 0


def reshaped(x: np.ndarray, rank: int, shape: tuple[int, ...]) -> np.ndarray:
    """Tiles of another shape; the blocks stay where they lie."""
    n = x.ndim - rank
    batch_shape = x.shape[:n]
    if not lie_last(x, rank):
        return x.reshape(batch_shape + shape)
    y = x.transpose((*range(n, x.ndim), *range(n))).reshape(shape + batch_shape)
    return y.transpose((*range(len(shape), y.ndim), *range(len(shape))))


def joined(tiles: Sequence[np.ndarray], rank: int, axis: int) -> np.ndarray:
    """Carriers of one shape, joined along a negative axis; the blocks stay where those of the first one lie."""
    if not lie_last(tiles[0], rank):
        return np.concatenate(tiles, axis=axis)
    shape = list(tiles[0].shape)
    shape[axis] *= len(tiles)
    return np.concatenate(tiles, axis=axis, out=empty_last(shape, rank, tiles[0].dtype))
