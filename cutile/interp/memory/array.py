"""The protocol of arrays in a running kernel, which meanings of ops use.

`ArrayView` is a rectangle of an argument's memory, `ForeignView` has elements at computed offsets in it, and
`PerBlockArray` is one of several arrays for each block. Only these classes know where elements lie.

All methods work on many blocks at once: indices and tiles have batch axes, and so do the sizes of an array that differs
by block. If several accesses hit one element, they act in row-major order of the blocks, then of the elements of their
tiles. An element outside the array is never read or written, whatever the indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from cutile.dtypes import DType
from cutile.interp.memory.buffer import Buffer
from cutile.interp.memory.tile_locations import Index, element_begins

Shape = tuple[int, ...]
Take = Callable[[np.ndarray, int], np.ndarray]  # (carrier, rank of its tiles) → the carrier for other blocks


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
        """Lengths of the batch axes over which the array differs; () if it is the same for all blocks."""

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """All memory in which the array may have elements."""

    @property
    def shape(self) -> tuple[np.ndarray, ...]:
        """The size along each axis, as carriers of the index dtype."""

    @property
    def strides(self) -> tuple[np.ndarray, ...]:
        """Elements from one to the next along each axis, as carriers of the index dtype."""

    # -- arrays made from this one

    def for_blocks(self, take: Take) -> Array:
        """The array for other blocks: `take(carrier, 0)` returns these blocks' part of a value with batch axes."""

    def slice(self, axis: int, start: np.ndarray, stop: np.ndarray) -> Array:
        """[SLICE-1]: elements start … stop-1 of one axis. The length is taken in the index dtype."""

    @property
    def raw(self) -> Array:
        """The memory of the array as an array of rank 1 without bounds: index i is the element i places after the first
        one, or before it if i is negative [RAW-5].
        """

    def pointer(self, encode: Callable) -> np.ndarray:
        """A foreign pointer to the first element, which `encode(buffer, byte offset)` makes [FPTR-2]."""

    def over(self, memory: Callable[[Buffer], Buffer]) -> Array:
        """The same elements in other memory: `memory(buffer)` has the shape of the buffer, and may have other dtypes
        and strides.
        """

    # -- tiles, at tile indices: dimension i of a tile runs along axis order[i], where tile j begins at j·steps[i]

    def tile(self, origin: Sequence[Index], shape: Shape, order: Sequence[int], fill,
             steps: Sequence[int] | None = None) -> np.ndarray:
        """The tiles of all blocks, with `fill` for elements outside the array."""

    def put(self, origin: Sequence[Index], tile: np.ndarray, shape: Shape, order: Sequence[int],
            steps: Sequence[int] | None = None) -> None:
        """Store a carrier of tiles; elements outside the array are dropped."""

    def view(self, origin: Sequence[Index], shape: Shape, order: Sequence[int],
             steps: Sequence[int] | None = None) -> np.ndarray | None:
        """The tiles of all blocks as one view, which may share the array's memory; None if a tile is not wholly inside
        the array, or the tiles do not lie so that one view holds them.
        """

    def target(self, origin: Sequence[Index], shape: Shape, order: Sequence[int],
               batch_shape: Shape) -> np.ndarray | None:
        """A view of memory, of shape batch_shape + shape, into which the tiles of all blocks may be computed. None if
        there is none, or if tiles of different blocks share an element.
        """

    # -- elements, at index tiles of shape `tile_shape`, one per axis

    def exists(self, indices: Sequence[np.ndarray], rank: int) -> np.ndarray:
        """Which elements exist, at index tiles of `rank` dimensions; a single True if all do."""

    def gather(self, indices: Sequence[np.ndarray], mask: np.ndarray | None, fill, tile_shape: Shape,
               out: np.ndarray | None = None) -> np.ndarray:
        """The elements; `fill` (a carrier) where an index is out of range or the mask is False. The result may be
        written to `out` if that has its shape; `out` is then returned.
        """

    def scatter(self, indices: Sequence[np.ndarray], value: np.ndarray, mask: np.ndarray | None,
                tile_shape: Shape) -> None:
        """Store a carrier to the elements; nothing where an index is out of range or the mask is False."""

    def update(self, kind: str, indices: Sequence[np.ndarray], operands: Sequence[np.ndarray], mask: np.ndarray | None,
               tile_shape: Shape, batch_shape: Shape, old: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Atomic updates, once for each running block (`batch_shape`). Returns two arrays: which updates took place,
        and the value that each found (0 where none took place, and everywhere without `old`).
        """


# ------------------------------------------------------------------ other accesses


class ArrayBase:
    """Accesses that all kinds of arrays have in common, made of `tile`, `put` and `update`."""

    def rows(self: Array, axis: int, sparse: np.ndarray, starts: Sequence[np.ndarray], shape: Shape,
             fill) -> np.ndarray:
        """Advanced indexing [ADV-3]: positions `sparse` (a vector for each block) along `axis`, ranges along the other
        axes that begin at `starts`.
        """
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
        """Atomic updates of the elements of the tile at a tile index."""
        self.update(kind, tile_elements(origin, shape, steps), (update,), None, shape, batch_shape, False)


def _row_tiles(axis: int, sparse: np.ndarray, starts: Sequence[np.ndarray],
               shape: Shape) -> tuple[list[np.ndarray], Shape]:
    """Origin and shape of the tiles at some positions along an axis. Each tile has one row. The positions form one more
    batch axis, which comes last.
    """
    origin = [_widened(s, 0) for s in starts]
    origin.insert(axis, np.asarray(sparse))
    return origin, (*shape[:axis], 1, *shape[axis + 1:])


def _beside_rows(array: Array) -> Array:
    """The array with one more batch axis, of length 1, after its own. It pairs with the batch axis of positions."""
    return array.for_blocks(_widened)


def _widened(x: np.ndarray, rank: int) -> np.ndarray:
    x = np.asarray(x)
    return x[..., None] if x.ndim else x


def tile_elements(origin: Sequence[Index], shape: Shape, steps: Sequence[int]) -> list[np.ndarray]:
    """The indices of the elements of tiles, for each axis as an index tile of that shape."""
    rank, out = len(shape), []
    for k, begin in enumerate(element_begins(origin, steps)):
        along = np.arange(shape[k]).reshape([-1 if a == k else 1 for a in range(rank)])
        out.append(begin[(...,) + (None,) * rank] + along)
    return out
