"""Reading what `tileiras` prints: the reason of a failure, and the position in the user's source that it names.

A position is printed as `loc("file":line:column)`; inside a call it is a call site, the innermost position first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cutile.spans import Span

_ERROR = re.compile(r"\berror: (.*)")
_POSITION = re.compile(r'loc\("((?:[^"\\]|\\.)*)":(\d+):(\d+)\)'
                    r'(?: in #?[\w.]*di_subprogram\w*<[^\n]*?\bname = "([^"]*)")?')
# Errors without a reason: they say only that something went wrong.
_EMPTY = ("failed to compile Tile IR program", "input does not correspond to Tile IR bytecode",
          "verification failed for deserialized")


def errors(output: str) -> list[str]:
    """The errors that name a reason, without positions and internal names of the tool."""
    said = [m[1].strip() for line in output.splitlines() if (m := _ERROR.search(line))]
    return [_plain(text) for text in said if not text.startswith(_EMPTY)]


def first_error(output: str) -> str:
    """The reason, "" if none is given."""
    found = errors(output)
    if found:
        return found[0]
    rest = [line.strip() for line in output.splitlines() if line.strip() and not _ERROR.search(line)]
    return rest[0] if rest else ""


def _plain(text: str) -> str:
    return text.replace("'cuda_tile.", "'").replace("!cuda_tile.", "")


def location(output: str, spans: Iterable[Span] = ()) -> Span | None:
    """The position of the first error that has one, with its call chain: the one of `spans` at that position, if there
    is one.
    """
    for line in output.splitlines():
        if "error: " not in line:
            continue
        positions = [(m[1], int(m[2]), int(m[3]), m[4] or "?") for m in _POSITION.finditer(line.split("error: ", 1)[0])]
        if positions:
            return _among(positions, spans) or _span(positions)
    return None


def _among(positions: list[tuple[str, int, int, str]], spans: Iterable[Span]) -> Span | None:
    wanted = [p[:3] for p in positions]
    for span in spans:
        if [(s.filename, s.line, s.col + 1) for s in reversed(span.frames())] == wanted:
            return span
    return None


def _span(positions: list[tuple[str, int, int, str]]) -> Span:
    span = None
    for file, line, column, function in reversed(positions):
        col = max(column - 1, 0)
        span = Span(file, line, col, line, col + 1, function, span)
    return span
