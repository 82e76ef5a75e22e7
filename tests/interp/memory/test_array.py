"""Accesses that arrays make of their primitives: positions along one axis, and updates of tiles."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import dtypes as dt
from cutile.interp.memory.array_view import wrap
from tests.interp.layouts import batch_shapes, coordinates, layouts, per_block, same_place

FILL = np.float32(-99)
SETTINGS = settings(max_examples=60, deadline=None)


@SETTINGS
@given(layouts(2), batch_shapes(), st.data())
def test_rows(layout, batch_shape, data):
    base, a = layout
    axis = data.draw(st.integers(0, a.ndim - 1))
    shape = tuple(data.draw(st.sampled_from([1, 2, 4])) for _ in a.shape)
    varies = batch_shape if data.draw(st.booleans()) else ()
    count = int(np.prod(varies)) * shape[axis]
    sparse = np.array([data.draw(st.integers(-2, 10)) for _ in range(count)], np.int32).reshape((*varies, shape[axis]))
    starts = [data.draw(coordinates(batch_shape, -2, 8)) for _ in range(a.ndim - 1)]
    got = wrap(a, dt.float32).rows(axis, sparse, starts, shape, FILL)
    value = np.arange(1000, 1000 + int(np.prod(batch_shape + shape)), dtype=np.float32).reshape(batch_shape + shape)
    begins = [per_block(s, batch_shape) for s in starts]
    places = per_block(sparse, batch_shape, 1)
    allowed: dict = {}
    for n, block in enumerate(per_block(got, batch_shape, a.ndim)):
        for x in np.ndindex(shape):
            others = iter(begins)
            first = [int(places[n][x[k]] if k == axis else next(others)[n]) for k in range(a.ndim)]
            at = tuple(c if k == axis else c + x[k] for k, c in enumerate(first))
            inside = min(first) >= 0 and all(c < s for c, s in zip(at, a.shape))
            assert block[x] == (a[at] if inside else FILL)
            if inside:
                allowed.setdefault(at, []).append(per_block(value, batch_shape, a.ndim)[n][x])
    before = base.copy()
    old = same_place(before, base, a).copy()
    wrap(a, dt.float32).put_rows(axis, sparse, starts, value, shape)
    for at in np.ndindex(a.shape):
        assert a[at] in allowed.get(at, [old[at]])
    a[...] = 0
    same_place(before, base, a)[...] = 0
    assert np.array_equal(base, before)


@SETTINGS
@given(layouts(1), batch_shapes(), st.data())
def test_update_tile(layout, batch_shape, data):
    """Each block adds to its tile once, also where tiles meet."""
    base, a = layout
    shape = tuple(data.draw(st.sampled_from([1, 2, 4])) for _ in a.shape)
    steps = tuple(data.draw(st.integers(1, 4)) for _ in a.shape)
    origin = [data.draw(coordinates(batch_shape, -2, 4)) for _ in a.shape]
    update = np.arange(1, 1 + int(np.prod(batch_shape + shape)), dtype=np.float32).reshape(batch_shape + shape)
    want = base.copy()
    target = same_place(want, base, a)
    begins = [per_block(j, batch_shape) for j in origin]
    for n, block in enumerate(per_block(update, batch_shape, a.ndim)):
        for x in np.ndindex(shape):
            tile = [int(b[n]) for b in begins]
            at = tuple(j * s + k for j, s, k in zip(tile, steps, x))
            if min(tile) >= 0 and all(c < size for c, size in zip(at, a.shape)):
                target[at] += block[x]
    wrap(a, dt.float32).update_tile("add", origin, update, shape, steps, batch_shape)
    assert np.array_equal(base, want)
