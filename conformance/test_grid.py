"""bid, num_blocks, num_tiles, assume_divisible_by, grid dependency control."""

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, refuses, run
from conformance.harness.dtype_names import DTYPES
from conformance.harness.index_maps import blocks
from conformance.harness.type_probes import constant

X0, X1, X2 = (np.zeros((4,) * r, np.int32) for r in (0, 1, 2))
INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


@clause("GRID-1.value.0", "GRID-1.value.1", "GRID-1.value.2", "GRID-2.value.0", "GRID-2.value.1", "GRID-2.value.2",
        "GRID-2.one")
@pytest.mark.parametrize("grid", [(), (3,), (2, 5), (4, 3, 2), (1, 1, 7), (1, 6), (50, 1, 3)], ids=str)
def test_coordinates_and_extents(grid):
    @ct.kernel
    def k(out):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        for n in ct.static_iter((0, 1, 2)):
            ct.store(out, (a, b, c, n), ct.bid(n))
            ct.store(out, (a, b, c, n + 3), ct.num_blocks(n))

    full = (*grid, 1, 1, 1)[:3]
    out = run(k, np.full((*full, 6), -1, np.int32), grid=grid)
    for b in blocks(grid):
        assert out[b].tolist() == [*b, *full]


@clause("GRID-1.value.0", "GRID-1.value.1", "GRID-1.value.2")
def test_coordinates_under_a_condition():
    @ct.kernel
    def k(out):
        if (ct.bid(0) + ct.bid(1) * ct.bid(2)) % 2 == 1:
            a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
            ct.store(out, (a, b, c), a * 100 + b * 10 + c + ct.num_blocks(1) * 1000)

    out = run(k, np.full((4, 3, 2), -1, np.int32), grid=(4, 3, 2))
    for a, b, c in blocks((4, 3, 2)):
        assert out[a, b, c] == (a * 100 + b * 10 + c + 3000 if (a + b * c) % 2 else -1)


@clause("GRID-1.dtype", "GRID-2.dtype", "NT-1.dtype")
def test_dtypes():
    @ct.kernel
    def k(x):
        a, b, c = ct.bid(0), ct.num_blocks(2), ct.num_tiles(x, 0, 2)
        ct.static_assert(a.dtype == b.dtype == c.dtype == ct.int32)
        ct.static_assert(a.shape == b.shape == c.shape == ())

    accepts(k, X1)


@pytest.mark.parametrize("d", INTEGERS)
@clause("GRID-1.axis", "GRID-2.axis")
def test_axes_of_every_integer_dtype(d):
    dtype = DTYPES[d]

    @ct.kernel
    def k(out):
        ct.store(out, (ct.bid(axis=0), ct.bid(dtype(1))), ct.bid(axis=dtype(1)) + 10 * ct.num_blocks(dtype(1))
                 + 100 * ct.num_blocks(axis=0))

    out = run(k, np.zeros((2, 3), np.int32), grid=(2, 3))
    assert out.tolist() == [[230, 231, 232]] * 2


@pytest.mark.parametrize("op", [ct.bid, ct.num_blocks], ids=["bid", "num_blocks"])
@pytest.mark.parametrize("axis, id", [(3, "range"), (100, "range"), (-1, "negative"), (-3, "negative"), (True, "bool"),
                                      (False, "bool"), (0.0, "float"), (1.0, "float"), (None, "constant"),
                                      ("0", "constant"), ((0,), "constant"), ("run time", "constant")])
@clause("GRID-1.range", "GRID-1.negative", "GRID-1.bool", "GRID-1.float", "GRID-1.constant",
        "GRID-2.range", "GRID-2.negative", "GRID-2.bool", "GRID-2.float", "GRID-2.constant")
def test_what_is_no_axis(op, axis, id):
    @ct.kernel
    def k(n):
        if axis == "run time":
            op(n)
        else:
            op(axis)

    refuses("TileTypeError", k, 0)


CASES = [((8,), (4,)), ((9,), (4,)), ((1,), (16,)), ((0,), (2,)), ((10, 7, 33), (4, 2, 8)), ((10, 7, 33), (1, 8, 1)),
         ((16, 8, 0), (4, 8, 2)), ((5, 4, 1), (2, 4, 1))]


@clause("NT-1.value", "NT-1.negative")
@pytest.mark.parametrize("size, shape", CASES)
def test_num_tiles(size, shape):
    rank = len(size)

    @ct.kernel
    def k(x, out):
        for n in ct.static_iter(range(rank)):
            ct.store(out, n, ct.num_tiles(x, n, shape))
            ct.store(out, n + rank, ct.num_tiles(x, n - rank, shape))
            ct.store(out, n + 2 * rank, ct.num_tiles(x, axis=n, shape=shape, order="C"))

    want = [(n + t - 1) // t for n, t in zip(size, shape)]
    assert run(k, np.zeros(size, np.int8), np.zeros(3 * rank, np.int32)).tolist() == want * 3


@clause("NT-1.F", "NT-1.order")
@pytest.mark.parametrize("order", ["F", (2, 1, 0), (1, 2, 0), (2, 0, 1), (0, 2, 1), (-1, 0, -2), "C"])
def test_num_tiles_in_each_order(order):
    size, shape = (10, 7, 33), (4, 2, 8)

    @ct.kernel
    def k(x, out):
        for n in ct.static_iter((0, 1, 2)):
            ct.store(out, n, ct.num_tiles(x, n, shape, order))
            ct.store(out, n + 3, ct.num_tiles(x, n - 3, shape, order=order))

    axes = {"F": (2, 1, 0), "C": (0, 1, 2)}.get(order, order)
    want = [-(-size[a] // t) for a, t in zip(axes, shape)]
    assert run(k, np.zeros(size, np.int8), np.zeros(6, np.int32)).tolist() == want * 2


@clause("NT-1.value", "NT-1.order")
def test_num_tiles_beside_tiles_of_other_shapes_and_orders():
    """Each count is that of its own shape and order, whatever tiles the array has."""
    pairs = (((4, 2), "C"), ((2, 4), "C"), ((4, 2), "F"), ((2, 4), "F"))

    @ct.kernel
    def k(x, out):
        for i, (shape, order) in ct.static_iter(enumerate(pairs)):
            for n in ct.static_iter((0, 1)):
                ct.store(out, 4 * i + n, ct.num_tiles(x, n, shape, order))
            t = ct.load(x, (0, 0), shape, order=order)
            for n in ct.static_iter((0, 1)):
                ct.store(out, 4 * i + 2 + n, ct.num_tiles(x, n, shape, order) + ct.sum(t) * 0)

    want = [[-(-s // t) for s, t in zip((9, 21) if order == "C" else (21, 9), shape)] for shape, order in pairs]
    assert run(k, np.zeros((9, 21), np.int32), np.zeros(16, np.int32)).tolist() == [n for w in want for n in w * 2]


@clause("NT-1.value")
@pytest.mark.parametrize("size", [0, 1, 7])
def test_num_tiles_of_more_elements_than_an_array_has(size):
    @ct.kernel
    def k(x, out):
        for i, n in ct.static_iter(enumerate((30, 31, 32, 40, 62))):
            ct.store(out, i, ct.num_tiles(x, 0, (1 << n,)))

    assert run(k, np.zeros(size, np.int8), np.zeros(5, np.int32)).tolist() == [min(size, 1)] * 5


@clause("NT-1.int", "NT-1.empty")
def test_num_tiles_with_short_shapes():
    @ct.kernel
    def k(x, y, out):
        ct.store(out, 0, ct.num_tiles(x, 0, 4))
        ct.store(out, 1, ct.num_tiles(x, 0, ()))
        ct.store(out, 2, ct.num_tiles(y, 1, ()))

    out = run(k, np.zeros(9, np.int32), np.zeros((3, 5), np.int32), np.zeros(3, np.int32))
    assert out.tolist() == [3, 9, 5]


@clause("NT-1.value")
def test_num_tiles_of_slices_that_differ_by_block():
    @ct.kernel
    def k(x, out):
        b = ct.bid(0)
        ct.store(out, b, ct.num_tiles(x.slice(0, b, 2 * b + 1), 0, 2))

    assert run(k, np.zeros(20, np.int32), np.zeros(6, np.int32), grid=(6,)).tolist() == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("x, call", [
    pytest.param(X2, lambda x: ct.num_tiles(x, 2, (2, 2)), marks=clause("NT-1.range")),
    pytest.param(X2, lambda x: ct.num_tiles(x, -3, (2, 2)), marks=clause("NT-1.range")),
    pytest.param(X2, lambda x: ct.num_tiles(x, ct.bid(0), (2, 2)), marks=clause("NT-1.constant")),
    pytest.param(X2, lambda x: ct.num_tiles(x, True, (2, 2)), marks=clause("NT-1.constant")),
    pytest.param(X2, lambda x: ct.num_tiles(x, 0.0, (2, 2)), marks=clause("NT-1.constant")),
    pytest.param(X2, lambda x: ct.num_tiles(x, 0, 2), marks=clause("NT-1.int.rank")),
    pytest.param(X2, lambda x: ct.num_tiles(x, 0, (2, 3)), marks=clause("NT-1.pow2")),
    pytest.param(X1, lambda x: ct.num_tiles(x, 0, 0), marks=clause("NT-1.pow2")),
    pytest.param(X1, lambda x: ct.num_tiles(x, 0, -4), marks=clause("NT-1.pow2")),
    pytest.param(X2, lambda x: ct.num_tiles(x, 0, (2,)), marks=clause("NT-1.rank")),
    pytest.param(X1, lambda x: ct.num_tiles(x, 0, (2, 2)), marks=clause("NT-1.rank")),
    pytest.param(X2, lambda x: ct.num_tiles(x, 0, (2, 2), (0, 0)), marks=clause("NT-1.order.bad")),
    pytest.param(X2, lambda x: ct.num_tiles(x, 0, (2, 2), (0,)), marks=clause("NT-1.order.bad")),
    pytest.param(X2, lambda x: ct.num_tiles(x, 0, (2, 2), "K"), marks=clause("NT-1.order.bad")),
    pytest.param(X2, lambda x: ct.num_tiles(x, 0, (2, 2), 0), marks=clause("NT-1.order.bad")),
    pytest.param(X0, lambda x: ct.num_tiles(x, 0, ()), marks=clause("NT-1.rank0")),
    pytest.param(X1, lambda x: ct.num_tiles(array=x, axis=0, shape=2), marks=clause("NT-1.array")),
    pytest.param(X1, lambda x: ct.num_tiles(ct.zeros((4,), ct.int32), 0, 2), marks=clause("NT-1.array")),
])
def test_what_num_tiles_refuses(x, call):
    @ct.kernel
    def k(x):
        call(x)

    refuses("TileTypeError", k, x)


@clause("NT-1.array")
def test_num_tiles_by_name():
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.num_tiles(x, shape=2, order=(0,), axis=0))

    assert run(k, np.zeros(5, np.int32), np.zeros(1, np.int32))[0] == 3


@clause("ASSUME-1.value", "ASSUME-1.names")
@pytest.mark.parametrize("d", INTEGERS)
def test_assume_divisible_by(d):
    dtype = DTYPES[d]

    @ct.kernel
    def k(out):
        i = (ct.bid(0) * 8).astype(dtype)
        t = ct.assume_divisible_by(i, 8)
        ct.static_assert(t.dtype == dtype and t.shape == ())
        u = ct.assume_divisible_by(divisor=dtype(4), x=i)
        ct.scatter(out, ct.bid(0), (t.astype(ct.int32) + u.astype(ct.int32)))

    assert run(k, np.zeros(4, np.int32), grid=(4,)).tolist() == [0, 16, 32, 48]


@clause("ASSUME-1.one", "ASSUME-1.value")
def test_assumptions_about_constants():
    assert constant(lambda: ct.assume_divisible_by(5, 1)) == (5, ct.int32)
    assert constant(lambda: ct.assume_divisible_by(12, 4)) == (12, ct.int32)
    assert constant(lambda: ct.assume_divisible_by(-12, 4)) == (-12, ct.int32)
    assert constant(lambda: ct.assume_divisible_by(ct.int8(0), 7)) == (0, ct.int8)

    @ct.kernel
    def k(out):
        ct.store(out, ct.bid(0), ct.assume_divisible_by(ct.bid(0), 1))

    assert run(k, np.zeros(3, np.int32), grid=(3,)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("call", [
    pytest.param(lambda x, n: ct.assume_divisible_by(True, 1), marks=clause("ASSUME-1.bool")),
    pytest.param(lambda x, n: ct.assume_divisible_by(n > 0, 1), marks=clause("ASSUME-1.bool")),
    pytest.param(lambda x, n: ct.assume_divisible_by(4.0, 2), marks=clause("ASSUME-1.float")),
    pytest.param(lambda x, n: ct.assume_divisible_by(n.astype(ct.float32), 2), marks=clause("ASSUME-1.float")),
    pytest.param(lambda x, n: ct.assume_divisible_by(ct.zeros((1,), ct.int32), 2), marks=clause("ASSUME-1.rank")),
    pytest.param(lambda x, n: ct.assume_divisible_by(x, 2), marks=clause("ASSUME-1.rank")),
    pytest.param(lambda x, n: ct.assume_divisible_by(n, 0), marks=clause("ASSUME-1.positive")),
    pytest.param(lambda x, n: ct.assume_divisible_by(n, -2), marks=clause("ASSUME-1.positive")),
    pytest.param(lambda x, n: ct.assume_divisible_by(n, n), marks=clause("ASSUME-1.constant")),
    pytest.param(lambda x, n: ct.assume_divisible_by(n, 2.0), marks=clause("ASSUME-1.constant")),
    pytest.param(lambda x, n: ct.assume_divisible_by(n, True), marks=clause("ASSUME-1.constant")),
    pytest.param(lambda x, n: ct.assume_divisible_by(5, 2), marks=clause("ASSUME-1.const")),
    pytest.param(lambda x, n: ct.assume_divisible_by(ct.int64(-3), 2), marks=clause("ASSUME-1.const")),
])
def test_assumptions_that_are_refused(call):
    @ct.kernel
    def k(x, n):
        call(x, n)

    refuses("TileTypeError", k, X1, 4)


@clause("GDC-1.none", "GDC-1.cpu", "GDC-2.none", "GDC-2.cpu")
def test_grid_dependency_control():
    @ct.kernel
    def k(x, out):
        a = ct.grid_dependency_control_wait()
        t = ct.load(x, ct.bid(0), 2)
        b = ct.grid_dependency_control_launch_dependents()
        ct.static_assert(a is None and b is None)
        ct.store(out, ct.bid(0), t + 1)

    x = np.arange(6, dtype=np.int32)
    assert run(k, x, np.zeros(6, np.int32), grid=(3,)).tolist() == [1, 2, 3, 4, 5, 6]


@clause("GDC-1.none", "GDC-2.none")
@pytest.mark.parametrize("call", [lambda: ct.grid_dependency_control_wait(0),
                                  lambda: ct.grid_dependency_control_launch_dependents(0)])
def test_grid_dependency_control_takes_nothing(call):
    @ct.kernel
    def k():
        call()

    refuses("TileTypeError", k)
