"""One of several arrays per block."""

from __future__ import annotations

import numpy as np

from cutile import dtypes as dt
from cutile.interp.memory.array_view import wrap
from cutile.interp.memory.per_block_array import ArrayList, PerBlockArray, join

FILL = np.float32(-99)


def three_arrays():
    arrays = [np.arange(k * 100, k * 100 + n, dtype=np.float32) for k, n in enumerate((8, 5, 12))]
    return arrays, ArrayList(wrap(a, dt.float32, name=f"x[{k}]") for k, a in enumerate(arrays))


def test_list_items_may_differ_by_block():
    arrays, views = three_arrays()
    which = np.array([2, 0, 1, 2, 5], np.int32)
    item = views.pick(which)
    assert item.shape[0].tolist() == [12, 8, 5, 12, 0] and item.strides[0].tolist() == [1, 1, 1, 1, 0]
    got = item.tile([np.arange(5, dtype=np.int32) % 2], (8,), (0,), FILL)
    for n, (k, j) in enumerate(zip(which, [0, 1, 0, 1, 0])):
        a = np.append(arrays[k] if k < 3 else [], [FILL] * 16)
        assert got[n].tolist() == np.where(np.arange(8) + 8 * j < (len(arrays[k]) if k < 3 else 0), a[8 * j:8 * j + 8],
                                           FILL).tolist()
    value = np.arange(5, dtype=np.float32)[:, None] + np.zeros((5, 8), np.float32)
    item.put([np.zeros((), np.int32)], value, (8,), (0,))
    assert [a[0] for a in arrays] == [1, 2, 3]
    assert views.pick(np.asarray(1)) is views[1]
    assert views.pick(np.asarray(-1)).tile([np.zeros((), np.int32)], (2,), (0,), FILL).tolist() == [FILL] * 2


def test_gather_scatter_and_update_of_differing_arrays():
    arrays, views = three_arrays()
    item = views.pick(np.array([1, 0]).reshape(2, 1, 1))
    index = np.array([0, 4, 7], np.int32)
    fill = np.full(1, FILL)
    assert item.gather([index], None, fill, (3,)).reshape(2, 3).tolist() == [[100, 104, FILL], [0, 4, 7]]
    mask = np.array([True, False, True])
    item.scatter([index], np.array([[-1, -2, -3]], np.float32).reshape(1, 1, 1, 3), mask, (3,))
    assert arrays[1].tolist()[:5] == [-1, 101, 102, 103, 104] and arrays[0][7] == -3
    done, seen = item.update("add", [index], [np.ones(3, np.float32)], None, (3,), (2, 2, 1))
    assert done[:, 0, 0].tolist() == [[True, True, False], [True] * 3]
    assert seen[:, :, 0, 0].tolist() == [[-1, 0], [-1, 0]]
    assert arrays[0][4] == 6 and arrays[1][4] == 106


def test_join_of_descriptors():
    arrays, views = three_arrays()
    sliced = views[2].slice(0, np.array([4, 6], np.int32), np.array([8, 7], np.int32))
    lanes = [np.array([0, 3]), np.array([1, 2])]

    def flat(n):
        return lambda x, core: np.broadcast_to(x, (n,))

    both = join((4,), [(lanes[0], views[0], flat(2)), (lanes[1], sliced, flat(2))])
    assert isinstance(both, PerBlockArray) and both.shape[0].tolist() == [8, 4, 1, 8]
    got = both.tile([np.zeros((), np.int32)], (2,), (0,), FILL)
    assert got.tolist() == [[0, 1], [204, 205], [206, FILL], [0, 1]]
    narrowed = both.for_blocks(lambda x, core: x[np.array([2, 3])])
    assert narrowed.shape[0].tolist() == [1, 8]
    assert join((4,), [(lanes[0], views[1], flat(2)), (lanes[1], views[1], flat(2))]) is views[1]
