"""`ArrayRef`, the description of an array argument: its type, facts and parameters are derived from it alone."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from cutile._support.strides import check_strides, row_major
from cutile.dtypes import INFO, DType, of_storage
from cutile.runtime.float4_packing import PackedArray

# The libraries that readers know (arrays.py), as the first item of an array's part in a key.
NUMPY, TORCH, CUPY, OTHER = "numpy", "torch", "cupy", "other"
GPU_PARTS = 7  # items of the part of an array in GPU memory (arrays.py lists them)
GPU, ADDRESS = 4, 5  # indices of two of them: the GPU, and the address modulo 16


class ArrayRef(NamedTuple):
    """An array as a launch has read it.

    pointer   address of element (0, …), 0 if there is none
    shape     sizes
    strides   in elements
    device    ordinal of the GPU; None in CPU memory, or if only the driver can tell
    writable  False if the library says that it may not be stored to
    owner     the NumPy array or PackedArray in CPU memory; None in GPU memory, which the caller keeps
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    device: int | None = None
    writable: bool = True
    owner: np.ndarray | PackedArray | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        return INFO[self.dtype].storage.itemsize


def ref_of(part: Any, value: Any) -> ArrayRef | None:
    """The description of what a reader appended to a key and to launch values; None for what is no array.

    TypeError for a NumPy array that cannot be used, for example of a dtype that tile code does not have.
    """
    if type(part) is not tuple or type(part[0]) is not str:
        return None
    if type(value) is PackedArray:
        return ArrayRef(value.pointer, value.shape, value.strides, part[1], None, True, value)
    if type(value) is np.ndarray:
        dtype = checked(value)
        strides = tuple(s // value.itemsize for s in value.strides)
        return ArrayRef(value.ctypes.data, value.shape, strides, dtype, None, value.flags.writeable, value)
    library, dtype, shape, strides, device, _, writable = part
    shape = tuple(shape)
    if library == CUPY:  # its strides are in bytes, and arbitrary for axes of size 1
        strides = _elements(shape, strides, INFO[dtype].storage.itemsize)
        value = value if prod(shape) else 0
    return ArrayRef(value, shape, strides, dtype, device, writable)


def checked(a: np.ndarray) -> DType:
    """The dtype of a NumPy array. TypeError if it cannot be passed to a kernel."""
    dtype = of_storage(a.dtype)
    if dtype is None:
        native = a.dtype.newbyteorder("=") in [i.storage for i in INFO.values()]
        what = "byte order is not the machine's" if native else "dtype is not supported"
        raise TypeError(f"an array of dtype {a.dtype} cannot be passed to a kernel: its {what}; convert it first")
    check_strides(a.strides, a.shape, a.itemsize)
    return dtype


def _elements(shape: tuple[int, ...], steps: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in elements. CuPy reports arbitrary strides for axes of size 1; those of packed arrays are normalised."""
    packed = row_major(shape)
    if 0 in shape or all(n == 1 or s == k * itemsize for n, s, k in zip(shape, steps, packed, strict=True)):
        return packed
    check_strides(steps, shape, itemsize)
    return tuple(s // itemsize for s in steps)
