"""Readers of the files that export writes.

They know the first bytes of Tile IR bytecode, and, in a cubin, which is an ELF file, the sections that hold each
kernel's code (`.text.<symbol>`) and what a launch needs to know about it (`.nv.info.<symbol>`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"\x7fTileIR\0"
ELF = b"\x7fELF"


def version_of(code: bytes) -> str:
    """The version that a bytecode file names: two bytes behind the magic number."""
    assert code.startswith(MAGIC), code[:8]
    return f"{code[8]}.{code[9]}"


@dataclass(frozen=True)
class Parameter:
    """Where a parameter of a kernel lies in its block of parameters, in bytes."""

    offset: int
    size: int


def symbols(elf: bytes) -> set[str]:
    """The kernels of a cubin."""
    return {name.removeprefix(".text.") for name, _ in _sections(elf) if name.startswith(".text.")}


def parameters(elf: bytes, symbol: str) -> list[Parameter]:
    """The parameters of a kernel in order."""
    info = next(content for name, content in _sections(elf) if name == f".nv.info.{symbol}")
    return [Parameter(offset, size) for _, offset, size in sorted(_parameters(info))]


def reads(elf: bytes, symbol: str) -> set[int]:
    """The offsets of the parameters that the code of a kernel reads, for targets from sm_80 to sm_89.

    An instruction has 16 bytes. Where its bits 9 to 11 are 3 or 5, it has an operand in constant memory: its bits 40
    to 53 are the address in words, and 54 to 58 the bank. The parameters lie in bank 0, from the address that the
    info gives.
    """
    sections = dict(_sections(elf))
    base = next(struct.unpack("<IHH", payload)[1] for kind, payload in _records(sections[f".nv.info.{symbol}"])
                if kind == PARAMETER_BANK)
    code = sections[f".text.{symbol}"]
    words = (struct.unpack_from("<Q", code, at)[0] for at in range(0, len(code), 16))
    named = {(w >> 40 & 0x3FFF) * 4 for w in words if w >> 9 & 7 in (3, 5) and not w >> 54 & 0x1F}
    return {address - base for address in named if address >= base}


# Kinds of records of .nv.info, and the form of records that say how long their payload is.
PARAMETER, PARAMETER_BANK, SIZED = 0x17, 0x0A, 4


def _sections(elf: bytes) -> Iterator[tuple[str, bytes]]:
    assert elf.startswith(ELF), elf[:4]
    table, = struct.unpack_from("<Q", elf, 0x28)
    count, names = struct.unpack_from("<HH", elf, 0x3C)
    heads = [struct.unpack_from("<IIQQQQ", elf, table + 64 * i) for i in range(count)]
    for name, _, _, _, offset, size in heads:
        at = heads[names][4] + name
        yield elf[at:elf.index(b"\0", at)].decode(), elf[offset:offset + size]


def _records(info: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and payload of each record that has one."""
    at = 0
    while at < len(info):
        form, kind, length = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == SIZED:
            yield kind, info[at:at + length]
            at += length


def _parameters(info: bytes) -> Iterator[tuple[int, int, int]]:
    """Position, offset and size of each parameter."""
    for kind, payload in _records(info):
        if kind == PARAMETER:
            _, ordinal, offset, flags = struct.unpack("<IHHI", payload)
            yield ordinal, offset, flags >> 18
