"""Errors for tiles that are too large for this machine or for NumPy. The language itself allows any size [TILE-7]."""

from __future__ import annotations

import re
from types import TracebackType

from cutile.errors import TileUnsupportedFeatureError
from cutile.interp.codegen.emit import CTX
from cutile.ir.nodes import Node
from cutile.spans import Span
from cutile.types import LeafType, TileType

MAX_ELEMENTS = 1 << 59  # of a tile: NumPy counts the bytes of an array in 63 bits, and an element may take 8
HELP = "use smaller tiles, and a loop over them"
MAX_AXES = 64  # of a NumPy array
MAX_BATCHED_AXES = 29  # of a tile in the batch schedule: with three batch axes, what all NumPy functions take
DROP_AXES = "drop axes of size 1 with ct.reshape, and on the host with numpy.squeeze"


def check_sizes(t: LeafType, n: Node) -> None:
    """TileUnsupportedFeatureError if the result of a node, a tile of this type, has more elements or axes than NumPy's
    arrays can have.
    """
    if isinstance(t, TileType) and t.size > MAX_ELEMENTS:
        raise TileUnsupportedFeatureError(f"a tile of {t.size} elements is more than any memory holds", n.span,
                                          help=HELP)
    if isinstance(t, TileType) and t.ndim > MAX_AXES:
        raise TileUnsupportedFeatureError(f"a tile of {t.ndim} axes is more than the interpreter has: NumPy's arrays "
                                          f"have at most {MAX_AXES}", n.span, help=DROP_AXES)


def too_many_axes(e: Exception) -> TileUnsupportedFeatureError | None:
    """NumPy's error about too many axes in a running kernel, as an error at the user's line; None for other errors."""
    if not re.search(r"\b(32|64)\b", str(e)) or "dimension" not in str(e):
        return None
    return TileUnsupportedFeatureError(f"the tiles here have more axes than NumPy takes for this op: {e}",
                                       _where(e.__traceback__), help=DROP_AXES)


def not_enough(e: MemoryError) -> TileUnsupportedFeatureError:
    """A MemoryError of a running kernel as an error at the user's line."""
    what = f"this machine has not enough memory for the tiles of the kernel: {e}".removesuffix(": ")
    return TileUnsupportedFeatureError(what, _where(e.__traceback__), help=HELP)


def _where(tb: TracebackType | None) -> Span | None:
    """The user's position in the innermost emitted function of a traceback."""
    found = None
    while tb is not None:
        code = tb.tb_frame.f_code
        if CTX in code.co_varnames:
            line, end_line, col, end_col = list(code.co_positions())[tb.tb_lasti // 2]
            if line is not None and line > 0:
                found = Span(code.co_filename, line, col or 0, end_line or line, end_col or 0, code.co_name)
        tb = tb.tb_next
    return found
