"""Which elements of which array an access reaches, for all running blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from cutile.dtypes import int64
from cutile.interp.exec.block_set import BlockSet
from cutile.interp.memory.array_view import ArrayView
from cutile.interp.memory.buffer import Buffer
from cutile.interp.memory.foreign_view import ForeignView
from cutile.interp.memory.per_block_array import ArrayList
from cutile.interp.sanitize.reach import Place, of_value
from cutile.ops._access import in_index_dtype
from cutile.ops._op import TILES

FAR = 1 << 60  # elements: tiles that begin farther away are taken to begin here, so that nothing overflows
NOWHERE = -1  # the number of an element that an access does not reach


def reached(place: Place, ctx: BlockSet) -> int:
    """How many elements of its array an access has reached, in all running blocks together: neither those outside the
    array nor those that a mask leaves out count; one that is reached twice counts twice.
    """
    if place.access.unit == TILES and not isinstance(place.array, ForeignView):
        found, rank = _inside(place), 0
    else:
        found, rank = place.read(of_value(1), np.asarray(0, np.uint8)), len(place.access.shape)
    return int(ctx.flat(np.asarray(found), rank).sum(dtype=np.int64))


def _inside(place: Place) -> np.ndarray:
    """How many elements of each block's tile lie inside the array."""
    access, total = place.access, np.asarray(1, np.int64)
    sizes = place.array.shape
    for begin, n, k in zip(begins(place), access.shape, access.order, strict=True):
        total = total * np.clip(np.minimum(begin + n, sizes[k]) - np.maximum(begin, 0), 0, None)
    return total


def begins(place: Place) -> list[np.ndarray]:
    """The element at which each block's tile begins, along each dimension of the tile, of an access with unit TILES."""
    index = in_index_dtype(place.named["index"], place.sig)
    return [np.clip(np.asarray(j).astype(np.int64), -FAR // step, FAR // step) * step
            for j, step in zip(index, place.access.steps, strict=True)]


class Numbering:
    """Numbers for the elements of all arrays of a launch: those of each array follow one another, in row-major order of
    their indices. Arrays that share memory have different numbers.

    names, buffers   of the arrays, in the order of the parameters
    first            the number of the first element of each, and after the last one how many there are
    """

    def __init__(self, names: Sequence[str], args: Sequence[object]):
        """`names` of the parameters, `args` as emitted code takes them."""
        found = list(_arrays(names, args))
        self.names, self.buffers = [name for name, _ in found], [buffer for _, buffer in found]
        self.first = np.cumsum([0, *(b.array.size for b in self.buffers)])

    @property
    def count(self) -> int:
        return int(self.first[-1])

    def of(self, place: Place, ctx: BlockSet) -> np.ndarray:
        """The numbers of the elements that an access reaches, NOWHERE for those that it does not: an array of the tile
        for each running block.
        """
        found = place.read(self._numbers, np.asarray(NOWHERE, np.int64))
        return ctx.flat(found, len(place.access.shape))

    def home(self, buffer: Buffer) -> tuple[int, int] | None:
        """The array that a buffer is or, if it was made from a foreign pointer, is a part of; and how many elements
        after the first one of that array it begins. None if there is no such array.
        """
        for i, b in enumerate(self.buffers):
            if b is buffer:
                return i, 0
        at = buffer.array.__array_interface__["data"][0]
        for i, b in enumerate(self.buffers):
            after = at - b.array.__array_interface__["data"][0]
            if b.name == buffer.name and b.flat is not None and 0 <= after < b.array.nbytes:
                return i, after // b.array.itemsize
        return None

    def arrays(self, numbers: np.ndarray) -> np.ndarray:
        """The array of each of these numbers, which are of elements."""
        return np.searchsorted(self.first, numbers, "right") - 1

    def indices(self, array: int, numbers: np.ndarray) -> tuple[np.ndarray, ...]:
        """The indices along each axis of elements of an array."""
        shape = self.buffers[array].array.shape
        return np.unravel_index(numbers - self.first[array], shape) if shape else ()

    def _numbers(self, buffer: Buffer) -> Buffer:
        """Memory that holds the numbers of the elements of a buffer."""
        made = buffer.stand_ins.get(Numbering)
        if made is None:
            made = buffer.stand_ins[Numbering] = Buffer(self._of_elements(buffer), int64, False, buffer.name)
            made.may_change = False
        return made

    def _of_elements(self, buffer: Buffer) -> np.ndarray:
        a, home = buffer.array, self.home(buffer)
        if home is None:
            return np.full(a.shape, NOWHERE)
        number, first = home
        if buffer is self.buffers[number]:
            steps = [prod(a.shape[k + 1:]) for k in range(a.ndim)]
        else:  # a part, which lies in an array whose elements follow one another in memory
            steps = [s // a.itemsize for s in a.strides]
        x = np.asarray(self.first[number] + first)
        for k, (n, step) in enumerate(zip(a.shape, steps, strict=True)):
            x = x + np.arange(n).reshape([-1 if j == k else 1 for j in range(a.ndim)]) * step
        return x.reshape(a.shape)


def _arrays(names: Sequence[str], args: Sequence[object]) -> Iterator[tuple[str, Buffer]]:
    for name, x in zip(names, args, strict=True):
        if isinstance(x, ArrayView):
            yield name, x.buffer
        elif isinstance(x, ArrayList):
            yield from _arrays([f"{name}[{i}]" for i in range(len(x))], x)
