"""Arrays at foreign pointers and raw memory: elements at computed offsets in the memory of an argument.

Only addresses that are elements of the argument exist. Tiles are accessed element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cutile.dtypes import DType, info
from cutile.interp.memory import elements
from cutile.interp.memory.array import ArrayBase, tile_elements
from cutile.interp.memory.buffer import Buffer
from cutile.interp.memory.elements import beside, coord, shape_of
from cutile.interp.memory.tile_locations import Coord

FAR = 1 << 55  # elements that raw memory reaches in both directions; no argument has as many


class ForeignView(ArrayBase):
    """Element (i_0, i_1, …) lies offset + Σ steps[k]·i_k·itemsize bytes after element (0, …) of a buffer.

    The offset (in bytes), sizes and steps (in elements) are each an int or an array over the batch axes. The lowest
    index is `low`. `home` is the argument's buffer; `over()` replaces only the memory that is read.
    """

    def __init__(self, buffer: Buffer, offset: Coord, size: tuple[Coord, ...], steps: tuple[Coord, ...],
                 index_dtype: DType, low: int = 0, elements_of: Buffer | None = None):
        self.buffer, self.offset, self.size, self.steps, self.low = buffer, offset, size, steps, low
        self.home = elements_of or buffer
        self.dtype, self.index_dtype, self.ndim = buffer.dtype, index_dtype, len(size)

    def __repr__(self) -> str:
        dims = ",".join("?" if isinstance(n, np.ndarray) else str(n) for n in self.size)
        return f"{self.name}: {info(self.dtype).short}[{dims}] array at a pointer"

    @property
    def name(self) -> str:
        return self.buffer.name

    @property
    def writable(self) -> bool:
        return self.buffer.writable

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return shape_of((self.offset, *self.size, *self.steps))

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (self.buffer,)

    @property
    def _index(self) -> np.dtype:
        return info(self.index_dtype).carrier

    @property
    def shape(self) -> tuple[np.ndarray, ...]:
        return tuple(np.asarray(n).astype(self._index) for n in self.size)

    @property
    def strides(self) -> tuple[np.ndarray, ...]:
        return tuple(np.asarray(s, np.int64).astype(self._index) for s in self.steps)

    # -- arrays made from this one

    def for_blocks(self, take) -> ForeignView:
        def pick(x: Coord) -> Coord:
            return coord(take(x, 0)) if isinstance(x, np.ndarray) else x

        return ForeignView(self.buffer, pick(self.offset), tuple(map(pick, self.size)), tuple(map(pick, self.steps)),
                           self.index_dtype, self.low, self.home)

    def over(self, memory) -> ForeignView:
        return ForeignView(memory(self.home), self.offset, self.size, self.steps, self.index_dtype, self.low, self.home)

    def slice(self, axis: int, start, stop) -> ForeignView:
        first, last = coord(start), coord(stop)
        length = coord(np.asarray(np.asarray(last - first, np.int64).astype(self._index)))
        return ForeignView(self.buffer, self.offset + first * self.steps[axis] * self.buffer.array.itemsize,
                           (*self.size[:axis], length, *self.size[axis + 1:]), self.steps, self.index_dtype)

    @property
    def raw(self) -> ForeignView:
        return raw(self.buffer, self.offset, self.index_dtype)

    def pointer(self, encode) -> np.ndarray:
        return encode(self.buffer, np.asarray(self.offset, np.int64))

    # -- elements

    def coordinates(self, indices: Sequence[np.ndarray], rank: int) -> elements.Coordinates:
        inside, at, itemsize = True, beside(self.offset, rank), self.home.array.itemsize
        for i, n, s in zip(indices, self.size, self.steps, strict=True):
            i = np.asarray(i).astype(np.int64, copy=False)
            fits = (i >= self.low) & (i < beside(n, rank))
            if not fits.all():
                inside, i = inside & fits, np.where(fits, i, 0)
            at = i * beside(s * itemsize, rank) + at
        ok, coords = self.home.locate(np.asarray(at, np.int64).reshape(np.shape(at) or (1,) * rank))
        return ok if inside is True else ok & inside, coords

    def exists(self, indices, rank) -> np.ndarray:
        return self.coordinates(indices, rank)[0]

    def gather(self, indices, mask, fill, tile_shape, out=None) -> np.ndarray:
        return elements.take(self.buffer, self.coordinates(indices, len(tile_shape)), mask, fill, tile_shape)

    def scatter(self, indices, value, mask, tile_shape) -> None:
        elements.put(self.buffer, self.coordinates(indices, len(tile_shape)), mask, value, tile_shape)

    def update(self, kind, indices, operands, mask, tile_shape, batch_shape, old=True):
        return elements.update(self.buffer, kind, self.coordinates(indices, len(tile_shape)), mask, operands,
                               batch_shape + tile_shape, old)

    # -- tiles

    def view(self, origin, shape, order, steps=None) -> None:
        return None

    def target(self, origin, shape, order, batch_shape) -> None:
        return None

    def tile(self, origin, shape, order, fill, steps=None) -> np.ndarray:
        dims = _dims_by_axis(order)
        by_axis = tuple(shape[i] for i in dims)
        x = self.gather(self._elements(origin, shape, dims, steps), None, fill, by_axis)
        blocks = x.ndim - len(by_axis)
        return x.transpose(*range(blocks), *(blocks + k for k in order))

    def put(self, origin, tile, shape, order, steps=None) -> None:
        dims = _dims_by_axis(order)
        blocks = tile.ndim - len(shape)
        value = tile.transpose(*range(blocks), *(blocks + i for i in dims))
        self.scatter(self._elements(origin, shape, dims, steps), value, None, tuple(shape[i] for i in dims))

    def _elements(self, origin, shape, dims: Sequence[int], steps) -> list[np.ndarray]:
        """The elements of a tile as index tiles, whose dimensions are the axes of the array in their order."""
        return tile_elements([origin[i] for i in dims], tuple(shape[i] for i in dims),
                             [(steps or shape)[i] for i in dims])


def raw(buffer: Buffer, offset: Coord, index_dtype: DType) -> ForeignView:
    """`Array.raw` of an array whose first element lies `offset` bytes after element (0, …) of a buffer."""
    return ForeignView(buffer, offset, (FAR + 1,), (1,), index_dtype, -FAR)


def _dims_by_axis(order: Sequence[int]) -> list[int]:
    """For each axis of the array, the dimension of the tile that runs along it."""
    return [list(order).index(k) for k in range(len(order))]
