"""Broadcasting between tiles, and in one direction [BCAST]."""

import itertools
import operator

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, refuses, run
from conformance.harness.type_probes import refused, static


def joined(a, b):
    """The common shape, or None, computed directly from the rule."""
    rank = max(len(a), len(b))
    out = []
    for x, y in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True):
        if x != y and 1 not in (x, y):
            return None
        out.append(max(x, y))
    return tuple(out)


SHAPES = [(), (1,), (2,), (4,), (1, 1), (1, 4), (2, 1), (2, 4), (4, 2), (4, 1, 2), (1, 2, 4), (2, 2, 1, 1)]


@clause("BCAST-1.equal", "BCAST-1.one", "BCAST-1.both", "BCAST-1.rank", "BCAST-1.scalar", "BCAST-3.arithmetic")
def test_shapes():
    for a, b in itertools.product(SHAPES, SHAPES):
        want = joined(a, b)
        f = lambda a=a, b=b: (ct.ones(a, ct.float32) + ct.zeros(b, ct.float32)).shape
        if want is None:
            refused("TileTypeError", f)
        else:
            assert static(f) == want


@clause("BCAST-1.values", "BCAST-1.both", "BCAST-1.rank", "BCAST-1.one")
@pytest.mark.parametrize("a, b", [((2, 1, 4), (2, 1)), ((4,), (2, 4)), ((2, 1), (1, 4)), ((2, 2), (4, 1, 1)),
                                  ((1,), (4,))])
def test_values(a, b):
    want = joined(a, b)
    shape_of = {"a": a, "b": b, "out": want}
    zeros = {n: (0,) * len(s) for n, s in shape_of.items()}
    ia, ib, io = zeros["a"], zeros["b"], zeros["out"]

    @ct.kernel
    def k(x, y, out):
        ct.store(out, io, ct.load(x, ia, a) * 100 + ct.load(y, ib, b))

    x = np.arange(int(np.prod(a)), dtype=np.int32).reshape(a)
    y = np.arange(int(np.prod(b)), dtype=np.int32).reshape(b)
    got = run(k, x, y, np.zeros(want, np.int32))

    def at(array, index):
        index = index[len(index) - array.ndim:]
        return int(array[tuple(0 if n == 1 else i for i, n in zip(index, array.shape, strict=True))])

    for index in itertools.product(*map(range, want)):
        assert got[index] == at(x, index) * 100 + at(y, index)


ROW, COLUMN = (1, 4), (2, 1)
OPS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "cdiv": ct.cdiv, "divmod": lambda x, y: divmod(x, y)[1],
    "minimum": ct.minimum, "maximum": ct.maximum, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "lshift": operator.lshift, "rshift": operator.rshift, "equal": operator.eq, "not_equal": operator.ne,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "pow": lambda x, y: x.astype(ct.float32) ** y.astype(ct.float32),
    "atan2": lambda x, y: ct.atan2(x.astype(ct.float32), y.astype(ct.float32)),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=clause(f"BCAST-2.{n}")) for n in OPS])
def test_binary_operations(name):
    """Broadcasting operands gives the result of operands of the full shape."""
    f = OPS[name]

    @ct.kernel
    def k(x, y, out, full):
        a, b = ct.load(x, (0, 0), (2, 1)), ct.load(y, 0, 4)
        ct.store(out, (0, 0), f(a, b).astype(ct.float32))
        for i in ct.static_iter(range(2)):
            for j in ct.static_iter(range(4)):
                ct.store(full, (i, j), f(ct.load(x, (i, 0), ()), ct.load(y, j, ())).astype(ct.float32))

    x, y = np.array([[2], [20]], np.int32), np.array([1, 2, 3, 7], np.int32)
    out, full = np.zeros((2, 4), np.float32), np.ones((2, 4), np.float32)
    run(k, x, y, out, full)
    assert out.tolist() == full.tolist() and len(set(out.ravel().tolist())) > 1


@clause("BCAST-2.where")
def test_where():
    @ct.kernel
    def k(out):
        i = ct.arange(2, dtype=ct.int32)
        ct.store(out, (0, 0, 0), ct.where(i[:, None, None] == 0, ct.arange(4, dtype=ct.int32), 10 * i[:, None]))

    want = [[[0, 1, 2, 3], [0, 1, 2, 3]], [[0] * 4, [10] * 4]]
    assert run(k, np.zeros((2, 2, 4), np.int32)).tolist() == want


@clause("BCAST-2.gather", "BCAST-2.scatter")
def test_indices():
    @ct.kernel
    def k(x, out, target):
        i, j = ct.arange(2, dtype=ct.int32)[:, None], ct.arange(4, dtype=ct.int32)
        ct.store(out, (0, 0), ct.gather(x, (i, j)))
        ct.scatter(target, (1 - i, j), ct.gather(x, (i, j)))

    x = np.arange(8, dtype=np.int32).reshape(2, 4)
    out, target = np.zeros((2, 4), np.int32), np.zeros((2, 4), np.int32)
    run(k, x, out, target)
    assert out.tolist() == x.tolist() and target.tolist() == x[::-1].tolist()


def keep(a, b, c, d):
    return a + c, b + d


@clause("BCAST-2.reduce", "BCAST-2.scan")
def test_tuples():
    @ct.kernel
    def k(out, sums):
        i, j = ct.arange(2, dtype=ct.int32)[:, None], ct.arange(4, dtype=ct.int32)[None]
        a, b = ct.reduce((i, j), 1, keep, (0, 0))
        ct.store(out, 0, a)
        ct.store(out, 1, b)
        c, d = ct.scan((i, j), 1, keep, (0, 0))
        ct.store(sums, (0, 0), c * 100 + d)

    out, sums = np.zeros(4, np.int32), np.zeros((2, 4), np.int32)
    run(k, out, sums)
    assert out.tolist() == [0, 4, 6, 6] and sums.tolist() == [[0, 1, 3, 6], [100, 201, 303, 406]]


# ------------------------------------------------------------------ shapes that do not go together


def row(n, f):
    return pytest.param(f, marks=clause(f"BCAST-3.{n}"), id=n)


@pytest.mark.parametrize("f", [
    row("arithmetic", lambda x, y: x + y), row("arithmetic", lambda x, y: x / y),
    row("arithmetic", lambda x, y: x // y),
    row("arithmetic", lambda x, y: ct.maximum(x, y)), row("bitwise", lambda x, y: x & y),
    row("bitwise", lambda x, y: x << y),
    row("comparison", lambda x, y: x == y), row("comparison", lambda x, y: x < y),
    row("where", lambda x, y: ct.where(x > 0, y, y)), row("where", lambda x, y: ct.where(True, x, y)),
    row("reduce", lambda x, y: ct.reduce((x, y), 0, keep, (0, 0))),
    row("scan", lambda x, y: ct.scan((x, y), 0, keep, (0, 0))),
    row("broadcast_to", lambda x, y: ct.broadcast_to(x, y.shape))])
def test_mismatches(f):
    refused("TileTypeError", lambda: f(ct.ones((2,), ct.int32), ct.ones((4,), ct.int32)))
    refused("TileTypeError", lambda: f(ct.ones((4, 2), ct.int32), ct.ones((2, 4), ct.int32)))


@clause("BCAST-3.gather", "BCAST-3.scatter")
def test_mismatching_indices():
    @ct.kernel
    def gather(x):
        ct.gather(x, (ct.zeros((2,), ct.int32), ct.zeros((4,), ct.int32)))

    @ct.kernel
    def scatter(x):
        ct.scatter(x, (ct.zeros((2,), ct.int32), ct.zeros((4,), ct.int32)), 0)

    for k in (gather, scatter):
        refuses("TileTypeError", k, np.zeros((4, 4), np.int32))


# ------------------------------------------------------------------ one direction


def padded(shape):
    @ct.kernel
    def k(x):
        ct.gather(x, (ct.arange(2, dtype=ct.int32)[:, None], ct.arange(4, dtype=ct.int32)),
                  padding_value=ct.ones(shape, ct.int32))
    return k


def masked(shape):
    @ct.kernel
    def k(x):
        ct.gather(x, (ct.arange(2, dtype=ct.int32)[:, None], ct.arange(4, dtype=ct.int32)),
                  mask=ct.ones(shape, ct.bool_))
    return k


def scattered(shape):
    @ct.kernel
    def k(x):
        ct.scatter(x, (ct.arange(2, dtype=ct.int32)[:, None], ct.arange(4, dtype=ct.int32)), ct.ones(shape, ct.int32))
    return k


def viewed(shape):
    @ct.kernel
    def k(x):
        x.tiled_view((2, 4)).store((0, 0), ct.ones(shape, ct.int32))
    return k


def widened(shape):
    @ct.kernel
    def k(x):
        ct.store(x, (0, 0), ct.broadcast_to(ct.ones(shape, ct.int32), (2, 4)))
    return k


@pytest.mark.parametrize("make", [pytest.param(f, id=n, marks=clause(f"BCAST-4.{n}")) for n, f in {
    "broadcast_to": widened, "padding": padded, "mask": masked, "value": scattered, "view": viewed}.items()])
@clause("BCAST-4.rank", "BCAST-4.dim")
def test_one_direction(make):
    x = np.zeros((2, 4), np.int32)
    for shape in ((), (1,), (4,), (1, 1), (1, 4), (2, 1), (2, 4)):
        accepts(make(shape), x)
    for shape in ((2,), (8,), (2, 2), (4, 4), (4, 1), (1, 2, 4), (1, 1, 1)):
        refuses("TileTypeError", make(shape), x)


@clause("BCAST-4.value", "BCAST-4.view", "BCAST-4.broadcast_to", "BCAST-4.mask", "BCAST-4.padding")
def test_one_direction_values():
    @ct.kernel
    def k(x, a, b, c, d):
        i, j = ct.arange(2, dtype=ct.int32), ct.arange(4, dtype=ct.int32)
        ct.scatter(a, (i[:, None], j), i[:, None] + 1)
        b.tiled_view((2, 4)).store((0, 0), j + 1)
        ct.store(c, (0, 0), ct.broadcast_to(i[:, None] + 1, (2, 4)))
        ct.store(d, (0, 0), ct.gather(x, (i[:, None], j), mask=i[:, None] == 1, padding_value=j + 10))

    outs = [np.zeros((2, 4), np.int32) for _ in range(4)]
    run(k, np.ones((2, 4), np.int32), *outs)
    rows, columns = [[1] * 4, [2] * 4], [[1, 2, 3, 4]] * 2
    assert [o.tolist() for o in outs] == [rows, columns, rows, [[10, 11, 12, 13], [1] * 4]]
