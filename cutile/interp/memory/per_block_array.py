"""Arrays that differ from block to block in more than their place: items of a list, joins, foreign memory.

A `PerBlockArray` holds several descriptors and, per block, which one is meant; it passes each request on to them, each
for its own blocks. A `ForeignView` has sizes and strides of its own over the memory of an array argument; of what it
names, only elements of that argument exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from cutile.dtypes import DType, info
from cutile.interp.memory.array_view import ArrayView, Buffer, coord, positions
from cutile.interp.memory.tile_access import Coord


def narrow(x: np.ndarray, core: int, lead: tuple[int, ...], lanes: np.ndarray) -> np.ndarray:
    """Pick blocks (flat numbers in `lead`) of a value; one without leading axes stays as it is."""
    if x.ndim == core:
        return x
    axes = x.shape[:x.ndim - core]
    at = np.unravel_index(lanes, lead)
    return x[tuple(np.zeros_like(i) if n == 1 else i for i, n in zip(at, axes, strict=True))]


class PerBlockArray:
    """One of `views` per block: number `which`, which has leading axes. No view has that number: an empty array."""

    def __init__(self, views: Sequence[ArrayView], which: np.ndarray):
        self.views, self.which = tuple(views), which
        first = self.views[0]
        self.dtype, self.index_dtype, self.ndim, self.index = first.dtype, first.index_dtype, first.ndim, first.index
        self.carrier = info(self.dtype).carrier

    def __repr__(self) -> str:
        return f"one of {len(self.views)} {info(self.dtype).short} arrays of rank {self.ndim} per block"

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return tuple(m for v in self.views for m in v.buffers)

    @property
    def writable(self) -> bool:
        return all(v.writable for v in self.views)

    @property
    def name(self) -> str:
        return ", ".join(dict.fromkeys(v.name for v in self.views))

    # -- asking each view for its blocks

    def _each(self, operands: Sequence[np.ndarray], cores: Sequence[int], core: tuple[int, ...], fill,
              ask: Callable, dtype: np.dtype | None = None) -> np.ndarray | None:
        """`ask(view, operands)` for each view, narrowed to its blocks; the results in place, `fill` elsewhere."""
        lead = np.broadcast_shapes(
            self.which.shape, *(x.shape[:x.ndim - c] for x, c in zip(operands, cores, strict=True)),
            *map(_lead_of, self.views))
        which = np.broadcast_to(self.which, lead).reshape(-1)
        out = None
        if dtype is not None:
            out = np.empty((which.size, *core), dtype)
            out[...] = fill if np.ndim(fill) <= len(core) else _flat(fill, len(core), lead)
        for k in np.unique(which).tolist():
            if not 0 <= k < len(self.views):
                continue
            lanes = np.flatnonzero(which == k)
            view = self.views[k].lanes(lambda x, c, lanes=lanes: narrow(x, c, lead, lanes))
            got = ask(view, [narrow(x, c, lead, lanes) for x, c in zip(operands, cores, strict=True)])
            if out is not None:
                out[lanes] = got
        return None if out is None else out.reshape(lead + core)

    def _dims(self, get: Callable) -> tuple[np.ndarray, ...]:
        return tuple(self._each((), (), (), 0, lambda v, _, k=k: get(v)[k], self.index) for k in range(self.ndim))

    @property
    def shape(self) -> tuple[np.ndarray, ...]:
        return self._dims(lambda v: v.shape)

    @property
    def strides(self) -> tuple[np.ndarray, ...]:
        return self._dims(lambda v: v.strides)

    # -- the operations of an ArrayView

    def lanes(self, take) -> PerBlockArray:
        which = take(self.which, 0) if self.which.ndim else self.which
        return PerBlockArray([v.lanes(take) for v in self.views], which)

    def slice(self, axis: int, start, stop) -> PerBlockArray:
        return PerBlockArray([v.slice(axis, start, stop) for v in self.views], self.which)

    def pointer(self, encode) -> np.ndarray:
        return self._each((), (), (), 0, lambda v, _: v.pointer(encode), np.dtype(np.uint64))

    def inside(self, origin, shape, order, steps=None) -> None:
        return None

    def tile(self, origin, shape, order, fill, steps=None) -> np.ndarray:
        return self._each(origin, [0] * len(origin), tuple(shape), fill,
                          lambda v, o: v.tile(o, shape, order, fill, steps), self.carrier)

    def put(self, origin, tile, shape, order, steps=None) -> None:
        self._each([*origin, tile], [0] * len(origin) + [len(shape)], tuple(shape), None,
                   lambda v, x: v.put(x[:-1], x[-1], shape, order, steps))

    def rows(self, axis, sparse, starts, shape, fill) -> np.ndarray:
        return self._each([sparse, *starts], [1] + [0] * len(starts), tuple(shape), fill,
                          lambda v, x: v.rows(axis, x[0], x[1:], shape, fill), self.carrier)

    def put_rows(self, axis, sparse, starts, tile, shape) -> None:
        self._each([sparse, *starts, tile], [1] + [0] * len(starts) + [len(shape)], tuple(shape), None,
                   lambda v, x: v.put_rows(axis, x[0], x[1:-1], x[-1], shape))

    def gather(self, indices, mask, fill, core, out=None) -> np.ndarray:
        return self._gather("gather", tuple(indices), mask, fill, core)

    def gather_raw(self, offset, mask, fill, core) -> np.ndarray:
        return self._gather("gather_raw", offset, mask, fill, core)

    def scatter(self, indices, value, mask, core) -> None:
        self._scatter("scatter", tuple(indices), value, mask, core)

    def scatter_raw(self, offset, value, mask, core) -> None:
        self._scatter("scatter_raw", offset, value, mask, core)

    def update(self, kind, indices, operands, mask, core, lead, old=True):
        return self._update("update", kind, tuple(indices), operands, mask, core, lead, old)

    def update_raw(self, kind, offset, operands, mask, core, lead, old=True):
        return self._update("update_raw", kind, offset, operands, mask, core, lead, old)

    def tile_indices(self, origin, shape, steps) -> list[np.ndarray]:
        return self.views[0].tile_indices(origin, shape, steps)

    def _gather(self, method, at, mask, fill, core):
        given = [*_listed(at), mask, fill]
        present = [x for x in given if x is not None]

        def ask(view, got):
            got = iter(got)
            *where, m, f = (None if x is None else next(got) for x in given)
            return getattr(view, method)(_like(at, where), m, f, core)

        return self._each(present, [len(core)] * len(present), core, fill, ask, self.carrier)

    def _scatter(self, method, at, value, mask, core):
        given = [*_listed(at), value, mask]
        present = [x for x in given if x is not None]

        def ask(view, got):
            got = iter(got)
            *where, v, m = (None if x is None else next(got) for x in given)
            getattr(view, method)(_like(at, where), v, m, core)

        self._each(present, [len(core)] * len(present), core, None, ask)

    def _update(self, method, kind, at, operands, mask, core, lead, old):
        given = [*_listed(at), *operands, mask]
        given = [None if x is None else np.broadcast_to(x, lead + core) for x in given]
        present = [x for x in given if x is not None]
        n = len(_listed(at))
        done = np.zeros((prod(lead), *core), bool)
        which = np.broadcast_to(self.which, lead).reshape(-1)
        seen = np.zeros((prod(lead), *core), self.carrier)
        for k in np.unique(which).tolist():
            if not 0 <= k < len(self.views):
                continue
            lanes = np.flatnonzero(which == k)
            view = self.views[k].lanes(lambda x, c, lanes=lanes: narrow(x, c, lead, lanes))
            got = iter([narrow(x, len(core), lead, lanes) for x in present])
            *rest, m = (None if x is None else next(got) for x in given)
            count = (len(lanes),) if lead else ()
            d, s = getattr(view, method)(kind, _like(at, rest[:n]), rest[n:], m, core, count, old)
            done[lanes], seen[lanes] = d, s
        return done.reshape(lead + core), seen.reshape(lead + core)


def _lead_of(view: ArrayView) -> tuple[int, ...]:
    return np.broadcast_shapes(*(np.shape(s) for s in (*view.start, *view.size)))


def _flat(x: np.ndarray, core: int, lead: tuple[int, ...]) -> np.ndarray:
    x = np.broadcast_to(x, lead + x.shape[x.ndim - core:])
    return x.reshape(-1, *x.shape[x.ndim - core:])


def _listed(at) -> list:
    return list(at) if isinstance(at, tuple) else [at]


def _like(at, items):
    return tuple(items) if isinstance(at, tuple) else items[0]


# ------------------------------------------------------------------ lists and joins


class ArrayList(tuple):
    """A list parameter: the descriptors of its arrays, in order."""

    __slots__ = ()

    def pick(self, index: np.ndarray) -> ArrayView | PerBlockArray:
        """Item `index`, which may differ by block. An index out of range names an array without elements [D-70]."""
        i = np.asarray(index)
        if i.ndim == 0 and 0 <= int(i) < len(self):
            return self[int(i)]
        i = i.astype(np.int64)
        return PerBlockArray(self, np.where((i < 0) | (i >= len(self)), -1, i))


def join(lead: tuple[int, ...], parts: Sequence[tuple]) -> ArrayView | PerBlockArray:
    """One descriptor for blocks `lead`, from parts (selector, descriptor, flat): `selector` says which of the blocks,
    counted in row-major order, the part is for; `flat(carrier, 0)` gives the part's values one per block."""
    views: list[ArrayView] = []
    n = prod(lead)
    which = np.full(n, -1)
    for selector, part, flat in parts:
        def spread(x, core, selector=selector, flat=flat):
            if x.ndim == core:
                return x
            out = np.zeros(n, x.dtype)
            out[selector] = flat(x, core)
            return out.reshape(lead)

        part = part.lanes(spread)
        if isinstance(part, PerBlockArray):
            which[selector] = np.broadcast_to(part.which, lead).reshape(-1)[selector] + len(views)
            views += part.views
        else:
            which[selector] = len(views)
            views.append(part)
    if all(v is views[0] for v in views):
        return views[0]
    return PerBlockArray(views, which.reshape(lead))


# ------------------------------------------------------------------ foreign memory


def foreign(memory: Buffer, at: np.ndarray, shape: Sequence[np.ndarray], strides: Sequence[np.ndarray],
            index_dtype: DType) -> ArrayView:
    """The array that begins `at` bytes from a memory's element (0, …), sizes and strides in elements [FPTR-3]."""
    size = tuple(coord(n) for n in shape)
    steps = tuple(coord(s) for s in strides)
    origin = coord(at)
    a = memory.array
    uniform = all(isinstance(c, int) for c in (origin, *size, *steps))
    if uniform and memory.line is not None and min(steps, default=0) >= 0:
        first, odd = divmod(origin, a.itemsize)
        reach = sum(s * (n - 1) for s, n in zip(steps, size, strict=True))
        if not odd and min(size, default=1) > 0 and 0 <= first and first + reach < a.size:
            view = np.ndarray(size, a.dtype, memory.place.buffer, origin, tuple(s * a.itemsize for s in steps))
            inner = Buffer(view, memory.dtype, writable=memory.writable, name=memory.name)
            inner.may_change = memory.may_change
            return ArrayView(inner, (0,) * len(size), size, steps, index_dtype)
    return ForeignView(memory, origin, size, steps, index_dtype)


class ForeignView(ArrayView):
    """Elements of a memory by offset: `origin` in bytes, `steps` in elements, each an int or an array per block."""

    fixed = False  # as far as the quick ways know, which count in coordinates

    def __init__(self, memory: Buffer, origin: Coord, size: tuple[Coord, ...], steps: tuple[Coord, ...],
                 index_dtype: DType):
        self.buffer, self.origin, self.size, self.steps = memory, origin, size, steps
        self.start = (0,) * len(size)
        self.dtype, self.index_dtype = memory.dtype, index_dtype

    def lanes(self, take) -> ForeignView:
        def pick(c):
            return coord(take(c, 0)) if isinstance(c, np.ndarray) else c

        return ForeignView(self.buffer, pick(self.origin), tuple(map(pick, self.size)), tuple(map(pick, self.steps)),
                           self.index_dtype)

    def slice(self, axis: int, start, stop) -> ForeignView:
        first, last = coord(start), coord(stop)
        length = coord(np.asarray(np.asarray(last - first, np.int64).astype(self.index)))
        return ForeignView(self.buffer, self.origin + first * self.steps[axis] * self.buffer.array.itemsize,
                           (*self.size[:axis], length, *self.size[axis + 1:]), self.steps, self.index_dtype)

    def byte_offset(self) -> Coord:
        return self.origin

    def coordinates(self, indices, core):
        def beside(c):
            return c[(...,) + (None,) * len(core)] if isinstance(c, np.ndarray) else c

        inside, at = np.ones((1,) * len(core), bool), np.zeros((1,) * len(core), np.int64) + beside(self.origin)
        for i, n, s in zip(indices, self.size, self.steps, strict=True):
            i = np.asarray(i).astype(np.int64)
            fits = (i >= 0) & (i < beside(n))
            inside = inside & fits
            at = at + np.where(fits, i, 0) * beside(s) * self.buffer.array.itemsize
        ok, coords = self.buffer.locate(at)
        return ok & inside, coords

    def inside(self, origin, shape, order, steps=None) -> None:
        return None

    def tile(self, origin, shape, order, fill, steps=None) -> np.ndarray:
        inner, back, steps = _unordered(shape, order, steps)
        x = self.gather(self.tile_indices(_back(origin, back), inner, steps), None, fill, inner)
        lead = x.ndim - len(inner)
        return x.transpose(*range(lead), *(lead + k for k in order))

    def put(self, origin, tile, shape, order, steps=None) -> None:
        inner, back, steps = _unordered(shape, order, steps)
        lead = tile.ndim - len(shape)
        value = tile.transpose(*range(lead), *(lead + k for k in back))
        self.scatter(self.tile_indices(_back(origin, back), inner, steps), value, None, inner)

    def rows(self, axis, sparse, starts, shape, fill) -> np.ndarray:
        return self.gather(_row_indices(axis, sparse, starts, shape), None, fill, tuple(shape))

    def put_rows(self, axis, sparse, starts, tile, shape) -> None:
        self.scatter(_row_indices(axis, sparse, starts, shape), tile, None, tuple(shape))


def _unordered(shape, order, steps):
    """Tile shape and steps by array axis, and for each array axis its tile dimension."""
    back = [list(order).index(k) for k in range(len(order))]
    return tuple(shape[i] for i in back), back, [(steps or shape)[i] for i in back]


def _back(origin, back):
    return [origin[i] for i in back]


def _row_indices(axis: int, sparse: np.ndarray, starts: Sequence[np.ndarray], shape: Sequence[int]) -> list[np.ndarray]:
    out, others = [], iter(starts)
    for k, n in enumerate(shape):
        i = np.asarray(sparse) if k == axis else positions(next(others))[..., None] + np.arange(n)
        out.append(i[(...,) + tuple(slice(None) if j == k else None for j in range(len(shape)))])
    return out
