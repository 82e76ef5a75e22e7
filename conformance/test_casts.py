"""Conversions between floats [CAST-6 … CAST-13]."""

import math
from fractions import Fraction

import numpy as np
import pytest

from conformance.harness.api import clause, ct
from conformance.harness.code_kernels import apply, dtype, unary
from conformance.harness.exact_arithmetic import nearest
from conformance.harness.number_comparison import same_numbers
from conformance.harness.number_formats import FLOATS, FORMATS, INTEGERS, SMALL, codes, encode, rounded, values
from conformance.harness.number_samples import sample
from conformance.harness.operand_types import folds, refused, typed

inf, nan = math.inf, math.nan


SHORT = {
    "float64": "f64",
    "float32": "f32",
    "tfloat32": "tf32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "float8_e8m0fnu": "e8m0",
    "float8_e5m3fnu": "e5m3",
    "float4_e2m1fn": "e2m1",
}


MODES = ("RN", "RZ", "RM", "RP", "RA")


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


def converted(src, dst, mode="RN"):
    """The doubles that the cast of every source value must give, and which results are undetermined."""
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


@pytest.mark.parametrize(
    "dst, src, mode",
    [
        pytest.param(
            dst,
            src,
            mode,
            marks=clause(f"CAST-9.{SHORT[dst]}.{SHORT[src]}.{mode}"),
            id=f"{SHORT[dst]}-{SHORT[src]}-{mode}",
        )
        for dst in FLOATS
        for src in FLOATS
        if src != dst
        for mode in MODES
    ],
)
@clause(
    "CAST-9.RZ",
    "CAST-9.RM",
    "CAST-9.RP",
    "CAST-9.RA",
    "CAST-9.f8e8m0",
    "CAST-9.inf",
    "CAST-10.pair",
    "CAST-6.wide",
    "CAST-6.nearest",
    "CAST-13",
)
def test_float_to_float(dst, src, mode):
    d = dtype(dst)
    if not allowed(dst, src, mode):
        refused(lambda x: x.astype(d, rounding_mode=mode), src)
        refused(lambda x: ct.astype(x, d, rounding_mode=mode), src)
        return
    member = getattr(ct.RoundingMode, mode)
    c, want, free = converted(src, dst, mode)
    form = (lambda x: ct.astype(x, d, rounding_mode=member)) if mode != "RN" or "float16" in (src, dst) else None
    for fn in (form, (lambda x: ct.astype(x, d)) if mode == "RN" else None):
        if fn is not None:
            got = values(dst, apply(unary(fn, src, dst), dst, c))
            same_numbers(got[~free], want[~free], f"{src} to {dst} with {mode}", [values(src, c)[~free]])


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
@pytest.mark.parametrize(
    "dst, values_, want",
    [
        ("float16", [65519.0, 65520.0, -65520.0, 1e30, inf], [65504.0, inf, -inf, inf, inf]),
        ("bfloat16", [3.39e38, 3.3961776e38, -3.4028235e38, inf], [3.3895313892515355e38, inf, -inf, inf]),
        (
            "float32",
            [3.4028235677973366e38, 3.4028235677973362e38, -1e300, inf],
            [inf, 3.4028234663852886e38, -inf, inf],
        ),
    ],
)
def test_overflow(dst, values_, want):
    got = values(dst, apply(unary(lambda x: x.astype(dtype(dst)), "float64", dst), dst, encode("float64", values_)))
    assert list(got) == want


@clause("CAST-7.max", "CAST-7.inf")
@pytest.mark.parametrize(
    "dst, top",
    [("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0), ("float4_e2m1fn", 6.0), ("float8_e5m3fnu", 114688.0)],
)
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


@clause("CAST-6.nearest", "CAST-7.nan")
@pytest.mark.parametrize("dst", ["float16", "bfloat16", "tfloat32", "float8_e4m3fn", "float8_e5m2"])
def test_a_nan_whose_payload_has_no_room(dst):
    x = np.array([0x7F800001, 0xFF800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF, 0x7F800100], np.uint32)
    assert np.isnan(values(dst, apply(unary(lambda t: t.astype(dtype(dst)), "float32", dst), dst, x))).all()


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
@pytest.mark.parametrize(
    "src, dst",
    [
        ("int32", "float32"),
        ("float32", "int32"),
        ("int8", "int16"),
        ("bool_", "float16"),
        ("float16", "bool_"),
        ("int32", "int32"),
        ("bool_", "bool_"),
    ],
)
@pytest.mark.parametrize("mode", ["RN", "RZ", "FULL"])
def test_no_mode_for_integers(src, dst, mode):
    d = dtype(dst)
    refused(lambda x: x.astype(d, rounding_mode=mode), src)
