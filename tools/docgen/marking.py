"""Text of the code as text of a page: what Markdown would take for marks is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CODE = re.compile(r"(`[^`]*`)")
# What could begin emphasis (a * before a word, a _ outside of one) or HTML. `x * y`, `bool_` and `n < y` stay readable.
_MARKS = re.compile(r"\*+(?=[^\s*])|(?<!\w)_+(?=[^\s_])|<(?=[A-Za-z/!?])")


def plain(text: str) -> str:
    """A text in which only `code` is marked."""
    parts = _CODE.split(text)
    parts[::2] = [_MARKS.sub(lambda m: "".join("\\" + c for c in m[0]), p) for p in parts[::2]]
    return "".join(parts)


def row(cells: Iterable[str]) -> str:
    """A row of a table, each cell on one line. Bars are escaped, inside `code` too: tables are split first."""
    flat = (" ".join(c.split("\n")) for c in cells)
    return "| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", c) for c in flat) + " |"
