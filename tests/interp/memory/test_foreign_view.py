"""Raw memory and arrays at pointers: elements at computed offsets, and never one that is not the argument's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import dtypes as dt
from cutile.interp.memory.array_view import array_at, wrap
from tests.interp.layouts import layouts, same_place

FILL = np.float32(-99)
SETTINGS = settings(max_examples=60, deadline=None)


@SETTINGS
@given(layouts(0), st.lists(st.integers(-60, 600), min_size=4, max_size=4))
def test_raw_offsets_reach_own_elements_only(layout, offsets):
    base, a = layout
    own = {sum(s // 4 * i for s, i in zip(a.strides, at)): a[at] for at in np.ndindex(a.shape)}
    view = wrap(a, dt.float32)
    offsets = np.array([*offsets, *list(own)[:3]], np.int64)
    got = view.raw.gather((offsets,), None, np.full(1, FILL), offsets.shape)
    assert got.tolist() == [own.get(o, FILL) for o in offsets.tolist()]
    before = base.copy()
    view.raw.scatter((offsets,), np.full(offsets.shape, 7, np.float32), None, offsets.shape)
    for at in np.ndindex(a.shape):
        if sum(s // 4 * i for s, i in zip(a.strides, at)) in offsets:
            assert a[at] == 7
            same_place(before, base, a)[at] = 7
    assert np.array_equal(base, before)


def test_raw_offsets_into_an_array_that_overlaps_itself():
    line = np.arange(10, dtype=np.float32)
    a = np.lib.stride_tricks.as_strided(line, (4, 3), (8, 4), writeable=True)  # offsets 0 … 8, several names each
    got = wrap(a, dt.float32).raw.gather((np.arange(-1, 11),), None, np.full(1, FILL), (12,))
    assert got.tolist() == [FILL, *range(9), FILL, FILL]


@SETTINGS
@given(layouts(1), st.data())
def test_an_array_at_a_pointer_reads_and_writes_own_elements_only(layout, data):
    """Two axes with strides of their own, somewhere in the memory, with tiles in any order."""
    base, a = layout
    own = {sum(s // 4 * i for s, i in zip(a.strides, at)): at for at in np.ndindex(a.shape)}
    first, size = data.draw(st.integers(-4, 40)), [data.draw(st.integers(0, 5)) for _ in range(2)]
    steps = [data.draw(st.integers(-3, 7)) for _ in range(2)]
    order = tuple(data.draw(st.permutations([0, 1])))
    buffer = wrap(a, dt.float32).buffer
    view = array_at([buffer], np.asarray(0), np.asarray(4 * first), [np.asarray(n) for n in size],
                    [np.asarray(s) for s in steps], dt.int32)
    got = view.tile([np.asarray(0), np.asarray(0)], (4, 4), order, FILL)
    value = np.arange(1000, 1016, dtype=np.float32).reshape(4, 4)
    allowed: dict = {}
    for x in np.ndindex(4, 4):
        index = [x[order.index(k)] for k in range(2)]
        offset = first + sum(i * s for i, s in zip(index, steps))
        there = all(i < n for i, n in zip(index, size)) and offset in own
        assert got[x] == (a[own[offset]] if there else FILL)
        if there:
            allowed.setdefault(offset, []).append(value[x])
    before, old = base.copy(), a.copy()
    view.put([np.asarray(0), np.asarray(0)], value, (4, 4), order)
    for offset, at in own.items():
        assert a[at] in allowed.get(offset, [old[at]])
    a[...] = 0
    same_place(before, base, a)[...] = 0
    assert np.array_equal(base, before)


def test_pointers_that_differ_by_block():
    a, b = np.arange(8, dtype=np.float32), np.arange(10, 18, dtype=np.float32)
    buffers = [wrap(x, dt.float32).buffer for x in (a, b)]
    view = array_at(buffers, np.array([1, 0, 1]), np.array([0, 8, 24]), [np.asarray(4)], [np.asarray(1)], dt.int32)
    assert view.batch_shape == (3,)
    got = view.tile([np.asarray(0)], (4,), (0,), FILL)
    assert got.tolist() == [[10, 11, 12, 13], [2, 3, 4, 5], [16, 17, FILL, FILL]]
