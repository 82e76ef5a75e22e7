"""Chooses the hints of loads and stores that the author left open, by what the kernel does. Hints change
only the speed.

If a kernel moves tiles by TMA, the assembler gives it two groups of warps, and one block fills a multiprocessor. That
is right for a kernel that feeds tensor cores in a loop while the next tiles arrive. A kernel that loads, computes a
little and stores is better off with many small blocks, which run while others wait for memory. docs/hints.md has the
figures.
"""

from __future__ import annotations

from cutile import settings
from cutile._support.structs import replace
from cutile.gpu.target import Target
from cutile.ir.nodes import For, Kernel, Op, While, regions_of
from cutile.ir.walk import rewrite, walk
from cutile.ops import memory, mma, views

LOADS = (memory.load, views.view_load)
STORES = (memory.store, views.view_store)
PRODUCTS = (mma.mma, mma.mma_scaled)
TMA_SINCE = 90


def choose_hints(kernel: Kernel, target: Target | None) -> Kernel:
    """Set `allow_tma=False` on all stores of tiles and on loads outside of loops, in a kernel without frames.

    Loads in loops keep TMA, since the next tiles may arrive while the loop works on one. A kernel that multiplies
    matrices, or that sets `allow_tma` anywhere, is returned as it is. CUTILE_HINTS=0 turns this off.
    """
    if not settings.get("HINTS") or target is not None and target.number < TMA_SINCE:
        return kernel
    ops = [n for n in walk(kernel.body) if isinstance(n, Op)]
    if any(n.op in PRODUCTS or n.op in (*LOADS, *STORES) and n.attrs["allow_tma"] for n in ops):
        return kernel
    repeated = {id(n) for loop in walk(kernel.body) if isinstance(loop, For | While)
                for region in regions_of(loop) for n in walk(region)}
    return rewrite(kernel, lambda old, n: [_without_tma(n)] if isinstance(n, Op) and (
        n.op in STORES or n.op in LOADS and id(old) not in repeated) else None)


def _without_tma(n: Op) -> Op:
    return replace(n, attrs={**n.attrs, "allow_tma": False})
