"""Joining, taking out and replacing parts: cat, extract, insert [SHAPE-6 … SHAPE-8]."""

import itertools

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run
from conformance.harness.code_kernels import dtype
from conformance.harness.number_formats import FLOATS, INTEGERS
from conformance.harness.operand_types import refused, typed

ALL = (*INTEGERS, "bool_", *FLOATS)


def moved(fn, shape, result):
    """The int32 tile that `fn` makes from 0, 1, 2, … of shape `shape`; it has shape `result`."""
    n = int(np.prod(shape))

    @ct.kernel
    def k(a, out):
        y = fn(ct.reshape(ct.load(a, 0, n), shape))
        ct.static_assert(y.shape == result)
        ct.store(out, 0, ct.reshape(y, (-1,)))

    out = run(k, np.arange(n, dtype=np.int32), np.full(int(np.prod(result)), -1, np.int32))
    return out.reshape(result)


def at(shape, index):
    """Row-major position of an index."""
    position = 0
    for n, i in zip(shape, index, strict=True):
        position = position * n + i
    return position


def all_indices(shape):
    return itertools.product(*map(range, shape))


# ------------------------------------------------------------------ cat


@clause("SHAPE-6.two", "SHAPE-6.axis")
@pytest.mark.parametrize("axis, result", [(0, (4, 4)), (1, (2, 8)), (-1, (2, 8)), (-2, (4, 4))])
def test_cat(axis, result):
    got = moved(lambda x: ct.cat((x, x + 100), axis), (2, 4), result)
    for index in all_indices(result):
        axis %= 2
        second, inside = divmod(index[axis], (2, 4)[axis])
        old = list(index)
        old[axis] = inside
        assert got[index] == at((2, 4), old) + 100 * second


@clause("SHAPE-6.one")
def test_cat_of_one():
    assert (moved(lambda x: ct.cat((x,), 1), (2, 4), (2, 4)).ravel() == np.arange(8)).all()


@pytest.mark.parametrize(
    "fn, operands",
    [
        *(
            pytest.param(f, o, marks=clause("SHAPE-6.count"))
            for f, o in [
                (lambda: ct.cat((), 0), ()),
                (lambda x: ct.cat((x, x, x), 0), ("int32",)),
                (lambda x: ct.cat((x, x, x, x), 0), ("int32",)),
                (lambda x: ct.cat(x, 0), ("int32",)),
                (lambda x: ct.cat((x, None), 0), ("int32",)),
                (lambda x: ct.cat((x, x)), ("int32",)),
            ]
        ),
        *(
            pytest.param(lambda x, y: ct.cat((x, y), 0), o, marks=clause("SHAPE-6.dtype"))
            for o in [("int32", "int64"), ("int32", "float32"), ("float16", "float32"), ("bool_", "int8")]
        ),
        *(
            pytest.param(lambda x, y: ct.cat((x, y), 0), o, marks=clause("SHAPE-6.shape"))
            for o in [("int32 (4,)", "int32 (8,)"), ("int32 (4, 2)", "int32 (4, 1)"), ("int32 (2, 4)", "int32 (4, 4)")]
        ),
        pytest.param(lambda x, y: ct.cat((x, y), 0), ("int32 (4,)", "int32 (4, 1)"), marks=clause("SHAPE-6.rank")),
        *(
            pytest.param(f, ("int32 ()",), marks=clause("SHAPE-6.scalar"))
            for f in [lambda x: ct.cat((x, x), 0), lambda x: ct.cat((x,), 0), lambda x: ct.cat((1, 2), 0)]
        ),
        *(
            pytest.param(f, ("int32 (2, 4)",), marks=clause("SHAPE-6.axis"))
            for f in [
                lambda x: ct.cat((x, x), 2),
                lambda x: ct.cat((x, x), -3),
                lambda x: ct.cat((x, x), None),
                lambda x: ct.cat((x, x), True),
                lambda x: ct.cat((x,), 2),
            ]
        ),
    ],
)
def test_cat_refuses(fn, operands):
    refused(fn, *operands)


# ------------------------------------------------------------------ extract, insert


PARTS = [
    ((4, 8), (0, 0), (2, 4)),
    ((4, 8), (1, 1), (2, 4)),
    ((4, 8), (1, 0), (2, 4)),
    ((4, 8), (3, 1), (1, 4)),
    ((4, 8), (0, 0), (4, 8)),
    ((4, 8), (0, 7), (4, 1)),
    ((8,), (3,), (2,)),
    ((2, 4, 8), (1, 1, 3), (1, 2, 2)),
]


def inside(index, part, start):
    return all(s * p <= i < (s + 1) * p for i, p, s in zip(index, part, start, strict=True))


@clause("SHAPE-7.grid", "SHAPE-7.method", "SHAPE-7.index")
@pytest.mark.parametrize("shape, index, part", PARTS)
def test_extract(shape, index, part):
    index64 = tuple(map(int, index))
    forms = (
        lambda x: ct.extract(x, index, part),
        lambda x: x.extract(index, part),
        lambda x: x.extract(index=index64, shape=part),
    )
    for fn in forms:
        got = moved(fn, shape, part)
        for e in all_indices(part):
            assert got[e] == at(shape, [i * p + k for i, p, k in zip(index, part, e, strict=True)])


@clause("SHAPE-7.scalar")
@pytest.mark.parametrize("index", [(0, 0), (3, 7), (2, 5)])
def test_extract_of_an_element(index):
    assert moved(lambda x: ct.extract(x, index, ()), (4, 8), ()) == at((4, 8), index)


@clause("SHAPE-7.single")
def test_a_single_index_for_rank_one():
    assert list(moved(lambda x: ct.extract(x, 2, 2), (8,), (2,))) == [4, 5]
    assert moved(lambda x: ct.extract(x, 5, ()), (8,), ()) == 5
    refused(lambda x: ct.extract(x, 0, (1, 1)), "int32 (2, 4)")


@clause("SHAPE-7.index", "SHAPE-8.index")
@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
def test_runtime_indices(name):
    d = dtype(name)

    @ct.kernel
    def k(a, at_, out, changed):
        x = ct.load(a, (0, 0), (4, 8))
        i, j = ct.load(at_, (ct.bid(0), 0), ()).astype(d), ct.load(at_, (ct.bid(0), 1), ()).astype(d)
        ct.store(out, (ct.bid(0), 0, 0), ct.reshape(ct.extract(x, (i, j), (2, 4)), (1, 2, 4)))
        y = ct.insert(x, (i, j), ct.full((2, 4), -1, ct.int32))
        ct.store(changed, (ct.bid(0), 0, 0), ct.reshape(y, (1, 4, 8)))

    a = np.arange(32, dtype=np.int32).reshape(4, 8)
    where = np.array([(1, 1), (0, 1), (1, 0), (0, 0)], np.int32)
    out, changed = np.zeros((4, 2, 4), np.int32), np.zeros((4, 4, 8), np.int32)
    run(k, a, where, out, changed, grid=(4,))
    for b, (i, j) in enumerate(where):
        for r, c in all_indices((2, 4)):
            assert out[b, r, c] == 8 * (2 * i + r) + 4 * j + c
        for r, c in all_indices((4, 8)):
            assert changed[b, r, c] == (-1 if inside((r, c), (2, 4), (i, j)) else 8 * r + c)


@clause("SHAPE-7.undefined", "SHAPE-8.undefined")
@pytest.mark.parametrize("bad", [-1, 2, 1 << 30, -(1 << 31)])
def test_runtime_indices_out_of_range(bad):
    @ct.kernel
    def k(a, at_, out):
        x, i = ct.load(a, 0, 8), ct.load(at_, 0, ())
        ct.store(out, 0, ct.cat((ct.extract(x, i, 4), ct.extract(ct.insert(x, i, ct.zeros(4, ct.int32)), 0, 4)), 0))
        ct.store(out, 1, x)

    out = run(k, np.arange(8, dtype=np.int32), np.array([bad], np.int32), np.zeros(16, np.int32))
    assert list(out[8:]) == list(range(8))


@pytest.mark.parametrize(
    "index, shape",
    [
        *(
            pytest.param(i, s, marks=clause("SHAPE-7.divide"))
            for i, s in [((0, 0), (4, 16)), ((0, 0), (8, 8)), ((0, 0), (2, 3)), ((0, 0), (0, 4)), ((0, 0), (-2, 4))]
        ),
        *(
            pytest.param(i, s, marks=clause("SHAPE-7.rank"))
            for i, s in [((0, 0), (4,)), ((0, 0), 4), ((0, 0), (1, 2, 4)), ((0,), (4,))]
        ),
        *(
            pytest.param(i, s, marks=clause("SHAPE-7.length"))
            for i, s in [((0,), (2, 4)), ((0, 0, 0), (2, 4)), ((), (2, 4)), (0, (2, 4))]
        ),
        *(
            pytest.param(i, s, marks=clause("SHAPE-7.kind"))
            for i, s in [((0.0, 0), (2, 4)), ((True, 0), (2, 4)), ((None, 0), (2, 4)), (None, (2, 4)), ("00", (2, 4))]
        ),
        *(
            pytest.param(i, s, marks=clause("SHAPE-7.range"))
            for i, s in [
                ((2, 0), (2, 4)),
                ((0, 2), (2, 4)),
                ((-1, 0), (2, 4)),
                ((4, 0), ()),
                ((0, 8), ()),
                ((0, -1), ()),
            ]
        ),
    ],
)
def test_extract_refuses(index, shape):
    refused(lambda x: ct.extract(x, index, shape), "int32 (4, 8)")
    refused(lambda x: x.extract(index, shape), "int32 (4, 8)")


@clause("SHAPE-7.kind")
@pytest.mark.parametrize("bad", ["uint32 ()", "bool_ ()", "float32 ()", "int32 (1,)", "int32 (2,)", "uint8 ()"])
def test_runtime_indices_of_other_kinds(bad):
    refused(lambda x, i: ct.extract(x, (i, 0), (2, 4)), "int32 (4, 8)", bad)
    refused(lambda x, i: ct.insert(x, (0, i), ct.full((2, 4), 1, ct.int32)), "int32 (4, 8)", bad)


@clause("SHAPE-8.grid", "SHAPE-8.new", "SHAPE-8.method")
@pytest.mark.parametrize("shape, index, part", PARTS)
def test_insert(shape, index, part):
    n = int(np.prod(part))
    forms = (
        lambda x, v: ct.insert(x, index, v),
        lambda x, v: x.insert(index, v),
        lambda x, v: x.insert(index=index, value=v),
    )
    for put in forms:

        def fn(x, put=put):
            v = ct.reshape(ct.arange(n, dtype=ct.int32) + 1000, part)
            y = put(x, v)
            return ct.reshape(ct.cat((ct.reshape(x, (-1,)), ct.reshape(y, (-1,))), 0), (2, *shape))

        old, new = moved(fn, shape, (2, *shape))
        assert (old.ravel() == np.arange(old.size)).all()
        for e in all_indices(shape):
            within = [i - s * p for i, s, p in zip(e, index, part, strict=True)]
            assert new[e] == (1000 + at(part, within) if inside(e, part, index) else at(shape, e))


@clause("SHAPE-8.grid", "SHAPE-8.index")
def test_tiles_that_differ_by_block_get_a_part():
    @ct.kernel
    def k(x, out):
        b = ct.bid(0)
        t, part = ct.load(x, (b, 0), (2, 8)), ct.full((2, 2), -1, ct.int32)
        ct.store(out, (b, 0), ct.insert(t, (0, 1), part))
        ct.store(out, (b, 1), ct.insert(t, (0, b), part))

    x = np.arange(48, dtype=np.int32).reshape(6, 8)
    got, want = run(k, x, np.zeros((6, 16), np.int32), grid=(3,)), np.tile(x, 2)
    want[:, 2:4] = -1
    for b in range(3):
        want[2 * b:2 * b + 2, 8 + 2 * b:10 + 2 * b] = -1
    assert got.tolist() == want.tolist()


@clause("SHAPE-8.scalar")
def test_insert_of_an_element():
    got = moved(lambda x: ct.insert(x, (2, 5), ct.int32(-9)), (4, 8), (4, 8))
    assert [tuple(i) for i in np.argwhere(got != np.arange(32).reshape(4, 8))] == [(2, 5)] and got[2, 5] == -9
    assert list(moved(lambda x: ct.insert(x, 1, -7), (4,), (4,))) == [0, -7, 2, 3]


@clause("SHAPE-8.dtype")
@pytest.mark.parametrize("name", [n for n in ALL if n not in ("int32", "float32")])
def test_insert_needs_the_dtype(name):
    refused(lambda x: ct.insert(x, 0, 1), name)
    refused(lambda x: ct.insert(x, 0, 1.0), name)
    refused(lambda x, v: ct.insert(x, 0, v), name, "int32 ()")
    typed(lambda x, v: ct.insert(x, 0, v), name, f"{name} ()", dtype=name)
    typed(lambda x, v: ct.insert(x, 0, v), "float32", "float32 (2,)", dtype="float32")


@pytest.mark.parametrize(
    "index, value",
    [
        *(
            pytest.param(i, v, marks=clause("SHAPE-8.rank"))
            for i, v in [((0, 0), (4,)), ((0, 0), (1, 2, 4)), ((0,), (4,))]
        ),
        *(pytest.param(i, v, marks=clause("SHAPE-8.divide")) for i, v in [((0, 0), (8, 8)), ((0, 0), (4, 16))]),
        *(
            pytest.param(i, v, marks=clause("SHAPE-8.range"))
            for i, v in [((2, 0), (2, 4)), ((0, 2), (2, 4)), ((-1, 0), (2, 4)), ((4, 0), ()), ((0, 8), ())]
        ),
        *(
            pytest.param(i, v, marks=clause("SHAPE-8.index"))
            for i, v in [((0,), (2, 4)), ((0, 0, 0), (2, 4)), ((0.0, 0), (2, 4)), ((True, 0), (2, 4)), (0, (2, 4))]
        ),
    ],
)
def test_insert_refuses(index, value):
    refused(lambda x, v: ct.insert(x, index, v), "int32 (4, 8)", f"int32 {value}")
