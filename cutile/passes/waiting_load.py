"""Wait by atomics where a loop waits by loads of one element.

    while load(flags, i, (1,), memory_order=ACQUIRE) == 0    →    while atomic_or(flags, i, 0) == 0

The assembler lets each thread of a block do such a load for itself and leave the loop by what it has read: threads that
have left meet others at a barrier of the loop, and a loop whose values nobody uses is removed (docs/assembler-bugs.md).
What an atomic gives is the same for all threads. It has the order and the scope of the load, and writes what it has
read.

Atomics have integers of 32 and 64 bits. What a load gives outside its array must be left open, as it is by default:
there the atomic gives anything, too.
"""

from __future__ import annotations

from cutile.analysis.spin_wait import waiting_loops
from cutile.ir.build import Builder
from cutile.ir.nodes import Kernel, Node, Op, regions_of
from cutile.ir.walk import rewrite, walk
from cutile.ops import atomics, create, memory, shape
from cutile.types import MemoryOrder, PaddingMode, TileType

ORDERS = (MemoryOrder.RELAXED, MemoryOrder.ACQUIRE)


def waiting_load(kernel: Kernel) -> Kernel:
    """The kernel with such loads replaced. It has no frames."""
    if not any(map(_may_wait, walk(kernel.body))):
        return kernel
    waiting = {n for loop in waiting_loops(kernel) for part in regions_of(loop) for n in walk(part) if _may_wait(n)}
    return rewrite(kernel, lambda old, new: _by_atomic(new) if old in waiting else None) if waiting else kernel


def _may_wait(n: Node) -> bool:
    return isinstance(n, Op) and n.op is memory.load and n.attrs["memory_order"] in ORDERS \
        and n.results[0].type.size == 1 and n.results[0].type.dtype in atomics.INTS \
        and n.attrs["padding_mode"] is PaddingMode.UNDETERMINED


def _by_atomic(n: Op) -> list[Node]:
    b, (array, *index), result = Builder(n.span), n.operands, n.results[0]
    at = dict(zip(n.attrs["order"], index, strict=True))
    scalar = TileType(result.type.dtype)
    zero = b.op1(create.constant, result=scalar, value=0)
    old = b.op1(atomics.atomic_or, array, [at[axis] for axis in range(len(at))], zero, result=scalar,
                check_bounds=n.attrs["check_bounds"], want_old=True, memory_order=n.attrs["memory_order"],
                memory_scope=n.attrs["memory_scope"])
    b.append(Op(shape.reshape, (old,), {"shape": result.type.shape}, n.results, n.span))
    return b.region.nodes
