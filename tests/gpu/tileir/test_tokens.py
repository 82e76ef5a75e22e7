"""The order of memory operations in lowered kernels: which of them wait for which."""

from __future__ import annotations

import cutile as ct
from cutile.gpu.facts import ArrayFacts
from cutile.types import ArrayType, TileType
from tests.gpu.tileir.lowering import assemble, text, usual
from tests.gpu.tileir.tool import needs_tool

pytestmark = needs_tool
I32 = TileType(ct.int32)
A1, I1 = ArrayType(ct.float32, 1), ArrayType(ct.int32, 1)


def lines(source: str, *words: str) -> list[str]:
    return [line.strip() for line in source.splitlines() if all(w in line for w in words)]


def test_loads_do_not_wait_for_loads():
    def kernel(a, b):
        ct.store(b, 0, ct.load(a, 0, 8) + ct.load(a, 1, 8))

    assert not lines(text(kernel, A1, A1), " token =")


def test_a_load_waits_for_the_store_before_and_the_store_for_both():
    def kernel(a):
        x = ct.load(a, 0, 8)
        ct.store(a, 1, x)
        ct.store(a, 2, ct.load(a, 3, 8))

    t = text(kernel, A1)
    first, second = lines(t, "load_view_tko")
    assert " token =" not in first and " token =" in second
    stores = lines(t, "store_view_tko")
    assert f" token = {first.split()[1]}" in stores[0]
    assert f" token = {stores[0].split()[0]} " in second + " "
    assert lines(t, "join_tokens")


def test_arrays_of_one_group_wait():
    def kernel(a, b):
        ct.store(a, 0, ct.load(b, 0, 8))
        ct.store(b, 1, ct.load(a, 0, 8))

    together = ArrayFacts((None,), (1,), (1,), (1,), (0,), 16, ("g",), False)
    apart = text(kernel, A1, A1)
    joined = text(kernel, A1, A1, facts=[together, together])
    assert len(lines(joined, " token =")) > len(lines(apart, " token ="))


def test_stores_of_a_loop_that_go_to_tiles_of_their_own_do_not_wait():
    def kernel(a, b, n):
        for i in range(n):
            ct.store(b, i + 1, ct.load(a, i, 8))

    assert not lines(text(kernel, A1, A1, I32), "store_view_tko", " token =")
    overlapping = [usual(A1), None, None]
    assert lines(text(kernel, A1, A1, I32, facts=overlapping), "store_view_tko", " token =")

    def same(a, b, n):
        for i in range(n):
            ct.store(b, 0, ct.load(a, i, 8))

    assert lines(text(same, A1, A1, I32), "store_view_tko", " token =")


def test_an_acquire_holds_back_what_follows():
    def kernel(a, b, flag):
        ct.load(flag, 0, (), memory_order="ACQUIRE", memory_scope="DEVICE")
        ct.store(b, 0, ct.load(a, 0, 8))

    t = text(kernel, A1, A1, I1)
    acquire, load = lines(t, "load_view_tko")
    assert f" token = {acquire.split()[1].rstrip(',')}" in load
    assemble(kernel, A1, A1, I1)


def test_a_release_waits_for_everything():
    def kernel(a, b, flag):
        ct.store(b, 0, ct.load(a, 0, 8))
        ct.store(flag, 0, 1, memory_order="RELEASE", memory_scope="SYS")

    t = text(kernel, A1, A1, I1)
    assert " token =" in lines(t, "store_view_tko release sys")[0] and lines(t, "join_tokens")
    assemble(kernel, A1, A1, I1)
