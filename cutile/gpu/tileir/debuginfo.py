"""Source positions in the bytecode: the line, function and call chain of each operation.

A position names its subprogram as scope. For an inlined call, a call site joins two positions: the callee is the
position itself, the caller is where the call is. The kernel's subprogram has the entry's name as linkage name.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from cutile.gpu.tileir.encoding import PADDING, table, varint
from cutile.spans import Span

COMPILE_UNIT, FILE, LEXICAL_BLOCK, LOC, SUBPROGRAM, CALL_SITE = 1, 2, 3, 4, 5, 6
UNKNOWN = 0  # the number of "no position", which is in no table


class DebugInfo:
    """The debug section under construction. `string(text)` returns the number of a text."""

    def __init__(self, string: Callable[[str], int]):
        self._string = string
        self._numbers: dict[tuple[int, ...], int] = {}
        # Keyed by identity: comparing long chains is slow, and calls share them. The Span keeps the id alive.
        self._spans: dict[tuple[str, int], tuple[int, Span]] = {}
        self._lines: dict[tuple[str, str], int] = {}
        self._functions: list[FunctionInfo] = []

    def function(self, name: str, loc: Span | None) -> FunctionInfo:
        """The positions of one entry. If the entry has none, its operations have none."""
        if loc is None:
            return FunctionInfo(self, name, 0, [])
        info = FunctionInfo(self, name, len(self._functions) + 1, [self.position(loc, name)])
        self._functions.append(info)
        return info

    def position(self, span: Span, entry: str) -> int:
        """The number of a position with its call chain, in the kernel whose symbol is `entry`."""
        new: list[tuple[Span, int]] = []  # along the call chain
        caller, at = 0, span
        while at is not None:
            known = self._spans.get((entry, id(at)))
            if known is not None:
                caller = known[0]
                break
            new.append((at, self._loc(at, entry)))
            at = at.call_site
        for part, n in reversed(new):
            caller = self._attr(CALL_SITE, n, caller) if caller else n
            self._spans[entry, id(part)] = caller, part
        return caller

    def _loc(self, span: Span, entry: str) -> int:
        scope = self._subprogram(span, entry)
        return self._attr(LOC, scope, self._string(span.filename), span.line, span.col + 1)

    def _subprogram(self, span: Span, entry: str) -> int:
        kernel = span.call_site is None
        linkage = entry if kernel else f"{entry}${span.function}"
        line = self._lines.setdefault((linkage, span.filename), span.line)  # stands for the line of the def
        file = self._file(span.filename)
        unit = self._attr(COMPILE_UNIT, file)
        return self._attr(SUBPROGRAM, file, line, self._string(span.function), self._string(linkage), unit, line)

    def _file(self, path: str) -> int:
        folder, name = os.path.split(path)
        return self._attr(FILE, self._string(name), self._string(folder))

    def _attr(self, *fields: int) -> int:
        return self._numbers.setdefault(fields, len(self._numbers) + 1)

    def section(self) -> bytes:
        """The section's data; empty if nothing has a position."""
        if not self._functions:
            return b""
        out = bytearray(varint(len(self._functions)))
        out += PADDING * (-len(out) % 4)
        offset = 0
        for f in self._functions:
            out += offset.to_bytes(4, "little")
            offset += len(f.positions)
        out += varint(offset)
        out += PADDING * (-len(out) % 8)
        for f in self._functions:
            for n in f.positions:
                out += n.to_bytes(8, "little")
        entries = [b"".join(map(varint, fields)) for fields in self._numbers]
        return bytes(out) + table(entries, 4, len(out))


class FunctionInfo:
    """The positions of one entry, its own first, then those of its operations in the order of the bytecode."""

    def __init__(self, debug: DebugInfo, name: str, index: int, positions: list[int]):
        self._debug, self._name = debug, name
        self.index = index
        self.positions = positions

    def add(self, loc: Span | None) -> None:
        if self.index:
            self.positions.append(UNKNOWN if loc is None else self._debug.position(loc, self._name))
