"""Tiles that a loop takes from one view must be what loading each of them gives."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.errors import TileInternalError, TileStepLimitError
from cutile.interp.exec import divergence
from cutile.interp.memory import buffer
from cutile.interp.memory.loop_tiles import NONE, LoopTiles

T = 4


@ct.kernel
def product(a, b, c):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((T, T), ct.float32)
    for k in range(ct.num_tiles(a, 1, (T, T))):
        acc = ct.mma(ct.load(a, (i, k), (T, T)), ct.load(b, (k, j), (T, T)), acc)
    ct.store(c, (i, j), acc)


@ct.kernel
def total(a, c, start, stop, step):
    i = ct.bid(0)
    acc = ct.zeros((T,), ct.float32)
    for k in range(start, stop, step):
        acc = acc * 2.0 + ct.load(a, (i, k), (1, T)).reshape((T,))
    ct.store(c, i, acc)


@ct.kernel
def along_itself(a, c, n):
    """Indices of one axis of the array each, twice the same; scalars; an order."""
    i = ct.bid(0)
    acc = ct.zeros((T,), ct.float32)
    for k in range(n):
        acc = acc * 2.0 + ct.load(a, (k, k), (1, T), order="F", padding_mode=ct.PaddingMode.ZERO).reshape((T,)) \
            + ct.load(a, (i, k), ()) + ct.load(a, (k, 0), ())
    ct.store(c, i, acc)


@ct.kernel
def nested(a, c, n):
    i = ct.bid(0)
    half = i // 2
    acc = ct.zeros((T,), ct.float32)
    for r in range(2):
        first = ct.load(a, (0, r), ()).astype(ct.int32) // 100
        for k in range(n):
            acc = acc * 2.0 + ct.load(a, (r, k), (1, T)).reshape((T,)) + ct.load(a, (first, k), (1, T)).reshape((T,)) \
                + ct.load(a, (half, k), (1, T)).reshape((T,)) + ct.load(a, (i, r), (1, T)).reshape((T,))
    ct.store(c, i, acc)


@ct.kernel
def each_its_own(a, c, n):
    """Blocks make different iterations, or leave, or are only some."""
    i = ct.bid(0)
    acc = ct.zeros((T,), ct.float32)
    for k in range(n + i):
        acc = acc * 2.0 + ct.load(a, (i, k), (1, T)).reshape((T,))
    for k in range(n):
        acc = acc + ct.load(a, (i, k), (1, T)).reshape((T,))
        if ct.max(acc) > 2000.0:
            break
    if (i // 2) % 2 == 0:
        for k in range(n):
            acc = acc - ct.load(a, (i, k), (1, T)).reshape((T,))
    ct.store(c, i, acc)


@ct.kernel
def running_sum(a, n):
    i = ct.bid(0)
    for k in range(n):
        ct.store(a, (i, k + 1), ct.load(a, (i, k), (1, T)) + ct.load(a, (i, k + 1), (1, T)))


@pytest.fixture(params=["", "1"], ids=["", "checked"])
def found(monkeypatch, request):
    """For each load of a loop that was looked at, whether its tiles were found: for all iterations, all but the last,
    none.
    """
    for s in settings.table().values():
        monkeypatch.delenv(s.variable, raising=False)
    if request.param:
        monkeypatch.setenv("CUTILE_CHECK", request.param)
    seen, tiles = [], LoopTiles.tiles

    def looking(self, *given):
        out = tiles(self, *given)
        seen.append("none" if out is NONE else "all" if isinstance(out, np.ndarray) else "but one")
        return out

    monkeypatch.setattr(LoopTiles, "tiles", looking)
    return seen


def f32(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape), dtype=np.float32) % 97).reshape(shape)


def same(kernel, grid, *args) -> None:
    """Launch twice; each time, the arrays end as in the schedule block, which looks for no loop tiles."""
    kernel = ct.kernel(kernel.function)  # compiled now
    for _ in range(2):
        copies = [x.copy(order="K") if isinstance(x, np.ndarray) else x for x in args]
        with settings.override(SCHEDULE="block"):
            ct.launch(None, grid, kernel, tuple(copies))
        ct.launch(None, grid, kernel, args)
        for x, y in zip(args, copies, strict=True):
            assert not isinstance(x, np.ndarray) or x.tobytes() == y.tobytes()


def zeros(n: int = 4 * T) -> np.ndarray:
    return np.zeros(n, np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_product(dtype, found):
    a, b = (x.astype(dtype) for x in (f32(8, 24), f32(24, 12)))
    same(product, (2, 3), a, b, np.zeros((8, 12), np.float32))
    assert found == ["all"] * 4


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: x[::-1, ::-1], lambda x: np.repeat(x, 2, 1)[:, ::2],
                                    lambda x: np.broadcast_to(x[:1], x.shape)])
def test_layouts(layout, found):
    same(product, (2, 3), layout(f32(8, 24)), layout(f32(24, 12)), np.zeros((8, 12), np.float32))
    assert found == ["all"] * 4


@pytest.mark.parametrize("trips, finds", [
    ((0, 6, 1), "all"), ((1, 6, 1), "all"), ((0, 6, 3), None), ((0, 7, 1), "but one"), ((1, 8, 2), "but one"),
    ((0, 8, 1), "none"), ((-1, 5, 1), "none"), ((3, 1 << 20, 1 << 18), "none"), ((6, 12, 1), "none"), ((0, 0, 1), None),
    ((5, 0, 1), None), ((0, divergence.LEAST_TRIPS - 1, 1), None), ((0, divergence.LEAST_TRIPS, 1), "all")])
def test_where_the_tiles_lie(trips, finds, found):
    """Negative indices, indices beyond the end at the last iteration or before, few iterations."""
    same(total, (4,), f32(4, 24), zeros(), *trips)
    assert found == ([finds] * 2 if finds else [])


def test_an_edge(found):
    same(total, (4,), f32(4, 22), zeros(), 0, 6, 1)
    same(total, (5,), f32(4, 24), zeros(5 * T), 0, 6, 1)  # a row of tiles that does not exist
    assert found == ["but one"] * 2 + ["none"] * 2


def test_indices_wider_than_those_of_the_array(found):
    """They are truncated [IDX-2]."""
    wide = 1 << 32

    @ct.kernel
    def far(a, c):
        acc = ct.zeros((T,), ct.float32)
        for k in range(ct.int64(wide), ct.int64(wide + 5)):
            acc = acc * 2.0 + ct.load(a, (ct.bid(0), k), (1, T)).reshape((T,))
        ct.store(c, ct.bid(0), acc)

    c = zeros()
    same(far, (4,), f32(4, 24), c)
    assert c.any() and found == ["none"] * 2


def test_indices(found):
    same(along_itself, (4,), f32(24, 24), zeros(), 5)
    assert found == ["all", "all", "none"] * 2  # one scalar for all blocks
    del found[:]
    same(nested, (4,), f32(8, 24), zeros(), 6)
    assert found == ["all", "all", "none"] * 4  # a number for all blocks, one of each its own


def test_blocks_that_go_different_ways(found):
    same(each_its_own, (8,), f32(8, 48), zeros(8 * T), 5)
    assert found == ["none"] * 2  # asked in the last loop only, by a list of blocks


def test_a_loop_of_fewer_blocks(found):
    @ct.kernel
    def half(a, c, n):
        i = ct.bid(0)
        acc = ct.zeros((T,), ct.float32)
        if i < 2:
            for k in range(n):
                acc = acc + ct.load(a, (i, k), (1, T)).reshape((T,))
        ct.store(c, i, acc)

    same(half, (4,), f32(4, 24), zeros(), 6)
    assert found == ["none"] * 2


def test_memory_that_changes(found):
    """What an iteration stores, the next one loads; so does what shares the memory."""
    same(running_sum, (4,), f32(4, 24), 5)
    assert found == ["none"] * 4
    a, b = f32(4, 24), f32(4, 24)

    @ct.kernel
    def shifted(a, b, n):
        i = ct.bid(0)
        for k in range(n):
            ct.store(b, (i, k), ct.load(a, (i, k), (1, T)) + 1.0)

    ct.launch(None, (4,), shifted, (a[:, :20], a[:, 4:], 5))
    expected = b.copy()
    for k in range(5):
        expected[:, 4 * k + 4:4 * k + 8] = expected[:, 4 * k:4 * k + 4] + 1
    assert np.array_equal(a, expected) and found[4:] == ["none"]
    same(shifted, (4,), b, np.zeros_like(b), 5)
    assert found[5:] == ["all"] * 2


def test_indices_that_grow_with_the_counter(found):
    """Affine in the counter and the block indices, forwards and backwards, partly outside."""
    @ct.kernel
    def woven(a, c, n):
        i = ct.bid(0)
        acc = ct.zeros((T,), ct.float32)
        for k in range(n):
            acc = acc * 2.0 + ct.load(a, (i, 2 * k + 1), (1, T)).reshape((T,))
            acc = acc - ct.load(a, (3 - i, n - 1 - k), (1, T)).reshape((T,))  # n is no constant
            acc = acc + ct.load(a, (0, 7 - k), (1, T)).reshape((T,)) + ct.load(a, (i, k + i), (1, T)).reshape((T,))
        ct.store(c, i, acc)

    same(woven, (4,), f32(4, 64), zeros(), 6)
    assert found == ["all", "all", "all"] * 2
    del found[:]
    same(woven, (4,), f32(4, 44), zeros(), 6)
    assert found == ["but one", "all", "all"] * 2
    del found[:]
    same(woven, (4,), f32(4, 24), zeros(), 9)
    assert found == ["none", "none", "none"] * 2


def test_arrays_that_are_not_worth_converting(found, monkeypatch):
    monkeypatch.setattr(buffer, "SMALL", 8)
    a = f32(4, 240).astype(np.float16)
    same(total, (4,), a, zeros(), 0, 6, 1)  # 96 of 960 elements
    assert found == ["none"] * 2
    same(total, (4,), a, zeros(), 0, 60, 1)
    assert found[2:] == ["none"] * 2  # as many as it holds, not more


def test_reading_is_counted_once():
    m = buffer.Buffer(np.zeros(buffer.SMALL + 1, np.float16), ct.float16, False, "a")
    m.may_change = False
    for _ in range(3):
        assert not m.ensure_constant_carriers(m.array.size)
    assert m.ensure_constant_carriers(m.array.size + 1) and m.carrier_memory is not None


def test_launches_with_other_arrays(found):
    """The next launch sees other contents, other memory, other layouts."""
    for a in (f32(4, 24), f32(4, 24) + 1, f32(4, 48)[:, ::2], f32(24, 4).T, f32(4, 22), f32(4, 240)):
        same(total, (4,), a, zeros(), 0, 6, 1)
        a[...] = 7
        same(total, (4,), a, zeros(), 0, 6, 1)


def test_chunks(found, monkeypatch):
    from cutile.interp import schedule

    monkeypatch.setattr(schedule, "MATMUL_BUDGET", 2 * T * T * 4)
    same(product, (3, 3), f32(12, 24), f32(24, 12), np.zeros((12, 12), np.float32))
    assert found == ["all"] * 4 * 6


def test_threads():
    arrays = [(f32(8, 24) + k, f32(24, 12), np.zeros((8, 12), np.float32)) for k in range(8)]
    start = threading.Barrier(8)

    def work(a, b, c):
        start.wait()
        for _ in range(20):
            ct.launch(None, (2, 3), product, (a, b, c))

    threads = [threading.Thread(target=work, args=x) for x in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(np.array_equal(c, a @ b) for a, b, c in arrays)


def test_tiles_cannot_be_written_and_are_checked(found, monkeypatch):
    seen, meaning = [], ct.mma.meaning

    assert ct.mma.__signature__  # read now: it would be that of `look` later

    def look(x, y, /, acc, **options):
        seen.append((x.flags.writeable, y.flags.writeable))
        return meaning(x, y, acc, **options)

    monkeypatch.setattr(ct.mma, "meaning", look)
    args = f32(8, 24), f32(24, 12), np.zeros((8, 12), np.float32)
    ct.launch(None, (2, 3), ct.kernel(product.function), args)
    assert seen == [(False, False)] * 6
    tiles = LoopTiles.tiles
    monkeypatch.setattr(LoopTiles, "tiles", lambda *given: tiles(*given).astype(np.float64))
    if settings.get("CHECK"):
        with pytest.raises(TileInternalError, match="carried in float32, got float64"):
            ct.launch(None, (2, 3), ct.kernel(product.function), args)


def test_loops_without_end():
    with settings.override(STEP_LIMIT=100), pytest.raises(TileStepLimitError, match="more than 100 iterations"):
        ct.launch(None, (4,), total, (f32(4, 24), zeros(), -(1 << 31), (1 << 31) - 1, 1))

    @ct.kernel
    def endless(a, c):
        acc = ct.zeros((T,), ct.float32)
        for k in range(-ct.int64(2**63 - 1), ct.int64(2**63 - 1)):
            acc = acc + ct.load(a, (ct.bid(0), k), (1, T)).reshape((T,))
        ct.store(c, ct.bid(0), acc)

    with settings.override(STEP_LIMIT=100), pytest.raises(TileStepLimitError, match="more than 100 iterations"):
        ct.launch(None, (4,), endless, (f32(4, 24), zeros()))
