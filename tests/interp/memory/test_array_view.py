"""Array descriptors, against a reference that moves one element of one block at a time."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import dtypes as dt
from cutile.interp.memory import tile_locations
from cutile.interp.memory.array_view import wrap
from tests.interp.layouts import batch_shapes, coordinates, layouts, per_block, same_place

FILL = np.float32(-99)
SETTINGS = settings(max_examples=60, deadline=None)


# ------------------------------------------------------------------ tiles


@st.composite
def cases(draw):
    base, a = draw(layouts())
    batch_shape = draw(batch_shapes())
    tile = tuple(draw(st.sampled_from([1, 2, 4, 8])) for _ in a.shape)
    order = tuple(draw(st.permutations(range(a.ndim))))
    steps = draw(st.one_of(st.none(), st.tuples(*[st.integers(1, 5)] * a.ndim)))
    origin = [draw(coordinates(batch_shape, -2, 5)) for _ in a.shape]
    bounds = None
    if draw(st.booleans()) and a.ndim:
        axis = draw(st.integers(0, a.ndim - 1))
        bounds = axis, draw(coordinates(batch_shape, -1, 5)), draw(coordinates(batch_shape, -1, 9))
    return base, a, batch_shape, tile, order, steps, origin, bounds


def elements(a, batch_shape, tile, order, steps, origin, bounds):
    """For each block, for each element of its tile: the coordinates of the array element, or None."""
    blocks = [per_block(o, batch_shape) for o in origin]
    limits = [(per_block(b, batch_shape) for b in bounds[1:])] if bounds else []
    limits = [list(x) for x in limits[0]] if bounds else None
    for n in range(int(np.prod(batch_shape))):
        out = {}
        for x in itertools.product(*map(range, tile)):
            at, inside = [0] * a.ndim, True
            for i, axis in enumerate(order):
                j = int(blocks[i][n])
                e = j * (steps or tile)[i] + x[i]
                size, start = a.shape[axis], 0
                if bounds and bounds[0] == axis:
                    start = int(limits[0][n])
                    size = int(limits[1][n]) - start
                inside &= j >= 0 and e < size and 0 <= start + e < a.shape[axis]
                at[axis] = start + e
            out[x] = tuple(at) if inside else None
        yield out


def view_of(a, bounds, **options):
    view = wrap(a, dt.float32, **options)
    return view.slice(*bounds) if bounds else view


@SETTINGS
@given(cases(), st.booleans())
def test_tile_reads_what_lies_there(case, may_change):
    base, a, batch_shape, tile, order, steps, origin, bounds = case
    view = view_of(a, bounds)
    view.buffer.may_change = may_change
    got = view.tile(origin, tile, order, FILL, steps)
    assert got.dtype == np.float32 and got.ndim in (len(tile), len(tile) + len(batch_shape))
    wanted = elements(a, batch_shape, tile, order, steps, origin, bounds)
    for block, want in zip(per_block(got, batch_shape, len(tile)), wanted):
        for x, at in want.items():
            assert block[x] == (FILL if at is None else a[at])
    if may_change:
        assert not np.shares_memory(got, base)
    else:
        assert not (np.shares_memory(got, base) and got.flags.writeable)


@SETTINGS
@given(cases())
def test_put_writes_its_own_elements_only(case):
    base, a, batch_shape, tile, order, steps, origin, bounds = case
    value = np.arange(1000, 1000 + int(np.prod(batch_shape + tile)), dtype=np.float32).reshape(batch_shape + tile)
    allowed: dict = {}
    wanted = elements(a, batch_shape, tile, order, steps, origin, bounds)
    for block, want in zip(per_block(value, batch_shape, len(tile)), wanted):
        for x, at in want.items():
            if at is not None:
                allowed.setdefault(at, []).append(block[x])
    before = base.copy()
    view_of(a, bounds).put(origin, value, tile, order, steps)
    for at in np.ndindex(a.shape):
        assert a[at] in allowed.get(at, [before.reshape(-1)[int(_flat(base, a, at))]])
    a[...] = 0
    untouched = before.copy()
    same_place(untouched, base, a)[...] = 0
    assert np.array_equal(base, untouched)


def _flat(base, a, at):
    address = a.__array_interface__["data"][0] + sum(s * i for s, i in zip(a.strides, at))
    return (address - base.__array_interface__["data"][0]) // base.itemsize


def test_blocks_that_store_to_one_place_leave_the_last():
    a = np.zeros(8, np.float32)
    value = np.arange(12, dtype=np.float32).reshape(3, 1, 1, 4)
    wrap(a, dt.float32).put([np.asarray(1, np.int32)], value, (4,), (0,))
    assert a.tolist() == [0] * 4 + [8, 9, 10, 11]


def test_interior_and_edges_need_no_index_arrays(monkeypatch):
    """Affine blocks are strided views, also where the last of them are cut."""
    monkeypatch.setattr(tile_locations, "IrregularTiles", None)
    a = np.arange(100 * 70, dtype=np.float32).reshape(100, 70)
    i, j = np.arange(9, dtype=np.int32).reshape(9, 1, 1), np.arange(4, dtype=np.int32).reshape(1, 4, 1)
    got = wrap(a, dt.float32).tile([i, j], (16, 32), (0, 1), FILL)
    padded = np.full((144, 128), FILL)
    padded[:100, :70] = a
    assert np.array_equal(got[:, :, 0], padded.reshape(9, 16, 4, 32).swapaxes(1, 2))


# ------------------------------------------------------------------ wrap


def test_wrap_takes_what_exports_its_memory():
    class Exporter:
        def __init__(self, a):
            self.a = a
            self.__array_interface__ = a.__array_interface__

    a = np.arange(4, dtype=np.uint16)
    view = wrap(Exporter(a), dt.bfloat16)
    assert view.buffer.array.dtype == ml_dtypes.bfloat16 and np.shares_memory(view.buffer.array, a)
    with pytest.raises(TypeError, match="no array"):
        wrap([1, 2], dt.int32)
    with pytest.raises(TypeError, match="does not hold float32"):
        wrap(np.zeros(3), dt.float32)


def test_wrap_checks_the_index_dtype():
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (1 << 31,), (0,))
    with pytest.raises(OverflowError, match=r"size of array 'x'.*IndexedWithInt64"):
        wrap(huge, dt.int8, name="x")
    assert wrap(huge, dt.int8, dt.int64).shape[0] == 1 << 31


def test_wrap_knows_read_only_arrays():
    a = np.zeros(3, np.float32)
    a.flags.writeable = False
    view = wrap(a, dt.float32, name="weights")
    assert not view.writable and view.name == "weights"
    assert wrap(np.zeros(3, np.float32), dt.float32).writable
    with pytest.raises(ValueError, match="read-only"):
        view.put([np.zeros((), np.int32)], np.ones(2, np.float32), (2,), (0,))
    with pytest.raises(ValueError, match="read-only"):
        view.scatter([np.arange(2)], np.ones(2, np.float32), None, (2,))


def test_shape_and_strides_are_carriers_of_the_index_dtype():
    view = wrap(np.zeros((3, 5), np.float32).T, dt.float32, dt.int64)
    assert [x.dtype for x in (*view.shape, *view.strides)] == [np.int64] * 4
    assert [int(x) for x in (*view.shape, *view.strides)] == [5, 3, 1, 5]
