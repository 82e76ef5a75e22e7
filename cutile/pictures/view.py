"""ct.view: a picture of a launch."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

from cutile.errors import is_for_users
from cutile.pictures import html
from cutile.pictures.data import data
from cutile.pictures.trace import trace
from cutile.tracebacks import for_users, hidden

__tracebackhide__ = hidden


class View:
    """A picture of a launch, which `ct.view` makes. A notebook shows it.

    Attributes
    ----------
    data : dict
        What is known of the launch, as plain data: docs/view-data.md describes it.
    html : str
        The page.
    """

    def __init__(self, data: dict[str, Any]):
        self.data = data

    @functools.cached_property
    def html(self) -> str:
        return html.page(self.data)

    def save(self, path: str | os.PathLike) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : path
            The file.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.html)

    def _repr_html_(self) -> str:
        return html.framed(self.html)

    def __repr__(self) -> str:
        d = self.data
        found = f", {len(d['findings'])} finding(s)" if d["findings"] else ""
        return f"<view of {d['kernel']}, grid {tuple(d['grid'])}{found}: save(path) writes the page>"


def view(kernel: Any, grid: tuple[SupportsIndex, ...], kernel_args: tuple[Any, ...], /, *, stream: Any = None,
         blocks: Iterable[Sequence[int]] = ()) -> View:
    """Run a launch in the interpreter and show what it does: which elements each block touches, line by line.

    The launch runs twice, with the sanitizer and with a trace, and its arrays are put back: they stay as they were.

    Parameters
    ----------
    kernel : kernel
        As for `ct.launch`.
    grid : tuple of int
        As for `ct.launch`.
    kernel_args : tuple
        As for `ct.launch`. Of arrays on a GPU, copies are used.
    stream : stream, int or None, default None
        As for `ct.launch`.
    blocks : iterable of tuples of int, default ()
        Ids of blocks whose every step is recorded, besides those that are chosen: [(3, 0, 0)].

    Returns
    -------
    View
        A notebook shows it; `save("page.html")` writes the page, and `data` is what it shows.

    Raises
    ------
    TypeError, ValueError, OverflowError, TileError
        What `ct.launch` raises, but for a kernel that fails while it runs: the page shows its error. ValueError for a
        block outside the grid.

    Examples
    --------
    >>> @ct.kernel
    ... def double(x, out):
    ...     i = ct.bid(0)
    ...     ct.store(out, i, 2 * ct.load(x, i, 4))
    >>> x, out = np.arange(8), np.zeros(8, int)
    >>> picture = ct.view(double, (2,), (x, out))
    >>> "</html>" in picture.html
    True
    """
    try:
        return View(data(trace(kernel, grid, kernel_args, stream, blocks)))
    except Exception as e:
        if is_for_users(e):
            raise for_users(e) from e.__cause__
        raise
