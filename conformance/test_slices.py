"""Slices of arrays [SLICE]."""

from typing import Annotated

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, named, needs, refuses, run
from conformance.harness.dtype_names import DTYPES
from conformance.harness.type_probes import counting, inspect, taken

Static = Annotated[object, ct.ArrayAnnotation(static_shape_dims=(1,), static_stride_dims=(0,))]
ONE = np.zeros(4, np.float32)


@clause("SLICE-1.base", "SLICE-1.size", "SLICE-5", "SLICE-2.axis.negative")
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_slices(axis):
    x = counting(4, 6, 8)[:, ::-1][:, ::-1]
    k_axis = axis % 3

    @ct.kernel
    def k(x, start, stop, out, dims):
        a = x.slice(axis, start, stop)
        b = x.slice(stop=stop, axis=axis, start=start)
        ct.store(out, (0, 0, 0), ct.load(a, (0, 0, 0), (4, 8, 8), padding_mode="ZERO") +
                 ct.load(b, (0, 0, 0), (4, 8, 8), padding_mode="ZERO"))
        for i in ct.static_iter(range(3)):
            ct.store(dims, i, a.shape[i])
            ct.store(dims, 3 + i, a.strides[i])

    for start, stop in ((1, 3), (0, 4), (2, 2), (3, 4)):
        out, dims = np.full((4, 8, 8), -1, np.float32), np.zeros(8, np.int32)
        launch(k, x, start, stop, out, dims)
        want = np.zeros((4, 8, 8), np.float32)
        for i in range(4):
            for j in range(6):
                for m in range(8):
                    at = [i, j, m]
                    at[k_axis] -= start
                    if 0 <= at[k_axis] < stop - start:
                        want[tuple(at)] = 2 * x[i, j, m]
        assert out.tolist() == want.tolist()
        sizes = [4, 6, 8]
        sizes[k_axis] = stop - start
        assert dims.tolist() == [*sizes, 48, 8, 1, 0, 0]


@clause("SLICE-1.base")
def test_slices_of_slices_share_memory():
    @ct.kernel
    def k(x, n):
        y = x.slice(0, n, 8).slice(0, 1, n)
        ct.store(y, 0, ct.full((4,), -1, ct.float32))

    x = counting(9)
    run(k, x, 3)
    assert x.tolist() == [0, 1, 2, 3, -1, -1, 6, 7, 8]


@clause("SLICE-4.static", "SLICE-4.runtime", "SLICE-4.others")
def test_sizes_of_slices():
    x = counting(4, 8)
    assert inspect(lambda a: a.slice(0, 1, 3).shape, x) == [(2, "int32"), (None, "int32")]
    assert inspect(lambda a: a.slice(1, 1, a.shape[1]).shape, x) == [(None, "int32"), (None, "int32")]
    assert inspect(lambda a: a.slice(1, ct.bid(0), 3).shape, x) == [(None, "int32"), (None, "int32")]
    assert inspect(lambda a: a.slice(0, 1, 3).shape, x, Static) == [(2, "int32"), (8, "int32")]
    assert inspect(lambda a: a.slice(1, ct.bid(0), 3).shape, x, Static) == [(None, "int32"), (None, "int32")]
    assert inspect(lambda a: a.slice(1, ct.bid(0), 3).strides, x, Static) == [(8, "int32"), (None, "int32")]


@clause("SLICE-4.cast")
def test_sizes_of_slices_have_the_index_dtype():
    def cut(a):
        return a.slice(0, ct.int64(1) * ct.bid(0), ct.int64(3) + ct.bid(0)).shape

    assert inspect(cut, counting(8)) == [(None, "int32")]
    assert inspect(lambda a: a.slice(0, ct.bid(0), ct.int8(3) + ct.bid(0).astype(ct.int8)).shape, counting(8),
                   ct.IndexedWithInt64) == [(None, "int64")]
    assert taken(cut, counting(8))[0] == 3


@clause("SLICE-2.bounds")
@pytest.mark.parametrize("short", ["i8", "i16", "i32", "i64"])
def test_bounds_of_slices(short):
    dtype = DTYPES[short]

    @ct.kernel
    def k(x, n, out):
        ct.store(out, 0, ct.load(x.slice(0, dtype(n), dtype(4)), 0, 2))
        ct.store(out, 1, ct.load(x.slice(0, dtype(1), n.astype(dtype) + 1), 0, 2, padding_mode="ZERO"))

    assert run(k, counting(8), 2, np.zeros(4, np.float32)).tolist() == [2, 3, 1, 2]


ONE = np.zeros(4, np.float32)


@pytest.mark.parametrize("f", [pytest.param(f, id=f"{n}{i}", marks=clause(f"SLICE-{n}")) for i, (n, f) in enumerate([
    ("2.axis", lambda a: a.slice(ct.bid(0), 0, 1)), ("2.axis", lambda a: a.slice(0.0, 0, 1)),
    ("2.axis", lambda a: a.slice(False, 0, 1)), ("2.axis", lambda a: a.slice((0,), 0, 1)),
    ("2.axis.range", lambda a: a.slice(1, 0, 1)), ("2.axis.range", lambda a: a.slice(-2, 0, 1)),
    ("2.bounds.unsigned", lambda a: a.slice(0, ct.uint32(0), 1)),
    ("2.bounds.unsigned", lambda a: a.slice(0, 0, ct.uint8(1))),
    ("2.bounds.bool", lambda a: a.slice(0, False, 1)), ("2.bounds.bool", lambda a: a.slice(0, 0, True)),
    ("2.bounds.float", lambda a: a.slice(0, 0.0, 1)), ("2.bounds.float", lambda a: a.slice(0, 0, 1.0)),
    ("2.bounds.tile", lambda a: a.slice(0, ct.zeros((1,), ct.int32), 1)),
    ("2.bounds.tile", lambda a: a.slice(0, 0, ct.zeros((1,), ct.int32))),
    ("3.start", lambda a: a.slice(0, -1, 1)), ("3.start", lambda a: a.slice(0, -1, ct.bid(0))),
    ("3.stop", lambda a: a.slice(0, 0, -1)), ("3.stop", lambda a: a.slice(0, ct.bid(0), -1)),
    ("3.order", lambda a: a.slice(0, 2, 1))])])
def test_slices_that_are_refused(f):
    @ct.kernel
    def k(x):
        f(x)

    refuses("TileTypeError", k, ONE)


@clause("SLICE-2.axis.rank0")
def test_slices_of_rank_0():
    @ct.kernel
    def k(x):
        x.slice(0, 0, 1)

    refuses("TileTypeError", k, np.array(1.0))


@clause("SLICE-3.beyond", "SLICE-3.order")
def test_constant_bounds_that_are_accepted():
    @ct.kernel
    def k(x: Annotated[object, ct.ArrayAnnotation(static_shape_dims=(0,))]):
        x.slice(0, 2, 2)
        x.slice(0, 0, 0)
        x.slice(0, 0, 100)

    accepts(k, ONE)


@clause("SLICE-3.runtime")
@needs("cpu arrays")
def test_slices_beyond_an_array():
    @ct.kernel
    def k(x, start, stop, out):
        y = x.slice(0, start, stop)
        ct.store(out, 0, ct.load(y, 0, 8, padding_mode="NEG_INF"))
        ct.store(y, 0, ct.full((8,), 9, ct.float32))

    memory = counting(16)
    x, inf = memory[4:12], float("inf")
    assert run(k, x, 6, 12, np.zeros(8, np.float32)).tolist() == [10, 11, *[-inf] * 6]
    assert memory.tolist() == [*range(10), 9, 9, 12, 13, 14, 15]
    assert run(k, x, -2, 2, np.zeros(8, np.float32)).tolist() == [-inf, -inf, 4, 5, *[-inf] * 4]
    assert memory.tolist() == [0, 1, 2, 3, 9, 9, *range(6, 10), 9, 9, 12, 13, 14, 15]
    assert run(k, x, 5, 3, np.zeros(8, np.float32)).tolist() == [-inf] * 8


@clause("SLICE-3.runtime")
@needs("cpu arrays")
@pytest.mark.parametrize("size", [8, 16])
@pytest.mark.parametrize("start", [-1, -3, -4, -6])
def test_slices_before_an_array_by_blocks_in_reverse(start, size):
    """Tiles of the later blocks begin before the array, and end inside it or before it."""
    @ct.kernel
    def k(x, start, out):
        i = ct.num_blocks(0) - 1 - ct.bid(0)
        y = x.slice(0, start, size)
        ct.store(out, i, ct.load(y, i, 4, padding_mode="NEG_INF"))
        ct.store(y, i, ct.full((4,), 9, ct.float32))

    memory, blocks = counting(16 + size), 4
    x, inf = memory[8:8 + size], float("inf")
    got = run(k, x, start, np.zeros(4 * blocks, np.float32), grid=(blocks,))
    want = [8.0 + i if 0 <= i < size else -inf for i in range(start, start + 4 * blocks)]
    assert got.tolist() == want
    written = min(size, start + 4 * blocks)
    assert memory.tolist() == [*range(8), *[9.0] * written, *range(8 + written, 16 + size)]


@clause("SLICE-1.base", "SLICE-3.runtime")
@needs("cpu arrays")
def test_what_is_computed_goes_to_slices_that_differ_by_block():
    @ct.kernel
    def k(x, out):
        i = ct.bid(0)
        y = out.slice(0, 5 * i, 5 * i + 3)
        ct.store(y, 0, ct.load(x, i, 4) * 2 + 1)

    x, out = counting(16), np.zeros(20, np.float32)
    run(k, x, out, grid=(4,))
    assert out.reshape(4, 5).tolist() == [[*(2 * x.reshape(4, 4)[i, :3] + 1).tolist(), 0, 0] for i in range(4)]


@clause("SLICE-1.base")
@pytest.mark.parametrize("grid", [(5,), (1, 5), (5, 1), (2, 3)])
def test_some_blocks_use_slices_that_differ_by_block(grid):
    """Some blocks take a branch, and a few of these another one."""
    @ct.kernel
    def k(x, out):
        i = ct.bid(0) * ct.num_blocks(1) + ct.bid(1)
        if i != 2:
            y = x.slice(0, 3 * i, 3 * i + i + 1)
            if i > 2:
                ct.store(out, i, ct.load(y, 0, 4))

    x = counting(24)
    got = run(k, x, np.zeros(24, np.float32), grid=grid).reshape(6, 4)
    for i in range(6):
        used = [3.0 * i + j for j in range(4)]
        assert got[i].tolist() == (used if 2 < i < np.prod(grid) else [0] * 4)


@clause("SLICE-1.base")
@pytest.mark.parametrize("grid", [(4,), (2, 2)])
@pytest.mark.parametrize("least", [1, 2, 4, 5])
def test_slices_that_begin_and_end_by_block(grid, least):
    """Some tiles, or none, reach beyond their slice."""
    @ct.kernel
    def k(x, out):
        i = ct.bid(0) * ct.num_blocks(1) + ct.bid(1)
        y = x.slice(0, 3 * i, 3 * i + i + least)
        ct.store(out, i, ct.load(y, 0, 4, padding_mode="NEG_INF"))

    x, inf = counting(20), float("inf")
    got = run(k, x, np.zeros(16, np.float32), grid=grid).reshape(4, 4)
    assert got.tolist() == [[3.0 * i + j if j < i + least else -inf for j in range(4)] for i in range(4)]


@clause("SLICE-1.base")
@pytest.mark.parametrize("start", [
    lambda n, m: ct.maximum(16 * n, m), lambda n, m: ct.maximum(m, 16 * n), lambda n, m: ct.minimum(48 * m, n),
    lambda n, m: ct.minimum(n, 48 * m), lambda n, m: 16 * n + m, lambda n, m: m + 16 * n, lambda n, m: 16 * (n + 1) - m,
    lambda n, m: m - 16 * n + 32, lambda n, m: 16 * n | m, lambda n, m: m | 16 * n, lambda n, m: m * 2,
    lambda n, m: 2 * m, lambda n, m: 0 - ct.negative(m), lambda n, m: ct.astype(ct.astype(m, ct.float32), ct.int32),
    lambda n, m: ct.astype(16 * n, ct.int64) + m, lambda n, m: (16 * n & 31) + (m & 31), lambda n, m: (m & 3) * 3,
], ids=named)
def test_slices_that_begin_beside_multiples(start):
    """If one number is a multiple of 16, a result computed from it and another number may not be."""
    @ct.kernel
    def k(x, n, m, out):
        ct.store(out, 0, ct.load(x.slice(0, start(n, m), 64), 0, 1))

    def begin(n, m):
        seen = np.zeros(1, np.int32)

        @ct.kernel
        def k(n, m, seen):
            ct.store(seen, 0, ct.astype(start(n, m), ct.int32))

        launch(k, n, m, seen)
        return seen[0]

    x = np.arange(64, dtype=np.int8)
    for n, m in ((1, 3), (0, 5), (2, 15)):
        assert run(k, x, n, m, np.zeros(1, np.int8)).tolist() == [begin(n, m)]


@clause("SLICE-1.base")
@pytest.mark.parametrize("first, step", [(3, 16), (16, 3), (0, 5), (16, 16)])
def test_slices_that_begin_where_a_loop_has_come(first, step):
    @ct.kernel
    def k(x, first, step, out, near, far):
        for i in range(first, 64, 16):
            ct.store(near, i, ct.load(x.slice(0, i, 64), 0, 1))
        for i in range(16, 64, step):
            ct.store(far, i, ct.load(x.slice(0, i, 64), 0, 1))
        for i in range(first, 64, step):
            ct.store(out, i, ct.load(x.slice(0, i, 64), 0, 1))

    x = np.arange(64, dtype=np.int8)
    got = np.zeros((3, 64), np.int8)
    launch(k, x, first, step, *got)
    for row, (a, b) in zip(got, ((first, step), (first, 16), (16, step)), strict=True):
        assert np.flatnonzero(row).tolist() == [i for i in range(a, 64, b) if i] and set(row) <= {*x[a::b], 0}
        assert (row[a::b] == x[a::b]).all()
