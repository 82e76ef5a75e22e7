"""Relax an atomic that orders nothing.

Atomics release and acquire by default. Before each element a GPU then waits until everything that the block did is
visible to all others, and after it drops its cache; neighbouring elements go one by one. Updates without an order
whose old values nobody reads are sent off without waiting, several at once.

An atomic orders nothing if it is the only thing that a block does:

- nothing is written before it, so it releases nothing. It stands in no loop, where an earlier update would be such a
  write [MEM-3: the elements of one atomic are unordered anyway];
- nothing comes after it that could rely on what it acquires. Its old value is unused, so no branch tells what that was;
- what the block loads is needed to compute the operands of the atomic, so it has been read when the update is made.
  These loads are plain: no block of the launch waits for another.

Atomics of scope SYS keep their order, because the host may watch them while the kernel runs. CUTILE_HINTS=0 turns this
off.
"""

from __future__ import annotations

from cutile import settings
from cutile._support.structs import replace
from cutile.ir.nodes import For, Kernel, Op, While, uses_of
from cutile.ir.walk import rewrite, walk
from cutile.ops._op import ATOMIC, PURE, READ
from cutile.types import MemoryOrder, MemoryScope


def relaxed_atomic(kernel: Kernel) -> Kernel:
    """The kernel with its atomic relaxed if that orders nothing. The kernel has no frames and no dead ops."""
    n = only_effect(kernel) if settings.get("HINTS") else None
    if n is None or n.op.effect != ATOMIC or not _may_be_relaxed(kernel, n):
        return kernel
    attrs = {**n.attrs, "memory_order": MemoryOrder.RELAXED}
    return rewrite(kernel, lambda old, new: [replace(new, attrs=attrs)] if old is n else None)


def only_effect(kernel: Kernel) -> Op | None:
    """The only op of a kernel that does more than compute and load; None if there are several, or if a load has an
    order.
    """
    found = [n for n in walk(kernel.body) if isinstance(n, Op) and not _computes_or_loads(n)]
    return found.pop() if len(found) == 1 else None


def _computes_or_loads(n: Op) -> bool:
    return n.op.effect == PURE or n.op.effect == READ and n.attrs.get("memory_order") in (None, MemoryOrder.WEAK)


def _may_be_relaxed(kernel: Kernel, n: Op) -> bool:
    """Whether an atomic has an order, is not watched by the host, is in no loop, and its results are unused."""
    if n.attrs.get("memory_order", MemoryOrder.RELAXED) is MemoryOrder.RELAXED \
            or n.attrs["memory_scope"] is MemoryScope.SYS:
        return False
    loops = (inner for loop in walk(kernel.body) if isinstance(loop, For | While) for inner in walk(loop.body))
    return not any(inner is n for inner in loops) \
        and all(v not in n.results for other in walk(kernel.body) for v in uses_of(other))
