"""ct.store."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, fails, launch, needs, refuses, run
from conformance.harness.dtype_names import NUMPY
from conformance.harness.guarded_arrays import guarded, layouts, numbers, same, sample
from conformance.harness.index_maps import GRID, blocks, fitting, looks
from conformance.harness.tile_elements import put_tile
from conformance.harness.type_probes import on_target

X0, X1, X2 = (np.zeros((4,) * r, np.int32) for r in (0, 1, 2))


def storer(look, shape, order="C", diverge=False):
    """A kernel in which each block of a grid stores its own tile of `source`."""
    rank, block = len(shape), (1, 1, 1, *shape)
    zeros = (0,) * rank

    def whole(source, out):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        t = ct.load(source, (a, b, c) + zeros, block).reshape(shape)
        ct.store(out, look(a, b, c)[:rank], t, order=order)

    def some(source, out):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        if (a + b) % 2 == c:
            t = ct.load(source, (a, b, c) + zeros, block).reshape(shape)
            ct.store(out, look(a, b, c)[:rank], t, order=order)

    return ct.kernel(some if diverge else whole)


def check(g, look, shape, order="C", diverge=False, grid=GRID):
    """Assert that every element holds a value that some block stored there, and all other elements are unchanged."""
    rank = len(shape)
    source = numbers((*grid, *shape), g.array.dtype, start=1000)
    axes = {"C": tuple(range(rank)), "F": tuple(range(rank))[::-1]}.get(order, order)
    before = g.array.copy()
    allowed = []
    for b in blocks(grid):
        if not diverge or (b[0] + b[1]) % 2 == b[2]:
            one = before.copy()
            put_tile(one, look(*b)[:rank], source[b], [k % rank for k in axes])
            allowed.append((one, one != before))
    launch(storer(look, shape, order, diverge), source, g.array, grid=grid)
    reached = np.zeros(before.shape, bool)
    good = np.zeros(before.shape, bool)
    for one, where in allowed:
        reached |= where
        good |= where & (g.array == one)
    g.check(g.array)  # no element beside it changes
    same(np.where(reached, before, g.array), before)
    assert good[reached].all(), f"{(~good & reached).sum()} elements hold what no block stored there"


@clause("STORE-1.element", "STORE-1.edge", "STORE-5.once", "STORE-5.race")
@looks
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
@pytest.mark.parametrize("tile, edge", [((4, 2, 2), (0, 0, 0)), ((4, 2, 2), (3, 1, 1)), ((2, 4, 1), (0, 2, 0)),
                                        ((8, 2), (5, 1)), ((4,), (2,)), ((1, 8), (0, 3))],
                         ids=lambda t: "x".join(map(str, t)))
def test_tiles_of_blocks(look, tile, edge, diverge):
    check(guarded(-numbers(fitting(look, tile, edge))), look, tile, diverge=diverge)


@clause("STORE-1.element", "STORE-1.edge")
@layouts
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
def test_layouts(layout, diverge):
    for name in ("straight", "summed", "ragged", "fixed"):
        look = next(f for f in looks.args[1] if f.__name__ == name)
        check(guarded(-numbers(fitting(look, (4, 2, 2), (1, 1, 0)), np.int16), layout), look, (4, 2, 2),
              diverge=diverge)


@clause("STORE-1.element", "ARR-1.offset")
@layouts
def test_bytes_beside_each_other(layout):
    @ct.kernel
    def k(x, y):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 4))

    x, y = guarded(numbers(8, np.int8), layout), guarded(np.zeros(8, np.int8), layout)
    launch(k, x.array, y.array, grid=(2,))
    x.check(numbers(8, np.int8))
    y.check(numbers(8, np.int8))


@clause("STORE-4.order", "STORE-1.element", "STORE-1.edge")
@pytest.mark.parametrize("order", ["C", "F", (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0), (-1, 0, -2)])
@pytest.mark.parametrize("look", ["straight", "ragged"])
def test_orders(order, look):
    look = next(f for f in looks.args[1] if f.__name__ == look)
    size = fitting(look, (4, 2, 8), (1, 1, 3))
    axes = {"C": (0, 1, 2), "F": (2, 1, 0)}.get(order, order)
    shape = [0, 0, 0]
    for i, k in enumerate(axes):
        shape[k] = size[i]
    check(guarded(-numbers(shape)), look, (4, 2, 8), order)


@clause("STORE-1.element", "STORE-1.edge")
@pytest.mark.parametrize("d", NUMPY)
def test_every_dtype(d):
    g = guarded(sample(d, (7, 6), seed=1))
    source = sample(d, (8, 8))
    want = g.array.copy()
    want[...] = source[:7, :6]

    @ct.kernel
    def k(x, out):
        i, j = ct.bid(0), ct.bid(1)
        ct.store(out, (i, j), ct.load(x, (i, j), (2, 4)))

    with on_target(d):
        launch(k, source, g.array, grid=(4, 2))
        g.check(want)


@clause("STORE-1.edge")
def test_an_array_smaller_than_the_tile():
    @ct.kernel
    def k(out):
        ct.store(out, (0, 0), ct.full((8, 16), 5, ct.int32))

    for shape in ((1, 1), (3, 16), (8, 5), (7, 15)):
        g = guarded(numbers(shape))
        launch(k, g.array)
        g.check(np.full(shape, 5, np.int32))


@needs("safe memory")
@clause("STORE-1.outside")
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
def test_tiles_outside(diverge):
    def beyond(a, b, c):
        return a - 1, b * 2 - 1, c * 3

    def uneven(a, b, c):
        return a * a - 2, (b - 1) * (a - 1), -c

    for look in (beyond, uneven):
        for shape in ((5, 6, 3), (8, 4, 2), (0, 4, 4), (4, 4, 0)):
            check(guarded(-numbers(shape)), look, (4, 2, 2), diverge=diverge)


@needs("safe memory")
@clause("STORE-1.outside")
@pytest.mark.parametrize("index", [-1, -(2**31), 2**31 - 1, 2, 1 << 30])
def test_one_tile_outside(index):
    @ct.kernel
    def k(n, out):
        ct.store(out, n, ct.full((4,), 5, ct.int32))
        ct.store(out, n + ct.bid(1) - ct.bid(1), ct.full((4,), 5, ct.int32))

    g = guarded(numbers(8))
    launch(k, index, g.array, grid=(1, 2))
    g.check(numbers(8))


@clause("STORE-2.scalar")
def test_a_scalar_is_one_element():
    @ct.kernel
    def k(x0, x1, x2):
        i, j = ct.bid(0), ct.bid(1)
        ct.store(x2, (i, j), i * 10 + j)
        ct.store(x1, i, i + 50)
        ct.store(x1, (i + 3,), 7)
        ct.store(x0, (), 9)

    x0, x1, x2 = guarded(np.array(0, np.int32)), guarded(np.zeros(6, np.int32)), guarded(np.zeros((3, 2), np.int32),
        "gaps")
    launch(k, x0.array, x1.array, x2.array, grid=(3, 2))
    x0.check(np.array(9, np.int32))
    x1.check(np.array([50, 51, 52, 7, 7, 7], np.int32))
    x2.check(np.array([[0, 1], [10, 11], [20, 21]], np.int32))


@clause("STORE-2.rank")
@pytest.mark.parametrize("x, shape", [(X1, (2, 2)), (X2, (4,)), (X2, (1, 2, 2)), (X0, (1,))])
def test_a_tile_of_another_rank(x, shape):
    index = (0,) * x.ndim

    @ct.kernel
    def k(x):
        ct.store(x, index, ct.zeros(shape, ct.int32))

    refuses("TileTypeError", k, x)


@clause("STORE-2.result")
def test_the_result_is_none():
    @ct.kernel
    def k(x):
        r = ct.store(x, 0, 1)
        ct.static_assert(r is None)

    launch(k, np.zeros(1, np.int32))


@clause("STORE-3.cast")
def test_values_are_cast():
    @ct.kernel
    def k(x, f, h, out):
        ct.store(f, 0, ct.load(x, 0, 4))  # int32 to float32
        ct.store(h, 0, ct.load(x, 0, 4))  # to float16, rounded
        ct.store(out, 0, ct.load(x, 0, 4) > 0)  # bool to int8
        ct.store(out, 4, True)
        ct.store(f, 4, 7)
        ct.store(h, 4, 1e10)
        ct.store(out, 5, 127)

    x = np.array([2049, -3, 0, 65519], np.int32)
    f, h, out = np.zeros(5, np.float32), np.zeros(5, np.float16), np.zeros(6, np.int8)
    launch(k, x, f, h, out)
    assert f.tolist() == [2049.0, -3.0, 0.0, 65519.0, 7.0]
    assert h.tolist() == [2048.0, -3.0, 0.0, 65504.0, np.inf]
    assert out.tolist() == [1, 0, 0, 1, 1, 127]


@clause("STORE-3.type")
@pytest.mark.parametrize("d, value", [
    (np.int32, lambda: ct.zeros((4,), ct.int64)), (np.float16, lambda: ct.zeros((4,), ct.float32)),
    (np.uint8, lambda: ct.zeros((4,), ct.int8)), (np.bool_, lambda: ct.zeros((4,), ct.int8)),
    (np.int32, lambda: 1.5), (np.bool_, lambda: 2), (np.int8, lambda: ct.int32(1))])
def test_values_of_the_wrong_dtype(d, value):
    @ct.kernel
    def k(x):
        ct.store(x, 0, value())

    refuses("TileTypeError", k, np.zeros(4, d))


@clause("STORE-3.range")
@pytest.mark.parametrize("d, value", [(np.int8, 128), (np.uint8, -1), (np.uint16, 65536), (np.int32, 1 << 31)])
def test_literals_out_of_range(d, value):
    @ct.kernel
    def k(x):
        ct.store(x, 0, value)

    refuses("TileValueError", k, np.zeros(4, d))


@pytest.mark.parametrize("value", [
    pytest.param(lambda x: None, marks=clause("STORE-3.none")),
    pytest.param(lambda x: (1, 2), marks=clause("STORE-3.tuple")),
    pytest.param(lambda x: x, marks=clause("STORE-3.array")),
    pytest.param(lambda x: "a", marks=clause("STORE-3.tuple"))])
def test_what_is_no_tile(value):
    @ct.kernel
    def k(x):
        ct.store(x, 0, value(x))

    refuses("TileTypeError", k, X1, match=r'Invalid argument "tile" of store\(\)')


@clause("STORE-4.index")
@pytest.mark.parametrize("x, index", [(X1, (0, 0)), (X2, (0,)), (X2, 0), (X2, (0, 0, 0)), (X1, True), (X1, 0.0),
                                      (X2, (0, 1.0)), (X1, None), (X0, 0)])
def test_what_is_no_index(x, index):
    shape = (2,) * x.ndim

    @ct.kernel
    def k(x):
        ct.store(x, index, ct.zeros(shape, ct.int32))

    refuses("TileTypeError", k, x)


@clause("STORE-4.index")
def test_an_unsigned_index():
    @ct.kernel
    def k(x):
        ct.store(x, ct.uint32(0), 1)

    refuses("TileTypeError", k, X1)


@clause("STORE-4.index", "STORE-4.names")
@pytest.mark.parametrize("d", [ct.int8, ct.int16, ct.int32, ct.int64], ids=str)
def test_an_index_of_each_width(d):
    @ct.kernel
    def k(x):
        i = ct.bid(0)
        ct.store(x, tile=ct.full((1, 2), 1, ct.int32) * i, index=(i.astype(d), 1))

    same(run(k, np.full((4, 5), 9, np.int32), grid=(4,)), np.array([[9, 9, i, i, 9] for i in range(4)], np.int32))


@clause("STORE-4.order")
@pytest.mark.parametrize("order", [(0, 0), (1, -1), (0,), (0, 1, 2), "A", (0, 2), (0, True), None])
def test_what_is_no_order(order):
    @ct.kernel
    def k(x):
        ct.store(x, (0, 0), ct.zeros((2, 2), ct.int32), order=order)

    refuses("TileTypeError", k, X2)


@pytest.mark.parametrize("call", [
    pytest.param(lambda x: ct.store(x, 0, 1, padding_mode=ct.PaddingMode.ZERO), marks=clause("STORE-4.padding")),
    pytest.param(lambda x: ct.store(array=x, index=0, tile=1), marks=clause("STORE-4.names")),
    pytest.param(lambda x: ct.store(x, 0, 1, "C"), marks=clause("STORE-4.names")),
    pytest.param(lambda x: ct.store(x, 0), marks=clause("STORE-4.names"))])
def test_bad_calls(call):
    @ct.kernel
    def k(x):
        call(x)

    refuses("TileTypeError", k, X1)


@clause("STORE-5.race")
def test_blocks_that_store_to_one_place():
    @ct.kernel
    def k(x):
        ct.store(x, 0, ct.full((4,), 10, ct.int32) + ct.bid(0))

    out = run(k, np.zeros(4, np.int32), grid=(5,))
    assert all(10 <= v < 15 for v in out.tolist())


@clause("STORE-1.element", "STORE-5.race")
def test_the_same_tile_from_all_blocks():
    """The value does not depend on the block but the place does, and the other way round."""
    @ct.kernel
    def k(x, y):
        ct.store(x, (ct.bid(1), ct.bid(0)), ct.arange(4, dtype=ct.int32).reshape((2, 2)))
        ct.store(y, 1, ct.full((2,), 3, ct.int32))

    x, y = guarded(np.full((5, 5), 9, np.int32), "gaps"), guarded(np.full(6, 9, np.int32))
    launch(k, x.array, y.array, grid=(3, 2))
    want = np.full((5, 5), 9, np.int32)
    for i, j in np.ndindex(2, 3):
        put_tile(want, (i, j), numbers((2, 2), start=0))
    x.check(want)
    y.check(np.array([9, 9, 3, 3, 9, 9], np.int32))


@needs("cpu arrays")
@clause("STORE-1.element")
def test_a_read_only_array_is_refused():
    @ct.kernel
    def k(x):
        ct.store(x, 0, 1)

    x = np.zeros(4, np.int32)
    x.flags.writeable = False
    fails((TypeError, ValueError), k, x, match="x")
    assert not x.any()


def in_a_branch(x, other):
    y = x if ct.bid(0) == 0 else other
    ct.store(y, 0, 1)


def in_a_loop(x, other):
    y = other
    for i in range(2):
        ct.store(y, 0, i)
        y = x


def out_of_a_loop(x, other):
    y = other
    while True:
        if ct.bid(0) == 0:
            y = x
            break
        y = other
    ct.store(y, 0, 1)


def local_of_a_loop(x, other):
    n = 0
    while True:
        y = x.slice(0, n, 4)
        n += 1
        if n == 2:
            break
    ct.store(y, 0, 1)


def returned(x, other):
    def either():
        if ct.bid(0) == 0:
            return x
        return other
    ct.store(either(), 0, 1)


@needs("cpu arrays")
@clause("STORE-1.element")
@pytest.mark.parametrize("store", [
    lambda x, other: ct.store(x.slice(0, 0, 2), 0, 1),
    lambda x, other: x.tiled_view(2).store(0, ct.ones((2,), x.dtype)),
    lambda x, other: ct.scatter(x.slice(0, 1, 3).slice(0, 0, 1), 0, 1), lambda x, other: ct.atomic_add(x, 0, 1),
    lambda x, other: ct.atomic_xchg(x.slice(0, 1, 3), 0, 1), lambda x, other: x.get_raw_memory().store_offset(0, 1),
    in_a_branch, in_a_loop, out_of_a_loop, local_of_a_loop, returned],
    ids=["slice", "view", "scatter", "atomic", "atomic in a slice", "raw", "branch", "loop", "end of a loop",
         "local of a loop", "call"])
def test_a_read_only_array_is_refused_however_it_is_stored_to(store):
    @ct.kernel
    def k(x, other):
        store(x, other)

    x = np.zeros(4, np.int32)
    x.flags.writeable = False
    fails((TypeError, ValueError), k, x, np.zeros(4, np.int32), match="x")
    assert not x.any()


@needs("cpu arrays")
@clause("STORE-1.element")
def test_a_read_only_array_of_a_list_is_refused():
    @ct.kernel
    def k(xs):
        ct.store(xs[1].slice(0, 0, 2), 0, 1)

    x = np.zeros(4, np.int32)
    x.flags.writeable = False
    fails((TypeError, ValueError), k, [x, x], match="xs")
    assert not x.any()
