"""The check `alias`: arguments that share memory where one is written."""

import numpy as np
import pytest

import cutile as ct
from tests.interp.sanitize.planted import SCHEDULES, findings


@ct.kernel
def copy(x, y):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 4, padding_mode=ct.PaddingMode.ZERO))


@ct.kernel
def copy2(x, y):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, (i, j), ct.load(x, (i, j), (2, 2)))


@ct.kernel
def of_list(xs, y):
    ct.store(y, ct.bid(0), ct.load(xs[ct.bid(0)], 0, 4))


@ct.kernel
def counting(x, counts):
    ct.atomic_add(counts, ct.load(x, ct.bid(0), 4), 1)


@ct.kernel
def of_tuple(xy):
    ct.store(xy[1], ct.bid(0), ct.load(xy[0], ct.bid(0), 4))


@ct.kernel
def reading(x, y, z):
    ct.store(z, ct.bid(0), ct.load(x, ct.bid(0), 4) + ct.load(y, ct.bid(0), 4))


A = np.arange(64, dtype=np.float32)
M = np.arange(64, dtype=np.int16).reshape(8, 8)
N = np.zeros(32, np.int32)

# kernel, grid, arguments that overlap, (written, other), common elements, arguments that do not
PAIRS = {
    "the same array": (copy, (4,), (A[:16], A[:16]), "yx", (0,), (0,), (A[:16], A[16:32])),
    "shifted": (copy, (4,), (A[:16], A[12:28]), "yx", (0,), (12,), (A[:16], A[16:32])),
    "every other": (copy, (2,), (A[:16:2], A[4:12]), "yx", (0,), (2,), (A[:16:2], A[1:16:2])),
    "reversed": (copy, (4,), (A[:16], A[20:4:-1]), "yx", (15,), (5,), (A[:16], A[31:15:-1])),
    "columns": (copy2, (2, 2), (M[:4, :4], M[:4, 3:7]), "yx", (0, 0), (0, 3), (M[:4, :4], M[:4, 4:])),
    "transposed": (copy2, (2, 2), (M[:4, :4], M[:4, :4].T), "yx", (0, 0), (0, 0), (M[:4, :4], M[4:, 4:].T)),
    "in a list": (of_list, (2,), ([A[:4], A[8:12]], A[10:18]), ("y", "xs[1]"), (0,), (2,),
                  ([A[:4], A[2:6]], A[10:18])),
    "atomics": (counting, (2,), (N[:8], N[6:10]), ("counts", "x"), (0,), (6,), (N[:8], N[8:10])),
    "in a tuple": (of_tuple, (2,), ((A[:8], A[6:14]),), ("xy[1]", "xy[0]"), (0,), (6,), ((A[:8], A[8:16]),)),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", PAIRS)
def test_overlap_is_reported(name, schedule):
    kernel, grid, args, (written, other), a, b, _ = PAIRS[name]
    (e,) = findings("alias", kernel, grid, args, schedule)
    assert (e.check, e.array, e.element, e.block) == ("alias", written, a, None)
    assert f"the kernel writes to `{written}`, which shares memory with `{other}`" in str(e)
    index = [str(i).replace(" ", " ") for i in (a, b)]
    assert f"element {index[0]} of the one is element {index[1]} of the other" in str(e)
    assert e.loc.function == kernel.__name__ and "the kernel writes to memory here" in str(e)


@pytest.mark.parametrize("name", PAIRS)
def test_disjoint_memory_is_not(name):
    kernel, grid, *_, twin = PAIRS[name]
    assert findings("alias", kernel, grid, twin) == ()


def test_arrays_that_are_only_read_may_overlap():
    assert findings("alias", reading, (2,), (A[:8], A[4:12], A[16:24])) == ()
    assert [e.array for e in findings("alias", reading, (2,), (A[:8], A[4:12], A[10:18]))] == ["z"]


def test_elements_that_overlap_in_part():
    raw = np.zeros(64, np.uint8)
    (e,) = findings("alias", copy, (2,), (raw[:32].view(np.float32), raw[2:34].view(np.float32)))
    assert e.element == (0,) and "element (0,) of the one is element (0,) of the other" in str(e)
