"""ct.gather."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, needs, refuses, run
from conformance.harness.dtype_names import DTYPES, NUMPY
from conformance.harness.guarded_arrays import guarded, layouts, numbers, same, sample
from conformance.harness.index_maps import GRID, blocks, looks
from conformance.harness.type_probes import on_target

X0, X1, X2 = (np.zeros((4,) * r, np.int32) for r in (0, 1, 2))
INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


def element(a, at, mask=True, pad=0):
    """The result of a gather for one lane."""
    return a[tuple(at)] if mask and all(0 <= i < n for i, n in zip(at, a.shape)) else pad


@clause("GS-2", "GS-4.bounds", "GS-3.sign", "GS-6.default")
@looks
@layouts
def test_lanes_of_blocks(look, layout):
    @ct.kernel
    def k(x, out, some):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        i, j, m = look(a, b, c)
        u = ct.arange(4, dtype=ct.int32)
        t = ct.gather(x, (i + u[:, None] - 1, j * 2 - u[None, :], m))
        ct.static_assert(t.shape == (4, 4))
        ct.store(out, (a, b, c, 0, 0), t.reshape((1, 1, 1, 4, 4)))
        if a == b:
            s = ct.gather(x, (i + u - 1, j, m))
            ct.store(some, (a, c, 0), s.reshape((1, 1, 4)))

    g = guarded(numbers((6, 5, 4)), layout)
    out, some = np.zeros((*GRID, 4, 4), np.int32), np.full((3, 2, 4), -1, np.int32)
    run(k, g.array, out, some, grid=GRID)
    for block in blocks():
        i, j, m = look(*block)
        for u, v in np.ndindex(4, 4):
            assert out[(*block, u, v)] == element(g.array, (i + u - 1, j * 2 - v, m))
        if block[0] == block[1]:
            want = [element(g.array, (i + u - 1, j, m)) for u in range(4)]
            assert some[block[0], block[2]].tolist() == want
    g.check(numbers((6, 5, 4)))


@clause("GS-4.bounds", "GS-4.mask", "GS-5.broadcast", "GS-6.broadcast", "GS-5.none")
@pytest.mark.parametrize("layout", ["contiguous", "gaps"])
@pytest.mark.parametrize("mask", ["none", "true", "false", "runtime", "row", "column", "full"])
@pytest.mark.parametrize("pad", ["literal", "runtime", "row", "column", "full"])
def test_masks_and_padding(layout, mask, pad):
    def mask_of(m, b):
        row, column = ct.load(m, (0, 0), (1, 4)), ct.load(m, (0, 0), (2, 1))
        if mask == "none":
            return None
        if mask == "true":
            return True
        if mask == "false":
            return False
        if mask == "runtime":
            return b == 1
        if mask == "row":
            return row.reshape((4,))
        if mask == "column":
            return column
        return ct.load(m, (0, 0), (2, 4))

    def pad_of(p, b):
        if pad == "literal":
            return -7
        if pad == "runtime":
            return b - 9
        if pad == "row":
            return ct.load(p, (0, 0), (1, 4)).reshape((4,))
        if pad == "column":
            return ct.load(p, (0, 0), (2, 1))
        return ct.load(p, (0, 0), (2, 4))

    @ct.kernel
    def k(x, i, m, p, out):
        b = ct.bid(0)
        t = ct.gather(x, (b, ct.load(i, (0, 0), (2, 4))), mask=mask_of(m, b), padding_value=pad_of(p, b))
        ct.store(out, (b, 0, 0), t.reshape((1, 2, 4)))

    x = guarded(numbers((3, 5)), layout).array
    i = np.array([[0, 4, 5, -1], [2, 1, -5, 3]], np.int32)
    m = np.array([[True, False, True, True], [False, True, True, False]])
    p = numbers((2, 4), start=-100)
    out = run(k, x, i, m, p, np.zeros((4, 2, 4), np.int32), grid=(4,))
    for b, r, c in np.ndindex(4, 2, 4):
        ok = {"none": True, "true": True, "false": False, "runtime": b == 1, "row": m[0, c], "column": m[r, 0],
              "full": m[r, c]}[mask]
        fill = {"literal": -7, "runtime": b - 9, "row": p[0, c], "column": p[r, 0], "full": p[r, c]}[pad]
        assert out[b, r, c] == element(x, (b, i[r, c]), ok, fill), (b, r, c)


@clause("GS-1.kind")
@pytest.mark.parametrize("d", INTEGERS)
def test_indices_of_every_dtype(d):
    d = DTYPES[d]

    @ct.kernel
    def k(x, out):
        u = ct.arange(4, dtype=ct.int32) + ct.bid(0)
        ct.store(out, (ct.bid(0), 0), ct.gather(x, (ct.bid(0).astype(d), u.astype(d)),
            padding_value=-1).reshape((1, 4)))

    x = numbers((3, 5))
    out = run(k, x, np.zeros((4, 4), np.int32), grid=(4,))
    for b, u in np.ndindex(4, 4):
        assert out[b, u] == element(x, (b, b + u), True, -1)


@clause("GS-1.single", "GS-4.bounds", "GS-3.sign")
@layouts
@pytest.mark.parametrize("d", ["i16", "i32", "u32", "i64"])
def test_what_is_gathered_goes_to_an_array(layout, d):
    """The indices of all blocks are in range, or a few are not, at either end."""
    d = DTYPES[d]

    @ct.kernel
    def k(x, start, out):
        u = ct.arange(8, dtype=ct.int32) * 3 + start + ct.bid(0)
        ct.store(out, ct.bid(0), ct.gather(x, (23 - u).astype(d)))

    x = numbers(24, np.int8)
    for start in (0, -1, 1):
        g = guarded(x, layout)
        out = run(k, g.array, start, np.zeros(24, np.int8), grid=(3,))
        want = [element(x, (23 - (3 * u + start + b),)) for b in range(3) for u in range(8)]
        assert out.tolist() == want, start
        g.check(x)


@clause("GS-1.single", "IDX-3")
def test_many_gathered_elements():
    @ct.kernel
    def k(x, out):
        i = ct.bid(0) * 2048 + ct.arange(2048, dtype=ct.int32)
        ct.store(out, ct.bid(0), ct.gather(x, 131071 - i))

    x = numbers(131072, np.float32)
    same(run(k, x, np.zeros(131072, np.float32), grid=(64,)), x[::-1].copy())


@clause("GS-1.single", "GS-2")
def test_an_array_is_reversed_in_its_place():
    @ct.kernel
    def k(x):
        ct.store(x, 0, ct.gather(x, 7 - ct.arange(8, dtype=ct.int32)))

    same(run(k, numbers(8, np.float32)), numbers(8, np.float32)[::-1].copy())


@clause("GS-1.single", "GS-2")
def test_all_blocks_gather_the_same():
    @ct.kernel
    def k(x, out):
        ct.store(out, ct.bid(0), ct.gather(x, 7 - ct.arange(8, dtype=ct.int32)))

    same(run(k, numbers(8, np.float32), np.zeros(24, np.float32), grid=(3,)), np.tile(numbers(8, np.float32)[::-1], 3))


@clause("GS-3.wide", "GS-3.sign", "IDX-3")
@pytest.mark.parametrize("d", INTEGERS)
@pytest.mark.parametrize("n", [3, 127, 128, 200, 256, 300])
def test_extreme_indices(d, n):
    """Every index that is not a position of the array is out of range."""
    info = np.iinfo(NUMPY[d])
    wanted = [0, 1, n - 1, n, n + 1, info.max, info.max - 1, info.min, info.min + 1, info.max // 2, -1, -n, -n - 1,
              1 << 32, (1 << 32) + 1, -(1 << 32), 1 << 40, (1 << 62) + 1]
    i = np.zeros(32, NUMPY[d])
    fit = [v for v in wanted if info.min <= v <= info.max]
    i[:len(fit)] = fit

    @ct.kernel
    def k(x, y, i, out):
        t = ct.load(i, ct.bid(0), 16)
        ct.store(out, (0, ct.bid(0)), ct.gather(x, t, padding_value=-1).reshape((1, 16)))
        ct.store(out, (1, ct.bid(0)), ct.gather(y, (1, t), padding_value=-1).reshape((1, 16)))
        ct.store(out, (2, ct.bid(0)), ct.gather(x.slice(0, 1, n), t, padding_value=-1).reshape((1, 16)))

    x, y = numbers(n), guarded(numbers((2, n)), "gaps").array
    out = run(k, x, y, i, np.zeros((3, 32), np.int32), grid=(2,))
    for at, v in enumerate(map(int, i)):
        assert out[0, at] == element(x, (v,), True, -1), v
        assert out[1, at] == element(y, (1, v), True, -1), v
        assert out[2, at] == element(x[1:], (v,), True, -1), v


@clause("GS-1.single", "GS-2")
def test_a_single_index_without_a_tuple():
    @ct.kernel
    def k(x, out):
        s = ct.gather(x, 2)
        ct.static_assert(s.shape == ())
        t = ct.gather(x, ct.arange(4, dtype=ct.int32).reshape((2, 2)))
        ct.store(out, (0, 0), t + s + ct.gather(x, (ct.bid(0),)))

    same(run(k, numbers(4), np.zeros((2, 2), np.int32)), np.array([[5, 6], [7, 8]], np.int32))


@clause("GS-1.rank0", "GS-2", "GS-4.mask")
def test_an_array_of_rank_0():
    @ct.kernel
    def k(x, out):
        t = ct.gather(x, ())
        ct.static_assert(t.shape == ())
        ct.store(out, ct.bid(0), t + ct.gather(x, (), mask=ct.bid(0) == 1, padding_value=100))

    same(run(k, np.array(5, np.int32), np.zeros(3, np.int32), grid=(3,)), np.array([105, 10, 105], np.int32))


@clause("GS-4.bounds")
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_an_array_without_elements(shape):
    index = (0,) * len(shape)

    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.gather(x, index, padding_value=-3))

    assert run(k, np.zeros(shape, np.int32), np.zeros(1, np.int32))[0] == -3


@clause("GS-1.shapes", "GS-2")
def test_indices_broadcast():
    @ct.kernel
    def k(x, out):
        u, v = ct.arange(2, dtype=ct.int32), ct.arange(4, dtype=ct.int32)
        t = ct.gather(x, (u[:, None, None], v[:, None], ct.full((1, 1, 2), 1, ct.int32) * ct.arange(2, dtype=ct.int32)))
        ct.static_assert(t.shape == (2, 4, 2))
        ct.store(out, (0, 0, 0), t)

    x = numbers((2, 4, 3))
    same(run(k, x, np.zeros((2, 4, 2), np.int32)), x[:, :, :2])


@pytest.mark.parametrize("x, call", [
    pytest.param(X1, lambda x: ct.gather(x, True), marks=clause("GS-1.bool")),
    pytest.param(X2, lambda x: ct.gather(x, (0, ct.arange(4, dtype=ct.int32) > 1)), marks=clause("GS-1.bool")),
    pytest.param(X1, lambda x: ct.gather(x, 0.0), marks=clause("GS-1.float")),
    pytest.param(X2, lambda x: ct.gather(x, (ct.zeros((2,), ct.float16), 0)), marks=clause("GS-1.float")),
    pytest.param(X1, lambda x: ct.gather(x, (0, 0)), marks=clause("GS-1.count")),
    pytest.param(X2, lambda x: ct.gather(x, (0,)), marks=clause("GS-1.count")),
    pytest.param(X2, lambda x: ct.gather(x, 0), marks=clause("GS-1.count")),
    pytest.param(X1, lambda x: ct.gather(x, ()), marks=clause("GS-1.count")),
    pytest.param(X0, lambda x: ct.gather(x, 0), marks=clause("GS-1.rank0")),
    pytest.param(X0, lambda x: ct.gather(x, (0,)), marks=clause("GS-1.rank0")),
    pytest.param(X1, lambda x: ct.gather(x, None), marks=clause("GS-1.count")),
    pytest.param(X2, lambda x: ct.gather(x, (0, "a")), marks=clause("GS-1.float")),
    pytest.param(X2, lambda x: ct.gather(x, (ct.zeros((2,), ct.int32), ct.zeros((4,), ct.int32))),
                 marks=clause("GS-1.shapes")),
    pytest.param(X1, lambda x: ct.gather(x, ct.zeros((4,), ct.int32), mask=ct.full((2,), True, ct.bool_)),
                 marks=clause("GS-5.shape")),
    pytest.param(X1, lambda x: ct.gather(x, 0, mask=ct.full((1,), True, ct.bool_)), marks=clause("GS-5.shape")),
    pytest.param(X1, lambda x: ct.gather(x, 0, mask=1), marks=clause("GS-5.dtype")),
    pytest.param(X1, lambda x: ct.gather(x, 0, mask=ct.int8(1)), marks=clause("GS-5.dtype")),
    pytest.param(X1, lambda x: ct.gather(x, 0, mask=ct.bid(0)), marks=clause("GS-5.dtype")),
    pytest.param(X1, lambda x: ct.gather(x, 0, mask="a"), marks=clause("GS-5.dtype")),
    pytest.param(X1, lambda x: ct.gather(x, 0, padding_value=1.5), marks=clause("GS-6.cast")),
    pytest.param(X1, lambda x: ct.gather(x, 0, padding_value=ct.int64(1)), marks=clause("GS-6.cast")),
    pytest.param(X1, lambda x: ct.gather(x, 0, padding_value=None), marks=clause("GS-6.none")),
    pytest.param(X1, lambda x: ct.gather(x, 0, padding_value=(1, 2)), marks=clause("GS-6.cast")),
    pytest.param(X1, lambda x: ct.gather(x, ct.zeros((4,), ct.int32), padding_value=ct.zeros((2,), ct.int32)),
                 marks=clause("GS-6.shape")),
    pytest.param(X1, lambda x: ct.gather(x, 0, padding_value=ct.zeros((1,), ct.int32)), marks=clause("GS-6.shape")),
    pytest.param(X1, lambda x: ct.gather(x, 0, None), marks=clause("GS-5.none")),
    pytest.param(X1, lambda x: ct.gather(x, indices=0), marks=clause("GS-1.single")),
    pytest.param(X1, lambda x: ct.gather(x, 0, allow_tma=True), marks=clause("HINT-2.bool")),
])
def test_what_is_refused(x, call):
    @ct.kernel
    def k(x):
        call(x)

    refuses("TileTypeError", k, x)


@clause("GS-6.cast")
def test_padding_out_of_range():
    @ct.kernel
    def k(x):
        ct.gather(x, 0, padding_value=300)

    refuses("TileValueError", k, np.zeros(4, np.uint8))


@clause("GS-6.cast", "GS-6.default")
def test_padding_is_cast():
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.gather(x, -1, padding_value=2049))
        ct.store(out, 1, ct.gather(x, -1, padding_value=ct.int32(2051)))
        ct.store(out, 2, ct.gather(x, -1, padding_value=ct.bid(0) == 0))
        ct.store(out, 3, ct.gather(x, 9))

    assert run(k, np.ones(4, np.float16), np.ones(4, np.float16)).tolist() == [2048.0, 2052.0, 1.0, 0.0]


@clause("GS-9.dtype", "GS-9.every")
@pytest.mark.parametrize("d", NUMPY)
def test_every_dtype(d):
    @ct.kernel
    def k(x, i, out):
        t = ct.gather(x, ct.load(i, ct.bid(0), 8))
        ct.static_assert(t.dtype == x.dtype)
        ct.scatter(out, ct.load(i, ct.bid(0), 8) + 1, t)

    x, i = sample(d, 32), np.random.default_rng(1).permutation(32).astype(np.int32)
    want = np.ones(33, np.uint8).astype(x.dtype)
    want[1:] = x
    with on_target(d):
        same(run(k, x, i, np.ones(33, np.uint8).astype(x.dtype), grid=(4,)), want)


@needs("overlap")
@clause("GS-9.pure")
@pytest.mark.parametrize("d", ["i32", "f16"])
def test_a_gathered_tile_does_not_change(d):
    @ct.kernel
    def k(x, y, out):
        i = 3 - ct.arange(4, dtype=ct.int32)
        t = ct.gather(x, i)
        ct.scatter(y, i, t + 100)
        ct.store(out, 0, t)

    x = numbers(4, NUMPY[d])
    same(run(k, x, x, np.zeros(4, x.dtype)), numbers(4, x.dtype)[::-1])
    same(x, numbers(4, x.dtype, start=101))


@needs("safe memory")
@clause("GS-7", "HINT-3.outside")
def test_a_false_promise():
    @ct.kernel
    def k(x, out):
        i = ct.arange(8, dtype=ct.int32) - 2
        ct.store(out, 0, ct.gather(x, i, check_bounds=False, padding_value=-1))
        ct.scatter(x, i, 7, check_bounds=False)

    g = guarded(numbers(4))
    out = run(k, g.array, np.zeros(8, np.int32))
    assert out.tolist() == [-1, -1, 1, 2, 3, 4, -1, -1]
    g.check(np.full(4, 7, np.int32))
