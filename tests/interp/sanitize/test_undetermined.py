"""The check `undetermined`: where padding that was left undetermined matters, and where it does not."""

import itertools

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from tests.front.compiling import cell
from tests.interp.sanitize.planted import SCHEDULES, Fault, both_tests, findings

ZERO = ct.PaddingMode.ZERO
OPEN = ct.PaddingMode.UNDETERMINED


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


@ct.kernel
def row_sums(x, y, pad: ct.Constant[ct.PaddingMode]):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (2, 8), padding_mode=pad)
    ct.store(y, (i,), ct.sum(t, axis=1))  # fault: a sum


@ct.kernel
def matmul(x, y, z, pad: ct.Constant[ct.PaddingMode]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((8, 8), ct.float32)
    for k in range(ct.num_tiles(x, axis=1, shape=(8, 4))):
        a = ct.load(x, (i, k), (8, 4), padding_mode=pad)
        b = ct.load(y, (k, j), (4, 8), padding_mode=pad)
        acc = ct.mma(a, b, acc)
    ct.store(z, (i, j), acc)  # fault: a matmul


@ct.kernel
def softmax(x, y, pad: ct.Constant[ct.PaddingMode]):
    t = ct.load(x, (ct.bid(0), 0), (1, 16), padding_mode=pad)
    top = ct.max(t, axis=1)  # fault: a maximum
    ct.store(y, ct.bid(0), top)


@ct.kernel
def where_is_it(x, y, pad: ct.Constant[ct.PaddingMode]):
    v = x.tiled_view((2, 8), padding_mode=pad)
    t = v.load((ct.bid(0), 0))
    ct.store(y, (ct.bid(0),), ct.argmin(t, axis=1))  # fault: an argmin


@ct.kernel
def lookup(table, ids, y, pad: ct.Constant[ct.PaddingMode]):
    i = ct.bid(0)
    k = ct.load(ids, (i,), (4,), padding_mode=pad)
    t = ct.gather(table, (k, 0))  # fault: an index
    ct.store(y, (i,), t)


@ct.kernel
def tile_index(x, where, y, pad: ct.Constant[ct.PaddingMode]):
    i = ct.bid(0)
    at = ct.load(where, (i,), (2,), padding_mode=pad)
    t = ct.load(x, (ct.extract(at, (1,), ()), 0), (1, 4))  # fault: a tile index
    ct.store(y, (i, 0), t)


@ct.kernel
def branch(x, y, pad: ct.Constant[ct.PaddingMode]):
    i = ct.bid(0)
    total = ct.sum(ct.load(x, (i,), (8,), padding_mode=pad))
    if total > 2:  # fault: a branch
        ct.store(y, (i,), 1)


def summed(t):
    s = ct.zeros((), ct.int32)
    k = 0
    while k < ct.extract(t, (1,), ()):  # fault: a loop in a helper
        s += k
        k += 1
    return s


@ct.kernel
def loop_in_a_helper(x, y, pad: ct.Constant[ct.PaddingMode]):
    ct.store(y, ct.bid(0), summed(ct.load(x, (ct.bid(0),), (2,), padding_mode=pad)))


@ct.kernel
def masked_scatter(x, keep, y, pad: ct.Constant[ct.PaddingMode]):
    i = ct.bid(0)
    k = ct.arange(4, dtype=ct.int32) + 4 * i
    m = ct.load(keep, (i,), (4,), padding_mode=pad)
    ct.scatter(y, k, 1.0, mask=m > 0)  # fault: a mask


@ct.kernel
def histogram(x, counts, pad: ct.Constant[ct.PaddingMode]):
    k = ct.load(x, (ct.bid(0),), (8,), padding_mode=pad)
    ct.atomic_add(counts, k, 1)  # fault: the index of an atomic


@ct.kernel
def atomic_value(x, total, pad: ct.Constant[ct.PaddingMode]):
    t = ct.load(x, (ct.bid(0),), (8,), padding_mode=pad)
    ct.atomic_add(total, (0,), ct.sum(t))  # fault: the value of an atomic


@ct.kernel
def selected(x, y, n: ct.Constant[int]):
    i = ct.bid(0)
    k = ct.arange(8, dtype=ct.int32) + 8 * i
    t = ct.where(k < n, ct.load(x, (i,), (8,)), -1.0)
    ct.store(y, (0, i), ct.reshape(ct.cumsum(t, axis=0), (1, 8)))  # fault: a wrong limit of a selection


@ct.kernel
def user_function(x, y, pad: ct.Constant[ct.PaddingMode]):
    t = ct.load(x, (ct.bid(0),), (4,), padding_mode=pad)
    s = ct.reduce(t, 0, lambda a, b: a * b % 7, 1)
    ct.store(y, (ct.bid(0),), s)  # fault: a function of the user


@ct.kernel
def carried(x, y, pad: ct.Constant[ct.PaddingMode]):
    i = ct.bid(0)
    best = ct.full((2,), 0.0, ct.float16)
    for k in range(3):
        t = ct.load(x, (i, k), (2, 4), padding_mode=pad)
        if k > 1:
            best = best + ct.sum(t, axis=1)
    ct.store(y, (i,), best)  # fault: carried through a loop


F = [
    Fault("a sum", row_sums, (3,), lambda: (ones(5, 6), ones(5), OPEN), (0, 0, 0), "y", (0,),
          "what store() writes to element (0,) of `y` depends on padding", lambda: (ones(5, 6), ones(5), ZERO)),
    Fault("a matmul", matmul, (3, 2), lambda: (ones(20, 6, dtype=np.float16), ones(6, 12, dtype=np.float16),
                                               ones(20, 12), OPEN), (0, 0, 0), "z", (0, 0), "that of this load() of",
          lambda: (ones(20, 8, dtype=np.float16), ones(8, 12, dtype=np.float16), ones(20, 12), OPEN)),
    Fault("a maximum", softmax, (3,), lambda: (ones(3, 9), ones(3), OPEN), (0, 0, 0), "x", None,
          "what max() chooses depends on padding", lambda: (ones(3, 9), ones(3), ct.PaddingMode.NEG_INF)),
    Fault("an argmin", where_is_it, (3,), lambda: (ones(6, 7, dtype=np.int8), ones(6, dtype=np.int32), OPEN),
          (0, 0, 0), "x", None, "what argmin() chooses",
          lambda: (ones(5, 8, dtype=np.int8), ones(5, dtype=np.int32), OPEN)),
    Fault("an index", lookup, (3,), lambda: (ones(9, 2), ones(10, dtype=np.int64), ones(10), OPEN), (2, 0, 0), "table",
          None, "an index of gather() of `table`", lambda: (ones(9, 2), ones(10, dtype=np.int64), ones(10), ZERO)),
    Fault("a tile index", tile_index, (2,), lambda: (ones(4, 4), ones(3, dtype=np.int16), ones(2, 4), OPEN), (1, 0, 0),
          "x", None, "an index of load() of `x`", lambda: (ones(4, 4), ones(4, dtype=np.int16), ones(2, 4), OPEN)),
    Fault("a branch", branch, (3,), lambda: (ones(20), ones(3, dtype=np.int32), OPEN), (2, 0, 0), "x", None,
          "this branch depends on", lambda: (ones(24), ones(3, dtype=np.int32), OPEN)),
    Fault("a loop in a helper", loop_in_a_helper, (2,),
          lambda: (ones(3, dtype=np.int32), ones(2, dtype=np.int32), OPEN), (1, 0, 0), "x", None,
          "the number of iterations",
          lambda: (ones(3, dtype=np.int32), ones(2, dtype=np.int32), ZERO)),
    Fault("a mask", masked_scatter, (2,), lambda: (ones(2), ones(6, dtype=np.uint8), ones(8), OPEN), (1, 0, 0), "y",
          None, "a mask of scatter() of `y`", lambda: (ones(2), ones(8, dtype=np.uint8), ones(8), OPEN)),
    Fault("the index of an atomic", histogram, (2,), lambda: (ones(12, dtype=np.uint8), ones(4, dtype=np.int32), OPEN),
          (1, 0, 0), "counts", None, "an index of atomic_add() of `counts`",
          lambda: (ones(16, dtype=np.uint8), ones(4, dtype=np.int32), OPEN)),
    Fault("the value of an atomic", atomic_value, (3,), lambda: (ones(20), ones(1), OPEN), (2, 0, 0), "total", (0,),
          "what atomic_add() writes to element (0,) of `total`", lambda: (ones(20), ones(1), ZERO)),
    Fault("a wrong limit of a selection", selected, (3,), lambda: (ones(20), ones(1, 24), 21), (2, 0, 0), "y", (0, 20),
          "element (0, 20) of `y`", lambda: (ones(20), ones(1, 24), 20)),
    Fault("a function of the user", user_function, (2,),
          lambda: (ones(7, dtype=np.int32), ones(2, dtype=np.int32), OPEN), (1, 0, 0), "y", (1,), "load() of `x`",
          lambda: (ones(8, dtype=np.int32), ones(2, dtype=np.int32), OPEN)),
    Fault("carried through a loop", carried, (2,), lambda: (ones(4, 10, dtype=np.float16), ones(4, dtype=np.float16),
                                                            OPEN), (0, 0, 0), "y", (0,), "load() of `x`",
          lambda: (ones(4, 12, dtype=np.float16), ones(4, dtype=np.float16), OPEN)),
]
test_reported, test_twin_is_not_reported = both_tests("undetermined", F, __name__)


# ------------------------------------------------------------------ what does not matter


@ct.kernel
def rows(x, y):
    """Rows beyond the array are undetermined as a whole, and are dropped by the store."""
    t = ct.load(x, (ct.bid(0), 0), (4, 8))
    e = ct.exp(t - ct.max(t, axis=1, keepdims=True))
    ct.store(y, (ct.bid(0), 0), e / ct.sum(e, axis=1, keepdims=True))


@ct.kernel
def reached_by_a_mask(x, y, n: ct.Constant[int]):
    i = ct.bid(0)
    k = ct.arange(8, dtype=ct.int32) + 8 * i
    t = ct.load(x, (i,), (8,))
    inside = (k < n) & (t > 0)
    ct.scatter(y, k, t * 2, mask=inside)
    ct.print(t)
    s = ct.sum(ct.where(inside, t, 0.0)) + ct.sum((k < n).astype(ct.int32) * t.astype(ct.int32)).astype(ct.float32)
    if s > 3:
        ct.store(y, (0,), s)


@ct.kernel
def flagged(x, y, n: ct.Constant[int]):
    """The user's function of a reduce takes only elements whose flag is set."""
    i = ct.bid(0)
    valid = ct.arange(8, dtype=ct.int32) + 8 * i < n
    t = ct.load(x, (i,), (8,))

    def chosen(a, fa, b, fb):
        return ct.where(fa, ct.where(fb, ct.maximum(a, b), a), b), fa | fb

    s, _ = ct.reduce((t, valid), 0, chosen, (0.0, False))
    ct.store(y, (i,), s)


@ct.kernel
def integers(x, w, y):
    """A factor of 0 makes the other factor of a product of integers irrelevant."""
    a = ct.load(x, (ct.bid(0), 0), (4, 8), padding_mode=ct.PaddingMode.ZERO)
    b = ct.load(w, (0, 0), (8, 8))
    ct.store(y, (ct.bid(0), 0), ct.mma(a, b, ct.zeros((4, 8), ct.int32)))


@ct.kernel
def top_is_known(x, y):
    t = ct.load(x, (ct.bid(0),), (8,))
    ct.store(y, (ct.bid(0),), ct.max(t, axis=0))


FINE = [
    (rows, (5,), lambda: (ones(18, 8), ones(18, 8))),
    (reached_by_a_mask, (3,), lambda: (ones(20), ones(20), 20)),
    (flagged, (3,), lambda: (ones(20), ones(3), 20)),
    (integers, (2,), lambda: (ones(7, 5, dtype=np.int8), ones(5, 8, dtype=np.int8), ones(7, 8, dtype=np.int32))),
    (top_is_known, (2,), lambda: (np.full(12, np.inf, np.float32), ones(2))),
    (top_is_known, (2,), lambda: (np.full(12, 127, np.int8), ones(2, dtype=np.int8))),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kernel, grid, args", FINE, ids=[k.__name__ for k, *_ in FINE])
def test_padding_that_does_not_matter(kernel, grid, args, schedule):
    assert findings("undetermined", kernel, grid, args(), schedule) == ()


@ct.kernel
def outside(x, y):
    ct.store(y, (ct.bid(0),), ct.load(x, (ct.bid(0),), (4,)))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_tile_outside_is_reported_once(schedule):
    """As one of `bounds` if that is on, else by what its padding does."""
    for checks, expected in (("undetermined", ["undetermined"]), ("all", ["bounds"])):
        assert [e.check for e in findings(checks, outside, (3,), (ones(8), ones(12)), schedule)] == expected
        found = findings(checks, outside, (3,), (ones(7), ones(12)), schedule)
        assert {(e.check, e.block) for e in found} >= {("undetermined", (1, 0, 0))}


@pytest.mark.parametrize("kernel, grid, args", FINE[1:4], ids=[k.__name__ for k, *_ in FINE[1:4]])
def test_it_matters_with_a_wrong_limit(kernel, grid, args):
    """The same kernels where the array ends before the limit, or the other factor is not 0."""
    given = args()
    given = (*given[:-1], 21) if isinstance(given[-1], int) else (ones(7, 8, dtype=np.int8), *given[1:])
    assert findings("undetermined", kernel, grid, given)


# ------------------------------------------------------------------ every op

# Expressions of a tile t of 8 float32 (f) or int32 elements, of which the last two are undetermined.
EXPRESSIONS = """
t + 1; 2 - t; t * t; -t; abs(t); t / 2; t // 3; t % 3; ct.maximum(t, 1); ct.minimum(t, 1); t > 1; t == 5; ~(t > 0)
ct.where(t > 1, 2, 3); ct.where(k < 7, t, 1); ct.where(k < 6, t, 1); (t > 0) & (k < 6); (t > 0) | (k < 6)
t.astype(ct.int8); t.astype(ct.float16); ct.bitcast(t, ct.uint32); ct.exp(t * 0.1); ct.atan2(t, 3.0); t * k
ct.reshape(t, (2, 4)).permute((1, 0)); ct.cat((t, t), 0); ct.extract(t, (1,), (4,)); ct.extract(t, (0,), (4,))
ct.broadcast_to(ct.reshape(t, (8, 1)), (8, 4)); ct.sum(t); ct.prod(t); ct.max(t); ct.min(t, propagate_nan=True)
ct.argmax(t, axis=0); ct.sum(ct.reshape(t, (4, 2)), axis=1); ct.sum(ct.reshape(t, (4, 2)), axis=0)
ct.cumsum(t, axis=0); ct.cumsum(t, axis=0, reverse=True); ct.cumprod(ct.reshape(t, (4, 2)), axis=1)
ct.reduce(t, 0, lambda a, b: a + b, 0); ct.scan(t, 0, lambda a, b: ct.maximum(a, b), 0); ct.pack_to_bytes(t)
ct.unpack_from_bytes(ct.pack_to_bytes(t), ct.int16)
ct.insert(ct.extract(t, (0,), (4,)), (1,), ct.extract(t, (3,), (2,)))
ct.mma(ct.reshape(t, (4, 2)).astype(ct.float32), ct.ones((2, 4), ct.float32), ct.zeros((4, 4), ct.float32))
ct.mma(ct.ones((2, 4), ct.float32), ct.reshape(t, (4, 2)).astype(ct.float32), ct.zeros((2, 2), ct.float32))
ct.mma(ct.ones((4, 2), ct.int8), ct.reshape(t, (2, 4)).astype(ct.int8), ct.zeros((4, 4), ct.int32))
ct.mma(ct.ones((4, 4), ct.int8) * 0, ct.reshape(t, (4, 2)).astype(ct.int8), ct.zeros((4, 2), ct.int32))
t << 1; t >> k; t & 12; t | k; t ^ t + 1; t * 0; t & 0; ct.isnan(t); ct.floor(t); ct.matmul(t, t.astype(t.dtype))
"""
EXPRESSIONS = [e.strip() for line in EXPRESSIONS.split("\n") for e in line.split(";") if e.strip()]
RESULTS = (bool, np.int8, np.uint8, np.int16, np.uint32, np.int32, np.float16, np.float32)
PROGRAM = """import cutile as ct
@ct.kernel
def program(x, y):
    k = ct.arange(8, dtype=ct.int32)
    t = ct.load(x, (0,), (8,))
    ct.store(y, ({zeros}), {expression})
"""


def typed(expression: str, dtype) -> tuple | None:
    """A program that stores an expression, with its arrays; None if the dtype does not have it."""
    x = np.arange(1, 7).astype(dtype)
    for rank, result in itertools.product((0, 1, 2), RESULTS):
        kernel = cell(PROGRAM.format(zeros="0," * max(rank, 1), expression=expression))["program"]
        y = np.zeros((64,) * max(rank, 1), result)
        try:
            with settings.override(SANITIZE="off"):
                ct.launch(None, (1,), kernel, (x, y))
        except ct.TileError:
            continue
        return kernel, x, y
    return None


def results_with(monkeypatch, kernel, x, y, value) -> bytes:
    """What a program stores if undetermined elements have a value."""
    for module in ("cutile.ops._access", "cutile.ops.memory"):
        monkeypatch.setattr(f"{module}.fill_of", lambda mode, d: x.dtype.type(value))
    out = np.zeros_like(y)
    with settings.override(SCHEDULE="block"):
        ct.launch(None, (1,), kernel, (x, out))
    monkeypatch.undo()
    return out.tobytes()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_what_padding_can_change_is_what_is_reported(expression, monkeypatch):
    """Undetermined elements take many values. There is a report if, and for these ops only if, results differ."""
    made = [(m, more) for dtype, more in ((np.float32, (np.nan, np.inf, -np.inf)), (np.int32, (2**31 - 1, -(2**31))))
            if (m := typed(expression, dtype)) is not None]
    assert made
    for (kernel, x, y), more in made:
        results = {results_with(monkeypatch, kernel, x, y, v) for v in (0, 1, 2, 5, -3, 100, *more)}
        found = findings("undetermined", kernel, (1,), (x, y))
        assert bool(found) == (len(results) > 1), x.dtype


# ------------------------------------------------------------------ CUTILE_UNDETERMINED=poison


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("fault", [f for f in F if f.name in ("a maximum", "an argmin")], ids=["max", "argmin"])
def test_poison_watches_extrema(fault, schedule):
    """NaN and the lowest integer would not show in a maximum or minimum."""
    (e,) = findings("off", fault.kernel, fault.grid, fault.args(), schedule, UNDETERMINED="poison")
    assert e.check == "undetermined" and fault.says in str(e)
    assert findings("off", fault.kernel, fault.grid, fault.twin(), schedule, UNDETERMINED="poison") == ()


def test_poison_shows_all_else_by_its_values():
    y = ones(5)
    assert findings("off", row_sums, (3,), (ones(5, 6), y, OPEN), UNDETERMINED="poison") == () and np.isnan(y).all()


def test_values_are_as_without_the_check():
    for kernel, grid, args in FINE:
        with_check, without = args(), args()
        findings("undetermined", kernel, grid, with_check)
        ct.launch(None, grid, kernel, without)
        for a, b in zip(with_check, without, strict=True):
            np.testing.assert_array_equal(a, b)


@ct.kernel
def products_of_batches(x, y, z, integers: ct.Constant[bool]):
    i, j = ct.bid(0), ct.bid(1)
    a, b = ct.load(x, (i, 0, 0), (2, 2, 2)), ct.load(y, (0, j), (2, 2))
    acc = ct.zeros((2, 2, 2), ct.int32 if integers else ct.float32)
    ct.store(z, (i, 0, j), ct.mma(a, b, acc))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_products_of_a_batch_and_a_matrix(dtype, schedule):
    """Either operand may have padding in some blocks of both grid axes."""
    def run(m, k, n, wide):
        x, y, z = np.ones((3, m, k), dtype), np.ones((k, n), dtype), np.zeros((3, 2, wide), np.float32)
        z = z if dtype is np.float32 else z.astype(np.int32)
        return [e.element for e in findings("undetermined", products_of_batches, (2, 2), (x, y, z, dtype is np.int8),
                                            schedule)]

    assert run(2, 2, 3, 3) == [] and run(2, 2, 3, 4) == [(0, 0, 3)]
    assert run(1, 2, 4, 4) == [(0, 1, 0)] and run(2, 1, 4, 4) == [(0, 0, 0)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("checks", ["undetermined", "bounds,undetermined", "all"])
def test_arrays_without_elements(checks, schedule, monkeypatch):
    """The check `bounds` lets the first tile of an empty axis pass, so its padding is not left to that check."""
    @ct.kernel
    def k(x, y, pad: ct.Constant[ct.PaddingMode]):
        ct.store(y, (ct.bid(0), 0), ct.load(x, (ct.bid(0), 0), (1, 4), padding_mode=pad))

    monkeypatch.setenv("CUTILE_SCHEDULE", schedule)
    monkeypatch.setenv("CUTILE_SANITIZE", checks)
    for shape in ((3, 0), (0, 3), (0, 0)):
        x, y = np.zeros(shape, np.float32), np.zeros((3, 4), np.float32)
        with pytest.raises(ct.TileSanitizerError) as e:
            ct.launch(None, (1,), k, (x, y, OPEN))
        assert e.value.check == "undetermined" and e.value.block == (0, 0, 0)
        ct.launch(None, (1,), k, (x, y, ZERO))
        ct.launch(None, (1,), k, (y, x, ZERO))
