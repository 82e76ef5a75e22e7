"""Atomic updates by index, by offset and by tile."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from cutile import dtypes as dt
from cutile.errors import TileTypeError, TileValueError
from cutile.interp.memory.array_view import wrap
from cutile.ops import atomics, views
from cutile.ops._op import lookup
from cutile.types import ArrayType, TileType
from tests.ops.ruling import NONE, Bench

RESULTS = {"xchg": 6, "add": 16, "max": 10, "min": 6, "and": 2, "or": 14, "xor": 12}  # 10 with 6


@pytest.fixture
def bench():
    return Bench(SimpleNamespace(batch_shape=()))


def param(bench, a):
    dtype = dt.of_storage(a.dtype)
    return bench.given(wrap(a, dtype), ArrayType(dtype, a.ndim))


def refused(match, cls=TileTypeError):
    return pytest.raises(cls, match=match)


@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.parametrize("dtype", atomics.INTS, ids=str)
def test_each_kind_by_each_way(bench, kind, dtype):
    a = np.full(6, 10, dt.info(dtype).storage)
    array = param(bench, a)
    six = bench.tile(6, dtype)
    old = bench.call(lookup(f"atomic_{kind}"), array, bench.tile([0, 7], dt.int32), six)
    assert old.type == TileType(dtype, (2,)) and bench.value(old).tolist() == [10, 0]
    raw = bench.call(views.get_raw_memory, array)
    mask = bench.tile([True, False, True], dt.bool_)
    old = bench(lookup(f"atomic_{kind}_offset"), raw, bench.tile([1, 2, 9], dt.int64), six, mask=mask)
    assert old.tolist() == [10, 0, 0]
    changed = 2
    if kind != "xchg":
        view = bench.call(views.tiled_view, array, 4)
        assert bench(lookup(f"view_atomic_store_{kind}"), view, 1, six) is None
        changed = 4
    want = [RESULTS[kind]] * 2 + [10, 10] + [RESULTS[kind] if changed == 4 else 10] * 2
    assert a.tolist() == want


@pytest.mark.parametrize("kind", [*RESULTS, "cas"])
def test_array_dtypes(bench, kind):
    allowed = {"xchg": 6, "cas": 6, "add": 8}.get(kind, 4)
    accepted = []
    for d in dt.NUMERIC[:13]:
        array = bench.given(None, ArrayType(d, 1))
        values = (bench.tile(1, d),) * (2 if kind == "cas" else 1)
        try:
            bench.call(lookup(f"atomic_{kind}"), array, 0, *values)
            accepted.append(d)
        except TileTypeError as e:
            assert f"Unsupported array dtype {d.name}" in e.message and "int32, uint32" in e.help
    assert len(accepted) == allowed and set(atomics.INTS) <= set(accepted)


def test_duplicates_see_each_other_in_order(bench):
    a = np.zeros(3, np.float32)
    old = bench(atomics.atomic_add, param(bench, a), bench.tile([1, 1, 0, 1], dt.int32), 2.0)
    assert a.tolist() == [2, 6, 0] and old.tolist() == [0, 2, 0, 4]


def test_each_running_block_acts():
    bench = Bench(SimpleNamespace(batch_shape=(4, 1, 2)))
    a = np.zeros(2, np.int64)
    old = bench(atomics.atomic_add, param(bench, a), (1,), 1)
    assert a.tolist() == [0, 8] and old.shape == (4, 1, 2) and old.ravel().tolist() == list(range(8))
    view = bench.call(views.tiled_view, param(bench, a), 2)
    bench(atomics.view_atomic_store_add, view, 0, 1)
    assert a.tolist() == [8, 16]


def test_an_unused_result_need_not_be_made():
    bench = Bench(SimpleNamespace(batch_shape=(3,)))
    a = np.zeros(2, np.int32)
    bench.call(atomics.atomic_add, param(bench, a), bench.tile([0, 1], dt.int32), 1)
    node = bench.b.region.nodes[-1]
    assert node.attrs["want_old"] is True
    node.attrs["want_old"] = False
    assert bench.value(bench.call(atomics.atomic_add, param(bench, a), bench.tile([0], dt.int32), 1)).shape == (3, 1)
    assert a.tolist() == [6, 3]


def test_compare_and_swap(bench):
    a = np.array([1, 2, 3], np.int32)
    index, expected = bench.tile([0, 1, 5], dt.int32), bench.tile([1, 7, 8], dt.int32)
    old = bench(atomics.atomic_cas, param(bench, a), index, expected, 9)
    assert a.tolist() == [9, 2, 3] and old.tolist() == [1, 2, 8]
    raw = bench.call(views.get_raw_memory, param(bench, a))
    mask = bench.tile([True, False], dt.bool_)
    old = bench(atomics.atomic_cas_offset, raw, bench.tile([2, 1], dt.int32), 3, 0, mask=mask)
    assert a.tolist() == [9, 2, 0] and old.tolist() == [3, 3]


def test_implicit_casts(bench):
    half = param(bench, np.zeros(2, np.float16))
    bench.call(atomics.atomic_add, half, 0, 1.5)
    with refused("cannot be converted implicitly to float16 to update a float16 array"):
        bench.call(atomics.atomic_add, half, 0, bench.tile(1, dt.float32))
    with refused("does not fit uint32", TileValueError):
        bench.call(atomics.atomic_add, param(bench, np.zeros(2, np.uint32)), 0, -1)
    with refused("expected dtype int64, that of the array, got constant 1 of dtype int32") as e:
        bench.call(atomics.atomic_and, param(bench, np.zeros(2, np.int64)), 0, 1)
    assert "ct.int64(1)" in e.value.help
    with refused("cannot be broadcast"):
        bench.call(atomics.atomic_add, half, bench.tile([0, 1], dt.int32), bench.tile([1, 2, 3, 4], dt.float16))
    assert "mask" not in atomics.atomic_add.__signature__.parameters
    with refused("got None"):
        bench.call(atomics.atomic_add, half, 0, NONE)


def test_memory_arguments(bench):
    a = param(bench, np.zeros(2, np.int32))
    bench.call(atomics.atomic_add, a, 0, 1, memory_order="RELAXED", memory_scope="SYS")
    for bad in ({"memory_order": "WEAK"}, {"memory_scope": "NONE"}, {"memory_scope": "CLUSTER"},
                {"memory_order": None}):
        with refused("memory_(order|scope)"):
            bench.call(atomics.atomic_add, a, 0, 1, **bad)


def test_wide_integers_wrap(bench):
    a = np.array([2**63 - 1], np.int64)
    old = bench(atomics.atomic_add, param(bench, a), bench.tile([0, 0], dt.int32), 1)
    assert a[0] == -2**63 + 1 and old.tolist() == [2**63 - 1, -2**63]
