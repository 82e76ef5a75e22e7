"""Pieces of users' source: where they are, their lines, and the text that shows them."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Sequence

from cutile._support.notebook import cell_name
from cutile._support.structs import structure


class SourceFile(str):
    """The name of a file, with the lines that the file had when functions were read from it."""

    lines: Sequence[str] = ()

    def __reduce__(self):
        return str, (str(self),)


def line_of(filename: str, number: int) -> str:
    """A line of a source file, counted from 1; "" if there is none."""
    lines = lines_of(filename)
    return lines[number - 1] if 0 < number <= len(lines) else ""


def lines_of(filename: str) -> Sequence[str]:
    """The lines that a source file had when functions were read from it or, for other files, has now."""
    return getattr(filename, "lines", None) or linecache.getlines(filename)


@structure(slots=True, eq=False)
class Span:
    """A piece of the user's source. Lines count from 1; columns count characters from 0 and `end_col` is exclusive.

    `call_site` is where tile code called the function that holds this piece; None in the kernel itself. No code changes
    a span. The class is not frozen nevertheless, since every expression has one, and frozen ones take twice the time.
    """

    filename: str
    line: int
    col: int
    end_line: int
    end_col: int
    function: str
    call_site: Span | None = None

    def __eq__(self, other: object) -> bool:
        """Compares whole call chains, without recursion, since they may be longer than Python's stack allows."""
        if not isinstance(other, Span):
            return NotImplemented
        a: Span | None = self
        b: Span | None = other
        while a is not b:
            if a is None or b is None or a._own() != b._own():
                return False
            a, b = a.call_site, b.call_site
        return True

    def __hash__(self) -> int:
        return hash(tuple(s._own() for s in self.frames()))

    def _own(self) -> tuple:
        return self.filename, self.line, self.col, self.end_line, self.end_col, self.function

    def frames(self) -> list[Span]:
        """The call chain: the span in the kernel first, this span last."""
        chain, s = [], self
        while s is not None:
            chain.append(s)
            s = s.call_site
        return chain[::-1]

    def source_line(self) -> str:
        return line_of(self.filename, self.line).rstrip("\n")

    def render(self) -> str:
        """The position, the source line, and carets under this piece."""
        lines = f"line {self.line}" if self.end_line == self.line else f"lines {self.line}--{self.end_line}"
        last = max(self.end_col, self.col + 1)
        cols = f"col {self.col + 1}" if last == self.col + 1 else f"col {self.col + 1}-{last}"
        place = cell_name(self.filename) or f'"{self.filename}"'
        out = [f"  {place}, {lines}, {cols}, in {self.function}"]
        text = self.source_line()
        if text.strip():
            indent = len(text) - len(text.lstrip())
            end = min(last, len(text)) if self.end_line == self.line else len(text)
            start = min(max(self.col, indent), len(text))
            out.append("    " + text[indent:])
            out.append("    " + " " * (start - indent) + "^" * max(end - start, 1))
        return "\n".join(out)

    def render_calls(self) -> str:
        """The same for each call that leads here, the one in the kernel first, and for this piece."""
        return "\n".join(_shortened([s.render() for s in self.frames()]))


def _shortened(frames: list[str]) -> list[str]:
    """A call chain that shows a repeated frame, as of a recursion, three times, and then how often it repeats."""
    out: list[str] = []
    for text, group in itertools.groupby(frames):
        n = len(list(group))
        out += [text] * min(n, 3)
        if n > 3:
            out.append(f"  … and {n - 3} more times the same call")
    return out
