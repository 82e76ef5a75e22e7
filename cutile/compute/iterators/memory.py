"""Iterators over memory: arrays of the user, and values in temporary storage. Every array that is an operand is
wrapped in one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import cutile as ct
from cutile.compute import readers
from cutile.compute.arrays import UNSIGNED, DeviceArray, Held, Piece, array_of
from cutile.compute.iterators.base import IteratorBase, Reversed
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import info
from cutile.runtime.annotations import ArrayAnnotation

ARRAYS = {wide: Annotated[Any, ArrayAnnotation(index_dtype=ct.int64 if wide else ct.int32)] for wide in (False, True)}


class InMemory(IteratorBase):
    """An array, from an item on. Several dimensions are read in memory order."""

    def __init__(self, array: Any, start: int = 0):
        self._set(array if isinstance(array, DeviceArray) else array_of(array), start)
        self.value_type = self.array.value_type

    def _set(self, array: DeviceArray, start: int) -> None:
        self.array, self.start, self._pieces = array, start, array.pieces()

    def _cut(self, n: int | None) -> Iterator[Piece]:
        size = self.array.size
        stop = size if n is None else min(size, self.start + n)
        return (piece.cut(self.start, stop) for piece in self._pieces)

    def reversed(self) -> IteratorBase:
        return _ReversedArray(self.advanced(-self.start), self.start)

    def on_some_gpu(self, n: int) -> IteratorBase:
        found = super().on_some_gpu(n)
        InMemory._set(found, self.array.on_some_gpu(n), 0)
        return found

    def slots(self) -> Iterator[DeviceArray | Held]:
        yield self.array

    def places(self) -> tuple:
        return (self.start,)

    def written(self) -> Iterator[DeviceArray]:
        yield self.array

    def outside(self) -> int:
        return max(-self.start, 0)

    def size(self) -> int | None:
        return self.array.size - self.start

    def advanced(self, k: int) -> InMemory:
        return type(self)(self.array, self.start + k)


class ArrayIterator(InMemory):
    """An array whose numbers lie where launches read them, each at once."""

    def __init__(self, array: Any, start: int = 0):
        super().__init__(array, start)
        self.kind = ("array", self.value_type)

    def reader(self) -> Any:
        return reader_of(self.value_type)

    def state(self, n: int | None) -> Any:
        return nested(self.value_type, list(self._cut(n)))

    def whole(self, n: int) -> Piece:
        """n items of an array in host memory, each with all its numbers."""
        return self._pieces[0]._replace(fields=(), offset=0).cut(self.start, self.start + n)

    def annotation(self, wide: bool) -> Any:
        return nested(self.value_type, [ARRAYS[wide]] * len(self._pieces), tuple_class=True)


class PackedArray(InMemory):
    """An array with numbers that lie where no multiple of their size leads; they are read in smaller units [TYP-4]."""

    def __init__(self, array: Any, start: int = 0):
        super().__init__(array, start)
        self.kind = ("packed array", self.value_type, tuple(piece.unit for piece in self._pieces))

    def reader(self) -> Any:
        return reader_of(self.value_type, iter(
            readers.Packed(piece.dtype, UNSIGNED[info(piece.dtype).storage.itemsize], UNSIGNED[piece.unit])
            if piece.packed else readers.Elements(piece.dtype) for piece in self._pieces))

    def state(self, n: int | None) -> Any:
        return nested(self.value_type, [piece.units() if piece.packed else piece for piece in self._cut(n)])

    def annotation(self, wide: bool) -> Any:
        return nested(self.value_type, [tuple[(ARRAYS[wide],) * len(piece.units())] if piece.packed else ARRAYS[wide]
                                        for piece in self._pieces], tuple_class=True)


def in_memory(array: Any) -> InMemory:
    """An array as an operand."""
    found = array_of(array)
    return (PackedArray if any(piece.packed for piece in found.pieces()) else ArrayIterator)(found)


class _ReversedArray(Reversed):
    """The items of an array backwards: they end at its first one."""

    def outside(self) -> int:
        return max(self.start + 1 - (self.children[0].size() or 0), 0)

    def size(self) -> int | None:
        return self.start + 1


class CacheModifiedInputIterator(ArrayIterator):
    """An array that is read with a hint about caches [ITR-10].

    Parameters
    ----------
    array : array
        Items of 1, 2, 4, 8 or 16 bytes.
    modifier : {"stream", "global", "volatile"}, default "stream"
        The hint. It changes nothing here.
    start : int, default 0
        The first item.

    Raises
    ------
    ValueError
        For another modifier, or other items.

    Examples
    --------
    >>> out = np.zeros(3, int)
    >>> items = ct.compute.CacheModifiedInputIterator(np.array([4, 5, 6]))
    >>> ct.compute.unary_transform(items, out, ct.compute.OpKind.IDENTITY, 3)
    >>> out
    array([4, 5, 6])
    """

    writes = False

    def __init__(self, array: Any, modifier: str = "stream", start: int = 0):
        super().__init__(array, start)
        if modifier not in ("stream", "global", "volatile"):
            raise ValueError(f"modifier must be 'stream', 'global' or 'volatile', not {modifier!r}")
        if (size := self.array.itemsize) not in (1, 2, 4, 8, 16):
            raise ValueError(f"CacheModifiedInputIterator reads items of 1, 2, 4, 8 or 16 bytes, not of {size}")
        if any(piece.packed for piece in self._pieces):
            raise ValueError("CacheModifiedInputIterator reads numbers that lie at multiples of their sizes, and those "
                             "of this array do not; pass the array itself")
        self.modifier = modifier
        self.kind = ("cached", modifier, self.value_type)

    def advanced(self, k: int) -> CacheModifiedInputIterator:
        return CacheModifiedInputIterator(self.array, self.modifier, self.start + k)


class Stored(IteratorBase):
    """Values in temporary storage: an array of its own for each number of a value."""

    def __init__(self, t: ValueType, arrays: list):
        self.value_type, self._arrays = t, arrays
        self.kind = ("stored", t)

    def reader(self) -> Any:
        return reader_of(self.value_type)

    def state(self, n: int | None) -> Any:
        return nested(self.value_type, self._arrays)

    def annotation(self, wide: bool) -> Any:
        return nested(self.value_type, [ARRAYS[wide]] * len(self._arrays), tuple_class=True)

    def advanced(self, k: int) -> Stored:
        found = Stored(self.value_type, [a.advanced(k) for a in self._arrays])
        found.kind = self.kind
        return found


def reader_of(t: ValueType, numbers: Iterator[Any] | None = None) -> Any:
    """The reader of items of a type; `numbers`: those of their numbers, in order."""
    if isinstance(t, Number):
        return readers.Elements(t.dtype) if numbers is None else next(numbers)
    return readers.Fields(t.cls, tuple([reader_of(part, numbers) for part in t.parts]))


def nested(t: ValueType, leaves: list, tuple_class: bool = False) -> Any:
    """Arrays, one for each number of an item, nested as its structs are."""
    if isinstance(t, Number):
        return leaves[0]
    parts = tuple(nested(part, leaves[a:b], tuple_class)
                  for part, a, b in zip(t.parts, t.starts[:-1], t.starts[1:], strict=True))
    return tuple[parts] if tuple_class else parts


def as_iterator(obj: Any, argument: str | None = None) -> IteratorBase:
    """The iterator that an argument is, or that wraps the array that it is. TypeError for anything else [ITR-11]."""
    if isinstance(obj, IteratorBase):
        return obj
    try:
        return in_memory(obj)
    except (TypeError, ValueError) as e:
        where = f"argument `{argument}`: " if argument else ""
        raise type(e)(f"{where}{e}") from None


def as_input(obj: Any, argument: str) -> IteratorBase:
    it = as_iterator(obj, argument)
    if not it.reads:
        raise ValueError(f"argument `{argument}`: This iterator does not support input operations")
    return it


def as_output(obj: Any, argument: str) -> IteratorBase:
    it = as_iterator(obj, argument)
    if not it.writes:
        raise ValueError(f"argument `{argument}`: This iterator does not support output operations")
    if any(not a.writable for a in it.written()):
        raise TypeError(f"argument `{argument}` is written to, but the array is read-only")
    for a in it.written():
        if a.size > 1 and abs(a.stride) < a.itemsize:
            raise ValueError(f"argument `{argument}` is written to, but items of {a.itemsize} bytes that lie "
                             f"{abs(a.stride)} bytes apart share memory; pass a copy")
    return it
