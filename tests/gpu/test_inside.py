"""The variant without checks of bounds: for which kernels there is one, and which launches it serves."""

from __future__ import annotations

import cutile as ct
from cutile import settings
from cutile.gpu.inside import unchecked
from cutile.ir.nodes import Frame, Op
from cutile.ir.walk import walk
from cutile.types import ListType
from tests.front.compiling import A1, A2, typed


def copy(x, y):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 16))


def test_which_launches_it_serves():
    may_run = unchecked(typed(copy, A1, A1)).for_arrays([((48,), (1,)), ((64,), (2,))])
    assert [may_run((n, 1, 1)) for n in range(6)] == [False, True, True, True, False, False]


def test_a_list_of_arrays():
    def k(arrays, x):
        ct.store(x, ct.bid(0), ct.load(arrays[0], ct.bid(0), 8))

    found = unchecked(typed(k, ListType(A1), A1))
    assert found.for_arrays([[((8,), (1,)), ((16,), (1,))], ((16,), (1,))])((1, 1, 1))
    assert not found.for_arrays([[((8,), (1,)), ((16,), (1,))], ((16,), (1,))])((2, 1, 1))


def test_accesses_in_functions():
    def k(x, y):
        copy(x, y)

    found = unchecked(typed(k, A1, A1)).kernel
    nodes = list(walk(found.body))
    assert not any(isinstance(n, Frame) for n in nodes)
    assert [n.attrs["check_bounds"] for n in nodes if isinstance(n, Op) and n.op.accesses] == [False, False]


def test_kernels_that_have_none():
    def product(x, y):
        a = ct.load(x, (0, 0), (16, 16))
        ct.store(y, (0, 0), ct.mma(a, a, ct.zeros((16, 16), ct.float32)))

    def scattered(x, y):
        i = ct.arange(16, dtype=ct.int32)
        ct.scatter(y, i, ct.gather(x, i))

    def promised(x, y):
        ct.store(y, 0, ct.load(x, 0, 16, check_bounds=False), check_bounds=False)

    assert unchecked(typed(product, A2, A2)) is None
    assert unchecked(typed(scattered, A1, A1)) is unchecked(typed(promised, A1, A1)) is None
    with settings.override(HINTS=False):
        assert unchecked(typed(copy, A1, A1)) is None
    assert unchecked(typed(copy, A1, A1)) is not None
