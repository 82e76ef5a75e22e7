"""Conversions between dtypes [CAST], bits of numbers [BITC], bytes of tiles [PACK]."""

import math
from fractions import Fraction

import numpy as np
import pytest

from conformance.api import accepts, clause, ct, needs, refuses, run
from conformance.numbers import (
    FLOATS, FORMATS, INTEGERS, SMALL, apply, codes, dtype, encode, made, nearest, numbers_of, rounded, same_numbers,
    sample, unary, value, values, width,
)
from conformance.typing import folds, refused, strict, typed, varies

inf, nan = math.inf, math.nan
SHORT = {"float64": "f64", "float32": "f32", "tfloat32": "tf32", "float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "e4m3",
         "float8_e5m2": "e5m2", "float8_e8m0fnu": "e8m0", "float8_e5m3fnu": "e5m3", "float4_e2m1fn": "e2m1"}
MODES = ("RN", "RZ", "RM", "RP", "RA")
ARITHMETIC_FLOATS = ("float16", "bfloat16", "float32", "float64")


def source(name, n=2000):
    """All codes of a small format, or a sample."""
    if name in SMALL:
        return codes(name)
    x = np.concatenate([sample(name, n, seed=n), sample(name, n, seed=1, near=True)])
    if name in ("float64", "float32"):  # in the range of the narrow formats, and about their ties
        rng = np.random.default_rng(3)
        ties = values("float16", rng.integers(0, 1 << 16, n).astype(np.uint16)) * (1 + rng.integers(-1, 2, n) * 2.0**-11)
        x = np.concatenate([x, encode(name, ties[np.isfinite(ties)])])
        ties = values("bfloat16", rng.integers(0, 1 << 16, n).astype(np.uint16)) * (1 + rng.integers(-1, 2, n) * 2.0**-8)
        x = np.concatenate([x, encode(name, ties[np.isfinite(ties)])])
    return x


def converted(src, dst, mode="RN"):
    """The doubles that the cast of every source value must give, and where anything may come out."""
    c = source(src)
    x = values(src, c)
    free = np.zeros(x.shape, bool)
    if dst == "float64":
        return c, x, free
    if dst == "float32":
        if src != "float64":
            return c, x, free
        y = np.array([v if not math.isfinite(v) else nearest(dst, Fraction(v), mode, zero=v) for v in x.tolist()])
        return c, y, free
    if not FORMATS[dst].signed:
        free |= (np.signbit(x) | (x == 0)) & ~np.isnan(x) if dst == "float8_e8m0fnu" else np.signbit(x) & ~np.isnan(x)
    if not FORMATS[dst].nan:
        free |= np.isnan(x)
    return c, rounded(dst, x, mode, saturate=FORMATS[dst].bits <= 8), free


# ------------------------------------------------------------------ float to float


def allowed(dst, src, mode):
    """The table of CAST-9."""
    halves = ("bfloat16", "float8_e5m2", "float8_e4m3fn", "float4_e2m1fn")
    match dst:
        case "float64":
            return True
        case "float32":
            return mode in ("RN", "RZ") or src != "float8_e8m0fnu" and (mode != "RA" or src != "float64")
        case "tfloat32":
            return mode in ("RN", "RZ") or mode == "RA" and src not in ("float64", "float8_e8m0fnu")
        case "float16":
            return mode in ("RN", "RZ") or src in halves
        case "bfloat16":
            return mode in ("RN", "RZ")
        case "float8_e8m0fnu":
            return mode in ("RZ", "RP")
        case _:
            return mode == "RN"


@pytest.mark.parametrize("dst, src, mode", [
    pytest.param(dst, src, mode, marks=clause(f"CAST-9.{SHORT[dst]}.{SHORT[src]}.{mode}"), id=f"{SHORT[dst]}-{SHORT[src]}-{mode}")
    for dst in FLOATS for src in FLOATS if src != dst for mode in MODES])
@clause("CAST-9.RZ", "CAST-9.RM", "CAST-9.RP", "CAST-9.RA", "CAST-9.f8e8m0", "CAST-9.inf", "CAST-10.pair", "CAST-6.wide",
        "CAST-6.nearest", "CAST-13")
def test_float_to_float(dst, src, mode):
    d = dtype(dst)
    if not allowed(dst, src, mode):
        refused(lambda x: x.astype(d, rounding_mode=mode), src)
        refused(lambda x: ct.astype(x, d, rounding_mode=mode), src)
        return
    member = getattr(ct.RoundingMode, mode)
    c, want, free = converted(src, dst, mode)
    got = values(dst, apply(unary(lambda x: ct.astype(x, d, rounding_mode=member), src, dst), dst, c))
    same_numbers(got[~free], want[~free], f"{src} to {dst} with {mode}")
    if mode == "RN":
        got = values(dst, apply(unary(lambda x: ct.astype(x, d), src, dst), dst, c))
        same_numbers(got[~free], want[~free], f"{src} to {dst}")


@clause("CAST-10.pair")
@pytest.mark.parametrize("src", [n for n in FLOATS if n != "float8_e8m0fnu"])
def test_e8m0_needs_a_mode(src):
    refused(lambda x: x.astype(ct.float8_e8m0fnu), src)
    refused(lambda x: ct.float8_e8m0fnu(x), f"{src} ()")


@clause("CAST-10.mode")
@pytest.mark.parametrize("mode", ["FULL", "APPROX", "RZI", "nearest_even", "rn", 1, True, ct.PaddingMode.ZERO])
def test_modes_that_no_cast_has(mode):
    for dst in FLOATS:
        for src in FLOATS:
            if src != dst and "float16" in (src, dst):
                d = dtype(dst)
                refused(lambda x: x.astype(d, rounding_mode=mode), src)


@clause("CAST-6.inf")
@pytest.mark.parametrize("dst, values_, want", [
    ("float16", [65519.0, 65520.0, -65520.0, 1e30, inf], [65504.0, inf, -inf, inf, inf]),
    ("bfloat16", [3.39e38, 3.3961776e38, -3.4028235e38, inf], [3.3895313892515355e38, inf, -inf, inf]),
    ("float32", [3.4028235677973366e38, 3.4028235677973362e38, -1e300, inf], [inf, 3.4028234663852886e38, -inf, inf])])
def test_overflow(dst, values_, want):
    got = values(dst, apply(unary(lambda x: x.astype(dtype(dst)), "float64", dst), dst, encode("float64", values_)))
    assert list(got) == want


@clause("CAST-7.max", "CAST-7.inf")
@pytest.mark.parametrize("dst, top", [("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0), ("float4_e2m1fn", 6.0),
                                      ("float8_e5m3fnu", 114688.0)])
@pytest.mark.parametrize("src", ARITHMETIC_FLOATS)
def test_narrow_formats_saturate(src, dst, top):
    x = [top * 1.25, 60000.0 if top < 1000 else inf, inf, top]
    x += [-v for v in x] if FORMATS[dst].signed else []
    got = values(dst, apply(unary(lambda t: t.astype(dtype(dst)), src, dst), dst, encode(src, x)))
    assert list(got) == [math.copysign(top, v) for v in x]


@clause("CAST-7.nan", "CAST-7.f4.nan")
@pytest.mark.parametrize("src", ARITHMETIC_FLOATS)
def test_nan_in_narrow_formats(src):
    x = encode(src, [nan, 1.0, 2.0, -1.0])
    for dst in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"):
        got = values(dst, apply(unary(lambda t: t.astype(dtype(dst)), src, dst), dst, x))
        assert list(got[1:]) == [1, 2, -1]
        assert dst == "float4_e2m1fn" or np.isnan(got[0])


@clause("CAST-12.undefined", "CAST-12.e5m3")
@pytest.mark.parametrize("dst, mode", [("float8_e8m0fnu", "RZ"), ("float8_e8m0fnu", "RP"), ("float8_e5m3fnu", None)])
def test_negative_numbers_to_unsigned_formats(dst, mode):
    x = encode("float32", [0.0, -1.0, 4.0, -0.0, -inf, 2.0, -1e-30, 1.0])
    got = values(dst, apply(unary(lambda t: t.astype(dtype(dst), rounding_mode=mode), "float32", dst), dst, x))
    assert (got[2], got[5], got[7]) == (4, 2, 1)


@clause("CAST-8.same", "CAST-1.same")
@pytest.mark.parametrize("name", FLOATS)
def test_same_float(name):
    d = dtype(name)
    for mode in (None, *MODES, "FULL", "APPROX", "RZI"):
        c = source(name, 50)
        got = apply(unary(lambda x: x.astype(d, rounding_mode=mode), name, name), name, c)
        same_numbers(values(name, got), values(name, c), name)


@clause("CAST-1.same")
@pytest.mark.parametrize("name", (*INTEGERS, "bool_"))
def test_same_integer(name):
    d = dtype(name)
    typed(lambda x: x.astype(d), name, dtype=name)
    folds(lambda: ct.astype(d(1), d), 1, name)


@clause("CAST-8.kind")
@pytest.mark.parametrize("src, dst", [("int32", "float32"), ("float32", "int32"), ("int8", "int16"), ("bool_", "float16"),
                                      ("float16", "bool_"), ("int32", "int32"), ("bool_", "bool_")])
@pytest.mark.parametrize("mode", ["RN", "RZ", "FULL"])
def test_no_mode_for_integers(src, dst, mode):
    d = dtype(dst)
    refused(lambda x: x.astype(d, rounding_mode=mode), src)


# ------------------------------------------------------------------ integers


def integers(name):
    """Integers of a dtype: all of 8 bits, else the ends, powers of two and their neighbours, random ones."""
    w = dtype(name).bitwidth
    low, high = (-(1 << (w - 1)), (1 << (w - 1)) - 1) if name[0] == "i" else (0, (1 << w) - 1)
    if w == 8:
        xs = list(range(low, high + 1))
    else:
        rng = np.random.default_rng(w)
        xs = [s * ((1 << k) + j) for k in range(w) for j in (-1, 0, 1) for s in (1, -1)]
        xs += [int(v) >> int(s) for v, s in zip(rng.integers(low, high, 600, np.uint64 if low == 0 else np.int64, endpoint=True),
                                                rng.integers(0, w - 1, 600), strict=True)]
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
    same_numbers(cast_integers(src, dst, x), np.array([integer_as_float(int(v), dst) for v in x]), f"{src} to {dst}")


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
    assert list(map(int, cast_to_integer(src, dst, c)[inside])) == want  # what is outside may give anything
    assert list(map(int, cast_to_integer(src, dst, c[inside]))) == want


def measured_integer(v, src, dst):
    """What a Hopper GPU gives beyond the range."""
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
    c = np.concatenate([source(src, 500), encode(src, [300.0, -300.0, 40000.0, 70000.0, -70000.0, 3e9, -3e9, 5e9, 1e19, 2e19, inf, nan])])
    x = values(src, c)
    assert list(map(int, cast_to_integer(src, dst, c))) == [measured_integer(v, src, dst) for v in x.tolist()]


# ------------------------------------------------------------------ forms


@clause("CAST-1.method")
def test_method_equals_function():
    for fn in (lambda x: x.astype(ct.float16), lambda x: ct.astype(x, ct.float16), lambda x: x.astype(dtype=ct.float16)):
        got = values("float16", apply(unary(fn, "float32", "float16"), "float16", encode("float32", [0.1, 2049, -7])))
        assert list(got) == [float(np.float16(0.1)), 2048, -7]
    got = apply(unary(lambda x: x.astype(ct.float16, rounding_mode=ct.RoundingMode.RZ), "float32", "float16"), "float16",
                encode("float32", [2051.5]))
    assert values("float16", got)[0] == 2050


@clause("CAST-1.constructor")
@pytest.mark.parametrize("dst", [n for n in (*INTEGERS, "bool_", *FLOATS) if n not in ("float8_e8m0fnu", "float4_e2m1fn")])
def test_constructor_of_a_runtime_scalar(dst):
    d = dtype(dst)
    typed(lambda x: d(x), "float32 ()", dtype=dst, shape=())
    varies(lambda x: d(x), "int32 ()") if not dst.startswith(("tf", "float8")) else None

    @ct.kernel
    def k(a, out):
        x = ct.load(a, 0, ())
        same = d(x).astype(ct.float64)
        ct.store(out, 0, same)

    assert run(k, np.array([2.5], np.float32), np.zeros(1))[0] == (1 if dst == "bool_" else 2 if dst in INTEGERS else 2.5)
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
    assert np.isnan(made(lambda: ct.full(4, ct.astype(465.0, ct.float8_e4m3fn), ct.float8_e4m3fn), "float8_e4m3fn", 4)[0])
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
        got = made(lambda: ct.full(4, ct.astype(ct.float64(x), ct.float16, rounding_mode=mode), ct.float16), "float16", 4)
        assert got[0] == want


# ------------------------------------------------------------------ bitcast


@clause("BITC-1.bits")
@pytest.mark.parametrize("names", [("int8", "uint8", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu"),
                                   ("int16", "uint16", "float16", "bfloat16"), ("int32", "uint32", "float32"),
                                   ("int64", "uint64", "float64")])
def test_bitcast(names):
    for src in names:
        for dst in names:
            c = np.random.default_rng(1).integers(0, 256, 8 * 64, np.uint8).view(f"u{width(src) // 8}")
            if src in SMALL:
                c = codes(src)
            d = dtype(dst)
            got = apply(unary(lambda x: ct.bitcast(x, d), src, dst), dst, c)
            here = ~np.isnan(values(src, c)) if src in FORMATS else np.ones(c.shape, bool)
            there = ~np.isnan(values(dst, c)) if dst in FORMATS else here
            assert (got == c)[here & there].all()
            typed(lambda x: ct.bitcast(x, d), f"{src} (2, 4)", dtype=dst, shape=(2, 4))


@clause("BITC-1.nan")
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "float8_e5m2", "float8_e4m3fn"])
def test_nan_payloads(name):
    c = codes(name) if name in SMALL else sample(name, 4000)
    if name == "float32":
        c = np.concatenate([c, np.array([0x7F800001, 0x7FC12345, 0xFFFFFFFF, 0xFF800001], np.uint32)])
    if name == "float64":
        c = np.concatenate([c, np.array([0x7FF0000000000001, 0xFFF8000012345678], np.uint64)])
    got = apply(unary(lambda x: x, name, name), name, c)
    assert (got == c).all()


@clause("BITC-1.width", "BITC-1.bool")
def test_bitcast_refuses():
    for src, dst in (("int8", "int16"), ("float32", "int64"), ("float16", "float32"), ("float4_e2m1fn", "int8"),
                     ("int8", "float4_e2m1fn"), ("float64", "float32"), ("bfloat16", "uint8")):
        d = dtype(dst)
        refused(lambda x: ct.bitcast(x, d), src)
    for name in ("int8", "uint8", "bool_"):
        d = dtype(name)
        refused(lambda x: ct.bitcast(x, ct.bool_), name)
        refused(lambda x: ct.bitcast(x, d), "bool_")
    refused(lambda x: ct.bitcast(x, "int32"), "float32")
    refused(lambda: ct.bitcast(None, ct.int32))


@clause("BITC-1.pointer")
def test_bitcast_of_pointers():
    pointer = ct.foreign_pointer_dtype(ct.float32)

    @ct.kernel
    def from_pointer(a):
        ct.bitcast(a.foreign_pointer, ct.int64)

    @ct.kernel
    def to_pointer(a):
        ct.bitcast(ct.full(4, 1, ct.int64), pointer)

    for k in (from_pointer, to_pointer):
        refuses("TileTypeError", k, np.zeros(4, np.float32))


@clause("BITC-1.literal", "BITC-1.runtime")
def test_bitcast_of_literals():
    typed(lambda: ct.bitcast(1, ct.float32), dtype="float32", shape=())
    typed(lambda: ct.bitcast(1.5, ct.int32), dtype="int32", shape=())
    typed(lambda: ct.bitcast(1 << 40, ct.float64), dtype="float64", shape=())
    refused(lambda: ct.bitcast(1, ct.float16))
    refused(lambda: ct.bitcast(1.5, ct.int64))
    varies(lambda: ct.bitcast(1, ct.float32))
    varies(lambda: ct.bitcast(ct.int16(1), ct.uint16))
    assert made(lambda: ct.full(4, ct.bitcast(1.5, ct.int32), ct.int32), "int32", 4)[0] == 0x3FC00000
    assert made(lambda: ct.full(4, ct.bitcast(0x40490FDB, ct.float32), ct.float32), "float32", 4)[0] == np.float32(math.pi)


@clause("BITC-1.tf32")
def test_bitcast_to_tf32():
    c = sample("float32", 3000)
    c = c[~np.isnan(values("float32", c))]
    got = apply(unary(lambda x: ct.bitcast(x, ct.tfloat32).astype(ct.float32), "float32", "float32"), "float32", c)
    assert ((got ^ c) & np.uint32(0xFFFFE000) == 0).all()
    typed(lambda x: ct.bitcast(x, ct.tfloat32), "float32", dtype="tfloat32")
    typed(lambda x: ct.bitcast(x, ct.uint32), "tfloat32", dtype="uint32")


# ------------------------------------------------------------------ bytes


@clause("PACK-1.order", "PACK-1.shape")
@pytest.mark.parametrize("name", [n for n in (*INTEGERS, *FLOATS) if n not in ("float4_e2m1fn", "tfloat32")])
def test_pack(name):
    c = sample(name, 8) if name in FORMATS else integers(name)[-8:].view(f"u{width(name) // 8}")
    d, size = dtype(name), width(name) // 8

    @ct.kernel
    def k(a, out):
        x = ct.reshape(ct.bitcast(ct.load(a, 0, 8), d), (2, 2, 2))
        ct.store(out, 0, ct.pack_to_bytes(x))

    got = run(k, c, np.zeros(8 * size, np.uint8))
    assert bytes(got) == b"".join(int(v).to_bytes(size, "little") for v in c)
    typed(lambda x: ct.pack_to_bytes(x), f"{name} (2, 4)", dtype="uint8", shape=(8 * size,))
    typed(lambda x: ct.pack_to_bytes(x), f"{name} ()", dtype="uint8", shape=(size,))


@clause("PACK-1.f4", "PACK-2.inverse", "PACK-2.shape")
def test_pack_of_four_bits():
    @ct.kernel
    def k(a, out, floats):
        x = ct.unpack_from_bytes(ct.load(a, 0, 128), ct.float4_e2m1fn)
        ct.store(floats, 0, x.astype(ct.float32))
        ct.store(out, 0, ct.pack_to_bytes(ct.reshape(x, (16, 16))))

    a = np.arange(128, dtype=np.uint8) * 2 + 1
    out, floats = np.zeros(128, np.uint8), np.zeros(256, np.float32)
    run(k, a, out, floats)
    assert (out == a).all()
    assert list(floats) == [value("float4_e2m1fn", c) for byte in a.tolist() for c in (byte & 15, byte >> 4)]
    typed(lambda x: ct.pack_to_bytes(x), "float4_e2m1fn (2, 4)", dtype="uint8", shape=(4,))
    typed(lambda x: ct.unpack_from_bytes(x, ct.float4_e2m1fn), "uint8 (4,)", dtype="float4_e2m1fn", shape=(8,))


@clause("PACK-2.inverse", "PACK-2.shape")
@pytest.mark.parametrize("name", [n for n in (*INTEGERS, *FLOATS) if n not in ("float4_e2m1fn", "tfloat32")])
def test_unpack(name):
    d, size = dtype(name), width(name) // 8
    c = sample(name, 16) if name in FORMATS else integers(name)[-16:].view(f"u{size}")

    @ct.kernel
    def k(a, out):
        y = ct.unpack_from_bytes(ct.load(a, 0, 16 * size), d)
        ct.store(out, 0, ct.bitcast(y, WORD))

    WORD = getattr(ct, f"uint{8 * size}")
    stream = np.frombuffer(b"".join(int(v).to_bytes(size, "little") for v in c), np.uint8).copy()
    got = run(k, stream, np.zeros(16, c.dtype))
    assert list(got) == list(c)
    typed(lambda x: ct.unpack_from_bytes(x, d), "uint8 (16,)", dtype=name, shape=(16 // size,))

    def back(x):
        return ct.reshape(ct.unpack_from_bytes(ct.pack_to_bytes(ct.reshape(x, (4, 4))), d), (16,))

    assert list(apply(unary(back, name, name), name, c)) == list(c)


@clause("PACK-2.inverse")
def test_unpack_of_tf32():
    c = sample("tfloat32", 16)
    fn = lambda x: ct.unpack_from_bytes(ct.pack_to_bytes(x), ct.tfloat32)  # noqa: E731
    same_numbers(values("tfloat32", apply(unary(fn, "tfloat32", "tfloat32"), "tfloat32", c)), values("tfloat32", c))


@clause("PACK-1.bool", "PACK-1.bits", "PACK-2.arg", "PACK-2.bool", "PACK-2.bits")
def test_pack_and_unpack_refuse():
    refused(lambda x: ct.pack_to_bytes(x), "bool_")
    refused(lambda x: ct.pack_to_bytes(x), "float4_e2m1fn ()")
    refused(lambda x: ct.pack_to_bytes(x), "float4_e2m1fn (1,)")
    refused(lambda: ct.pack_to_bytes(None))
    for bad in ("uint8 ()", "uint8 (2, 2)", "int8 (4,)", "uint16 (4,)", "bool_ (4,)"):
        refused(lambda x: ct.unpack_from_bytes(x, ct.int8), bad)
    refused(lambda x: ct.unpack_from_bytes(x, ct.bool_), "uint8 (4,)")
    refused(lambda x: ct.unpack_from_bytes(x, ct.int64), "uint8 (4,)")
    refused(lambda x: ct.unpack_from_bytes(x, ct.int16), "uint8 (1,)")
    refused(lambda x: ct.unpack_from_bytes(x, "int8"), "uint8 (4,)")
