"""Hints of loads and stores that the author left open, chosen by what the kernel does. They change speed alone.

Where a tile moves by TMA, the assembler makes a kernel of two groups of warps that fills a multiprocessor with one
block: right for one that feeds tensor cores in a loop, while the next tiles arrive. A block that loads, computes a
little and stores waits for memory by itself then, where many small blocks would hide each other's waiting.
docs/hints.md has the figures.
"""

from __future__ import annotations

from dataclasses import replace

from cutile import settings
from cutile.gpu.target import Target
from cutile.ir.nodes import Kernel, Op
from cutile.ir.walk import rewrite, walk
from cutile.ops import memory, mma, views

TILES = (memory.load, memory.store, views.view_load, views.view_store)
PRODUCTS = (mma.mma, mma.mma_scaled)
TMA_SINCE = 90


def choose_hints(kernel: Kernel, target: Target | None) -> Kernel:
    """The kernel, its frames dropped, with `allow_tma=False` on every access to a tile that leaves it open, if nothing
    in it multiplies matrices. A kernel that asks for TMA anywhere stays as it is. CUTILE_HINTS=0 turns this off."""
    if not settings.get("HINTS") or target is not None and target.number < TMA_SINCE:
        return kernel
    ops = [n for n in walk(kernel.body) if isinstance(n, Op)]
    if any(n.op in PRODUCTS or n.op in TILES and n.attrs["allow_tma"] for n in ops):
        return kernel
    return rewrite(kernel, lambda old, n: [_without_tma(n)] if isinstance(n, Op) and n.op in TILES else None)


def _without_tma(n: Op) -> Op:
    return replace(n, attrs={**n.attrs, "allow_tma": False})
