"""Element space and tile space, axis order, tiled views [SPACE, TV]."""

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, needs, refuses, run


def counting(*shape):
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


def blocks(x, tile, index, fill):
    """The tile at a tile index, computed element by element from the definition."""
    out = np.full(tile, fill, x.dtype)
    for at in np.ndindex(*tile):
        place = tuple(i * t + a for i, t, a in zip(index, tile, at, strict=True))
        if all(0 <= p < n for p, n in zip(place, x.shape, strict=True)):
            out[at] = x[place]
    return out


# ------------------------------------------------------------------ tile space


@clause("SPACE-1.range", "SPACE-1.dims", "SPACE-5.load", "SPACE-5.store")
@pytest.mark.parametrize("shape, tile", [((16,), (4,)), ((13,), (4,)), ((5, 9), (2, 4)), ((3, 5, 6), (2, 1, 4)),
                                         ((1,), (8,))])
def test_tiles(shape, tile):
    rank = len(shape)
    tiles = tuple(-(-n // t) for n, t in zip(shape, tile, strict=True))
    grid = tiles + (1,) * (3 - rank)

    @ct.kernel
    def k(x, y, padded):
        index = tuple(ct.bid(a) for a in ct.static_iter(range(rank)))
        t = ct.load(x, index, tile, padding_mode=ct.PaddingMode.NEG_INF)
        ct.store(y, index, t + 1)
        ct.store(padded, index, t)

    x = counting(*shape)
    guard = np.full(tuple(n + 2 for n in shape), -7, np.float32)
    y = guard[(slice(1, -1),) * rank]
    padded = np.zeros(tuple(n * t for n, t in zip(tiles, tile, strict=True)), np.float32)
    launch(k, x, y, padded, grid=grid)
    assert y.tolist() == (x + 1).tolist()
    y[...] = -7
    assert (guard == -7).all()
    for index in np.ndindex(*tiles):
        part = padded[tuple(slice(i * t, i * t + t) for i, t in zip(index, tile, strict=True))]
        assert part.tolist() == blocks(x, tile, index, -np.inf).tolist()


@clause("SPACE-2.whole", "SPACE-2.edge", "SPACE-2.empty")
def test_number_of_tiles():
    @ct.kernel
    def k(x, out):
        for axis in ct.static_iter(range(2)):
            ct.store(out, axis, ct.num_tiles(x, axis, (4, 8)))
            ct.store(out, 2 + axis, x.tiled_view((4, 8)).num_tiles(axis))

    for shape, want in (((8, 16), [2, 2]), ((9, 17), [3, 3]), ((7, 8), [2, 1]), ((1, 1), [1, 1]), ((4, 0), [1, 0])):
        assert run(k, np.zeros(shape, np.float32), np.full(4, -1, np.int32)).tolist() == want * 2


@clause("SPACE-3.negative")
def test_negative_index_is_compiled():
    @ct.kernel
    def k(x):
        ct.store(x, -1, ct.load(x, -1, 4))

    accepts(k, counting(8))


@clause("SPACE-3.outside")
@needs("cpu arrays")
def test_index_outside():
    @ct.kernel
    def k(x, i, out):
        ct.store(out, 0, ct.load(x, i, 4, padding_mode="NEG_INF"))
        ct.store(x, i, ct.full((4,), -9, ct.float32))

    memory = counting(24)
    x = memory[8:16]
    for i in (2, 7, -1, -2, 1 << 29, -(1 << 29)):
        assert run(k, x, i, np.zeros(4, np.float32)).tolist() == [-np.inf] * 4
    assert memory.tolist() == list(range(24))


ORDERS = {"C": ((0, 1, 2), "C"), "F": ((2, 1, 0), "F"), "tuple": ((2, 0, 1), (2, 0, 1)),
          "negative": ((1, 2, 0), (1, -1, 0))}


@pytest.mark.parametrize("p, order",
                         [pytest.param(*v, id=n, marks=clause(f"SPACE-4.{'tuple' if n == 'negative' else n}"))
                                      for n, v in ORDERS.items()])
@clause("SPACE-4.permute", "SPACE-4.store")
def test_orders(p, order):
    x = counting(4, 6, 10)
    tile, index = (2, 4, 1), (1, 0, 3)  # in the order of the tile's dimensions
    plain_tile, plain_index = [0] * 3, [0] * 3
    for i, d in enumerate(p):
        plain_tile[d], plain_index[d] = tile[i], index[i]
    plain_tile, plain_index = tuple(plain_tile), tuple(plain_index)

    @ct.kernel
    def k(x, out, same, y, z):
        t = ct.load(x, index, tile, order=order, padding_mode="NEG_INF")
        u = ct.permute(ct.load(x, plain_index, plain_tile, padding_mode="NEG_INF"), p)
        ct.store(out, (0, 0, 0), t)
        ct.store(same, (0, 0, 0), u)
        ct.store(y, index, t + 1, order=order)
        ct.store(z, plain_index, ct.load(x, plain_index, plain_tile) + 1)

    out, same, y, z = np.zeros(tile, np.float32), np.zeros(tile, np.float32), np.zeros_like(x), np.zeros_like(x)
    launch(k, x, out, same, y, z)
    want = np.full(tile, -np.inf, np.float32)
    for at in np.ndindex(*tile):
        place = [0] * 3
        for i, d in enumerate(p):
            place[d] = index[i] * tile[i] + at[i]
        if all(a < n for a, n in zip(place, x.shape, strict=True)):
            want[at] = x[tuple(place)]
    assert np.isfinite(want).any()
    assert out.tolist() == same.tolist() == want.tolist()
    assert y.tolist() == z.tolist() and (y != 0).sum() == np.isfinite(want).sum()


# ------------------------------------------------------------------ views


@clause("TV-1.shape", "TV-1.int", "TV-1.padding")
def test_views_load_tiles():
    @ct.kernel
    def k(x, y, out, tail, single):
        ct.store(out, (0, 0), x.tiled_view((2, 4)).load((1, 2)))
        ct.store(tail, 0, y.tiled_view(4, padding_mode=ct.PaddingMode.NAN).load(1))
        ct.store(single, 0, y.tiled_view((4,)).load((0,)))

    x, y = counting(4, 12), counting(6)
    out, tail, single = np.zeros((2, 4), np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32)
    launch(k, x, y, out, tail, single)
    assert out.tolist() == [[32, 33, 34, 35], [44, 45, 46, 47]]
    assert str(tail.tolist()) == "[4.0, 5.0, nan, nan]" and single.tolist() == [0, 1, 2, 3]


@clause("TV-1.scalar")
def test_views_of_scalars():
    @ct.kernel
    def k(x, out):
        v = x.tiled_view(())
        t = v.load((1, 2))
        shape, steps, s = v.tile_shape, v.traversal_steps, t.shape
        ct.static_assert(shape == () and steps == (1, 1) and s == ())
        ct.store(out, 0, t)
        ct.store(out, 1, v.num_tiles(0))
        ct.store(out, 2, v.num_tiles(1))
        v.store((0, 3), -1.0)

    x = counting(2, 4)
    assert run(k, x, np.zeros(4, np.float32)).tolist() == [6, 2, 4, 0]
    assert x.tolist() == [[0, 1, 2, -1], [4, 5, 6, 7]]


@clause("TV-1.shape", "TV-1.int", "TV-1.rank", "TV-2.any", "TV-2.rank", "TV-4.order")
@pytest.mark.parametrize("f", [
    lambda a: a.tiled_view((3, 4)), lambda a: a.tiled_view((4,)), lambda a: a.tiled_view((2, 2, 2)),
    lambda a: a.tiled_view(4),
    lambda a: a.tiled_view((2.0, 2)), lambda a: a.tiled_view((ct.bid(0), 2)), lambda a: a.tiled_view(None),
    lambda a: a.tiled_view((2, 2), traversal_steps=(0, 1)), lambda a: a.tiled_view((2, 2), traversal_steps=(1, -1)),
    lambda a: a.tiled_view((2, 2), traversal_steps=(1,)), lambda a: a.tiled_view((2, 2), traversal_steps=1),
    lambda a: a.tiled_view((2, 2), traversal_steps=(1, 2, 3)), lambda a: a.tiled_view((2, 2), traversal_steps=(1.0, 2)),
    lambda a: a.tiled_view((2, 2), traversal_steps=(ct.bid(0), 1)), lambda a: a.tiled_view((2, 2), order="F"),
    lambda a: a.tiled_view((2, 2), ct.PaddingMode.ZERO), lambda a: a.tiled_view()])
def test_views_that_are_refused(f):
    @ct.kernel
    def k(x):
        f(x)

    refuses("TileTypeError", k, counting(4, 4))


@clause("TV-2.steps", "TV-2.int", "TV-2.any", "TV-3", "TV-3.overhang", "TV-3.gap")
@pytest.mark.parametrize("size, tile, step, tiles", [(8, 2, 1, 8), (16, 2, 3, 6), (16, 4, 4, 4), (17, 4, 4, 5), (10,
    2, 7, 2),
                                                     (7, 4, 3, 3), (9, 1, 5, 2)])
def test_traversal_steps(size, tile, step, tiles):
    @ct.kernel
    def k(x, out, n):
        v = x.tiled_view(tile, traversal_steps=step, padding_mode="NEG_INF")
        w = x.tiled_view((tile,), traversal_steps=(step,), padding_mode="NEG_INF")
        ct.store(n, 0, v.num_tiles(0))
        for j in range(v.num_tiles(0)):
            ct.store(out, (j, 0), ct.maximum(v.load(j), w.load((j,)))[None])

    out, n = np.zeros((tiles, tile), np.float32), np.zeros(1, np.int32)
    launch(k, counting(size), out, n)
    want = [[float(j * step + e) if j * step + e < size else -np.inf for e in range(tile)] for j in range(tiles)]
    assert n.tolist() == [tiles] and out.tolist() == want


@clause("TV-2.steps")
def test_stores_with_steps():
    @ct.kernel
    def k(x):
        v = x.tiled_view((1, 2), traversal_steps=(2, 3))
        for i in range(v.num_tiles(0)):
            for j in range(v.num_tiles(1)):
                v.store((i, j), ct.full((1, 2), 10 * i + j + 1, ct.float32))

    x = np.zeros((3, 7), np.float32)
    run(k, x)
    assert x.tolist() == [[1, 1, 0, 2, 2, 0, 3], [0] * 7, [11, 11, 0, 12, 12, 0, 13]]


@clause("TV-2.default", "TV-4.dtype", "TV-4.tile_shape", "TV-4.traversal_steps", "TV-4.attributes")
def test_attributes():
    @ct.kernel
    def k(x):
        v, w = x.tiled_view((2, 4)), x.tiled_view((2, 4), traversal_steps=(3, 1))
        d, s, t, u = v.dtype, v.tile_shape, v.traversal_steps, w.traversal_steps
        ct.static_assert(d == ct.float16 and s == (2, 4) and t == (2, 4) and u == (3, 1))
        ct.zeros(v.tile_shape, v.dtype)
        ct.zeros((w.traversal_steps[1],), ct.int8)

    accepts(k, np.zeros((4, 4), np.float16))


@pytest.mark.parametrize("f", [pytest.param(f, marks=clause(f"TV-4.{n}"), id=n) for n, f in {
    "shape": lambda v: v.shape, "ndim": lambda v: v.ndim, "padding_mode": lambda v: v.padding_mode,
    "exchange": lambda v: v.atomic_store_xchg(0, 1), "cas": lambda v: v.atomic_store_cas(0, 1, 2)}.items()])
def test_attributes_that_views_do_not_have(f):
    @ct.kernel
    def k(x):
        f(x.tiled_view(2))

    refuses("TileTypeError", k, np.zeros(4, np.int32))


def first(view):
    return view.load(0)


@clause("TV-5.tuple", "TV-5.helper")
def test_views_are_values():
    @ct.kernel
    def k(x, out):
        pair = (x.tiled_view(2), x.tiled_view(4))
        ct.store(out, 0, first(pair[1]) + 1)

    assert run(k, counting(4), np.zeros(4, np.float32)).tolist() == [1, 2, 3, 4]


@clause("TV-5.static")
def test_views_in_static_code():
    @ct.kernel
    def k(x):
        v = x.tiled_view(2)
        ct.static_eval(v)

    refuses("TileTypeError", k, counting(4))
