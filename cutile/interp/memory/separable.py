"""Elements at indices that keep the axes of an array apart, as in x[rows, columns] where `rows` vary along some axes of
the result and `columns` along others. Image kernels have such indices.

An index then is one vector of coordinates for each axis of the array, much shorter than the result. The vector's runs
of consecutive coordinates become slices, so that elements are copied, or viewed, in rows instead of one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from cutile._support.strides import without_repetition
from cutile.interp.memory.buffer import Buffer
from cutile.interp.memory.tile_copy import make_read_only
from cutile.interp.memory.tile_locations import OUTSIDE, TileBounds
from cutile.ops._promotion import broadcastable_to

MOST_PIECES = 64  # most slices to copy: products of runs
_EXISTS = make_read_only(np.ones((), bool))  # for all coordinates
LEAST_ELEMENTS = 256  # of an access; for fewer, this analysis takes longer than the access


class _Run(NamedTuple):
    """Consecutive coordinates in a vector: its part `at`, and the part of the array's axis; None outside the array."""

    at: slice
    there: slice | None


class _Axis(NamedTuple):
    """What an index says about one axis of the array: along which axes of the result it varies, the coordinates in
    row-major order of these, which of them exist (one value if all do), and their runs. There are no runs if they
    would be too short.
    """

    axes: tuple[int, ...]
    coords: np.ndarray
    exist: np.ndarray
    runs: tuple[_Run, ...]


class Separable(NamedTuple):
    """An access to elements. `shape`: that to which the indices broadcast."""

    axes: tuple[_Axis, ...]
    shape: tuple[int, ...]

    def read(self, buffer: Buffer, fill: np.ndarray) -> np.ndarray | None:
        """The carriers, with `fill` for elements outside the array. None if other ways are as fast."""
        exist = all(a.exist.all() for a in self.axes)
        if not exist and fill.size != 1:
            return None
        irregular = [k for k, a in enumerate(self.axes) if not a.runs]
        if irregular and (len(irregular) > 1 or any(len(a.runs) > 1 for a in self.axes)):
            return None
        source, convert = buffer.array_to_read(prod(len(a.coords) for a in self.axes))
        if exist and all(len(a.runs) == 1 for a in self.axes):
            x = source[tuple(a.runs[0].there for a in self.axes)]
            x = buffer.convert(x) if convert else x.copy() if buffer.may_change else make_read_only(x)
        elif irregular:
            (k,) = irregular
            x = source[tuple(a.runs[0].there or slice(0, 0) if a.runs else slice(None) for a in self.axes)]
            if not x.size:
                return None
            x = x.take(np.where(self.axes[k].exist, self.axes[k].coords, 0), axis=k, mode="clip")
            x = buffer.convert(x) if convert else x
            if not exist:
                x[(slice(None),) * k + (~self.axes[k].exist,)] = fill.reshape(())
        else:
            x = np.full([len(a.coords) for a in self.axes], fill.reshape(()), buffer.carrier)
            for at, there in self._pieces():
                x[at] = buffer.convert(source[there]) if convert else source[there]
        return self._placed(x)

    def write(self, buffer: Buffer, value: np.ndarray) -> bool:
        """Store carriers; those of elements outside the array are dropped. False, with nothing done, if elements are
        written more than once, or other ways are as fast.
        """
        if not broadcastable_to(value.shape, self.shape) or not all(a.runs for a in self.axes):
            return False
        varying = sum(len(a.axes) for a in self.axes)
        if varying != sum(n > 1 for n in self.shape) or not all(map(_ascend, self.axes)):
            return False
        value = self._gathered(np.broadcast_to(value, self.shape))
        for at, there in self._pieces():
            buffer.array[there] = buffer.store(value[at])
        return True

    def _pieces(self) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
        """The parts that exist, as (slices of a value with the axes of the array, slices of the array)."""
        runs = [[r for r in a.runs if r.there is not None] for a in self.axes]
        for piece in itertools.product(*runs):
            yield tuple(r.at for r in piece), tuple(r.there for r in piece)

    def _placed(self, x: np.ndarray) -> np.ndarray:
        """A value with the axes of the array as one with those of the result."""
        axes = [k for a in self.axes for k in a.axes]
        order = sorted(range(len(axes)), key=axes.__getitem__)
        x = x.reshape([self.shape[k] for k in axes]).transpose(order)
        return np.broadcast_to(x.reshape([n if k in axes else 1 for k, n in enumerate(self.shape)]), self.shape)

    def _gathered(self, x: np.ndarray) -> np.ndarray:
        """The inverse of `_placed`, if each axis of the result belongs to an axis of the array."""
        axes = [k for a in self.axes for k in a.axes]
        rest = [k for k in range(len(self.shape)) if k not in axes]
        return x.transpose(*rest, *axes).reshape([len(a.coords) for a in self.axes])


def _ascend(a: _Axis) -> bool:
    """Whether the existing coordinates of an axis ascend, so that none occurs twice."""
    last = -1
    for r in a.runs:
        if r.there is not None:
            if r.there.start <= last:
                return False
            last = r.there.stop - 1
    return True


# ------------------------------------------------------------------ from indices


def separable(bounds: TileBounds, indices: Sequence[np.ndarray], tile_shape: tuple[int, ...]) -> Separable | None:
    """The access at index tiles, one for each axis of an array; None if they do not keep the axes apart."""
    if not (bounds.fixed and indices):
        return None
    shape = np.broadcast_shapes(tile_shape, *(i.shape for i in indices))
    total = prod(shape)
    if total < LEAST_ELEMENTS:
        return None
    axes, used = [], set()
    for start, stop, i in zip(bounds.start, bounds.stop, indices, strict=True):
        coords = without_repetition(i)
        along = tuple(k for k, n in enumerate(coords.shape, len(shape) - coords.ndim) if n > 1)
        if used & set(along):
            return None
        used.update(along)
        if 4 * coords.size > total and not _may_be_one_run(coords):
            return None
        axes.append(_axis(along, coords.reshape(-1), start, stop))
    if prod(max(len(a.runs), 1) for a in axes) > MOST_PIECES:
        return None
    return Separable(tuple(axes), shape)


def _may_be_one_run(coords: np.ndarray) -> bool:
    return int(coords.item(-1)) - int(coords.item(0)) == coords.size - 1


def _consecutive(along: tuple[int, ...], coords: np.ndarray, stop: int) -> _Axis:
    """Consecutive coordinates of an axis that begins at 0: those before it, on it, and behind it."""
    first, n = int(coords.item(0)), coords.size
    low = min(max(-first, 0), n)
    high = min(max(stop - first, low), n)
    if low == 0 and high == n:
        return _Axis(along, coords, _EXISTS, (_Run(slice(0, n), slice(first, first + n)),))
    exist = np.zeros(n, bool)
    exist[low:high] = True
    parts = ((0, low, None), (low, high, slice(first + low, first + high)), (high, n, None))
    return _Axis(along, coords, exist, tuple([_Run(slice(a, b), there) for a, b, there in parts if a < b]))


def _axis(along: tuple[int, ...], coords: np.ndarray, start: int, stop: int) -> _Axis:
    if not start and _may_be_one_run(coords) and (coords[1:] - coords[:-1] == 1).all():
        return _consecutive(along, coords, stop)
    coords = coords.astype(np.int64, copy=False)
    if start:
        coords = np.where((coords < 0) | (coords >= OUTSIDE), OUTSIDE, coords) + start
    exist = (coords >= max(start, 0)) & (coords < stop)
    ends = np.flatnonzero((coords[1:] != coords[:-1] + 1) | (exist[1:] != exist[:-1])) + 1
    if len(ends) >= max(4, len(coords) // 8):
        return _Axis(along, coords, exist, ())
    cuts = [0, *ends.tolist(), len(coords)]
    runs = tuple(_Run(slice(a, b), slice(first, first + b - a) if ok else None)
                 for a, b, first, ok in zip(cuts, cuts[1:], coords[cuts[:-1]].tolist(), exist[cuts[:-1]].tolist(),
                                            strict=False))
    return _Axis(along, coords, exist, runs)
