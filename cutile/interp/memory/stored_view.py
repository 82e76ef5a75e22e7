"""An array whose elements are read and written as the bits that are stored, for tiles that are only moved.

Short floats need not become carriers and short floats again, which takes longer than moving them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutile.dtypes import DType, float16, uint8, uint16
from cutile.interp.memory.array_view import ArrayView
from cutile.interp.memory.buffer import Buffer
from cutile.ops import _numeric

WORDS = {1: uint8, 2: uint16}


def as_stored(array: ArrayView) -> StoredView:
    """The bits of an array, made once for a launch or chunk."""
    found = vars(array).get("stored")
    if found is None:
        found = array.stored = StoredView(array)
    return found


class StoredView(ArrayView):
    """The bits of an array that is the same for all blocks, as unsigned integers."""

    def __init__(self, array: ArrayView):
        super().__init__(words(array).buffer, array.start, array.size, array.steps, array.index_dtype)
        self.of = array.dtype

    def tile(self, origin, shape, order, fill, steps=None):
        return self._quiet(super().tile(origin, shape, order, self._bits(fill), steps))

    def view(self, origin, shape, order, steps=None):
        v = super().view(origin, shape, order, steps)
        return v if v is None else self._quiet(v)

    def gather(self, indices, mask, fill, tile_shape, out=None):
        return self._quiet(super().gather(indices, mask, self._bits(fill), tile_shape))

    def _bits(self, fill) -> np.ndarray:
        return _numeric.to_bits(np.asarray(fill, np.float32), self.of).astype(self.buffer.carrier)

    def _quiet(self, bits: np.ndarray) -> np.ndarray:
        return quiet16(bits) if self.of is float16 else bits


def quiet16(bits: np.ndarray) -> np.ndarray:
    """Bits of float16 with signalling NaNs quiet, as conversion to carriers makes them."""
    if not bits.size:
        return bits
    size = bits & np.uint16(0x7FFF)
    return bits if size.max() <= 0x7C00 else np.where(size > 0x7C00, bits | np.uint16(0x0200), bits)


def words(array: ArrayView) -> ArrayView:
    """The memory of an array of short floats as that of unsigned integers, by which tiles can be found in it."""
    of = array.buffer
    buffer = Buffer(of.array.view(f"u{of.array.itemsize}"), WORDS[of.array.itemsize], of.writable, of.name)
    buffer.may_change = of.may_change
    return ArrayView(buffer, array.start, array.size, array.steps, array.index_dtype, True)


def reading(dtype: DType, as_stored: bool) -> Callable | None:
    """What makes of words what a load gives: bits where it loads them as stored, else carriers. None where it gives the
    words.
    """
    if not as_stored:
        return _numeric.decoder(dtype)
    return quiet16 if dtype is float16 else None
