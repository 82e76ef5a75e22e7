"""What nobody needs is dropped, and nothing else."""

from __future__ import annotations

import cutile as ct
from cutile.ir.nodes import Bind, Op
from cutile.ir.walk import uses, walk
from cutile.passes.dce import dce, removable
from tests.front.compiling import A1, I32, typed
from tests.passes.random_programs import printed, program, trace
from tests.seeds import seeds


@seeds(20, 40)
def test_random_programs(seed):
    small = dce(program(seed))
    used = uses(small.body)
    assert not any(isinstance(n, Bind) for n in walk(small.body))
    assert all(any(r in used for r in n.results) for n in walk(small.body) if removable(n))
    assert trace(small, seed) == printed(seed)


def names(kernel) -> list[str]:
    return [n.op.name for n in walk(kernel.body) if isinstance(n, Op)]


def test_loads():
    def kernel(a, i):
        ct.load(a, i, 8)
        ct.load(a, i, 8, memory_order=ct.MemoryOrder.RELAXED, memory_scope=ct.MemoryScope.DEVICE)
        ct.load(a, i, 8, memory_order=ct.MemoryOrder.ACQUIRE, memory_scope=ct.MemoryScope.DEVICE)

    assert names(dce(typed(kernel, A1, I32))) == ["load"]


def test_atomics_and_stores_stay():
    def kernel(a, i):
        ct.atomic_xchg(a, i, 1.0)
        ct.store(a, i, ct.exp(ct.load(a, i, 8)))
        ct.exp(ct.load(a, i, 8))

    assert [n for n in names(dce(typed(kernel, A1, I32))) if n != "constant"] == ["atomic_xchg", "load", "exp", "store"]
