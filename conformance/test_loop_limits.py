"""Loops whose bounds lie at the ends of their dtype: the numbers are those of Python's range."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch
from conformance.harness.tile_code import result

DTYPES = {"int32": ct.int32, "int64": ct.int64}
LEAST, MOST = "least", "most"  # of the dtype, and a distance from there
BOUNDS = {
    "to the last": ((0, 0), (MOST, 0), (MOST, -5)), "in two steps": ((0, 0), (MOST, 0), (MOST, -(1 << 30))),
    "one number": ((MOST, -1), (MOST, 0), (0, 1)), "one number, far": ((MOST, -9), (MOST, 0), (MOST, 0)),
    "up to the last": ((MOST, -10), (MOST, 0), (0, 3)), "up to the last, by one": ((MOST, -4), (MOST, 0), (0, 1)),
    "short of the last": ((MOST, -30), (MOST, -3), (0, 16)), "from the first": ((LEAST, 0), (LEAST, 7), (0, 2)),
    "from the first, by one": ((LEAST, 0), (LEAST, 3), (0, 1)), "the first": ((LEAST, 0), (LEAST, 1), (0, 64)),
    "through all": ((LEAST, 0), (MOST, 0), (MOST, -9)), "from below zero": ((0, -5), (MOST, 0), (MOST, -9)),
    "empty": ((0, 0), (LEAST, 0), (0, 1)), "empty, in steps": ((0, 0), (LEAST, 0), (0, 64)),
    "empty, close": ((0, 3), (LEAST, 1), (0, 4)), "empty, down": ((MOST, 0), (LEAST, 0), (0, 1)),
    "empty, down in steps": ((MOST, -2), (LEAST, 2), (0, 4096)), "empty at the last": ((MOST, 0), (MOST, 0), (0, 1)),
    "empty at the first": ((LEAST, 0), (LEAST, 0), (0, 7)), "empty below the last": ((MOST, -1), (0, 5), (0, 1))}


def bounds_of(name, dtype):
    info = np.iinfo(dtype)
    at = {0: 0, LEAST: int(info.min), MOST: int(info.max)}
    return [at[end] + distance for end, distance in BOUNDS[name]]


def digest(numbers):
    """What `f` below makes of the numbers of a range: their count, and a sum in which their order matters."""
    s = 0
    for i in numbers:
        s = s * 3 + i + 1
    return [len(numbers), int(np.array(s & (1 << 64) - 1, np.uint64).astype(np.int64))]


def each(*subs):
    def mark(test):
        for names in (pytest.mark.parametrize("dtype", DTYPES), pytest.mark.parametrize("name", BOUNDS)):
            test = names(test)
        return clause(*subs)(test)

    return mark


def array_of(name, dtype):
    return np.array(bounds_of(name, dtype), dtype)


def items(bounds):
    """Start, stop and step from an array: they are known at run time only."""
    return ct.load(bounds, 0, ()), ct.load(bounds, 1, ()), ct.load(bounds, 2, ())


@each("LOOP-1.step", "LOOP-1.int32", "LOOP-1.int64", "LOOP-2.empty", "LOOP-2.signed")
def test_numbers(name, dtype):
    def f(bounds):
        n, s = 0, ct.int64(0)
        for i in range(*items(bounds)):
            n, s = n + 1, s * 3 + i + 1
        return n, s

    assert result(f, array_of(name, dtype)) == digest(range(*bounds_of(name, dtype)))


@each("LOOP-1.step", "LOOP-2.empty")
def test_steps_that_are_constants(name, dtype):
    by = bounds_of(name, dtype)[2]
    d = DTYPES[dtype]

    def f(bounds):
        n, s = 0, ct.int64(0)
        start, stop, _ = items(bounds)
        for i in range(start, stop, d(by)):
            n, s = n + 1, s * 3 + i + 1
        return n, s

    assert result(f, array_of(name, dtype)) == digest(range(*bounds_of(name, dtype)))


@each("LOOP-1.step", "LOOP-1.start")
def test_bounds_that_are_constants(name, dtype):
    start, stop, by = bounds_of(name, dtype)
    d = DTYPES[dtype]

    def f(one):
        n, s = 0, ct.int64(0)
        for i in range(d(start), d(stop), d(by)):
            n, s = n + one, s * 3 + i + 1
        return n, s

    assert result(f, 1) == digest(range(start, stop, by))


@each("LOOP-9.break", "LOOP-9.continue")
def test_loops_that_are_left(name, dtype):
    def f(bounds, last):
        n, s = 0, ct.int64(0)
        for i in range(*items(bounds)):
            n = n + 1
            if n == 2:
                continue
            if n == last:
                break
            s = s * 3 + i + 1
        return n, s

    def want(last):
        numbers = range(*bounds_of(name, dtype))
        kept = [i for n, i in enumerate(numbers, 1) if n != 2 and (not last or n < last)]
        return [min(len(numbers), last or len(numbers)), digest(kept)[1]]

    for last in (0, 3):
        assert result(f, array_of(name, dtype), last) == want(last)


@each("LOOP-9.return")
def test_loops_that_return(name, dtype):
    def first(start, stop, step):
        for i in range(start, stop, step):
            return i
        return start

    def f(bounds):
        n = 0
        for i in range(*items(bounds)):
            for j in range(*items(bounds)):
                if i == j:
                    n = n + 1
        return n, first(*items(bounds))

    start, stop, step = bounds_of(name, dtype)
    assert result(f, array_of(name, dtype)) == [len(range(start, stop, step)), start]


@each("LOOP-1.step", "LOOP-2.empty", "LOOP-5.carried")
@pytest.mark.parametrize("side", [16, 64])
def test_products_of_tiles_that_are_loaded(name, dtype, side):
    """Machine code may load such tiles some rounds ahead."""
    @ct.kernel
    def k(x, y, out, bounds):
        total = ct.zeros((side, side), ct.float32)
        for i in range(*items(bounds)):
            at = (i & 3).astype(ct.int32)
            total = ct.mma(ct.load(x, (0, at), (side, side)), ct.load(y, (at, 0), (side, side)), total)
        ct.store(out, (0, 0), total)

    random = np.random.default_rng(7)
    x, y = (random.integers(-3, 4, shape).astype(np.float16) for shape in ((side, 4 * side), (4 * side, side)))
    out = np.full((side, side), 9, np.float32)
    launch(k, x, y, out, array_of(name, dtype))
    want = np.zeros((side, side))
    for i in range(*bounds_of(name, dtype)):
        part = slice((i & 3) * side, (i & 3) * side + side)
        want += x[:, part].astype(np.float64) @ y[part].astype(np.float64)
    np.testing.assert_array_equal(out, want)


@each("LOOP-1.step", "LOOP-2.empty", "LOOP-5.carried")
def test_gathers_of_gathered_indices(name, dtype):
    """Machine code may begin dozens of rounds before the first one ends."""
    @ct.kernel
    def k(x, out, bounds):
        total = ct.zeros(128, ct.int32)
        for i in range(*items(bounds)):
            at = ct.arange(128, dtype=ct.int32) + (i & 7).astype(ct.int32)
            for _ in ct.static_iter(range(4)):
                at = ct.gather(x, at)
            total = total + at
        ct.store(out, 0, total)

    x = np.random.default_rng(7).permutation(135).astype(np.int32)
    out = np.full(128, -9, np.int32)
    launch(k, x, out, array_of(name, dtype))
    want = np.zeros(128, np.int32)
    for i in range(*bounds_of(name, dtype)):
        at = np.arange(128) + (i & 7)
        for _ in range(4):
            at = np.where(at < 135, x[at % 135], 0)
        want += at.astype(np.int32)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 7, 16, 17, 18, 30, 46, 47, 100])
@pytest.mark.parametrize("start", [-3, 0, 5])
@clause("LOOP-1.start", "LOOP-2.empty", "LOOP-5.carried")
def test_few_rounds(start, rounds, dtype):
    """Fewer than machine code may begin at once, of loops around loops and around gathers."""
    @ct.kernel
    def k(x, out, bounds, limits):
        n, total = 0, ct.zeros(128, ct.int32)
        for row in range(ct.load(limits, 0, ()), ct.load(limits, 1, ())):
            begin, end, step = items(bounds)
            for i in range(begin, end, step):
                at = ct.gather(x, ct.gather(x, ct.arange(128, dtype=ct.int32)))
                total = total + ct.gather(x, at) * (i - begin + 1).astype(ct.int32)
                n = n + row.astype(ct.int32)
        ct.store(out, 0, total)
        ct.store(x, 200, n)

    x = np.append(np.random.default_rng(7).permutation(128), np.zeros(128)).astype(np.int32)
    out, first = np.full(128, -9, np.int32), x[:128].copy()
    limits = np.array([start, start + rounds], dtype)
    launch(k, x, out, np.array([start * 3, start * 3 + rounds * 2, 2], dtype), limits)
    np.testing.assert_array_equal(out, first[first[first]] * rounds ** 3)
    assert x[200] == sum(range(start, start + rounds)) * rounds


@pytest.mark.parametrize("dtype", DTYPES)
@clause("LOOP-1.start", "LOOP-1.step")
def test_blocks_that_share_a_range(dtype):
    """A loop from the block's own index, in steps of the number of blocks."""
    @ct.kernel
    def k(out, bounds):
        n = 0
        _, stop, step = items(bounds)
        for _ in range(ct.bid(0), stop, step):
            n = n + 1
        ct.store(out, ct.bid(0), n)

    most = int(np.iinfo(dtype).max)
    out, step = np.zeros(4, np.int32), most // 2 - 1
    launch(k, out, np.array([0, most, step], dtype), grid=(4,))
    assert out.tolist() == [len(range(block, most, step)) for block in range(4)]
