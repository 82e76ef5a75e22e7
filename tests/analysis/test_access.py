"""Accesses as they are described: every op that touches memory, where its tiles lie, and what that says at run time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cutile as ct
from cutile.analysis.access import (
    CLIPPED,
    INSIDE,
    UNKNOWN,
    Item,
    Slice,
    accesses,
    tile_indices,
    where_tiles_lie,
)
from cutile.analysis.affine import AffineIndex, BlockIndex
from cutile.ops._op import ATOMIC, ELEMENTS, OFFSETS, READ, ROWS, TILES, WRITE, registry
from cutile.types import ListType, MemoryOrder, MemoryScope, PaddingMode
from tests.front.compiling import A1, A2, AI, I32, typed


def described(fn, *kinds):
    kernel = typed(fn, *kinds)
    return kernel, list(accesses(kernel).values())


def test_tiles():
    def kernel(a, b):
        i, j = ct.bid(0), ct.bid(1)
        x = ct.load(a, (i, j + 1), (4, 8), order=(1, 0), padding_mode=ct.PaddingMode.NAN)
        ct.store(b, (2 * i, 0), ct.transpose(x), check_bounds=False)

    k, (load, store) = described(kernel, A2, A2)
    i, j = BlockIndex(0), BlockIndex(1)
    assert (load.effect, load.unit, load.array.root, load.array.steps) == (READ, TILES, k.params[0], ())
    assert (load.shape, load.order, load.steps) == ((4, 8), (1, 0), (4, 8))
    assert load.index == (AffineIndex(0, ((i, 1),)), AffineIndex(1, ((j, 1),)))
    assert load.padding is PaddingMode.NAN and load.check_bounds and load.mask is None
    assert (store.effect, store.shape, store.order, store.check_bounds) == (WRITE, (8, 4), (0, 1), False)
    assert store.index[1] == AffineIndex(0) and store.padding is None


def test_views_scalars_and_atomics():
    def kernel(a):
        w = a.tiled_view(8, traversal_steps=(2,))
        w.store(ct.bid(0), w.load(0))
        w.atomic_store_add(1, 1.0)
        ct.store(a, 3, ct.load(a, 2, ()), memory_order="RELEASE", memory_scope="DEVICE")

    _, found = described(kernel, A1)
    assert [(x.effect, x.shape, x.steps) for x in found] == [
        (READ, (8,), (2,)), (WRITE, (8,), (2,)), (ATOMIC, (8,), (2,)), (READ, (1,), (1,)), (WRITE, (1,), (1,))]
    assert (found[4].memory_order, found[4].memory_scope) == (MemoryOrder.RELEASE, MemoryScope.DEVICE)
    assert found[0].memory_order is MemoryOrder.WEAK


def test_irregular_accesses():
    def kernel(a, b, index):
        i = ct.load(index, 0, 8)
        x = ct.gather(a, i, mask=i > 0, padding_value=7.0)
        ct.scatter(a, i, x)
        ct.atomic_add(a, i, x)
        a.get_raw_memory().store_offset(i, x, mask=i > 1)
        ct.load_advanced_indexing(b, (i, ct.Slice(0, 4)))

    _, (load, gather, scatter, add, store, rows) = described(kernel, A1, A2, AI)
    assert [x.unit for x in (load, gather, scatter, add, store, rows)] == [
        TILES, ELEMENTS, ELEMENTS, ELEMENTS, OFFSETS, ROWS]
    assert [x.effect for x in (gather, scatter, add, store, rows)] == [READ, WRITE, ATOMIC, WRITE, READ]
    assert all(x.index == x.steps == () for x in (gather, scatter, add, store, rows))
    assert [x.shape for x in (gather, scatter, add, store, rows)] == [(8,)] * 4 + [(8, 4)]
    assert gather.mask is not None and gather.padding.type.dtype is ct.float32 and store.mask is not None
    assert all(where_tiles_lie(x, (64, 64), ()) == UNKNOWN for x in (gather, rows))


def test_paths():
    def kernel(arrays, a, n):
        part = arrays[n].slice(0, 2, n + 1)
        ct.load(part, 0, 8)
        ct.load(ct.Array.from_foreign(a.foreign_pointer, (n,), (1,)), 0, 8)
        for _ in range(2):
            a = arrays[0]
        ct.load(a, 0, 8)

    k, (first, second, third) = described(kernel, ListType(A1), A1, I32)
    n = k.params[2]
    assert first.array.root is k.params[0]
    assert first.array.steps == (Item(AffineIndex(0, ((n, 1),))), Slice(0, AffineIndex(2), AffineIndex(1, ((n, 1),))))
    assert second.array.root not in k.params and third.array.root not in k.params  # a pointer's, a loop's


def test_every_op_that_reaches_an_array_is_described():
    reaching = [o for o in registry().values() if o.effect in (READ, WRITE, ATOMIC)]
    assert reaching and all(o.accesses is not None for o in reaching)


@pytest.mark.parametrize("size, grid", [*itertools.product((16, 18, 32), (1, 2, 3))])
def test_where_tiles_lie_is_what_the_numbers_say(size, grid):
    """Of a launch: the tiles of every block, element by element."""
    def kernel(a):
        ct.load(a, 2 * ct.bid(0), 8)
        for k in range(3):
            ct.load(a, ct.bid(0) + k - 1, 8)

    k, (first, second) = described(kernel, A1)
    (loop,) = (v for v in second.index[0].variables if not isinstance(v, BlockIndex))
    ranges = {BlockIndex(0): range(grid), loop: range(3)}
    for access, tiles in ((first, [2 * b for b in range(grid)]),
                          (second, [b + j - 1 for b in range(grid) for j in range(3)])):
        elements = np.array([t * 8 + np.arange(8) for t in tiles])
        want = INSIDE if elements.min() >= 0 and elements.max() < size else CLIPPED
        known = [access.index[0].extent(ranges)]
        assert known == [(min(tiles), max(tiles))] and where_tiles_lie(access, (size,), known) == want
        assert where_tiles_lie(access, (None,), known) == where_tiles_lie(access, (size,), (None,)) == UNKNOWN


def test_constants_are_proof():
    def kernel(a):
        for k in range(4):
            ct.load(a, k, 8)

    _, (load,) = described(kernel, A1)
    (counter,) = load.index[0].variables
    assert where_tiles_lie(load, (32,), [load.index[0].extent({counter: range(4)})]) == INSIDE
    assert where_tiles_lie(load, (32,), [load.index[0].extent({counter: range(5)})]) == CLIPPED


def test_an_index_that_wraps_is_unknown():
    def kernel(a):
        ct.load(a, ct.bid(0) * 1073741824, 8)

    _, (load,) = described(kernel, A1)
    index = load.index[0]
    assert where_tiles_lie(load, (64,), [index.extent({BlockIndex(0): range(1)})]) == INSIDE
    assert where_tiles_lie(load, (64,), [index.extent({BlockIndex(0): range(5)})]) == UNKNOWN


def test_operands_that_are_tile_indices():
    def kernel(a, b):
        ct.store(b, (1, 2), ct.load(b, (0, 1), (4, 4)))
        ct.gather(a, ct.arange(8, dtype=ct.int32))

    _, (load, store, gather) = described(kernel, A1, A2)
    assert [list(tile_indices(x.op)) for x in (load, store, gather)] == [[1, 2], [1, 2], []]
