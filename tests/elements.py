"""Runs element functions in tests: lifted over tiles, and one element at a time as under a debugger."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import cutile as ct


def under_debugger(run: Callable[[], None]) -> None:
    """Run while a trace function that does nothing is set, as a debugger's would be."""
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        run()
    finally:
        sys.settrace(before)


def applied(f: Callable, *xs: np.ndarray, out=np.float32, tile: int = 16) -> np.ndarray:
    """f of each element of arrays of one length, in a kernel. Asserts that both ways give the same bits."""
    a, *rest = xs
    b = rest[0] if rest else a
    many = bool(rest)

    @ct.kernel
    def kernel(a, b, o):
        i = ct.bid(0)
        x, y = ct.load(a, (i,), (tile,)), ct.load(b, (i,), (tile,))
        ct.store(o, (i,), ct.astype(ct.elementwise(f)(x, y) if many else ct.elementwise(f)(x), o.dtype))

    grid = -(-len(a) // tile),
    lifted, single = np.zeros(len(a), out), np.zeros(len(a), out)
    ct.launch(None, grid, kernel, (a, b, lifted))
    under_debugger(lambda: ct.launch(None, grid, kernel, (a, b, single)))
    assert lifted.tobytes() == single.tobytes(), (lifted, single)
    return lifted
