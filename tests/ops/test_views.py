"""Slices, tiled views, raw memory and foreign pointers."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import dtypes as dt
from cutile.errors import TileTypeError
from cutile.interp.memory.array_view import wrap
from cutile.ir.terms import RawMemory, View
from cutile.ops import memory, views
from cutile.ops._constants import loose
from cutile.ops._op import methods
from cutile.types import ArrayType, PaddingMode, TileType
from tests.ops.ruling import NONE, Bench


@pytest.fixture
def bench():
    return Bench()


def param(bench, a, dtype=None, **static):
    dtype = dtype or dt.of_storage(a.dtype)
    return bench.given(wrap(a, dtype), ArrayType(dtype, a.ndim, **static))


def refused(match):
    return pytest.raises(TileTypeError, match=match)


def grid(rows=4, cols=8):
    return np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)


# ------------------------------------------------------------------ slices


def test_slice_shares_memory(bench):
    a = grid()
    array = param(bench, a, static_shape=(None, 8))
    s = bench.call(views.slice_, array, axis=-2, start=1, stop=bench.tile(3, dt.int64))
    assert s.type == ArrayType(dt.float32, 2, static_shape=(None, 8))
    assert [int(x) for x in bench.value(s).shape] == [2, 8]
    x = bench(memory.load, s, (0, 0), (4, 4), padding_mode="NEG_INF")
    assert x[:2].tolist() == a[1:3, :4].tolist() and np.isneginf(x[2:]).all()
    bench(memory.store, s, (0, 1), bench.tile(np.zeros((4, 4)), dt.float32))
    want = grid()
    want[1:3, 4:] = 0
    assert np.array_equal(a, want)


def test_constant_slices_have_static_sizes(bench):
    s = bench.call(views.slice_, param(bench, grid()), 1, 2, 7)
    assert s.type.static_shape == (None, 5)
    assert memory.array_shape(bench.b, s).items[1].value == 5


def test_slices_that_vary_by_block(bench):
    a = np.arange(12, dtype=np.float32)
    start = bench.tile(np.array([0, 5, 10]).reshape(3, 1, 1), dt.int32, shape=())
    stop = bench.tile(np.array([3, 9, 14]).reshape(3, 1, 1), dt.int32, shape=())
    s = bench.call(views.slice_, param(bench, a), 0, start, stop)
    sizes = memory.array_shape(bench.b, s).items[0]
    assert bench.value(sizes).ravel().tolist() == [3, 4, 4]
    x = bench(memory.load, s, 0, 4, padding_mode="ZERO")
    assert x.reshape(3, 4).tolist() == [[0, 1, 2, 0], [5, 6, 7, 8], [10, 11, 0, 0]]
    again = bench.call(views.slice_, s, 0, 1, 2)
    assert bench(memory.load, again, 0, ()).ravel().tolist() == [1, 6, 11]


def test_slice_refusals(bench):
    a = param(bench, grid())
    with refused("axis 2 is out of range"):
        bench.call(views.slice_, a, 2, 0, 1)
    with refused("not constant"):
        bench.call(views.slice_, a, bench.tile(0, dt.int32), 0, 1)
    for bad in (True, 1.0, bench.tile(0, dt.uint32), bench.tile([0], dt.int32)):
        with refused('"start" of slice'):
            bench.call(views.slice_, a, 0, bad, 1)
    with refused("got -1") as e:
        bench.call(views.slice_, a, 0, 0, -1)
    assert "not counted from the end" in e.value.help
    with refused("got -2"):
        bench.call(views.slice_, a, 0, -2, 1)
    with refused("stop 1 lies before start 2"):
        bench.call(views.slice_, a, 0, 2, 1)


# ------------------------------------------------------------------ tiled views


def test_view_is_structure(bench):
    a = param(bench, grid())
    v = bench.call(views.tiled_view, a, (2, 4))
    assert isinstance(v, View) and (v.tile_shape, v.steps) == ((2, 4), (2, 4))
    w = bench.call(views.tiled_view, a, (), padding_mode="NAN", traversal_steps=(3, 1))
    assert (w.tile_shape, w.steps, w.padding_mode) == ((), (3, 1), PaddingMode.NAN)
    assert not bench.b.region.nodes
    assert methods()["view", "load"] is views.view_load


@pytest.mark.parametrize(("size", "tile", "step", "want"), [
    (16, 2, 3, 6), (8, 2, 1, 8), (9, 4, None, 3), (0, 4, None, 0)])
def test_num_tiles(bench, size, tile, step, want):
    v = bench.call(views.tiled_view, param(bench, np.zeros(size, np.float32)), tile, traversal_steps=step)
    n = bench.call(views.view_num_tiles, v, axis=-1)
    assert n.type == TileType(dt.int32) and bench.value(n) == want
    with refused("axis 1 is out of range"):
        bench.call(views.view_num_tiles, v, 1)


def test_view_load_with_steps(bench):
    a = np.arange(8, dtype=np.int32)
    v = bench.call(views.tiled_view, param(bench, a), 4, padding_mode="ZERO", traversal_steps=3)
    assert bench(views.view_load, v, bench.tile(2, dt.int8)).tolist() == [6, 7, 0, 0]
    scalar = bench.call(views.view_load, bench.call(views.tiled_view, param(bench, a), ()), (5,))
    assert scalar.type == TileType(dt.int32) and bench.value(scalar) == 5
    with refused("2 indices for an array of rank 1"):
        bench.call(views.view_load, v, (0, 0))
    with refused("expected a tiled view") as e:
        bench.call(views.view_load, param(bench, a), 0)
    assert "tiled_view" in e.value.help


def test_view_store_broadcasts_and_keeps_literals_loose(bench):
    a = np.zeros((3, 4), np.float16)
    v = bench.call(views.tiled_view, param(bench, a), (2, 4))
    bench(views.view_store, v, (1, 0), 1.5)
    assert a.tolist() == [[0] * 4] * 2 + [[1.5] * 4]
    bench(views.view_store, v, (0, 0), bench.tile([1, 2, 3, 4], dt.int32))
    assert a[:2].tolist() == [[1, 2, 3, 4]] * 2
    point = bench.call(views.tiled_view, param(bench, a), ())
    bench(views.view_store, point, (2, 3), 9)
    assert a[2, 3] == 9
    with refused("cannot be broadcast"):
        bench.call(views.view_store, v, (0, 0), bench.tile([1, 2], dt.float16))
    with refused("to store into a float16 view"):
        bench.call(views.view_store, v, (0, 0), bench.tile([1.0], dt.float32))


def test_view_refusals(bench):
    a = param(bench, grid())
    with refused("has rank 1, but the array has rank 2"):
        bench.call(views.tiled_view, a, 4)
    with refused("power of two"):
        bench.call(views.tiled_view, a, (3, 4))
    with refused("steps are positive, got 0"):
        bench.call(views.tiled_view, a, (2, 4), traversal_steps=(0, 1))
    with refused("expected rank 2"):
        bench.call(views.tiled_view, a, (2, 4), traversal_steps=(1,))
    with refused("needs a float array"):
        bench.call(views.tiled_view, param(bench, np.zeros(4, np.int32)), 4, padding_mode="POS_INF")


# ------------------------------------------------------------------ raw memory


def raw(bench, a, **kw):
    return bench.call(views.get_raw_memory, param(bench, a, **kw))


def test_raw_load(bench):
    base = grid()
    r = raw(bench, base[1:, 2:])
    assert isinstance(r, RawMemory)
    x = bench.call(views.load_offset, r, bench.tile([[0, 8, 6], [-1, 22, 21]], dt.int32), padding_value=-9)
    assert x.type == TileType(dt.float32, (2, 3))
    assert bench.value(x).tolist() == [[10, 18, -9], [-9, -9, 31]]  # 6, -1 and 22 are not elements of the argument
    assert bench(views.load_offset, r, 1) == 11
    masked = bench(views.load_offset, r, bench.tile([0, 1], dt.uint8), mask=bench.tile([False, True], dt.bool_),
                   padding_value=NONE)
    assert masked.tolist() == [0, 11]


def test_raw_offsets_of_a_slice_may_be_negative(bench):
    a = param(bench, np.arange(8, dtype=np.int16))
    start = bench.tile(np.array([2, 4]).reshape(2, 1, 1), dt.int32, shape=())
    r = bench.call(views.get_raw_memory, bench.call(views.slice_, a, 0, start, 8))
    assert bench(views.load_offset, r, bench.tile([-2, 0, 4], dt.int8)).reshape(2, 3).tolist() == [[0, 2, 6], [2, 4, 0]]


def test_raw_store(bench):
    a = np.zeros((2, 2), np.float16)
    r = raw(bench, a)
    bench(views.store_offset, r, bench.tile([3, 0, 9, -1], dt.int64), 1.5)
    assert a.tolist() == [[1.5, 0], [0, 1.5]]
    bench(views.store_offset, r, bench.tile([0, 1], dt.int64), bench.tile([4, 5], dt.int8),
          mask=bench.tile([False, True], dt.bool_))
    assert a.tolist() == [[1.5, 5], [0, 1.5]]
    with refused("cannot be broadcast"):
        bench.call(views.store_offset, r, 0, bench.tile([1, 2], dt.float16))


@pytest.mark.parametrize("bad", [1.0, True, (0,), "x"])
def test_raw_offsets_are_integers(bench, bad):
    with refused('"offset" of load_offset'):
        bench.call(views.load_offset, raw(bench, np.zeros(4)), bad)


# ------------------------------------------------------------------ foreign pointers


def test_from_foreign_reshapes_memory(bench):
    a = np.arange(12, dtype=np.float32)
    p = views.array_foreign_pointer(bench.b, param(bench, a))
    assert p.type.dtype is dt.foreign_pointer_dtype(dt.float32)
    n = bench.tile(3, dt.int64)
    m = bench.call(views.from_foreign, p, (n, 4), (4, 1))
    assert m.type == ArrayType(dt.float32, 2, dt.int64, (None, 4), (4, 1))
    assert bench(memory.load, m, (1, 0), (2, 4), padding_mode="NAN").tolist()[0] == [8, 9, 10, 11]
    bench(memory.store, m, (0, 0), bench.tile(np.full((2, 4), -1), dt.float32))
    assert (a[:8] == -1).all() and (a[8:] > 0).all()


def test_from_foreign_touches_own_elements_only(bench):
    base = np.arange(20, dtype=np.int32)
    own = param(bench, base[4:16:2])  # offsets 0, 2, … 10
    p = views.array_foreign_pointer(bench.b, own)
    m = bench.call(views.from_foreign, p, (16,), (1,))
    assert bench(memory.load, m, 0, 16).tolist() == [4, 0, 6, 0, 8, 0, 10, 0, 12, 0, 14, 0, 0, 0, 0, 0]
    bench(memory.store, m, 0, bench.tile(np.full(16, -1), dt.int32))
    want = np.arange(20)
    want[4:16:2] = -1
    assert base.tolist() == want.tolist()


def test_pointers_chosen_by_block(bench):
    a, b = np.arange(4, dtype=np.float32), np.arange(10, 16, dtype=np.float32)
    pa, pb = (views.array_foreign_pointer(bench.b, param(bench, x)) for x in (a, b[2:]))
    bits = np.where(np.array([True, False]).reshape(2, 1, 1), bench.value(pa), bench.value(pb))
    p = bench.given(bits, TileType(pa.type.dtype))
    m = bench.call(views.from_foreign, p, (4,), (1,))
    assert bench(memory.load, m, 0, 4).reshape(2, 4).tolist() == [[0, 1, 2, 3], [12, 13, 14, 15]]


def test_from_foreign_permuted_tiles(bench):
    a = np.arange(32, dtype=np.float32)
    p = views.array_foreign_pointer(bench.b, param(bench, a))
    rows = bench.tile(np.array([4, 3]).reshape(2, 1, 1), dt.int32, shape=())
    m = bench.call(views.from_foreign, p, (rows, 8), (8, 1))
    x = bench(memory.load, m, (1, 1), (4, 2), order="F")
    want = a.reshape(4, 8)[2:4, 4:8].T
    assert x[0, 0, 0].tolist() == want.tolist()
    assert x[1, 0, 0].tolist() == np.where([True, False], want, 0).tolist()
    bench(memory.store, m, (1, 1), bench.tile(np.full((4, 2), -1), dt.float32), order="F")
    assert np.argwhere(a == -1).ravel().tolist() == [20, 21, 22, 23, 28, 29, 30, 31]


def test_from_foreign_refusals(bench):
    p = views.array_foreign_pointer(bench.b, param(bench, np.zeros(4, np.float32)))
    with refused("expected a foreign pointer scalar"):
        bench.call(views.from_foreign, 5, (4,), (1,))
    with refused("do not go together"):
        bench.call(views.from_foreign, p, (4,), (1, 1))
    with refused("not negative"):
        bench.call(views.from_foreign, p, (-4,), (1,))
    with refused("expected a tuple"):
        bench.call(views.from_foreign, p, 4, (1,))
    with refused("signed integer scalar"):
        bench.call(views.from_foreign, p, (4.0,), (1,))
    assert bench.call(views.from_foreign, p, (loose(4),), (1,)).type.index_dtype is dt.int32
