"""Operations that only move elements: reshape, broadcast_to, permute and the like [SHAPE]."""

import itertools

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run
from conformance.harness.number_formats import FLOATS, INTEGERS
from conformance.harness.operand_types import folds, refused, strict, typed, varies

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


# ------------------------------------------------------------------ reshape


@clause("SHAPE-1.order", "SHAPE-1.method")
@pytest.mark.parametrize(
    "old, new", [((4, 8), (8, 4)), ((32,), (2, 16)), ((2, 2, 8), (32,)), ((4, 8), (2, 2, 2, 4)), ((1, 4), (4, 1))]
)
def test_reshape(old, new):
    for fn in (lambda x: ct.reshape(x, new), lambda x: x.reshape(new)):
        assert (moved(fn, old, new).ravel() == np.arange(np.prod(old))).all()


@clause("SHAPE-1.minus")
@pytest.mark.parametrize(
    "given, new", [((-1,), (32,)), ((-1, 8), (4, 8)), ((2, -1), (2, 16)), ((2, -1, 4), (2, 4, 4)), ((32, -1), (32, 1))]
)
def test_reshape_computes_a_dimension(given, new):
    assert (moved(lambda x: ct.reshape(x, given), (4, 8), new).ravel() == np.arange(32)).all()


@pytest.mark.parametrize(
    "bad",
    [
        *(pytest.param(s, marks=clause("SHAPE-1.count")) for s in [(4,), (16,), (3,), (-1, 16), (-1, 3), (), (2, 2)]),
        *(pytest.param(s, marks=clause("SHAPE-1.zero")) for s in [(0,), (0, -1), (8, 0)]),
        *(pytest.param(s, marks=clause("SHAPE-1.two")) for s in [(-1, -1), (-1, 4, -1), (8, -1, -1)]),
        *(pytest.param(s, marks=clause("SHAPE-1.negative")) for s in [(-2,), (-8,), (-2, -4), (4, -2), (-2, 4)]),
        *(pytest.param(s, marks=clause("SHAPE-1.int")) for s in [8, -1, 8.0, "8", None, (8.0,), (True, 8)]),
    ],
)
def test_reshape_refuses(bad):
    refused(lambda x: ct.reshape(x, bad), "int32 (8,)")
    refused(lambda x: x.reshape(bad), "int32 (8,)")


@clause("SHAPE-1.method")
def test_the_method_takes_one_tuple():
    refused(lambda x: x.reshape(2, 4), "int32 (8,)")
    refused(lambda x, n: x.reshape((n, 4)), "int32 (8,)", "int32 ()")


@clause("SHAPE-1.same")
def test_reshape_to_the_same_shape():
    strict(lambda: ct.reshape(ct.int8(5), ()), "int8", 5)
    folds(lambda: ct.reshape(5, ()), 5, "int32")
    varies(lambda: ct.reshape(ct.reshape(5, (1,)), ()))
    assert (moved(lambda x: ct.reshape(x, (4, 2)), (4, 2), (4, 2)).ravel() == np.arange(8)).all()


# ------------------------------------------------------------------ broadcast_to, expand_dims, subscripts


@clause("SHAPE-2.value", "SHAPE-2.shape")
@pytest.mark.parametrize(
    "old, new",
    [
        ((4,), (2, 4)),
        ((4, 1), (4, 8)),
        ((1, 4), (2, 4)),
        ((), (2, 2)),
        ((1,), (8,)),
        ((4,), (4,)),
        ((2, 1, 4), (2, 2, 2, 4)),
        ((1, 1), (2, 4)),
    ],
)
def test_broadcast_to(old, new):
    got = moved(lambda x: ct.broadcast_to(x, new), old, new)
    for index in all_indices(new):
        tail = index[len(new) - len(old) :]
        assert got[index] == at(old, [0 if n == 1 else i for n, i in zip(old, tail, strict=True)])


@pytest.mark.parametrize(
    "old, bad",
    [
        *(pytest.param(o, b, marks=clause("SHAPE-2.rank")) for o, b in [((2, 4), (4,)), ((1, 4), (4,)), ((1,), ())]),
        *(
            pytest.param(o, b, marks=clause("SHAPE-2.rule"))
            for o, b in [
                ((4,), (8,)),
                ((4,), (1,)),
                ((2, 4), (4, 4)),
                ((4,), (4, 2)),
                ((4, 2), (4, 4)),
                ((2, 1), (1, 2)),
            ]
        ),
        *(
            pytest.param(o, b, marks=clause("SHAPE-2.shape"))
            for o, b in [
                ((1,), 4),
                ((1,), (3,)),
                ((1,), (0,)),
                ((1,), (-1,)),
                ((1,), (4.0,)),
                ((1,), None),
                ((1,), (6, 4)),
            ]
        ),
    ],
)
def test_broadcast_to_refuses(old, bad):
    refused(lambda x: ct.broadcast_to(x, bad), f"int32 {old}")


@clause("SHAPE-3.axis", "SHAPE-3.place")
@pytest.mark.parametrize(
    "shape, axis, result",
    [
        ((2, 4), 0, (1, 2, 4)),
        ((2, 4), 1, (2, 1, 4)),
        ((2, 4), 2, (2, 4, 1)),
        ((2, 4), -1, (2, 4, 1)),
        ((2, 4), -2, (2, 1, 4)),
        ((2, 4), -3, (1, 2, 4)),
        ((8,), 0, (1, 8)),
        ((8,), 1, (8, 1)),
        ((8,), -1, (8, 1)),
        ((8,), -2, (1, 8)),
        ((), 0, (1,)),
        ((), -1, (1,)),
    ],
)
def test_expand_dims(shape, axis, result):
    got = moved(lambda x: ct.expand_dims(x, axis), shape, result)
    assert (got.ravel() == np.arange(got.size)).all()


@pytest.mark.parametrize(
    "axis",
    [
        *(pytest.param(a, marks=clause("SHAPE-3.axis")) for a in (3, -4, 100)),
        *(pytest.param(a, marks=clause("SHAPE-3.const")) for a in (None, 1.0, True, (0,), "0")),
    ],
)
def test_expand_dims_refuses(axis):
    refused(lambda x: ct.expand_dims(x, axis), "int32 (2, 4)")


@clause("SHAPE-3.const")
def test_expand_dims_refuses_a_runtime_axis():
    refused(lambda x, a: ct.expand_dims(x, a), "int32 (2, 4)", "int32 ()")


KEYS = [
    (lambda x: x[None], (1, 2, 4)),
    (lambda x: x[None, :], (1, 2, 4)),
    (lambda x: x[:, None], (2, 1, 4)),
    (lambda x: x[:, :, None], (2, 4, 1)),
    (lambda x: x[..., None], (2, 4, 1)),
    (lambda x: x[None, ...], (1, 2, 4)),
    (lambda x: x[..., None, :], (2, 1, 4)),
    (lambda x: x[None, ..., None], (1, 2, 4, 1)),
    (lambda x: x[...,], (2, 4)),
    (lambda x: x[:, None, :], (2, 1, 4)),
    (lambda x: x[None, :, None, :, None], (1, 2, 1, 4, 1)),
    (lambda x: x[:, ..., None, :], (2, 1, 4)),
    (lambda x: x[:, None, ..., None], (2, 1, 4, 1)),
    (lambda x: x[:, :], (2, 4)),
    (lambda x: x[None, None], (1, 1, 2, 4)),
    (lambda x: x[..., :, None, :, None], (2, 1, 4, 1)),
]


@clause("SHAPE-10.insert", "SHAPE-10.dots", "SHAPE-10.rest")
@pytest.mark.parametrize("key, result", KEYS)
def test_subscripts(key, result):
    got = moved(key, (2, 4), result)
    assert (got.ravel() == np.arange(8)).all()


@clause("SHAPE-10.insert")
def test_subscript_of_a_scalar():
    typed(lambda x: x[None], "int8 ()", dtype="int8", shape=(1,))
    typed(lambda x: x[None, None], "int8 ()", dtype="int8", shape=(1, 1))


@pytest.mark.parametrize(
    "key",
    [
        *(
            pytest.param(k, marks=clause("SHAPE-10.other"))
            for k in (
                lambda x: x[0],
                lambda x: x[0, :],
                lambda x: x[:],
                lambda x: x[...],
                lambda x: x[0:1, None],
                lambda x: x[::2, None],
                lambda x: x[:1, None],
                lambda x: x[True],
                lambda x: x[1.0],
                lambda x: x[None, "a"],
                lambda x: x[x],
            )
        ),
        *(pytest.param(k, marks=clause("SHAPE-10.two")) for k in (lambda x: x[..., None, ...], lambda x: x[..., ...])),
        *(
            pytest.param(k, marks=clause("SHAPE-10.many"))
            for k in (lambda x: x[:, :, :], lambda x: x[None, :, :, :], lambda x: x[..., :, :, :])
        ),
    ],
)
def test_subscripts_refused(key):
    refused(key, "int32 (2, 4)")


# ------------------------------------------------------------------ permute, transpose


@clause("SHAPE-4.shape", "SHAPE-4.method", "SHAPE-4.axes")
@pytest.mark.parametrize("axes", [*itertools.permutations(range(3)), (-1, 0, 1), (-1, -2, -3), (0, -1, 1), (2, -3, -2)])
def test_permute(axes):
    shape = (2, 4, 8)
    result = tuple(shape[a] for a in axes)
    for fn in (lambda x: ct.permute(x, axes), lambda x: x.permute(axes)):
        got = moved(fn, shape, result)
        for index in all_indices(result):
            old = [0, 0, 0]
            for i, a in zip(index, axes, strict=True):
                old[a] = i
            assert got[index] == at(shape, old)


@clause("SHAPE-4.shape")
def test_permute_of_other_ranks():
    typed(lambda x: ct.permute(x, ()), "int8 ()", dtype="int8", shape=())
    typed(lambda x: ct.permute(x, (0,)), "int8 (4,)", dtype="int8", shape=(4,))
    assert moved(lambda x: ct.permute(x, (3, 0, 2, 1)), (1, 2, 4, 8), (8, 1, 4, 2))[5, 0, 3, 1] == at(
        (1, 2, 4, 8), (0, 1, 3, 5)
    )


@pytest.mark.parametrize(
    "bad",
    [
        *(
            pytest.param(a, marks=clause("SHAPE-4.axes"))
            for a in [(0, 2), (-3, 0), (0.0, 1), (True, 0), None, 1, "01", (None, 0)]
        ),
        *(pytest.param(a, marks=clause("SHAPE-4.repeat")) for a in [(0, 0), (1, 1), (0, -2), (-1, 1)]),
        *(pytest.param(a, marks=clause("SHAPE-4.length")) for a in [(0,), (0, 1, 2), ()]),
    ],
)
def test_permute_refuses(bad):
    refused(lambda x: ct.permute(x, bad), "int32 (2, 4)")
    refused(lambda x: x.permute(bad), "int32 (2, 4)")


@clause("SHAPE-5.default", "SHAPE-5.swap", "SHAPE-5.method")
@pytest.mark.parametrize(
    "shape, axes, swap",
    [
        ((2, 4), (), (0, 1)),
        ((2, 4, 8), (0, 1), (0, 1)),
        ((2, 4, 8), (-1, 0), (0, 2)),
        ((2, 4, 8), (1, -1), (1, 2)),
        ((2, 4), (0, 1), (0, 1)),
        ((2, 4, 8), (1, 1), (1, 1)),
        ((1, 2, 4, 8), (3, 1), (1, 3)),
    ],
)
def test_transpose(shape, axes, swap):
    i, j = swap
    result = list(shape)
    result[i], result[j] = result[j], result[i]
    if axes:
        a, b = axes
        forms = (
            lambda x: ct.transpose(x, a, b),
            lambda x: x.transpose(a, b),
            lambda x: ct.transpose(x, axis0=a, axis1=b),
        )
    else:
        forms = (lambda x: ct.transpose(x), lambda x: x.transpose(), lambda x: ct.transpose(x, None, None))
    for fn in forms:
        got = moved(fn, shape, tuple(result))
        for index in all_indices(result):
            old = list(index)
            old[i], old[j] = old[j], old[i]
            assert got[index] == at(shape, old)


@clause("SHAPE-5.rank", "SHAPE-5.one", "SHAPE-5.range", "SHAPE-5.default")
def test_transpose_refuses():
    for low in ("int32 ()", "int32 (4,)"):
        refused(lambda x: ct.transpose(x), low)
        refused(lambda x: ct.transpose(x, 0, 0), low)
    refused(lambda x: ct.transpose(x), "int32 (2, 2, 2)")
    refused(lambda x: ct.transpose(x, 0), "int32 (2, 4)")
    refused(lambda x: ct.transpose(x, axis1=1), "int32 (2, 4)")
    refused(lambda x: x.transpose(axis0=1), "int32 (2, 2, 2)")
    for a in (2, -3, 0.0, True, "0"):
        refused(lambda x: ct.transpose(x, a, 1), "int32 (2, 4)")
        refused(lambda x: ct.transpose(x, 0, a), "int32 (2, 4)")


# ------------------------------------------------------------------ item


@clause("SHAPE-9.one")
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)])
def test_item(shape):
    typed(lambda x: x.item(), f"float16 {shape}", dtype="float16", shape=())
    assert moved(lambda x: (x + 7).item(), shape, ()) == 7


@clause("SHAPE-9.count")
@pytest.mark.parametrize("shape", [(2,), (1, 4), (2, 2)])
def test_item_of_more(shape):
    refused(lambda x: x.item(), f"float16 {shape}")


# ------------------------------------------------------------------ every dtype


@clause("SHAPE-1.order", "SHAPE-4.shape", "SHAPE-6.two", "SHAPE-7.grid", "SHAPE-8.grid", "SHAPE-2.value")
@pytest.mark.parametrize("name", ALL)
def test_moves_work_for_every_dtype(name):
    def fn(x):
        y = ct.permute(ct.reshape(x, (2, 2)), (1, 0))
        y = ct.cat((y, ct.broadcast_to(ct.extract(y, (0, 0), (1, 2)), (2, 2))), 0)
        return ct.reshape(ct.insert(y, (1, 0), ct.extract(y, (0, 0), (2, 2))), (8,))

    typed(fn, name, dtype=name, shape=(8,))
