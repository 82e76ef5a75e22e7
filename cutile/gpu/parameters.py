"""Arguments of a kernel as the driver takes them: the calling conventions, bit for bit [CC-3…8].

Both conventions pass the leaves of the arguments in order: a number by its dtype (bool as 32 bits), an array as a
pointer, sizes and strides in its index dtype, a list as a pointer to a table and an int32 length. Sizes and strides of
a prepared launch are fixed, so a launch writes only pointers and numbers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from cutile._support.structs import structure
from cutile.dtypes import DType, bool_, float32, float64, int32, int64, uint32
from cutile.types import ArrayType, ListType, TileType

C_TYPES: dict[DType, type] = {bool_: ctypes.c_int32, int32: ctypes.c_int32, int64: ctypes.c_int64,
                              uint32: ctypes.c_uint32, float32: ctypes.c_float, float64: ctypes.c_double}

# As in gpu/_launcher.c: how words are written, and how many parameters there may be.
_HOW: dict[type, int] = {ctypes.c_void_p: 0, ctypes.c_int64: 0, ctypes.c_int32: 1, ctypes.c_float: 2}
PARAMETERS = 512

Dims = tuple[tuple[int, ...], tuple[int, ...]]  # sizes and strides of an array


@structure(frozen=True, slots=True)
class Packing:
    """The parameters of one prepared launch.

    types   C types of the kernel's parameters;  values: those that are fixed, None for the others
    tables  for each parameter of a list, its number and the fixed words of its table
    """

    types: tuple[type, ...]
    values: tuple[int | None, ...]
    tables: tuple[Table, ...]

    def frame(self) -> Frame:
        return Frame(self)

    def record(self) -> tuple[list[int], list[tuple[int, int]], bytes] | None:
        """For gpu/_launcher.c: where each parameter is, where the words go and how they are written, and the first
        bytes of all. None for what it does not know.
        """
        hows = [_HOW.get(t) for t, v in zip(self.types, self.values, strict=True) if v is None]
        if self.tables or None in hows or len(self.types) > PARAMETERS:
            return None
        offsets = [8 * i for i in range(len(self.types))]
        image = b"".join(bytes(t(v or 0)).ljust(8, b"\0") for t, v in zip(self.types, self.values, strict=True))
        slots = [o for o, v in zip(offsets, self.values, strict=True) if v is None]
        return offsets, list(zip(slots, hows, strict=True)), image


@structure(frozen=True, slots=True)
class Table:
    """The table of a list: which pointer it stands for, rows of 64-bit words, where the pointers go in them."""

    slot: int
    words: tuple[int, ...]
    stride: int  # words of a row

    def filled(self, pointers: Sequence[int]) -> ctypes.Array:
        words = (ctypes.c_int64 * len(self.words))(*self.words)
        words[::self.stride] = [_signed(p) for p in pointers]
        return words


def packing(types: Sequence[TileType | ArrayType | ListType], dims: Sequence[Any]) -> Packing:
    """How to pass leaves of these types; `dims` has sizes and strides of an array, a list of them, None for numbers."""
    c_types: list[type] = []
    values: list[int | None] = []
    tables: list[Table] = []
    slots = 0
    for t, d in zip(types, dims, strict=True):
        if isinstance(t, ArrayType):
            index = C_TYPES[t.index_dtype]
            c_types += [ctypes.c_void_p, *[index] * (2 * t.ndim)]
            values += [None, *d[0], *d[1]]
        elif isinstance(t, ListType):
            c_types += [ctypes.c_void_p, ctypes.c_int32]
            values += [None, len(d)]
            words = tuple(w for sizes, strides in d for w in (0, *sizes, *strides))
            tables.append(Table(slots, words, 1 + 2 * t.element.ndim))
        else:
            c_types.append(C_TYPES[t.dtype])
            values.append(None)
        slots += 1
    return Packing(tuple(c_types), tuple(values), tuple(tables))


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


class Frame:
    """Memory for the parameters of one launch at a time: each where the driver reads it, and pointers to them."""

    __slots__ = ("parameters", "slots", "pointers", "address")

    def __init__(self, p: Packing):
        self.parameters = [c(v or 0) for c, v in zip(p.types, p.values, strict=True)]
        self.slots = [x for x, v in zip(self.parameters, p.values, strict=True) if v is None]
        addresses = map(ctypes.addressof, self.parameters)
        self.pointers = (ctypes.c_void_p * max(len(self.parameters), 1))(*addresses)
        self.address = ctypes.addressof(self.pointers)

    def fill(self, words: Sequence[Any]) -> int:
        """Write pointers and numbers, in the order of the leaves; the address to give to the driver."""
        for slot, word in zip(self.slots, words):
            slot.value = word
        return self.address
