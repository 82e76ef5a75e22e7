"""Cells of notebooks and of the IPython shell."""

from __future__ import annotations

import sys


def cell_name(filename: str) -> str | None:
    """The name that IPython shows for a cell, as "Cell In[3]", given the file name under which it compiled the cell.
    None for other files.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    named = name_of(filename) if name_of is not None else None
    return " ".join(named) if named else None
