# ruff: noqa: B007, F841 -- tile code under test, not code to tidy
"""The abstract machine: blocks, order, dead code, fused multiply-adds."""

import ml_dtypes
import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, needs, run
from conformance.harness.index_maps import blocks

ACQUIRE, RELEASE, DEVICE = ct.MemoryOrder.ACQUIRE, ct.MemoryOrder.RELEASE, ct.MemoryScope.DEVICE


@clause("MACH-1.each", "MACH-1.dims", "MACH-3.bid", "MACH-3.unused")
@pytest.mark.parametrize("grid", [(), (5,), (3, 2), (2, 3, 4)], ids=str)
def test_each_block_runs_once(grid):
    @ct.kernel
    def k(count, place):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        ct.atomic_add(count, (a, b, c), 1)
        n, m = ct.num_blocks(1), ct.num_blocks(2)
        ct.store(place, (a, b, c), (a * n + b) * m + c)

    full = (*grid, 1, 1, 1)[:3]
    count, place = np.zeros(full, np.int32), np.full(full, -1, np.int32)
    launch(k, count, place, grid=grid)
    assert (count == 1).all() and place.ravel().tolist() == list(range(place.size))
    assert len(list(blocks(grid))) == place.size


@clause("MACH-1.independent")
def test_blocks_have_their_own_variables():
    @ct.kernel
    def k(out):
        x = 0
        for i in range(ct.bid(0)):
            x = x + ct.bid(0)
        ct.store(out, ct.bid(0), x)

    assert run(k, np.zeros(6, np.int32), grid=(6,)).tolist() == [b * b for b in range(6)]


@clause("MACH-2")
def test_statements_take_effect_in_order():
    @ct.kernel
    def k(a, out):
        ct.store(a, 0, 1)
        x = ct.load(a, 0, 1)
        ct.store(a, 0, x + 1)
        y = ct.load(a, 0, 1)
        ct.scatter(a, 0, 7)
        z = ct.gather(a, 0)
        old = ct.atomic_add(a, 0, 5)
        w = ct.load(a, 0, 1)
        ct.store(out, 0, x)
        ct.store(out, 1, y)
        ct.store(out, 2, z)
        ct.store(out, 3, old)
        ct.store(out, 4, w)

    assert run(k, np.zeros(1, np.int32), np.zeros(5, np.int32)).tolist() == [1, 2, 7, 7, 12]


@clause("MACH-4.atomic")
def test_blocks_meet_in_atomics():
    @ct.kernel
    def k(ticket, seen, out):
        t = ct.atomic_add(ticket, 0, 1)
        ct.store(seen, t, 1)
        if t == ct.num_blocks(0) - 1:
            ct.store(out, 0, t)

    ticket, seen = np.zeros(1, np.int32), np.zeros(20, np.int32)
    assert run(k, ticket, seen, np.zeros(1, np.int32), grid=(20,)).tolist() == [19]
    assert ticket[0] == 20 and seen.all()


@clause("MACH-4.acquire")
def test_release_and_acquire():
    @ct.kernel
    def k(flag, data, out):
        if ct.bid(0) == 0:
            ct.store(data, 0, ct.arange(4, dtype=ct.int32) + 5)
            ct.atomic_xchg(flag, 0, 1, memory_order=RELEASE, memory_scope=DEVICE)
        else:
            while ct.atomic_add(flag, 0, 0, memory_order=ACQUIRE, memory_scope=DEVICE) == 0:
                pass
            ct.store(out, ct.bid(0) - 1, ct.load(data, 0, 4))

    out = run(k, np.zeros(1, np.int32), np.zeros(4, np.int32), np.zeros(12, np.int32), grid=(4,))
    assert out.tolist() == [5, 6, 7, 8] * 3


@clause("MACH-4.kernel")
def test_kernels_in_sequence():
    @ct.kernel
    def k(a):
        ct.store(a, ct.bid(0), ct.load(a, ct.num_blocks(0) - 1 - ct.bid(0) + ct.num_blocks(0), 1) + 1)

    @ct.kernel
    def back(a):
        n = ct.num_blocks(0)
        ct.store(a, ct.bid(0) + n, ct.load(a, ct.bid(0), 1))

    a = np.zeros(8, np.int32)
    for _ in range(3):
        launch(k, a, grid=(4,))
        launch(back, a, grid=(4,))
    assert a.tolist() == [3] * 8


@clause("MACH-6.store", "MACH-6.atomic", "MACH-6.unused")
def test_what_stays():
    @ct.kernel
    def k(a, out):
        ct.load(a, 0, 4)
        unused = ct.load(a, 0, 4) // 3
        ct.atomic_add(a, 0, 1)
        ct.store(out, 0, 2)

    a, out = np.zeros(4, np.int32), np.zeros(1, np.int32)
    launch(k, a, out)
    assert a.tolist() == [1, 0, 0, 0] and out[0] == 2


@needs("assertion errors")
@clause("MACH-6.assert")
def test_assertions_stay():
    @ct.kernel
    def k(n):
        ct.assert_(n > 3)

    launch(k, 4)
    with pytest.raises(ct.TileError):
        launch(k, 3)


# ------------------------------------------------------------------ fused multiply-adds

PRECISION = {"f16": (np.float16, 11), "bf16": (ml_dtypes.bfloat16, 8), "f32": (np.float32, 24), "f64": (np.float64, 53)}


def sign_of_error(f, short="f32"):
    """The error term of f(x, y, z), where x*y is not representable: exactly z + 2**-p, or z + 0 if x*y is rounded
    first.

    1 for an error term of +2**-p, 0 for none, -1 for -2**-p. z is x*y rounded.
    """
    dtype, p = PRECISION[short]
    k = p // 2
    x, y, z = 1 + 2.0**-k, 1 + 2.0 ** (k - p), 1 + 2.0**-k + 2.0 ** (k - p)

    @ct.kernel
    def kern(a, out):
        ct.store(out, 0, f(ct.load(a, 0, 2), ct.load(a, 1, 2), ct.load(a, 2, 2)))

    a = np.repeat(np.array([x, y, z]), 2).astype(dtype)
    out = run(kern, a, np.full(2, 9, dtype)).astype(np.float64)
    assert out[0] == out[1] and abs(out[0]) in (0, 2.0**-p)
    return int(np.sign(out[0]))


def product(x, y):
    return x * y


def with_loop(x, y, z):
    p, s = x * y, -z
    for i in range(1):
        s = s + p
    return s


def with_if(x, y, z):
    p = x * y
    if ct.num_blocks(0) > 0:
        r = p - z
    else:
        r = z
    return r


def used_twice(x, y, z):
    p = x * y
    return (p - z) + (p - p)


def used_in_vain(x, y, z):
    """Nothing needs the exponential, the sum or the products in the loop: they are no uses of the product."""
    p = x * y
    ct.exp(p)
    s, q = z, p
    for i in range(ct.num_blocks(0)):
        s, q = s + p, q * p
        if ct.max(p) > 99.0:
            break
    return p - z


def carried_in_vain(x, y, z):
    """The loop is needed, the values that it carries from the product are not."""
    p = x * y
    r, s, t = z, x, p
    for i in range(ct.num_blocks(0)):
        r, s, t = p - z, t + p, s
    return r


def ends_a_loop(x, y, z):
    p = x * y
    r = z - z
    for i in range(1):
        r = p - z
        if ct.max(p) > 99.0:
            break
    return r


def named(x, y, z):
    p = x * y
    q = p
    return q - z


def of_own(x, y):
    """A product of values that only this function sees."""
    a, b = x + 0, y + 0
    return a * b


def of_own_below(x, y):
    c = of_own(x + 0, y)
    return c


def two_of_own(x, y):
    """Two products that share a factor."""
    a = x + 0
    return a * y, z_first(a, y + 0), a * (y + 0)


def z_first(x, y):
    return y, x * y


def unless_many(x, y):
    if ct.num_blocks(0) > 9:
        return x
    return x * y


def from_loop(x, y):
    while True:
        return x * y


def less(p, z):
    return p - z


def less_in_if(p, z):
    r = z
    if ct.num_blocks(0) > 0:
        r = p - z
    return r


def of_two(x, y, z):
    """Both products are fused, and the middle one, which nobody uses, is not in the way."""
    p, _, q = two_of_own(x, y)
    return ((p - z) + (q - z)) * 0.5


def result_used_twice(x, y, z):
    p = of_own(x, y)
    return (p - z) + (p - p)


def result_used_inside(x, y, z):
    p = used_and_returned(x, y)
    return p[0] - z + (p[1] - p[1])


def used_and_returned(x, y):
    p = x * y
    return p, p + 1


def second_of_two(x, y, z):
    return z_first(x, y)[1] - z


def called_in_loop(x, y, z):
    s = z
    for i in range(1):
        s = of_own(x, y) - s
    return s


RN, RZ = ct.RoundingMode.RN, ct.RoundingMode.RZ


@pytest.mark.parametrize("f, want", [
    pytest.param(lambda x, y, z: x * y + -z, 1, marks=clause("MACH-7.add")),
    pytest.param(lambda x, y, z: ct.add(ct.mul(x, y), -z), 1, marks=clause("MACH-7.add")),
    pytest.param(lambda x, y, z: -z + x * y, 1, marks=clause("MACH-7.radd")),
    pytest.param(lambda x, y, z: x * y - z, 1, marks=clause("MACH-7.sub")),
    pytest.param(lambda x, y, z: z - x * y, -1, marks=clause("MACH-7.rsub")),
    pytest.param(lambda x, y, z: x * y + -x * y, 1, marks=clause("MACH-7.left")),
    pytest.param(lambda x, y, z: -x * y + x * y, -1, marks=clause("MACH-7.left")),
    pytest.param(lambda x, y, z: x * y - x * (y + 0), 1, marks=clause("MACH-7.left")),
    *(pytest.param(f, 0, marks=clause("MACH-7.used")) for f in (used_twice, ends_a_loop)),
    *(pytest.param(f, 1, marks=clause("MACH-7.dead")) for f in (used_in_vain, carried_in_vain)),
    pytest.param(lambda x, y, z: ct.astype((x * y).astype(ct.float64), ct.float32) - z, 0, marks=clause("MACH-7.cast")),
    pytest.param(lambda x, y, z: ((x * y).reshape((1, 2)) - z.reshape((1, 2))).reshape((2,)), 0,
                 marks=clause("MACH-7.reshape")),
    pytest.param(lambda x, y, z: ct.extract(x, 0, 1) * ct.extract(y, 0, 1) - z, 0, marks=clause("MACH-7.broadcast")),
    pytest.param(lambda x, y, z: ct.sub(ct.mul(x, y, rounding_mode=RZ), z), 0, marks=clause("MACH-7.mode")),
    pytest.param(lambda x, y, z: ct.sub(ct.mul(x, y, rounding_mode=RZ), z, rounding_mode=RZ), 1,
                 marks=clause("MACH-7.mode")),
    pytest.param(lambda x, y, z: ct.sub(ct.mul(x, y, rounding_mode=RN), z), 1, marks=clause("MACH-7.mode")),
    pytest.param(lambda x, y, z: ct.sub(ct.mul(x, y, flush_to_zero=True), z), 0, marks=clause("MACH-7.flush")),
    pytest.param(lambda x, y, z: ct.sub(ct.mul(x, y, flush_to_zero=True), z, flush_to_zero=True), 1,
                 marks=clause("MACH-7.flush")),
    pytest.param(named, 1, marks=clause("MACH-7.named")),
    pytest.param(with_loop, 1, marks=clause("MACH-7.enclosing")),
    pytest.param(with_if, 1, marks=clause("MACH-7.enclosing")),
    *(pytest.param(f, want, marks=clause("MACH-7.call")) for f, want in (
        (lambda x, y, z: product(x, y) - z, 1), (lambda x, y, z: z - of_own(x, y), -1),
        (lambda x, y, z: of_own_below(x, y) - z, 1), (lambda x, y, z: unless_many(x, y) - z, 0),
        (lambda x, y, z: from_loop(x, y) - z, 0), (lambda x, y, z: less(x * y, z), 1),
        (lambda x, y, z: less(of_own(x, y), z), 1),
        (lambda x, y, z: less_in_if(of_own(x, y), z), 1), (of_two, 1), (result_used_twice, 0),
        (result_used_inside, 0), (second_of_two, 1), (called_in_loop, 1)))])
def test_fusion(f, want):
    assert sign_of_error(f) == want


@pytest.mark.parametrize("short", [pytest.param(s, marks=clause(f"MACH-7.dtype.{s}")) for s in PRECISION])
def test_dtypes_that_are_fused(short):
    assert sign_of_error(lambda x, y, z: x * y - z, short) == 1
    assert sign_of_error(lambda x, y, z: z - x * y, short) == -1
    assert sign_of_error(lambda x, y, z: x * y + -z, short) == 1


@clause("MACH-7.add")
@pytest.mark.parametrize("same", [False, True], ids=["own", "same"])
def test_each_element_of_many_is_rounded_once(same):
    """2**18 elements: x * x is 1 + 2**-11 + 2**-24; a rounded product drops the last bit."""
    @ct.kernel
    def k(a, out):
        at = ct.bid(0), 0
        y = ct.load(a, (0, 0) if same else at, (8, 512))  # all blocks have the same one
        ct.store(out, at, ct.load(a, at, (8, 512)) * y + ct.load(out, at, (8, 512)))

    scale = np.ldexp(np.float32(1), np.arange(512, dtype=np.int32) % 8)
    a = np.broadcast_to(np.float32(1 + 2.0**-12) * scale, (512, 512)).copy()
    out = -np.float32(1 + 2.0**-11) * a.astype(np.float64) ** 2 / (1 + 2.0**-12) ** 2
    got = run(k, a, out.astype(np.float32), grid=(64,))
    assert np.array_equal(got, np.broadcast_to(np.float32(2.0**-24) * scale**2, (512, 512)))


@pytest.mark.parametrize("short", PRECISION)
@pytest.mark.parametrize("mode, cancelled", [("RZ", 0.0), ("RM", -0.0), ("RP", 0.0)])
@clause("MACH-7.mode", "RM-1.add.RZ", "RM-1.add.RM", "RM-1.add.RP")
def test_signs_of_fused_zeros(mode, cancelled, short):
    """Zeros of one sign keep it; zeros of both signs give the zero of the rounding direction, and so do sums that
    cancel.
    """
    dtype = PRECISION[short][0]

    @ct.kernel
    def k(x, y, z, out):
        p = ct.mul(ct.load(x, 0, 8), ct.load(y, 0, 8), rounding_mode=mode)
        ct.store(out, 0, ct.add(p, ct.load(z, 0, 8), rounding_mode=mode))

    x = np.array([0.0, -0.0, 0.0, -0.0, 3.0, -3.0, 0.0, -2.0], dtype)
    y = np.array([1.0, 1.0, 1.0, 1.0, 2.0, 2.0, -5.0, -0.0], dtype)
    z = np.array([0.0, -0.0, -0.0, 0.0, -6.0, 6.0, -0.0, 0.0], dtype)
    got = run(k, x, y, z, np.full(8, 9, dtype)).astype(np.float64)
    want = [0.0, -0.0, *[cancelled] * 4, -0.0, 0.0]
    assert got.tolist() == want and np.signbit(got).tolist() == np.signbit(want).tolist()


@clause("MACH-7.integer")
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_integers_wrap(dtype):
    @ct.kernel
    def k(a, out):
        x, y, z = ct.load(a, 0, 1), ct.load(a, 1, 1), ct.load(a, 2, 1)
        ct.store(out, 0, x * y + z)
        ct.store(out, 1, z - x * y)

    top, bits = int(np.iinfo(dtype).max), np.iinfo(dtype).bits
    a = np.array([top, 3, top - 1], dtype)
    got = run(k, a, np.zeros(2, dtype))
    want = [(top * 3 + top - 1), (top - 1 - top * 3)]
    assert [int(v) % (1 << bits) for v in got] == [w % (1 << bits) for w in want]
