"""Reductions along axes: sum, prod, max, min, argmax, argmin, reduce [RED]."""

import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import pytest

from conformance.api import clause, ct, needs, refuses, run
from conformance.numbers import (
    FORMATS, INTEGERS, apply_nullary, dtype, encode, exact, flushed, numbers_of, nullary, same_numbers, sample, values, width,
)
from conformance.test_arithmetic import chosen, integer_pairs, wrap
from conformance.typing import refused, typed

inf, nan = math.inf, math.nan
FLOATS = ("float16", "bfloat16", "float32", "float64")
RESTRICTED = ("tfloat32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu", "float4_e2m1fn")
SUMS = {"sum": ct.sum, "prod": ct.prod}
EXTREMES = {"max": ct.max, "min": ct.min}
INDICES = {"argmax": ct.argmax, "argmin": ct.argmin}
SHAPE = (2, 4, 8)


def each(table, *subs):
    return pytest.mark.parametrize("name", [pytest.param(n, marks=clause(*(s.format(n) for s in subs))) for n in table])


def reduced(fn, c, d, shape, o):
    """The numbers of fn(tile): `c` holds the codes of a tile of dtype `d`; the result has dtype `o` and any shape."""
    dd, oo, n = dtype(d), dtype(o), c.size
    size = []

    @ct.kernel
    def probe(a):
        x = ct.load(a, 0, n)
        y = fn(ct.reshape(x if dd == ct.bool_ else ct.bitcast(x, dd), shape))
        right = y.dtype == oo
        ct.static_assert(right)
        ct.static_eval(size.append(y.shape))
        ct.static_eval(size.append(math.prod(y.shape)))

    @ct.kernel
    def k(a, out):
        x = ct.load(a, 0, n)
        y = ct.reshape(fn(ct.reshape(x if dd == ct.bool_ else ct.bitcast(x, dd), shape)), (-1,))
        ct.store(out, 0, y if oo == ct.bool_ else ct.bitcast(y, WORD))

    WORD = getattr(ct, f"uint{width(o)}")
    flat = c.reshape(-1)
    run(probe, flat)
    out = run(k, flat, np.zeros(size[1], np.bool_ if o == "bool_" else f"u{width(o) // 8}"))
    return numbers_of(o, out).reshape(size[0])


def groups(shape, axes):
    """For each index of the result (reduced axes gone), the row-major positions of the elements that meet there."""
    kept = [k for k in range(len(shape)) if k not in axes]
    out = {}
    for p, index in enumerate(itertools.product(*map(range, shape))):
        out.setdefault(tuple(index[k] for k in kept), []).append(p)
    return out


AXES = [(None, (0, 1, 2)), (0, (0,)), (1, (1,)), (2, (2,)), (-1, (2,)), (-3, (0,)), ((0, 2), (0, 2)), ((2, 0), (0, 2)), ((-1, 1), (1, 2)),
        ((1,), (1,)), ((0, 1, 2), (0, 1, 2)), ((), ())]


def with_axes(f, axis, keepdims=False):
    return lambda x: f(x, axis=axis, keepdims=keepdims)


# ------------------------------------------------------------------ axes and shapes


@pytest.mark.parametrize("axis, axes", AXES)
@pytest.mark.parametrize("name", [
    pytest.param("sum", marks=clause("RED-2.sum.none", "RED-2.sum.int", "RED-2.sum.tuple", "RED-2.sum.empty", "RED-3.sum.drop")),
    pytest.param("prod", marks=clause("RED-2.prod.axis")), pytest.param("max", marks=clause("RED-2.max.axis", "RED-4.max.value")),
    pytest.param("min", marks=clause("RED-2.min.axis", "RED-4.min.value"))])
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
    x = np.arange(64, dtype=np.int32)
    same = reduced(with_axes(f, axis, keepdims=True), x.view(np.uint32), "int32", SHAPE, "int32")
    plain = reduced(with_axes(f, axis), x.view(np.uint32), "int32", SHAPE, "int32")
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


BAD_AXES = [3, -4, 100, (0, 3), (-4,)], [(0, 0), (0, -3), (1, 2, -1)], [True, 1.0, "0", (0.0,), (None,), (True,), ct.int32]


@pytest.mark.parametrize("name", [
    pytest.param("sum", marks=clause("RED-2.sum.range", "RED-2.sum.repeat", "RED-2.sum.kind")),
    *(pytest.param(n, marks=clause(f"RED-2.{n}.kind")) for n in ("prod", "max", "min"))])
def test_bad_axes(name):
    f = {**SUMS, **EXTREMES}[name]
    for bad in itertools.chain(*BAD_AXES):
        refused(lambda x: f(x, axis=bad), f"float32 {SHAPE}")
    refused(lambda x, a: f(x, axis=a), f"float32 {SHAPE}", "int32 ()")
    for bad in (1, None, "True", 0.0):
        refused(lambda x: f(x, keepdims=bad), f"float32 {SHAPE}")


@pytest.mark.parametrize("name", [
    pytest.param("sum", marks=clause("RED-1.sum.restricted", "RED-1.sum.arg")),
    *(pytest.param(n, marks=clause(f"RED-1.{n}.restricted")) for n in ("prod", "max", "min")),
    *(pytest.param(n, marks=clause(f"RED-8.{n}.restricted")) for n in INDICES)])
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
@pytest.mark.parametrize("n", [2, 4, 32, 128, 1024])
def test_sums_in_any_order(name, d, n):
    f, p = SUMS[name], FORMATS[d].fraction + 1
    rows = 2048 // n
    if name == "sum":
        x = sample(d, rows * n, n, near=True)
    else:
        rng = np.random.default_rng(n)
        x = encode(d, rng.uniform(0.9, 1.1, rows * n) * rng.choice([1.0, -1.0], rows * n))
    v = values(d, x).reshape(rows, n)
    for axis, got in ((1, reduced(lambda t: f(t, 1), x, d, (rows, n), d)),
                      (0, reduced(lambda t: f(t, 0), np.ascontiguousarray(x.reshape(rows, n).T), d, (n, rows), d))):
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
@pytest.mark.parametrize("name, mode", [pytest.param(n, m, marks=clause(f"RED-7.{n}.{m}")) for n in SUMS for m in MODES])
def test_rounding_of_two(name, mode, d):
    f = SUMS[name]
    a, b = sample(d, 256, 1, near=True), sample(d, 256, 2, near=True)
    x = np.stack([a, b], axis=1)
    op = {"sum": "add", "prod": "mul"}[name]
    want = np.array([exact(op, d, p, q, mode=mode) for p, q in values(d, x).tolist()])
    same_numbers(reduced(lambda t: f(t, 1, rounding_mode=mode), x, d, (256, 2), d), want, f"{name} {d}")
    same_numbers(reduced(lambda t: f(t, 0, rounding_mode=getattr(ct.RoundingMode, mode)), np.ascontiguousarray(x.T), d, (2, 256), d), want)


@each(SUMS, "RED-7.{}.RZ", "RED-7.{}.RP", "RED-7.{}.RM")
def test_rounding_of_many_is_on_its_side(name):
    f = SUMS[name]
    x = encode("float32", np.random.default_rng(1).uniform(1, 1.1, (16, 32)))
    for row, down, up, cut in zip(values("float32", x).tolist(), *(reduced(lambda t: f(t, 1, rounding_mode=m), x, "float32", (16, 32), "float32")
                                                                    for m in ("RM", "RP", "RZ")), strict=True):
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
        typed(lambda x: f(x, rounding_mode=None, flush_to_zero=False), d, dtype="int32" if d == "bool_" else d, shape=())
    for d in ("float16", "bfloat16", "float64"):
        refused(lambda x: f(x, flush_to_zero=True), d)
    for bad in (1, None, "x"):
        refused(lambda x: f(x, flush_to_zero=bad), "float32")
    refused(lambda x: f(x, propagate_nan=True), "float32")


TINY = [(2.0**-130, 1.0), (2.0**-127, 2.0**-127), (-(2.0**-130), -0.0), (2.0**-126, -(2.0**-127)), (2.0**-100, 2.0**-100), (3.0, 5.0),
        (2.0**-64, 2.0**-63), (2.0**-126, 0.5)]


@each(SUMS, "RED-7.{}.ftz")
@pytest.mark.parametrize("mode", [None, "RZ"])
def test_flushing_sums(name, mode):
    f, op = SUMS[name], {"sum": "add", "prod": "mul"}[name]
    want = [flushed(exact(op, "float32", flushed(a), flushed(b))) for a, b in TINY]
    got = reduced(lambda t: f(t, 1, flush_to_zero=True, rounding_mode=mode), encode("float32", np.array(TINY)), "float32", (8, 2), "float32")
    same_numbers(got, np.array(want))
    plain = reduced(lambda t: f(t, 1), encode("float32", np.array(TINY)), "float32", (8, 2), "float32")
    same_numbers(plain, np.array([exact(op, "float32", a, b) for a, b in TINY]))


# ------------------------------------------------------------------ extremes


ROWS = [[1.0, nan, 3.0, 2.0], [nan] * 4, [nan, nan, -5.0, nan], [0.0, -0.0, 0.0, -0.0], [-0.0, -0.0, -0.0, -0.0], [-0.0, 0.0, nan, -0.0],
        [inf, -inf, 1.0, nan], [-inf, -inf, nan, -inf], [-3.0, -2.0, -1.0, -4.0], [0.0, -0.0, -1.0, 1.0], [-0.0, -1.0, -2.0, 0.0],
        [-1.0, -0.0, 0.0, -2.0], [1.0, 0.0, -0.0, 2.0], [nan, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, nan], [inf, inf, inf, inf]]


def extreme(row, smaller, propagate):
    value = row[0]
    for v in row[1:]:
        value = chosen(value, v, smaller, propagate)
    return value


@pytest.mark.parametrize("d", FLOATS)
@each(EXTREMES, "RED-6.{}.nan", "RED-7.{}.nan", "RED-7.{}.propagate", "RED-7.{}.zero", "RED-4.{}.value")
def test_extremes_of_floats(name, d):
    f = EXTREMES[name]
    for propagate in (False, True):
        want = np.array([extreme(r, name == "min", propagate) for r in ROWS])
        x = encode(d, np.array(ROWS))
        same_numbers(reduced(lambda t: f(t, 1, propagate_nan=propagate), x, d, (16, 4), d), want, f"{name} {propagate}")
        xt = np.ascontiguousarray(x.reshape(16, 4).T)
        same_numbers(reduced(lambda t: f(t, 0, propagate_nan=propagate), xt, d, (4, 16), d), want, f"{name} {propagate}")
    x = sample(d, 512, 9)
    want = np.array([extreme(r, name == "min", False) for r in values(d, x).reshape(64, 8).tolist()])
    same_numbers(reduced(lambda t: f(t, 1), x, d, (64, 8), d), want)


@pytest.mark.parametrize("d", INTEGERS)
@each(EXTREMES, "RED-4.{}.value")
def test_extremes_of_integers(name, d):
    x = np.resize(integer_pairs(d)[1], 256)
    f = EXTREMES[name]
    got = reduced(lambda t: f(t, 1), x.view(f"u{x.itemsize}"), d, (32, 8), d)
    assert got.tolist() == [{"max": max, "min": min}[name](r) for r in x.reshape(32, 8).tolist()]


@each(EXTREMES, "RED-7.{}.ftz", "RED-7.{}.ftz.dtype")
def test_flushing_extremes(name):
    f = EXTREMES[name]
    rows = [(2.0**-130, -1.0), (-(2.0**-130), 1.0), (2.0**-130, 2.0**-140), (-(2.0**-130), -0.0), (2.0**-126, 1.0), (-(2.0**-130), 2.0**-130),
            (2.0**-130, nan), (nan, nan)]
    want = np.array([extreme([flushed(a), flushed(b)], name == "min", False) for a, b in rows])
    got = reduced(lambda t: f(t, 1, flush_to_zero=True), encode("float32", np.array(rows)), "float32", (8, 2), "float32")
    same_numbers(got, want)
    for d in (*INTEGERS, "bool_", "float16", "bfloat16", "float64"):
        refused(lambda x: f(x, flush_to_zero=True), d)
    for bad in (1, None):
        refused(lambda x: f(x, flush_to_zero=bad), "float32")
        refused(lambda x: f(x, propagate_nan=bad), "float32")
    refused(lambda x: f(x, rounding_mode="RN"), "float32")


# ------------------------------------------------------------------ indices


def best_index(row, smaller, propagate):
    best = None
    for i, v in enumerate(row):
        if v != v:
            if propagate:
                return i
            continue
        if best is None or (v < row[best] if smaller else v > row[best]):
            best = i
    return 0 if best is None else best


@pytest.mark.parametrize("d", FLOATS)
@each(INDICES, "RED-8.{}.tie", "RED-8.{}.nan", "RED-8.{}.allnan", "RED-8.{}.propagate", "RED-8.{}.value", "RED-8.{}.axis")
def test_indices_of_floats(name, d):
    f = INDICES[name]
    rows = [*ROWS[:12], [nan, -inf, -inf, nan], [nan, inf, nan, inf], [2.0, 3.0, 3.0, 2.0], [nan, nan, inf, -inf]]
    x = encode(d, np.array(rows))
    for propagate in (False, True):
        want = [best_index(r, name == "argmin", propagate) for r in rows]
        assert reduced(lambda t: f(t, 1, propagate_nan=propagate), x, d, (16, 4), "int32").tolist() == want
        xt = np.ascontiguousarray(x.reshape(16, 4).T)
        assert reduced(lambda t: f(t, 0, propagate_nan=propagate), xt, d, (4, 16), "int32").tolist() == want
        flat = [v for r in rows for v in r]
        assert reduced(lambda t: f(t, propagate_nan=propagate), x, d, (16, 4), "int32").item() == best_index(flat, name == "argmin", propagate)


@pytest.mark.parametrize("d", [*INTEGERS, "bool_"])
@each(INDICES, "RED-8.{}.tie", "RED-8.{}.value", "RED-8.{}.flat", "RED-4.{}.dtype", "RED-8.{}.axis")
def test_indices_of_integers(name, d):
    f = INDICES[name]
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, (8, 4, 2)).astype(bool) if d == "bool_" else rng.choice(integer_pairs(d)[1], (8, 4, 2)).astype(d)
    c = x if d == "bool_" else x.view(f"u{x.itemsize}")
    for axis in (0, 1, 2, -1):
        got = reduced(lambda t: f(t, axis), c, d, (8, 4, 2), "int32")
        moved = np.moveaxis(x, axis, -1)
        assert got.ravel().tolist() == [best_index(r, name == "argmin", False) for r in moved.reshape(-1, moved.shape[-1]).tolist()]
    assert reduced(lambda t: f(t), c, d, (8, 4, 2), "int32").item() == best_index(x.ravel().tolist(), name == "argmin", False)


@each(INDICES, "RED-8.{}.keepdims", "RED-8.{}.axis", "RED-8.{}.kind", "RED-8.{}.scalar", "RED-4.{}.dtype")
def test_indices_forms(name):
    f = INDICES[name]
    typed(lambda x: f(x, 1), f"float32 {SHAPE}", dtype="int32", shape=(2, 8))
    typed(lambda x: f(x), f"float16 {SHAPE}", dtype="int32", shape=())
    typed(lambda x: f(x, 1, keepdims=True), f"bool_ {SHAPE}", dtype="int32", shape=(2, 1, 8))
    typed(lambda x: f(x, keepdims=True), f"int64 {SHAPE}", dtype="int32", shape=(1, 1, 1))
    typed(lambda x: f(x), "float32 ()", dtype="int32", shape=())
    assert list(numbers_of("int32", apply_nullary(nullary(lambda: ct.full(4, f(ct.full((), 7, ct.int8)), ct.int32), "int32"), "int32", 4))) == [0] * 4
    for bad in ((0, 1), (0,), (), 3, -4, True, 1.0, "0"):
        refused(lambda x: f(x, axis=bad), f"float32 {SHAPE}")
    refused(lambda x, a: f(x, axis=a), f"float32 {SHAPE}", "int32 ()")
    refused(lambda x: f(x, 0), "float32 ()")
    for bad in (1, None):
        refused(lambda x: f(x, keepdims=bad), "float32")
        refused(lambda x: f(x, propagate_nan=bad), "float32")


# ------------------------------------------------------------------ reduce


@clause("RED-13.value", "RED-9.func")
@pytest.mark.parametrize("func, oracle", [
    (lambda a, b: a + b, operator.add), (lambda a, b: ct.maximum(a, b), max), (operator.add, operator.add), (ct.add, operator.add),
    (ct.maximum, max), (max, max), (min, min), (operator.mul, operator.mul), (lambda a, b: a ^ b, operator.xor), (ct.bitwise_or, operator.or_)])
def test_reduce(func, oracle):
    x = np.random.default_rng(1).integers(-100, 100, 128).astype(np.int32)
    for axis, moved in ((1, x.reshape(8, 16)), (0, x.reshape(8, 16).T), (-1, x.reshape(8, 16)), (-2, x.reshape(8, 16).T)):
        got = reduced(lambda t: ct.reduce(t, axis, func, 0), x.view(np.uint32), "int32", (8, 16), "int32")
        want = []
        for row in moved.tolist():
            total = row[0]
            for v in row[1:]:
                total = wrap(oracle(total, v), "int32")
            want.append(total)
        assert got.tolist() == want


@clause("RED-9.x", "RED-10.args", "RED-10.result")
def test_reduce_of_tuples():
    def first_largest(v0, i0, v1, i1):
        take = (v1 > v0) | ((v1 == v0) & (i1 < i0))
        return ct.where(take, v1, v0), ct.where(take, i1, i0)

    x = np.random.default_rng(1).integers(-5, 5, 64).astype(np.int32)

    def fn(t):
        v, i = ct.reduce((t, ct.arange(16, dtype=ct.int16)), 1, first_largest, (-1000, 0))
        return v * 100 + i

    got = reduced(fn, x.view(np.uint32), "int32", (4, 16), "int32")
    assert got.tolist() == [max(r) * 100 + r.index(max(r)) for r in x.reshape(4, 16).tolist()]
    typed(lambda t: ct.reduce((t,), 0, lambda a, b: (a + b,), (0,))[0], "float16 (4, 2)", dtype="float16", shape=(2,))
    refused(lambda t, u: ct.reduce((t, u), 0, lambda a, b, c, d: (a, b), (0, 0)), "int32 (4,)", "int32 (8,)")
    typed(lambda t, u: ct.reduce((t, u), 1, lambda a, b, c, d: (a + c, b + d), (0, 0))[1], "int32 (4, 1)", "int8 (8,)", dtype="int8", shape=(4,))


@clause("RED-3.reduce.keepdims")
def test_reduce_keepdims():
    typed(lambda t: ct.reduce(t, 1, operator.add, 0, keepdims=True), f"int8 {SHAPE}", dtype="int8", shape=(2, 1, 8))
    typed(lambda t: ct.reduce(t, 1, operator.add, 0), f"int8 {SHAPE}", dtype="int8", shape=(2, 8))
    typed(lambda t: ct.reduce((t, t), 0, lambda a, b, c, d: (a, b), (0, 0), keepdims=True)[0], "int8 (4,)", dtype="int8", shape=(1,))
    refused(lambda t: ct.reduce(t, 0, operator.add, 0, keepdims=1), "int8 (4,)")


def add(a, b):
    return a + b


@pytest.mark.parametrize("fn", [
    *(pytest.param(f, marks=clause("RED-9.x")) for f in (lambda t: ct.reduce(None, 0, add, 0), lambda t: ct.reduce((t, None), 0, add, (0, 0)))),
    pytest.param(lambda t: ct.reduce((), 0, add, ()), marks=clause("RED-9.empty")),
    *(pytest.param(f, marks=clause("RED-9.axis")) for f in (
        lambda t: ct.reduce(t, None, add, 0), lambda t: ct.reduce(t, (0,), add, 0), lambda t: ct.reduce(t, 2, add, 0),
        lambda t: ct.reduce(t, -3, add, 0), lambda t: ct.reduce(t, True, add, 0), lambda t: ct.reduce(t, 1.0, add, 0),
        lambda t: ct.reduce(t, ct.bid(0), add, 0), lambda t: ct.reduce(t))),
    *(pytest.param(f, marks=clause("RED-9.func")) for f in (
        lambda t: ct.reduce(t, 0, 5, 0), lambda t: ct.reduce(t, 0, None, 0), lambda t: ct.reduce(t, 0, "add", 0), lambda t: ct.reduce(t, 0, t, 0))),
    *(pytest.param(f, marks=clause("RED-9.identity")) for f in (
        lambda t: ct.reduce(t, 0, add, None), lambda t: ct.reduce(t, 0, add, (0,)), lambda t: ct.reduce(t, 0, add, ct.bid(0)),
        lambda t: ct.reduce(t, 0, add, t), lambda t: ct.reduce((t, t), 0, add, 0), lambda t: ct.reduce((t, t), 0, add, (0,)),
        lambda t: ct.reduce(t, 0, add, "0"))),
    *(pytest.param(f, marks=clause("RED-10.arity")) for f in (
        lambda t: ct.reduce(t, 0, lambda a: a, 0), lambda t: ct.reduce(t, 0, lambda a, b, c: a, 0),
        lambda t: ct.reduce((t, t), 0, lambda a, b: (a, b), (0, 0)))),
    *(pytest.param(f, marks=clause("RED-10.result")) for f in (
        lambda t: ct.reduce(t, 0, lambda a, b: (a, b), 0), lambda t: ct.reduce(t, 0, lambda a, b: None, 0),
        lambda t: ct.reduce(t, 0, lambda a, b: "x", 0), lambda t: ct.reduce(t, 0, lambda a, b: ct.zeros(4, ct.int32), 0),
        lambda t: ct.reduce((t, t), 0, lambda a, b, c, d: a, (0, 0)), lambda t: ct.reduce((t, t), 0, lambda a, b, c, d: (a,), (0, 0)),
        lambda t: ct.reduce((t, t), 0, lambda a, b, c, d: (a, b, c), (0, 0)))),
    *(pytest.param(f, marks=clause("RED-10.cast")) for f in (
        lambda t: ct.reduce(t, 0, lambda a, b: a + 0.5, 0), lambda t: ct.reduce(t, 0, lambda a, b: ct.astype(a, ct.int64), 0),
        lambda t: ct.reduce(t.astype(ct.float16), 0, lambda a, b: ct.float32(a), 0)))])
def test_reduce_refuses(fn):
    refused(fn, "int32 (2, 4)")


@clause("RED-10.cast")
def test_results_are_cast():
    typed(lambda t: ct.reduce(t, 0, lambda a, b: ct.int8(a) + ct.int8(b), 0), "int32 (4,)", dtype="int32", shape=())
    typed(lambda t: ct.reduce(t, 0, lambda a, b: 1, 0), "float16 (4,)", dtype="float16", shape=())
    typed(lambda t: ct.reduce(t, 0, lambda a, b: a > b, 0), "int32 (4,)", dtype="int32", shape=())
    x = np.array([1, 2, 300, 4], np.int32)
    got = reduced(lambda t: ct.reduce(t, 0, lambda a, b: ct.int8(a) + ct.int8(b), 0), x.view(np.uint32), "int32", (4,), "int32")
    assert got.item() == 51


@clause("RED-10.args")
def test_the_function_sees_scalars():
    def check(a, b):
        ct.static_assert(a.shape == () and b.shape == ())
        right = a.dtype == ct.int16
        ct.static_assert(right)
        return a + b

    typed(lambda t: ct.reduce(t, 1, check, 0), "int16 (2, 4)", dtype="int16", shape=(2,))


@pytest.mark.parametrize("body", [
    *(pytest.param(f, marks=clause("RED-11.nested")) for f in (
        lambda a, b: ct.sum(ct.full(4, a, ct.int32)) + b, lambda a, b: a + ct.reduce(ct.full(4, b, ct.int32), 0, add, 0),
        lambda a, b: a + b + ct.sum(ct.cumsum(ct.full(4, 1, ct.int32)))))])
def test_nested_reductions(body):
    refused(lambda t: ct.reduce(t, 0, body, 0), "int32 (4,)", error="TileSyntaxError")


def with_if(a, b):
    if a > b:
        return a
    return b


def with_ternary(a, b):
    return a if a > b else b


def with_and(a, b):
    return ct.int32(a > 0 and b > 0)


def with_for(a, b):
    for _ in range(2):
        a = a + b
    return a


def with_while(a, b):
    while a > b:
        a = a - 1
    return a


def with_print(a, b):
    print(a)
    return a + b


def with_assert(a, b):
    ct.assert_(a > b)
    return a + b


@pytest.mark.parametrize("body", [
    *(pytest.param(f, marks=clause("RED-11.branch")) for f in (with_if, with_ternary, with_and)),
    *(pytest.param(f, marks=clause("RED-11.loop")) for f in (with_for, with_while)),
    *(pytest.param(f, marks=clause("RED-11.memory")) for f in (with_print, with_assert))])
@clause("SCAN-4.body")
def test_bodies(body):
    refused(lambda t: ct.reduce(t, 0, body, 0), "int32 (4,)", error="TileSyntaxError")
    refused(lambda t: ct.scan(t, 0, body, 0), "int32 (4,)", error="TileSyntaxError")


@clause("RED-11.memory", "SCAN-4.body")
def test_bodies_with_memory():
    def make(access, how):
        @ct.kernel
        def k(a):
            how(ct.load(a, 0, 4), 0, lambda x, y: access(a, x, y), 0)

        return k

    for access in (lambda a, x, y: x + ct.load(a, 0, ()), lambda a, x, y: x + ct.gather(a, 0), lambda a, x, y: x + ct.atomic_add(a, 0, 1)):
        for how in (ct.reduce, ct.scan):
            refuses("TileSyntaxError", make(access, how), np.zeros(4, np.int32))


@clause("RED-11.outer")
def test_bodies_see_outer_variables():
    @ct.kernel
    def k(a, out):
        offset, use = ct.bid(0) * 10, True
        def body(x, y):
            pair = (x, y)
            if use:
                return ct.maximum(pair[0], pair[1]) + offset + 0 * ct.bid(0)
            return x

        ct.store(out, ct.bid(0), ct.reduce(ct.load(a, 0, 2), 0, body, 0))

    assert run(k, np.array([3, 7], np.int32), np.zeros(4, np.int32), grid=(4,)).tolist() == [7, 17, 27, 37]


@clause("RED-12.int", "RED-12.bool")
def test_identities_are_converted():
    for d, identity in (("int32", 0.5), ("int8", 300), ("uint8", -1), ("float16", 1e10), ("bool_", 5), ("bool_", 0.5), ("float32", 1 << 40)):
        typed(lambda t: ct.reduce(t, 0, lambda a, b: a, identity), f"{d} (4,)", dtype=d, shape=())
        typed(lambda t: ct.reduce(t, 0, lambda a, b: a, ct.int64(3)), f"{d} (4,)", dtype=d, shape=())
    x = np.array([True, False, False, False])
    got = reduced(lambda t: ct.reduce(t, 0, lambda a, b: a | b, 0), x, "bool_", (4,), "bool_")
    assert got.item() is np.True_ or bool(got)


@needs("measured")
@clause("RED-13.two", "RED-13.four")
def test_order_of_operands():
    x = np.array([1, 10, 100, 1000], np.int32)
    f = lambda a, b: 2 * a + b  # noqa: E731
    got = reduced(lambda t: ct.reduce(t, 0, f, 0), x[:2].view(np.uint32), "int32", (2,), "int32")
    assert got.item() == 2 * 1 + 10
    got = reduced(lambda t: ct.reduce(t, 0, f, 0), x.view(np.uint32), "int32", (4,), "int32")
    assert got.item() == 2 * (2 * 1 + 100) + (2 * 10 + 1000)
    got = reduced(lambda t: ct.reduce((t, t), 0, lambda a, b, c, d: (2 * a + c, 3 * b + d), (0, 0))[1], x[:2].view(np.uint32), "int32", (2,), "int32")
    assert got.item() == 13


@clause("RED-14.restricted", "RED-14.rank")
def test_reduce_of_restricted_floats():
    for d in RESTRICTED:
        typed(lambda t: ct.reduce(t, 0, lambda a, b: a, 1.0), f"{d} (4, 2)", dtype=d, shape=(2,))
        refused(lambda t: ct.reduce(t, 0, lambda a, b: a + b, 1.0), f"{d} (4,)")
        refused(lambda t: ct.reduce(t, 0, lambda a, b: a, 1.0), f"{d} ()")
    refused(lambda t: ct.reduce(t, 0, add, 0), "int32 ()")
    refused(lambda t: ct.reduce(t, -1, add, 0), "int32 ()")
    c = encode("float8_e4m3fn", [3.0, 3.0])
    assert reduced(lambda t: ct.reduce(t, 0, lambda a, b: ct.where(ct.bid(0) == 0, a, b), 1.0), c, "float8_e4m3fn", (2,), "float8_e4m3fn").item() == 3


@clause("RED-9.x")
def test_reduce_of_one_element():
    x = np.array([7], np.int32)
    assert reduced(lambda t: ct.reduce(t, 0, lambda a, b: a + b, 100), x.view(np.uint32), "int32", (1,), "int32").item() == 7
