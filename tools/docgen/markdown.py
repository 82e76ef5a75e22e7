"""Text of the code as text of a page: marks of Markdown are escaped, and long lines are broken."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CODE = re.compile(r"(`[^`]*`)")
# Characters that could begin emphasis (a * before a word, a _ outside of one) or HTML. `x * y`, `bool_` and `n < y`
# stay readable.
_MARKS = re.compile(r"\*+(?=[^\s*])|(?<!\w)_+(?=[^\s_])|<(?=[A-Za-z/!?])")


def plain(text: str) -> str:
    """A text in which only `code` is marked."""
    parts = _CODE.split(text)
    parts[::2] = [_MARKS.sub(lambda m: "".join("\\" + c for c in m[0]), p) for p in parts[::2]]
    return "".join(parts)


def row(cells: Iterable[str]) -> str:
    """A row of a table, each cell on one line. Bars are escaped, inside `code` too, because Markdown splits rows
    first.
    """
    flat = (" ".join(c.split("\n")) for c in cells)
    return "| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", c) for c in flat) + " |"


# ------------------------------------------------------------------ lines

WIDTH = 120
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
_FENCE = re.compile(r"\s*```")
# Words that would begin a heading, an item, a quotation or a table at the start of a line.
_BEGINS = re.compile(r"(?:[-+*#>=|]+|\d+[.)])$|#|\|")


def wrapped(page: str) -> str:
    """A page whose long paragraphs and items are broken into lines; headings, tables and code stay as they are."""
    out, in_code = [], False
    for line in page.split("\n"):
        in_code ^= bool(_FENCE.match(line))
        as_it_is = in_code or len(line) <= WIDTH or line.startswith(("|", "#", "    "))
        out += [line] if as_it_is else _broken(line)
    return "\n".join(out)


def _broken(line: str) -> list[str]:
    item = _ITEM.match(line)
    first, *words = line[item.end() if item else 0:].split(" ")
    indent = " " * (item.end() if item else 0)
    out = [(item[0] if item else "") + first]
    for word in words:
        if len(out[-1]) + 1 + len(word) > WIDTH and not _BEGINS.match(word):
            out.append(indent + word)
        else:
            out[-1] += " " + word
    return out
