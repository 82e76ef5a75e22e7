"""The memory of an array argument: its bytes, reading it as carriers, and which addresses are elements of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from cutile import settings
from cutile.dtypes import DType, info, tfloat32
from cutile.interp.memory import atomics
from cutile.interp.memory.atomics import Position
from cutile.interp.memory.strided_tile import StridedMemory
from cutile.ops import _numeric

AT_ONCE = 1 << 15  # most positions of one call of `take` [measured]
ARGMAX_LIMIT = 1 << 14  # up to so many indices, argmax is faster than maximum [measured]
CONVERT_LIMIT = 1 << 26  # elements: larger arrays are never converted as a whole
# An array of at most SMALL elements is converted at the first read of at least 1/PART of its elements.
SMALL, PART = 1 << 20, 64


@functools.cache
def _carried(dtype: DType) -> tuple[np.dtype, bool]:
    """The carrier of a dtype, and whether memory holds carriers."""
    i = info(dtype)
    return i.carrier, i.carrier == i.storage and dtype is not tfloat32


class Buffer:
    """The memory of one array argument, for one launch. `writable`: stores are possible. `plain`: it holds carriers."""

    may_change = True  # the kernel may store to this memory, so loads copy; until a launch finds otherwise
    flat: np.ndarray | None = None  # the elements as a vector, if they are one after another in memory
    low = 0  # the offset of the lowest byte from element (0, …): 0 or less
    number: int | None = None  # stands for this buffer in foreign pointers
    at_pointer: Callable | None = None  # (buffer, byte offset, …) → the array there; set when a pointer is made
    carrier_memory: StridedMemory | None = None  # all of it as carriers, once that is made
    _stand_ins: dict | None = None
    _carrier_array: np.ndarray | None = None
    _read = 0  # elements that the launch has read so far

    def __init__(self, array: np.ndarray, dtype: DType, writable: bool, name: str):
        self.array, self.dtype, self.name, self.writable = array, dtype, name, writable
        self.carrier, self.plain = _carried(dtype)
        memory, strides = array, array.strides
        if array.flags.c_contiguous:
            self.flat = array if len(strides) == 1 else array.reshape(-1)
        else:
            self.low = sum(s * (n - 1) for s, n in zip(strides, array.shape, strict=True) if s < 0)
            memory = _bytes_of(array)
        self.stored_memory = StridedMemory(memory, -self.low, strides, array.dtype)

    # -- reading as carriers

    def array_to_read(self, n: int) -> tuple[np.ndarray, bool]:
        """The array to read `n` elements from, and whether what is read must still be converted to carriers.

        A buffer that does not change is converted as a whole once the launch has read more elements than it holds, or
        at the first large read of a small buffer.
        """
        if self.plain:
            return self.array, False
        if self._carrier_array is not None:
            return self._carrier_array, False
        self._read += n
        size = self.array.size
        soon = size <= SMALL and n * PART >= size
        if self.may_change or size > CONVERT_LIMIT or not (soon or self._read > size):
            return self.array, True
        if settings.get("MEMORY") is not None:  # it is kept for tiles
            return self.array, True
        self._carrier_array = np.ascontiguousarray(self.convert(self.array)).reshape(self.array.shape)
        return self._carrier_array, False

    @property
    def stand_ins(self) -> dict:
        """Buffers of the same shape that the sanitizer reads in the place of this one, by what they hold."""
        if self._stand_ins is None:
            self._stand_ins = {}
        return self._stand_ins

    @property
    def carriers(self) -> np.ndarray | None:
        """All elements as carriers, if they were converted."""
        return self._carrier_array

    def convert(self, stored: np.ndarray) -> np.ndarray:
        return _numeric.to_carrier(stored, self.dtype)

    def store(self, x: np.ndarray) -> np.ndarray:
        return x if self.plain else _numeric.to_storage(x, self.dtype)

    def memory_to_read(self, n: int) -> tuple[StridedMemory, bool]:
        """`array_to_read` as strided memory."""
        if self.plain:
            return self.stored_memory, False
        if self.carrier_memory is None:
            source, convert = self.array_to_read(n)
            if source is self.array:
                return self.stored_memory, convert
            self.carrier_memory = StridedMemory(source.reshape(-1), 0, source.strides, source.dtype)
        return self.carrier_memory, False

    def ensure_constant_carriers(self, n: int) -> bool:
        """Whether the memory does not change and holds carriers. If it holds none, and a read of `n` elements justifies
        it, it is converted first.
        """
        if self.may_change or self.plain or self.carrier_memory is not None:
            return not self.may_change
        if not self.memory_to_read(n)[1]:
            return True
        self._read -= n  # taken back: they are counted when they are really read
        return False

    def take(self, at: Position, n: int, out: np.ndarray | None = None) -> np.ndarray:
        """The carriers at positions that are known to exist. They may be written to `out` if that has their shape; it
        shares no memory with the buffer.
        """
        source, convert = self.array_to_read(n)
        if isinstance(at, tuple):
            x = np.asarray(source[at])
        else:
            flat = self.flat if source is self.array else source.reshape(-1)
            if out is not None and out.shape == at.shape and not convert and not self.may_change:
                for positions, part in _parts(at, out):
                    flat.take(positions, None, part, "clip")
                return out
            x = np.asarray(flat.take(at, mode="clip"))
        return self.convert(x) if convert else x

    def take_below(self, high: int, at: np.ndarray, out: np.ndarray) -> np.ndarray | None:
        """Write the elements of a 1-d array at positions in 0 … high-1 to `out`, and return it. None, with nothing
        done, if a position lies elsewhere or `out` does not fit.
        """
        flat = self.flat
        if flat is None or not self.plain or self.may_change or out.shape != at.shape or at.dtype.kind != "i" \
                or not all_below(at, high):
            return None
        for positions, part in _parts(at, out):
            flat.take(positions, None, part, "clip")
        return out

    def count_below(self, kind: str, high: int, at: np.ndarray, x: np.ndarray, shape: tuple[int, ...]) -> bool:
        """Add a number to the elements of a 1-d array at positions in 0 … high-1: count × x to each. False, with
        nothing done, if a position lies elsewhere or the update cannot be computed so.
        """
        flat = self.flat
        return flat is not None and atomics.is_one_number(x) and at.shape == shape and at.dtype.kind == "i" \
            and atomics.may_count(self.dtype, kind, flat, at) \
            and atomics.add_counts(flat, at.reshape(-1), x.flat[0], lambda i: all_below(i, high))

    def position(self, coords: Sequence[np.ndarray]) -> Position:
        """Coordinates as positions in `flat`; unchanged if the buffer has no `flat`."""
        if self.flat is None or not coords:
            return tuple(c.astype(np.int64, copy=False) for c in coords)
        at = coords[0]
        for k in range(1, len(coords)):
            at = at.astype(np.int64, copy=False) * self.array.shape[k] + coords[k].astype(np.int64, copy=False)
        return at if at.dtype.kind == "i" else at.astype(np.int64)

    # -- addresses

    def locate(self, offset: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Which byte offsets from element (0, …) are offsets of an element, and its coordinates (zeros elsewhere)."""
        a = self.array
        if a.size == 0:
            return np.zeros(offset.shape, bool), [np.zeros(offset.shape, np.int64)] * a.ndim
        rest = offset - self.low
        ok = (rest >= 0) & (rest < self.stored_memory.buffer.nbytes)
        rest = np.where(ok, rest, 0)
        coords = [np.zeros(offset.shape, np.int64) for _ in range(a.ndim)]
        steps = sorted((k for k in range(a.ndim) if a.shape[k] > 1 and a.strides[k]), key=lambda k: -abs(a.strides[k]))
        reach = 0
        for k in reversed(steps):
            if abs(a.strides[k]) <= reach:  # elements overlap or interleave: look them up
                return self._look_up(rest, ok)
            reach += abs(a.strides[k]) * (a.shape[k] - 1)
        for k in steps:
            q, rest = np.divmod(rest, abs(a.strides[k]))
            ok &= q < a.shape[k]
            coords[k] = q if a.strides[k] > 0 else a.shape[k] - 1 - q
        ok &= rest == 0
        return ok, [np.where(ok, c, 0) for c in coords]

    def _look_up(self, rest: np.ndarray, ok: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        a = self.array
        every = np.zeros((1,) * a.ndim, np.int64) - self.low
        for k, (n, s) in enumerate(zip(a.shape, a.strides, strict=True)):
            every = every + (s * np.arange(n)).reshape([-1 if j == k else 1 for j in range(a.ndim)])
        found, first = np.unique(every, return_index=True)
        i = np.minimum(np.searchsorted(found, rest), found.size - 1)
        ok &= found[i] == rest
        return ok, list(np.unravel_index(np.where(ok, first[i], 0), a.shape))


def _parts(at: np.ndarray, out: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Positions and the places for their results, cut into parts so small that the positions, and the 64-bit copies
    that NumPy makes of them, fit into the cache.
    """
    if at.size <= AT_ONCE or not (at.flags.c_contiguous and out.flags.c_contiguous):
        return [(at, out)]
    at, out = at.reshape(-1), out.reshape(-1)
    return [(at[i:i + AT_ONCE], out[i:i + AT_ONCE]) for i in range(0, at.size, AT_ONCE)]


def all_below(i: np.ndarray, high: int) -> bool:
    """Whether all indices lie in 0 … high-1. Reads them as unsigned, so that negative ones become the largest."""
    unsigned = _UNSIGNED.get(i.dtype.char)
    u = i if unsigned is None else i.view(unsigned)
    if i.size > ARGMAX_LIMIT:
        return 0 <= np.maximum.reduce(u, None).view(i.dtype).item() < high
    return 0 <= i.item(u.argmax()) < high  # takes half the time for few indices [measured]


_UNSIGNED = {c: np.dtype(c.upper()) for c in "bhilq"}


def _bytes_of(a: np.ndarray) -> np.ndarray:
    """The bytes from an array's lowest element to its highest. Those between elements are included, but are never read
    or written.
    """
    at = tuple(slice(n - 1, n) if s < 0 else slice(0, 1) for n, s in zip(a.shape, a.strides, strict=True))
    reach = sum(abs(s) * (n - 1) for s, n in zip(a.strides, a.shape, strict=True)) + a.itemsize
    lowest = a[(*at, ...)].reshape(1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(lowest, (reach,), (1,))


def as_ndarray(obj, dtype: DType) -> np.ndarray:
    """A NumPy array on the memory of `obj`, elements as `dtype` is stored. TypeError if there is no such view."""
    if isinstance(obj, np.ndarray):
        a = np.asarray(obj)
    elif hasattr(obj, "__array_interface__"):
        a = np.asarray(obj)
    elif hasattr(obj, "__dlpack__"):
        a = np.from_dlpack(obj)
    else:
        raise TypeError(f"{type(obj).__name__} is no array: it has neither __array_interface__ nor __dlpack__")
    storage = info(dtype).storage
    if a.dtype != storage:
        if a.dtype.itemsize != storage.itemsize or not a.dtype.isnative:
            raise TypeError(f"an array of NumPy dtype {a.dtype} does not hold {dtype.name} elements")
        a = a.view(storage)
    return a
