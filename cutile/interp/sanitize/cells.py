"""A cell for each element of memory that a launch can access. Elements of arrays that overlap share cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Any

import numpy as np

from cutile.dtypes import int64
from cutile.interp.memory.array import Array
from cutile.interp.memory.array_view import ArrayView
from cutile.interp.memory.buffer import Buffer


class _Extent:
    """The memory from address `low` to `high`, with a cell for each `step` bytes; its cells have numbers from `first`
    on.
    """

    def __init__(self, low: int, high: int, step: int):
        self.low, self.high, self.step, self.first = low, high, step, 0


class Cells:
    """The cells of a launch. `fields`: for each field name an int64 array with one value per cell."""

    def __init__(self, args: Sequence[Any]):
        self.extents = _extents(sorted(_memory(a.buffer.array) for a in _arrays(args)))
        self.count = 0
        for e in self.extents:
            e.first = self.count
            self.count += (e.high - e.low) // e.step + 1
        self.fields: dict[str, np.ndarray] = {}

    def field(self, name: str) -> np.ndarray:
        found = self.fields.get(name)
        if found is None:
            found = self.fields[name] = np.zeros(self.count, np.int64)
        return found

    def numbers(self, buffer: Buffer) -> Buffer:
        """Memory that holds, in the place of each element of a buffer, the number of its cell."""
        made = buffer.stand_ins.get(Cells)
        if made is None:
            a = buffer.array
            address = a.__array_interface__["data"][0]
            e = next((e for e in self.extents if e.low <= address < e.high), None)
            at = np.asarray(-1 if e is None else e.first + (address - e.low) // e.step, np.int64)
            for k, (n, s) in enumerate(zip(a.shape, a.strides, strict=True)):
                along = np.arange(n, dtype=np.int64) * (0 if e is None else s // e.step)
                at = at + along.reshape([-1 if j == k else 1 for j in range(a.ndim)])
            made = Buffer(np.ascontiguousarray(at).reshape(a.shape), int64, False, buffer.name)
            made.may_change = False
            buffer.stand_ins[Cells] = made
        return made

    def elements_apart(self, array: Array) -> bool:
        """Whether no two elements of an array share memory, judged by strides alone; False if these do not prove it."""
        if not isinstance(array, ArrayView):
            return False
        a, reach = array.buffer.array, 0
        for s, n in sorted((abs(s), n) for s, n in zip(a.strides, a.shape, strict=True) if n > 1):
            if s < reach + a.itemsize:
                return False
            reach += s * (n - 1)
        return True


def _arrays(args: Sequence[Any]) -> Iterator[ArrayView]:
    for x in args:
        if isinstance(x, ArrayView):
            yield x
        elif isinstance(x, tuple | list):
            yield from _arrays(x)


def _memory(a: np.ndarray) -> tuple[int, int, int]:
    """The lowest address of an array, its end, and a step: the distance of any two elements is a multiple of it."""
    address, step = a.__array_interface__["data"][0], a.itemsize
    low = high = address
    for n, s in zip(a.shape, a.strides, strict=True):
        if n > 1:
            low, high, step = low + min(0, s * (n - 1)), high + max(0, s * (n - 1)), gcd(step, abs(s))
    return (low, high + a.itemsize if a.size else high, step)


def _extents(parts: Sequence[tuple[int, int, int]]) -> list[_Extent]:
    out: list[_Extent] = []
    for low, high, step in parts:
        if low == high:
            continue
        if out and low < out[-1].high:
            e = out[-1]
            e.step = gcd(e.step, gcd(step, low - e.low))
            e.high = max(e.high, high)
        else:
            out.append(_Extent(low, high, step))
    return out
