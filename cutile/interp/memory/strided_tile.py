"""Memory with strides, and tiles of it as strided NumPy views."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class StridedMemory(NamedTuple):
    """An array in a NumPy buffer: the byte offset of its element (0, …), and along each axis the bytes from one element
    to the next.
    """

    buffer: np.ndarray
    offset: int
    strides: tuple[int, ...]
    dtype: np.dtype


class StridedTile(NamedTuple):
    """The tiles of many blocks as one view: batch axes, then the axes of the tile. `offset` and `strides` are in bytes,
    the offset counted from element (0, …) of the array.

    `disjoint`: no element of the array lies in the tiles of two blocks.
    """

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    disjoint: bool

    def of(self, memory: StridedMemory) -> np.ndarray:
        """The view. NumPy checks that it stays inside the buffer."""
        return np.ndarray(self.shape, memory.dtype, memory.buffer, memory.offset + self.offset, self.strides)
