"""The check `race`: accesses of several blocks to one element that nothing orders, and scatters to one element."""

import numpy as np
import pytest

import cutile as ct
from tests.interp.sanitize.planted import SCHEDULES, findings, line_of

RLX, ACQ, REL, BOTH = (getattr(ct.MemoryOrder, n) for n in ("RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL"))
BLOCK, DEVICE, SYS = ct.MemoryScope.BLOCK, ct.MemoryScope.DEVICE, ct.MemoryScope.SYS


def ints(*shape):
    return np.zeros(shape, np.int32)


@ct.kernel
def counts_without_atomics(x, counts):
    k = ct.load(x, (ct.bid(0),), (8,))
    ct.scatter(counts, k, ct.gather(counts, k) + 1)  # fault: a histogram without atomics


@ct.kernel
def counts_with_atomics(x, counts):
    ct.atomic_add(counts, ct.load(x, (ct.bid(0),), (8,)), 1)


@ct.kernel
def same_tile(y, half: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, (i // half, j), ct.full((2, 4), i, ct.float16))  # fault: two blocks store one tile


@ct.kernel
def overlapping_views(x, step: ct.Constant[int]):
    v = x.tiled_view((4,), traversal_steps=(step,))
    i = ct.bid(0)
    t = v.load(i)  # fault: a neighbour reads
    v.store(i, t + 1)  # fault: tiles of a view overlap


def shift(x, i, by):
    t = ct.load(x, (i + by, 0, 0), (1, 2, 2))  # fault: a helper reads the next tile
    ct.store(x, (i, 0, 0), t)


@ct.kernel
def in_place(x, by: ct.Constant[int]):
    shift(x, ct.bid(0), by)


@ct.kernel
def message(data, flag, out, order: ct.Constant[ct.MemoryOrder], scope: ct.Constant[ct.MemoryScope]):
    if ct.bid(0) == 0:
        ct.store(data, 0, 42)
        ct.store(flag, 0, 1, memory_order=order, memory_scope=scope)
    else:
        while ct.load(flag, 0, (), memory_order=ACQ, memory_scope=DEVICE) == 0:
            pass
        ct.store(out, ct.bid(0), ct.load(data, 0, ()))  # fault: a message


@ct.kernel
def relaxed_wait(data, flag, out, order: ct.Constant[ct.MemoryOrder]):
    if ct.bid(0) == 0:
        ct.store(data, 0, 42)
        ct.atomic_xchg(flag, 0, 1)
    else:
        while ct.atomic_or(flag, 0, 0, memory_order=order) == 0:
            pass
        ct.store(out, ct.bid(0), ct.load(data, 0, ()))  # fault: a wait without an acquire


@ct.kernel
def lock(lock, total, early: ct.Constant[bool]):
    while ct.atomic_cas(lock, 0, 0, 1) != 0:
        pass
    t = ct.load(total, 0, ())
    if early:
        ct.atomic_xchg(lock, 0, 0)
        ct.store(total, 0, t + 1)  # fault: a lock released too early
    else:
        ct.store(total, 0, t + 1)
        ct.atomic_xchg(lock, 0, 0)


@ct.kernel
def last_block(x, parts, count, out, order: ct.Constant[ct.MemoryOrder], n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(parts, i, ct.sum(ct.load(x, i, 8)))
    if ct.atomic_add(count, 0, 1, memory_order=order) == n - 1:
        ct.store(out, 0, ct.sum(ct.load(parts, 0, 8)))  # fault: the last block reads


@ct.kernel
def scope(counts, which: ct.Constant[ct.MemoryScope]):
    ct.atomic_add(counts, 0, 1, memory_scope=which)  # fault: an atomic of a block


@ct.kernel
def mixed(counts, out, atomic: ct.Constant[bool]):
    ct.atomic_add(counts, 0, 1)
    if atomic:
        ct.store(out, ct.bid(0), ct.load(counts, 0, (), memory_order=RLX, memory_scope=DEVICE))
    else:
        ct.store(out, ct.bid(0), ct.load(counts, 0, ()))  # fault: a plain read of a counter


@ct.kernel
def in_a_list(xs, which: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(xs[i * which], 0, i)  # fault: an array of a list


@ct.kernel
def strided_loop(y, n: ct.Constant[int], start: ct.Constant[int]):
    for i in range(ct.bid(0) * start, n, 3):
        ct.store(y, i, ct.full((4,), ct.bid(0), ct.int32))  # fault: a loop over tiles


@ct.kernel
def raw(x, far: ct.Constant[int]):
    k = ct.arange(4, dtype=ct.int32)
    x.get_raw_memory().store_offset(k + ct.bid(0) * far, k + ct.bid(0))  # fault: raw memory of several blocks


def keys():
    return (np.arange(32) % 4).astype(np.int32)


# kernel, grid, arguments, array, element (None: depends on the order of blocks), the twin and its arguments
FAULTS = {
    "a histogram without atomics": (counts_without_atomics, (4,), lambda: (keys(), ints(4)), "counts", (0,),
                                    (counts_with_atomics, lambda: (keys(), ints(4)))),
    "two blocks store one tile": (same_tile, (4, 2), lambda: (np.zeros((8, 8), np.float16), 2), "y", (0, 0),
                                  (same_tile, lambda: (np.zeros((8, 8), np.float16), 1))),
    "tiles of a view overlap": (overlapping_views, (5,), lambda: (np.zeros(24, np.float32), 3), "x", (3,),
                                (overlapping_views, lambda: (np.zeros(24, np.float32), 4))),
    "a helper reads the next tile": (in_place, (3,), lambda: (np.zeros((4, 2, 2), np.int8), 1), "x", None,
                                     (in_place, lambda: (np.zeros((4, 2, 2), np.int8), 0))),
    "a message": (message, (3,), lambda: (ints(1), ints(1), ints(3), RLX, DEVICE), "data", (0,),
                  (message, lambda: (ints(1), ints(1), ints(3), REL, SYS))),
    "a wait without an acquire": (relaxed_wait, (2,), lambda: (ints(1), ints(1), ints(2), RLX), "data", (0,),
                                  (relaxed_wait, lambda: (ints(1), ints(1), ints(2), ACQ))),
    "a lock released too early": (lock, (5,), lambda: (ints(1), ints(1), True), "total", (0,),
                                  (lock, lambda: (ints(1), ints(1), False))),
    "the last block reads": (last_block, (8,), lambda: (np.ones(64), np.zeros(8), ints(1), np.zeros(1), RLX, 8),
                             "parts", (0,),
                             (last_block, lambda: (np.ones(64), np.zeros(8), ints(1), np.zeros(1), BOTH, 8))),
    "an atomic of a block": (scope, (3,), lambda: (ints(1), BLOCK), "counts", (0,), (scope, lambda: (ints(1), DEVICE))),
    "a plain read of a counter": (mixed, (3,), lambda: (ints(1), ints(3), False), "counts", (0,),
                                  (mixed, lambda: (ints(1), ints(3), True))),
    "an array of a list": (in_a_list, (3,), lambda: ([ints(1), ints(1), ints(1)], 0), "xs[0]", (0,),
                           (in_a_list, lambda: ([ints(1), ints(1), ints(1)], 1))),
    "a loop over tiles": (strided_loop, (3,), lambda: (ints(36), 9, 3), "y", (12,),
                          (strided_loop, lambda: (ints(36), 9, 1))),
    "raw memory of several blocks": (raw, (3,), lambda: (ints(12), 2), "x", None, (raw, lambda: (ints(12), 4))),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", FAULTS)
def test_reported(name, schedule):
    kernel, grid, args, array, element, _ = FAULTS[name]
    found = findings("race", kernel, grid, args(), schedule)
    lines = {e.loc.line: e for e in found}
    lines.update({span.line: e for e in found for _, span in e.notes})
    assert line_of(name, __file__) in lines, "one of the two parties stands there"
    e = lines[line_of(name, __file__)]
    assert (e.check, e.array) == ("race", array) and element in (None, e.element)
    (note, span), = e.notes
    assert note.startswith("the other access, in block (") and span is not None
    assert f"in block {e.block}" in str(e) and note.removeprefix("the other access, in ") in str(e)
    assert f"block {e.block}" not in note, "two blocks"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", FAULTS)
def test_twin_is_not_reported(name, schedule):
    _, grid, *_, (kernel, args) = FAULTS[name]
    assert findings("race", kernel, grid, args(), schedule) == ()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["a message", "a lock released too early", "the last block reads",
                                  "a wait without an acquire"])
def test_whatever_the_order_of_blocks(name, seed):
    kernel, grid, args, *_, (_, twin) = FAULTS[name]
    assert findings("race", kernel, grid, args(), "interleave", SEED=seed) or name == "a lock released too early"
    assert findings("race", kernel, grid, twin(), "interleave", SEED=seed) == ()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("grid, words", [
    ((2,), "to change elements that blocks share"),
    ((1, 2), r"the kernel never calls ct.bid(1), so blocks that differ there alone do the same. Let the grid have "
             r"length 1 along axis 1, or use ct.bid(1)"),
    ((1, 2, 2), "the kernel never calls ct.bid("), ((1, 1, 2), "the kernel never calls ct.bid(2)")])
def test_a_grid_with_an_axis_that_nobody_asks_for(grid, words, schedule):
    found = findings("race", asks_for_one, grid, (np.arange(4), np.zeros(4, int)), schedule)
    assert found and all(words in e.help for e in found)


@ct.kernel
def asks_for_one(x, y):
    i = ct.bid(0)
    ct.store(y, 0, ct.load(x, 0, 4) + i)


# ------------------------------------------------------------------ one scatter


@ct.kernel
def scatters(y, k, v, how: ct.Constant[int]):
    i = ct.bid(0)
    at, t = ct.load(k, i, 4), ct.load(v, i, 4)
    if how == 0:
        ct.scatter(y, at, t)
    elif how == 1:
        y.get_raw_memory().store_offset(at, t)
    elif how == 2:
        ct.scatter(y, at, t, mask=at != 1)
    else:
        ct.store_advanced_indexing(y, (at, ct.Slice(0, 1)), ct.reshape(t, (4, 1)))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("how", range(4))
def test_a_scatter_of_different_values_to_one_element(how, schedule):
    y = ints(8, 1) if how == 3 else ints(8)
    twice, once = np.array([0, 2, 3, 4, 5, 1, 6, 1], np.int32), np.array([0, 2, 3, 4, 5, 1, 6, 7], np.int32)
    values = np.arange(8, dtype=np.int32)
    found = findings("race", scatters, (2,), (y, twice, values, how), schedule)
    if how == 2:
        assert found == ()
    else:
        (e,) = found
        assert e.block == (1, 0, 0) and e.element == ((1, 0) if how == 3 else (1,)) and e.array == "y"
        assert "writes different values to element" in str(e) and "any of them may stay" in str(e)
    assert findings("race", scatters, (2,), (y, once, values, how), schedule) == ()
    assert findings("race", scatters, (2,), (y, twice, np.ones(8, np.int32), how), schedule) == ()


# ------------------------------------------------------------------ memory


@ct.kernel
def of_a_list(xs):
    ct.store(xs[ct.bid(0)], 0, ct.full((8,), ct.bid(0), ct.int32))


@ct.kernel
def columns(x):
    i = ct.bid(0)
    ct.store(x, (0, i), ct.load(x, (0, i), (4, 1)) + 1)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_arrays_of_a_list_that_overlap_are_one_memory(schedule):
    a = np.zeros(20, np.int32)
    (e,) = findings("race", of_a_list, (2,), ([a[:8], a[6:14]],), schedule)
    assert (e.array, e.element) in (("xs[0]", (6,)), ("xs[1]", (0,)))
    assert findings("race", of_a_list, (2,), ([a[:8], a[8:16]],), schedule) == ()


@pytest.mark.parametrize("x, races", [(np.zeros((4, 8), np.int16)[:, ::2], False),
                                      (np.zeros((8, 4), np.int16).T, False),
                                      (np.zeros((4, 8), np.int16)[::-1, ::-2], False),
                                      (np.lib.stride_tricks.as_strided(np.zeros(32, np.int16), (4, 4), (2, 2)), True)])
def test_strides(x, races):
    assert bool(findings("race", columns, (4,), (x,))) == races


@ct.kernel
def zero_dimensional(x):
    ct.store(x, (), ct.bid(0))


def test_an_array_of_rank_0():
    (e,) = findings("race", zero_dimensional, (3,), (np.zeros((), np.int32),))
    assert e.element == ()
