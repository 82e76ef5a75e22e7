"""Arrays of float4_e2m1fn in CPU memory, packed two elements to a byte as in PyTorch.

The interpreter takes one element per byte, as in ml_dtypes. So a launch runs on copies, and arrays that it may have
stored to are packed again. Copies of overlapping arrays overlap as well: each sees what is stored through another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from cutile.analysis.aliasing import written_params
from cutile.dtypes import INFO, float4_e2m1fn
from cutile.errors import refusal
from cutile.ir.nodes import Kernel

_STORAGE = INFO[float4_e2m1fn].storage
_EFFORT = 100_000  # the work that np.may_share_memory may do to find out whether two arrays have a byte in common


class PackedArray:
    """An array of pairs: two neighbours along the last axis share a byte, the first one in its low half.

    pairs    NumPy array of uint8, a view of the memory. TypeError if it is not contiguous along its last axis, since
             its elements would not be either
    pointer, shape, strides, ndim, size   of the elements; strides are in elements
    """

    def __init__(self, pairs: np.ndarray):
        if pairs.ndim == 0:
            raise TypeError("a byte of two float4_e2m1fn elements that has no axis cannot be passed to a kernel; "
                            "x.reshape(1) makes an array that can")
        if pairs.shape[-1] > 1 and pairs.strides[-1] != 1:
            raise TypeError("an array of float4_e2m1fn elements, two to a byte, that is not contiguous along its last "
                            "axis cannot be passed to a kernel: a byte holds neighbours along that axis; "
                            "x.contiguous() makes one that can")
        self.pairs, self.pointer, self.ndim, self.size = pairs, pairs.ctypes.data, pairs.ndim, 2 * pairs.size
        self.shape = (*pairs.shape[:-1], 2 * pairs.shape[-1])
        self.strides = (*(2 * s for s in pairs.strides[:-1]), 1)

    def unpack(self, copy: np.ndarray) -> None:
        """Write the elements into `copy`, one per byte. It becomes read-only if this array is."""
        codes = copy.view(np.uint8)
        codes[..., 0::2], codes[..., 1::2] = self.pairs & 15, self.pairs >> 4
        copy.flags.writeable = self.pairs.flags.writeable

    def pack(self, copy: np.ndarray) -> None:
        """Write the elements of `copy` back into this array."""
        codes = copy.view(np.uint8)
        self.pairs[...] = codes[..., 0::2] | codes[..., 1::2] << 4


def unpacked(values: Sequence[Any]) -> list[Any]:
    """Launch values with new NumPy arrays of ml_dtypes.float4_e2m1fn in the place of packed arrays."""
    copies = _copies([a for x in values for a in _items(x) if isinstance(a, PackedArray)])
    return [[copies.get(id(a), a) for a in x] if isinstance(x, list) else copies.get(id(x), x) for x in values]


class PackedLaunch:
    """Runs a HostLaunch on unpacked copies of the packed arrays among its arguments."""

    def __init__(self, inner: Any):
        self.inner = inner

    def still_valid(self) -> bool:
        return self.inner.still_valid()

    def run(self, grid: tuple[int, int, int], stream: Any, values: Sequence[Any], dependent: bool) -> None:
        """Run it, and pack what the kernel may have stored, also if it fails."""
        kernel: Kernel = self.inner.compiled.kernel
        stored = written_params(kernel)
        _refuse_shared([(f"{name}[{i}]" if isinstance(x, list) else name, a, p in stored)
                        for p, name, x in zip(kernel.params, kernel.param_names, values, strict=True)
                        for i, a in enumerate(_items(x))])
        copies = unpacked(values)
        try:
            self.inner.run(grid, stream, copies, dependent)
        finally:
            for p, value, copy in zip(kernel.params, values, copies, strict=True):
                for a, c in zip(_items(value), _items(copy), strict=True):
                    if p in stored and isinstance(a, PackedArray) and a.pairs.flags.writeable:
                        a.pack(c)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _refuse_shared(arrays: Sequence[tuple[str, Any, bool]]) -> None:
    """TypeError if a packed array and an array of another kind share memory that the kernel stores to: since the kernel
    runs on a copy, what is stored through one would not be seen through the other.
    """
    packed = [x for x in arrays if isinstance(x[1], PackedArray)]
    others = [x for x in arrays if isinstance(x[1], np.ndarray)]
    for (one, a, a_stored), (other, b, b_stored) in product(packed, others):
        if (a_stored or b_stored) and np.may_share_memory(a.pairs, b, max_work=_EFFORT):
            raise refusal(TypeError(
                f"the kernel stores to memory that parameters `{one}`, of float4_e2m1fn packed two to a byte, and "
                f"`{other}`, of {b.dtype}, share; copy one of the arrays"))


# ------------------------------------------------------------------ copies


def _copies(arrays: Sequence[PackedArray]) -> dict[int, np.ndarray]:
    """Arrays with the same elements, one to a byte, by the id of the packed array."""
    copies = {id(a): np.empty(a.shape, _STORAGE) for a in arrays if not a.size}
    for low, high, together in _stretches([a for a in arrays if a.size]):
        memory = np.empty(2 * (high - low), np.uint8)
        for a in together:
            copies[id(a)] = np.ndarray(a.shape, _STORAGE, memory, 2 * (a.pointer - low), a.strides)
    for a in arrays:
        a.unpack(copies[id(a)])
    return copies


def _stretches(arrays: Sequence[PackedArray]) -> Iterator[tuple[int, int, list[PackedArray]]]:
    """Disjoint stretches of memory that cover the arrays: first byte, end, and the arrays in each."""
    low, high, together = 0, 0, []
    for a in sorted(arrays, key=lambda a: np.lib.array_utils.byte_bounds(a.pairs)):
        start, end = np.lib.array_utils.byte_bounds(a.pairs)
        if together and start >= high:
            yield low, high, together
            together = []
        if not together:
            low = high = start
        high = max(high, end)
        together.append(a)
    if together:
        yield low, high, together
