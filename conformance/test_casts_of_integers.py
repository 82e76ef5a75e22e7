"""Conversions from and to integers and masks, and the forms of a cast [CAST-1 … CAST-5, CAST-11]."""

import math
from fractions import Fraction

import numpy as np
import pytest

from conformance.harness.api import clause, ct, needs, refuses, run
from conformance.harness.code_kernels import apply, dtype, made, numbers_of, unary
from conformance.harness.exact_arithmetic import nearest
from conformance.harness.number_comparison import same_numbers
from conformance.harness.number_formats import FLOATS, FORMATS, INTEGERS, SMALL, codes, encode, rounded, values
from conformance.harness.number_samples import sample
from conformance.harness.operand_types import folds, refused, strict, typed, varies

inf, nan = math.inf, math.nan


ARITHMETIC_FLOATS = ("float16", "bfloat16", "float32", "float64")


def source(name, n=2000):
    """All codes of a small format, or a sample."""
    if name in SMALL:
        return codes(name)
    x = np.concatenate([sample(name, n, seed=n), sample(name, n, seed=1, near=True)])
    if name in ("float64", "float32"):  # in the range of the narrow formats, and around their ties
        rng = np.random.default_rng(3)
        ties = values("float16", rng.integers(0, 1 << 16, n).astype(np.uint16)) * (
            1 + rng.integers(-1, 2, n) * 2.0**-11
        )
        x = np.concatenate([x, encode(name, ties[np.isfinite(ties)])])
        ties = values("bfloat16", rng.integers(0, 1 << 16, n).astype(np.uint16)) * (
            1 + rng.integers(-1, 2, n) * 2.0**-8
        )
        x = np.concatenate([x, encode(name, ties[np.isfinite(ties)])])
    return x


# ------------------------------------------------------------------ integers


def integers(name):
    """Integers of a dtype: all if it has 8 bits, otherwise the ends, powers of two and their neighbours, random ones.
    """
    w = dtype(name).bitwidth
    low, high = (-(1 << (w - 1)), (1 << (w - 1)) - 1) if name[0] == "i" else (0, (1 << w) - 1)
    if w == 8:
        xs = list(range(low, high + 1))
    else:
        rng = np.random.default_rng(w)
        xs = [s * ((1 << k) + j) for k in range(w) for j in (-1, 0, 1) for s in (1, -1)]
        xs += [
            int(v) >> int(s)
            for v, s in zip(
                rng.integers(low, high, 600, np.uint64 if low == 0 else np.int64, endpoint=True),
                rng.integers(0, w - 1, 600),
                strict=True,
            )
        ]
        xs += [low, low + 1, high, high - 1, -512753678, 0x1000001, 0x1000003, (1 << 53) + 1, (1 << 62) + (1 << 38) + 1]
        xs = [x for x in xs if low <= x <= high]
    return np.array(xs, name)


def wrapped(x, name):
    w = dtype(name).bitwidth
    x %= 1 << w
    return x - (1 << w) if name[0] == "i" and x >> (w - 1) else x


def cast_integers(src, dst, x):
    bits = x if src == "bool_" else x.view(f"u{x.itemsize}")
    return numbers_of(dst, apply(unary(lambda t: t.astype(dtype(dst)), src, dst), dst, bits))


@clause("CAST-2.narrow", "CAST-2.wide", "CAST-2.same")
@pytest.mark.parametrize("src", INTEGERS)
@pytest.mark.parametrize("dst", INTEGERS)
def test_integer_to_integer(src, dst):
    x = integers(src)
    assert list(map(int, cast_integers(src, dst, x))) == [wrapped(int(v), dst) for v in x]


@clause("CAST-3.int")
@pytest.mark.parametrize("src", INTEGERS)
def test_integer_to_bool(src):
    x = integers(src)
    assert list(cast_integers(src, "bool_", x)) == [int(v) != 0 for v in x]


@clause("CAST-3.float")
@pytest.mark.parametrize("src", FLOATS)
def test_float_to_bool(src):
    c = source(src)
    got = apply(unary(lambda t: t.astype(ct.bool_), src, "bool_"), "bool_", c)
    assert list(got) == [v != 0 for v in values(src, c)]


@clause("CAST-3.bool")
@pytest.mark.parametrize("dst", [*INTEGERS, "bool_", *(n for n in FLOATS if n != "float8_e8m0fnu")])
def test_bool_to_number(dst):
    assert list(cast_integers("bool_", dst, np.array([False, True, True, False]))) == [0, 1, 1, 0]


def integer_as_float(n, dst):
    if FORMATS[dst].bits > 8:
        return nearest(dst, Fraction(n))
    return float(rounded(dst, np.array([nearest("float16", Fraction(n))]), saturate=True)[0])


@clause("CAST-4.nearest", "CAST-4.inf", "CAST-4.f8")
@pytest.mark.parametrize("src", INTEGERS)
@pytest.mark.parametrize("dst", [n for n in FLOATS if n != "float8_e8m0fnu"])
def test_integer_to_float(src, dst):
    x = integers(src)
    if not FORMATS[dst].signed:
        x = x[x >= 0]
    want = np.array([integer_as_float(int(v), dst) for v in x])
    same_numbers(cast_integers(src, dst, x), want, f"{src} to {dst}", [x])


@clause("CAST-4.nearest")
@pytest.mark.parametrize("src", ["int64", "uint64"])
@pytest.mark.parametrize("dst", ["bfloat16", "tfloat32", "float32", "float64"])
def test_wide_integers_beside_ties(src, dst):
    """Integers so close to the middle of two floats that double precision cannot tell the side."""
    bits = FORMATS[dst].fraction
    ties = [(1 << e) + (k << (e - bits)) + (1 << (e - bits - 1)) for e in (58, 60, 62) for k in (0, 1, 2)]
    x = np.array([n + d for n in ties for d in (-1, 0, 1)], src)
    x = np.concatenate([x, -x]) if src == "int64" else x
    want = np.array([integer_as_float(int(v), dst) for v in x])
    same_numbers(cast_integers(src, dst, x), want, f"{src} to {dst}", [x])


@clause("CAST-4.inf")
def test_integer_to_float_beyond_the_range():
    x = np.array([65519, 65520, -65519, -65520, 1 << 30], np.int32)
    assert list(cast_integers("int32", "float16", x)) == [65504.0, inf, -65504.0, -inf, inf]


@clause("CAST-1.e8m0.int")
@pytest.mark.parametrize("src", [*INTEGERS, "bool_"])
def test_integer_to_e8m0(src):
    refused(lambda x: x.astype(ct.float8_e8m0fnu), src)
    refused(lambda x: ct.float8_e8m0fnu(x), f"{src} ()")


def in_range(x, dst):
    w = dtype(dst).bitwidth
    low, high = (-(2.0 ** (w - 1)), 2.0 ** (w - 1)) if dst[0] == "i" else (0.0, 2.0**w)
    return np.isfinite(x) & (np.trunc(x) >= low) & (np.trunc(x) < high)


def cast_to_integer(src, dst, c):
    return numbers_of(dst, apply(unary(lambda t: t.astype(dtype(dst)), src, dst), dst, c))


@clause("CAST-5.truncate", "CAST-5.undefined")
@pytest.mark.parametrize("src", FLOATS)
@pytest.mark.parametrize("dst", INTEGERS)
def test_float_to_integer(src, dst):
    c = source(src)
    x = values(src, c)
    inside = in_range(x, dst)
    want = [math.trunc(v) for v in x[inside]]
    assert list(map(int, cast_to_integer(src, dst, c)[inside])) == want  # values outside give undetermined results
    assert list(map(int, cast_to_integer(src, dst, c[inside]))) == want


def measured_integer(v, src, dst):
    """The result of a Hopper GPU beyond the range."""
    w, signed = dtype(dst).bitwidth, dst[0] == "i"
    wide = max(w, 16)
    low, high = (-(1 << (wide - 1)), (1 << (wide - 1)) - 1) if signed else (0, (1 << wide) - 1)
    if v != v:
        v = 0 if wide < 64 and src != "float64" else low if signed else 1 << (wide - 1)
    elif math.isinf(v):
        v = high if v > 0 else low
    else:
        v = min(max(math.trunc(v), low), high)
    return wrapped(v, dst)


@needs("measured")
@clause("CAST-5.saturate.measured", "CAST-5.byte.measured", "CAST-5.nan.measured")
@pytest.mark.parametrize("src", ARITHMETIC_FLOATS)
@pytest.mark.parametrize("dst", INTEGERS)
def test_float_to_integer_beyond_the_range(src, dst):
    c = np.concatenate(
        [
            source(src, 500),
            encode(src, [300.0, -300.0, 40000.0, 70000.0, -70000.0, 3e9, -3e9, 5e9, 1e19, 2e19, inf, nan]),
        ]
    )
    x = values(src, c)
    assert list(map(int, cast_to_integer(src, dst, c))) == [measured_integer(v, src, dst) for v in x.tolist()]


# ------------------------------------------------------------------ forms


@clause("CAST-1.method")
def test_method_equals_function():
    for fn in (
        lambda x: x.astype(ct.float16),
        lambda x: ct.astype(x, ct.float16),
        lambda x: x.astype(dtype=ct.float16),
    ):
        got = values("float16", apply(unary(fn, "float32", "float16"), "float16", encode("float32", [0.1, 2049, -7])))
        assert list(got) == [float(np.float16(0.1)), 2048, -7]
    got = apply(
        unary(lambda x: x.astype(ct.float16, rounding_mode=ct.RoundingMode.RZ), "float32", "float16"),
        "float16",
        encode("float32", [2051.5]),
    )
    assert values("float16", got)[0] == 2050


@clause("CAST-1.constructor")
@pytest.mark.parametrize(
    "dst", [n for n in (*INTEGERS, "bool_", *FLOATS) if n not in ("float8_e8m0fnu", "float4_e2m1fn")]
)
def test_constructor_of_a_runtime_scalar(dst):
    d = dtype(dst)
    typed(lambda x: d(x), "float32 ()", dtype=dst, shape=())
    varies(lambda x: d(x), "int32 ()") if not dst.startswith(("tf", "float8")) else None

    @ct.kernel
    def k(a, out):
        x = ct.load(a, 0, ())
        same = d(x).astype(ct.float64)
        ct.store(out, 0, same)

    assert run(k, np.array([2.5], np.float32), np.zeros(1))[0] == (
        1 if dst == "bool_" else 2 if dst in INTEGERS else 2.5
    )
    refused(lambda x: d(x), "float32 (1,)")
    refused(lambda x: d(x, x), "float32 ()")


@clause("CAST-1.dtype")
@pytest.mark.parametrize("bad", ["float32", None, 5, float, int, bool, 2.5, (ct.float32,)])
def test_astype_refuses_what_is_no_dtype(bad):
    refused(lambda x: x.astype(bad), "int32")
    refused(lambda x: ct.astype(x, bad), "int32")


@clause("CAST-1.dtype")
def test_astype_refuses_what_is_no_tile():
    @ct.kernel
    def k(a):
        ct.astype(a, ct.int32)

    refuses("TileTypeError", k, np.zeros(4, np.float32))
    for bad in (None, "1", (1, 2)):
        refused(lambda: ct.astype(bad, ct.int32))
    refused(lambda x: ct.astype(x), "int32")


@clause("CAST-11.fold")
def test_constants_fold():
    strict(lambda: ct.astype(300, ct.uint8), "uint8", 44)
    strict(lambda: ct.astype(-1.9, ct.int8), "int8", -1)
    folds(lambda: ct.astype(2049, ct.float16), 2048, "float16")
    folds(lambda: ct.astype(2051, ct.float16, rounding_mode=None), 2052, "float16")
    folds(lambda: ct.astype(2051.0, ct.float16, rounding_mode="RN"), 2052, "float16")
    folds(lambda: ct.astype(math.inf, ct.float16) > 65504, True)
    assert np.isnan(
        made(lambda: ct.full(4, ct.astype(465.0, ct.float8_e4m3fn), ct.float8_e4m3fn), "float8_e4m3fn", 4)[0]
    )
    refused(lambda: ct.astype(math.nan, ct.int32), error="TileValueError")
    refused(lambda: ct.astype(2049, ct.float16, rounding_mode="RN"))
    refused(lambda: ct.astype(1.5, ct.float8_e8m0fnu))


@clause("CAST-11.runtime")
@pytest.mark.parametrize("mode, want", [("RZ", 1.0), ("RA", 1.0009765625), ("RP", 1.0009765625), ("RM", 1.0)])
def test_constants_with_a_mode(mode, want):
    varies(lambda: ct.astype(ct.bfloat16(1.5), ct.float16, rounding_mode=mode))
    varies(lambda: ct.astype(1.5, ct.float64, rounding_mode=mode))
    # one of float64 rounds, the others convert exactly
    if mode == "RZ":
        x = 1.0009765625 - 2.0**-20
        got = made(
            lambda: ct.full(4, ct.astype(ct.float64(x), ct.float16, rounding_mode=mode), ct.float16), "float16", 4
        )
        assert got[0] == want
