"""Wait by atomics where a loop waits by loads of one element.

    while load(flags, i, (1,), memory_order=ACQUIRE) == 0    →    while atomic_or(flags, i, 0) == 0

The assembler lets each thread of a block do such a load for itself and leave the loop by what it has read: threads that
have left meet others at a barrier of the loop, and a loop whose values nobody uses is removed (docs/assembler-bugs.md).
What an atomic gives is the same for all threads. It has the order and the scope of the load, and writes what it has
read.

Atomics have integers of 32 and 64 bits. What a load gives outside its array must be left open, as it is by default:
there the atomic gives anything, too. Loops that wait by other loads are told of in a warning.
"""

from __future__ import annotations

import warnings

from cutile.analysis.spin_wait import waited_for, waiting_loops
from cutile.ir.build import Builder
from cutile.ir.nodes import Kernel, Node, Op, regions_of
from cutile.ir.walk import rewrite, walk
from cutile.ops import atomics, create, memory, shape
from cutile.types import MemoryOrder, PaddingMode, TileType

ORDERS = (MemoryOrder.RELAXED, MemoryOrder.ACQUIRE)


def waiting_load(kernel: Kernel) -> Kernel:
    """The kernel with such loads replaced. It has no frames."""
    by_load = [n for n in walk(kernel.body) if _may_wait(n)]
    if any(not _has_atomic(n) for n in by_load):
        _warn(kernel)
    if not any(map(_has_atomic, by_load)):
        return kernel
    waiting = {n for loop in waiting_loops(kernel) for part in regions_of(loop) for n in walk(part)
               if _may_wait(n) and _has_atomic(n)}
    return rewrite(kernel, lambda old, new: _by_atomic(new) if old in waiting else None) if waiting else kernel


def _may_wait(n: Node) -> bool:
    return (isinstance(n, Op) and n.op is memory.load and n.attrs["memory_order"] in ORDERS
            and n.results[0].type.size == 1)


def _has_atomic(load: Op) -> bool:
    return load.results[0].type.dtype in atomics.INTS and load.attrs["padding_mode"] is PaddingMode.UNDETERMINED


def _warn(kernel: Kernel) -> None:
    """A UserWarning, at its line, for each load that a loop waits by and that no atomic can replace."""
    found = waited_for(kernel)
    for n in walk(kernel.body):
        if _may_wait(n) and not _has_atomic(n) and n.results[0] in found:
            dtype, padded = n.results[0].type.dtype, n.attrs["padding_mode"] is not PaddingMode.UNDETERMINED
            of = "a load with a padding" if padded else f"a load of {dtype.name}"
            write = "leave padding_mode out" if padded else "use flags of int32 or int64"
            warnings.warn_explicit(
                f"{kernel.name}: on a GPU the threads of a block may leave a loop that waits by {of} at different "
                f"times, which gives wrong results; {write}, or wait by ct.atomic_or or ct.atomic_cas",
                UserWarning, n.span.filename, n.span.line)


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
