"""ct.scatter."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, refuses, run
from conformance.harness.dtype_names import DTYPES, NUMPY
from conformance.harness.guarded_arrays import guarded, layouts, numbers, same
from conformance.harness.index_maps import GRID, blocks, looks

X0, X1, X2 = (np.zeros((4,) * r, np.int32) for r in (0, 1, 2))
INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


def check(g, writes):
    """Assert that each element holds one of the values written to it, or its old value. `writes` has (position,
    value).
    """
    allowed = {at: [] for at in np.ndindex(g.array.shape)}
    for at, v in writes:
        if all(0 <= i < n for i, n in zip(at, g.array.shape)):
            allowed[tuple(int(i) for i in at)].append(v)
    g.check(g.array)
    for at, values in allowed.items():
        assert g.array[at] in (values or [-1]), f"at {at}: {g.array[at]}, not one of {values}"


@clause("GS-8.element", "GS-4.dropped", "GS-8.duplicates", "GS-3.sign")
@looks
@layouts
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
def test_lanes_of_blocks(look, layout, diverge):
    def body(x, a, b, c):
        i, j, m = look(a, b, c)
        u = ct.arange(4, dtype=ct.int32)
        value = ((a * 3 + b) * 2 + c) * 16 + u[:, None] * 4 + u[None, :]
        ct.scatter(x, (i + u[:, None] - 1, j * 2 - u[None, :], m), value)

    def whole(x):
        body(x, ct.bid(0), ct.bid(1), ct.bid(2))

    def some(x):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        if a != b:
            body(x, a, b, c)

    g = guarded(np.full((6, 5, 4), -1, np.int32), layout)
    launch(ct.kernel(some if diverge else whole), g.array, grid=GRID)
    writes = []
    for a, b, c in blocks():
        i, j, m = look(a, b, c)
        if not diverge or a != b:
            writes += [((i + u - 1, j * 2 - v, m), ((a * 3 + b) * 2 + c) * 16 + u * 4 + v) for u, v in np.ndindex(4, 4)]
    check(g, writes)


@clause("GS-4.dropped", "GS-5.broadcast", "GS-8.broadcast", "GS-8.element", "GS-5.none")
@pytest.mark.parametrize("layout", ["contiguous", "gaps"])
@pytest.mark.parametrize("mask", ["none", "true", "false", "runtime", "row", "column", "full"])
@pytest.mark.parametrize("value", ["literal", "runtime", "row", "column", "full"])
def test_masks_and_values(layout, mask, value):
    def mask_of(m, b):
        if mask == "none":
            return None
        if mask == "true":
            return True
        if mask == "false":
            return False
        if mask == "runtime":
            return b == 1
        if mask == "row":
            return ct.load(m, (0, 0), (1, 4)).reshape((4,))
        if mask == "column":
            return ct.load(m, (0, 0), (2, 1))
        return ct.load(m, (0, 0), (2, 4))

    def value_of(v, b):
        if value == "literal":
            return 70
        if value == "runtime":
            return b + 90
        if value == "row":
            return ct.load(v, (0, 0), (1, 4)).reshape((4,))
        if value == "column":
            return ct.load(v, (0, 0), (2, 1))
        return ct.load(v, (0, 0), (2, 4))

    @ct.kernel
    def k(i, m, v, x):
        b = ct.bid(0)
        ct.scatter(x, (b, ct.load(i, (0, 0), (2, 4))), value_of(v, b), mask=mask_of(m, b))

    i = np.array([[0, 4, 5, -1], [2, 1, -5, 3]], np.int32)
    m = np.array([[True, False, True, True], [False, True, True, False]])
    v = numbers((2, 4), start=100)
    g = guarded(np.full((3, 5), -1, np.int32), layout)
    launch(k, i, m, v, g.array, grid=(4,))
    writes = []
    for b, r, c in np.ndindex(4, 2, 4):
        if {"none": True, "true": True, "false": False, "runtime": b == 1, "row": m[0, c], "column": m[r, 0],
                "full": m[r, c]}[mask]:
            writes.append(((b, int(i[r, c])), {"literal": 70, "runtime": b + 90, "row": v[0, c], "column": v[r, 0],
                                               "full": v[r, c]}[value]))
    check(g, writes)


@clause("GS-1.kind", "GS-3.wide", "GS-3.sign")
@pytest.mark.parametrize("d", INTEGERS)
@pytest.mark.parametrize("n", [3, 127, 128, 200, 256, 300])
def test_indices_of_every_dtype(d, n):
    info = np.iinfo(NUMPY[d])
    wanted = [0, 1, n - 1, n, n + 1, info.max, info.min, -1, -n, (1 << 32) + 1, -(1 << 32), 1 << 40, (1 << 62) + 1]
    fit = list(dict.fromkeys(v for v in wanted if info.min <= v <= info.max))
    i = np.zeros(16, NUMPY[d])
    i[:len(fit)] = fit
    used = np.arange(16) < len(fit)

    @ct.kernel
    def k(i, m, x, y):
        t, ok = ct.load(i, 0, 16), ct.load(m, 0, 16)
        ct.scatter(x, t, ct.arange(16, dtype=ct.int32), mask=ok)
        ct.scatter(y, (t, ct.bid(0)), ct.arange(16, dtype=ct.int32), mask=ok)

    x, y = guarded(np.full(n, -1, np.int32)), guarded(np.full((n, 2), -1, np.int32), "gaps")
    launch(k, i, used, x.array, y.array)
    check(x, [((v,), p) for p, v in enumerate(fit)])
    check(y, [((v, 0), p) for p, v in enumerate(fit)])


@clause("GS-8.duplicates")
def test_many_writes_to_one_element():
    @ct.kernel
    def k(x):
        ct.scatter(x, ct.arange(8, dtype=ct.int32) // 4, ct.arange(8, dtype=ct.int32) + 10 * ct.bid(0))

    g = guarded(np.full(3, -1, np.int32))
    launch(k, g.array, grid=(3,))
    check(g, [((u // 4,), u + 10 * b) for b, u in np.ndindex(3, 8)])


@clause("GS-8.element")
def test_the_same_value_or_place_for_all_blocks():
    @ct.kernel
    def k(x, y):
        u = ct.arange(4, dtype=ct.int32)
        ct.scatter(x, u * 2 + ct.bid(0), u + 50)
        ct.scatter(y, u, u + 60)

    x, y = guarded(np.full(9, -1, np.int32)), guarded(np.full(5, -1, np.int32))
    launch(k, x.array, y.array, grid=(2,))
    x.check(np.array([50, 50, 51, 51, 52, 52, 53, 53, -1], np.int32))
    y.check(np.array([60, 61, 62, 63, -1], np.int32))


@clause("GS-1.rank0", "GS-8.result")
def test_an_array_of_rank_0():
    @ct.kernel
    def k(x, y):
        r = ct.scatter(x, (), 6, mask=ct.bid(0) == 1)
        ct.static_assert(r is None)
        ct.scatter(y, (), 6, mask=ct.bid(0) == 9)

    x, y = guarded(np.array(5, np.int32)), guarded(np.array(5, np.int32))
    launch(k, x.array, y.array, grid=(3,))
    x.check(np.array(6, np.int32))
    y.check(np.array(5, np.int32))


@clause("GS-4.dropped")
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_an_array_without_elements(shape):
    index = (0,) * len(shape)

    @ct.kernel
    def k(x, out):
        ct.scatter(x, index, 1)
        ct.scatter(out, 0, 1)

    assert run(k, np.zeros(shape, np.int32), np.zeros(1, np.int32))[0] == 1


@clause("GS-8.cast")
def test_values_are_cast():
    @ct.kernel
    def k(x):
        ct.scatter(x, 0, 2049)
        ct.scatter(x, 1, ct.int32(2051))
        ct.scatter(x, 2, ct.bid(0) == 0)
        ct.scatter(x, 3, 1.5)

    same(run(k, np.zeros(4, np.float16)), np.array([2048, 2052, 1, 1.5], np.float16))


@pytest.mark.parametrize("x, call", [
    pytest.param(X1, lambda x: ct.scatter(x, True, 1), marks=clause("GS-1.bool")),
    pytest.param(X1, lambda x: ct.scatter(x, 0.0, 1), marks=clause("GS-1.float")),
    pytest.param(X1, lambda x: ct.scatter(x, (0, 0), 1), marks=clause("GS-1.count")),
    pytest.param(X2, lambda x: ct.scatter(x, 0, 1), marks=clause("GS-1.count")),
    pytest.param(X0, lambda x: ct.scatter(x, 0, 1), marks=clause("GS-1.rank0")),
    pytest.param(X2, lambda x: ct.scatter(x, (ct.zeros((2,), ct.int32), ct.zeros((4,), ct.int32)), 1),
                 marks=clause("GS-1.shapes")),
    pytest.param(X1, lambda x: ct.scatter(x, 0, 1, mask=1), marks=clause("GS-5.dtype")),
    pytest.param(X1, lambda x: ct.scatter(x, 0, 1, mask=ct.full((2,), True, ct.bool_)), marks=clause("GS-5.shape")),
    pytest.param(X1, lambda x: ct.scatter(x, 0, ct.zeros((1,), ct.int32)), marks=clause("GS-8.shape")),
    pytest.param(X1, lambda x: ct.scatter(x, ct.zeros((4,), ct.int32), ct.zeros((2,), ct.int32)),
                 marks=clause("GS-8.shape")),
    pytest.param(X1, lambda x: ct.scatter(x, ct.zeros((4,), ct.int32), ct.zeros((2, 4), ct.int32)),
                 marks=clause("GS-8.shape")),
    pytest.param(X1, lambda x: ct.scatter(x, 0, 1.5), marks=clause("GS-8.cast")),
    pytest.param(X1, lambda x: ct.scatter(x, 0, ct.int64(1)), marks=clause("GS-8.cast")),
    pytest.param(X1, lambda x: ct.scatter(x, 0, None), marks=clause("GS-8.cast")),
    pytest.param(X1, lambda x: ct.scatter(x, 0, x), marks=clause("GS-8.cast")),
    pytest.param(X1, lambda x: ct.scatter(x, 0, 1, padding_value=0), marks=clause("GS-8.element")),
    pytest.param(X1, lambda x: ct.scatter(x, 0, value=1), marks=clause("GS-8.element")),
    pytest.param(X1, lambda x: ct.scatter(ct.zeros((4,), ct.int32), 0, 1), marks=clause("GEN-1.kind")),
])
def test_what_is_refused(x, call):
    @ct.kernel
    def k(x):
        call(x)

    refuses("TileTypeError", k, x)


@clause("GS-8.cast")
def test_a_literal_out_of_range():
    @ct.kernel
    def k(x):
        ct.scatter(x, 0, -1)

    refuses("TileValueError", k, np.zeros(4, np.uint32))


@clause("GS-8.element")
@pytest.mark.parametrize("d", ["b1", "i8", "u64", "f16", "bf16", "f64"])
def test_dtypes(d):
    dtype = DTYPES[d]

    @ct.kernel
    def k(x):
        ct.scatter(x, 3 - ct.arange(4, dtype=ct.int32), ct.arange(4, dtype=ct.int32).astype(dtype))

    same(run(k, np.ones(5).astype(NUMPY[d])), np.array([3, 2, 1, 0, 1]).astype(NUMPY[d]))
