"""The traps: every kind, in elementwise ops, reductions, scans, products, loops and helpers."""

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from tests.interp.sanitize.planted import SCHEDULES, Fault, both_tests, findings, report

f32, f64, i8, i16, i32, i64, u8 = np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8


def of(*values, dtype=f32):
    return np.array(values, dtype)


def new(*shape, dtype=f32):
    return np.zeros(shape, dtype)


# ------------------------------------------------------------------ nan


@ct.kernel
def exponential(x, y):
    i = ct.bid(0)
    t = ct.load(x, i, 4)
    e = ct.exp(t)  # fault: exponential
    ct.store(y, i, e / ct.sum(e))


@ct.kernel
def half_product(x, y):
    t = ct.load(x, (ct.bid(0), 0), (2, 2))
    ct.store(y, (ct.bid(0), 0), t * t)  # fault: product of halves


def logarithm(t):
    return ct.log(t)  # fault: logarithm in a helper


@ct.kernel
def entropy(x, y):
    i = ct.bid(0)
    p = ct.load(x, i, 4)
    ct.store(y, i, p * logarithm(p))


@ct.kernel
def mean_of_parts(x, counts, y):
    total = ct.zeros((), ct.float64)
    for k in range(3):
        n = ct.load(counts, k, ())
        total += ct.load(x, k, ()) / n  # fault: quotient in a loop
    ct.store(y, ct.bid(0), total)


@ct.kernel
def product_of_rows(x, y):
    t = ct.load(x, (ct.bid(0), 0), (2, 4))
    ct.store(y, ct.bid(0), ct.prod(t, 1))  # fault: product along an axis


@ct.kernel
def matrices(x, y, z):
    i = ct.bid(0)
    acc = ct.zeros((4, 4), ct.float16)
    acc = ct.mma(ct.load(x, (i, 0), (4, 4)), ct.load(y, (0, 0), (4, 4)), acc)  # fault: matrix product
    ct.store(z, (i, 0), acc)


@ct.kernel
def own_function(x, y):
    t = ct.load(x, ct.bid(0), 4)
    ct.store(y, ct.bid(0), ct.reduce(t, 0, lambda a, b: a * b, 1.0))  # fault: function of the user


@ct.kernel
def narrower(x, y):
    i = ct.bid(0)
    ct.store(y, i, ct.load(x, i, 2).astype(ct.float16))  # fault: narrower float


def big(row, column):
    x = np.ones((8, 4), np.float16)
    x[row, column] = 60000
    return x


NAN = [
    Fault("exponential", exponential, (2,), lambda: (of(0, 1, 2, 3, 4, 90, 1, 1), new(8)), (1, 0, 0), "", (1,),
          "exp() makes infinity from 90.0, at element (1,)", lambda: (of(0, 1, 2, 3, 4, 80), new(6))),
    Fault("product of halves", half_product, (2,), lambda: (of([1, 2], [3, 4], [5, 6], [7, 300], dtype=np.float16),
                                                            new(4, 2, dtype=np.float16)),
          (1, 0, 0), "", (1, 1), "mul() makes infinity from 300.0 and 300.0",
          lambda: (np.full((4, 2), 200, np.float16), new(4, 2, dtype=np.float16))),
    Fault("logarithm in a helper", entropy, (1,), lambda: (of(1, 0, 2, 3), new(4)), (0, 0, 0), "", (1,),
          "log() makes minus infinity from 0.0", lambda: (of(1, 2, 3), new(3))),
    Fault("quotient in a loop", mean_of_parts, (1,), lambda: (of(1, 0, 2, dtype=f64), of(1, 0, 2, dtype=f64),
                                                              new(1, dtype=f64)),
          (0, 0, 0), "", None, "truediv() makes NaN from 0.0 and 0.0",
          lambda: (of(1, 0, 2, dtype=f64), of(1, 1, 2, dtype=f64), new(1, dtype=f64))),
    Fault("product along an axis", product_of_rows, (2,), lambda: (np.full((4, 4), 10, f32) * of([1], [1], [1], [1e10]),
                                                                   new(4)),
          (1, 0, 0), "", (1,), "prod() makes infinity from finite elements",
          lambda: (of([np.inf, 1, 1, 1], [1, 1, 1, 1], [1, np.nan, 1, 1], [1, 1, 1, 1]), new(4))),
    Fault("matrix product", matrices, (2,), lambda: (big(6, 2), np.full((4, 4), 2, np.float16),
                                                     new(8, 4, dtype=np.float16)),
          (1, 0, 0), "", (2, 0), "mma() makes infinity from finite elements",
          lambda: (big(6, 2), np.ones((4, 4), np.float16) * np.float16(0.5), new(8, 4, dtype=np.float16))),
    Fault("function of the user", own_function, (2,), lambda: (np.full(8, 1e10, f32) ** of(*[0] * 4, *[1] * 4), new(2)),
          (1, 0, 0), "", None, "mul() makes infinity from 1.00000002", lambda: (np.full(8, 1e9, f32), new(2))),
    Fault("narrower float", narrower, (2,), lambda: (of(1, 2, 3, 70000), new(4, dtype=np.float16)), (1, 0, 0), "", (1,),
          "astype() makes infinity from 70000.0", lambda: (of(1, 2, np.inf, np.nan), new(4, dtype=np.float16))),
]
test_nan, test_nan_twins = both_tests("nan", NAN, __name__)


# ------------------------------------------------------------------ overflow


@ct.kernel
def offset(x, stride):
    i = ct.bid(0)
    at = i * stride  # fault: offset of a block
    ct.store(x, i, at.astype(ct.int64))


@ct.kernel
def bytes_added(x, y):
    t = ct.load(x, (ct.bid(0), 0), (2, 2))
    ct.store(y, (ct.bid(0), 0), t + t)  # fault: bytes


@ct.kernel
def below_zero(x, y, d):
    t = ct.load(x, ct.bid(0), 2)
    ct.store(y, ct.bid(0), t - ct.load(d, ct.bid(0), 2))  # fault: unsigned below zero


@ct.kernel
def long_sum(x, y):
    ct.store(y, ct.bid(0), ct.sum(ct.load(x, ct.bid(0), 4)))  # fault: sum of int64


@ct.kernel
def running(x, y):
    t = ct.load(x, ct.bid(0), 4)
    for _ in range(2):
        t = ct.cumsum(t)  # fault: running sum
    ct.store(y, ct.bid(0), t)


def magnitude(t):
    return abs(t)  # fault: magnitude in a helper


@ct.kernel
def distance(x, y):
    ct.store(y, ct.bid(0), magnitude(ct.load(x, ct.bid(0), 4)))


@ct.kernel
def integer_matrices(x, start, y):
    acc = ct.full((2, 2), start, ct.int32)
    t = ct.load(x, (ct.bid(0), 0), (2, 2))
    ct.store(y, (ct.bid(0), 0), ct.mma(t, t, acc))  # fault: matrix product of integers


@ct.kernel
def smallest_quotient(x, y, d):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 2) // d)  # fault: quotient


@ct.kernel
def long_product(x, y):
    t = ct.load(x, ct.bid(0), 2)
    ct.store(y, ct.bid(0), t * t)  # fault: product of int64


OVERFLOW = [
    Fault("offset of a block", offset, (4,), lambda: (new(4, dtype=i64), 1 << 30), (2, 0, 0), "", None,
          "mul() of 2 and 1073741824 does not fit int32 and wraps to -2147483648",
          lambda: (new(4, dtype=i64), 1 << 29)),
    Fault("bytes", bytes_added, (2,), lambda: (of([1, 2], [3, 4], [5, 64], [7, 8], dtype=i8), new(4, 2, dtype=i8)),
          (1, 0, 0), "", (0, 1), "add() of 64 and 64 does not fit int8 and wraps to -128",
          lambda: (of([1, 2], [3, 4], [5, 63], [-64, 8], dtype=i8), new(4, 2, dtype=i8))),
    Fault("unsigned below zero", below_zero, (1,), lambda: (of(3, 3, dtype=u8), new(2, dtype=u8), of(3, 4, dtype=u8)),
          (0, 0, 0), "", (1,), "sub() of 3 and 4 does not fit uint8 and wraps to 255",
          lambda: (of(255, 3, dtype=u8), new(2, dtype=u8), of(0, 3, dtype=u8))),
    Fault("sum of int64", long_sum, (2,), lambda: (of(*[1] * 4, *[1 << 61] * 4, dtype=i64), new(2, dtype=i64)),
          (1, 0, 0), "", None, "sum() does not fit int64 and wraps to -9223372036854775808",
          lambda: (of(*[1] * 4, *[(1 << 61) - 1] * 4, dtype=i64), new(2, dtype=i64))),
    Fault("running sum", running, (1,), lambda: (of(9000, 9000, 0, 0, dtype=i16), new(4, dtype=i16)), (0, 0, 0), "",
          (2,), "cumsum() does not fit int16 and wraps to -20536",
          lambda: (of(9000, 0, 0, -9000, dtype=i16), new(4, dtype=i16))),
    Fault("magnitude in a helper", distance, (1,), lambda: (of(1, -5, -2**31, 3, dtype=i32), new(4, dtype=i32)),
          (0, 0, 0), "", (2,), "abs() of -2147483648 does not fit int32",
          lambda: (of(1, -5, 1 - 2**31, 3, dtype=i32), new(4, dtype=i32))),
    Fault("matrix product of integers", integer_matrices, (1,),
          lambda: (of([1, 2], [3, 4], dtype=i8), 2**31 - 11, new(2, 2, dtype=i32)), (0, 0, 0), "", (1, 0),
          "mma() does not fit int32", lambda: (of([1, 2], [3, 4], dtype=i8), 2**31 - 23, new(2, 2, dtype=i32))),
    Fault("quotient", smallest_quotient, (1,), lambda: (of(7, -2**63, dtype=i64), new(2, dtype=i64), -1), (0, 0, 0), "",
          (1,), "floordiv() of -9223372036854775808 and -1", lambda: (of(7, -2**63, dtype=i64), new(2, dtype=i64), 0)),
    Fault("product of int64", long_product, (1,), lambda: (of(3037000500, 2, dtype=i64), new(2, dtype=i64)), (0, 0, 0),
          "", (0,), "mul() of 3037000500 and 3037000500", lambda: (of(3037000499, -3037000499, dtype=i64),
                                                                   new(2, dtype=i64))),
]
test_overflow, test_overflow_twins = both_tests("overflow", OVERFLOW, __name__)


# ------------------------------------------------------------------ cast


@ct.kernel
def to_int32(x, y):
    i = ct.bid(0)
    ct.store(y, i, ct.load(x, i, 2).astype(ct.int32))  # fault: to int32


@ct.kernel
def to_bytes(x, y):
    t = ct.load(x, (0, ct.bid(0)), (2, 2))
    ct.store(y, (0, ct.bid(0)), ct.astype(t * 2, ct.uint8))  # fault: to bytes


def index_of(p):
    return p.astype(ct.int64)  # fault: index in a helper


@ct.kernel
def looked_up(p, x, y):
    k = index_of(ct.gather(p, ct.arange(2, dtype=ct.int32)))
    ct.store(y, 0, ct.gather(x, k))


@ct.kernel
def in_a_loop(x, y):
    t = ct.load(x, ct.bid(0), ())
    for k in range(4):
        t = t * 10
        ct.store(y, k, t.astype(ct.int16))  # fault: in a loop


@ct.kernel
def half_to_bytes(x, y):
    ct.store(y, 0, ct.load(x, 0, 4).astype(ct.int8))  # fault: half to bytes


CAST = [
    Fault("to int32", to_int32, (2,), lambda: (of(1, 2, 3, 2**31), new(4, dtype=i32)), (1, 0, 0), "", (1,),
          "astype(): 2147483648.0 does not fit int32, and becomes ",
          lambda: (of(1, -2**31, 3, 2147483520), new(4, dtype=i32))),
    Fault("to int32", to_int32, (2,), lambda: (of(1, np.nan, 3, 2), new(4, dtype=i32)), (0, 0, 0), "", (1,),
          "astype(): nan does not fit int32", lambda: (of(1, 2, 3), new(4, dtype=i32))),
    Fault("to bytes", to_bytes, (2,), lambda: (of([1, 2, -1, 4], [5, 6, 7, 8]), new(2, 4, dtype=u8)), (1, 0, 0), "",
          (0, 0), "astype(): -2.0 does not fit uint8",
          lambda: (of([1, 2, -.4, 127.9], [5, 6, 7, 8]), new(2, 4, dtype=u8))),
    Fault("index in a helper", looked_up, (1,),
          lambda: (of(1, 2.0**63, dtype=f64), new(4), new(2)), (0, 0, 0), "", (1,),
          "does not fit int64", lambda: (of(1, -2.0**63, dtype=f64), new(4), new(2))),
    Fault("in a loop", in_a_loop, (1,), lambda: (of(-4), new(4, dtype=i16)), (0, 0, 0), "", None,
          "astype(): -40000.0 does not fit int16", lambda: (of(-3), new(4, dtype=i16))),
    Fault("half to bytes", half_to_bytes, (1,), lambda: (of(1, 2, 3, np.inf, dtype=np.float16), new(4, dtype=i8)),
          (0, 0, 0), "", (3,), "astype(): inf does not fit int8",
          lambda: (of(1, 2, -128.9, 127.9, dtype=np.float16), new(4, dtype=i8))),
]
test_cast, test_cast_twins = both_tests("cast", CAST, __name__)


# ------------------------------------------------------------------ division


@ct.kernel
def quotients(x, d, y):
    i = ct.bid(0)
    ct.store(y, i, ct.load(x, i, 4) / ct.load(d, i, 4))  # fault: quotient of floats


@ct.kernel
def integer_quotients(x, d, y):
    i = ct.bid(0)
    ct.store(y, (0, i), ct.load(x, (0, i), (2, 2)) // ct.load(d, (0, i), (2, 2)))  # fault: quotient of integers


def wrapped(i, n):
    return i % n  # fault: remainder in a helper


@ct.kernel
def ring(y, n):
    ct.store(y, ct.bid(0), wrapped(ct.bid(0), n))


@ct.kernel
def parts(y, sizes):
    for k in range(3):
        n = ct.load(sizes, k, ())
        ct.store(y, k, ct.cdiv(100, n))  # fault: number of parts


@ct.kernel
def pairs(x, y, d):
    q, r = divmod(ct.load(x, ct.bid(0), 2), d)  # fault: pair
    ct.store(y, ct.bid(0), q + r)


@ct.kernel
def float_remainder(x, d, y):
    i = ct.bid(0)
    k = ct.load(d, i, 2)
    ct.store(y, i, ct.load(x, i, 2) % ct.gather(d, k.astype(ct.int32) * 0))  # fault: remainder of floats


DIVISION = [
    Fault("quotient of floats", quotients, (2,), lambda: (of(*range(8)), of(1, 2, 3, 4, 5, 0, 7, 8), new(8)), (1, 0, 0),
          "", (1,), "truediv() divides 5.0 by zero", lambda: (of(*range(7)), of(*range(1, 8)), new(7))),
    Fault("quotient of integers", integer_quotients, (2,),
          lambda: (of([1, 2, 3, 4], [5, 6, 7, 8], dtype=i8), of([1, 1, 1, 1], [1, 1, 1, 0], dtype=i8),
                   new(2, 4, dtype=i8)), (1, 0, 0), "", (1, 1), "floordiv() divides 8 by zero",
          lambda: (of([1, 2, 3], [5, 6, 7], dtype=i8), of([1, 1, 1], [1, 1, -1], dtype=i8), new(2, 3, dtype=i8))),
    Fault("remainder in a helper", ring, (3,), lambda: (new(3, dtype=i32), 0), (0, 0, 0), "", None,
          "mod() divides 0 by zero", lambda: (new(3, dtype=i32), 2)),
    Fault("number of parts", parts, (1,), lambda: (new(3, dtype=i64), of(1, 2, 0, dtype=i64)), (0, 0, 0), "", None,
          "cdiv() divides 100 by zero", lambda: (new(3, dtype=i64), of(1, 2, 3, dtype=i64))),
    Fault("pair", pairs, (1,), lambda: (of(1, 2, dtype=i32), new(2, dtype=i32), 0), (0, 0, 0), "", (0,),
          "divmod() divides 1 by zero", lambda: (of(1, 2, dtype=i32), new(2, dtype=i32), -1)),
    Fault("remainder of floats", float_remainder, (1,), lambda: (of(1, 2, dtype=f64), of(-0.0, 2, dtype=f64),
                                                                 new(2, dtype=f64)),
          (0, 0, 0), "", (0,), "mod() divides 1.0 by zero", lambda: (of(1, 2, dtype=f64), of(1, 0, dtype=f64),
                                                                     new(2, dtype=f64))),
]
test_division, test_division_twins = both_tests("division", DIVISION, __name__)


# ------------------------------------------------------------------ elements beyond the end


@ct.kernel
def row_means(x, counts, y, n: ct.Constant[int]):
    """Every row, and every divisor, ends before its tile does."""
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (4, n), padding_mode=ct.PaddingMode.ZERO)
    c = ct.load(counts, i, 4, padding_mode=ct.PaddingMode.ZERO)
    s = ct.cumsum(t, 1)
    m = ct.sum(t, 1) / c
    k = ct.load(counts, i, 4, padding_mode=ct.PaddingMode.NAN).astype(ct.int32)
    ct.store(y, (i, 0), (t - m[:, None]) / s + k.astype(ct.float32)[:, None])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_padding_is_passed_over(schedule):
    def run(count):
        x, counts = np.ones((6, 5), f32), np.full(6, 5, f32)
        counts[4] = count
        return findings("traps", row_means, (2,), (x, counts, new(6, 5), 8), schedule)

    assert run(5) == ()
    assert {(e.check, e.element, e.block) for e in run(0)} == {("nan", (0,), (1, 0, 0)), ("division", (0,), (1, 0, 0))}


@ct.kernel
def masked_product(x, y, z, k, n: ct.Constant[int]):
    """A product whose last rows and columns are padding, in a loop over its inner axis, which ends before its tile."""
    acc = ct.zeros((4, 4), ct.float32)
    for j in range(ct.num_tiles(x, 1, (4, 4))):
        a = ct.load(x, (0, j), (4, 4), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, ct.load(y, (j, 0), (4, 4), padding_mode=ct.PaddingMode.ZERO), acc)
    at = ct.arange(4, dtype=ct.int32)
    some = ct.gather(k, at, mask=at < n, padding_value=0.0)
    ct.store(z, (0, 0), 1 / acc + (1 / some)[:, None])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("first, n, found", [(1, 3, set()), (0, 3, {(0, 0)}), (1, 4, {(3,)})])
def test_only_padding_makes_padding_of_a_product(first, n, found, schedule):
    x, y = np.ones((3, 6), f32), np.ones((6, 2), f32)
    x[0] *= first
    got = findings("division", masked_product, (1,), (x, y, new(3, 2), of(1, 2, 3, 0), n), schedule)
    assert {e.element for e in got} == found


@ct.kernel
def of_batches(x, y, z):
    i = ct.bid(0)
    t = ct.matmul(ct.load(x, (i, 0, 0), (2, 2, 2)), ct.load(y, (0, 0), (2, 2)))
    ct.store(z, (i, 0, 0), 1 / t)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_products_of_batches(schedule):
    x, y = np.full((3, 2, 2), 1e30, f32), np.full((2, 2), 1e30, f32)
    x[0], x[2, 1] = 1, 0
    got = findings("traps", of_batches, (2,), (x, y, new(3, 2, 2)), schedule)
    assert [(e.check, e.block, e.element, e.times) for e in got] == [
        ("nan", (0, 0, 0), (1, 0, 0), 2), ("nan", (1, 0, 0), (0, 1, 0), 1), ("division", (1, 0, 0), (0, 1, 0), 1)]


# ------------------------------------------------------------------ functions of reduce, scan and elementwise


def scaled_sum(a, b):
    return (a + b) * 2  # fault: product in a reduction


@ct.kernel
def scaled(x, y):
    t = ct.load(x, (ct.bid(0), 0), (2, 4))
    ct.store(y, ct.bid(0), ct.reduce(t, 1, scaled_sum, 0))


def at_most(a, b):
    rounded = a.astype(ct.int16)  # fault: conversion in a scan
    return ct.minimum(rounded.astype(ct.float32), b)


@ct.kernel
def running_minimum(x, y):
    i = ct.bid(0)
    ct.store(y, i, ct.scan(ct.load(x, i, 4), 0, at_most, 0.0, reverse=True))


@ct.kernel
def quotients_of_pairs(x, d, y, z):
    i = ct.bid(0)

    def both(a, n, b, m):
        return a // m, n + m  # fault: quotient in a pair

    pair = ct.load(x, i, 4), ct.load(d, i, 4)
    s, n = ct.reduce(pair, 0, both, (0, 0))
    ct.store(y, i, s)
    ct.store(z, i, n)


@ct.kernel
def root_of_captured(x, y, k):
    i = ct.bid(0)
    less = ct.load(k, i, ())
    t = ct.scan(ct.load(x, i, 4), 0, lambda a, b: ct.sqrt(a + b - less), 0.0)  # fault: root in a scan
    ct.store(y, i, t)


def falling(n):
    if n > 1:
        return n * falling_of(n - 1)  # fault: product in an element function
    return n


def falling_of(n):
    return n * 1000


@ct.kernel
def of_elements(x, y):
    ct.store(y, ct.bid(0), ct.elementwise(falling, ct.load(x, ct.bid(0), 4)))


def halves(x, n):
    while n > 0:
        x = 1 / (x - n)  # fault: quotient in a loop of elements
        n -= 1
    return x


@ct.kernel
def loop_of_elements(x, n, y):
    i = ct.bid(0)
    ct.store(y, (i, 0), ct.elementwise(halves, ct.load(x, (i, 0), (2, 2)), ct.load(n, (i, 0), (2, 2))))


def chosen(a, b):
    return ct.elementwise(lambda p, q: p // q if q != 7 else p, a, b)  # fault: quotient in both


@ct.kernel
def of_elements_in_a_reduction(x, y):
    ct.store(y, ct.bid(0), ct.reduce(ct.load(x, ct.bid(0), 4), 0, chosen, 1))


FUNCTIONS = [
    ("overflow", Fault("product in a reduction", scaled, (2,),
                       lambda: (of([1] * 4, [2] * 4, [3] * 4, [13] * 4, dtype=i8), new(4, dtype=i8)),
                       (1, 0, 0), "", None, "mul() of 104 and 2 does not fit int8 and wraps to -48",
                       lambda: (of([1] * 4, [2] * 4, [3] * 4, [7] * 4, dtype=i8), new(4, dtype=i8)))),
    ("cast", Fault("conversion in a scan", running_minimum, (2,), lambda: (of(1, 2, 3, 4, 5, 6, 7, 40000), new(8)),
                   (1, 0, 0), "", None, "astype(): 40000.0 does not fit int16",
                   lambda: (of(40000, 2, 3, 4, 5, 6, 7, 8), new(8)))),
    ("division", Fault("quotient in a pair", quotients_of_pairs, (2,),
                       lambda: (of(1, 2, 3, 4, 5, 6, 7, 8, dtype=i32), of(1, 1, 1, 1, 1, 1, 1, 0, dtype=i32),
                                new(2, dtype=i32), new(2, dtype=i32)), (1, 0, 0), "", None,
                       "floordiv() divides 6 by zero",
                       lambda: (of(1, 2, 3, 4, 5, 6, 7, 8, dtype=i32), of(0, 1, 1, 1, 0, 1, 1, 1, dtype=i32),
                                new(2, dtype=i32), new(2, dtype=i32)))),
    ("nan", Fault("root in a scan", root_of_captured, (2,), lambda: (of(*[1] * 8), new(8), of(0, 3)), (1, 0, 0), "",
                  None, "sqrt() makes NaN from -1.0", lambda: (of(*[1] * 8), new(8), of(0, 1)))),
    ("overflow", Fault("product in an element function", of_elements, (2,),
                       lambda: (of(1, 2, 3, 4, 0, -5, 1500, 9, dtype=i32), new(8, dtype=i32)), (1, 0, 0), "", (2,),
                       "mul() of 1500 and 1499000 does not fit int32",
                       lambda: (of(1, -2147483648, 3, 4, 0, -1500, 1400, 9, dtype=i32), new(8, dtype=i32)))),
    ("division", Fault("quotient in a loop of elements", loop_of_elements, (2,),
                       lambda: (of([1, 2], [3, 4], [1, 2], [.5, 9]), of([0, 1], [1, 1], [0, 0], [2, 9], dtype=i32),
                                new(4, 2)), (1, 0, 0), "", (1, 1), "truediv() divides 1.0 by zero",
                       lambda: (of([1, 2], [3, 4], [1, 2], [.5, 9]), of([0, 1], [1, 1], [0, 0], [2, 8], dtype=i32),
                                new(4, 2)))),
    ("division", Fault("quotient in both", of_elements_in_a_reduction, (2,),
                       lambda: (of(1, 2, 7, 7, 8, 8, 7, 0, dtype=i32), new(2, dtype=i32)), (1, 0, 0), "", None,
                       "floordiv() divides 8 by zero",
                       lambda: (of(1, 2, 7, 7, 8, 8, 7, 7, dtype=i32), new(2, dtype=i32)))),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("check, fault", FUNCTIONS, ids=[f.name for _, f in FUNCTIONS])
def test_functions(check, fault, schedule):
    report(check, fault, schedule, __file__)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("check, fault", FUNCTIONS, ids=[f.name for _, f in FUNCTIONS])
def test_twins_of_functions(check, fault, schedule):
    assert findings(check, fault.kernel, fault.grid, fault.twin(), schedule, CHECK=True) == ()


@ct.kernel
def ratio_of_rows(x, y):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (2, 4), padding_mode=ct.PaddingMode.ZERO)
    ct.store(y, i, ct.reduce(t, 1, lambda a, b: a / b, 1.0))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_padding_in_a_function_counts_where_its_row_has_elements(schedule):
    """Rows beyond the end are dropped, padding at the end of a row is not."""
    assert findings("traps", ratio_of_rows, (2,), (np.ones((3, 4), f32), new(3)), schedule) == ()
    found = findings("traps", ratio_of_rows, (2,), (np.ones((3, 1), f32), new(3)), schedule)
    assert ("division", (0, 0, 0)) in {(e.check, e.block) for e in found}


def steps(x, n):
    while n > 0:
        x, n = x / 2, n - 1
    return x


@ct.kernel
def loop_up_to_padding(x, n, y):
    i = ct.bid(0)
    ct.store(y, i, ct.elementwise(steps, ct.load(x, i, 4), ct.load(n, i, 4)))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_loops_of_elements_beyond_the_end_concern_no_other_element(schedule):
    args = of(1, 2, 3, 4, 5), of(1, 2, 3, 4, 5, dtype=i32), new(5)
    assert findings("all,traps", loop_up_to_padding, (2,), args, schedule, CHECK=True) == ()
    assert list(args[-1]) == [.5, .5, .375, .25, 5 / 32]
    (e,) = findings("all,traps", loop_up_to_padding, (2,), (*args[:2], new(6)), schedule)
    assert (e.check, e.array, e.element) == ("undetermined", "y", (5,))


# ------------------------------------------------------------------ what is asked for


def test_all_leaves_traps_out_and_together_they_report_once():
    args = of(0, 1, 2, 3, 4, 90, 1, 1), new(8)
    assert findings("all", exponential, (2,), args) == ()
    (e,) = findings("traps,all", exponential, (2,), args)
    assert e.check == "nan"


@ct.kernel
def selected(x, d, y):
    t, k = ct.load(x, 0, 4), ct.load(d, 0, 4)
    k = ct.where(k == 0, 1.0, k)
    ct.store(y, 0, ct.where(t > 0, t / k, -np.inf))


def test_values_that_are_only_moved_are_not_made():
    """Neither are those of a constant, a selection, bits, or an operand that is not finite."""
    assert findings("traps", selected, (1,), (of(-1, 2, np.inf, np.nan), of(0, 1, 0, 2), new(4))) == ()


def test_undetermined_and_traps_together():
    """The other checks see a program in which the traps have no part."""
    x, counts = np.ones((6, 5), f32), np.full(6, 5, f32)
    counts[0] = 0
    with settings.override(CHECK=True):
        got = findings("all,traps", row_means, (2,), (x, counts, new(6, 5), 8))
    assert sorted(e.check for e in got) == ["division", "nan"]
