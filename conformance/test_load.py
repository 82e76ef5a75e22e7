"""ct.load."""

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, needs, refuses, run
from conformance.harness.dtype_names import NUMPY
from conformance.harness.guarded_arrays import guarded, layouts, numbers, same, sample
from conformance.harness.index_maps import GRID, blocks, fitting, looks
from conformance.harness.number_comparison import same_numbers
from conformance.harness.tile_elements import tile_of
from conformance.harness.type_probes import on_target

ZERO = ct.PaddingMode.ZERO
X1, X2, X3 = (np.zeros((4,) * r, np.int32) for r in (1, 2, 3))


def loader(look, shape, order="C", pad=ZERO, diverge=False):
    """A kernel that loads a tile for each block of a grid, and stores it at the block's own place."""
    rank, block = len(shape), (1, 1, 1, *shape)
    zeros = (0,) * rank

    def whole(x, out):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        t = ct.load(x, look(a, b, c)[:rank], shape, order=order, padding_mode=pad)
        ct.store(out, (a, b, c) + zeros, t.reshape(block))

    def some(x, out):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        if (a + b) % 2 == c:
            t = ct.load(x, look(a, b, c)[:rank], shape, order=order, padding_mode=pad)
            ct.store(out, (a, b, c) + zeros, t.reshape(block))

    return ct.kernel(some if diverge else whole)


def check(x, look, shape, order="C", pad=ZERO, fill=0, diverge=False, grid=GRID):
    rank = len(shape)
    out = np.zeros((*grid, *shape), x.dtype)
    axes = {"C": tuple(range(rank)), "F": tuple(range(rank))[::-1]}.get(order, order)
    want = out.copy()
    for b in blocks(grid):
        if not diverge or (b[0] + b[1]) % 2 == b[2]:
            want[b] = tile_of(x, look(*b)[:rank], shape, fill, [k % rank for k in axes])
    same(run(loader(look, shape, order, pad, diverge), x, out, grid=grid), want)


@clause("LOAD-1.element", "LOAD-5.edge")
@pytest.mark.parametrize("shape", [(6, 10), (10, 6), (6, 14)], ids=str)
def test_tiles_that_move_along_both_axes(shape):
    """Blocks of one row of the grid reach beyond the first axis, and some of these also beyond the second."""
    @ct.kernel
    def k(x, out):
        i, j = ct.bid(0), ct.bid(1)
        ct.store(out, (i, j, 0, 0), ct.load(x, (i, i + j), (4, 4), padding_mode=ZERO).reshape((1, 1, 4, 4)))

    x = numbers(shape)
    out = run(k, x, np.full((3, 3, 4, 4), -1, np.int32), grid=(3, 3))
    for i, j in np.ndindex(3, 3):
        same(out[i, j], tile_of(x, (i, i + j), (4, 4)))


@clause("LOAD-1.element", "LOAD-5.edge")
@looks
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
@pytest.mark.parametrize("tile, edge", [((4, 2, 2), (0, 0, 0)), ((4, 2, 2), (3, 1, 1)), ((2, 4, 1), (0, 2, 0)),
                                        ((8, 2), (5, 1)), ((4,), (2,)), ((1, 8), (0, 3))],
                         ids=lambda t: "x".join(map(str, t)))
def test_tiles_of_blocks(look, tile, edge, diverge):
    check(numbers(fitting(look, tile, edge)), look, tile, diverge=diverge)


@clause("LOAD-1.element", "LOAD-5.edge")
@layouts
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
def test_layouts(layout, diverge):
    for look_at in ("straight", "summed", "ragged", "fixed"):
        look = next(f for f in looks.args[1] if f.__name__ == look_at)
        x = guarded(numbers(fitting(look, (4, 2, 2), (1, 1, 0)), np.int16), layout)
        before = x.array.copy()
        check(x.array, look, (4, 2, 2), diverge=diverge)
        x.check(before)


@clause("LOAD-1.element", "LOAD-5.edge")
def test_an_axis_of_stride_zero():
    x = np.broadcast_to(numbers((1, 7)), (6, 7))

    @ct.kernel
    def k(x, out):
        i, j = ct.bid(0), ct.bid(1)
        ct.store(out, (i, j, 0, 0), ct.load(x, (i, j), (4, 4), padding_mode=ZERO).reshape((1, 1, 4, 4)))

    out = run(k, x, np.zeros((2, 2, 4, 4), np.int32), grid=(2, 2))
    for i, j in np.ndindex(2, 2):
        same(out[i, j], tile_of(x, (i, j), (4, 4)))


@clause("LOAD-1.type")
@pytest.mark.parametrize("d", NUMPY)
def test_every_dtype(d):
    x = sample(d, (8, 8))
    out = np.ones((2, 4, 4, 2), np.uint8).astype(x.dtype)
    want = out.copy()

    @ct.kernel
    def k(x, out):
        i, j = ct.bid(0), ct.bid(1)
        t = ct.load(x, (i, j), (4, 2), padding_mode=ZERO)
        ct.static_assert(t.dtype == x.dtype and t.shape == (4, 2))
        ct.store(out, (i, j, 0, 0), t.reshape((1, 1, 4, 2)))

    for i, j in np.ndindex(2, 4):
        want[i, j] = tile_of(x, (i, j), (4, 2))
    with on_target(d):
        same(run(k, x, out, grid=(2, 4)), want)


@clause("LOAD-1.element")
@pytest.mark.parametrize("d", ["f16", "bf16", "e4m3", "f32"])
def test_reading_an_array_again_and_again(d):
    x = sample(d, (16,))

    @ct.kernel
    def k(x, out):
        for n in range(6):
            i = (ct.bid(0) + n) % 4
            ct.store(out, (ct.bid(0), n, 0), ct.load(x, i, 4).reshape((1, 1, 4)))

    out = run(k, x, np.zeros((4, 6, 4)).astype(x.dtype), grid=(4,))
    for b, n in np.ndindex(4, 6):
        same(out[b, n], x[(b + n) % 4 * 4:][:4])


@clause("LOAD-2.scalar", "LOAD-3.int")
def test_rank_1_with_plain_integers():
    @ct.kernel
    def k(x, out):
        t = ct.load(x, ct.bid(0), 4)
        ct.static_assert(t.shape == (4,))
        ct.store(out, ct.bid(0), t)

    x = numbers(12)
    same(run(k, x, np.zeros(12, np.int32), grid=(3,)), x)


@clause("LOAD-2.tuple")
@pytest.mark.parametrize("x, index", [(X1, (0, 0)), (X2, (0,)), (X2, (0, 0, 0)), (X2, 0), (X1, ()), (X3, (0, 0))])
def test_an_index_of_the_wrong_length(x, index):
    shape = (2,) * x.ndim

    @ct.kernel
    def k(x):
        ct.load(x, index, shape)

    refuses("TileTypeError", k, x)


@clause("LOAD-2.width", "IDX-2.narrow")
@pytest.mark.parametrize("d", [ct.int8, ct.int16, ct.int32, ct.int64], ids=str)
def test_an_index_of_each_width(d):
    x, out = numbers((8, 6)), np.zeros((4, 2, 2, 4), np.int32)

    @ct.kernel
    def k(x, out):
        i, j = ct.bid(0), ct.bid(1)
        t = ct.load(x, (i.astype(d), ct.astype(j, d)), (2, 4), padding_mode=ZERO)
        ct.store(out, (i, j, 0, 0), t.reshape((1, 1, 2, 4)))

    run(k, x, out, grid=(4, 2))
    for i, j in np.ndindex(4, 2):
        same(out[i, j], tile_of(x, (i, j), (2, 4)))


@clause("IDX-2.wide")
def test_a_wide_index_is_truncated():
    @ct.kernel
    def k(x, out):
        i = ct.bid(0).astype(ct.int64) + (1 << 32)
        ct.store(out, ct.bid(0), ct.load(x, i, 2))

    x = numbers(8)
    same(run(k, x, np.zeros(8, np.int32), grid=(4,)), x)


@pytest.mark.parametrize("bad", [
    pytest.param(lambda: True, marks=clause("LOAD-2.bool")),
    pytest.param(lambda: ct.bid(0) == 0, marks=clause("LOAD-2.bool")),
    pytest.param(lambda: ct.uint32(0), marks=clause("LOAD-2.unsigned")),
    pytest.param(lambda: ct.bid(0).astype(ct.uint8), marks=clause("LOAD-2.unsigned")),
    pytest.param(lambda: 0.0, marks=clause("LOAD-2.float")),
    pytest.param(lambda: ct.bid(0).astype(ct.float32), marks=clause("LOAD-2.float")),
    pytest.param(lambda: ct.zeros((1,), ct.int32), marks=clause("LOAD-2.tile")),
    pytest.param(lambda: ct.arange(4, dtype=ct.int32), marks=clause("LOAD-2.tile")),
])
def test_what_is_no_index(bad):
    @ct.kernel
    def one(x):
        ct.load(x, bad(), 4)

    @ct.kernel
    def two(x):
        ct.load(x, (0, bad()), (2, 2))

    refuses("TileTypeError", one, X1)
    refuses("TileTypeError", two, X2)


@pytest.mark.parametrize("x, shape", [
    pytest.param(X1, (2, 2), marks=clause("LOAD-3.rank")),
    pytest.param(X2, (2,), marks=clause("LOAD-3.rank")),
    pytest.param(X2, 2, marks=clause("LOAD-3.rank")),
    pytest.param(X2, (1, 2, 2), marks=clause("LOAD-3.rank")),
    pytest.param(np.zeros((), np.int32), (1,), marks=clause("LOAD-3.rank", "LOAD-3.rank0")),
    pytest.param(np.zeros((), np.int32), 1, marks=clause("LOAD-3.rank", "LOAD-3.rank0")),
    pytest.param(X1, 3, marks=clause("LOAD-3.pow2")),
    pytest.param(X1, 0, marks=clause("LOAD-3.pow2")),
    pytest.param(X1, -2, marks=clause("LOAD-3.pow2")),
    pytest.param(X2, (2, 6), marks=clause("LOAD-3.pow2")),
    pytest.param(X2, (6, 2), marks=clause("LOAD-3.pow2")),
    pytest.param(X1, 2.0, marks=clause("LOAD-3.constant")),
    pytest.param(X2, (2, True), marks=clause("LOAD-3.constant")),
])
def test_what_is_no_shape(x, shape):
    index = (0,) * x.ndim

    @ct.kernel
    def k(x):
        ct.load(x, index, shape)

    refuses("TileTypeError", k, x)


@clause("LOAD-3.constant")
def test_a_shape_is_constant():
    @ct.kernel
    def k(x, n):
        ct.load(x, 0, n)

    refuses("TileTypeError", k, X1, 4)


@clause("LOAD-3.scalar")
def test_one_element_as_a_scalar():
    @ct.kernel
    def k(x, y, z, out):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        s, t, u = ct.load(x, a, ()), ct.load(y, (b, a), ()), ct.load(z, (c, b, a), shape=())
        ct.static_assert(s.shape == () and t.shape == () and u.shape == ())
        ct.store(out, (a, b, c), s * 10000 + t * 100 + u)

    x, y, z = numbers(4), numbers((3, 4)), numbers((2, 3, 4))
    out = run(k, x, y, z, np.zeros(GRID, np.int32), grid=GRID)
    for a, b, c in blocks():
        assert out[a, b, c] == x[a] * 10000 + y[b, a] * 100 + z[c, b, a]


@clause("LOAD-3.rank0")
def test_an_array_of_rank_0():
    @ct.kernel
    def k(x, out):
        t = ct.load(x, (), ())
        ct.static_assert(t.shape == ())
        ct.store(out, ct.bid(0), t + ct.bid(0))

    same(run(k, np.array(40, np.int32), np.zeros(3, np.int32), grid=(3,)), np.array([40, 41, 42], np.int32))


@clause("LOAD-4.C", "LOAD-4.F", "LOAD-4.permutation", "LOAD-1.element", "LOAD-5.edge")
@pytest.mark.parametrize("order", ["C", "F", (0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0),
                                   pytest.param((-1, 0, -2), marks=clause("LOAD-4.negative")),
                                   pytest.param((1, -1, -3), marks=clause("LOAD-4.negative"))])
@pytest.mark.parametrize("look", ["straight", "ragged"])
def test_orders(order, look):
    look = next(f for f in looks.args[1] if f.__name__ == look)
    size = fitting(look, (4, 2, 8), (1, 1, 3))  # per tile dimension; per array axis:
    axes = {"C": (0, 1, 2), "F": (2, 1, 0)}.get(order, order)
    shape = [0, 0, 0]
    for i, k in enumerate(axes):
        shape[k] = size[i]
    check(numbers(shape), look, (4, 2, 8), order)


@clause("LOAD-4.C")
def test_the_default_order():
    @ct.kernel
    def k(x, out):
        ct.store(out, (0, 0), ct.load(x, (1, 0), (2, 4)))

    x = numbers((4, 4))
    same(run(k, x, np.zeros((2, 4), np.int32)), x[2:])


@pytest.mark.parametrize("order", [
    pytest.param((0, 0), marks=clause("LOAD-4.repeated")),
    pytest.param((1, -1), marks=clause("LOAD-4.repeated")),
    pytest.param((0,), marks=clause("LOAD-4.length")),
    pytest.param((0, 1, 2), marks=clause("LOAD-4.length")),
    pytest.param("A", marks=clause("LOAD-4.string")),
    pytest.param("c", marks=clause("LOAD-4.string")),
    pytest.param((0, 2), marks=clause("LOAD-4.range")),
    pytest.param((-3, 1), marks=clause("LOAD-4.range")),
    pytest.param((0, True), marks=clause("LOAD-4.constant")),
    pytest.param((0, 1.0), marks=clause("LOAD-4.constant")),
    pytest.param(None, marks=clause("LOAD-4.constant")),
])
def test_what_is_no_order(order):
    @ct.kernel
    def k(x):
        ct.load(x, (0, 0), (2, 2), order=order)

    refuses("TileTypeError", k, X2)


@clause("LOAD-4.constant")
def test_an_order_is_constant():
    @ct.kernel
    def k(x, n):
        ct.load(x, (0, 0), (2, 2), order=(0, n))

    refuses("TileTypeError", k, X2, 1)


@clause("LOAD-5.edge", "PAD-1.ZERO")
@pytest.mark.parametrize("pad, value", [
    (ct.PaddingMode.ZERO, 0.0), pytest.param("NEG_ZERO", -0.0, marks=clause("PAD-1.NEG_ZERO")),
    pytest.param("POS_INF", np.inf, marks=clause("PAD-1.POS_INF")),
    pytest.param(ct.PaddingMode.NEG_INF, -np.inf, marks=clause("PAD-1.NEG_INF")),
    pytest.param(ct.PaddingMode.NAN, np.nan, marks=clause("PAD-1.NAN"))])
@pytest.mark.parametrize("d", ["f16", "bf16", "f32", "f64"])
def test_padding_of_floats(d, pad, value):
    look = looks.args[1][0]
    x = sample(d, (14, 7, 3))
    out = np.zeros((*GRID, 4, 4, 2)).astype(x.dtype)
    run(loader(look, (4, 4, 2), "C", pad), x, out, grid=(4, 2, 2))
    for b in blocks((4, 2, 2)):
        want = tile_of(x, b, (4, 4, 2), value).astype(np.float64)
        same_numbers(out[b].astype(np.float64).ravel(), want.ravel(), f"block {b}")


@clause("LOAD-5.edge")
def test_an_array_smaller_than_its_tile():
    @ct.kernel
    def k(x, out):
        ct.store(out, (0, 0), ct.load(x, (0, 0), (8, 16), padding_mode=ZERO))

    for shape in ((1, 1), (3, 16), (8, 5), (7, 15)):
        x = numbers(shape)
        same(run(k, x, np.full((8, 16), -1, np.int32)), tile_of(x, (0, 0), (8, 16)))


@needs("safe memory")
@clause("LOAD-5.outside")
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
def test_tiles_outside(diverge):
    def beyond(a, b, c):
        return a - 1, b * 2 - 1, c * 3

    def uneven(a, b, c):
        return a * a - 2, (b - 1) * (a - 1), -c

    for look in (beyond, uneven):
        for shape in ((5, 6, 3), (8, 4, 2), (0, 4, 4), (4, 4, 0)):
            check(numbers(shape), look, (4, 2, 2), diverge=diverge)


@needs("safe memory")
@clause("LOAD-5.outside")
@pytest.mark.parametrize("index", [-1, -(2**31), 2**31 - 1, 2, 1 << 30])
def test_one_tile_outside(index):
    @ct.kernel
    def k(x, n, out):
        ct.store(out, 0, ct.load(x, n, 4, padding_mode=ZERO))
        ct.store(out, 1, ct.load(x, n + ct.bid(1) - ct.bid(1), 4, padding_mode=ZERO))

    same(run(k, numbers(8), index, np.full(8, 7, np.int32), grid=(1, 2)), np.zeros(8, np.int32))


@clause("LOAD-5.outside")
def test_a_negative_constant_index_compiles():
    @ct.kernel
    def k(x):
        ct.load(x, -1, 4)

    accepts(k, X1)


@clause("LOAD-6")
@pytest.mark.parametrize("d", [np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("pad", ["NEG_ZERO", "NAN", "POS_INF", "NEG_INF"])
def test_special_padding_of_integers(d, pad):
    @ct.kernel
    def k(x):
        ct.store(x, 0, ct.load(x, 0, 4, padding_mode=pad))

    refuses("TileTypeError", k, np.zeros(4, d))


@clause("LOAD-7.names")
def test_parameters_by_name():
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.load(x, shape=(2,), index=(1,), order="C", padding_mode=ZERO, check_bounds=True,
                                 latency=None, allow_tma=None, memory_order=ct.MemoryOrder.WEAK,
                                 memory_scope=ct.MemoryScope.NONE))

    same(run(k, numbers(4), np.zeros(2, np.int32)), np.array([3, 4], np.int32))


@pytest.mark.parametrize("call", [
    pytest.param(lambda x: ct.load(array=x, index=0, shape=4), marks=clause("LOAD-7.array")),
    pytest.param(lambda x: ct.load(x, 0, 4, "C"), marks=clause("LOAD-7.options")),
    pytest.param(lambda x: ct.load(x, 0, 4, colour=1), marks=clause("LOAD-7.options")),
    pytest.param(lambda x: ct.load(x, 0), marks=clause("LOAD-7.names")),
    pytest.param(lambda x: ct.load(x, shape=4), marks=clause("LOAD-7.names")),
])
def test_bad_calls(call):
    @ct.kernel
    def k(x):
        call(x)

    refuses("TileTypeError", k, X1)


@clause("GEN-1.kind", "GEN-1.text")
def test_what_is_no_array():
    @ct.kernel
    def k():
        ct.load(ct.zeros((4,), ct.int32), 0, 4)

    refuses("TileTypeError", k, match=r'Invalid argument "(array|#1)" of load\(\)')


@clause("LOAD-1.element")
@needs("overlap")
def test_a_loaded_tile_does_not_change():
    @ct.kernel
    def k(x, y, out):
        t = ct.load(x, 0, 4)
        ct.store(y, 0, t + 100)
        ct.store(out, 0, t)

    for d in (np.int32, np.float16):
        x = numbers(4, d)
        same(run(k, x, x, np.zeros(4, d)), numbers(4, d))
        same(x, numbers(4, d, start=101))


@clause("LOAD-5.edge", "STORE-1.edge", "GS-4.bounds", "GS-4.dropped", "ATOM-6.add", "SLICE-1.base", "SLICE-1.size")
@pytest.mark.parametrize("layout", ["contiguous", "gaps"])
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
def test_slices_that_differ_by_block(layout, diverge):
    """Elements beside a slice are out of range, although the array has them."""
    def body(x, y, out, b):
        s, u = x.slice(0, 2 * b, 3 * b + 1), y.slice(0, 4 * b, 5 * b + 1)
        i = ct.arange(4, dtype=ct.int32)
        ct.store(out, (b, 0, 0), ct.load(s, 0, 4, padding_mode=ZERO).reshape((1, 1, 4)))
        ct.store(out, (b, 1, 0), ct.gather(s, i - 1, padding_value=-1).reshape((1, 1, 4)))
        ct.store(out, (b, 2, 0), ct.load(s, 1, 2, padding_mode=ZERO).reshape((1, 1, 2)))
        ct.store(u, 0, ct.full((4,), 5, ct.int32))
        ct.scatter(u, i - 1, i + 10 * b)
        ct.atomic_add(u, i, 100)

    def whole(x, y, out):
        body(x, y, out, ct.bid(0))

    def some(x, y, out):
        b = ct.bid(0)
        if b != 1:
            body(x, y, out, b)

    x, y, out = guarded(numbers(10), layout), guarded(np.zeros(17, np.int32), layout), np.zeros((4, 3, 4), np.int32)
    run(ct.kernel(some if diverge else whole), x.array, y.array, out, grid=(4,))
    want = np.zeros(17, np.int32)
    for b in range(4):
        if diverge and b == 1:
            assert not out[b].any()
            continue
        s = list(range(2 * b + 1, 3 * b + 2))
        pick = [*s, 0, 0, 0, 0]
        assert out[b, 0].tolist() == [pick[i] for i in range(4)]
        assert out[b, 1].tolist() == [s[i - 1] if 0 < i <= len(s) else -1 for i in range(4)]
        assert out[b, 2, :2].tolist() == pick[2:4]
        for i in range(min(4, b + 1)):
            want[4 * b + i] = 100 + (i + 1 + 10 * b if i < 3 else 5)
    x.check(numbers(10))
    y.check(want)
