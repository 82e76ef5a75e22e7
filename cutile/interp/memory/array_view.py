"""A rectangle of the memory of an argument. Most operands are such arrays.

`wrap` makes one from a host array.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import prod

import numpy as np

from cutile.dtypes import DType, info, int32
from cutile.interp.memory import atomics, elements, foreign_view, tile_copy
from cutile.interp.memory.array import Array, ArrayBase
from cutile.interp.memory.buffer import Buffer, as_ndarray
from cutile.interp.memory.elements import coord, shape_of
from cutile.interp.memory.foreign_view import ForeignView
from cutile.interp.memory.per_block_array import ArrayList
from cutile.interp.memory.separable import separable
from cutile.interp.memory.strided_tile import StridedMemory, StridedTile
from cutile.interp.memory.tile_locations import Coord, Full, Index, TileBounds, affine_indices, classify, locate


def wrap(obj, dtype: DType, index_dtype: DType = int32, *, writable: bool | None = None,
         name: str = "array") -> ArrayView:
    """The descriptor of a host array. OverflowError if a size or stride does not fit the index dtype [ARR-6]."""
    a = as_ndarray(obj, dtype)
    return view_of(a, dtype, index_dtype, writable is not False and a.flags.writeable, name)


def view_of(a: np.ndarray, dtype: DType, index_dtype: DType, writable: bool, name: str) -> ArrayView:
    """The view that `wrap` makes, for a NumPy array that stores `dtype` as the language does."""
    shape = a.shape
    steps, start = _steps(shape, a.strides, a.itemsize, index_dtype, name)
    return ArrayView(Buffer(a, dtype, writable, name), start, shape, steps, index_dtype, True)


@functools.lru_cache(maxsize=1024)
def _steps(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, index_dtype: DType,
           name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The strides in elements, and the coordinates of the first element. OverflowError if a size or stride does not fit
    the index dtype.
    """
    limit = int(np.iinfo(info(index_dtype).carrier).max)
    steps = tuple(s // itemsize for s in strides)
    for n, s in zip(shape, steps, strict=True):
        if n > limit or n > 1 and abs(s) > limit:
            raise OverflowError(f"a {'size' if n > limit else 'stride'} of array {name!r} does not fit "
                                f"{index_dtype.name}; annotate the parameter with ct.IndexedWithInt64")
    return steps, (0,) * len(shape)


class ArrayView(ArrayBase):
    """For each axis `start`, in coordinates of the buffer, and `size`: an int, or an int64 array over the batch axes.
    `steps` are strides in elements. With `whole` the view is all of the buffer. Its bounds then need not be
    computed.
    """

    def __init__(self, buffer: Buffer, start: tuple[Coord, ...], size: tuple[Coord, ...], steps: tuple[int, ...],
                 index_dtype: DType, whole: bool = False):
        self.buffer, self.start, self.size, self.steps = buffer, start, size, steps
        self.dtype, self.index_dtype = buffer.dtype, index_dtype
        self.bounds = TileBounds(start, size, True) if whole else _bounds(buffer, start, size)

    @property
    def ndim(self) -> int:
        return len(self.size)

    @property
    def index(self) -> np.dtype:
        """The carrier of the index dtype."""
        return info(self.index_dtype).carrier

    @property
    def shape(self) -> tuple[np.ndarray, ...]:
        return tuple(np.asarray(n).astype(self.index) for n in self.size)

    @property
    def strides(self) -> tuple[np.ndarray, ...]:
        """In elements; rounded down if a stride in bytes is no multiple of the item size."""
        return tuple(np.asarray(s, np.int64).astype(self.index) for s in self.steps)

    @property
    def writable(self) -> bool:
        return self.buffer.writable

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return () if self.bounds.fixed else shape_of((*self.start, *self.size))

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (self.buffer,)

    @property
    def name(self) -> str:
        return self.buffer.name

    # -- for looking at it in a debugger

    def numpy(self) -> np.ndarray:
        """The elements as stored, a read-only view."""
        if not self.bounds.fixed:
            raise TypeError("this array differs from block to block")
        low = (max(s, 0) for s in self.start)
        view = self.buffer.array[tuple(slice(s, s + n) for s, n in zip(low, self.size, strict=True))].view()
        view.flags.writeable = False
        return view

    def __getitem__(self, key) -> np.ndarray:
        return self.numpy()[key]

    def __repr__(self) -> str:
        dims = ",".join("?" if isinstance(n, np.ndarray) else str(n) for n in self.size)
        return f"{self.buffer.name}: {info(self.dtype).short}[{dims}] array"

    # -- arrays made from this one

    def for_blocks(self, take) -> ArrayView:
        def pick(group: tuple[Coord, ...]) -> tuple[Coord, ...]:
            return tuple(coord(take(c, 0)) if isinstance(c, np.ndarray) else c for c in group)

        if self.bounds.fixed:
            return self
        return ArrayView(self.buffer, pick(self.start), pick(self.size), self.steps, self.index_dtype)

    def slice(self, axis: int, start: np.ndarray, stop: np.ndarray) -> ArrayView:
        first, last = np.asarray(start).astype(np.int64), np.asarray(stop).astype(np.int64)
        length = coord((last - first).astype(self.index).astype(np.int64))
        begin = coord(first + self.start[axis])
        return ArrayView(self.buffer, (*self.start[:axis], begin, *self.start[axis + 1:]),
                         (*self.size[:axis], length, *self.size[axis + 1:]), self.steps, self.index_dtype)

    @property
    def raw(self) -> ForeignView:
        return foreign_view.raw(self.buffer, self._offset, self.index_dtype)

    def pointer(self, encode) -> np.ndarray:
        self.buffer.at_pointer = array_at
        return encode(self.buffer, np.asarray(self._offset, np.int64))

    @property
    def _offset(self) -> Coord:
        """Bytes from the buffer's element (0, …) to the first element of the view."""
        return sum(s * b for s, b in zip(self.start, self.buffer.array.strides, strict=True))

    def over(self, memory) -> ArrayView:
        return ArrayView(memory(self.buffer), self.start, self.size, self.steps, self.index_dtype)

    # -- tiles

    def view(self, origin, shape, order, steps=None) -> np.ndarray | None:
        if not self.bounds.fixed:
            return None
        buffer = self.buffer
        memory, convert = (buffer.stored_memory, False) if buffer.plain else self._memory(origin, shape)
        tile = self._full(memory, origin, shape, order, steps)
        if tile is None:
            return None
        v = tile.of(memory)
        if convert or buffer.may_change:
            return buffer.convert(v) if convert else v.copy()
        v.setflags(write=False)
        return v

    def tile(self, origin, shape, order, fill, steps=None) -> np.ndarray:
        buffer = self.buffer
        memory, convert = (buffer.stored_memory, False) if buffer.plain else self._memory(origin, shape)
        where = locate(memory.strides, self.bounds, origin, shape, order, steps or shape)
        return tile_copy.read(memory, where, fill, buffer.carrier, buffer.convert if convert else None,
                              buffer.may_change)

    def put(self, origin, tile, shape, order, steps=None) -> None:
        memory = self.buffer.stored_memory
        where = locate(memory.strides, self.bounds, origin, shape, order, steps or shape)
        tile_copy.write(memory, where, self.buffer.store(tile), len(shape))

    def target(self, origin, shape, order, batch_shape) -> np.ndarray | None:
        buffer = self.buffer
        if not (self.bounds.fixed and buffer.plain):
            return None
        tile = self._full(buffer.stored_memory, origin, shape, order, None)
        if tile is None or not tile.disjoint or tile.shape != batch_shape + shape:
            return None
        v = tile.of(buffer.stored_memory)
        return v if v.flags.aligned else None

    def _memory(self, origin: Sequence[Index], shape: tuple[int, ...]) -> tuple[StridedMemory, bool]:
        """The memory to read tiles from if the buffer does not hold carriers, and whether they must be converted."""
        if self.buffer.carrier_memory is not None:
            return self.buffer.carrier_memory, False
        return self.buffer.memory_to_read(prod(shape) * prod(prod(j.shape) for j in origin))

    def _full(self, memory: StridedMemory, origin: Sequence[Index], shape: tuple[int, ...], order: Sequence[int],
              steps: Sequence[int] | None) -> StridedTile | None:
        """The tiles of all blocks as one strided tile. None if one is not wholly inside the array, or if an index is an
        array.
        """
        affine = affine_indices(origin)
        if affine is None:
            return None
        found = classify(memory.strides, self.start, self.bounds.stop, affine, shape, order, steps or shape)
        return found.tile if isinstance(found, Full) else None

    # -- elements

    def exists(self, indices, rank) -> np.ndarray:
        return elements.coordinates(self.bounds, indices, rank)[0]

    def gather(self, indices, mask, fill, tile_shape, out=None) -> np.ndarray:
        if out is not None and mask is None and self._is_unsliced_vector():
            x = self.buffer.take_below(self.bounds.stop[0], indices[0], out)
            if x is not None:
                return x
        found = separable(self.bounds, indices, tile_shape)
        if found is not None:
            fill = np.asarray(fill, self.buffer.carrier)
            x = found.read(self.buffer, fill)
            if x is not None:
                return x if mask is None or mask.all() else np.where(mask, x, fill)
        x = elements.gathered(self.buffer, self.bounds, indices, mask, fill, tile_shape, out)
        if x is not None:
            return x
        at = elements.coordinates(self.bounds, indices, len(tile_shape))
        return elements.take(self.buffer, at, mask, fill, tile_shape, out)

    def scatter(self, indices, value, mask, tile_shape) -> None:
        found = separable(self.bounds, indices, tile_shape) if mask is None else None
        if found is not None and found.write(self.buffer, value) \
                or elements.scattered(self.buffer, self.bounds, indices, mask, value):
            return
        at = elements.coordinates(self.bounds, indices, len(tile_shape))
        elements.put(self.buffer, at, mask, value, tile_shape)

    def update(self, kind, indices, operands, mask, tile_shape, batch_shape, old=True):
        shape = batch_shape + tile_shape
        if not old and mask is None and self._is_unsliced_vector() \
                and self.buffer.count_below(kind, self.bounds.stop[0], indices[0], operands[0], shape):
            return atomics.all_updated(self.buffer.carrier, shape)
        found = elements.updated(self.buffer, kind, self.bounds, indices, mask, operands, shape, old)
        if found is not None:
            return found
        at = elements.coordinates(self.bounds, indices, len(tile_shape))
        return elements.update(self.buffer, kind, at, mask, operands, shape, old)

    def _is_unsliced_vector(self) -> bool:
        """Whether the view has rank 1, begins at the first element of the buffer, and is the same for all blocks."""
        return self.bounds.fixed and self.start == (0,)


def _bounds(buffer: Buffer, start: tuple[Coord, ...], size: tuple[Coord, ...]) -> TileBounds:
    fixed = not any(isinstance(c, np.ndarray) for c in (*start, *size))
    stop = tuple(_stop(s, n, most) for s, n, most in zip(start, size, buffer.array.shape, strict=True))
    return TileBounds(start, stop, fixed)


def _stop(start: Coord, size: Coord, most: int) -> Coord:
    if isinstance(start, np.ndarray) or isinstance(size, np.ndarray):
        return np.minimum(np.asarray(start) + size, most)
    return min(start + size, most)


# ------------------------------------------------------------------ foreign pointers


def array_at(buffers: Sequence[Buffer], which: np.ndarray, at: np.ndarray, shape: Sequence[np.ndarray],
             strides: Sequence[np.ndarray], index_dtype: DType) -> Array:
    """The array that begins `at` bytes after element (0, …) of buffers[which]; sizes and strides in elements.
    Offset, sizes, strides and `which` may differ by block [FPTR-3].
    """
    offset, size, steps = coord(at), tuple(map(coord, shape)), tuple(map(coord, strides))
    found = [_array_in(b, offset, size, steps, index_dtype) for b in buffers]
    return found[0] if len(found) == 1 else ArrayList(found).pick(which)


def _array_in(buffer: Buffer, offset: Coord, size: tuple[Coord, ...], steps: tuple[Coord, ...],
              index_dtype: DType) -> ArrayView | ForeignView:
    a = buffer.array
    uniform = all(isinstance(c, int) for c in (offset, *size, *steps))
    if uniform and buffer.flat is not None and min(steps, default=0) >= 0:
        first, odd = divmod(offset, a.itemsize)
        reach = sum(s * (n - 1) for s, n in zip(steps, size, strict=True))
        if not odd and min(size, default=1) > 0 and 0 <= first and first + reach < a.size:
            view = np.ndarray(size, a.dtype, buffer.stored_memory.buffer, offset, tuple(s * a.itemsize for s in steps))
            inner = Buffer(view, buffer.dtype, writable=buffer.writable, name=buffer.name)
            inner.may_change = buffer.may_change
            return ArrayView(inner, (0,) * len(size), size, steps, index_dtype)
    return ForeignView(buffer, offset, size, steps, index_dtype)
