"""How the bytecode stores numbers, lists of integers, and tables."""

from __future__ import annotations

PADDING = b"\xcb"
_MASK64 = (1 << 64) - 1
_SHORT = [bytes((n,)) for n in range(0x80)]


def varint(n: int) -> bytes:
    """Seven bits a byte, lowest first."""
    if 0 <= n < 0x80:
        return _SHORT[n]
    if n < 0:
        raise ValueError(f"{n} is negative")
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def signed_varint(n: int) -> bytes:
    """A 64-bit number with its sign in the lowest bit; `n` may also be the unsigned form of it."""
    n &= _MASK64
    return varint(((n << 1) & _MASK64) ^ (_MASK64 if n >> 63 else 0))


def int_list(values, width: int) -> bytes:
    return varint(len(values)) + b"".join(v.to_bytes(width, "little", signed=True) for v in values)


def table(entries, width: int, before: int = 0) -> bytes:
    """A count, an offset of `width` bytes for each entry, the entries. `before` bytes of the section precede it."""
    count = varint(len(entries))
    out = [count, PADDING * (-(before + len(count)) % width)]
    offset = 0
    for e in entries:
        out.append(offset.to_bytes(width, "little"))
        offset += len(e)
    return b"".join(out) + b"".join(entries)


class Interned(dict):
    """Numbers its keys in the order in which they are first looked up."""

    def __missing__(self, key):
        self[key] = n = len(self)
        return n
