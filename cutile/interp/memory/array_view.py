"""Array descriptors: what stands behind operands of array type while the interpreter runs.

`wrap` makes one from a host array. A descriptor knows its element dtype, its sizes and strides as carriers of the index
dtype, and moves data: `tile` and `put` (blocks of elements), `rows` and `put_rows` (advanced indexing), `gather`,
`scatter` and `update` (elements by index), and the same by element offset for raw memory. All of it is vectorised over
leading axes, which stand for blocks; a descriptor whose place or size varies by block (a slice, an item of a list) has
leading axes itself. Blocks come in row-major order of the leading axes, elements in row-major order after them: where
several meet in one element, that is the order in which they act.

No element that is not the array's own is ever read or written, whatever the indices.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import prod

import numpy as np

from cutile.dtypes import DType, info, int32
from cutile.interp.memory import atomics, strided_tile, tile_access
from cutile.interp.memory.buffer import Buffer, all_below, as_ndarray
from cutile.interp.memory.tile_access import Coord, Start, StridedBuffer, StridedIndex, TileBounds, affine, as_array


def wrap(obj, dtype: DType, index_dtype: DType = int32, *, writable: bool | None = None,
         name: str = "array") -> ArrayView:
    """The descriptor of a host array. OverflowError if a size or stride does not fit the index dtype [ARR-6]."""
    a = as_ndarray(obj, dtype)
    return view_of(a, dtype, index_dtype, writable is not False and a.flags.writeable, name)


def view_of(a: np.ndarray, dtype: DType, index_dtype: DType, writable: bool, name: str) -> ArrayView:
    """`wrap` of an array that holds elements as the dtype is stored."""
    shape = a.shape
    steps, start = _steps(shape, a.strides, a.itemsize, index_dtype, name)
    return ArrayView(Buffer(a, dtype, writable, name), start, shape, steps, index_dtype, True)


@functools.lru_cache(maxsize=1024)
def _steps(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, index_dtype: DType,
           name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The strides in elements, and the coordinates of the first one; strides and sizes must fit the index dtype."""
    limit = int(np.iinfo(info(index_dtype).carrier).max)
    steps = tuple(s // itemsize for s in strides)
    for n, s in zip(shape, steps, strict=True):
        if n > limit or n > 1 and abs(s) > limit:
            raise OverflowError(f"a {'size' if n > limit else 'stride'} of array {name!r} does not fit "
                                f"{index_dtype.name}; annotate the parameter with ct.IndexedWithInt64")
    return steps, (0,) * len(shape)


class ArrayView:
    """A rectangle of a memory's elements: per dimension `start` in its coordinates and `size`, ints or int64 arrays.

    `whole`: it is all of them, which spares looking.
    """

    def __init__(self, memory: Buffer, start: tuple[Coord, ...], size: tuple[Coord, ...], steps: tuple[int, ...],
                 index_dtype: DType, whole: bool = False):
        self.buffer, self.start, self.size, self.steps = memory, start, size, steps
        self.dtype, self.index_dtype = memory.dtype, index_dtype
        self.fixed, self.low, self.high = True, start, size
        if whole:
            return
        self.fixed = not any(isinstance(c, np.ndarray) for c in (*start, *size))  # the same for all blocks
        self.low = tuple(_clamp(s, np.maximum) for s in start)
        self.high = tuple(_add_clamped(s, n, d) for s, n, d in zip(start, size, memory.array.shape, strict=True))

    @property
    def ndim(self) -> int:
        return len(self.size)

    @property
    def index(self) -> np.dtype:
        """The carrier of the index dtype."""
        return info(self.index_dtype).carrier

    @property
    def shape(self) -> tuple[np.ndarray, ...]:
        """Sizes, as carriers of the index dtype."""
        return tuple(np.asarray(n).astype(self.index) for n in self.size)

    @property
    def strides(self) -> tuple[np.ndarray, ...]:
        """Distances between neighbours, in elements (rounded down where bytes are no multiple of the item size)."""
        return tuple(np.asarray(s, np.int64).astype(self.index) for s in self.steps)

    @property
    def writable(self) -> bool:
        return self.buffer.writable

    def numpy(self) -> np.ndarray:
        """The elements as stored, a read-only view: for looking at an array in a debugger."""
        if not self.fixed:
            raise TypeError("this array differs from block to block")
        view = self.buffer.array[tuple(slice(s, s + n) for s, n in zip(self.low, self.size, strict=True))].view()
        view.flags.writeable = False
        return view

    def __getitem__(self, key) -> np.ndarray:
        return self.numpy()[key]

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (self.buffer,)

    @property
    def name(self) -> str:
        return self.buffer.name

    def __repr__(self) -> str:
        dims = ",".join("?" if isinstance(n, np.ndarray) else str(n) for n in self.size)
        return f"{self.buffer.name}: {info(self.dtype).short}[{dims}] array"

    # -- descriptors made from this one

    def pointer(self, encode) -> np.ndarray:
        """A foreign pointer to element (0, …), as `encode(memory, byte offset)` writes it [FPTR-2]."""
        return encode(self.buffer, np.asarray(self.byte_offset(), np.int64))

    def lanes(self, take) -> ArrayView:
        """The same for some blocks only: `take(carrier, 0)` picks them from a value with leading axes."""
        def pick(group):
            return tuple(coord(take(c, 0)) if isinstance(c, np.ndarray) else c for c in group)

        if self.fixed:
            return self
        return ArrayView(self.buffer, pick(self.start), pick(self.size), self.steps, self.index_dtype)

    def slice(self, axis: int, start: np.ndarray, stop: np.ndarray) -> ArrayView:
        """[SLICE-1]: elements start … stop-1 of one axis. The length is taken in the index dtype."""
        first, last = np.asarray(start).astype(np.int64), np.asarray(stop).astype(np.int64)
        length = coord((last - first).astype(self.index).astype(np.int64))
        begin = coord(first + self.start[axis])
        return ArrayView(self.buffer, (*self.start[:axis], begin, *self.start[axis + 1:]),
                         (*self.size[:axis], length, *self.size[axis + 1:]), self.steps, self.index_dtype)

    @staticmethod
    def choose(views: Sequence[ArrayView], which: np.ndarray):
        """The descriptor that is views[which], where `which` may differ by block."""
        from cutile.interp.memory.per_block_array import ArrayList

        return ArrayList(views).pick(which)

    # -- tiles

    def inside(self, origin: Sequence[np.ndarray | StridedIndex], shape: tuple[int, ...], order: Sequence[int],
               steps: Sequence[int] | None = None) -> np.ndarray | None:
        """The tile as `tile` gives it, if every block's lies inside the array in a regular way: the short way."""
        if not self.fixed:
            return None
        memory = self.buffer
        place, convert = memory.converted or memory.place, False
        if not (memory.plain or memory.converted):
            place, convert = memory.reading(prod(shape) * _blocks_of(origin))
        spot = strided_tile.find(place.strides, self.start, self.high, origin, shape, order, steps)
        if spot is None:
            return None
        v = spot.of(place)
        if convert or memory.may_change:
            return memory.convert(v) if convert else v.copy()
        v.setflags(write=False)
        return v

    def tile(self, origin: Sequence[np.ndarray | StridedIndex], shape: tuple[int, ...], order: Sequence[int], fill,
             steps: Sequence[int] | None = None) -> np.ndarray:
        """The tile at tile index `origin`; dimension i of it runs along axis order[i], tiles begin every steps[i]."""
        v = self.inside(origin, shape, order, steps)
        if v is not None:
            return v
        w = self._window(origin, shape, order, steps)
        return _read(self.buffer, w, order, fill, prod(w.batch_shape) * prod(shape))

    def put(self, origin: Sequence[np.ndarray], tile: np.ndarray, shape: tuple[int, ...], order: Sequence[int],
            steps: Sequence[int] | None = None) -> None:
        """Store a carrier tile; elements outside the array are dropped."""
        if self.fixed:
            place = self.buffer.place
            spot = strided_tile.find(place.strides, self.start, self.high, origin, shape, order, steps)
            if spot is not None and (spot.shape == tile.shape or tile.ndim == len(shape) == len(spot.shape)):
                spot.of(place)[...] = self.buffer.store(tile)
                return
        _write(self.buffer, self._window(origin, shape, order, steps), order, tile)

    def target(self, origin: Sequence[np.ndarray | StridedIndex], shape: tuple[int, ...], order: Sequence[int],
               lead: tuple[int, ...]) -> np.ndarray | None:
        """The memory of a tile that a carrier may be computed into: one view in which every block has a place of its
        own. `lead` are the leading axes of a value that differs between all blocks."""
        memory = self.buffer
        if not (self.fixed and memory.plain):
            return None
        spot = strided_tile.find(memory.place.strides, self.start, self.high, origin, shape, order, None)
        if spot is None or not spot.alone or spot.shape != lead + shape:
            return None
        v = spot.of(memory.place)
        return v if v.flags.aligned else None

    def _window(self, origin, shape, order, steps) -> TileBounds:
        # Tile indices are not negative, so a tile never reaches below the array's own start.
        starts = [_tile_start(j, step, self.start[k]) for j, step, k in zip(origin, steps or shape, order, strict=True)]
        return TileBounds(tuple(starts), (0,) * len(starts), tuple(self.high[k] for k in order), tuple(shape))

    def rows(self, axis: int, sparse: np.ndarray, starts: Sequence[np.ndarray], shape: tuple[int, ...],
             fill) -> np.ndarray:
        """Advanced indexing [ADV-3]: positions `sparse` (a vector per block) along `axis`, ranges along the others."""
        w = self._rows_window(axis, sparse, starts, shape)
        x = _read(self.buffer, w, range(self.ndim), fill, prod(w.batch_shape) * prod(w.tile))
        lead = x.ndim - self.ndim - 1
        return np.moveaxis(np.squeeze(x, lead + 1 + axis), lead, lead + axis)

    def put_rows(self, axis: int, sparse: np.ndarray, starts: Sequence[np.ndarray], tile: np.ndarray,
                 shape: tuple[int, ...]) -> None:
        w = self._rows_window(axis, sparse, starts, shape)
        lead = tile.ndim - self.ndim
        value = np.expand_dims(np.moveaxis(tile, lead + axis, lead), lead + 1 + axis)
        depth = len(w.batch_shape) - 1
        if lead < depth:  # the same tile for all blocks
            value = value.reshape((1,) * (depth - lead) + value.shape)
        elif depth < lead:  # the same place for all blocks: the last one stays
            assert depth == 0
            value = value[(-1,) * lead]
        _write(self.buffer, w, range(self.ndim), value)

    def _rows_window(self, axis, sparse, starts, shape) -> TileBounds:
        """Each sparse position is a window of its own: the sparse axis counts as one more leading axis, the last."""
        begin, others = [], iter(starts)
        for k in range(self.ndim):
            s = _beside(self.start[k], 1)
            if k == axis:
                begin.append(positions(sparse) + s)
            else:
                begin.append(coord(positions(next(others))[..., None] + s))
        low, high = (tuple(_beside(c, 1) for c in group) for group in (self.low, self.high))
        return TileBounds(tuple(begin), low, high, (*shape[:axis], 1, *shape[axis + 1:]))

    # -- elements by index

    def gather(self, indices: Sequence[np.ndarray], mask: np.ndarray | None, fill, core: tuple[int, ...],
               out: np.ndarray | None = None) -> np.ndarray:
        """Elements at index tiles of shape `core`; `fill` (a carrier) where out of range or masked.

        They may come in `out`, if that has their shape.
        """
        if out is not None and mask is None and self.fixed and self.start == (0,):
            x = self.buffer.take_below(self.high[0], indices[0], out)
            if x is not None:
                return x
        ok, coords = self.coordinates(indices, core)
        return _take(self.buffer, ok, mask, coords, fill, core, out)

    def scatter(self, indices: Sequence[np.ndarray], value: np.ndarray, mask: np.ndarray | None,
                core: tuple[int, ...]) -> None:
        ok, coords = self.coordinates(indices, core)
        _put(self.buffer, ok, mask, coords, value, core)

    def update(self, kind: str, indices: Sequence[np.ndarray], operands: Sequence[np.ndarray], mask: np.ndarray | None,
               core: tuple[int, ...], lead: tuple[int, ...], old: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Atomic update, once per running block (`lead`). Which took place, and the values before (0 elsewhere)."""
        if not old and mask is None and self.fixed and self.start == (0,) \
                and self.buffer.count_below(kind, self.high[0], indices[0], operands[0], lead + core):
            return atomics.unseen(self.buffer.carrier, lead + core)
        ok, coords = self.coordinates(indices, core)
        return atomics.apply(self.buffer, kind, ok, mask, coords, operands, lead + core, old)

    def coordinates(self, indices: Sequence[np.ndarray], core: tuple[int, ...]):
        """Which indices are in range [GS-3], one True if all are, and the memory coordinates (0 where not)."""
        ok, coords = None, []
        for k, i in enumerate(indices):
            low, high = self.low[k], self.high[k]
            if isinstance(self.start[k], int) and self.start[k] == 0 and isinstance(high, int):
                c = np.asarray(i)
                coords.append(c)
                if all_below(c, high):
                    continue
                inside = _below(c, high)
            else:
                c = _shift(np.asarray(i), self.start[k], len(core))
                coords.append(c)
                inside = (c >= _beside(low, len(core))) & (c < _beside(high, len(core)))
            ok = inside if ok is None else ok & inside
        if ok is None:
            return _every(len(core)), coords
        if not ok.all():
            coords = [np.where(ok, c, c.dtype.type(0)) for c in coords]
        return ok, coords

    def tile_indices(self, origin: Sequence[np.ndarray], shape: tuple[int, ...],
                     steps: Sequence[int]) -> list[np.ndarray]:
        """Element indices of a tile, as index tiles for `update`."""
        out = []
        for k, (j, step) in enumerate(zip(origin, steps, strict=True)):
            begin = as_array(_tile_start(j, step, 0))
            along = np.arange(shape[k]).reshape([-1 if a == k else 1 for a in range(len(shape))])
            out.append(_beside(begin, len(shape)) + along)
        return out

    # -- elements by offset from the first one, in elements [RAW-5]

    def gather_raw(self, offset: np.ndarray, mask: np.ndarray | None, fill, core: tuple[int, ...]) -> np.ndarray:
        ok, coords = self.raw(offset, core)
        return _take(self.buffer, ok, mask, coords, fill, core)

    def scatter_raw(self, offset: np.ndarray, value: np.ndarray, mask: np.ndarray | None,
                    core: tuple[int, ...]) -> None:
        ok, coords = self.raw(offset, core)
        _put(self.buffer, ok, mask, coords, value, core)

    def update_raw(self, kind: str, offset: np.ndarray, operands: Sequence[np.ndarray], mask: np.ndarray | None,
                   core: tuple[int, ...], lead: tuple[int, ...], old: bool = True) -> tuple[np.ndarray, np.ndarray]:
        ok, coords = self.raw(offset, core)
        return atomics.apply(self.buffer, kind, ok, mask, coords, operands, lead + core, old)

    def raw(self, offset: np.ndarray, core: tuple[int, ...]):
        itemsize = self.buffer.array.itemsize
        return self.buffer.locate(_offset_bytes(self.byte_offset(), np.asarray(offset), itemsize, len(core)))

    def byte_offset(self) -> Coord:
        """From the memory's element (0, …) to this one's."""
        return sum(s * b for s, b in zip(self.start, self.buffer.array.strides, strict=True))


# ------------------------------------------------------------------ coordinates


def _blocks_of(origin: Sequence[np.ndarray | StridedIndex]) -> int:
    """How many tiles the blocks read between them."""
    return prod(prod(j.shape) for j in origin)


def _clamp(s: Coord, larger) -> Coord:
    return larger(s, 0) if isinstance(s, np.ndarray) else max(s, 0)


def _add_clamped(start: Coord, size: Coord, limit: int) -> Coord:
    if isinstance(start, np.ndarray) or isinstance(size, np.ndarray):
        return np.minimum(np.asarray(start) + size, limit)
    return min(start + size, limit)


def coord(c) -> Coord:
    """An int where all blocks agree on one."""
    c = np.asarray(c).astype(np.int64)
    return c if c.size > 1 else int(c.reshape(()))


OUT_OF_RANGE = 1 << 61  # a coordinate outside of every array, with room to add to; so is every index from it on


def _tile_start(j: np.ndarray, step: int, base: Coord) -> Start:
    """Where tile j begins, in elements from `base` on; a negative index counts as far outside [IDX-2, D-56]."""
    if j.ndim == 0:
        i = int(j)
        return (i * step if 0 <= i < OUT_OF_RANGE // step else OUT_OF_RANGE) + base
    known = type(j) is StridedIndex
    line = (j if known else affine(j)) if isinstance(base, int) else None
    if line is not None:
        ends = [line.c]
        for d, n in zip(line.steps, line.shape, strict=True):
            ends += [e + d * (n - 1) for e in ends] if d else []
        if 0 <= min(ends) and max(ends) < OUT_OF_RANGE // step:
            return StridedIndex(line.c * step + base, tuple(d * step for d in line.steps), line.shape)
    i = j.array() if known else j.astype(np.int64, copy=False)
    wrong = (i < 0) | (i >= OUT_OF_RANGE // step)
    return (np.where(wrong, OUT_OF_RANGE, i * step) if wrong.any() else i * step) + base


def positions(i: np.ndarray) -> np.ndarray:
    """Indices as int64; those that count as out of every range are OUT_OF_RANGE."""
    i = np.asarray(i).astype(np.int64)
    return np.where((i < 0) | (i >= OUT_OF_RANGE), OUT_OF_RANGE, i)


@functools.cache
def _every(rank: int) -> np.ndarray:
    """All indices of a tile are in range."""
    return tile_access.read_only(np.ones((1,) * rank, bool))


def _below(i: np.ndarray, high: int) -> np.ndarray:
    """Which indices lie in 0 … high-1, as unsigned numbers: one comparison."""
    limit = max(high, 0)
    if i.dtype.kind == "i":
        if limit > np.iinfo(i.dtype).max:
            return i >= 0
        i = i.view(f"u{i.dtype.itemsize}")
    elif limit > np.iinfo(i.dtype).max:
        return np.ones(i.shape, bool)
    return np.less(i, i.dtype.type(limit))


def _shift(i: np.ndarray, start: Coord, core: int) -> np.ndarray:
    c = i.astype(np.int64, copy=False)
    if isinstance(start, int) and start == 0:
        return c
    c = np.where((c < 0) | (c >= OUT_OF_RANGE), OUT_OF_RANGE, c)
    return c + (_beside(start, core) if isinstance(start, np.ndarray) else start)


def _beside(c: Coord, core: int):
    """A value per block, next to tiles of `core` dimensions."""
    return c[(...,) + (None,) * core] if isinstance(c, np.ndarray) else c


def _offset_bytes(base: Coord, offset: np.ndarray, itemsize: int, core: int) -> np.ndarray:
    o = offset.astype(np.int64, copy=False)
    o = np.where((o < -(1 << 55)) | (o > 1 << 55), 1 << 55, o)
    return o * itemsize + (_beside(base, core) if isinstance(base, np.ndarray) else base)


# ------------------------------------------------------------------ moving data


def _along(place: StridedBuffer, order: Sequence[int]) -> StridedBuffer:
    return StridedBuffer(place.buffer, place.base, tuple(place.strides[k] for k in order), place.dtype)


def _read(memory: Buffer, w: TileBounds, order: Sequence[int], fill, n: int) -> np.ndarray:
    place, convert = memory.reading(n)
    return tile_access.read(_along(place, order), w, fill, memory.carrier, memory.convert if convert else None,
                        memory.may_change)


def _write(memory: Buffer, w: TileBounds, order: Sequence[int], tile: np.ndarray) -> None:
    tile_access.write(_along(memory.place, order), w, memory.store(tile))


def _take(memory: Buffer, ok, mask, coords, fill, core, out=None) -> np.ndarray:
    if mask is None and ok.size == 1 and ok and coords:
        x = memory.take(memory.position(coords), coords[0].size, out)
        return x if x.shape[x.ndim - len(core):] == core else np.broadcast_to(x, np.broadcast_shapes(x.shape, core))
    keep = ok if mask is None else ok & mask
    shape = np.broadcast_shapes(keep.shape, core, *(c.shape for c in coords))
    if memory.array.size == 0 or not keep.any():
        x = np.asarray(fill, memory.carrier)
        return np.broadcast_to(x, np.broadcast_shapes(shape, x.shape))
    x = memory.take(memory.position(coords), keep.size)
    if not keep.all():
        return np.where(keep, x, np.asarray(fill, memory.carrier))
    return x if x.shape == shape else np.broadcast_to(x, shape)


def _put(memory: Buffer, ok, mask, coords, value, core) -> None:
    keep = ok if mask is None else ok & mask
    shape = np.broadcast_shapes(keep.shape, np.shape(value), core, *(np.shape(c) for c in coords))
    if not keep.any():
        return
    some = None if keep.all() else np.broadcast_to(keep, shape)
    at, value = atomics.chosen(memory, some, coords, shape), memory.store(atomics.kept(value, shape, some))
    if isinstance(at, tuple):
        memory.array[at] = value if at else value[-1]
    else:
        memory.line[at] = value
