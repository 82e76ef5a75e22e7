"""Which accesses wait for which: the plan of the tokens, before any back end."""

from __future__ import annotations

import cutile as ct
from cutile.analysis.tokens import ACQUIRE, ordering
from cutile.ir.nodes import Op
from cutile.ir.walk import walk
from cutile.passes.flatten_frames import flatten_frames
from cutile.types import ListType
from tests.front.compiling import A1, I32, typed


def planned(fn, *kinds, together=()):
    """The kernel's parameters and, in order, the accesses with their part of the plan."""
    kernel = flatten_frames(typed(fn, *kinds))
    plan = ordering(kernel, [[kernel.params[i] for i in group] for group in together])
    found = [(n.op.name, plan.of(n)) for n in walk(kernel.body) if isinstance(n, Op) and n.op.effect != "pure"]
    return plan, kernel.params, found


def test_memory_that_nothing_writes_needs_no_tokens():
    def kernel(a, b):
        ct.store(b, 0, ct.load(a, 0, 8))

    _, (a, b), ((_, load), (_, store)) = planned(kernel, A1, A1)
    assert not load.waits and not load.joins
    assert store.waits == (("any", b), ACQUIRE) and store.becomes == (("any", b), ("write", b))


def test_parameters_of_one_group_are_one_class():
    def kernel(a, b):
        ct.store(b, 0, ct.load(a, 0, 8))

    _, _, ((_, load), (_, store)) = planned(kernel, A1, A1, together=[(0, 1)])
    assert set(load.joins) <= set(store.waits) and load.waits[0] in store.becomes


def test_slices_items_and_pointers_keep_their_class():
    def kernel(a, arrays, n):
        ct.store(a.slice(0, 1, n), 0, 1.0)
        ct.load(ct.Array.from_foreign(a.foreign_pointer, (n,), (1,)), 0, 8)
        ct.store(arrays[n], 0, 1.0)
        ct.load(arrays[0], 0, 8)

    _, _, found = planned(kernel, A1, ListType(A1), I32)
    (_, first), (_, second), (_, third), (_, fourth) = found
    assert second.waits[0] in first.becomes and fourth.waits[0] in third.becomes
    assert second.waits[0] not in third.becomes


def test_a_print_waits_for_all_and_all_for_it():
    def kernel(a, b):
        ct.load(a, 0, 8)
        print("x")
        ct.load(b, 0, 8)

    _, (a, b), found = planned(kernel, A1, A1)
    (_, first), (_, text), (_, second) = found
    assert set(first.joins) <= set(text.waits) and text.becomes == (ACQUIRE,) and ACQUIRE in second.waits


def test_orders():
    def kernel(a, b, f):
        ct.load(a, 0, 8)
        ct.atomic_add(f, 0, 1.0, memory_order="RELEASE")
        ct.load(f, 0, (), memory_order="ACQUIRE", memory_scope="DEVICE")
        ct.atomic_add(f, 0, 1.0, memory_order="RELAXED")
        ct.store(b, 0, 1.0)

    _, (a, b, f), found = planned(kernel, A1, A1, A1)
    load, release, acquire, relaxed, store = (access for _, access in found)
    assert ("any", a) in release.waits and ACQUIRE not in release.becomes
    assert acquire.becomes == (ACQUIRE,) and acquire.joins == (("any", f),)
    assert set(relaxed.waits) == {("any", f), ACQUIRE}
    assert ACQUIRE in store.waits and ("any", f) not in store.waits


def test_stores_of_their_own():
    def apart(a, b, n):
        for i in range(n):
            ct.store(b, n - (i + 1), ct.load(a, i, 8))

    def overlapping_tiles(a, b, n):
        w = b.tiled_view(8, traversal_steps=(4,))
        for i in range(n):
            w.store(i, ct.load(a, i, 8))

    def read_again(a, b, n):
        for i in range(n):
            ct.store(b, i, ct.load(b, n, 8))

    def moving(a, b, n):
        k = n
        for i in range(n):
            k = k - i
            ct.store(b, i + k, ct.load(a, i, 8))

    def after_an_acquire(a, b, n):
        for i in range(n):
            ct.atomic_add(a, 0, 1.0)
            ct.store(b, i, 1.0)

    def fixed(a, b, n):
        for _ in range(n):
            ct.store(b, n, 1.0)

    assert len(planned(apart, A1, A1, I32)[0].apart) == 1
    for kernel in (overlapping_tiles, read_again, moving, after_an_acquire, fixed):
        assert not planned(kernel, A1, A1, I32)[0].apart, kernel.__name__
