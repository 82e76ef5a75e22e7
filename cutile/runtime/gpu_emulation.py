"""CUTILE_BACKEND=interp: a launch on GPU arrays, run by the interpreter on copies of them.

Memory is copied in whole extents: arrays that overlap on the GPU are views of one buffer here, so that each sees what
is stored through the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cutile.analysis.memory_effects import written_params
from cutile.dtypes import INFO
from cutile.gpu.driver import Driver, driver
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


def run(compiled: Any, ordinal: int, grid: tuple[int, int, int], stream: int, words: Sequence[Any],
        dims: Sequence[Any]) -> None:
    """Run what the interpreter has of a kernel on copies, and copy back what it may have stored to, also if it fails
    [as a GPU would have].

    words  of the leaves: addresses, numbers, lists of addresses;  dims: sizes and strides of the arrays
    """
    from cutile.interp import HostLaunch

    kernel, launch = compiled.kernel, HostLaunch(compiled, repeatable=False)
    d = driver()
    stored = written_params(kernel)
    found = [(p.type, w, n, p in stored) for p, w, n in zip(kernel.params, words, dims, strict=True)]
    with d.device(ordinal).current():
        d.ask("the stream cannot be waited for", d.api.cuStreamSynchronize(stream))
        extents = merged(sorted(e for t, w, n, s in found for e in _extents(t, w, n, s)))
        for e in extents:
            e.fetch(d)
        try:
            launch.run(grid, None, [_on_host(t, w, n, extents) for t, w, n, _ in found], False)
        finally:
            for e in extents:
                if e.stored:
                    e.give_back(d)


def stored_extents(kernel: Kernel, words: Sequence[Any], dims: Sequence[Any]) -> list[Extent]:
    """The memory that a kernel may store to, of arguments as `run` takes them."""
    stored = written_params(kernel)
    return merged(sorted(e for p, w, n in zip(kernel.params, words, dims, strict=True) if p in stored
                         for e in _extents(p.type, w, n, True)))


def _extents(t: Any, word: Any, dims: Any, stored: bool) -> Iterator[tuple[int, int, bool]]:
    if isinstance(t, ListType):
        for w, n in zip(word, dims, strict=True):
            yield from _extents(t.element, w, n, stored)
    elif isinstance(t, ArrayType) and 0 not in dims[0]:
        item = INFO[t.dtype].storage.itemsize
        reach = [stride * (size - 1) * item for size, stride in zip(*dims, strict=True)]
        yield word + sum(r for r in reach if r < 0), word + sum(r for r in reach if r > 0) + item, stored


def merged(parts: Sequence[tuple[int, int, bool]]) -> list[Extent]:
    """Extents, apart from each other, that cover sorted parts (low, high, stored)."""
    out: list[Extent] = []
    for low, high, stored in parts:
        if not out or low >= out[-1].high:
            out.append(Extent(low, high))
        out[-1].high = max(out[-1].high, high)
        out[-1].stored |= stored
    return out


def _on_host(t: Any, word: Any, dims: Any, extents: Sequence[Extent]) -> Any:
    """The leaf as the interpreter takes it: a number, or an array over the copy that holds it."""
    if isinstance(t, ListType):
        return [_on_host(t.element, w, n, extents) for w, n in zip(word, dims, strict=True)]
    if not isinstance(t, ArrayType):
        return word
    (shape, strides), storage = dims, INFO[t.dtype].storage
    if 0 in shape:
        return np.empty(shape, storage)
    e = next(e for e in extents if e.low <= word < e.high)
    return np.ndarray(shape, storage, e.copy, word - e.low, tuple(s * storage.itemsize for s in strides))
