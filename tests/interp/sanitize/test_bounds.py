"""The check `bounds`: every way to leave an array, in every schedule."""

import numpy as np
import pytest

import cutile as ct
from tests.interp.sanitize.planted import SCHEDULES, Fault, both_tests, findings


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def ints(*values):
    return np.array(values, np.int32)


@ct.kernel
def element_as_index(x, y, T: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, (i * T,), (T,))  # fault: element as index
    ct.store(y, (i,), t)


@ct.kernel
def index_of_tile(x, y, T: ct.Constant[int]):
    ct.store(y, (ct.bid(0),), ct.load(x, (ct.bid(0),), (T,)))


@ct.kernel
def one_block_too_many(x, y):
    i, j = ct.bid(0), ct.bid(1)
    t = ct.load(x, (i % 2, j), (4, 8))
    ct.store(y, (i, j), t)  # fault: one block too many


@ct.kernel
def loop_over_elements(x, y, n: ct.Constant[int]):
    total = ct.zeros((8,), ct.int64)
    for k in range(n):
        total += ct.load(x, k, 8)  # fault: loop over elements
    ct.store(y, ct.bid(0), total)


def neighbour(x, i):
    return ct.load(x, (i - 1, 0, 0), (1, 2, 4))  # fault: negative index


@ct.kernel
def helper(x, y, first: ct.Constant[int]):
    i = ct.bid(0) + first
    ct.store(y, (i, 0, 0), neighbour(x, i))


@ct.kernel
def unchecked_edge(x, y):
    i = ct.bid(0)
    ct.store(y, (0, i), ct.load(x, (0, i), (2, 16), check_bounds=False))  # fault: unchecked edge


@ct.kernel
def unchecked_gather(x, idx, y):
    i = ct.bid(0)
    k = ct.load(idx, i, 4)
    y0 = ct.gather(x, (k, k), check_bounds=False)  # fault: unchecked gather
    ct.store(y, i, y0)


@ct.kernel
def unchecked_atomic(counts, idx):
    k = ct.load(idx, ct.bid(0), 4)
    ct.atomic_add(counts, k, 1, check_bounds=False)  # fault: unchecked atomic


@ct.kernel
def outside_slice(x, y, n: ct.Constant[int]):
    i = ct.bid(0)
    row = x.slice(0, 4, 4 + n)
    ct.store(y, i, ct.load(row, i, 4))  # fault: outside the slice


@ct.kernel
def slice_too_long(x, y, stop):
    part = x.slice(1, ct.bid(0), stop)  # fault: slice too long
    ct.store(y, (0, 0), ct.load(part, (0, 0), (2, 2), padding_mode=ct.PaddingMode.ZERO))


@ct.kernel
def view_steps(x, y):
    v = x.tiled_view((4,), traversal_steps=(3,))
    i = ct.bid(0)
    ct.store(y, i, v.load(i))  # fault: steps of a view


@ct.kernel
def raw(x, y, off):
    k = ct.arange(4, dtype=ct.int32) + off + ct.bid(0)
    ct.store(y, ct.bid(0), x.get_raw_memory().load_offset(k))  # fault: raw memory


@ct.kernel
def items(xs, y, step: ct.Constant[int]):
    i = ct.bid(0)
    a = xs[i * step]  # fault: item of a list
    ct.store(y, i, ct.load(a, 0, 4))


@ct.kernel
def in_a_branch(x, y):
    i = ct.bid(0)
    if i > 2:
        ct.store(y, (i,), ct.load(x, (i + 1,), (2,)))  # fault: in a branch
    else:
        ct.store(y, (i,), ct.load(x, (i,), (2,)))


F = [
    Fault("element as index", element_as_index, (5,), lambda: (zeros(70), zeros(80), 16), (1, 0, 0), "x", (256,),
          "the index counts tiles, not elements: element 16 along axis 0 is in the tile at index 1",
          (index_of_tile, lambda: (zeros(70), zeros(80), 16))),
    Fault("one block too many", one_block_too_many, (3, 2), lambda: (zeros(8, 16), zeros(8, 16)), (2, 0, 0), "y",
          (8, 0), "let no block and no iteration go beyond the last tile", lambda: (zeros(8, 16), zeros(9, 16))),
    Fault("loop over elements", loop_over_elements, (2,), lambda: (zeros(64, dtype=np.int64), zeros(16, dtype=np.int64),
                                                                  64),
          (0, 0, 0), "x", (64,), "begins at element (64,), and the array has shape (64,)",
          lambda: (zeros(64, dtype=np.int64), zeros(16, dtype=np.int64), 8)),
    Fault("negative index", helper, (3,), lambda: (zeros(4, 2, 4), zeros(4, 2, 4), 0), (0, 0, 0), "x", (-1, 0, 0),
          "has a negative index", lambda: (zeros(4, 2, 4), zeros(4, 2, 4), 1)),
    Fault("unchecked edge", unchecked_edge, (3,), lambda: (zeros(2, 40, dtype=np.float16),
                                                           zeros(2, 48, dtype=np.float16)), (2, 0, 0), "x", (0, 40),
          "covers elements (0, 32) to (1, 47), and the array has shape (2, 40)",
          lambda: (zeros(2, 48, dtype=np.float16), zeros(2, 48, dtype=np.float16))),
    Fault("unchecked gather", unchecked_gather, (2,), lambda: (zeros(5, 6), ints(0, 1, 2, 3, 4, 5, 1, -1), zeros(8)),
          (1, 0, 0), "x", (5, 5), "index (5, 5) of `x` is out of range for shape (5, 6)",
          lambda: (zeros(5, 6), ints(0, 1, 2, 3, 4, 4, 1, 0), zeros(8))),
    Fault("unchecked atomic", unchecked_atomic, (2,), lambda: (ints(0, 0, 0), ints(0, 1, 2, 2, 1, 3, 0, 0)), (1, 0, 0),
          "counts", (3,), "give a mask", lambda: (ints(0, 0, 0), ints(0, 1, 2, 2, 1, 2, 0, 0))),
    Fault("outside the slice", outside_slice, (3,), lambda: (zeros(20, dtype=np.int8), zeros(12, dtype=np.int8), 8),
          (2, 0, 0), "x", (8,), "that is element (12,) of `x`, but outside the slice",
          lambda: (zeros(20, dtype=np.int8), zeros(12, dtype=np.int8), 12)),
    Fault("slice too long", slice_too_long, (3,), lambda: (zeros(2, 6), zeros(2, 2), 7), (0, 0, 0), "x", None,
          "from 0 to 7 along axis 1 of `x`, which has 6 elements there", lambda: (zeros(2, 6), zeros(2, 2), 6)),
    Fault("steps of a view", view_steps, (5,), lambda: (zeros(12), zeros(20)), (4, 0, 0), "x", (12,),
          "begins at element (12,)", lambda: (zeros(13), zeros(20))),
    Fault("raw memory", raw, (2,), lambda: (zeros(4, 2), zeros(8), 4), (1, 0, 0), "x", (8,),
          "lies 8 elements after the first one of `x`", lambda: (zeros(4, 2), zeros(8), 3)),
    Fault("item of a list", items, (3,), lambda: ([zeros(4)] * 4, zeros(12), 2), (2, 0, 0), "xs", None,
          "item 4 of the list `xs`, which has 4 arrays", lambda: ([zeros(4)] * 4, zeros(12), 1)),
    Fault("in a branch", in_a_branch, (6,), lambda: (zeros(12), zeros(12)), (5, 0, 0), "x", (12,), "wholly outside",
          lambda: (zeros(14), zeros(12))),
]
test_reported, test_twin_is_not_reported = both_tests("bounds", F, __name__)


# ------------------------------------------------------------------ what is no error


@ct.kernel
def dropped(x, y, how: ct.Constant[int]):
    k = ct.arange(8, dtype=ct.int32) + 8 * ct.bid(0)
    if how == 0:
        ct.scatter(y, k, ct.gather(x, k))
    elif how == 1:
        ct.scatter(y, k, ct.gather(x, k, check_bounds=True), check_bounds=True)
    elif how == 2:
        ct.scatter(y, k, ct.gather(x, k, mask=k < 12), mask=k < 12)
    else:
        ct.scatter(y, k, ct.gather(x, k, padding_value=7), mask=k < 12)


def test_dropped_elements_are_noted_once_unless_the_kernel_says_so(capsys):
    for schedule in SCHEDULES:
        for _ in range(2):
            for how in range(4):
                assert findings("bounds", dropped, (2,), (zeros(12), zeros(12), how), schedule) == ()
        said = capsys.readouterr().err
        if schedule == SCHEDULES[0]:
            assert said.count("cutile: note:") == 2 and "gather() reads padding_value there: index (12,) of `x`" in said
            assert "scatter() changes nothing there: index (12,) of `y`" in said and "in block (1, 0, 0)" in said
        else:
            assert said == ""  # a program says it once


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_note_names_one_of_the_calls_that_lead_to_its_line(schedule, capsys):
    @ct.kernel
    def calls(x, y):
        def at(right):
            return ct.gather(x, ct.arange(8, dtype=ct.int32) + right)

        ct.store(y, 0, at(0) + at(5) + at(6) + at(7))

    findings("bounds", calls, (1,), (zeros(12), zeros(8)), schedule)
    said = capsys.readouterr().err
    assert said.count("cutile: note:") == 1 and "index (12,) of `x` is out of range for shape (12,), in block" in said
    code, carets = said.splitlines()[2:4]
    assert code[carets.index("^"):].startswith("at(5)") and "return ct.gather" in said
    assert "so in 2 more calls of line" in said and "help: if this is meant, say so by check_bounds=True" in said


@ct.kernel
def edges(x, y):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, (i, j), ct.load(x, (i, j), (4, 8), padding_mode=ct.PaddingMode.ZERO))


def test_tiles_that_reach_over_an_edge_are_fine():
    assert findings("bounds", edges, (2, 2), (zeros(5, 9), zeros(5, 9))) == ()


@ct.kernel
def pointed(x, y, n, T: ct.Constant[int]):
    a = ct.Array.from_foreign(x.foreign_pointer, (n,), (1,))
    ct.store(y, ct.bid(0), ct.load(a, ct.bid(0), T))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_array_at_a_pointer_that_is_longer_than_the_argument(schedule):
    (e,) = findings("bounds", pointed, (3,), (zeros(10), zeros(12), 12, 4), schedule)
    assert e.block == (2, 0, 0) and e.element == (10,) and "is no element of an argument" in str(e)
    assert findings("bounds", pointed, (3,), (zeros(10), zeros(12), 10, 4), schedule) == ()


def test_how_often_and_where_first():
    (e,) = findings("bounds", element_as_index, (5,), (zeros(70), zeros(80), 16))
    assert e.times == 4
    assert str(e).splitlines()[0].endswith("in block (1, 0, 0); so in 4 runs of this line, over all blocks")


@ct.kernel
def by_axes(x, y, check: ct.Constant[bool]):
    r, c = ct.arange(2, dtype=ct.int32)[:, None], ct.arange(4, dtype=ct.int32)[None, :]
    i = ct.bid(0)
    ct.store(y, (i, 0), ct.gather(x, (r + 2 * i, c), check_bounds=check))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape, element", [((3, 4), (3, 0)), ((4, 3), (0, 3)), ((3, 3), (0, 3))])
def test_indices_of_which_each_depends_on_one_axis(shape, element, schedule, capsys):
    (e,) = findings("bounds", by_axes, (2,), (zeros(*shape), zeros(4, 4), False), schedule)
    assert e.element == element and e.block == ((1, 0, 0) if element == (3, 0) else (0, 0, 0))
    assert findings("bounds", by_axes, (2,), (zeros(*shape), zeros(4, 4), True), schedule) == ()


@ct.kernel
def loop_in_steps(x, y, n: ct.Constant[int], step: ct.Constant[int]):
    total = ct.zeros((8,), ct.float32)
    for k in range(0, n, step):
        total += ct.load(x, k, 8)
    ct.store(y, ct.bid(0), total)


@pytest.mark.parametrize("n, step, counts_elements", [(32, 8, True), (6, 1, False)])
def test_what_is_said_of_a_loop(n, step, counts_elements):
    """A loop from one tile to the next by elements, and one that makes two iterations too many."""
    (e,) = findings("bounds", loop_in_steps, (1,), (zeros(32), zeros(8), n, step))
    assert ("the index counts tiles, not elements" in e.help) == counts_elements
