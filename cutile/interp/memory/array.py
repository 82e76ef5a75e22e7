"""What an operand of array type is while the interpreter runs: the protocol that meanings of ops use.

`ArrayView` is a rectangle of an argument's memory, `ForeignView` elements of a memory at computed offsets, and
`PerBlockArray` one of several arrays for each block. Only these know how they lie; everything else uses the protocol.

All methods work on many blocks at once: indices and tiles have batch axes, and so have the sizes of an array that
differs by block. Blocks come in row-major order of the batch axes, elements in row-major order after them: where
several meet in one element, that is the order in which they act. No element that is not the array's own is ever read
or written, whatever the indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from cutile.dtypes import DType
from cutile.interp.memory.buffer import Buffer
from cutile.interp.memory.tile_access import Index, element_begins

Shape = tuple[int, ...]
Take = Callable[[np.ndarray, int], np.ndarray]  # (carrier, rank of its tiles) → the carrier of other blocks


class Array(Protocol):
    dtype: DType
    index_dtype: DType
    ndim: int

    @property
    def name(self) -> str:
        """The parameter it comes from, for messages."""

    @property
    def writable(self) -> bool:
        """Whether it may be stored to."""

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Batch axes over which the array differs."""

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The memory that it may reach."""

    @property
    def shape(self) -> tuple[np.ndarray, ...]:
        """Sizes, as carriers of the index dtype."""

    @property
    def strides(self) -> tuple[np.ndarray, ...]:
        """Elements from one to the next along each axis, as carriers of the index dtype."""

    # -- arrays made from this one

    def lanes(self, take: Take) -> Array:
        """The array for other blocks: `take(carrier, 0)` gives their part of a value with batch axes."""

    def slice(self, axis: int, start: np.ndarray, stop: np.ndarray) -> Array:
        """[SLICE-1]: elements start … stop-1 of one axis. The length is taken in the index dtype."""

    @property
    def raw(self) -> Array:
        """The memory that the first element lies in, as an array of rank 1 without bounds: index i is the element i
        elements after the first, i may be negative [RAW-5].
        """

    def pointer(self, encode: Callable) -> np.ndarray:
        """A foreign pointer to the first element, as `encode(buffer, byte offset)` writes it [FPTR-2]."""

    # -- tiles, at tile indices: dimension i of a tile runs along axis order[i], tiles begin every steps[i] elements

    def tile(self, origin: Sequence[Index], shape: Shape, order: Sequence[int], fill,
             steps: Sequence[int] | None = None) -> np.ndarray:
        """The tiles of all blocks, `fill` outside the array."""

    def put(self, origin: Sequence[Index], tile: np.ndarray, shape: Shape, order: Sequence[int],
            steps: Sequence[int] | None = None) -> None:
        """Store a carrier of tiles; elements outside the array are dropped."""

    def view(self, origin: Sequence[Index], shape: Shape, order: Sequence[int],
             steps: Sequence[int] | None = None) -> np.ndarray | None:
        """What `tile` gives, if the tiles of all blocks lie inside the array and are found as one view; else None."""

    def target(self, origin: Sequence[Index], shape: Shape, order: Sequence[int],
               batch_shape: Shape) -> np.ndarray | None:
        """One view of memory into which a carrier of tiles may be computed, of shape batch_shape + shape, in which each
        block has a place of its own; None if there is none.
        """

    # -- elements, at index tiles of shape `tile_shape`, one per axis

    def gather(self, indices: Sequence[np.ndarray], mask: np.ndarray | None, fill, tile_shape: Shape,
               out: np.ndarray | None = None) -> np.ndarray:
        """The elements; `fill` (a carrier) where an index is out of range or the mask is False. They may come in
        `out`, if that has their shape.
        """

    def scatter(self, indices: Sequence[np.ndarray], value: np.ndarray, mask: np.ndarray | None,
                tile_shape: Shape) -> None:
        """Store a carrier to the elements; nothing where an index is out of range or the mask is False."""

    def update(self, kind: str, indices: Sequence[np.ndarray], operands: Sequence[np.ndarray], mask: np.ndarray | None,
               tile_shape: Shape, batch_shape: Shape, old: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Atomic updates, once for each running block (`batch_shape`). Which took place, and the values before (0 where
        none did, or without `old`).
        """


# ------------------------------------------------------------------ in terms of these


class ArrayBase:
    """What arrays have besides the primitives of the protocol, made of these."""

    def rows(self: Array, axis: int, sparse: np.ndarray, starts: Sequence[np.ndarray], shape: Shape,
             fill) -> np.ndarray:
        """Advanced indexing [ADV-3]: positions `sparse` (a vector per block) along `axis`, ranges along the others."""
        origin, one_row = _row_tiles(axis, sparse, starts, shape)
        x = _beside_rows(self).tile(origin, one_row, range(self.ndim), fill, (1,) * self.ndim)
        blocks = x.ndim - self.ndim - 1
        return np.moveaxis(np.squeeze(x, blocks + 1 + axis), blocks, blocks + axis)

    def put_rows(self: Array, axis: int, sparse: np.ndarray, starts: Sequence[np.ndarray], tile: np.ndarray,
                 shape: Shape) -> None:
        origin, one_row = _row_tiles(axis, sparse, starts, shape)
        blocks = tile.ndim - self.ndim
        value = np.expand_dims(np.moveaxis(tile, blocks + axis, blocks), blocks + 1 + axis)
        _beside_rows(self).put(origin, value, one_row, range(self.ndim), (1,) * self.ndim)

    def update_tile(self: Array, kind: str, origin: Sequence[Index], update: np.ndarray, shape: Shape,
                    steps: Sequence[int], batch_shape: Shape) -> None:
        """Atomic updates of the tile at a tile index."""
        self.update(kind, tile_elements(origin, shape, steps), (update,), None, shape, batch_shape, False)


def _row_tiles(axis: int, sparse: np.ndarray, starts: Sequence[np.ndarray],
               shape: Shape) -> tuple[list[np.ndarray], Shape]:
    """Each position names a tile of its own: the positions are one more batch axis, the last."""
    origin = [_widened(s, 0) for s in starts]
    origin.insert(axis, np.asarray(sparse))
    return origin, (*shape[:axis], 1, *shape[axis + 1:])


def _beside_rows(array: Array) -> Array:
    """The array with one more batch axis, of length 1, after its own."""
    return array.lanes(_widened)


def _widened(x: np.ndarray, rank: int) -> np.ndarray:
    x = np.asarray(x)
    return x[..., None] if x.ndim else x


def tile_elements(origin: Sequence[Index], shape: Shape, steps: Sequence[int]) -> list[np.ndarray]:
    """The indices of the elements of tiles, as index tiles of that shape."""
    rank, out = len(shape), []
    for k, begin in enumerate(element_begins(origin, steps)):
        along = np.arange(shape[k]).reshape([-1 if a == k else 1 for a in range(rank)])
        out.append(begin[(...,) + (None,) * rank] + along)
    return out
