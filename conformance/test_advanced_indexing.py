"""ct.load_advanced_indexing, ct.store_advanced_indexing and ct.Slice."""

import itertools

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, needs, refuses, run
from conformance.harness.dtype_names import NUMPY
from conformance.harness.guarded_arrays import guarded, layouts, numbers, same, sample
from conformance.harness.type_probes import on_target

ZERO = ct.PaddingMode.ZERO
X1, X2 = np.zeros(8, np.int32), np.zeros((8, 8), np.int32)
SIGNED = [ct.int8, ct.int16, ct.int32, ct.int64]
UNSIGNED = [ct.uint8, ct.uint16, ct.uint32, ct.uint64]


def rows(a, axis, positions, starts, shape):
    """(position in the tile, position in the array, whether it exists) of each element."""
    for x in itertools.product(*map(range, shape)):
        others = iter(starts)
        begin = [int(positions[x[k]] if k == axis else next(others)) for k in range(a.ndim)]
        at = tuple(p if k == axis else p + x[k] for k, p in enumerate(begin))
        yield x, at, min(begin) >= 0 and all(p < n for p, n in zip(at, a.shape))


def expected(a, axis, positions, starts, shape, pad=0):
    out = np.empty(shape, a.dtype)
    for x, at, exists in rows(a, axis, positions, starts, shape):
        out[x] = a[at] if exists else pad
    return out


def entries(axis, rank, t, starts, shape):
    """The indices of an access in tile code."""
    if rank == 2:
        return (t, ct.Slice(starts[0], shape[1])) if axis == 0 else (ct.Slice(starts[0], shape[0]), t)
    if axis == 0:
        return t, ct.Slice(starts[0], shape[1]), ct.Slice(starts[1], shape[2])
    if axis == 1:
        return ct.Slice(starts[0], shape[0]), t, ct.Slice(starts[1], shape[2])
    return ct.Slice(starts[0], shape[0]), ct.Slice(starts[1], shape[1]), t


def of_blocks(a, b):
    return 2 * a, b


def of_neither(a, b):
    return 1, 2


def curved(a, b):
    return a * a, a * b


CASES = [(0, (4, 2)), (1, (4, 8)), (0, (2, 2, 4)), (1, (4, 2, 1)), (2, (2, 4, 2)), (1, (1, 1, 8))]
cases = pytest.mark.parametrize("axis, shape", CASES, ids=lambda v: str(v).replace(" ", ""))
places = pytest.mark.parametrize("start", [of_blocks, of_neither, curved], ids=lambda f: f.__name__)
GRID = (3, 2)


def positions_of(n, limit, seed, outside=()):
    p = np.random.default_rng(seed).integers(0, limit, (*GRID, n)).astype(np.int32)
    for k, v in enumerate(outside):
        p.reshape(-1)[k * p.size // len(outside)] = v
    return p


def load_all(x, p, axis, shape, start, diverge=False):
    rank, block = x.ndim, (1, 1, *shape)
    zeros, n = (0,) * x.ndim, shape[axis]

    def whole(x, p, out):
        a, b = ct.bid(0), ct.bid(1)
        t = ct.load(p, (a, b, 0), (1, 1, n)).reshape((n,))
        y = ct.load_advanced_indexing(x, entries(axis, rank, t, start(a, b), shape), padding_mode=ZERO)
        ct.static_assert(y.shape == shape)
        ct.store(out, (a, b) + zeros, y.reshape(block))

    def some(x, p, out):
        a, b = ct.bid(0), ct.bid(1)
        if a != b:
            t = ct.load(p, (a, b, 0), (1, 1, n)).reshape((n,))
            y = ct.load_advanced_indexing(x, entries(axis, rank, t, start(a, b), shape), padding_mode=ZERO)
            ct.store(out, (a, b) + zeros, y.reshape(block))

    out = np.full((*GRID, *shape), -1).astype(x.dtype)
    want = out.copy()
    for a, b in np.ndindex(GRID):
        if not diverge or a != b:
            want[a, b] = expected(x, axis, p[a, b], start(a, b)[:rank - 1], shape)
    same(run(ct.kernel(some if diverge else whole), x, p, out, grid=GRID), want)


@clause("ADV-3.element", "ADV-3.shape", "ADV-2.start", "ADV-4.padding", "ADV-4.negative")
@cases
@places
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
def test_load(axis, shape, start, diverge):
    size = (7, 6, 5)[:len(shape)]
    load_all(numbers(size), positions_of(shape[axis], size[axis], 1), axis, shape, start, diverge)
    outside = (-1, size[axis], -size[axis], 2**31 - 1, -(2**31), size[axis] - 1, 1 << 20)
    load_all(numbers(size), positions_of(shape[axis], size[axis], 2, outside), axis, shape, start, diverge)


@clause("ADV-3.element", "ADV-4.padding")
@layouts
def test_load_from_each_layout(layout):
    for d in ("i16", "bf16"):
        g = guarded(sample(d, (7, 6, 5)), layout)
        load_all(g.array, positions_of(4, 6, 3, (6, -1)), 1, (2, 4, 4), of_blocks)


@clause("ADV-3.element", "ADV-4.dropped", "ADV-4.negative", "ADV-6.duplicates", "ADV-6.result")
@cases
@places
@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
def test_store(axis, shape, start, layout):
    rank, n, block = len(shape), shape[axis], (1, 1, *shape)
    zeros, size = (0,) * len(shape), (7, 6, 5)[:len(shape)]

    @ct.kernel
    def k(p, source, x):
        a, b = ct.bid(0), ct.bid(1)
        t = ct.load(p, (a, b, 0), (1, 1, n)).reshape((n,))
        y = ct.load(source, (a, b) + zeros, block).reshape(shape)
        r = ct.store_advanced_indexing(x, entries(axis, rank, t, start(a, b), shape), y)
        ct.static_assert(r is None)

    p = positions_of(n, size[axis], 4, (-1, size[axis], 2**31 - 1, -(2**31), -size[axis]))
    source = numbers((*GRID, *shape), start=1000)
    g = guarded(-numbers(size), layout)
    allowed = {at: [] for at in np.ndindex(size)}
    for a, b in np.ndindex(GRID):
        for x, at, exists in rows(g.array, axis, p[a, b], start(a, b)[:rank - 1], shape):
            if exists:
                allowed[at].append(source[(a, b, *x)])
    before = g.array.copy()
    launch(k, p, source, g.array, grid=GRID)
    g.check(g.array)
    for at, values in allowed.items():
        assert g.array[at] in (values or [before[at]]), f"at {at}: {g.array[at]}, not one of {values}"


@clause("ADV-3.element", "ADV-6.duplicates")
def test_the_same_tile_or_place_for_all_blocks():
    @ct.kernel
    def k(x, y):
        t = ct.arange(2, dtype=ct.int32) * 3
        ct.store_advanced_indexing(x, (t, ct.Slice(ct.bid(0) * 2, 2)), ct.full((2, 2), 5, ct.int32))
        ct.store_advanced_indexing(y, (t, ct.Slice(1, 2)), ct.full((2, 2), 5, ct.int32) + ct.bid(0))

    x, y = guarded(np.zeros((4, 7), np.int32)), guarded(np.zeros((4, 4), np.int32))
    launch(k, x.array, y.array, grid=(3,))
    want = np.zeros((4, 7), np.int32)
    want[[0, 3], :6] = 5
    x.check(want)
    y.check(y.array)
    assert all(5 <= v < 8 for v in y.array[::3, 1:3].reshape(-1).tolist()) and y.array.astype(bool).sum() == 4


@clause("ADV-3.element")
@pytest.mark.parametrize("d", NUMPY)
def test_every_dtype(d):
    @ct.kernel
    def k(x, p, out):
        t = ct.load(p, 0, 4)
        y = ct.load_advanced_indexing(x, (ct.Slice(1, 2), t))
        ct.static_assert(y.dtype == x.dtype)
        ct.store_advanced_indexing(out, (t, ct.Slice(0, 4)), ct.cat((y.transpose(), y.transpose()), 1))

    x, p = sample(d, (4, 6)), np.array([5, 0, 3, 2], np.int32)
    want = np.ones((6, 4), np.uint8).astype(x.dtype)
    out = want.copy()
    for i in p.tolist():
        want[i] = [x[1, i], x[2, i], x[1, i], x[2, i]]
    with on_target(d):
        same(run(k, x, p, out), want)


@clause("ADV-5.sparse")
@pytest.mark.parametrize("d", SIGNED + UNSIGNED, ids=str)
def test_positions_of_every_dtype(d):
    @ct.kernel
    def k(x, out):
        t = (ct.arange(4, dtype=ct.int32) * 2 + ct.bid(0)).astype(d)
        ct.store(out, (ct.bid(0), 0, 0), ct.load_advanced_indexing(x, (t, ct.Slice(0, 2))).reshape((1, 4, 2)))

    x = numbers((8, 2))
    out = run(k, x, np.zeros((2, 4, 2), np.int32), grid=(2,))
    same(out[0], x[0::2])
    same(out[1], x[1::2])


@clause("ADV-5.sparse")
def test_wide_positions_keep_their_value():
    @ct.kernel
    def k(x, p, q, out):
        ct.store(out, (0, 0), ct.load_advanced_indexing(x, (ct.load(p, 0, 4), ct.Slice(0, 1)), padding_mode=ZERO))
        ct.store(out, (1, 0), ct.load_advanced_indexing(x, (ct.load(q, 0, 4), ct.Slice(0, 1)), padding_mode=ZERO))

    p = np.array([1, (1 << 32) + 1, -(1 << 32), 1 << 62], np.int64)
    q = np.array([2, (1 << 32) + 1, 1 << 63, (1 << 64) - 1], np.uint64)
    out = run(k, numbers((4, 1)), p, q, np.full((8, 1), -1, np.int32))
    assert out[:, 0].tolist() == [2, 0, 0, 0, 3, 0, 0, 0]


@clause("ADV-5.start")
@pytest.mark.parametrize("d", SIGNED, ids=str)
def test_starts_of_every_width(d):
    @ct.kernel
    def k(x, out):
        s = (ct.bid(0) * 3).astype(d)
        y = ct.load_advanced_indexing(x, (ct.arange(2, dtype=ct.int32), ct.Slice(s, 4)), padding_mode=ZERO)
        ct.store(out, (ct.bid(0), 0, 0), y.reshape((1, 2, 4)))

    x = numbers((2, 8))
    out = run(k, x, np.zeros((3, 2, 4), np.int32), grid=(3,))
    for b in range(3):
        same(out[b], expected(x, 0, [0, 1], [3 * b], (2, 4)))


@clause("ADV-4.padding", "ADV-4.negative")
@pytest.mark.parametrize("start", [-1, -2, -4, 7, 100, 2**31 - 1, -(2**31)])
def test_starts_out_of_range(start):
    @ct.kernel
    def k(x, n, out, y):
        t = ct.arange(2, dtype=ct.int32)
        ct.store(out, (0, 0), ct.load_advanced_indexing(x, (t, ct.Slice(n, 4)), padding_mode=ZERO))
        ct.store_advanced_indexing(y, (t, ct.Slice(n, 4)), ct.full((2, 4), -9, ct.int32))

    x, y = numbers((2, 8)), guarded(numbers((2, 8)))
    want = numbers((2, 8))
    if start == 7:
        want[:, 7] = -9
    out = np.full((2, 4), -1, np.int32)
    launch(k, x, start, out, y.array)
    same(out, expected(x, 0, [0, 1], [start], (2, 4)))
    y.check(want)


@clause("ADV-4.padding")
@pytest.mark.parametrize("pad, value", [("NAN", np.nan), ("NEG_INF", -np.inf), ("ZERO", 0.0),
    (ct.PaddingMode.POS_INF, np.inf)])
def test_padding_modes(pad, value):
    @ct.kernel
    def k(x, p, out):
        ct.store(out, (0, 0), ct.load_advanced_indexing(x, (ct.load(p, 0, 2), ct.Slice(2, 2)), padding_mode=pad))

    out = run(k, numbers((3, 3), np.float32), np.array([1, 5], np.int32), np.ones((2, 2), np.float32))
    assert np.array_equal(out, np.array([[6, value], [value, value]], np.float32), equal_nan=True)


@clause("ADV-4.padding")
def test_special_padding_needs_floats():
    @ct.kernel
    def k(x):
        ct.load_advanced_indexing(x, (ct.arange(2, dtype=ct.int32), ct.Slice(0, 2)), padding_mode="NAN")

    refuses("TileTypeError", k, X2)


def t4():
    return ct.arange(4, dtype=ct.int32)


@pytest.mark.parametrize("x, indices", [
    pytest.param(X1, lambda: (t4(),), marks=clause("ADV-1.rank")),
    pytest.param(X1, lambda: t4(), marks=clause("ADV-1.rank")),
    pytest.param(X2, lambda: t4(), marks=clause("ADV-1.tuple")),
    pytest.param(X2, lambda: (t4(),), marks=clause("ADV-1.tuple")),
    pytest.param(X2, lambda: (t4(), ct.Slice(0, 2), ct.Slice(0, 2)), marks=clause("ADV-1.tuple")),
    pytest.param(X2, lambda: (ct.Slice(0, 2), ct.Slice(0, 2)), marks=clause("ADV-1.none")),
    pytest.param(X2, lambda: (t4(), t4()), marks=clause("ADV-1.two")),
    pytest.param(X2, lambda: (0, ct.Slice(0, 2)), marks=clause("ADV-1.scalar")),
    pytest.param(X2, lambda: (t4(), 0), marks=clause("ADV-1.scalar")),
    pytest.param(X2, lambda: (t4()[None, :], ct.Slice(0, 2)), marks=clause("ADV-1.matrix")),
    pytest.param(X2, lambda: (t4().astype(ct.float32), ct.Slice(0, 2)), marks=clause("ADV-1.float")),
    pytest.param(X2, lambda: (t4() > 1, ct.Slice(0, 2)), marks=clause("ADV-1.float")),
    pytest.param(X2, lambda: (t4(), slice(0, 2, 1)), marks=clause("ADV-1.slice")),
    pytest.param(X2, lambda: (t4(), ct.Slice(0, ct.bid(0))), marks=clause("ADV-2.constant")),
    pytest.param(X2, lambda: (t4(), ct.Slice(0, 0)), marks=clause("ADV-2.positive")),
    pytest.param(X2, lambda: (t4(), ct.Slice(0, -2)), marks=clause("ADV-2.positive")),
    pytest.param(X2, lambda: (t4(), ct.Slice(0, 3)), marks=clause("ADV-2.pow2")),
])
def test_what_are_no_indices(x, indices):
    @ct.kernel
    def load(x):
        ct.load_advanced_indexing(x, indices())

    @ct.kernel
    def store(x):
        ct.store_advanced_indexing(x, indices(), ct.zeros((4, 2), ct.int32))

    refuses("TileTypeError", load, x)
    refuses("TileTypeError", store, x)


@pytest.mark.parametrize("make", [
    pytest.param(lambda: ct.Slice(ct.uint32(0), 2), marks=clause("ADV-2.signed")),
    pytest.param(lambda: ct.Slice(0, ct.uint32(2)), marks=clause("ADV-2.signed")),
    pytest.param(lambda: ct.Slice(0.0, 2), marks=clause("ADV-2.signed")),
    pytest.param(lambda: ct.Slice(0, 2.0), marks=clause("ADV-2.signed")),
    pytest.param(lambda: ct.Slice(True, 2), marks=clause("ADV-2.signed")),
    pytest.param(lambda: ct.Slice(t4(), 2), marks=clause("ADV-2.signed")),
    pytest.param(lambda: ct.Slice(0, None), marks=clause("ADV-2.signed")),
    pytest.param(lambda: ct.Slice(start=0, length=2), marks=clause("ADV-2.positional")),
    pytest.param(lambda: ct.Slice(0), marks=clause("ADV-2.positional")),
    pytest.param(lambda: ct.Slice(0, 2).start, marks=clause("ADV-2.opaque")),
    pytest.param(lambda: ct.Slice(0, 2).length, marks=clause("ADV-2.opaque"))])
def test_slices_that_are_refused(make):
    @ct.kernel
    def k():
        make()

    refuses("TileTypeError", k)


@clause("ADV-2.signed")
def test_slices_that_are_made():
    @ct.kernel
    def k(x, n):
        ct.Slice(-1, 2)
        ct.Slice(ct.int8(1), n)
        ct.load_advanced_indexing(x, (t4(), ct.Slice(n, ct.int64(2))))

    accepts(k, X2, 1)


@clause("ADV-6.shape", "ADV-6.scalar")
@pytest.mark.parametrize("tile", [lambda: ct.zeros((2, 4), ct.int32), lambda: ct.zeros((1, 2), ct.int32),
                                  lambda: ct.zeros((4, 1), ct.int32), lambda: ct.zeros((2,), ct.int32), lambda: 0,
                                  lambda: ct.bid(0), lambda: None])
def test_tiles_of_another_shape(tile):
    @ct.kernel
    def k(x):
        ct.store_advanced_indexing(x, (t4(), ct.Slice(0, 2)), tile())

    refuses("TileTypeError", k, X2)


@clause("ADV-6.cast")
def test_stored_tiles_are_cast():
    @ct.kernel
    def good(x):
        ct.store_advanced_indexing(x, (t4(), ct.Slice(0, 2)), ct.full((4, 2), 2049, ct.int32))

    @ct.kernel
    def bad(x):
        ct.store_advanced_indexing(x, (t4(), ct.Slice(0, 2)), ct.full((4, 2), 1, ct.float32))

    same(run(good, np.zeros((4, 2), np.float16)), np.full((4, 2), 2048, np.float16))
    refuses("TileTypeError", bad, np.zeros((4, 2), np.float16))


@pytest.mark.parametrize("call", [
    lambda x, i: ct.load_advanced_indexing(array=x, indices=i), lambda x, i: ct.load_advanced_indexing(x, indices=i),
    lambda x, i: ct.load_advanced_indexing(x, i, ZERO), lambda x, i: ct.load_advanced_indexing(x, i, check_bounds=True),
    lambda x, i: ct.store_advanced_indexing(x, i, tile=ct.zeros((4, 2), ct.int32)),
    lambda x, i: ct.store_advanced_indexing(x, i, ct.zeros((4, 2), ct.int32), padding_mode=ZERO),
    lambda x, i: ct.load_advanced_indexing(ct.zeros((4, 4), ct.int32), i)])
@clause("ADV-1.tuple")
def test_bad_calls(call):
    @ct.kernel
    def k(x):
        call(x, (t4(), ct.Slice(0, 2)))

    refuses("TileTypeError", k, X2)


@needs("overlap")
@clause("ADV-3.element")
def test_a_loaded_tile_does_not_change():
    @ct.kernel
    def k(x, y, out):
        i = (t4(), ct.Slice(0, 2))
        t = ct.load_advanced_indexing(x, i)
        ct.store_advanced_indexing(y, i, t + 100)
        ct.store(out, (0, 0), t)

    x = numbers((4, 2))
    same(run(k, x, x, np.zeros((4, 2), np.int32)), numbers((4, 2)))
    same(x, numbers((4, 2), start=101))


@clause("SLICE-1.base")
@pytest.mark.parametrize("size", [3, 1])
def test_rows_of_slices_that_differ_by_block(size):
    """All rows, or only some, exist in the slice of each block."""
    @ct.kernel
    def k(x, out, written):
        i = ct.bid(0)
        t = ct.arange(2, dtype=ct.int32)
        rows = ct.load_advanced_indexing(x.slice(0, 3 * i, 3 * i + size), (t, ct.Slice(0, 4)), padding_mode=ZERO)
        ct.store(out, (i, 0), rows)
        ct.store_advanced_indexing(written.slice(0, 3 * i, 3 * i + size), (t, ct.Slice(0, 4)), rows)

    x = np.arange(1, 49, dtype=np.float32).reshape(12, 4)
    out, written = np.zeros((8, 4), np.float32), np.zeros((12, 4), np.float32)
    launch(k, x, out, written, grid=(4,))
    there = np.array([n for i in range(4) for n in range(3 * i, 3 * i + min(size, 2))])
    want = np.zeros_like(written)
    want[there] = x[there]
    assert written.tolist() == want.tolist()
    assert out.tolist() == [x[3 * i + j].tolist() if j < size else [0.0] * 4 for i in range(4) for j in range(2)]


@clause("SLICE-1.base", "ADV-2.start", "ADV-4.negative", "ADV-4.dropped")
@pytest.mark.parametrize("foreign", [False, True], ids=["array", "pointer"])
@pytest.mark.parametrize("back", [0, 2, 4, 8])
def test_rows_that_begin_before_a_slice(back, foreign):
    """The first blocks' rows begin before the slice, where the array has elements: these blocks read and write
    nothing.
    """
    @ct.kernel
    def k(x, out):
        at = (ct.arange(2, dtype=ct.int32), ct.Slice(4 * ct.bid(0) - back, 4))
        whole = ct.Array.from_foreign(x.foreign_pointer, (4, 24), (24, 1)) if foreign else x  # two rows do not exist
        y = whole.slice(1, 6, 18)
        rows = ct.load_advanced_indexing(y, at, padding_mode=ZERO)
        ct.store(out, (0, ct.bid(0)), rows)
        ct.store_advanced_indexing(y, at, -rows)

    x, out = numbers((2, 24)), np.full((2, 20), -1, np.int32)
    want, read = x.copy(), np.zeros_like(out)
    for i in range(20):
        if i // 4 * 4 >= back and i - back < 12:
            read[:, i] = x[:, 6 + i - back]
            want[:, 6 + i - back] *= -1
    launch(k, x, out, grid=(5,))
    same(out, read)
    same(x, want)
