"""CUTILE_BACKEND=interp and CUTILE_SANITIZE: a launch on GPU arrays that the interpreter runs on copies of them.

Memory is copied in whole extents: copies of arrays that overlap on the GPU are views of one buffer, so that each sees
what is stored through the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cutile import settings
from cutile.analysis.aliasing import written_params
from cutile.dtypes import INFO
from cutile.gpu.driver import Driver, driver
from cutile.gpu.streams import handle
from cutile.ir.nodes import Kernel
from cutile.types import ArrayType, ListType


class Extent:
    """A stretch of GPU memory, from address `low` to `high`, and its copy."""

    def __init__(self, low: int, high: int):
        self.low, self.high = low, high
        self.copy = np.empty(0, np.uint8)
        self.stored = False

    def fetch(self, d: Driver) -> None:
        self.copy = np.empty(self.high - self.low, np.uint8)
        d.ask("GPU memory cannot be copied to the host",
              d.api.cuMemcpyDtoH(self.copy.ctypes.data, self.low, self.copy.nbytes))

    def give_back(self, d: Driver) -> None:
        d.ask("host memory cannot be copied to the GPU",
              d.api.cuMemcpyHtoD(self.low, self.copy.ctypes.data, self.copy.nbytes))


class HostCopyLaunch:
    """A launch on GPU arrays that the interpreter runs on copies of them.

    inner    what the interpreter prepared
    ordinal  of the GPU;  dims: sizes and strides of the arrays
    """

    def __init__(self, inner: Any, ordinal: int, dims: Sequence[Any]):
        self.inner, self.ordinal, self.dims = inner, ordinal, dims

    def still_valid(self) -> bool:
        """Whether CUTILE_BACKEND=interp or CUTILE_SANITIZE still asks for it."""
        return settings.on_host() and self.inner.still_valid()

    def run(self, grid: tuple[int, int, int], stream: Any, values: Sequence[Any], dependent: bool) -> None:
        """Run it, and copy back what the kernel may have stored to, also if it fails, as on a GPU.

        values  addresses, numbers and lists of addresses
        """
        d, number = driver(), handle(stream)
        kernel: Kernel = self.inner.compiled.kernel
        stored = written_params(kernel)
        found = [(p.type, v, n, p in stored) for p, v, n in zip(kernel.params, values, self.dims, strict=True)]
        with d.device(self.ordinal).current():
            d.ask("the stream cannot be waited for", d.api.cuStreamSynchronize(number))
            extents = merged(sorted(e for t, v, n, s in found for e in _extents(t, v, n, s)))
            for e in extents:
                e.fetch(d)
            try:
                self.inner.run(grid, None, [_host_value(t, v, n, extents) for t, v, n, _ in found], False)
            finally:
                for e in extents:
                    if e.stored:
                        e.give_back(d)


def stored_extents(kernel: Kernel, values: Sequence[Any], dims: Sequence[Any]) -> list[Extent]:
    """The memory that a kernel may store to, of launch values as `HostCopyLaunch.run` takes them."""
    stored = written_params(kernel)
    return merged(sorted(e for p, v, n in zip(kernel.params, values, dims, strict=True) if p in stored
                         for e in _extents(p.type, v, n, True)))


def _extents(t: Any, value: Any, dims: Any, stored: bool) -> Iterator[tuple[int, int, bool]]:
    if isinstance(t, ListType):
        for v, n in zip(value, dims, strict=True):
            yield from _extents(t.element, v, n, stored)
    elif isinstance(t, ArrayType) and 0 not in dims[0]:
        item = INFO[t.dtype].storage.itemsize
        reach = [stride * (size - 1) * item for size, stride in zip(*dims, strict=True)]
        yield value + sum(r for r in reach if r < 0), value + sum(r for r in reach if r > 0) + item, stored


def merged(parts: Sequence[tuple[int, int, bool]]) -> list[Extent]:
    """Disjoint extents that cover parts (low, high, stored), which are sorted."""
    out: list[Extent] = []
    for low, high, stored in parts:
        if not out or low >= out[-1].high:
            out.append(Extent(low, high))
        out[-1].high = max(out[-1].high, high)
        out[-1].stored |= stored
    return out


def _host_value(t: Any, value: Any, dims: Any, extents: Sequence[Extent]) -> Any:
    """A launch value as the interpreter takes it: a number, or an array over the copy that holds it."""
    if isinstance(t, ListType):
        return [_host_value(t.element, v, n, extents) for v, n in zip(value, dims, strict=True)]
    if not isinstance(t, ArrayType):
        return value
    (shape, strides), storage = dims, INFO[t.dtype].storage
    if 0 in shape:
        return np.empty(shape, storage)
    e = next(e for e in extents if e.low <= value < e.high)
    return np.ndarray(shape, storage, e.copy, value - e.low, tuple(s * storage.itemsize for s in strides))
