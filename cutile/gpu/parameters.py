"""Arguments of a kernel as the driver takes them: the calling conventions, bit for bit [CC-3…8].

Both conventions pass the flat arguments in order: a number by its dtype (bool as 32 bits), an array as an address,
sizes and strides in its index dtype, a list as the address of a table and an int32 length. Sizes and strides of a
prepared launch are fixed, so a launch writes only its launch values: addresses and numbers.
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

# How runtime/_launcher.c writes a launch value, by the name of its constant.
_HOW: dict[type, str] = {ctypes.c_void_p: "BITS64", ctypes.c_int64: "BITS64", ctypes.c_int32: "BITS32",
                         ctypes.c_float: "FLOAT32"}

Dims = tuple[tuple[int, ...], tuple[int, ...]]  # sizes and strides of an array


@structure(frozen=True, slots=True)
class Packing:
    """The parameters of one prepared launch.

    types   C types of the kernel's parameters;  values: those that are fixed, None for the others
    tables  the table of each list
    """

    types: tuple[type, ...]
    values: tuple[int | None, ...]
    tables: tuple[Table, ...]

    def buffer(self) -> ParameterBuffer:
        return ParameterBuffer(self)

    def image(self, c: Any) -> tuple[bytes, bytes] | None:
        """For runtime/_launcher.c, the module `c`: two byte strings: the first 8 bytes of each parameter, and for each
        parameter a byte that says how a launch writes it. None for parameters that the module does not know.
        """
        pairs = list(zip(self.types, self.values, strict=True))
        names = [_HOW.get(t) if v is None else "FIXED" for t, v in pairs]
        if self.tables or None in names or len(pairs) > c.PARAMETERS:
            return None
        return b"".join(bytes(t(v or 0)).ljust(8, b"\0") for t, v in pairs), bytes(getattr(c, n) for n in names)


@structure(frozen=True, slots=True)
class Table:
    """The table of a list of arrays, in memory of the GPU: a row of 64-bit items for each array, its address first."""

    slot: int  # the index of the list among the launch values
    items: tuple[int, ...]  # of all rows, with 0 for the addresses
    stride: int  # items of a row

    def filled(self, pointers: Sequence[int]) -> ctypes.Array:
        items = (ctypes.c_int64 * len(self.items))(*self.items)
        items[::self.stride] = [_signed(p) for p in pointers]
        return items


def packing(types: Sequence[TileType | ArrayType | ListType], dims: Sequence[Any]) -> Packing:
    """How to pass flat arguments of these types. `dims` has the sizes and strides of an array, a list of these for a
    list, None for a number.
    """
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
            items = tuple(n for sizes, strides in d for n in (0, *sizes, *strides))
            tables.append(Table(slots, items, 1 + 2 * t.element.ndim))
        else:
            c_types.append(C_TYPES[t.dtype])
            values.append(None)
        slots += 1
    return Packing(tuple(c_types), tuple(values), tuple(tables))


def _signed(address: int) -> int:
    return address - (1 << 64) if address >> 63 else address


class ParameterBuffer:
    """Memory for the parameters of one launch at a time, and the array of pointers to them that the driver reads."""

    __slots__ = ("parameters", "slots", "pointers", "address")

    def __init__(self, p: Packing):
        self.parameters = [c(v or 0) for c, v in zip(p.types, p.values, strict=True)]
        self.slots = [x for x, v in zip(self.parameters, p.values, strict=True) if v is None]
        addresses = map(ctypes.addressof, self.parameters)
        self.pointers = (ctypes.c_void_p * max(len(self.parameters), 1))(*addresses)
        self.address = ctypes.addressof(self.pointers)

    def fill(self, values: Sequence[Any]) -> int:
        """Write the launch values, addresses and numbers; returns the address to give to the driver."""
        for slot, value in zip(self.slots, values):
            slot.value = value
        return self.address
