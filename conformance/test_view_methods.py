"""Methods of tiled views: load, store, num_tiles, atomic_store_*."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, needs, refuses, run
from conformance.harness.dtype_names import DTYPES, NUMPY
from conformance.harness.guarded_arrays import guarded, layouts, numbers, same, sample
from conformance.harness.index_maps import GRID, blocks, looks
from conformance.harness.tile_elements import places, tile_of
from conformance.harness.type_probes import on_target
from conformance.test_atomics import HAS, KINDS, update

ZERO = ct.PaddingMode.ZERO
X0, X1, X2 = (np.zeros((4,) * r, np.int32) for r in (0, 1, 2))
ATOMIC = [k for k in KINDS if k != "xchg"]


def fitting(look, shape, steps, edge):
    """Sizes such that the last tile of a map has `edge` elements beyond the end, and at least one inside."""
    top = [max(look(*b)[k] for b in blocks()) for k in range(len(shape))]
    return tuple(i * s + t - min(e, t - 1) for i, s, t, e in zip(top, steps, shape, edge))


STEPS = [None, (4, 2, 2), (3, 1, 2), (1, 1, 1), (5, 7, 3)]
steps_of_tiles = pytest.mark.parametrize("steps", STEPS, ids=lambda s: "none" if s is None else "x".join(map(str, s)))


@clause("TVOP-1.type", "TVOP-1.element", "TVOP-1.padding", "TV-2.steps", "TV-2.default")
@looks
@steps_of_tiles
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
def test_load(look, steps, diverge):
    shape, edge = (4, 2, 2), (3, 1, 0)

    def body(x, out, a, b, c):
        t = x.tiled_view(shape, padding_mode=ZERO, traversal_steps=steps).load(look(a, b, c))
        ct.static_assert(t.shape == shape and t.dtype == x.dtype)
        ct.store(out, (a, b, c, 0, 0, 0), t.reshape((1, 1, 1, 4, 2, 2)))

    def whole(x, out):
        body(x, out, ct.bid(0), ct.bid(1), ct.bid(2))

    def some(x, out):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        if (a + b) % 2 == c:
            body(x, out, a, b, c)

    x = guarded(numbers(fitting(look, shape, steps or shape, edge)), "gaps" if diverge else "contiguous").array
    out = np.full((*GRID, *shape), -1, np.int32)
    run(ct.kernel(some if diverge else whole), x, out, grid=GRID)
    for b in blocks():
        if not diverge or (b[0] + b[1]) % 2 == b[2]:
            same(out[b], tile_of(x, look(*b), shape, steps=steps))
        else:
            assert (out[b] == -1).all()


@clause("TVOP-2.element", "TVOP-2.edge", "TVOP-6")
@looks
@steps_of_tiles
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
def test_store(look, steps, diverge):
    shape, edge = (4, 2, 2), (3, 1, 0)

    def body(source, x, a, b, c):
        t = ct.load(source, (a, b, c, 0, 0, 0), (1, 1, 1, 4, 2, 2)).reshape(shape)
        x.tiled_view(shape, traversal_steps=steps).store(look(a, b, c), t)

    def whole(source, x):
        body(source, x, ct.bid(0), ct.bid(1), ct.bid(2))

    def some(source, x):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        if (a + b) % 2 == c:
            body(source, x, a, b, c)

    g = guarded(-numbers(fitting(look, shape, steps or shape, edge)), "gaps" if diverge else "contiguous")
    source = numbers((*GRID, *shape), start=1000)
    allowed = {at: [] for at in np.ndindex(g.array.shape)}
    for b in blocks():
        if not diverge or (b[0] + b[1]) % 2 == b[2]:
            for t, at, exists in places(g.array.shape, look(*b), shape, steps=steps):
                if exists:
                    allowed[at].append(source[(*b, *t)])
    before = g.array.copy()
    launch(ct.kernel(some if diverge else whole), source, g.array, grid=GRID)
    g.check(g.array)
    for at, values in allowed.items():
        assert g.array[at] in (values or [before[at]])


@clause("TVOP-6")
def test_overlapping_stores_of_one_block():
    @ct.kernel
    def k(x):
        v = x.tiled_view(4, traversal_steps=1)
        v.store(2, 50)
        v.store(0, 60)
        v.store(4, ct.arange(4, dtype=ct.int32))

    x = guarded(numbers(7))
    launch(k, x.array)
    x.check(np.array([60, 60, 60, 60, 0, 1, 2], np.int32))


@clause("TVOP-1.element", "TVOP-2.element")
@layouts
def test_layouts(layout):
    @ct.kernel
    def k(x, y):
        i, j = ct.bid(0), ct.bid(1)
        t = x.tiled_view((2, 4), padding_mode=ZERO).load((i, j))
        y.tiled_view((2, 4)).store((i, j), t + 1)

    x, y = guarded(numbers((5, 6), np.int16), layout), guarded(np.zeros((5, 6), np.int16), layout)
    launch(k, x.array, y.array, grid=(3, 2))
    x.check(numbers((5, 6), np.int16))
    y.check(numbers((5, 6), np.int16, start=2))


@clause("TVOP-1.scalar", "TV-1.scalar", "TVOP-2.element")
def test_tiles_that_are_single_elements():
    @ct.kernel
    def k(x, y, z):
        v = x.tiled_view(())
        i, j = ct.bid(0), ct.bid(1)
        t = v.load((i, j))
        ct.static_assert(t.shape == ())
        y.tiled_view(()).store((i, j), t * 2)
        z.tiled_view(()).store((), z.tiled_view(()).load(()) + 1)

    y, z = guarded(np.zeros((3, 2), np.int32), "gaps"), guarded(np.array(4, np.int32))
    launch(k, numbers((3, 2)), y.array, z.array, grid=(3, 2))
    y.check(numbers((3, 2)) * 2)
    assert 5 <= z.array <= 10


@clause("TVOP-1.scalar", "TV-2.steps")
def test_single_elements_with_steps():
    @ct.kernel
    def k(x, y):
        y.tiled_view((), traversal_steps=2).store(ct.bid(0), x.tiled_view((), traversal_steps=3).load(ct.bid(0)))

    y = guarded(np.zeros(6, np.int32))
    launch(k, numbers(9), y.array, grid=(3,))
    y.check(np.array([1, 0, 4, 0, 7, 0], np.int32))


@clause("TVOP-1.padding")
@pytest.mark.parametrize("pad, value", [("NAN", np.nan), ("ZERO", 0.0), (ct.PaddingMode.NEG_INF, -np.inf)])
def test_padding(pad, value):
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, x.tiled_view(4, padding_mode=pad).load(1))

    out = run(k, numbers(6, np.float32), np.zeros(4, np.float32))
    assert np.array_equal(out, np.array([5, 6, value, value], np.float32), equal_nan=True)


@needs("safe memory")
@clause("TVOP-1.padding", "TVOP-2.edge")
@pytest.mark.parametrize("index", [-1, 3, 2**31 - 1, -(2**31)])
def test_tiles_outside(index):
    @ct.kernel
    def k(x, n, out):
        v = x.tiled_view(4, padding_mode=ZERO, traversal_steps=3)
        ct.store(out, 0, v.load(n))
        v.store(n, 9)
        v.store(n + ct.bid(0), 9)
        v.atomic_store_add(n, 5)

    x, out = guarded(numbers(8)), np.full(4, 7, np.int32)
    launch(k, x.array, index, out)
    same(out, np.zeros(4, np.int32))
    x.check(numbers(8))


@clause("TVOP-1.name", "TVOP-1.kind")
def test_index_by_name_and_of_each_width():
    @ct.kernel
    def k(x, out):
        v, w = x.tiled_view(2), out.tiled_view(2)
        for d in ct.static_iter((ct.int8, ct.int16, ct.int32, ct.int64)):
            w.store(index=(ct.bid(0).astype(d),), tile=v.load(index=ct.bid(0).astype(d)))

    same(run(k, numbers(6), np.zeros(6, np.int32), grid=(3,)), numbers(6))


@pytest.mark.parametrize("x, call", [
    pytest.param(X2, lambda v: v.load((0,)), marks=clause("TVOP-1.index")),
    pytest.param(X2, lambda v: v.load(0), marks=clause("TVOP-1.index")),
    pytest.param(X2, lambda v: v.load((0, 0, 0)), marks=clause("TVOP-1.index")),
    pytest.param(X1, lambda v: v.load(()), marks=clause("TVOP-1.index")),
    pytest.param(X1, lambda v: v.load(0.0), marks=clause("TVOP-1.kind")),
    pytest.param(X1, lambda v: v.load(True), marks=clause("TVOP-1.kind")),
    pytest.param(X1, lambda v: v.load(ct.uint32(0)), marks=clause("TVOP-1.kind")),
    pytest.param(X1, lambda v: v.load(ct.zeros((1,), ct.int32)), marks=clause("TVOP-1.kind")),
    pytest.param(X1, lambda v: v.load(0, order="C"), marks=clause("TVOP-1.options")),
    pytest.param(X1, lambda v: v.load(0, shape=2), marks=clause("TVOP-1.options")),
    pytest.param(X1, lambda v: v.load(0, padding_mode=ZERO), marks=clause("TVOP-1.options")),
    pytest.param(X1, lambda v: v.load(0, True), marks=clause("TVOP-1.options")),
    pytest.param(X2, lambda v: v.store((0,), 1), marks=clause("TVOP-2.index")),
    pytest.param(X2, lambda v: v.store(0, 1), marks=clause("TVOP-2.index")),
    pytest.param(X1, lambda v: v.store(0.0, 1), marks=clause("TVOP-2.index")),
    pytest.param(X1, lambda v: v.store(0, ct.zeros((4,), ct.int32)), marks=clause("TVOP-2.shape")),
    pytest.param(X1, lambda v: v.store(0, ct.zeros((2, 2), ct.int32)), marks=clause("TVOP-2.shape")),
    pytest.param(X1, lambda v: v.store(0, ct.zeros((1, 1), ct.int32)), marks=clause("TVOP-2.shape")),
    pytest.param(X1, lambda v: v.store(0, 1.5), marks=clause("TVOP-2.cast")),
    pytest.param(X1, lambda v: v.store(0, ct.zeros((2,), ct.int64)), marks=clause("TVOP-2.cast")),
    pytest.param(X1, lambda v: v.store(0, None), marks=clause("TVOP-2.cast")),
    pytest.param(X1, lambda v: v.store(0, 1, padding_mode=ZERO), marks=clause("TVOP-2.edge")),
    pytest.param(X2, lambda v: v.num_tiles(2), marks=clause("TVOP-3.axis")),
    pytest.param(X2, lambda v: v.num_tiles(-3), marks=clause("TVOP-3.axis")),
    pytest.param(X2, lambda v: v.num_tiles(True), marks=clause("TVOP-3.axis")),
    pytest.param(X2, lambda v: v.num_tiles(1.0), marks=clause("TVOP-3.axis")),
    pytest.param(X2, lambda v: v.num_tiles(ct.bid(0)), marks=clause("TVOP-3.axis")),
    pytest.param(X0, lambda v: v.num_tiles(0), marks=clause("TVOP-3.axis")),
    pytest.param(X1, lambda v: ct.load(v, 0, 4), marks=clause("GEN-1.kind")),
])
def test_what_is_refused(x, call):
    shape = (2,) * x.ndim

    @ct.kernel
    def k(x):
        call(x.tiled_view(shape))

    refuses("TileTypeError", k, x)


@pytest.mark.parametrize("shape, steps", [
    pytest.param(*p, marks=clause(c)) for c, ps in {
        "TV-1.shape": [((3,), None), ((0,), None), ((2, 2), None), (-2, None), (2.0, None), (None, None)],
        "TV-2.steps": [(2, 0), (2, -1), (2, (1, 1)), (2, ()), (2, 1.0), (2, "a"), ((), 0), ((), (1, 1))]}.items()
    for p in ps])
def test_views_that_are_refused(shape, steps):
    @ct.kernel
    def k(x):
        x.tiled_view(shape, traversal_steps=steps)

    refuses("TileTypeError", k, X1)


@clause("TVOP-2.broadcast", "TVOP-2.result")
def test_stored_tiles_broadcast():
    @ct.kernel
    def k(x):
        v = x.tiled_view((2, 4))
        r = v.store((0, 0), ct.arange(4, dtype=ct.int32))
        ct.static_assert(r is None)
        v.store((1, 0), ct.arange(2, dtype=ct.int32)[:, None] + 10)
        v.store((2, 0), 20 + ct.bid(0))
        v.store((0, 1), ct.full((1, 1), 30, ct.int32))
        v.store((1, 1), 40)

    x = guarded(np.full((6, 8), -1, np.int32), "gaps")
    launch(k, x.array)
    want = np.full((6, 8), -1, np.int32)
    want[:2, :4] = [0, 1, 2, 3]
    want[2:4, :4] = [[10], [11]]
    want[4:, :4], want[:2, 4:], want[2:4, 4:] = 20, 30, 40
    x.check(want)


@clause("TVOP-2.cast", "TVOP-5.float", "TVOP-5.int")
def test_stored_tiles_are_cast():
    @ct.kernel
    def k(h, u, f):
        h.tiled_view(2).store(0, 1.5)
        h.tiled_view(2).store(1, ct.full((2,), 2049, ct.int32))
        h.tiled_view(()).store(4, 2.5)
        u.tiled_view(2).store(0, 200)
        u.tiled_view(2).store(1, ct.bid(0) == 0)
        f.tiled_view(2).store(0, 7)

    h, u, f = np.zeros(5, np.float16), np.zeros(4, np.uint8), np.zeros(2, np.float32)
    launch(k, h, u, f)
    assert h.tolist() == [1.5, 1.5, 2048, 2048, 2.5] and u.tolist() == [200, 200, 1, 1] and f.tolist() == [7, 7]


@clause("TVOP-2.cast")
def test_a_literal_out_of_range():
    @ct.kernel
    def k(x):
        x.tiled_view(2).store(0, 256)

    refuses("TileValueError", k, np.zeros(4, np.uint8))


@clause("TVOP-3.type", "TVOP-3.axis", "TVOP-3.negative", "TV-3")
@pytest.mark.parametrize("tile, steps", [((4, 2), None), ((4, 2), (3, 5)), ((4, 2), (1, 1)), ((), None), ((), (2, 3)),
                                         ((2, 16), None), ((4, 2), (2**31, 2**31 - 1)), ((4, 2), (2**31 + 1, 2**40))])
def test_num_tiles(tile, steps):
    @ct.kernel
    def k(x, out):
        v = x.tiled_view(tile, traversal_steps=steps)
        n = v.num_tiles(0)
        ct.static_assert(n.dtype == ct.int32 and n.shape == ())
        ct.scatter(out, 0, n)
        ct.scatter(out, 1, v.num_tiles(1))
        ct.scatter(out, 2, v.num_tiles(-2))
        ct.scatter(out, 3, v.num_tiles(axis=-1))

    step = steps or tile or (1, 1)
    for shape in ((8, 16), (1, 1), (9, 7), (12, 15), (0, 4), (3, 0)):
        want = [(n + s - 1) // s for n, s in zip(shape, step)]
        assert run(k, np.zeros(shape, np.int32), np.zeros(4, np.int32)).tolist() == want * 2


@clause("TV-4.attributes")
def test_attributes_are_constants():
    @ct.kernel
    def k(x):
        v, w, u = x.tiled_view((2, 4)), x.tiled_view((2, 4), traversal_steps=(3, 5)), x.tiled_view(())
        a, b, c, d, e, f = v.dtype, v.tile_shape, v.traversal_steps, w.traversal_steps, u.tile_shape, u.traversal_steps
        ct.static_assert(a == ct.int32 and b == (2, 4) and c == (2, 4) and d == (3, 5) and e == () and f == (1, 1))

    launch(k, X2)


@clause("TVOP-1.type", "TVOP-2.element")
@pytest.mark.parametrize("d", NUMPY)
def test_every_dtype(d):
    @ct.kernel
    def k(x, y):
        t = x.tiled_view((2, 4)).load((ct.bid(0), ct.bid(1)))
        ct.static_assert(t.dtype == x.dtype)
        y.tiled_view((2, 4)).store((ct.bid(0), ct.bid(1)), t)

    x = sample(d, (4, 8))
    y = guarded(np.ones((3, 7), np.uint8).astype(x.dtype))
    with on_target(d):
        launch(k, x, y.array, grid=(2, 2))
        y.check(x[:3, :7])


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"TVOP-4.{k}", f"TVOP-4.{k}.result")) for k in ATOMIC])
@steps_of_tiles
@pytest.mark.parametrize("layout", ["contiguous", "gaps"])
def test_atomic_stores(kind, steps, layout):
    shape = (4, 2, 2)

    @ct.kernel
    def k(source, x):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        t = ct.load(source, (a, b, c, 0, 0, 0), (1, 1, 1, 4, 2, 2)).reshape(shape)
        v = x.tiled_view(shape, traversal_steps=steps)
        r = getattr(v, "atomic_store_" + kind)((a // 2, b, c * b), t)
        ct.static_assert(r is None)

    s = steps or shape
    g = guarded(numbers((s[0] + 3, 2 * s[1] + 1, 2 * s[2] + 1)) * 7, layout)
    source = numbers((*GRID, *shape)) * 5
    want = g.array.copy()
    for a, b, c in blocks():
        for t, at, exists in places(want.shape, (a // 2, b, c * b), shape, steps=steps):
            if exists:
                want[at] = update(kind, "i32", want[at].item(), source[(a, b, c, *t)].item())
    launch(k, source, g.array, grid=GRID)
    g.check(want)


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"TVOP-4.{k}.update", f"TVOP-4.{k}")) for k in ATOMIC])
def test_updates_broadcast_and_are_cast(kind):
    def store(v, index, u):
        getattr(v, "atomic_store_" + kind)(index, u)

    @ct.kernel
    def k(x, y):
        v = x.tiled_view((2, 4))
        store(v, (0, 0), ct.arange(4, dtype=ct.int32))
        store(v, (1, 0), ct.arange(2, dtype=ct.int32)[:, None] + 1)
        store(v, (2, 0), 6)
        store(y.tiled_view(()), ct.bid(0), 5)

    x, y = guarded(numbers((6, 4))), guarded(numbers(3))
    launch(k, x.array, y.array, grid=(1,))
    u = [[0, 1, 2, 3]] * 2 + [[1] * 4] + [[2] * 4] + [[6] * 4] * 2
    x.check(np.array([[update(kind, "i32", r * 4 + c + 1, u[r][c]) for c in range(4)] for r in range(6)], np.int32))
    y.check(np.array([update(kind, "i32", 1, 5), 2, 3], np.int32))


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"TVOP-4.{k}.update")) for k in ATOMIC])
@pytest.mark.parametrize("call", [
    lambda f: f(0, ct.zeros((4,), ct.int32)), lambda f: f(0, ct.zeros((1, 2), ct.int32)), lambda f: f(0, 1.5),
    lambda f: f(0, ct.int64(1)), lambda f: f(0, None), lambda f: f((0, 0), 1), lambda f: f(0.0, 1), lambda f: f(0),
    lambda f: f(0, 1, memory_order="RELAXED"), lambda f: f(0, 1, mask=True), lambda f: f(0, 1, check_bounds=True)])
def test_bad_calls_of_atomic_stores(kind, call):
    @ct.kernel
    def k(x):
        call(getattr(x.tiled_view(2), "atomic_store_" + kind))

    refuses("TileTypeError", k, X1)


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"TVOP-4.{k}.dtype")) for k in ATOMIC])
@pytest.mark.parametrize("d", NUMPY)
def test_dtypes_of_atomic_stores(kind, d):
    dtype = DTYPES[d]

    @ct.kernel
    def k(x):
        getattr(x.tiled_view(2), "atomic_store_" + kind)(0, ct.full((2,), 1, dtype))

    if d in HAS[kind]:
        launch(k, np.zeros(2, NUMPY[d]))
    else:
        refuses(("TileTypeError", "TileUnsupportedFeatureError") if d in ("e8m0", "e2m1") else "TileTypeError", k,
                np.ones(2).astype(NUMPY[d]))


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"TVOP-4.{k}.update")) for k in ("and", "or", "xor")])
def test_bitwise_stores_need_the_dtype_itself(kind):
    @ct.kernel
    def k(x):
        getattr(x.tiled_view(2), "atomic_store_" + kind)(0, 1)

    launch(k, np.zeros(2, np.int32))
    refuses("TileTypeError", k, np.zeros(2, np.uint32))
