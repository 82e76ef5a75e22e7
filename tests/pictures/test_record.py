"""What is recorded of every kind of access, against answers made by hand."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.pictures.data import data
from cutile.pictures.record import RUNS, runs
from cutile.pictures.trace import trace
from tests.interp.traces.test_elements import advanced
from tests.interp.traces.test_watchers import SCHEDULES

ZERO = ct.PaddingMode.ZERO


def of(kernel, grid, *args, schedule="batch", blocks=()):
    with settings.override(SCHEDULE=schedule):
        return data(trace(kernel, grid, args, blocks=blocks))


def regions(d, block, call):
    """What a block touches by an access, as (array, box or runs)."""
    (found,) = [b for b in d["blocks"] if tuple(b["block"]) == (*block, 0, 0)[:3]]
    return [(d["arrays"][r["array"]]["name"], r.get("box", r.get("runs"))) for step in found["steps"]
            if "access" in step and d["accesses"][step["access"]]["call"] == call for r in step["regions"]]


def counts(d, name):
    """How often each element of an array is read and written."""
    (a,) = [a for a in d["arrays"] if a["name"] == name]
    assert all(c == 1 for c in a["reads"]["cell"])
    return [np.array(a[what]["mean"]).reshape(a["shape"]).tolist() for what in ("reads", "writes")]


def totals(d, call):
    (a,) = [a for a in d["accesses"] if a["call"] == call]
    return {k: a[k] for k in ("runs", "elements", "masked out", "outside", "bytes")}


@ct.kernel
def tiles(x, y):
    i, j = ct.bid(0), ct.bid(1)
    t = ct.load(x, (i, j), (2, 4), padding_mode=ZERO)
    ct.store(y, (j, i), ct.transpose(t))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_tiles(schedule):
    d = of(tiles, (2, 2), np.ones((3, 6), np.float32), np.ones((6, 3), np.float32), schedule=schedule)
    assert regions(d, (0, 0), "load") == [("x", [[0, 2], [0, 4]])]
    assert regions(d, (1, 1), "load") == [("x", [[2, 2], [4, 4]])]  # it reaches beyond both edges
    assert regions(d, (1, 0), "store") == [("y", [[0, 4], [2, 2]])]
    assert counts(d, "x") == [[[1] * 6] * 3, [[0] * 6] * 3]
    assert totals(d, "load") == {"runs": 4, "elements": 18, "masked out": 0, "outside": 4 * 8 - 18, "bytes": 72}
    assert d["cells"]["bytes read"] == [32, 16, 16, 8] and d["cells"]["counts"] == [2, 2, 1]
    assert d["cells"]["boxes"][0] == [[[0, 2], [0, 4]], [[0, 2], [4, 2]], [[2, 1], [0, 4]], [[2, 1], [4, 2]]]


@ct.kernel
def ordered(x):
    ct.store(x, (1, 0), ct.load(x, (0, 1), (4, 2), order=(1, 0), padding_mode=ZERO), order=(1, 0))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_order(schedule):
    d = of(ordered, (1,), np.ones((5, 6), np.float32), schedule=schedule)
    assert regions(d, (0,), "load") == [("x", [[2, 2], [0, 4]])]  # dimension 0 runs along axis 1
    assert regions(d, (0,), "store") == [("x", [[0, 2], [4, 4]])]


@ct.kernel
def parts(x, outside):
    i = ct.bid(0)
    s = x.slice(0, 2 + i, 5)
    ct.store(s, 0, ct.load(s, 0, (4,), padding_mode=ZERO))
    ct.load(x, outside, (4,))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_slices_and_tiles_wholly_outside(schedule):
    d = of(parts, (2,), np.ones(8, np.float32), 5, schedule=schedule)
    assert regions(d, (1,), "load") == [("x", [[3, 4]]), ("x", [[20, 4]])]
    assert counts(d, "x") == [[0, 0, 1, 2, 2, 0, 0, 0], [0, 0, 1, 2, 2, 0, 0, 0]]
    (found,) = [f for f in d["findings"] if f["check"] == "bounds"]
    assert (found["element"], d["arrays"][found["array"]]["name"], found["times"]) == ([20], "x", 2)


@ct.kernel
def gathers(x, out, counter):
    i = ct.arange(4, dtype=ct.int32) * 3 + ct.bid(0)
    v = ct.gather(x, i, mask=i < 9, padding_value=0.0)
    ct.scatter(out, (i // 3, 1), v)
    ct.atomic_add(counter, i // 8, 1)
    ct.atomic_xchg(counter, 1, 7)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_gathers_scatters_and_atomics(schedule):
    arrays = np.ones(20, np.float32), np.ones((3, 2), np.float32), np.zeros(2, np.int32)
    d = of(gathers, (2,), *arrays, schedule=schedule)
    assert regions(d, (0,), "gather") == [("x", [0, 1, 3, 1, 6, 1])]
    assert regions(d, (1,), "scatter") == [("out", [[0, 4], [1, 1]])]  # of a column, one is outside
    assert regions(d, (0,), "atomic_add") == [("counter", [[0, 2]])]
    assert regions(d, (0,), "atomic_xchg") == [("counter", [[1, 1]])]
    assert counts(d, "x")[0][:10] == [1, 1, 0, 1, 1, 0, 1, 1, 0, 0]
    assert counts(d, "out")[1] == [[0, 2]] * 3
    assert counts(d, "counter") == [[6, 4], [6, 4]]  # 0, 3, 6 | 9 and 1, 4, 7 | 10; and two exchanges
    assert totals(d, "gather") == {"runs": 2, "elements": 6, "masked out": 2, "outside": 0, "bytes": 24}
    assert totals(d, "scatter") == {"runs": 2, "elements": 6, "masked out": 0, "outside": 2, "bytes": 24}
    assert d["totals"]["bytes read"] == 24 + 40 and d["totals"]["bytes written"] == 24 + 40


@ct.kernel
def shifted(x, out, T: ct.Constant[int]):
    rows = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)[:, None]
    columns = ct.arange(T, dtype=ct.int32)[None, :]

    def at(right):
        return ct.gather(x, (rows, columns + right))

    ct.store(out, (ct.bid(0), 0), at(-1) + at(0) + ct.gather(x, (rows, 2 * columns)))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_elements_outside_of_gathers(schedule):
    """Elements that make a rectangle are a box, as a tile is; of others, those outside are told apart."""
    d = of(shifted, (2,), np.ones((7, 5)), np.ones((8, 4)), 4, schedule=schedule)
    assert regions(d, (1,), "gather")[:2] == [("x", [[4, 4], [-1, 4]]), ("x", [[4, 4], [0, 4]])]
    (found,) = [b for b in d["blocks"] if b["block"] == [1, 0, 0]]
    last = [step["regions"] for step in found["steps"] if "access" in step][2]
    assert last == [{"array": 0, "runs": [20, 1, 22, 1, 24, 2, 27, 1, 29, 2, 32, 1, 34, 1], "exact": True},
                    {"array": 0, "outside": [[4, 4], [0, 7]]}]
    line = d["sources"][0]["first"] + 7
    assert [a["calls"] for a in d["accesses"]] == [[f"{line}: at(-1)"], [f"{line}: at(0)"], [], []]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_a_block_reads_and_writes(schedule):
    d = of(shifted, (2,), np.ones((7, 5)), np.ones((8, 4)), 4, schedule=schedule)
    assert d["cells"]["boxes read"] == [[[[0, 4], [0, 5]], [[4, 3], [0, 5]]], [None, None]]
    assert d["cells"]["boxes written"] == [[None, None], [[[0, 4], [0, 4]], [[4, 4], [0, 4]]]]
    assert [(b["reads"], b["writes"]) for b in d["blocks"]] == [
        ([{"array": 0, "box": read}], [{"array": 1, "box": written}]) for read, written in
        zip(d["cells"]["boxes read"][0], d["cells"]["boxes written"][1])]


@ct.kernel
def from_scalar(x, out):
    ct.store(out, 0, ct.load(x, (), ()).reshape((1,)))


def test_an_array_without_axes_is_only_read():
    d = of(from_scalar, (1,), np.zeros(()), np.zeros(1))
    assert (d["cells"]["boxes read"], d["cells"]["boxes written"]) == ([[[]], [None]], [[None], [[[0, 1]]]])
    assert d["blocks"][0]["reads"] == [{"array": 0, "box": []}]


@ct.kernel
def counted(x):
    ct.atomic_add(x, ct.bid(0) + ct.arange(2, dtype=ct.int32), 1)


def test_atomics_read_and_write():
    d = of(counted, (2,), np.zeros(4, np.int32))
    assert d["cells"]["boxes read"] == d["cells"]["boxes written"] == [[[[0, 2]], [[1, 2]]]]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_advanced_indexing(schedule):
    x, which = np.zeros((10, 5), np.float32), np.array([0, 9, 10, 3], np.int32)
    d = of(advanced, (1,), x, which, schedule=schedule)
    assert regions(d, (0,), "load_advanced_indexing") == [("x", [2, 3, 17, 3, 47, 3])]  # three of four rows are there
    assert totals(d, "store_advanced_indexing")["outside"] == 4


@ct.kernel
def others(arrays, pair, k):
    i = ct.bid(0)
    a = arrays[i]
    ct.store(a, 0, ct.load(pair[1], i, (2,), padding_mode=ZERO))
    raw = pair[0].get_raw_memory()
    raw.store_offset(ct.arange(2, dtype=ct.int32) + 1, raw.load_offset(3))
    v = a.tiled_view((2,), traversal_steps=(1,))
    v.atomic_store_add(k, v.load(k))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lists_tuples_raw_memory_and_views(schedule):
    arrays = [np.zeros(n, np.float32) for n in (4, 2)]
    d = of(others, (2,), arrays, (np.zeros(5, np.float32), np.zeros(3, np.float32)), 1, schedule=schedule)
    assert [a["name"] for a in d["arrays"]] == ["arrays[0]", "arrays[1]", "pair[0]", "pair[1]"]
    assert regions(d, (1,), "store") == [("arrays[1]", [[0, 2]])]
    assert regions(d, (1,), "load") == [("pair[1]", [[2, 2]]), ("arrays[1]", [[1, 2]])]
    assert regions(d, (0,), "atomic_store_add") == [("arrays[0]", [[1, 2]])]
    assert regions(d, (0,), "load_offset") == [("pair[0]", [[3, 1]])]
    assert regions(d, (0,), "store_offset") == [("pair[0]", [[1, 2]])]
    assert counts(d, "arrays[1]") == [[0, 2], [1, 2]]


@ct.kernel
def at_pointers(x, y, offset):
    a = ct.Array.from_foreign(x.foreign_pointer, (3, 2), (8, 1))
    ct.store(y, (0, 0), ct.load(a.slice(0, offset, 3), (0, 0), (2, 2), padding_mode=ZERO))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_arrays_at_pointers(schedule):
    d = of(at_pointers, (1,), np.zeros(40, np.float32), np.zeros((2, 2), np.float32), 1, schedule=schedule)
    assert regions(d, (0,), "load") == [("x", [8, 2, 16, 2])] and d["arrays"][0]["reads"]["total"] == 4
    d = of(at_pointers, (1,), np.zeros(17, np.float32), np.zeros((2, 2), np.float32), 1, schedule=schedule)
    assert regions(d, (0,), "load") == [("x", [8, 2, 16, 1])]  # the last element of the array is the argument's, too


@ct.kernel
def deep(x):
    t = ct.load(x, (ct.bid(0), 0, ct.bid(1), 0), (1, 2, 2, 4))
    ct.store(x, (ct.bid(0), 0, ct.bid(1), 0), t)


def test_arrays_of_four_axes_and_of_none():
    d = of(deep, (2, 2), np.zeros((2, 2, 4, 4), np.float32))
    assert regions(d, (1, 1), "load") == [("x", [[1, 1], [0, 2], [2, 2], [0, 4]])]
    d = of(scalar, (3,), np.zeros((), np.float32))
    assert regions(d, (2,), "load") == [("x", [])] and counts(d, "x") == [3, 3] and d["cells"]["boxes"] == [[[]] * 3]


@ct.kernel
def scalar(x):
    ct.store(x, (), ct.load(x, (), ()) + 1.0)


def test_arrays_that_share_memory_are_counted_apart():
    x = np.zeros(8, np.float32)
    d = of(tiles_of, (1,), x, x[::-1])
    assert counts(d, "x")[0] == [1] * 4 + [0] * 4 and counts(d, "y")[1] == [1] * 4 + [0] * 4
    assert "alias" in {f["check"] for f in d["findings"]}


@ct.kernel
def tiles_of(x, y):
    ct.store(y, 0, ct.load(x, 0, (4,)))


# ------------------------------------------------------------------ steps


@ct.function
def halved(t):
    u = t * 0.5
    return u


@ct.kernel
def steps(x):
    t = ct.load(x, 0, (4,))
    n = 0
    for k in range(2):
        t = halved(t)
        n += k
    if n > 5:
        t = t + 1.0
    ct.store(x, 0, t)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_steps_are_those_of_a_debugger(schedule):
    d = of(steps, (1,), np.full(4, 8, np.float32), schedule=schedule)
    places, first = d["places"], d["sources"][0]["first"]
    said = []
    for step in d["blocks"][0]["steps"]:
        place = places[step["at"]]
        caller = place["caller"] is not None and places[place["caller"]]["line"] - first
        line = place["line"] - d["sources"][place["source"]]["first"]
        said.append((caller, line, step.get("name"), step.get("value")))
    loop = [[(False, 3, "k", str(k)), (4, 0, "t", str_of(8 / 2**k)), (4, 1, "u", str_of(4 / 2**k)),
             (False, 4, "t", str_of(4 / 2**k)), (False, 5, "n", str(k))] for k in range(2)]
    assert [s for s in said if s[2]] == [(False, 1, "t", str_of(8)), *loop[0], *loop[1]]
    assert said[0] == (False, 1, None, None) and said[-1][:2] == (False, 8)  # the load, and the store in the end
    assert (False, 6, None, None) in said and not any(s[1] == 7 for s in said if s[0] is False)
    assert [s["function"] for s in d["sources"]] == ["steps", "halved"]


def str_of(x):
    return f"[{', '.join([f'{x:.4g}'] * 4)}]"


def test_values_have_dtype_and_shape():
    d = of(tiles, (1, 1), np.ones((3, 6), np.float32), np.ones((6, 3), np.float32))
    (t,) = [s for s in d["blocks"][0]["steps"] if s.get("name") == "t"]
    assert (t["dtype"], t["shape"], t["value"]) == ("float32", [2, 4], "[[1, 1, 1, 1], [1, 1, 1, 1]]")


# ------------------------------------------------------------------ much of everything


@ct.kernel
def many(x):
    for k in range(3000):
        ct.store(x, k % 4, ct.bid(0))


def test_long_blocks_are_cut_and_say_so():
    d = of(many, (4,), np.zeros(4, np.int32), blocks=[(3,)])
    assert not any(b["complete"] for b in d["blocks"]) and [3, 0, 0] in [b["block"] for b in d["blocks"]]
    assert all(len(b["steps"]) <= 2000 for b in d["blocks"])
    assert d["accesses"][0]["runs"] == 4 * 3000 and counts(d, "x")[1] == [4 * 750] * 4


@ct.kernel
def wide(x):
    ct.store(x, (ct.bid(0), ct.bid(1)), ct.full((1, 2), 1, ct.int8))


def test_thousands_of_blocks_are_in_cells():
    d = of(wide, (300, 200), np.zeros((300, 400), np.int8), blocks=["17,3"])
    cells = d["cells"]
    assert cells["cell"] == [4, 4, 1] and cells["counts"] == [75, 50, 1]
    assert cells["bytes written"] == [32] * 3750 and sum(cells["bytes read"]) == 0
    assert cells["boxes"][0][51] == [[4, 4], [8, 8]]  # cell (1, 1)
    assert [17, 3, 0] in [b["block"] for b in d["blocks"]] and len(d["blocks"]) <= 60
    assert d["arrays"][0]["writes"] | {"mean": 1} == {"cell": [4, 8], "counts": [75, 50], "mean": 1, "least": 1,
                                                      "most": 1, "total": 120_000}


@pytest.mark.parametrize("numbers, expected", [
    ([3], [3, 1]), ([0, 1, 2], [0, 3]), ([0, 2, 3, 9], [0, 1, 2, 2, 9, 1])])
def test_runs(numbers, expected):
    assert runs(np.array(numbers)) == {"runs": expected, "exact": True}


def test_very_many_runs_close_the_shortest_gaps():
    numbers = np.concatenate([np.arange(0, 2000, 2), np.arange(5000, 9000, 40)])
    found = runs(numbers)
    pairs = np.array(found["runs"]).reshape(-1, 2)
    assert not found["exact"] and len(pairs) == RUNS
    covered = np.concatenate([np.arange(a, a + n) for a, n in pairs])
    assert np.isin(numbers, covered).all() and covered[0] == 0 and covered[-1] == numbers[-1]
    assert not np.isin(np.arange(2000, 4999), covered).any()
