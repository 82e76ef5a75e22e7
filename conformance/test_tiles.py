"""Tiles and scalars: shapes, attributes, operators, indexing [TILE]."""

import operator

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, refuses, run
from conformance.harness.type_probes import look, refused, static


def numbers(n=8):
    return np.arange(1, n + 1, dtype=np.float32)


@clause("TILE-1.pow2")
def test_powers_of_two():
    for n in (1, 2, 4, 64, 1024):
        assert static(lambda n=n: ct.zeros((n, 1, 2), ct.int8).shape) == (n, 1, 2)


@clause("TILE-1.rank")
def test_ranks():
    for rank in range(8):
        shape = (2,) * rank
        assert static(lambda shape=shape: (ct.ones(shape, ct.float32) * 2.0).shape) == shape


@clause("TILE-7")
def test_huge_tiles():
    accepted = []

    @ct.kernel
    def k():
        x = ct.zeros((1 << 15, 1 << 15), ct.float32)
        s = x.shape
        ct.static_eval(accepted.append(s))

    accepts(k)
    assert accepted[-1] == (1 << 15, 1 << 15)


@pytest.mark.parametrize("shape", [pytest.param(s, marks=clause(f"TILE-8.{n}"), id=f"{n}{i}") for i,
                                   (n, s) in enumerate([
    ("three", (3,)), ("three", (2, 6)), ("three", 12), ("three", (1 << 20) + 1), ("zero", (0,)), ("zero", (2, 0)),
    ("zero", 0), ("negative", (-2,)), ("negative", (4, -1)), ("float", (2.0,)), ("float", 4.0), ("bool", (True,)),
    ("bool", True)])])
def test_shapes_that_are_refused(shape):
    refused("TileTypeError", lambda: ct.zeros(shape, ct.int8))
    refused("TileTypeError", lambda: ct.full(shape, 1, ct.int8))
    rank = len(shape) if isinstance(shape, tuple) else 1
    index = (0,) * rank

    @ct.kernel
    def load(x):
        ct.load(x, index, shape)

    @ct.kernel
    def view(x):
        x.tiled_view(shape)

    for k in (load, view):
        refuses("TileTypeError", k, np.zeros((2,) * rank, np.float32))


@clause("TILE-8.runtime")
def test_shapes_known_at_run_time():
    @ct.kernel
    def k(n):
        ct.zeros((n,), ct.int8)

    @ct.kernel
    def single(n):
        ct.zeros(n, ct.int8)

    refuses("TileTypeError", k, 4)
    refuses("TileTypeError", single, 4)


@clause("TILE-8.rank")
def test_shapes_of_another_rank():
    @ct.kernel
    def k(x, shape: ct.Constant):
        ct.load(x, (0, 0), shape)

    accepts(k, np.zeros((4, 4), np.float32), (2, 2))
    for shape in ((2,), (2, 2, 2), 2):
        refuses("TileTypeError", k, np.zeros((4, 4), np.float32), shape)


@clause("TILE-8.int")
def test_int_as_shape():
    assert static(lambda: ct.zeros(8, ct.int8).shape) == (8,)
    assert static(lambda: ct.full(1, 2.5, ct.float32).shape) == (1,)


# ------------------------------------------------------------------ scalars


def seen_by(f, *args):
    """dtype, shape and rank of the scalar f(kernel arguments)."""
    seen = []

    @ct.kernel
    def k(x):
        v = f(x)
        d, s, n = v.dtype, v.shape, v.ndim
        ct.static_eval(seen.append((d, s, n)))

    accepts(k, *args)
    return seen[-1]


def looped(n):
    found = 0
    for i in range(n):
        found = i
    return found


@pytest.mark.parametrize("f, arg, dtype", [pytest.param(f, a, d, marks=clause(f"TILE-2.{n}"), id=f"{n}{i}")
                                           for i, (n, f, a, d) in enumerate([
    ("literal", lambda x: 5, 1, "int32"), ("literal", lambda x: 2.5, 1, "float32"),
    ("literal", lambda x: True, 1, "bool_"),
    ("len", lambda x: len((1, 2)), 1, "int32"), ("ndim", lambda x: ct.zeros((2,), ct.int8).ndim, 1, "int32"),
    ("loop", looped, 3, "int32"), ("parameter.bool", lambda x: x, True, "bool_"),
    ("parameter.int", lambda x: x, 7, "int32"), ("parameter.float", lambda x: x, 2.5, "float32")])])
def test_scalars(f, arg, dtype):
    assert seen_by(f, arg) == (getattr(ct, dtype), (), 0)


@clause("TILE-2.method")
def test_methods_of_scalars():
    assert seen_by(lambda x: x.astype(ct.int8), 7) == (ct.int8, (), 0)
    assert seen_by(lambda x: x.item(), 7) == (ct.int32, (), 0)
    assert seen_by(lambda x: x.reshape(()), 7) == (ct.int32, (), 0)
    assert seen_by(lambda x: (5).astype(ct.float16), 7) == (ct.float16, (), 0)
    assert static(lambda: ct.int8(5).reshape((1, 1)).shape) == (1, 1)


# ------------------------------------------------------------------ attributes


@clause("TILE-3.dtype", "TILE-3.shape", "TILE-3.ndim")
def test_attributes_are_constants():
    @ct.kernel
    def k(x):
        t = ct.load(x, (0, 0), (2, 4))
        d, s, n = t.dtype, t.shape, t.ndim
        ct.static_assert(d == ct.float32 and s == (2, 4) and n == 2)
        ct.static_assert(type(s) is tuple and type(n) is int)
        ct.zeros((t.shape[1], t.ndim), t.dtype)
        small = (ct.zeros((1,), ct.int8) + t.shape[0] + t.ndim).dtype
        ct.static_assert(small == ct.int8)

    accepts(k, np.zeros((4, 4), np.float32))


@pytest.mark.parametrize("f", [pytest.param(f, marks=clause(f"TILE-4.{n}"), id=f"{n}{i}") for i, (n, f) in enumerate([
    ("T", lambda t: t.T), ("sum", lambda t: t.sum()), ("sum", lambda t: t.max(0)), ("size", lambda t: t.size),
    ("size", lambda t: t.strides), ("dunder", lambda t: t.__add__(1)), ("dunder", lambda t: t.__len__)])])
def test_attributes_that_tiles_do_not_have(f):
    refused("TileTypeError", lambda: f(ct.ones((2, 2), ct.float32)))


def method(f, want, shape=(8,)):
    @ct.kernel
    def k(x, out):
        t = ct.load(x, 0, 8)
        ct.store(out, 0, ct.reshape(f(t), (n,)))

    n = int(np.prod(shape))
    assert run(k, numbers(), np.zeros(n, np.float32)).tolist() == want


@clause("TILE-4.item", "TILE-4.extract", "TILE-4.insert", "TILE-4.reshape", "TILE-4.permute", "TILE-4.transpose",
        "TILE-4.astype")
def test_methods():
    method(lambda t: t.extract(1, 2), [3, 4], (2,))
    method(lambda t: t.extract((7,), (1,)).item() + 0, [8], (1,))
    method(lambda t: t.insert(1, ct.zeros((2,), ct.float32)), [1, 2, 0, 0, 5, 6, 7, 8])
    method(lambda t: t.reshape((2, 4)).extract((1, 0), (1, 4)), [5, 6, 7, 8], (4,))
    method(lambda t: t.reshape((2, 2, 2)).permute((2, 0, 1)), [1, 3, 5, 7, 2, 4, 6, 8])
    method(lambda t: t.reshape((2, 4)).transpose(), [1, 5, 2, 6, 3, 7, 4, 8])
    method(lambda t: t.reshape((2, 2, 2)).transpose(0, 1), [1, 2, 5, 6, 3, 4, 7, 8])
    method(lambda t: (t / 2).astype(ct.int32).astype(ct.float32), [0, 1, 1, 2, 2, 3, 3, 4])


# ------------------------------------------------------------------ operators


def applied(f, a, b, result=np.int32):
    @ct.kernel
    def k(x, y, out):
        ct.store(out, 0, f(ct.load(x, 0, 4), ct.load(y, 0, 4)))

    return run(k, np.array(a), np.array(b), np.zeros(4, result)).tolist()


A, B = np.array([7, -7, 12, 3], np.int32), np.array([2, 3, -5, 4], np.int32)


@pytest.mark.parametrize("f, want", [pytest.param(f, w, marks=clause(f"TILE-4.{n}"), id=f"{n}{i}")
                                     for i, (n, f, w) in enumerate([
    ("add", lambda x, y: x + y, [9, -4, 7, 7]), ("sub", lambda x, y: x - y, [5, -10, 17, -1]),
    ("mul", lambda x, y: x * y, [14, -21, -60, 12]), ("floordiv", lambda x, y: x // y, [3, -3, -3, 0]),
    ("mod", lambda x, y: x % y, [1, 2, -3, 3]), ("and", lambda x, y: x & y, [2, 1, 8, 0]),
    ("or", lambda x, y: x | y, [7, -5, -1, 7]), ("xor", lambda x, y: x ^ y, [5, -6, -9, 7]),
    ("lshift", lambda x, y: x << (y & 3), [28, -56, 96, 3]), ("rshift", lambda x, y: x >> (y & 3), [1, -1, 1, 3]),
    ("invert", lambda x, y: ~x, [-8, 6, -13, -4]), ("neg", lambda x, y: -x, [-7, 7, -12, -3]),
    ("pos", lambda x, y: +x, [7, -7, 12, 3]), ("abs", lambda x, y: abs(x), [7, 7, 12, 3]),
    ("min", lambda x, y: min(x, y), [2, -7, -5, 3]), ("max", lambda x, y: max(x, y), [7, 3, 12, 4]),
    ("divmod", lambda x, y: divmod(x, y)[0] * 100 + divmod(x, y)[1], [301, -298, -303, 3]),
    ("pow", lambda x, y: (x.astype(ct.float32) ** 2).astype(ct.int32), [49, 49, 144, 9])])])
def test_integer_operators(f, want):
    assert applied(f, A, B) == want


@clause("TILE-4.truediv")
def test_true_division():
    assert applied(lambda x, y: x / y, A, B, np.float32) == [3.5, np.float32(-7 / 3), np.float32(-2.4), 0.75]


@pytest.mark.parametrize("f, want", [pytest.param(f, w, marks=clause(f"TILE-4.{f.__name__}")) for f, w in [
    (operator.lt, [False, True, False, False]), (operator.le, [False, True, False, True]),
    (operator.gt, [True, False, True, False]), (operator.ge, [True, False, True, True]),
    (operator.eq, [False, False, False, True]), (operator.ne, [True, True, True, False])]])
def test_comparisons(f, want):
    assert applied(lambda x, y: f(x, y), A, [2, 3, -5, 3], np.bool_) == want


@clause("TILE-4.matmul")
def test_matmul():
    @ct.kernel
    def k(x, y, out):
        ct.store(out, (0, 0), ct.load(x, (0, 0), (2, 2)) @ ct.load(y, (0, 0), (2, 2)))

    x, y = np.array([[1, 2], [3, 4]], np.float32), np.array([[5, 6], [7, 8]], np.float32)
    assert run(k, x, y, np.zeros((2, 2), np.float32)).tolist() == [[19, 22], [43, 50]]


@clause("TILE-4.not")
def test_not():
    @ct.kernel
    def k(n, out):
        ct.store(out, 0, not n)

    assert [bool(run(k, n, np.zeros(1, np.bool_))[0]) for n in (0, 5)] == [True, False]


# ------------------------------------------------------------------ indexing


@clause("TILE-5.none", "TILE-5.tuple", "TILE-5.ellipsis")
def test_unit_axes():
    shapes = look(lambda: ct.zeros((2, 4), ct.int8)[None], lambda: ct.zeros((2, 4), ct.int8)[:, None])
    assert [t.shape for t, _ in shapes] == [(1, 2, 4), (2, 1, 4)]
    for f, shape in ((lambda t: t[None], (1, 2, 4)), (lambda t: t[:, None], (2, 1, 4)),
                     (lambda t: t[:, :, None], (2, 4, 1)),
                     (lambda t: t[..., None], (2, 4, 1)), (lambda t: t[None, ..., None], (1, 2, 4, 1)),
                     (lambda t: t[None, :, None, :, None], (1, 2, 1, 4, 1)), (lambda t: t[..., :], (2, 4)),
                     (lambda t: t[:, ..., None, :], (2, 1, 4)), (lambda t: t[:, :], (2, 4))):
        assert static(lambda f=f: f(ct.zeros((2, 4), ct.int8)).shape) == shape

    @ct.kernel
    def k(x, out):
        t = ct.load(x, 0, 4)
        ct.store(out, (0, 0), t[:, None] * 10 + t[None, :])

    x, out = np.arange(4, dtype=np.int32), np.zeros((4, 4), np.int32)
    assert run(k, x, out).tolist() == [[10 * i + j for j in range(4)] for i in range(4)]


@pytest.mark.parametrize("f", [pytest.param(f, marks=clause(f"TILE-5.{n}"), id=f"{n}{i}") for i, (n, f) in enumerate([
    ("int", lambda t: t[0]), ("int", lambda t: t[0, None]), ("int", lambda t: t[:, -1]), ("slice", lambda t: t[0:1]),
    ("slice", lambda t: t[::2]), ("slice", lambda t: t[:1, None]), ("twice", lambda t: t[..., None, ...]),
    ("tile", lambda t: t[ct.zeros((2,), ct.int32)]), ("tile", lambda t: t[t > 0]), ("many", lambda t: t[:, :, :]),
    ("many", lambda t: t[:, :, :, None])])])
def test_indices_that_are_refused(f):
    refused("TileTypeError", lambda: f(ct.zeros((2, 4), ct.int8)))


def iterate(t):
    for v in t:
        return v


def unpack(t):
    a, b = t
    return a


@pytest.mark.parametrize("f", [pytest.param(f, marks=clause(f"TILE-6.{n}"), id=n) for n, f in [
    ("iter", iterate), ("unpack", unpack), ("len", lambda t: len(t)), ("index", lambda t: (1, 2)[ct.bid(0)])]])
def test_what_tiles_are_not(f):
    refused("TileTypeError", lambda: f(ct.zeros((2,), ct.int32)))


@clause("TILE-6.if", "TILE-6.while", "TILE-6.scalar")
def test_conditions():
    @ct.kernel
    def branch(x, n: ct.Constant, out):
        t = ct.load(x, 0, n)
        if t > 0:
            ct.store(out, 0, 1)

    @ct.kernel
    def loop(x, n: ct.Constant, out):
        t = ct.load(x, 0, n)
        while t > 0:
            t = t - 1
        ct.store(out, 0, 1)

    @ct.kernel
    def scalar(x, out):
        t = ct.load(x, 0, 1).item()
        while t > 0:
            t = t - 1
            ct.store(out, 0, ct.load(out, 0, 1) + 1)
        if t:
            ct.store(out, 1, 5)

    x = np.array([3.0, 0.0], np.float32)
    for n in (1, 2):
        refuses("TileTypeError", branch, x, n, np.zeros(2, np.float32))
        refuses("TileTypeError", loop, x, n, np.zeros(2, np.float32))
    out = np.zeros(2, np.float32)
    launch(scalar, x, out)
    assert out.tolist() == [3, 0]
    launch(scalar, np.array([-1.0], np.float32), out)
    assert out.tolist() == [3, 5]
