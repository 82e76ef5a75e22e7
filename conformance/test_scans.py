"""Inclusive prefixes: cumsum, cumprod, scan [SCAN]."""

import itertools
import operator
from fractions import Fraction

import numpy as np
import pytest

from conformance.harness.api import clause, ct, refuses
from conformance.harness.exact_arithmetic import exact, flushed
from conformance.harness.integer_arithmetic import integer_pairs, wrap
from conformance.harness.number_comparison import same_numbers
from conformance.harness.number_formats import FORMATS, INTEGERS, encode, values
from conformance.harness.number_samples import sample
from conformance.harness.operand_types import refused, typed
from conformance.harness.reductions import TINY, reduced

FLOATS = ("float16", "bfloat16", "float32", "float64")
RESTRICTED = ("tfloat32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu", "float4_e2m1fn")
TABLE = {"cumsum": (ct.cumsum, operator.add, "add"), "cumprod": (ct.cumprod, operator.mul, "mul")}
MODES = ("RN", "RZ", "RM", "RP")


def each(*subs):
    return pytest.mark.parametrize("name", [pytest.param(n, marks=clause(*(s.format(n) for s in subs))) for n in TABLE])


def prefixes(x, axis, reverse, f):
    """Nested lists of Python numbers: f along an axis of an array."""
    x = np.moveaxis(np.array(x, object), axis, -1)
    out = np.empty_like(x)
    for at in itertools.product(*map(range, x.shape[:-1])):
        row = list(x[at])[::-1] if reverse else list(x[at])
        row = list(itertools.accumulate(row, f))
        out[at] = row[::-1] if reverse else row
    return np.moveaxis(out, -1, axis)


@pytest.mark.parametrize("d", INTEGERS)
@each("SCAN-1.{}.first", "SCAN-1.{}.reverse", "SCAN-2.{}.axis", "SCAN-3.{}.dtype")
def test_integers(name, d):
    f, oracle, _ = TABLE[name]
    x = (np.resize(integer_pairs(d)[1], 64) | np.array(1, d)).reshape(4, 2, 8)
    for axis, reverse in ((0, False), (1, True), (2, False), (-1, True), (-3, True)):
        got = reduced(lambda t: f(t, axis, reverse=reverse), x.view(f"u{x.itemsize}"), d, (4, 2, 8), d)
        want = prefixes(x.astype(object), axis, reverse, lambda a, b: wrap(oracle(a, b), d))
        assert (got.astype(object) == want).all(), (axis, reverse)
    got = reduced(lambda t: f(t), x.view(f"u{x.itemsize}"), d, (4, 2, 8), d)
    assert (got.astype(object) == prefixes(x.astype(object), 0, False, lambda a, b: wrap(oracle(a, b), d))).all()


@each("SCAN-3.{}.bool")
def test_masks(name):
    f, oracle, _ = TABLE[name]
    x = np.array([1, 1, 0, 1, 1, 1, 1, 0], bool)
    for reverse in (False, True):
        got = reduced(lambda t: f(t, 0, reverse=reverse), x, "bool_", (8,), "int32")
        assert got.tolist() == prefixes(x.astype(int), 0, reverse, oracle).tolist()


@pytest.mark.parametrize("d", FLOATS)
@each("SCAN-1.{}.first", "SCAN-1.{}.reverse", "SCAN-3.{}.dtype")
def test_exact_prefixes(name, d):
    f, oracle, _ = TABLE[name]
    rng = np.random.default_rng(5)
    x = rng.integers(-3, 4, (8, 16)).astype(float) if name == "cumsum" else rng.choice([1.0, -1.0, 2.0, 0.5], (8, 16))
    for axis, reverse in itertools.product((0, 1), (False, True)):
        got = reduced(lambda t: f(t, axis, reverse=reverse), encode(d, x), d, (8, 16), d)
        assert (got == prefixes(x, axis, reverse, oracle).astype(float)).all()


@pytest.mark.parametrize("d", FLOATS)
@each("SCAN-5.{}.order")
def test_prefixes_in_any_order(name, d):
    f, oracle, _ = TABLE[name]
    rng = np.random.default_rng(6)
    p = FORMATS[d].fraction + 1
    x = encode(d, rng.uniform(0.9, 1.1, (4, 64)) * rng.choice([1.0, -1.0], (4, 64)))
    got = reduced(lambda t: f(t, 1), x, d, (4, 64), d)
    for row, out in zip(values(d, x).reshape(4, 64).tolist(), got.tolist(), strict=True):
        terms = list(map(Fraction, row))
        sizes = itertools.accumulate(map(abs, terms), oracle)
        for j, (g, want, size) in enumerate(zip(out, itertools.accumulate(terms, oracle), sizes, strict=True)):
            assert abs(Fraction(g) - want) <= (j + 1) * size / 2**p


@pytest.mark.parametrize("d", FLOATS)
@pytest.mark.parametrize(
    "name, mode", [pytest.param(n, m, marks=clause(f"RM-1.{n}.{m}")) for n in TABLE for m in MODES]
)
def test_rounding_of_two(name, mode, d):
    f, _, op = TABLE[name]
    x = np.stack([sample(d, 200, 1, near=True), sample(d, 200, 2, near=True)], axis=1)
    want = np.array([exact(op, d, p, q, mode=mode) for p, q in values(d, x).tolist()])
    got = reduced(lambda t: f(t, 1, rounding_mode=mode), x[:128], d, (128, 2), d)
    same_numbers(got[:, 1], want[:128])
    same_numbers(got[:, 0], values(d, x[:128, 0]))


@each("FTZ-1.{}")
@pytest.mark.parametrize("mode", [None, "RZ"])
def test_flushing(name, mode):
    f, _, op = TABLE[name]
    got = reduced(
        lambda t: f(t, 1, flush_to_zero=True, rounding_mode=mode),
        encode("float32", np.array(TINY)),
        "float32",
        (8, 2),
        "float32",
    )
    same_numbers(got[:, 1], np.array([flushed(exact(op, "float32", flushed(a), flushed(b))) for a, b in TINY]))
    same_numbers(got[:, 0], np.array([flushed(a) for a, _ in TINY]))
    plain = reduced(lambda t: f(t, 1), encode("float32", np.array(TINY)), "float32", (8, 2), "float32")
    same_numbers(plain[:, 1], np.array([exact(op, "float32", a, b) for a, b in TINY]))


@each(
    "RM-1.{}.other",
    "RM-2.{}.int",
    "FTZ-1.{}.dtype",
    "SCAN-2.{}.axis",
    "SCAN-2.{}.rank",
    "SCAN-2.{}.const",
    "SCAN-3.{}.restricted",
    "SCAN-3.{}.dtype",
)
def test_options(name):
    f = TABLE[name][0]
    for d in (*INTEGERS, *FLOATS):
        typed(lambda x: f(x, 1), f"{d} (2, 4)", dtype=d, shape=(2, 4))
    for mode in ("RA", "FULL", "APPROX", "RZI", "nearest_even", 1):
        refused(lambda x: f(x, rounding_mode=mode), "float32")
    for d in (*INTEGERS, "bool_"):
        refused(lambda x: f(x, rounding_mode="RN"), d)
        refused(lambda x: f(x, rounding_mode="RZ"), d)
        refused(lambda x: f(x, flush_to_zero=True), d)
    for d in ("float16", "bfloat16", "float64"):
        refused(lambda x: f(x, flush_to_zero=True), d)
    for d in RESTRICTED:
        refused(lambda x: f(x), d)
    for bad in (None, (0,), (), 1, -2, True, 0.0, "0"):
        refused(lambda x: f(x, bad), "float32")
    refused(lambda x, a: f(x, a), "float32", "int32 ()")
    refused(lambda x: f(x), "float32 ()")
    for bad in (1, None, "True"):
        refused(lambda x: f(x, reverse=bad), "float32")
        refused(lambda x: f(x, flush_to_zero=bad), "float32")
    refused(lambda x, r: f(x, reverse=r), "float32", "bool_ ()")
    refused(lambda x: f(x, 0, True), "float32")
    for bad in (None, "1", (1, 2)):
        refused(lambda: f(bad))

    @ct.kernel
    def k(a):
        f(a)

    refuses("TileTypeError", k, np.zeros(4, np.float32))


# ------------------------------------------------------------------ scan


def affine(a0, b0, a1, b1):
    """Composition of x -> a*x + b: associative, not commutative; the earlier one comes first."""
    return a0 * a1, b0 * a1 + b1


@clause("SCAN-1.first", "SCAN-1.order", "SCAN-1.reverse", "SCAN-4.tuple")
@pytest.mark.parametrize("axis, reverse", [(0, False), (1, False), (-1, True), (0, True), (-2, False)])
def test_scan_of_a_function_that_does_not_commute(axis, reverse):
    rng = np.random.default_rng(2)
    x = rng.integers(-3, 4, 64).astype(np.int32)

    def fn(t):
        p, q = ct.scan((t, t + 5), axis, affine, (1, 0), reverse=reverse)
        return ct.cat((p, q), 0)

    got = reduced(fn, x.view(np.uint32), "int32", (8, 8), "int32")
    pairs = np.empty((8, 8), object)
    for i, v in enumerate(x.tolist()):
        pairs[i // 8, i % 8] = (v, v + 5)
    moved = np.moveaxis(pairs, axis, -1)
    out = np.empty_like(moved)
    for i in range(8):
        row = list(moved[i])[::-1] if reverse else list(moved[i])
        row = list(itertools.accumulate(row, lambda a, b: tuple(wrap(v, "int32") for v in affine(*a, *b))))
        for j, v in enumerate(row[::-1] if reverse else row):
            out[i, j] = v
    out = np.moveaxis(out, -1, axis)
    assert got[:8].tolist() == [[v[0] for v in r] for r in out] and got[8:].tolist() == [[v[1] for v in r] for r in out]


@clause("SCAN-1.order", "SCAN-1.first", "SCAN-4.func")
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_of_the_last_and_the_first(reverse):
    x = np.arange(8, dtype=np.int32)
    got = reduced(
        lambda t: ct.scan(t, 0, lambda a, b: a, 99, reverse=reverse), x.view(np.uint32), "int32", (8,), "int32"
    )
    assert got.tolist() == ([7] * 8 if reverse else [0] * 8)
    got = reduced(
        lambda t: ct.scan(t, 0, lambda a, b: b, 99, reverse=reverse), x.view(np.uint32), "int32", (8,), "int32"
    )
    assert got.tolist() == list(range(8))
    for func, oracle in ((operator.add, operator.add), (ct.maximum, max), (min, min)):
        got = reduced(lambda t: ct.scan(t ^ 3, 0, func, 0, reverse=reverse), x.view(np.uint32), "int32", (8,), "int32")
        assert got.tolist() == prefixes(x ^ 3, 0, reverse, oracle).tolist()


@clause("SCAN-1.first")
def test_scan_of_one_element():
    x = np.array([7], np.int32)
    assert reduced(
        lambda t: ct.scan(t, 0, lambda a, b: a + b, 100), x.view(np.uint32), "int32", (1,), "int32"
    ).tolist() == [7]
    typed(
        lambda t, u: ct.scan((t, u), 1, lambda a, b, c, d: (a + c, b + d), (0, 0))[1],
        "int32 (4, 1)",
        "int8 (8,)",
        dtype="int8",
        shape=(4, 8),
    )
    typed(lambda t: ct.scan((t,), 0, lambda a, b: (a + b,), (0,))[0], "float16", dtype="float16")


def add(a, b):
    return a + b


@pytest.mark.parametrize(
    "fn",
    [
        *(
            pytest.param(f, marks=clause("SCAN-2.axis"))
            for f in (
                lambda t: ct.scan(t, None, add, 0),
                lambda t: ct.scan(t, (0,), add, 0),
                lambda t: ct.scan(t, 2, add, 0),
                lambda t: ct.scan(t, -3, add, 0),
                lambda t: ct.scan(t, True, add, 0),
                lambda t: ct.scan(t, ct.bid(0), add, 0),
                lambda t: ct.scan(t, 0.0, add, 0),
            )
        ),
        pytest.param(lambda t: ct.scan(5, 0, add, 0), marks=clause("SCAN-2.rank")),
        *(
            pytest.param(f, marks=clause("SCAN-2.const"))
            for f in (
                lambda t: ct.scan(t, 0, add, 0, reverse=1),
                lambda t: ct.scan(t, 0, add, 0, reverse=None),
                lambda t: ct.scan(t, 0, add, 0, reverse=ct.bid(0) == 0),
            )
        ),
        *(
            pytest.param(f, marks=clause("SCAN-4.func"))
            for f in (
                lambda t: ct.scan(t, 0, 5, 0),
                lambda t: ct.scan(t, 0, None, 0),
                lambda t: ct.scan(t, 0, lambda a: a, 0),
                lambda t: ct.scan(t, 0, t, 0),
            )
        ),
        *(
            pytest.param(f, marks=clause("SCAN-4.identity"))
            for f in (
                lambda t: ct.scan(t, 0, add, None),
                lambda t: ct.scan(t, 0, add, (0,)),
                lambda t: ct.scan(t, 0, add, ct.bid(0)),
                lambda t: ct.scan((t, t), 0, affine, 0),
                lambda t: ct.scan((t, t), 0, affine, (0, 0, 0)),
            )
        ),
        *(
            pytest.param(f, marks=clause("SCAN-4.result"))
            for f in (
                lambda t: ct.scan(t, 0, lambda a, b: (a, b), 0),
                lambda t: ct.scan(t, 0, lambda a, b: None, 0),
                lambda t: ct.scan((t, t), 0, lambda a, b, c, d: a, (0, 0)),
                lambda t: ct.scan((t, t), 0, lambda a, b, c, d: (a, b, c), (0, 0)),
                lambda t: ct.scan(t, 0, lambda a, b: ct.zeros(4, ct.int32), 0),
            )
        ),
        *(
            pytest.param(f, marks=clause("SCAN-4.cast"))
            for f in (
                lambda t: ct.scan(t, 0, lambda a, b: a + 0.5, 0),
                lambda t: ct.scan(t, 0, lambda a, b: ct.astype(a, ct.int64), 0),
            )
        ),
        *(
            pytest.param(f, marks=clause("SCAN-4.tuple"))
            for f in (lambda t: ct.scan((), 0, add, ()), lambda t: ct.scan((t, None), 0, affine, (0, 0)))
        ),
    ],
)
def test_scan_refuses(fn):
    refused(fn, "int32 (2, 4)")


@clause("SCAN-4.cast")
def test_results_are_cast():
    typed(lambda t: ct.scan(t, 0, lambda a, b: ct.int8(a) + ct.int8(b), 0), "int32", dtype="int32")
    x = np.array([100, 100, 300, 4], np.int32)
    got = reduced(
        lambda t: ct.scan(t, 0, lambda a, b: ct.int8(a) + ct.int8(b), 0), x.view(np.uint32), "int32", (4,), "int32"
    )
    assert got.tolist() == [100, -56, -12, -8]
    typed(lambda t: ct.scan(t, 0, lambda a, b: a, 300), "int8", dtype="int8")
