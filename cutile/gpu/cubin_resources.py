"""How much of a multiprocessor a kernel takes (registers, stack, shared memory), read from its machine code.

A cubin is an ELF file. Its sections `.nv.info` and `.nv.info.KERNEL` are lists of attributes, each of four bytes: the
form of the value, the attribute, and 16 bits that are the value itself or, in the form SIZED, the number of bytes that
follow. In `.nv.info` a value begins with the index of the symbol that it is about. `.nv.shared.KERNEL` is as large as
the static shared memory of a block, `.text.KERNEL` is the code. For targets whose files have `.nv.shared.reserved.0`,
the shared memory begins with what the system reserves in each block, and is none if the kernel itself takes none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import prod

from cutile._support.structs import structure
from cutile.gpu.target import Target

_CUDA = 190  # the machine that the head of the file names
# Magic, class, order, machine; of the sections: offset, size, number, and the index of that with their names.
_HEAD = struct.Struct("<4sBB12xH20xQ10xHHH")
_SECTION = struct.Struct("<II16xQQ24x")  # name, type, offset, size
_SYMBOL = struct.Struct("<I20x")  # name
_SIZED = 4
_RESERVED = 1024  # bytes of shared memory that the system takes for each block
_THREADS, _FRAME, _REGISTERS, _CLUSTER = 0x10, 0x11, 0x2F, 0x3D


@structure(frozen=True, slots=True)
class Resources:
    """registers  of a thread
    stack      bytes of a thread's local memory, as for registers that were spilled
    shared     bytes of a block's static shared memory, without what the system reserves
    threads    of a block
    ctas       blocks of a cluster
    code       bytes of machine code, with padding
    """

    registers: int
    stack: int
    shared: int
    threads: int
    ctas: int
    code: int

    @property
    def warps(self) -> int:
        return -(-self.threads // 32)


def read(cubin: bytes, symbol: str) -> Resources:
    """The resources of the kernel `symbol`. ValueError for bytes that are no cubin, a kernel that it does not have, and
    one whose registers or threads it does not state.
    """
    try:
        return _read(cubin, symbol)
    except (struct.error, LookupError, UnicodeDecodeError):
        raise ValueError("this cubin is damaged") from None


def _read(cubin: bytes, symbol: str) -> Resources:
    sections = _sections(cubin)
    if f".text.{symbol}" not in sections:
        raise ValueError(f"this cubin has no kernel {symbol}")
    about = _symbols(sections)[symbol]
    of_kernel = {a: _numbers(v)[1] for a, v in _attributes(sections, ".nv.info")
                 if a in (_REGISTERS, _FRAME) and _numbers(v)[0] == about}
    own = {a: _numbers(v) for a, v in _attributes(sections, f".nv.info.{symbol}") if a in (_THREADS, _CLUSTER)}
    if _REGISTERS not in of_kernel or _THREADS not in own:
        raise ValueError(f"this cubin does not state the registers and threads of {symbol}")
    _, shared = sections.get(f".nv.shared.{symbol}", (b"", 0))
    reserved = _RESERVED if shared and ".nv.shared.reserved.0" in sections else 0
    _, code = sections[f".text.{symbol}"]
    return Resources(of_kernel[_REGISTERS], of_kernel.get(_FRAME, 0), shared - reserved, prod(own[_THREADS]),
                     prod(own.get(_CLUSTER, ())), code)


def _sections(cubin: bytes) -> dict[str, tuple[bytes, int]]:
    """Contents and size of each section, by name. A section that takes no room in the file has a size all the same."""
    if cubin[:4] != b"\x7fELF":
        raise ValueError("this is no cubin: it does not begin as an ELF file")
    _, width, order, machine, at, size, count, names = _HEAD.unpack_from(cubin)
    if (width, order, machine, size) != (2, 1, _CUDA, 64):
        raise ValueError("this is no cubin: it is an ELF file for another machine")
    found = [_SECTION.unpack_from(cubin, at + size * i) for i in range(count)]
    table = found[names]
    texts = cubin[table[2]:table[2] + table[3]]
    return {_text(texts, name): (cubin[offset:offset + length], length) for name, _, offset, length in found}


def _symbols(sections: dict[str, tuple[bytes, int]]) -> dict[str, int]:
    """The index of each symbol, by name."""
    table, texts = sections[".symtab"][0], sections[".strtab"][0]
    return {_text(texts, name): i for i, (name,) in enumerate(_SYMBOL.iter_unpack(table))}


def _attributes(sections: dict[str, tuple[bytes, int]], name: str) -> Iterator[tuple[int, bytes]]:
    """The attributes of a section whose values are SIZED."""
    data, at = sections.get(name, (b"", 0))[0], 0
    while at < len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _SIZED:
            yield attribute, data[at:at + size]
            at += size


def _numbers(value: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(value) // 4}I", value)


def _text(texts: bytes, at: int) -> str:
    return texts[at:].partition(b"\0")[0].decode()


# ------------------------------------------------------------------ how many blocks a multiprocessor holds

_REGISTER_FILE = 65536  # registers of a multiprocessor
_PARTITIONS = 4  # parts of a multiprocessor; each has a fourth of the registers, and a warp stays in one of them
_REGISTER_UNIT = 256  # registers that a warp takes at a time


@structure(frozen=True, slots=True)
class Multiprocessor:
    """What one multiprocessor holds at the same time: warps, blocks, bytes of shared memory."""

    warps: int
    blocks: int
    shared: int


_LARGE, _SMALL = Multiprocessor(64, 32, 228 << 10), Multiprocessor(48, 24, 100 << 10)
_MULTIPROCESSORS = {80: Multiprocessor(64, 32, 164 << 10), 86: Multiprocessor(48, 16, 100 << 10),
                    87: Multiprocessor(48, 16, 164 << 10), 88: Multiprocessor(48, 16, 164 << 10), 89: _SMALL,
                    90: _LARGE, 100: _LARGE, 103: _LARGE, 107: _LARGE, 110: Multiprocessor(48, 24, 228 << 10),
                    120: _SMALL, 121: _SMALL}


def blocks_held(taken: Resources, target: Target) -> int:
    """How many blocks of a kernel one multiprocessor of the target holds at the same time; 0 if not even one fits."""
    has = _MULTIPROCESSORS[target.number]
    a_warp = -(-max(taken.registers, 1) * 32 // _REGISTER_UNIT) * _REGISTER_UNIT
    warps = min(has.warps, _REGISTER_FILE // _PARTITIONS // a_warp * _PARTITIONS)
    return min(has.blocks, warps // max(taken.warps, 1), has.shared // (taken.shared + _RESERVED))
