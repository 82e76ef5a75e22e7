"""Loads, stores, gather, scatter and advanced indexing: what they accept, and what they move."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cutile import dtypes as dt
from cutile import settings
from cutile.errors import TileTypeError, TileValueError
from cutile.interp.memory.array_view import wrap
from cutile.interp.memory.per_block_array import ArrayList
from cutile.ir.terms import Const, IndexSlice
from cutile.ops import memory
from cutile.ops._access import fill_of
from cutile.ops._constants import loose
from cutile.types import ArrayType, ListType, MemoryOrder, MemoryScope, PaddingMode, TileType
from tests.ops.ruling import NONE, Bench, constant_of

WEAK, RELAXED, ACQUIRE, RELEASE = MemoryOrder.WEAK, MemoryOrder.RELAXED, MemoryOrder.ACQUIRE, MemoryOrder.RELEASE


@pytest.fixture
def bench():
    return Bench()


def matrix(rows=4, cols=8, dtype=dt.float32):
    return np.arange(rows * cols).reshape(rows, cols).astype(dt.info(dtype).storage)


def param(bench, a, dtype=None, index_dtype=dt.int32, **static):
    dtype = dtype or dt.of_storage(a.dtype)
    return bench.given(wrap(a, dtype, index_dtype), ArrayType(dtype, a.ndim, index_dtype, **static))


def refused(match, cls=TileTypeError):
    return pytest.raises(cls, match=match)


# ------------------------------------------------------------------ load


def test_load_takes_a_tile(bench):
    a = matrix()
    x = bench.call(memory.load, param(bench, a), index=(1, bench.tile(1, dt.int64)), shape=(2, 4))
    assert x.type == TileType(dt.float32, (2, 4))
    assert np.array_equal(bench.value(x), a[2:4, 4:8])


def test_load_scalars_and_rank_zero(bench):
    a = matrix()
    x = bench.call(memory.load, param(bench, a), (3, 5), ())
    assert x.type == TileType(dt.float32) and bench.value(x) == a[3, 5]
    point = bench.call(memory.load, param(bench, np.array(7, np.int8)), (), ())
    assert point.type == TileType(dt.int8) and bench.value(point) == 7
    vector = bench.call(memory.load, param(bench, np.arange(8, dtype=np.int16)), 1, 4)
    assert bench.value(vector).tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize(("order", "want"), [("C", (0, 1)), ("F", (1, 0)), ((1, 0), (1, 0)), ((-1, 0), (1, 0))])
def test_load_order(bench, order, want):
    a = matrix()
    x = bench(memory.load, param(bench, a), (1, 0), (2, 4), order=order)
    t = a.transpose(want)
    assert np.array_equal(x, t[2:4, 0:4])


@pytest.mark.parametrize("order", ["A", (0, 0), (0,), (0, 2)])
def test_load_refuses_orders(bench, order):
    with refused('Invalid argument "order" of load'):
        bench.call(memory.load, param(bench, matrix()), (0, 0), (2, 4), order=order)


@pytest.mark.parametrize(("mode", "want"), [
    ("ZERO", 0.0), ("NEG_ZERO", -0.0), ("NAN", math.nan), ("POS_INF", math.inf), (PaddingMode.NEG_INF, -math.inf),
    ("UNDETERMINED", 0.0)])
@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16, dt.float32, dt.float64], ids=str)
def test_load_pads(bench, mode, want, dtype):
    a = matrix(3, 3, dtype)
    x = bench(memory.load, param(bench, a), (0, 0), (4, 4), padding_mode=mode)
    assert np.array_equal(x[:3, :3], a.astype(np.float64))
    pad = np.concatenate([x[3], x[:, 3]]).astype(np.float64)
    assert np.array_equal(pad, np.full(8, want), equal_nan=True)
    assert set(np.signbit(pad)) == {math.copysign(1, want) < 0}


def test_poisoned_padding():
    with settings.override(UNDETERMINED="poison"):
        assert math.isnan(fill_of(PaddingMode.UNDETERMINED, dt.float16))
        assert fill_of(PaddingMode.UNDETERMINED, dt.int16) == -32768
        assert fill_of(PaddingMode.UNDETERMINED, dt.uint8) == 0
        assert fill_of(PaddingMode.UNDETERMINED, dt.float4_e2m1fn) == -6
        assert fill_of(PaddingMode.ZERO, dt.float16) == 0


def test_padding_of_formats():
    assert fill_of(PaddingMode.ZERO, dt.float8_e8m0fnu) == 2.0**-127
    assert fill_of(PaddingMode.NEG_INF, dt.float8_e5m2) == -math.inf
    assert math.isnan(fill_of(PaddingMode.NAN, dt.float8_e8m0fnu))


@pytest.mark.parametrize(("dtype", "mode", "what", "lowest"), [
    (dt.float8_e4m3fn, "POS_INF", "infinity", "from -448 to 448"),
    (dt.float8_e4m3fn, "NEG_INF", "infinity", "from -448 to 448"),
    (dt.float4_e2m1fn, "NEG_INF", "infinity", "from -6 to 6"), (dt.float4_e2m1fn, "NAN", "NaN", "from -6 to 6"),
    (dt.float8_e8m0fnu, "NEG_ZERO", "negative zero", "from 5.87747e-39"),
    (dt.float8_e8m0fnu, "NEG_INF", "infinity", "from 5.87747e-39")])
def test_padding_that_a_format_lacks_is_refused(bench, dtype, mode, what, lowest):
    with refused(f"{dtype.name} has no {what}, so an array of it has no PaddingMode.{mode}") as e:
        bench.call(memory.load, param(bench, matrix(dtype=dtype)), (0, 0), (2, 2), padding_mode=mode)
    assert "ct.where" in e.value.help and lowest in e.value.help


def test_special_padding_of_integers_is_refused(bench):
    with refused("PaddingMode.NAN needs a float array, but this one holds int32") as e:
        bench.call(memory.load, param(bench, matrix(dtype=dt.int32)), (0, 0), (2, 2), padding_mode="NAN")
    assert "ZERO" in e.value.help
    with refused("padding_mode"):
        bench.call(memory.load, param(bench, matrix()), (0, 0), (2, 2), padding_mode="nan")


def test_negative_tile_index_reads_padding(bench):
    x = bench(memory.load, param(bench, matrix()), (-1, 0), (2, 4), padding_mode="NAN")
    assert np.isnan(x).all()


def test_wide_index_is_truncated_for_an_int32_array(bench):
    a = np.arange(8, dtype=np.int32)
    wide = bench.tile((1 << 32) + 1, dt.int64)
    assert bench(memory.load, param(bench, a), wide, 4).tolist() == [4, 5, 6, 7]
    assert bench(memory.load, param(bench, a, index_dtype=dt.int64), wide, 4).tolist() == [0, 0, 0, 0]


def test_rank_mismatches_say_what_to_write(bench):
    a = param(bench, matrix())
    with refused("1 index for an array of rank 2") as e:
        bench.call(memory.load, a, (0,), (2, 4))
    assert "index=(i, j)" in e.value.help
    with refused("expected a tuple of 2 signed integer scalars, got constant 0"):
        bench.call(memory.load, a, 0, (2, 4))
    with refused(r"tile shape \(4,\) has rank 1, but the array has rank 2") as e:
        bench.call(memory.load, a, (0, 0), (4,))
    assert "shape=(1, 4)" in e.value.help and "ct.reshape" in e.value.help
    with refused("has rank 3, but the array has rank 2"):
        bench.call(memory.load, a, (0, 0), (1, 2, 4))
    with refused("positive power of two, got 3") as e:
        bench.call(memory.load, a, (0, 0), (3, 4))
    assert "use 4" in e.value.help
    with refused("expected an array, got float32 tile") as e:
        bench.call(memory.load, bench.tile([1.0], dt.float32), (0,), (1,))
    with refused("rank 0"):
        bench.call(memory.load, param(bench, np.array(1.0)), (), 4)


@pytest.mark.parametrize("bad", [True, 1.0, None, "x", (0,)])
def test_index_kinds(bench, bad):
    with refused("expected a signed integer scalar at position 0"):
        bench.call(memory.load, param(bench, matrix()), (bad, 0), (2, 4))


def test_index_tiles_and_unsigned(bench):
    a = param(bench, matrix())
    with refused("signed integer scalar at position 1, got uint32 scalar") as e:
        bench.call(memory.load, a, (0, bench.tile(0, dt.uint32)), (2, 4))
    assert "astype" in e.value.help
    with refused("signed integer scalar at position 1") as e:
        bench.call(memory.load, a, (0, bench.tile([0], dt.int32)), (2, 4))
    assert "x.item()" in e.value.help


def test_hints(bench):
    a = param(bench, matrix())
    bench.call(memory.load, a, (0, 0), (2, 4), latency=10, allow_tma=False, check_bounds=False)
    assert bench.b.region.nodes[-1].attrs["latency"] == 10
    for bad in (0, 11):
        with refused("latency", TileValueError):
            bench.call(memory.load, a, (0, 0), (2, 4), latency=bad)
    for bad in (True, 1.0, bench.tile(3, dt.int32)):
        with refused("latency"):
            bench.call(memory.load, a, (0, 0), (2, 4), latency=bad)
    with refused("allow_tma"):
        bench.call(memory.load, a, (0, 0), (2, 4), allow_tma=1)
    with refused("check_bounds"):
        bench.call(memory.load, a, (0, 0), (2, 4), check_bounds=None)


@pytest.mark.parametrize(("order", "scope", "ok"), [
    (WEAK, MemoryScope.NONE, True), (RELAXED, MemoryScope.DEVICE, True), ("ACQUIRE", "SYS", True),
    (RELAXED, MemoryScope.NONE, False), (WEAK, MemoryScope.DEVICE, False), (RELEASE, MemoryScope.DEVICE, False),
    (RELAXED, MemoryScope.CLUSTER, False), (None, MemoryScope.NONE, False), (MemoryOrder.ACQ_REL, "DEVICE", False)])
def test_load_orders_and_scopes(bench, order, scope, ok):
    a = param(bench, matrix())
    if ok:
        bench.call(memory.load, a, (0, 0), (2, 4), memory_order=order, memory_scope=scope)
    else:
        with refused("memory_(order|scope)"):
            bench.call(memory.load, a, (0, 0), (2, 4), memory_order=order, memory_scope=scope)


def test_an_order_without_scope_says_so(bench):
    with refused("MemoryOrder.ACQUIRE cannot go with MemoryScope.NONE") as e:
        bench.call(memory.load, param(bench, matrix()), (0, 0), (2, 4), memory_order="ACQUIRE")
    assert "memory_scope=ct.MemoryScope.DEVICE" in e.value.help


# ------------------------------------------------------------------ store


def test_store_casts_and_drops_the_edge(bench):
    a = np.zeros((3, 6), np.float16)
    assert bench(memory.store, param(bench, a), (1, 1), bench.tile(np.full((2, 4), 5), dt.int32)) is None
    want = np.zeros((3, 6), np.float16)
    want[2:, 4:] = 5
    assert np.array_equal(a, want)


def test_store_scalars(bench):
    a = np.zeros((2, 2), np.int64)
    bench(memory.store, param(bench, a), (1, 0), 9)
    assert a.tolist() == [[0, 0], [9, 0]]
    point = np.array(0.0, np.float32)
    bench(memory.store, param(bench, point), (), 2.5)
    assert point == 2.5


def test_store_order(bench):
    a = np.zeros((4, 2), np.float32)
    bench(memory.store, param(bench, a), (0, 1), bench.tile([[1, 2], [3, 4]], dt.float32), order="F")
    assert a.tolist() == [[0, 0], [0, 0], [1, 3], [2, 4]]


def test_store_takes_relaxed_and_release_only(bench):
    a = param(bench, np.zeros(4, np.float32))
    bench.call(memory.store, a, 0, 1.0, memory_order="RELEASE", memory_scope="BLOCK")
    with refused("memory_order"):
        bench.call(memory.store, a, 0, 1.0, memory_order="ACQUIRE", memory_scope="BLOCK")


def test_store_refusals(bench):
    a = param(bench, np.zeros((4, 4), np.float16))
    with refused("float32 tile of shape .* cannot be converted implicitly .* to store into a float16 array") as e:
        bench.call(memory.store, a, (0, 0), bench.tile(np.zeros((2, 2)), dt.float32))
    assert "astype(ct.float16)" in e.value.help
    with refused(r"a tile of shape \(4,\) has rank 1, but the array has rank 2") as e:
        bench.call(memory.store, a, (0, 0), bench.tile(np.zeros(4), dt.float16))
    assert "ct.reshape(tile, (1, 4))" in e.value.help
    for bad in (NONE, (1, 2), a):
        with refused('"tile" of store'):
            bench.call(memory.store, a, (0, 0), bad)
    with refused("does not fit uint8", TileValueError):
        bench.call(memory.store, param(bench, np.zeros(4, np.uint8)), 0, 300)


# ------------------------------------------------------------------ gather and scatter


def test_gather_broadcasts_indices(bench):
    a = matrix()
    rows, cols = bench.tile([[0], [9]], dt.int8), bench.tile([1, -1], dt.int64)
    x = bench.call(memory.gather, param(bench, a), (rows, cols), padding_value=-5)
    assert x.type == TileType(dt.float32, (2, 2))
    assert bench.value(x).tolist() == [[1, -5], [-5, -5]]


def test_gather_mask_and_padding_tile(bench):
    a = np.arange(8, dtype=np.int16)
    mask = bench.tile([True, False], dt.bool_)
    x = bench(memory.gather, param(bench, a), bench.tile([[0, 1], [2, 300]], dt.uint64), mask=mask,
              padding_value=bench.tile([[-1], [-2]], dt.int8))
    assert x.tolist() == [[0, -1], [2, -2]]


def test_gather_default_padding_is_zero_and_wide_indices_never_wrap(bench):
    a = np.arange(1, 9, dtype=np.int32)
    for value, dtype in ((-1, dt.int8), (1 << 32, dt.int64), ((1 << 64) - 8, dt.uint64), (255, dt.uint8)):
        assert bench(memory.gather, param(bench, a), bench.tile([value, 3], dtype)).tolist() == [0, 4]


def test_gather_with_blocks_and_a_scalar_padding_per_block():
    bench = Bench()
    a = np.arange(8, dtype=np.float32)
    i = bench.tile(np.array([[0, 9], [1, 2]]).reshape(2, 1, 1, 2), dt.int32, shape=(2,))
    pad = bench.tile(np.array([-1, -2]).reshape(2, 1, 1), dt.float32, shape=())
    assert bench(memory.gather, param(bench, a), i, padding_value=pad).reshape(2, 2).tolist() == [[0, -1], [1, 2]]


def test_gather_scalar_and_rank_zero(bench):
    x = bench.call(memory.gather, param(bench, np.arange(4.0)), 2)
    assert x.type == TileType(dt.float64) and bench.value(x) == 2
    assert bench(memory.gather, param(bench, np.array(3.0)), ()) == 3


def test_gather_refusals(bench):
    a, v = param(bench, matrix()), param(bench, np.arange(4, dtype=np.int32))
    one = bench.tile([1], dt.int32)
    with refused("an array of rank 2 needs a tuple of 2 integer tiles, got int32 tile"):
        bench.call(memory.gather, a, one)
    with refused("needs a tuple of 2 integer tiles, got 1 of them"):
        bench.call(memory.gather, a, (one,))
    with refused("expected an integer tile or scalar at position 1, got float32 tile") as e:
        bench.call(memory.gather, a, (one, bench.tile([1], dt.float32)))
    assert "astype" in e.value.help
    with refused("expected an integer tile or scalar at position 0"):
        bench.call(memory.gather, v, bench.tile([True], dt.bool_))
    with refused("cannot be broadcast together"):
        bench.call(memory.gather, a, (bench.tile([1, 2], dt.int32), bench.tile([1, 2, 3, 4], dt.int32)))
    with refused("expected a bool_ tile or None"):
        bench.call(memory.gather, v, one, mask=1)
    with refused("cannot be broadcast"):
        bench.call(memory.gather, v, one, mask=bench.tile([True, False], dt.bool_))
    with refused("expected a tile or scalar, got None|got None"):
        bench.call(memory.gather, v, one, padding_value=NONE)
    with refused("float constant 1.5 cannot be converted implicitly to int32"):
        bench.call(memory.gather, v, one, padding_value=1.5)
    with refused("cannot be broadcast"):
        bench.call(memory.gather, v, one, padding_value=bench.tile([1, 2], dt.int32))


def test_scatter(bench):
    a = np.zeros(6, np.float16)
    i = bench.tile([0, 3, 3, 7], dt.int32)
    assert bench(memory.scatter, param(bench, a), i, bench.tile([1, 2, 3, 4], dt.float16)) is None
    assert a.tolist() == [1, 0, 0, 3, 0, 0]
    bench(memory.scatter, param(bench, a), i, 9, mask=bench.tile([True, False, False, True], dt.bool_))
    assert a.tolist() == [9, 0, 0, 3, 0, 0]
    with refused("cannot be broadcast"):
        bench.call(memory.scatter, param(bench, a), i, bench.tile([1, 2], dt.float16))
    with refused("cannot be converted implicitly"):
        bench.call(memory.scatter, param(bench, a), i, bench.tile([1], dt.float32))


def test_scatter_of_one_value_by_all_blocks():
    bench = Bench()
    a = np.zeros(4, np.int32)
    value = bench.tile(np.arange(3).reshape(3, 1, 1, 1), dt.int32, shape=(1,))
    bench(memory.scatter, param(bench, a), bench.tile([2], dt.int32), value)
    assert a.tolist() == [0, 0, 2, 0]


# ------------------------------------------------------------------ advanced indexing


def test_advanced_indexing_reads_rows(bench):
    a = matrix()
    rows = bench.tile([3, 0, -1, 4], dt.int64)
    part = bench.call(memory.Slice, bench.tile(6, dt.int32), 4)
    assert isinstance(part, IndexSlice)
    x = bench.call(memory.load_advanced_indexing, param(bench, a), (rows, part), padding_mode="NAN")
    assert x.type == TileType(dt.float32, (4, 4))
    nan = math.nan
    want = [[30, 31, nan, nan], [6, 7, nan, nan], [nan] * 4, [nan] * 4]
    assert np.array_equal(bench.value(x), want, equal_nan=True)
    columns = bench.call(memory.Slice, 1, 2), bench.tile([7, 2], dt.uint8)
    y = bench(memory.load_advanced_indexing, param(bench, a), columns)
    assert y.tolist() == [[15, 10], [23, 18]]


def test_advanced_indexing_writes(bench):
    a = np.zeros((4, 4), np.float32)
    rows, part = bench.tile([2, 9, 2, 0], dt.int32), bench.call(memory.Slice, 3, 2)
    tile = bench.tile(np.arange(8).reshape(4, 2), dt.float32)
    assert bench(memory.store_advanced_indexing, param(bench, a), (rows, part), tile) is None
    assert a[:, 3].tolist() == [6, 0, 4, 0] and not a[:, :3].any()


def test_advanced_indexing_refusals(bench):
    a = param(bench, matrix())
    rows, part = bench.tile([0, 1], dt.int32), bench.call(memory.Slice, 0, 4)
    load = memory.load_advanced_indexing
    with refused("rank 2 or more"):
        bench.call(load, param(bench, np.zeros(4)), (rows,))
    for bad in (rows, (rows,), (rows, part, part)):
        with refused("expected a tuple of 2 entries"):
            bench.call(load, a, bad)
    for bad in ((rows, rows), (part, part)):
        with refused("exactly one 1-D integer tile"):
            bench.call(load, a, bad)
    with refused("at position 0, got constant 1") as e:
        bench.call(load, a, (1, part))
    assert "ct.Slice(i, 1)" in e.value.help
    for bad in (bench.tile([[0]], dt.int32), bench.tile([0.0], dt.float32)):
        with refused("at position 0"):
            bench.call(load, a, (bad, part))
    for bad in (0, 3, -4):
        with refused("positive power of two"):
            bench.call(load, a, (rows, bench.call(memory.Slice, 0, bad)))
    with refused("integer constant"):
        bench.call(load, a, (rows, bench.call(memory.Slice, 0, bench.tile(4, dt.int32))))
    with refused('"start" of Slice'):
        bench.call(memory.Slice, bench.tile(0, dt.uint32), 4)
    with refused(r"elements of shape \(2, 4\), but the tile has shape \(\)"):
        bench.call(memory.store_advanced_indexing, a, (rows, part), 1.0)


# ------------------------------------------------------------------ arrays and lists


def test_sizes_and_strides(bench):
    a = np.zeros((3, 5), np.float32)
    leaf = param(bench, a, index_dtype=dt.int64, static_shape=(None, 5), static_strides=(None, 1))
    shape, strides = memory.array_shape(bench.b, leaf), memory.array_strides(bench.b, leaf)
    assert shape.items[1].same(Const(5, dt.int64, loose=False))  # strict, as a run-time size is
    assert shape.items[0].type == TileType(dt.int64)
    assert bench.value(shape.items[0]) == 3 and bench.value(strides.items[0]) == 5
    assert strides.items[1].value == 1


def test_lists(bench):
    arrays = [np.arange(k, k + 4, dtype=np.float32) for k in (0, 10)]
    views = ArrayList(wrap(a, dt.float32) for a in arrays)
    element = ArrayType(dt.float32, 1)
    leaf = bench.given(views, ListType(element))
    assert bench.value(memory.list_len(bench.b, leaf)) == 2
    item = memory.list_item(bench.b, leaf, bench.tile(np.array([1, 0]).reshape(2, 1, 1), dt.uint8, shape=()))
    assert item.type == element
    assert bench(memory.load, item, 0, 2).reshape(2, 2).tolist() == [[10, 11], [0, 1]]
    with refused("integer scalar, got constant 1.0"):
        memory.list_item(bench.b, leaf, loose(1.0))
    with refused("negative", TileValueError):
        memory.list_item(bench.b, leaf, constant_of(-1, dt.int32))
