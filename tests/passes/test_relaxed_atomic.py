"""Which atomics lose their order: those that are all that a block does."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile import settings
from cutile.front.program import type_kernel
from cutile.gpu.tileir.lower import after_passes
from cutile.ir.check import check
from cutile.ir.nodes import Op
from cutile.ir.walk import walk
from cutile.ops._op import ATOMIC
from cutile.passes.fma import fma
from cutile.passes.relaxed_atomic import relaxed_atomic
from cutile.types import ArrayType
from tests.gpu.tileir.lowering import module

X, Y = ArrayType(ct.int32, 1), ArrayType(ct.int32, 1)
RELAXED, ACQ_REL = ct.MemoryOrder.RELAXED, ct.MemoryOrder.ACQ_REL


def orders(code, *kinds) -> list[ct.MemoryOrder]:
    """The orders of the atomics of a kernel, after the pass and those before it."""
    with settings.override(HINTS=False):
        before = after_passes(fma(type_kernel(code, kinds or (X, Y)).kernel))
    after = relaxed_atomic(before)
    check(after)
    return [n.attrs["memory_order"] for n in walk(after.body) if isinstance(n, Op) and n.op.effect == ATOMIC]


def histogram(x, y):
    ct.atomic_add(y, ct.load(x, ct.bid(0), 64), 1)


def total(x, y):
    t = ct.zeros(64, ct.int32)
    for k in range(ct.num_tiles(x, 0, 64)):
        t += ct.load(x, k, 64)
    ct.atomic_add(y, 0, ct.sum(t))


def on_a_condition(x, y):
    if ct.load(x, 0, ()) > 3:
        ct.atomic_max(y, ct.bid(0), 4)


def returns_early(x, y):
    if ct.bid(0) > 3:
        return
    ct.atomic_xchg(y, ct.bid(0), ct.gather(x, 5), memory_order=ct.MemoryOrder.RELEASE)


def compares(x, y):
    ct.atomic_cas(y, ct.arange(64, dtype=ct.int32), 0, ct.load(x, 0, 64), memory_order=ct.MemoryOrder.ACQUIRE)


def by_offset(x, y):
    y.get_raw_memory().atomic_add_offset(ct.arange(64, dtype=ct.int32), ct.load(x, 0, 64))


def of_its_block(x, y):
    ct.atomic_or(y, ct.bid(0), ct.load(x, 0, ()), memory_scope=ct.MemoryScope.BLOCK)


@pytest.mark.parametrize("code", [histogram, total, on_a_condition, returns_early, compares, by_offset, of_its_block],
                         ids=lambda f: f.__name__)
def test_all_that_a_block_does(code):
    assert orders(code) == [RELAXED]


def after_a_store(x, y):
    ct.store(x, 0, 1)
    ct.atomic_add(y, 0, 1)


def before_a_store(x, y):
    ct.atomic_add(y, 0, 1)
    ct.store(x, 0, 1)


def before_a_load_that_is_stored(x, y):
    ct.atomic_add(y, 0, 1)
    ct.store(y, 1, ct.load(x, 0, ()))


def whose_value_is_used(x, y):
    if ct.atomic_add(y, 0, 1) == 0:
        ct.atomic_add(x, 0, 1, memory_order=RELAXED)


def in_a_loop(x, y):
    for i in range(ct.load(x, 0, ())):
        ct.atomic_add(y, i, 1)


def in_a_while(x, y):
    i = 0
    while i < ct.load(x, 0, ()):
        ct.atomic_add(y, i, 1)
        i += 1


def two(x, y):
    ct.atomic_add(x, 0, 1)
    ct.atomic_add(y, 0, 1)


def after_an_acquire(x, y):
    ct.atomic_add(y, 0, ct.load(x, 0, (), memory_order=ct.MemoryOrder.ACQUIRE, memory_scope=ct.MemoryScope.DEVICE))


def after_a_relaxed_load(x, y):
    ct.atomic_add(y, 0, ct.load(x, 0, (), memory_order=RELAXED, memory_scope=ct.MemoryScope.DEVICE))


def watched_by_the_host(x, y):
    ct.atomic_add(y, 0, ct.load(x, 0, ()), memory_scope=ct.MemoryScope.SYS)


def beside_a_print(x, y):
    ct.printf("%d", ct.load(x, 0, ()))
    ct.atomic_add(y, 0, 1)


def between_grids(x, y):
    ct.grid_dependency_control_wait()
    ct.atomic_add(y, 0, ct.load(x, 0, ()))


@pytest.mark.parametrize("code", [after_a_store, before_a_store, before_a_load_that_is_stored, in_a_loop, in_a_while,
                                  two, after_an_acquire, after_a_relaxed_load, watched_by_the_host, beside_a_print,
                                  between_grids, whose_value_is_used], ids=lambda f: f.__name__)
def test_what_others_may_rely_on(code):
    assert ACQ_REL in orders(code) and orders(code).count(RELAXED) == (code is whose_value_is_used)


def test_a_called_function_counts():
    def calls(x, y):
        histogram(x, y)

    def calls_twice(x, y):
        histogram(x, y)
        histogram(x, y)

    assert orders(calls) == [RELAXED] and orders(calls_twice) == [ACQ_REL, ACQ_REL]


def test_in_tile_ir():
    def order():
        (atomic,) = [o for o in module(histogram, X, Y).contents.entries[0].block.ops
                     if o.spec.name == "atomic_rmw_tko"]
        return atomic.attrs["memory_ordering_semantics"]

    assert order() == "relaxed"
    with settings.override(HINTS=False):
        assert order() == "acq_rel"
