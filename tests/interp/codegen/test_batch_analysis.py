"""What is decided before code for the batch schedule is emitted must not show in any result."""

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.interp.codegen.batch_analysis import batch_facts
from cutile.ir.nodes import Op
from cutile.ir.walk import walk

T = 8


@ct.kernel
def shared(a, b, out, n: ct.Constant[int]):
    """A value that is read twice, and one that is stored and read again."""
    i = ct.bid(0)
    x = ct.load(a, i, n) + 1.0
    y = ct.exp2(x)
    ct.store(b, i, x)
    z = ct.maximum(y, x)
    ct.store(out, i, z - y)


@ct.kernel
def onto_itself(a, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(a, i, ct.load(a, i, n) * 2.0 + ct.load(a, i + 1, n))


@ct.kernel
def last_block_stays(a, out, n: ct.Constant[int]):
    """Blocks along the second axis store to one place."""
    i = ct.bid(0)
    ct.store(out, i, ct.load(a, i, n) * ct.bid(1).astype(ct.float32))


@ct.kernel
def diagonal(a, out, n: ct.Constant[int]):
    """Two grid axes share a tile index; the places are not the blocks' own."""
    i = ct.bid(0)
    j = ct.bid(1)
    ct.store(out, (i, i), ct.load(a, (i, j), (n, n)) - 1.0)


@ct.kernel
def turned(a, out, n: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(out, (j, i), ct.load(a, (i, j), (n, n)) - 1.0, order="F")


@ct.kernel
def picked(x, index, out, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, i, ct.gather(x, ct.load(index, i, n)))


@ct.kernel
def counted(x, counts, old, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.atomic_add(counts, ct.load(x, i, n), 1)
    ct.store(old, i, ct.atomic_add(counts, ct.load(x, i, n), 1))


@ct.kernel
def wasteful(a, out, n: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(a, i, n)
    unused = ct.exp(x)
    row = ct.arange(n, dtype=ct.float32) * 2.0
    ct.store(out, i, x + row)


@ct.kernel
def normed(a, row, out, n: ct.Constant[int]):
    """What is repeated meets full tiles, as first and second operand, in fma, and where the full tile is spent."""
    i = ct.bid(0)
    x = ct.load(a, (i, 0), (n, n))
    d = x - ct.max(x, axis=1, keepdims=True)
    e = ct.load(row, (0, i), (1, n)) * (ct.sum(d, axis=1, keepdims=True) + d)
    y = e / (1.0 - ct.min(x, axis=0, keepdims=True))
    ct.store(out, (i, 0), y * y + ct.load(row, (0, 0), (1, n)))


@ct.kernel
def repeated(a, out, n: ct.Constant[int]):
    """What is repeated is read as itself."""
    i = ct.bid(0)
    x = ct.load(a, (i, 0), (n, n))
    top = ct.broadcast_to(ct.max(x, axis=1, keepdims=True), (n, n))
    low = ct.broadcast_to(ct.min(x, axis=0, keepdims=True), (n, n))
    ct.store(out, (i, 0), ct.sum(top, axis=1, keepdims=True) + top * low)


@ct.kernel
def affine(a, out, n: ct.Constant[int]):
    """Tile indices that are affine in block indices, partly outside."""
    i, j = ct.bid(0), ct.bid(1)
    x = ct.load(a, (2 * i + j - 1, 3 - j), (n, n)) + ct.load(a, (i - j, 0), (n, n))
    ct.store(out, (i + 1, 2 * j), x - ct.load(a, (-i, 1), (n, n)))


@ct.kernel
def wrapping(a, out, n: ct.Constant[int]):
    """2**32·i is 0 in int32."""
    i = ct.bid(0)
    ct.store(out, i, ct.load(a, i * 1073741824 * 4, n) + ct.load(a, i * 2147483647 + i, n))


def under(schedule, kernel, grid, arrays):
    """The arrays after a launch; an array that is given twice is one array afterwards too."""
    copies = {id(a): a.copy(order="K") for a in arrays}
    given = tuple(copies[id(a)] for a in arrays)
    with settings.override(SCHEDULE=schedule):
        ct.launch(None, grid, kernel, (*given, T))
    return [a.tobytes() for a in given]


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


SAME = floats(64)
CASES = {
    "shared": (shared, (8,), (floats(64), np.zeros(64, np.float32), np.zeros(64, np.float32))),
    "beyond the end": (shared, (9,), (floats(61), np.zeros(61, np.float32), np.zeros(59, np.float32))),
    "last block stays": (last_block_stays, (8, 5), (floats(64), np.zeros(64, np.float32))),
    "diagonal": (diagonal, (4, 3), (floats(32, 24), np.zeros((32, 32), np.float32))),
    "turned": (turned, (4, 3), (floats(32, 24), np.zeros((32, 24), np.float32))),
    "strided": (turned, (4, 3), (floats(32, 48)[:, ::2], np.zeros((32, 48), np.float32)[::-1, ::2])),
    "gather": (picked, (8,), (floats(40), np.arange(64, dtype=np.int32)[::-1] - 3, np.zeros(64, np.float32))),
    "gather, all inside": (picked, (8,), (floats(64), np.arange(64, dtype=np.int32)[::-1], np.zeros(64, np.float32))),
    "gather onto itself": (picked, (8,), (SAME, np.arange(64, dtype=np.int32) // 8 * 8 + 3, SAME)),
    "counts": (counted, (8,), (np.arange(64, dtype=np.int32) % 5, np.zeros(4, np.int32), np.zeros(64, np.int32))),
    "affine": (affine, (4, 3), (floats(61, 30), np.zeros((40, 44), np.float32))),
    "wrapping": (wrapping, (8,), (floats(64), np.zeros(64, np.float32))),
    "wasteful": (wasteful, (8,), (floats(64), np.zeros(64, np.float32))),
    "normed": (normed, (4,), (floats(30, T), floats(1, 32, seed=1), np.zeros((32, T), np.float32))),
    "repeated": (repeated, (4,), (floats(32, T), np.zeros((32, T), np.float32))),
}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_block_schedule(name, check):
    kernel, grid, arrays = CASES[name]
    if name == "counts":  # what an update sees depends on the order of the two atomics of different blocks
        arrays = arrays[:2]
        results = [under(s, kernel, grid, (*arrays, np.zeros(64, np.int32)))[1] for s in ("block", "batch")]
    else:
        with settings.override(CHECK=check):
            results = [under(s, kernel, grid, arrays) for s in ("block", "batch")]
    assert results[0] == results[1]


def test_a_block_may_store_to_what_it_loads():
    a = floats(64)
    expected = a * 2 + np.append(a[T:], np.zeros(T, np.float32))
    with settings.override(SCHEDULE="batch"):
        ct.launch(None, (8,), onto_itself, (a, T))  # all loads of a chunk come before its stores
    assert np.array_equal(a, expected)


def typed(kernel, *arrays):
    k = kernel.program(kernel.classify((*arrays, T))).kernel
    return k, batch_facts(k, False)


def names(nodes):
    return [n.op.name for n in nodes if isinstance(n, Op)]


def test_constants_are_computed_once():
    k, s = typed(wasteful, floats(64), floats(64))
    assert np.arange(0, 2 * T, 2, dtype=np.float32).tolist() in [x.tolist() for x in s.constants.values()]
    assert all(not x.flags.writeable for x in s.constants.values())


def test_what_no_one_reads_is_left_out():
    k, s = typed(wasteful, floats(64), floats(64))
    assert names(n for n in walk(k.body) if n not in s.skipped) == ["load", "fma", "store"]  # x + 2 * row


def test_affine_tile_indices_need_no_code():
    k, s = typed(affine, floats(61, 30), floats(40, 44))
    assert names(n for n in walk(k.body) if n not in s.skipped) == ["load", "load", "add", "load", "sub", "store"]
    assert len(s.regular) == 4


def test_an_atomic_whose_result_no_one_reads():
    k, s = typed(counted, np.zeros(64, np.int32), np.zeros(4, np.int32), np.zeros(64, np.int32))
    assert [s.unread(n) for n in walk(k.body) if isinstance(n, Op) and n.op.name == "atomic_add"] == [True, False]


def test_results_that_go_where_they_are_stored():
    k, s = typed(shared, floats(64), floats(64), floats(64))
    assert names(s.stored_by) == ["sub"]
    assert names(s.reusable) == []  # every value is read again


def test_what_need_not_be_repeated():
    k, s = typed(normed, floats(32, T), floats(1, 32), floats(32, T))
    broadcasts = [n for n in walk(k.body) if n not in s.skipped and isinstance(n, Op) and n.op.name == "broadcast_to"]
    assert len(broadcasts) == 5 and s.implicit == set(broadcasts)
    assert not batch_facts(k, True).implicit  # the checker looks at the shape of every value
    k, s = typed(repeated, floats(32, T), floats(32, T))
    top, low, total = (n for n in walk(k.body) if isinstance(n, Op) and n.op.name == "broadcast_to")
    assert s.implicit == {low, total}  # `top` is summed as well, and is the full tile that they meet


def test_programs_whose_tiles_take_no_memory():
    flat = floats(64), floats(64)
    index, counts = np.zeros(64, np.int32), np.zeros(4, np.int32)
    for kernel, arrays, streams in ((picked, (flat[0], index, flat[1]), True), (diagonal, (floats(32, 24),) * 2, True),
                                    (counted, (index, counts, index), False), (shared, (*flat, flat[0]), False)):
        k, s = typed(kernel, *arrays)
        assert s.streams(k.body) is streams, kernel.__name__


def test_an_operand_that_is_spent_holds_the_result():
    @ct.kernel
    def chain(a, out, n: ct.Constant[int]):
        i = ct.bid(0)
        x = ct.exp2(ct.load(a, i, n) - 1.0) * 3.0
        ct.store(out, i, ct.max(x, axis=0).astype(ct.float32) + x)

    k, s = typed(chain, floats(64), floats(64))
    assert names(s.reusable) == ["exp2", "mul"]
    results = [under(schedule, chain, (8,), (floats(64), floats(64))) for schedule in ("block", "batch")]
    assert results[0] == results[1]


def test_a_cast_may_round_in_place():
    """Not one whose operand is read again; and one that only widens hands its operand on."""
    @ct.kernel
    def rounded(a, b, out, n: ct.Constant[int]):
        i = ct.bid(0)
        x = ct.exp2(ct.load(a, i, n))
        half = x.astype(ct.float16)
        y = ct.exp2(ct.load(b, i, n))
        kept = y.astype(ct.bfloat16)
        wide = half.astype(ct.float32)
        ct.store(out, i, (wide + half) * (y - kept) + (wide + 1.0).astype(ct.float16).astype(ct.float64))

    arrays = floats(64), -9 * floats(64, seed=1), np.zeros(64, np.float64)
    k, s = typed(rounded, *arrays)
    casts = [n.results[0].type.dtype for n in s.reusable if n.op.name == "astype"]
    assert casts == [ct.float16, ct.float16] and "add" not in names(s.reusable)
    results = [under(schedule, rounded, (8,), arrays) for schedule in ("block", "batch")]
    assert results[0] == results[1]


def test_a_product_that_is_spent_holds_the_result():
    """Not one that is read again; and an accumulator, which may be a constant, stays."""
    @ct.kernel
    def scores(a, out, n: ct.Constant[int]):
        x = ct.load(a, (ct.bid(0), ct.bid(1)), (n, n))
        acc = ct.zeros((n, n), ct.float32)
        for _ in range(3):
            p = ct.mma(x, x, acc)
            q = ct.mma(x, p, acc) * 0.125
            acc = ct.mma(q, x, ct.minimum(p, acc)) / 64
        ct.store(out, (ct.bid(1), ct.bid(0)), acc)

    arrays = floats(16, 24), floats(24, 16)
    k, s = typed(scores, *arrays)
    assert names(s.reusable) == ["mul", "truediv"]
    results = [under(schedule, scores, (2, 3), arrays) for schedule in ("block", "batch")]
    assert results[0] == results[1]
