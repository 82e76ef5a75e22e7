"""Elements at tiles of indices, against a reference that moves one element of one block at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import dtypes as dt
from cutile.interp.memory.array_view import wrap
from tests.interp.layouts import batch_shapes, layouts, per_block, same_place

FILL = np.float32(-99)
SETTINGS = settings(max_examples=60, deadline=None)


@st.composite
def index_cases(draw):
    base, a = draw(layouts(0))
    batch_shape = draw(batch_shapes())
    core = tuple(draw(st.sampled_from([1, 2, 4])) for _ in range(draw(st.integers(0, 2))))
    dtype = draw(st.sampled_from([np.int8, np.int32, np.int64, np.uint64]))

    def tile():
        shape = (batch_shape if draw(st.booleans()) else ()) + core
        count = int(np.prod(shape))
        return np.array([draw(st.integers(-2, 10)) for _ in range(count)]).astype(dtype).reshape(shape)

    indices = [tile() for _ in a.shape]
    mask = None
    if draw(st.booleans()):
        mask = np.array([draw(st.booleans()) for _ in range(int(np.prod(core)))]).reshape(core)
    return base, a, batch_shape, core, indices, mask


def index_elements(a, batch_shape, core, indices, mask):
    """Per block and element of the index tiles: coordinates, or None where nothing is there."""
    flat = [per_block(i, batch_shape, len(core)) for i in indices]
    for n in range(int(np.prod(batch_shape))):
        for x in np.ndindex(core):
            at = tuple(int(i[n][x]) for i in flat)
            ok = all(0 <= c < s for c, s in zip(at, a.shape)) and (mask is None or mask[x])
            yield n, x, at if ok else None


@SETTINGS
@given(index_cases())
def test_gather(case):
    base, a, batch_shape, core, indices, mask = case
    fill = np.arange(-1, -1 - int(np.prod(core)), -1, dtype=np.float32).reshape(core)
    got = wrap(a, dt.float32).gather(indices, mask, fill, core)
    assert got.dtype == np.float32
    blocks = per_block(got, batch_shape, len(core))
    for n, x, at in index_elements(a, batch_shape, core, indices, mask):
        assert blocks[n][x] == (fill[x] if at is None else a[at])


@SETTINGS
@given(index_cases())
def test_scatter_leaves_the_last_value(case):
    base, a, batch_shape, core, indices, mask = case
    value = np.arange(1000, 1000 + int(np.prod(batch_shape + core)), dtype=np.float32).reshape(batch_shape + core)
    want = base.copy()
    target = same_place(want, base, a)
    blocks = per_block(value, batch_shape, len(core))
    for n, x, at in index_elements(a, batch_shape, core, indices, mask):
        if at is not None:
            target[at] = blocks[n][x]
    wrap(a, dt.float32).scatter(indices, value, mask, core)
    assert np.array_equal(base, want)
