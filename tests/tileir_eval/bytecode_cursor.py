"""Taking bytecode apart: a cursor over its bytes, its sections, its tables, and the error if it is malformed."""

from __future__ import annotations

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.bytecode_writer import MAGIC, SECTIONS


class MalformedBytecode(ValueError):
    """Bytes that are no bytecode, or that use something `bytecode_writer` never writes."""


class Cursor:
    """A position in a sequence of bytes."""

    def __init__(self, data: bytes, at: int = 0):
        self.data, self.at = data, at

    @property
    def done(self) -> bool:
        return self.at >= len(self.data)

    def take(self, n: int) -> bytes:
        if self.at + n > len(self.data):
            raise MalformedBytecode(f"{n} bytes wanted at {self.at}, {len(self.data) - self.at} left")
        self.at += n
        return self.data[self.at - n:self.at]

    def byte(self) -> int:
        return self.take(1)[0]

    def varint(self) -> int:
        out = shift = 0
        while True:
            b = self.byte()
            out |= (b & 0x7F) << shift
            if b < 0x80:
                return out
            shift += 7
            if shift > 63:
                raise MalformedBytecode(f"a number of more than 64 bits at {self.at}")

    def signed(self) -> int:
        n = self.varint()
        return (n >> 1) ^ -(n & 1)

    def ints(self, width: int) -> tuple[int, ...]:
        return tuple(int.from_bytes(self.take(width), "little", signed=True) for _ in range(self.varint()))

    def align(self, width: int) -> None:
        if not width:
            raise MalformedBytecode("an alignment of 0")
        self.take(-self.at % width)


def table(cursor: Cursor, width: int) -> list[bytes]:
    """The entries of a table that reaches to the end of its section."""
    count = cursor.varint()
    cursor.align(width)
    offsets = [int.from_bytes(cursor.take(width), "little") for _ in range(count)]
    rest = cursor.take(len(cursor.data) - cursor.at)
    bounds = [*offsets, len(rest)]
    if bounds != sorted(bounds):
        raise MalformedBytecode("the offsets of a table are not in order")
    return [rest[a:b] for a, b in zip(bounds, bounds[1:])]


def sections(data: bytes) -> tuple[ty.Version, dict[str, bytes]]:
    """The version and the sections by name."""
    cursor = Cursor(data)
    if cursor.take(len(MAGIC)) != MAGIC:
        raise MalformedBytecode("this is no Tile IR bytecode")
    version = (cursor.byte(), cursor.byte())
    if version not in ty.VERSIONS or cursor.take(2) != b"\0\0":
        raise MalformedBytecode(f"bytecode version {ty.version_text(version)} is not known")
    names = {n: name for name, n in SECTIONS.items()}
    found: dict[str, bytes] = {}
    while (head := cursor.byte()) != 0:
        name = names.get(head & 0x7F)
        if name is None or name in found:
            raise MalformedBytecode(f"unexpected section {head & 0x7F}")
        length = cursor.varint()
        if head & 0x80:
            cursor.align(cursor.varint())
        found[name] = cursor.take(length)
    if not cursor.done:
        raise MalformedBytecode("bytes after the end of the bytecode")
    return version, found
