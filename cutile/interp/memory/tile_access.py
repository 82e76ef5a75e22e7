"""Tiles of memory as strided NumPy views: where a tile lies for many blocks at once, and moving it.

A tile is described per tile dimension by its `start`, and by the bounds `low <= coordinate < high` inside which
memory exists. Each is an int, or an int64 array over the leading axes that stand for blocks; a start may also be
a `StridedIndex`, an array that is known to be affine. Three ways to move it,
the fastest that applies:

* boxes: the starts are affine in the block axes. One strided view per box of blocks, usually one for all; blocks at an
  array's edge make boxes of their own, cut to what exists. No index array is ever built.
* windows: any starts. All tiles of memory as one overlapping view, indexed by the starts of the blocks that lie inside.
* one by one: what is left of a window read or write, blocks at an edge.

Coordinates outside the bounds are never touched: a read gives `fill` there, a write drops the element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

INDEX = np.dtype(np.int32)  # of block indices


class StridedIndex(NamedTuple):
    """c + sum(steps[a] * i[a]) over leading axes of lengths `shape`; a step is 0 where the length is 1.

    One may stand in the place of a tile index, whose dtype it then has.
    """

    c: int
    steps: tuple[int, ...]
    shape: tuple[int, ...]

    dtype = INDEX

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def array(self) -> np.ndarray:
        out = np.full((1,) * len(self.shape), self.c, np.int64)
        for a, (d, n) in enumerate(zip(self.steps, self.shape, strict=True)):
            if d:
                out = out + (d * np.arange(n)).reshape([-1 if k == a else 1 for k in range(len(self.shape))])
        return np.broadcast_to(out, self.shape)


Coord = int | np.ndarray
Start = int | np.ndarray | StridedIndex
Range = tuple[int, int]
MAX_EDGES = 16  # partly covered positions of one block axis up to which boxes are used


class StridedBuffer(NamedTuple):
    """Buffer along the dimensions of a tile: a buffer, the byte offset of coordinate 0, bytes from one to the next."""

    buffer: np.ndarray
    base: int
    strides: tuple[int, ...]
    dtype: np.dtype

    def view(self, origin: Sequence[int], shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
        """NumPy checks that the view stays inside the buffer."""
        offset = self.base + sum(s * o for s, o in zip(self.strides, origin, strict=True))
        return np.ndarray(shape, self.dtype, self.buffer, offset, strides)


@dataclass(frozen=True, slots=True)
class TileBounds:
    """Where a tile of shape `tile` lies; `lead` is the common shape of the leading axes."""

    start: tuple[Start, ...]
    low: tuple[Coord, ...]
    high: tuple[Coord, ...]
    tile: tuple[int, ...]

    @property
    def batch_shape(self) -> tuple[int, ...]:
        shapes = {c.shape for group in (self.start, self.low, self.high) for c in group if not isinstance(c, int)}
        return () if not shapes else shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)


# ------------------------------------------------------------------ reading and writing


def read(place: StridedBuffer, w: TileBounds, fill, carrier: np.dtype, convert: Callable | None,
         copy: bool) -> np.ndarray:
    """The tile, converted by `convert` if given. Without copy=True it may be a read-only view of memory."""
    lead = w.batch_shape
    v = inside(place, w, lead)
    if v is not None:
        return convert(v) if convert else v.copy() if copy else read_only(v)
    boxes = boxes_of(w, lead)
    if boxes is not None:
        out = np.full(lead + w.tile, fill, carrier)
        for box in boxes:
            v = box.view(place)
            out[box.key] = convert(v) if convert else v
        return out
    lanes = _Lanes(w, lead)
    if lanes.all_whole:
        v = lanes.windows(place)[lanes.index(slice(None))]
        return (convert(v) if convert else v).reshape(lead + w.tile)
    out = np.full((lanes.n, *w.tile), fill, carrier)
    whole = np.flatnonzero(lanes.whole)
    if whole.size:
        v = lanes.windows(place)[lanes.index(whole)]
        out[whole] = convert(v) if convert else v
    for lane, box in lanes.partial():
        v = box.view(place)
        out[lane][box.key] = convert(v) if convert else v
    return out.reshape(lead + w.tile)


def write(place: StridedBuffer, w: TileBounds, value: np.ndarray) -> None:
    """Write storage values with leading axes; where blocks meet, the last one in row-major order stays."""
    lead = w.batch_shape
    value = _last_of(value, lead, len(w.tile))
    v = inside(place, w, lead)
    if v is not None:
        v[...] = value
        return
    boxes = boxes_of(w, lead)
    if boxes is not None:
        for box in boxes:
            box.view(place)[...] = value[box.key]
        return
    lanes = _Lanes(w, lead)
    value = np.broadcast_to(value, lead + w.tile).reshape(lanes.n, *w.tile)
    whole = np.flatnonzero(lanes.whole)
    if whole.size:
        lanes.windows(place)[lanes.index(whole)] = value if lanes.all_whole else value[whole]
    for lane, box in lanes.partial():
        box.view(place)[...] = value[lane][box.key]


def read_only(v: np.ndarray) -> np.ndarray:
    v.setflags(write=False)
    return v


def _last_of(value: np.ndarray, lead: tuple[int, ...], core: int) -> np.ndarray:
    """`value` brought to the leading axes of its destination: blocks that share one leave the last value."""
    axes = value.shape[:value.ndim - core]
    if axes == lead:
        return value
    if len(axes) > len(lead):
        assert not lead
        return value[(-1,) * len(axes)]
    if any(n > d for n, d in zip(axes, lead[len(lead) - len(axes):], strict=True)):
        value = value[tuple(slice(-1, None) if n > d else slice(None) for n, d in zip(axes, lead, strict=True))]
    return np.broadcast_to(value, lead + value.shape[value.ndim - core:])


# ------------------------------------------------------------------ boxes


def inside(place: StridedBuffer, w: TileBounds, lead: tuple[int, ...]) -> np.ndarray | None:
    """All of the window as one view, if its starts are affine and every tile lies inside: the usual case."""
    offset, across = place.base, [0] * len(lead)
    for s, low, high, t, stride in zip(w.start, w.low, w.high, w.tile, place.strides, strict=True):
        least = most = s
        if isinstance(s, StridedIndex):
            least = most = s.c
            for a, (d, n) in enumerate(zip(s.steps, s.shape, strict=True), len(lead) - len(s.shape)):
                if d:
                    across[a] += d * stride
                    if d > 0:
                        most += d * (n - 1)
                    else:
                        least += d * (n - 1)
            s = s.c
        if not (isinstance(s, int) and isinstance(low, int) and isinstance(high, int)):
            return None
        if least < low or most + t > high:
            return None
        offset += s * stride
    return np.ndarray(lead + w.tile, place.dtype, place.buffer, offset, (*across, *place.strides))


@dataclass(slots=True)
class TileBox:
    """Blocks × elements that lie inside memory: ranges of the leading axes, and of the tile dimensions."""

    lead: list[Range]
    tile: list[Range]
    coefs: Sequence[tuple[int, tuple[int, ...]]]  # per tile dimension: start = c + sum(d[a] * i[a])

    @property
    def key(self) -> tuple[slice, ...]:
        return tuple(slice(lo, hi) for lo, hi in (*self.lead, *self.tile))

    def view(self, place: StridedBuffer) -> np.ndarray:
        first = [lo for lo, _ in self.lead]
        origin = [c + t[0] + sum(x * i for x, i in zip(d, first, strict=True))
                  for (c, d), t in zip(self.coefs, self.tile, strict=True)]
        across = tuple(sum(s * d[a] for s, (_, d) in zip(place.strides, self.coefs, strict=True)) if hi - lo > 1 else 0
                       for a, (lo, hi) in enumerate(self.lead))
        shape = tuple(hi - lo for lo, hi in (*self.lead, *self.tile))
        return place.view(origin, shape, across + place.strides)


def boxes_of(w: TileBounds, lead: tuple[int, ...]) -> list[TileBox] | None:
    """The window as boxes, or None where its starts are not affine or it has too many edges."""
    if not all(isinstance(b, int) for b in w.low):
        return None
    high = [_limit(*bound) for bound in zip(w.start, w.high, w.tile, strict=True)]
    if None in high:
        return None
    coefs = []
    for s in w.start:
        line = s if isinstance(s, StridedIndex) else StridedIndex(s, (), ()) if isinstance(s, int) else affine(s)
        if line is None:
            return None
        coefs.append((line.c, (0,) * (len(lead) - len(line.steps)) + line.steps))
    boxes = [TileBox([(0, n) for n in lead], [(0, t) for t in w.tile], coefs)]
    for k, t in enumerate(w.tile):
        cut: list[TileBox] = []
        for box in boxes:
            parts = _cut(box, k, t, w.low[k], high[k])
            if parts is None:
                return None
            cut += parts
        boxes = cut
    return boxes


def _limit(start: Start, high: Coord, t: int) -> int | None:
    """One upper bound for all blocks: none is needed where every tile ends below its own."""
    if isinstance(high, int):
        return high
    return 1 << 62 if (as_array(start) + t <= high).all() else None


def as_array(s: Start) -> np.ndarray:
    return s.array() if isinstance(s, StridedIndex) else np.asarray(s, np.int64)


def affine(s: np.ndarray) -> StridedIndex | None:
    """An array with leading axes as a line, if it is one."""
    varying = [a for a, n in enumerate(s.shape) if n > 1]
    if not varying:
        return StridedIndex(s.item(), (0,) * s.ndim, s.shape)
    if len(varying) == 1:
        values = s.ravel().tolist()
        c, step, n = values[0], values[1] - values[0], len(values)
        if values != (list(range(c, c + step * n, step)) if step else [c] * n):
            return None
        return StridedIndex(c, tuple(step if a == varying[0] else 0 for a in range(s.ndim)), s.shape)
    c = int(s[(0,) * s.ndim])
    steps = tuple(int(s[tuple(int(b == a) for b in range(s.ndim))]) - c if n > 1 else 0 for a, n in enumerate(s.shape))
    line = StridedIndex(c, steps, s.shape)
    return line if (line.array() == s).all() else None


def _cut(box: TileBox, k: int, t: int, low: int, high: int) -> list[TileBox] | None:
    """The parts of a box that lie inside the bounds of tile dimension k."""
    c, d = box.coefs[k]
    corners = [(d[a] * lo, d[a] * (hi - 1)) for a, (lo, hi) in enumerate(box.lead)]
    least, most = c + sum(map(min, corners)), c + sum(map(max, corners))
    if least >= low and most + t <= high:
        return [box]
    if least >= high or most + t <= low or high <= low:
        return []
    moving = [a for a, (lo, hi) in enumerate(box.lead) if d[a] and hi - lo > 1]
    if not moving:
        return [_narrow(box, k, max(0, low - least), min(t, high - least))]
    if len(moving) > 1:
        return None
    a = moving[0]
    lo, hi = box.lead[a]
    at = least - min(corners[a])  # start at i[a] == 0: along the other axes a tile stays where it is
    step = d[a]
    if step < 0:  # count from the other end
        first, last = -((high - t - at) // -step), (low - at) // step
        touch_first, touch_last = -((high - 1 - at) // -step), (low - t + 1 - at) // step
    else:
        first, last = -((at - low) // step), (high - t - at) // step
        touch_first, touch_last = -((at + t - 1 - low) // step), (high - 1 - at) // step
    first, last = max(first, lo), min(last, hi - 1)
    touch_first, touch_last = max(touch_first, lo), min(touch_last, hi - 1)
    if first > last:
        edges = range(touch_first, touch_last + 1)
        inner = []
    else:
        edges = [*range(touch_first, first), *range(last + 1, touch_last + 1)]
        inner = [TileBox([*box.lead[:a], (first, last + 1), *box.lead[a + 1:]], box.tile, box.coefs)]
    if len(edges) > MAX_EDGES:
        return None
    for i in edges:
        start = at + step * i
        edge = TileBox([*box.lead[:a], (i, i + 1), *box.lead[a + 1:]], box.tile, box.coefs)
        inner.append(_narrow(edge, k, max(0, low - start), min(t, high - start)))
    return inner


def _narrow(box: TileBox, k: int, lo: int, hi: int) -> TileBox:
    return TileBox(box.lead, [*box.tile[:k], (lo, hi), *box.tile[k + 1:]], box.coefs)


# ------------------------------------------------------------------ windows


class _Lanes:
    """A window with its leading axes flattened: which blocks lie wholly inside, which partly."""

    def __init__(self, w: TileBounds, lead: tuple[int, ...]):
        self.n, self.tile = prod(lead), w.tile
        flat = [[np.broadcast_to(as_array(c), lead).reshape(-1) for c in group]
                for group in (w.start, w.low, w.high)]
        self.start, low, self.high = flat
        self.first = [np.maximum(lo - s, 0) for lo, s in zip(low, self.start, strict=True)]
        self.last = [np.minimum(hi - s, t) for hi, s, t in zip(self.high, self.start, w.tile, strict=True)]
        self.whole, self.some = np.ones(self.n, bool), np.ones(self.n, bool)
        for f, e, t in zip(self.first, self.last, w.tile, strict=True):
            self.whole &= (f == 0) & (e == t)
            self.some &= f < e
        self.all_whole = bool(self.whole.all())

    def windows(self, place: StridedBuffer) -> np.ndarray:
        """Every position of the tile in memory: an overlapping view with position axes first."""
        counts = tuple(int(h[self.whole].max()) - t + 1 for h, t in zip(self.high, self.tile, strict=True))
        return place.view((0,) * len(counts), counts + self.tile, place.strides * 2)

    def index(self, lanes) -> tuple[np.ndarray, ...]:
        return tuple(s[lanes] for s in self.start)

    def partial(self):
        """(lane, box) of each block that lies partly inside."""
        for lane in np.flatnonzero(self.some & ~self.whole).tolist():
            ranges = [(int(f[lane]), int(e[lane])) for f, e in zip(self.first, self.last, strict=True)]
            yield lane, TileBox([], ranges, [(int(s[lane]), ()) for s in self.start])
