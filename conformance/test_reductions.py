"""Sums, products and extremes: axes, shapes, dtypes, sums in any order [RED-1 … RED-5, RED-7]."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from conformance.harness.api import clause, ct, refuses, run
from conformance.harness.exact_arithmetic import exact, flushed
from conformance.harness.integer_arithmetic import integer_pairs, wrap
from conformance.harness.number_comparison import same_numbers
from conformance.harness.number_formats import FORMATS, INTEGERS, encode, values
from conformance.harness.number_samples import sample
from conformance.harness.operand_types import refused, typed
from conformance.harness.reductions import TINY, reduced

inf, nan = math.inf, math.nan


FLOATS = ("float16", "bfloat16", "float32", "float64")


RESTRICTED = ("tfloat32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu", "float4_e2m1fn")


SUMS = {"sum": ct.sum, "prod": ct.prod}


EXTREMES = {"max": ct.max, "min": ct.min}


INDICES = {"argmax": ct.argmax, "argmin": ct.argmin}


SHAPE = (2, 4, 8)


def each(table, *subs):
    return pytest.mark.parametrize("name", [pytest.param(n, marks=clause(*(s.format(n) for s in subs))) for n in table])


def groups(shape, axes):
    """For each index of the result, without reduced axes, the row-major positions of the elements combined there."""
    kept = [k for k in range(len(shape)) if k not in axes]
    out = {}
    for p, index in enumerate(itertools.product(*map(range, shape))):
        out.setdefault(tuple(index[k] for k in kept), []).append(p)
    return out


AXES = [
    (None, (0, 1, 2)),
    (0, (0,)),
    (1, (1,)),
    (2, (2,)),
    (-1, (2,)),
    (-3, (0,)),
    ((0, 2), (0, 2)),
    ((2, 0), (0, 2)),
    ((-1, 1), (1, 2)),
    ((1,), (1,)),
    ((0, 1, 2), (0, 1, 2)),
    ((), ()),
]


def with_axes(f, axis, keepdims=False):
    return lambda x: f(x, axis=axis, keepdims=keepdims)


# ------------------------------------------------------------------ axes and shapes


@pytest.mark.parametrize("axis, axes", AXES)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            "sum",
            marks=clause("RED-2.sum.none", "RED-2.sum.int", "RED-2.sum.tuple", "RED-2.sum.empty", "RED-3.sum.drop"),
        ),
        pytest.param("prod", marks=clause("RED-2.prod.axis")),
        pytest.param("max", marks=clause("RED-2.max.axis", "RED-4.max.value")),
        pytest.param("min", marks=clause("RED-2.min.axis", "RED-4.min.value")),
    ],
)
def test_axes(name, axis, axes):
    f = {**SUMS, **EXTREMES}[name]
    oracle = {"sum": sum, "prod": math.prod, "max": max, "min": min}[name]
    x = np.random.default_rng(3).integers(-1000, 1000, math.prod(SHAPE)).astype(np.int64)
    got = reduced(with_axes(f, axis), x.view(np.uint64), "int64", SHAPE, "int64")
    want = {i: wrap(oracle(x[p].tolist()), "int64") for i, p in groups(SHAPE, axes).items()}
    assert got.shape == tuple(n for k, n in enumerate(SHAPE) if k not in axes)
    assert {i: int(got[i]) for i in want} == want


@pytest.mark.parametrize("axis, axes", AXES)
@each([*SUMS, *EXTREMES], "RED-3.{}.keepdims")
def test_keepdims(name, axis, axes):
    f = {**SUMS, **EXTREMES}[name]
    kept = tuple(1 if k in axes else n for k, n in enumerate(SHAPE))
    typed(with_axes(f, axis, keepdims=True), f"float32 {SHAPE}", dtype="float32", shape=kept)
    if axis in (1, None, (2, 0)):
        x = np.arange(64, dtype=np.int32).view(np.uint32)
        same = reduced(with_axes(f, axis, keepdims=True), x, "int32", SHAPE, "int32")
        plain = reduced(with_axes(f, axis), x, "int32", SHAPE, "int32")
        assert (same.ravel() == plain.ravel()).all() and same.shape == kept


@clause("RED-3.sum.scalar", "RED-2.sum.none")
def test_scalars():
    for f in (*SUMS.values(), *EXTREMES.values()):
        typed(lambda x: f(x), "float16 ()", dtype="float16", shape=())
        typed(lambda x: f(x, keepdims=True), "float16 ()", dtype="float16", shape=())
        typed(lambda x: f(x, ()), "float16 (2, 2)", dtype="float16", shape=(2, 2))
        typed(lambda x: f(x, 1), "float16 (2, 4)", dtype="float16", shape=(2,))
        refused(lambda x: f(x, 0), "float16 ()")
        typed(lambda: f(5), dtype="int32", shape=())


BAD_AXES = (
    [3, -4, 100, (0, 3), (-4,)],
    [(0, 0), (0, -3), (1, 2, -1)],
    [True, 1.0, "0", (0.0,), (None,), (True,), ct.int32],
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("sum", marks=clause("RED-2.sum.range", "RED-2.sum.repeat", "RED-2.sum.kind")),
        *(pytest.param(n, marks=clause(f"RED-2.{n}.kind")) for n in ("prod", "max", "min")),
    ],
)
def test_bad_axes(name):
    f = {**SUMS, **EXTREMES}[name]
    for bad in itertools.chain(*BAD_AXES):
        refused(lambda x: f(x, axis=bad), f"float32 {SHAPE}")
    refused(lambda x, a: f(x, axis=a), f"float32 {SHAPE}", "int32 ()")
    for bad in (1, None, "True", 0.0):
        refused(lambda x: f(x, keepdims=bad), f"float32 {SHAPE}")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("sum", marks=clause("RED-1.sum.restricted", "RED-1.sum.arg")),
        *(pytest.param(n, marks=clause(f"RED-1.{n}.restricted")) for n in ("prod", "max", "min")),
        *(pytest.param(n, marks=clause(f"RED-8.{n}.restricted")) for n in INDICES),
    ],
)
def test_what_cannot_be_reduced(name):
    f = {**SUMS, **EXTREMES, **INDICES}[name]
    for d in RESTRICTED:
        refused(lambda x: f(x), d)
        refused(lambda x: f(x, 0), d)
    for bad in (None, "1", ct.int32):
        refused(lambda: f(bad))
    refused(lambda x: f((x, x)), "float32")
    refused(lambda x: f(x, 0, True), "float32")

    @ct.kernel
    def k(a):
        f(a)

    refuses("TileTypeError", k, np.zeros(4, np.float32))


# ------------------------------------------------------------------ values


@each(SUMS, "RED-4.{}.dtype")
@pytest.mark.parametrize("d", INTEGERS)
def test_integers_wrap(name, d):
    x = integer_pairs(d)[0][:4096]
    x = np.concatenate([x, np.ones(4096 - len(x), d)]) if len(x) < 4096 else x
    x = np.where((x == 0) & (name == "prod"), 3, x).astype(d)
    x[::2] |= 1
    f = SUMS[name]
    got = reduced(lambda t: f(t, 1), x.view(f"u{x.itemsize}"), d, (256, 16), d)
    want = [wrap({"sum": sum, "prod": math.prod}[name](row), d) for row in x.reshape(256, 16).tolist()]
    assert got.tolist() == want
    got = reduced(lambda t: f(t, 0), x.view(f"u{x.itemsize}"), d, (256, 16), d)
    want = [wrap({"sum": sum, "prod": math.prod}[name](row), d) for row in x.reshape(256, 16).T.tolist()]
    assert got.tolist() == want


@pytest.mark.parametrize("name", [*(pytest.param(n, marks=clause(f"RED-4.{n}.bool")) for n in (*SUMS, *EXTREMES))])
def test_masks_count(name):
    f = {**SUMS, **EXTREMES}[name]
    x = np.array([[1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0]], bool)
    got = reduced(lambda t: f(t, 1), x, "bool_", (4, 4), "int32")
    assert got.tolist() == {"sum": [3, 4, 0, 1], "prod": [0, 1, 0, 0], "max": [1, 1, 0, 1], "min": [0, 1, 0, 0]}[name]
    assert int(reduced(lambda t: f(t), x, "bool_", (4, 4), "int32")) == {"sum": 8, "prod": 0, "max": 1, "min": 0}[name]
    typed(lambda t: f(t, ()), "bool_", dtype="int32")


@each([*SUMS, *EXTREMES], "RED-4.{}.dtype")
def test_dtypes_stay(name):
    f = {**SUMS, **EXTREMES}[name]
    for d in (*INTEGERS, *FLOATS):
        typed(lambda x: f(x, 0), f"{d} (2, 4)", dtype=d, shape=(4,))


@each(SUMS, "RED-5.{}.order")
@pytest.mark.parametrize("d", FLOATS)
@pytest.mark.parametrize("n", [2, 32, 1024])
def test_sums_in_any_order(name, d, n):
    f, p = SUMS[name], FORMATS[d].fraction + 1
    rows = 2048 // n
    if name == "sum":
        x = sample(d, rows * n, n, near=True)
    else:
        rng = np.random.default_rng(n)
        x = encode(d, rng.uniform(0.9, 1.1, rows * n) * rng.choice([1.0, -1.0], rows * n))
    v = values(d, x).reshape(rows, n)
    for axis, got in (
        (1, reduced(lambda t: f(t, 1), x, d, (rows, n), d)),
        (0, reduced(lambda t: f(t, 0), np.ascontiguousarray(x.reshape(rows, n).T), d, (n, rows), d)),
    ):
        for row, g in zip(v.tolist(), got.tolist(), strict=True):
            terms = [Fraction(a) for a in row]
            want = sum(terms) if name == "sum" else math.prod(terms)
            size = sum(map(abs, terms)) if name == "sum" else abs(want)
            assert abs(Fraction(g) - want) <= n * size / 2**p, axis


@each(SUMS, "RED-4.{}.dtype", "RED-5.{}.order")
@pytest.mark.parametrize("d", FLOATS)
def test_exact_sums(name, d):
    rng = np.random.default_rng(5)
    x = rng.integers(-3, 4, (8, 16)).astype(float) if name == "sum" else rng.choice([1.0, -1.0, 2.0, 0.5], (8, 16))
    f, oracle = SUMS[name], {"sum": sum, "prod": math.prod}[name]
    for axis in (0, 1):
        got = reduced(lambda t: f(t, axis), encode(d, x), d, (8, 16), d)
        assert got.tolist() == [oracle(row) for row in (x.T if axis == 0 else x).tolist()]
    assert reduced(lambda t: f(t), encode(d, x), d, (8, 16), d).item() == oracle(x.ravel().tolist())


@each(SUMS, "RED-4.{}.dtype")
def test_narrow_sums_are_not_widened(name):
    f = SUMS[name]
    big = encode("float16", [60000.0, 60000.0, 3.0, -1.0])
    assert reduced(lambda t: f(t), big[:2], "float16", (2,), "float16").item() == inf
    pair = encode("float16", [2048.0, 1.0] if name == "sum" else [2049 / 2048, 2049 / 2048])
    want = exact("add" if name == "sum" else "mul", "float16", *values("float16", pair).tolist())
    assert reduced(lambda t: f(t), pair, "float16", (2,), "float16").item() == want


@clause("RED-5.sum.same", "RED-5.sum.axes")
def test_equal_inputs_give_equal_results():
    x = sample("float16", 512, 3, near=True)
    a = reduced(lambda t: ct.sum(t, (0, 1)), x, "float16", (16, 32), "float16")
    b = reduced(lambda t: ct.sum(ct.sum(t, 0), 0), x, "float16", (16, 32), "float16")
    c = reduced(lambda t: ct.sum(t, (1, 0)), x, "float16", (16, 32), "float16")
    d = reduced(lambda t: ct.sum(t), x, "float16", (16, 32), "float16")
    assert a == b == c == d
    twice = reduced(lambda t: ct.sum(t, 1), np.concatenate([x[:32], x[:32]]), "float16", (2, 32), "float16")
    assert twice[0] == twice[1]


MODES = ("RN", "RZ", "RM", "RP")


@pytest.mark.parametrize("d", FLOATS)
@pytest.mark.parametrize(
    "name, mode", [pytest.param(n, m, marks=clause(f"RED-7.{n}.{m}")) for n in SUMS for m in MODES]
)
def test_rounding_of_two(name, mode, d):
    f = SUMS[name]
    a, b = sample(d, 256, 1, near=True), sample(d, 256, 2, near=True)
    x = np.stack([a, b], axis=1)
    op = {"sum": "add", "prod": "mul"}[name]
    want = np.array([exact(op, d, p, q, mode=mode) for p, q in values(d, x).tolist()])
    same_numbers(reduced(lambda t: f(t, 1, rounding_mode=mode), x, d, (256, 2), d), want, f"{name} {d}")
    same_numbers(
        reduced(
            lambda t: f(t, 0, rounding_mode=getattr(ct.RoundingMode, mode)), np.ascontiguousarray(x.T), d, (2, 256), d
        ),
        want,
    )


@each(SUMS, "RED-7.{}.RZ", "RED-7.{}.RP", "RED-7.{}.RM")
def test_rounding_of_many_is_on_its_side(name):
    f = SUMS[name]
    x = encode("float32", np.random.default_rng(1).uniform(1, 1.1, (16, 32)))
    for row, down, up, cut in zip(
        values("float32", x).tolist(),
        *(reduced(lambda t: f(t, 1, rounding_mode=m), x, "float32", (16, 32), "float32") for m in ("RM", "RP", "RZ")),
        strict=True,
    ):
        terms = list(map(Fraction, row))
        want = sum(terms) if name == "sum" else math.prod(terms)
        assert Fraction(float(down)) <= want <= Fraction(float(up)) and Fraction(float(cut)) <= want
        assert Fraction(float(up)) - Fraction(float(down)) <= 64 * abs(want) / 2**23


@each(SUMS, "RED-7.{}.mode", "RED-7.{}.ftz.dtype")
def test_options_of_sums(name):
    f = SUMS[name]
    for mode in ("RA", "FULL", "APPROX", "RZI", "nearest_even", 1, ct.PaddingMode.ZERO):
        refused(lambda x: f(x, rounding_mode=mode), "float32")
    for d in (*INTEGERS, "bool_"):
        for mode in MODES:
            refused(lambda x: f(x, rounding_mode=mode), d)
        refused(lambda x: f(x, flush_to_zero=True), d)
        typed(
            lambda x: f(x, rounding_mode=None, flush_to_zero=False), d, dtype="int32" if d == "bool_" else d, shape=()
        )
    for d in ("float16", "bfloat16", "float64"):
        refused(lambda x: f(x, flush_to_zero=True), d)
    for bad in (1, None, "x"):
        refused(lambda x: f(x, flush_to_zero=bad), "float32")
    refused(lambda x: f(x, propagate_nan=True), "float32")


@each(SUMS, "RED-7.{}.ftz")
@pytest.mark.parametrize("mode", [None, "RZ"])
def test_flushing_sums(name, mode):
    f, op = SUMS[name], {"sum": "add", "prod": "mul"}[name]
    want = [flushed(exact(op, "float32", flushed(a), flushed(b))) for a, b in TINY]
    got = reduced(
        lambda t: f(t, 1, flush_to_zero=True, rounding_mode=mode),
        encode("float32", np.array(TINY)),
        "float32",
        (8, 2),
        "float32",
    )
    same_numbers(got, np.array(want))
    plain = reduced(lambda t: f(t, 1), encode("float32", np.array(TINY)), "float32", (8, 2), "float32")
    same_numbers(plain, np.array([exact(op, "float32", a, b) for a, b in TINY]))


@each(SUMS, "RED-7.{}.ftz")
def test_flushing_one_element(name):
    f, numbers = SUMS[name], np.array([a for a, _ in TINY])
    got = reduced(lambda t: f(t, 1, flush_to_zero=True), encode("float32", numbers), "float32",
                  (len(numbers), 1), "float32")
    same_numbers(got, np.array([flushed(a) for a in numbers]))


@clause("RED-2.sum.int")
@pytest.mark.parametrize("shape, axis", [((8, 1), 0), ((2, 8, 1, 1), 1), ((8, 1), -2), ((1, 8, 1), 1)])
def test_sums_before_axes_of_one(shape, axis):
    first = (0,) * len(shape)
    rest = first[1:]

    @ct.kernel
    def k(x, out):
        ct.store(out, rest, ct.sum(ct.load(x, first, shape), axis=axis))

    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    want = x.sum(axis=axis)
    assert run(k, x, np.zeros(want.shape, np.float32)).tolist() == want.tolist()


# ------------------------------------------------------------------ nothing but zeros


@clause("RED-5.sum.zero")
@pytest.mark.parametrize("shape", [(1, 1), (1, 8), (8, 1), (4, 8), (2, 128)])
@pytest.mark.parametrize("d", FLOATS)
def test_sums_of_zeros(d, shape):
    """In any order, terms of -0 alone give -0, and one +0 among them gives +0."""
    for place in (None, 0, shape[0] * shape[1] - 1):
        x = np.full(shape, -0.0)
        if place is not None:
            x.flat[place] = 0.0
        for axis in (0, 1, None):
            got = np.asarray(reduced(lambda t, axis=axis: ct.sum(t, axis), encode(d, x.ravel()), d, shape, d), float)
            assert not got.any()
            assert np.array_equal(np.signbit(got), np.signbit(x).all(axis)), (axis, place)
