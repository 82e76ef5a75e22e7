"""Global memory: the arrays of the host, each at an address of its own, far from all others.

Addresses count half bytes, so that elements of 4 bits have one. What lies outside every array is an error, never some
other array. The low bits of an address are those of the array's real one, so that alignment is what it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cutile.gpu.tileir import types as ty
from tests.tileir_eval import formats
from tests.tileir_eval.registry import EvaluationError

SHIFT = 44  # half bytes between two buffers, as a power of two
ALIGNMENT = 4096  # bytes


class Buffer:
    """Some contiguous memory. Of 4-bit elements NumPy keeps each in a byte; `nibbles` says that these are such."""

    def __init__(self, memory: np.ndarray, base: int, nibbles: bool):
        self.memory, self.base, self.nibbles = memory, base, nibbles
        self.size = memory.size * (1 if nibbles else 2)
        self._typed: dict[tuple[np.dtype, int], np.ndarray] = {}

    def words(self, dtype: np.dtype, start: int) -> np.ndarray:
        """The memory as words that begin `start` bytes in."""
        found = self._typed.get((dtype, start))
        if found is None:
            whole = (self.memory.size - start) // dtype.itemsize * dtype.itemsize
            found = self._typed[dtype, start] = self.memory[start:start + whole].view(dtype)
        return found


class Space:
    """All buffers of a launch."""

    def __init__(self):
        self.buffers: list[Buffer] = []
        self._constant: set[int] = set()  # numbers of buffers

    def map(self, arrays: Sequence[np.ndarray]) -> list[int]:
        """Give addresses to arrays; those that overlap lie in one buffer. The address of each one's first element."""
        extents = [np.lib.array_utils.byte_bounds(a) if a.size else (_pointer(a),) * 2 for a in arrays]
        out = [0] * len(arrays)
        pending = sorted(range(len(arrays)), key=lambda k: extents[k])
        while pending:
            low, high = extents[pending[0]]
            group = []
            for k in pending:
                if group and (extents[k][0] >= high or _nibbles(arrays[k]) != _nibbles(arrays[group[0]])):
                    continue
                group.append(k)
                high = max(high, extents[k][1])
            pending = [k for k in pending if k not in group]
            nibbles = _nibbles(arrays[group[0]])
            buffer = self._add(_bytes(arrays[group[0]], high - low), low, nibbles)
            for k in group:
                out[k] = buffer.base + (_pointer(arrays[k]) - low) * (1 if nibbles else 2)
        return out

    def allocate(self, size: int, alignment: int, fill: bytes = b"") -> int:
        """The address of new memory of so many bytes."""
        memory = np.zeros(size, np.uint8)
        memory[:len(fill)] = np.frombuffer(fill, np.uint8)
        return self._add(memory, 0, False).base

    def constant(self, content: bytes) -> int:
        """The address of new memory that nothing writes."""
        self._constant.add(len(self.buffers) + 1)
        return self.allocate(len(content), 8, content)

    def is_constant(self, addresses: np.ndarray) -> bool:
        """Whether nothing writes to these addresses."""
        return self._constant.issuperset(np.unique(addresses >> SHIFT).tolist())

    def _add(self, memory: np.ndarray, real: int, nibbles: bool) -> Buffer:
        base = (len(self.buffers) + 1 << SHIFT) + 2 * (real % ALIGNMENT)
        self.buffers.append(Buffer(memory, base, nibbles))
        return self.buffers[-1]

    def load(self, addresses: np.ndarray, element: ty.Scalar) -> np.ndarray:
        """The elements at addresses, a flat array."""
        out = np.empty(addresses.size, formats.word(element))
        for words, index, chosen in self._places(addresses, element):
            if chosen is None:
                out = words.take(index)
            else:
                out[chosen] = words[index]
        return formats.from_words(out, element)

    def store(self, addresses: np.ndarray, x: np.ndarray, element: ty.Scalar) -> None:
        """Of several elements at one address the last stays."""
        new = formats.to_words(x, element)
        for words, index, chosen in self._places(addresses, element):
            words[index] = new if chosen is None else new[chosen]

    def _places(self, addresses: np.ndarray, element: ty.Scalar):
        """(words of a buffer, indices, which of the addresses these are; None for all)."""
        if not addresses.size:
            return
        numbers = addresses >> SHIFT
        first = int(numbers[0])
        if (numbers == first).all():
            yield (*self._place(first, addresses, element), None)
            return
        for n in np.unique(numbers).tolist():
            chosen = np.flatnonzero(numbers == n)
            yield (*self._place(n, addresses[chosen], element), chosen)

    def _place(self, number: int, addresses: np.ndarray, element: ty.Scalar) -> tuple[np.ndarray, np.ndarray]:
        if not 0 < number <= len(self.buffers):
            raise EvaluationError(f"an access at address {int(addresses[0]) // 2:#x}, which is that of no array")
        buffer = self.buffers[number - 1]
        if buffer.nibbles != (element.bits == 4):
            raise EvaluationError(f"an access to {element} in memory of other elements")
        dtype = formats.word(element)
        width = 1 if buffer.nibbles else 2 * dtype.itemsize
        index = addresses - buffer.base
        low, high = int(index.min()), int(index.max())
        if low < 0 or high + width > buffer.size:
            raise EvaluationError(f"an access outside an array: at element {(low if low < 0 else high) // width} "
                                  f"of the {buffer.size // width} that its memory holds ({element})")
        start = low % width
        if start % 2 and not buffer.nibbles or ((index - start) % width).any():
            raise EvaluationError(f"accesses to {element} at addresses that are no multiples of its size apart")
        return buffer.words(dtype, start // 2), (index - start) // width


def _pointer(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


def _nibbles(a: np.ndarray) -> bool:
    return a.dtype.name == "float4_e2m1fn"


def _bytes(a: np.ndarray, size: int) -> np.ndarray:
    """The `size` bytes of memory from the lowest element of an array on."""
    if not a.size:
        return np.zeros(0, np.uint8)
    upwards = (slice(None, None, -1) if s < 0 else slice(None) for s in a.strides)
    lowest = a.view(f"u{a.itemsize}")[..., *upwards]
    count = -(-size // a.itemsize)
    flat = np.lib.stride_tricks.as_strided(lowest, (count,), (a.itemsize,), writeable=a.flags.writeable)
    return flat.view(np.uint8)[:size]
