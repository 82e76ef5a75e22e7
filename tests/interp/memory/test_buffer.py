"""How elements of every format are read and written."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import dtypes as dt
from cutile.interp.memory import buffer
from cutile.interp.memory.array_view import array_at, wrap

FILL = np.float32(-99)


@pytest.mark.parametrize("dtype", [d for d in dt.NUMERIC if d is not dt.tfloat32], ids=str)
def test_every_format_goes_in_and_out(dtype):
    i = dt.info(dtype)
    bits = np.arange(16 if dtype.bitwidth == 4 else 64, dtype=f"u{i.storage.itemsize}")
    a = (bits % 2).astype(np.bool_) if dtype is dt.bool_ else bits.view(i.storage)
    out = np.zeros_like(a)
    origin = [np.arange(len(a) // 8, dtype=np.int32)]
    tile = wrap(a, dtype).tile(origin, (8,), (0,), 0)
    assert tile.dtype == i.carrier
    wrap(out, dtype).put(origin, tile, (8,), (0,))
    assert out.tobytes() == a.tobytes()
    gathered = wrap(a, dtype).gather([np.arange(8)], None, np.zeros(1, i.carrier), (8,))
    assert np.array_equal(gathered, tile[0], equal_nan=i.floating)


def test_read_only_halves_are_converted_once_per_launch():
    a = np.arange(64, dtype=np.float16)
    view = wrap(a, dt.float16)
    view.buffer.may_change = False
    origin = [np.arange(4, dtype=np.int32)]
    first = view.tile(origin, (16,), (0,), 0)
    second = view.tile(origin, (16,), (0,), 0)
    third = view.tile(origin, (16,), (0,), 0)
    assert np.array_equal(first, second) and np.shares_memory(second, third) and not third.flags.writeable
    assert third.dtype == np.float32 and third.ravel().tolist() == list(range(64))


@pytest.mark.parametrize("index", [np.int8, np.int32, np.int64, np.uint16])
def test_many_elements_are_taken_part_by_part(monkeypatch, index):
    monkeypatch.setattr(buffer, "AT_ONCE", 8)
    a = np.arange(100, dtype=np.float32)
    view = wrap(a, dt.float32)
    view.buffer.may_change = False
    i = np.random.default_rng(0).integers(0, 100, (3, 1, 1, 32)).astype(index)
    out = np.empty(i.shape, np.float32)
    assert view.gather([i], None, FILL, (32,), out) is out
    assert np.array_equal(out, a[i]) and np.array_equal(view.gather([i], None, FILL, (32,)), a[i])
    into = np.empty((64, 3), np.float32).T[:, None, None, ::2]  # not in one piece
    assert view.gather([i], None, FILL, (32,), into) is into and np.array_equal(into, a[i])


@pytest.mark.parametrize("wrong", [-1, 100, -2**31, 2**31 - 1])
@pytest.mark.parametrize("where", [0, 7, 8, 95])
def test_a_position_out_of_range_in_any_part(monkeypatch, wrong, where):
    monkeypatch.setattr(buffer, "AT_ONCE", 8)
    a = np.arange(1, 101, dtype=np.float32)
    view = wrap(a, dt.float32)
    view.buffer.may_change = False
    i = np.random.default_rng(0).integers(0, 100, (3, 1, 1, 32)).astype(np.int32)
    expected = a[i]
    i.reshape(-1)[where], expected.reshape(-1)[where] = wrong, FILL
    out = np.empty(i.shape, np.float32)
    assert np.array_equal(view.gather([i], None, FILL, (32,), out), expected)
    part = view.slice(0, np.asarray(0, np.int32), np.asarray(50, np.int32))
    assert np.array_equal(part.gather([i], None, FILL, (32,), out), np.where((i < 0) | (i >= 50), FILL, expected))


def test_foreign_memory_and_slices_that_differ_are_taken_by_their_own_way():
    a = np.arange(1, 101, dtype=np.float32)
    memory = wrap(a, dt.float32).buffer
    memory.may_change = False
    i, n = np.arange(8, dtype=np.int32).reshape(2, 1, 1, 4), [np.asarray(8, np.int32)]
    every = array_at([memory], 0, np.asarray(40, np.int64), n, [np.asarray(-1, np.int32)], dt.int32)
    begin = np.asarray([5, 50], np.int32).reshape(2, 1, 1)
    parts = wrap(a, dt.float32).slice(0, begin, begin + np.int32(6))
    parts.buffer.may_change = False
    for view, expected in ((every, 11 - i), (parts, np.where(i < 6, 1 + begin[..., None] + i, FILL))):
        out = np.empty(i.shape, np.float32)
        assert np.array_equal(view.gather([i], None, FILL, (4,), out), expected)


def test_memory_that_changes_is_never_cached_or_shared():
    a = np.zeros(4, np.float16)
    view = wrap(a, dt.float16)
    zero = [np.zeros((), np.int32)]
    for k in range(4):
        loaded = view.tile(zero, (4,), (0,), 0)
        view.put(zero, np.full(4, k + 1, np.float32), (4,), (0,))
        assert loaded.tolist() == [k] * 4


def test_fields_of_records_and_other_odd_strides():
    records = np.zeros(5, [("tag", "u1"), ("x", "<f4"), ("y", "<f8")])
    records["x"] = range(5)
    records["tag"] = 7
    view = wrap(records["x"], dt.float32)
    assert view.strides[0] == 13 // 4
    got = view.tile([np.arange(2, dtype=np.int32)], (4,), (0,), FILL)
    assert got.ravel().tolist() == [0, 1, 2, 3, 4, FILL, FILL, FILL]
    view.put([np.ones((), np.int32)], np.full(4, 9, np.float32), (4,), (0,))
    assert records["x"].tolist() == [0, 1, 2, 3, 9] and set(records["tag"].tolist()) == {7} and not records["y"].any()


def test_broadcast_and_empty_and_zero_rank_arrays():
    zero = np.zeros((), np.int32)
    same = np.broadcast_to(np.float32(3), (4, 4))
    assert wrap(same, dt.float32).tile([zero, zero], (4, 4), (0, 1), 0).tolist() == [[3] * 4] * 4
    empty = np.zeros((0, 4), np.float32)
    assert wrap(empty, dt.float32).tile([zero, zero], (2, 4), (0, 1), FILL).tolist() == [[FILL] * 4] * 2
    wrap(empty, dt.float32).put([zero, zero], np.ones((2, 4), np.float32), (2, 4), (0, 1))
    point = np.array(5.0, np.float32)
    view = wrap(point, dt.float32)
    assert view.tile([], (), (), 0) == 5 and view.shape == ()
    view.put([], np.array(6, np.float32), (), ())
    assert point == 6
    view.scatter([], np.array(7, np.float32), None, ())
    assert point == 7 and view.gather([], None, np.zeros(()), ()) == 7
    view.update("add", [], [np.ones((), np.float32)], None, (), (3,))
    assert point == 10


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("shape", [(), (5, 1), (3, buffer.ARGMAX_LIMIT // 2)])
def test_whether_indices_are_all_below(dtype, shape):
    least, most = np.iinfo(dtype).min, int(np.iinfo(dtype).max)
    for high in (-1, 0, 1, 7, most, most + 1, 1 << 63):
        for value in {least, -1, 0, 6, 7, most - 1, most} - ({-1} if least == 0 else set()):
            i = np.zeros(shape, dtype)
            i.reshape(-1)[-1] = value
            expected = high > 0 and 0 <= value < high
            assert buffer.all_below(i, high) is expected
            assert buffer.all_below(i.T[::-1] if shape else i, high) is expected
