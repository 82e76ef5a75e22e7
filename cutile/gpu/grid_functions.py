"""For each grid of a prepared launch, the GPU function to run. Python and C read the table."""

from __future__ import annotations

import struct
from typing import Any

LIMIT = 1024  # grids; one more empties the table
_ENTRY = struct.Struct("=4IQ")  # x, y, z, padding, the handle of a function (0: a free slot)
_FEWEST = 8  # slots


class GridFunctions(dict[tuple[int, int, int], Any]):
    """Functions by grid, at most LIMIT, added by `keep`.

    table  a list with the same for runtime/_launcher.c: bytes of a hash table with open addressing, of which at most
           half the slots are taken. Their number is a power of two. A change puts other bytes there.
    Threads may read at any time; changing needs a lock of the caller.
    """

    __slots__ = ("table",)

    def __init__(self) -> None:
        super().__init__()
        self.table = [b""]

    def clear(self) -> None:
        super().clear()
        self.table[0] = b""

    def keep(self, grid: tuple[int, int, int], function: Any) -> None:
        if len(self) >= LIMIT:
            self.clear()
        self[grid] = function
        slots = len(self.table[0]) // _ENTRY.size
        if 2 * len(self) <= slots:
            table = bytearray(self.table[0])
            _enter(table, slots, grid, int(function))
        else:
            slots = max(2 * slots, _FEWEST)
            table = bytearray(slots * _ENTRY.size)
            for one, chosen in self.items():
                _enter(table, slots, one, int(chosen))
        self.table[0] = bytes(table)


def _enter(table: bytearray, slots: int, grid: tuple[int, int, int], function: int) -> None:
    i = _hash(*grid) % slots
    while (found := _ENTRY.unpack_from(table, i * _ENTRY.size))[4] and found[:3] != grid:
        i = (i + 1) % slots
    _ENTRY.pack_into(table, i * _ENTRY.size, *grid, 0, function)


def _hash(x: int, y: int, z: int) -> int:
    mixed = (x * 0x9E3779B1 + y * 0x85EBCA77 + z * 0xC2B2AE3D) % 2**32
    return mixed ^ mixed >> 15
