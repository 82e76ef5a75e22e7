"""Where the tiles of many blocks lie in an array: the one place that computes it.

`locate` takes tile indices, one per array axis, each a number, a `StridedIndex` or an array over the batch axes. It
returns one of three descriptions:

* `Full`: every tile lies inside the array, and they begin at regular distances. One strided view holds all of them.
* `Clipped`: the tiles begin at regular distances, and some reach over an edge or lie outside. The description lists
  boxes of blocks × elements that exist, each a strided view; usually one box of inner blocks and one for each edge.
* `IrregularTiles` (irregular_tiles.py): each tile may begin anywhere.

Launches, chunks of blocks and loops ask often for the same sizes, strides and indices, so results of `classify` are
kept. They hold numbers only, never an array or a view of one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cutile.interp.memory.irregular_tiles import IrregularTiles
from cutile.interp.memory.strided_index import StridedIndex, as_strided_index
from cutile.interp.memory.strided_tile import StridedTile

Coord = int | np.ndarray  # a number that is the same for all blocks, or an int64 array over the batch axes
Index = np.ndarray | StridedIndex  # a tile index along one axis

KEPT = 4096  # results of `classify` that are kept
MAX_EDGES = 16  # most blocks along one batch axis whose tiles an edge cuts, each with a box of its own
MAX_BOXES = 64  # of one access
OUTSIDE = 1 << 61  # a coordinate beyond every array; it replaces larger ones, so that sums do not overflow


class Full(NamedTuple):
    tile: StridedTile


class Clipped(NamedTuple):
    """`shape`: the batch axes, then those of the tile. Each part has slices of an array of `shape`, whose elements
    exist, and where these elements lie.
    """

    shape: tuple[int, ...]
    parts: tuple[tuple[tuple[slice, ...], StridedTile], ...]


Location = Full | Clipped | IrregularTiles


class TileBounds(NamedTuple):
    """Along each axis, in coordinates of the buffer: `start`, where the array begins and tiles are counted from, and
    `stop`, where it ends. Elements at coordinates 0 … stop-1 exist; `start` is
    negative if the array begins before the buffer.

    `fixed`: start and stop are the same for all blocks.
    """

    start: tuple[Coord, ...]
    stop: tuple[Coord, ...]
    fixed: bool


def locate(strides: tuple[int, ...], bounds: TileBounds, origin: Sequence[Index], shape: tuple[int, ...],
           order: Sequence[int], steps: Sequence[int]) -> Location:
    """Where the tiles at tile indices `origin` lie.

    Dimension i of a tile has shape[i] elements and runs along array axis order[i]; tile j begins j·steps[i] elements
    after the start of the array. `strides` are bytes by array axis.
    """
    start, stop, fixed = bounds
    if fixed and (affine := affine_indices(origin)) is not None:
        found = classify(strides, start, stop, affine, shape, order, steps)
        if found is not None:
            return found
    begins = [_begin(j, step, start[k]) for j, step, k in zip(origin, steps, order, strict=True)]
    begins = [b if isinstance(start[k], int) else _affine(b) for b, k in zip(begins, order, strict=True)]
    stops, inner = [stop[k] for k in order], tuple(strides[k] for k in order)
    return _regular(inner, begins, stops, shape) or IrregularTiles(
        [_written_out(b) for b in begins], [np.asarray(s, np.int64) for s in stops], inner, shape)


def affine_indices(origin: Sequence[Index]) -> tuple[int | StridedIndex, ...] | None:
    """Tile indices as numbers and strided indices; None if one is an array."""
    out: list[int | StridedIndex] = []
    for j in origin:
        if type(j) is not StridedIndex:
            if j.ndim:
                return None
            j = int(j)
        out.append(j)
    return tuple(out)


# ------------------------------------------------------------------ regular tiles


@functools.lru_cache(maxsize=KEPT)
def classify(strides: tuple[int, ...], start: tuple[int, ...], stop: tuple[int, ...],
             origin: tuple[int | StridedIndex, ...], shape: tuple[int, ...], order: Sequence[int],
             steps: Sequence[int]) -> Full | Clipped | None:
    """`locate` for numbers and strided indices, and bounds that are the same for all blocks. None if a tile index is
    negative or too large in some blocks only, or the tiles need too many boxes.
    """
    begins = [_begin(j, step, start[k]) for j, step, k in zip(origin, steps, order, strict=True)]
    if any(isinstance(b, np.ndarray) for b in begins):  # some index is negative
        return None
    batch_shape = _broadcast([b.shape for b in begins if isinstance(b, StridedIndex)])
    tiles = _Tiles(tuple(_over_all_axes(b, batch_shape) for b in begins), batch_shape, shape,
                   tuple(strides[k] for k in order))
    limits = [stop[k] for k in order]
    if all(0 <= b.min and b.max + n <= limit for b, n, limit in zip(tiles.begins, shape, limits, strict=True)):
        return Full(tiles.strided(batch_shape, tiles.begins, shape, (0,) * len(shape)))
    boxes = _boxes(tiles, limits)
    if boxes is None:
        return None
    return Clipped(batch_shape + shape, tuple((box.key, tiles.part(box)) for box in boxes))


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """What np.broadcast_shapes gives for shapes that are known to broadcast, in a tenth of the time."""
    out = [1] * max(map(len, shapes), default=0)
    for s in shapes:
        for a, n in enumerate(s, len(out) - len(s)):
            if n > 1:
                out[a] = n
    return tuple(out)


def _over_all_axes(begin: int | StridedIndex, batch_shape: tuple[int, ...]) -> StridedIndex:
    """Where tiles begin, as a strided index with all batch axes."""
    if type(begin) is int:
        return StridedIndex(begin, (0,) * len(batch_shape), batch_shape)
    if len(begin.steps) == len(batch_shape):
        return begin
    return StridedIndex(begin.start, (0,) * (len(batch_shape) - begin.ndim) + begin.steps, batch_shape)


class _TileBox(NamedTuple):
    """Some blocks, and some elements of their tiles: a range for each batch axis and for each dimension of the tile."""

    blocks: tuple[range, ...]
    elements: tuple[range, ...]

    @property
    def key(self) -> tuple[slice, ...]:
        return tuple(slice(r.start, r.stop) for r in (*self.blocks, *self.elements))

    def with_blocks(self, axis: int, blocks: range) -> _TileBox:
        return _TileBox((*self.blocks[:axis], blocks, *self.blocks[axis + 1:]), self.elements)

    def with_elements(self, dim: int, elements: range) -> _TileBox:
        return _TileBox(self.blocks, (*self.elements[:dim], elements, *self.elements[dim + 1:]))


class _Tiles(NamedTuple):
    """Tiles at regular distances. For each dimension of the tile: where tiles begin, their extent, and the bytes from
    one element to the next.
    """

    begins: tuple[StridedIndex, ...]
    batch_shape: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def whole(self) -> _TileBox:
        return _TileBox(tuple(map(range, self.batch_shape)), tuple(map(range, self.shape)))

    def begin(self, dim: int, box: _TileBox) -> StridedIndex:
        """Where the tiles of a box begin along a dimension."""
        b = self.begins[dim]
        return StridedIndex(b.start + sum(d * r.start for d, r in zip(b.steps, box.blocks, strict=True)),
                            tuple(d if len(r) > 1 else 0 for d, r in zip(b.steps, box.blocks, strict=True)),
                            tuple(map(len, box.blocks)))

    def part(self, box: _TileBox) -> StridedTile:
        return self.strided(tuple(map(len, box.blocks)), [self.begin(dim, box) for dim in range(len(self.shape))],
                            tuple(map(len, box.elements)), [r.start for r in box.elements])

    def strided(self, batch_shape: tuple[int, ...], begins: Sequence[StridedIndex], shape: tuple[int, ...],
                first: Sequence[int]) -> StridedTile:
        """A box of tiles that begin at `begins`: of each tile, `shape` elements from element `first` on."""
        offset, across = 0, [0] * len(batch_shape)
        for b, e, s in zip(begins, first, self.strides, strict=True):
            offset += (b.start + e) * s
            for a, d in enumerate(b.steps):
                across[a] += d * s
        return StridedTile(offset, batch_shape + shape, (*across, *self.strides), self._disjoint(begins))

    def _disjoint(self, begins: Sequence[StridedIndex]) -> bool:
        """Whether tiles of different blocks share no element: each batch axis moves tiles along a dimension of its
        own, by at least their extent.
        """
        moving: list[int] = []
        for b, n in zip(begins, self.shape, strict=True):
            axes = [a for a, d in enumerate(b.steps) if d]
            if len(axes) > 1 or axes and abs(b.steps[axes[0]]) < n:
                return False
            moving += axes
        return 0 not in self.strides and sorted(moving) == [a for a, n in enumerate(self.batch_shape) if n > 1]


def _boxes(tiles: _Tiles, limits: Sequence[int]) -> list[_TileBox] | None:
    """The parts of the tiles that exist. None if these are no boxes, or too many."""
    boxes = [tiles.whole()]
    for dim, limit in enumerate(limits):
        cut: list[_TileBox] = []
        for box in boxes:
            parts = _cut(box, tiles.begin(dim, box), dim, tiles.shape[dim], limit)
            if parts is None:
                return None
            cut += parts
        if len(cut) > MAX_BOXES:
            return None
        boxes = cut
    return boxes


def _cut(box: _TileBox, begin: StridedIndex, dim: int, extent: int, limit: int) -> list[_TileBox] | None:
    """The parts of a box whose coordinates along a dimension lie in 0 … limit-1."""
    if begin.min >= 0 and begin.max + extent <= limit:
        return [box]
    if begin.min >= limit or begin.max + extent <= 0 or limit <= 0:
        return []
    moving = [a for a, d in enumerate(begin.steps) if d]
    if not moving:
        return [box.with_elements(dim, _existing(begin.start, extent, limit))]
    return _cut_along(box, begin, moving[0], dim, extent, limit) if len(moving) == 1 else None


def _cut_along(box: _TileBox, begin: StridedIndex, axis: int, dim: int, extent: int,
               limit: int) -> list[_TileBox] | None:
    """`_cut` for tiles that only one batch axis moves along the dimension: one box of all blocks inside, and one box
    for each block at an edge.
    """
    step, first = begin.steps[axis], box.blocks[axis].start
    positions = range(len(box.blocks[axis]))
    touching = _common(positions, _solutions(begin.start, step, 1 - extent, limit - 1))
    inside = _common(positions, _solutions(begin.start, step, 0, limit - extent))
    if len(touching) - len(inside) > MAX_EDGES:
        return None
    parts = [box.with_blocks(axis, range(first + inside.start, first + inside.stop))] if inside else []
    for i in touching:
        if i not in inside:
            edge = box.with_blocks(axis, range(first + i, first + i + 1))
            parts.append(edge.with_elements(dim, _existing(begin.start + step * i, extent, limit)))
    return parts


def _existing(begin: int, extent: int, limit: int) -> range:
    """The elements of a tile that lie in 0 … limit-1."""
    return range(max(0, -begin), min(extent, limit - begin))


def _solutions(start: int, step: int, least: int, most: int) -> range:
    """The range of i for which start + step·i lies in least … most."""
    if step < 0:
        start, step, least, most = -start, -step, -most, -least
    return range(-((start - least) // step), (most - start) // step + 1)


def _common(r: range, s: range) -> range:
    return range(max(r.start, s.start), max(min(r.stop, s.stop), max(r.start, s.start)))


# ------------------------------------------------------------------ where tiles begin


def _begin(j: int | Index, step: int, base: Coord) -> int | StridedIndex | np.ndarray:
    """The coordinate at which tile j begins. For a negative index, or one that is too large, it lies outside the array
    [IDX-2, D-56].

    The result for an array of indices is a strided index if they are regular.
    """
    if isinstance(j, int) or not j.ndim:
        i = int(j)
        return (i * step if 0 <= i < OUTSIDE // step else OUTSIDE) + base
    if isinstance(base, int):
        regular = j if type(j) is StridedIndex else as_strided_index(j)
        if regular is not None and 0 <= regular.min and regular.max < OUTSIDE // step:
            return regular.scale(step, base)
    i = j.array() if type(j) is StridedIndex else j.astype(np.int64, copy=False)
    wrong = (i < 0) | (i >= OUTSIDE // step)
    return (np.where(wrong, OUTSIDE, i * step) if wrong.any() else i * step) + base


def _affine(begin: int | StridedIndex | np.ndarray) -> int | StridedIndex | np.ndarray:
    return (as_strided_index(begin) or begin) if isinstance(begin, np.ndarray) else begin


def element_begins(origin: Sequence[Index], steps: Sequence[int]) -> Iterator[np.ndarray]:
    """For each dimension, the index of the first element of each tile, as an array."""
    return (_written_out(_begin(j, step, 0)) for j, step in zip(origin, steps, strict=True))


def _regular(strides: tuple[int, ...], begins: Sequence[int | StridedIndex | np.ndarray], stops: Sequence[Coord],
             shape: tuple[int, ...]) -> Full | Clipped | None:
    """Where tiles lie that begin at these coordinates. None if a coordinate is an array, or if some tile reaches over a
    bound that differs by block.
    """
    if any(isinstance(b, np.ndarray) for b in begins):
        return None
    limits = [_limit(*edge) for edge in zip(begins, stops, shape, strict=True)]
    if None in limits:
        return None
    # `classify` takes no negative tile indices, but coordinates may be negative.
    starts = tuple(min(0, b if isinstance(b, int) else b.min) for b in begins)
    origin = tuple(b - s if isinstance(b, int) else b.shift(-s) for b, s in zip(begins, starts, strict=True))
    return classify(strides, starts, tuple(limits), origin, shape, range(len(shape)), (1,) * len(shape))


def _limit(begin: int | StridedIndex | np.ndarray, stop: Coord, extent: int) -> int | None:
    """One bound for the tiles of all blocks. If bounds differ by block and every tile ends before its own, this
    is a bound beyond all tiles; else None.
    """
    if isinstance(stop, int):
        return stop
    return OUTSIDE * 2 if (_written_out(begin) + extent <= stop).all() else None


def _written_out(begin: int | StridedIndex | np.ndarray) -> np.ndarray:
    return begin.array() if isinstance(begin, StridedIndex) else np.asarray(begin, np.int64)
