"""Rounding modes [RM] and flush_to_zero [FTZ] of element-wise operations."""

import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct
from conformance.harness.code_kernels import apply, binary, unary
from conformance.harness.exact_arithmetic import exact, flushed
from conformance.harness.number_comparison import same_numbers
from conformance.harness.number_formats import decoded, encode, values
from conformance.harness.number_samples import pairs, sample, specials
from conformance.harness.operand_types import folds, refused, typed

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGRAL = ("int8", "int32", "int64", "uint8", "uint64")
DIRECTED = ("RN", "RZ", "RM", "RP")
BINARY = ("add", "sub", "mul", "truediv")


def operands(name):
    x, y = pairs(name, 350)
    near, far = sample(name, 100, 21, near=True), sample(name, 100, 22)
    return np.concatenate([x, near, near]), np.concatenate([y, far, near])  # far apart; equal, so that x - x is zero


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    "op, mode", [pytest.param(op, m, marks=clause(f"RM-1.{op}.{m}")) for op in BINARY for m in DIRECTED]
)
def test_directed(op, mode, name):
    f = getattr(ct, op)
    member = getattr(ct.RoundingMode, mode)
    x, y = operands(name)
    want = np.array(
        [
            exact(op, name, a, b, mode=mode)
            for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)
        ]
    )
    forms = [lambda a, b: f(a, b, rounding_mode=member)]
    if name == "float16":
        forms.append(lambda a, b: f(a, b, rounding_mode=mode))  # the name of a member
        if mode == "RN":
            forms.append(lambda a, b: f(a, b, rounding_mode=None))
    for fn in forms:
        got = values(name, apply(binary(fn, name, name, name), name, x, y))
        same_numbers(got, want, f"{op} of {name} with {mode}", decoded(name, x, y))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("mode", [pytest.param(m, marks=clause(f"RM-1.sqrt.{m}")) for m in DIRECTED])
def test_directed_sqrt(mode, name):
    x = np.concatenate([encode(name, np.array(specials(name))), sample(name, 500, 1), sample(name, 500, 2, near=True)])
    want = np.array([exact("sqrt", name, a, mode=mode) for a in values(name, x).tolist()])
    fn = lambda a: ct.sqrt(a, rounding_mode=mode)
    same_numbers(values(name, apply(unary(fn, name, name), name, x)), want, f"{name} {mode}", decoded(name, x))


def ulps(got, want):
    """Distance of float32 numbers from exact ones, in units of the last place of the exact number."""
    unit = np.ldexp(1.0, np.maximum(np.frexp(want)[1] - 24, -149))
    return np.abs(got - want) / unit


@clause("RM-1.truediv.FULL", "RM-1.truediv.APPROX")
@pytest.mark.parametrize("mode", ["FULL", "APPROX"])
def test_approximate_division(mode):
    x, y = (sample("float32", 4000, s, near=s < 3) for s in (1, 2))
    a, b = values("float32", x), values("float32", y)
    far = sample("float32", 4000, 5), sample("float32", 4000, 6)
    fa, fb = (values("float32", v) for v in far)
    with np.errstate(all="ignore"):
        good = (
            np.isfinite(fa / fb)
            & (np.abs(fb) >= 2.0**-126)
            & (np.abs(fb) <= 2.0**126)
            & (np.abs(fa / fb) >= 2.0**-126)
            & (np.abs(fa / fb) < 2.0**127)
            & (np.abs(fa) >= 2.0**-126)
        )
    x, y, a, b = (np.concatenate([p, q[good]]) for p, q in ((x, far[0]), (y, far[1]), (a, fa), (b, fb)))
    got = apply(
        binary(lambda p, q: ct.truediv(p, q, rounding_mode=mode), "float32", "float32", "float32"), "float32", x, y
    )
    assert ulps(values("float32", got), a / b).max() <= 2


@clause("RM-1.sqrt.APPROX")
def test_approximate_sqrt():
    x = sample("float32", 6000, 3)
    a = values("float32", x)
    ok = np.isfinite(a) & (a >= 2.0**-126)
    got = apply(unary(lambda p: ct.sqrt(p, rounding_mode="APPROX"), "float32", "float32"), "float32", x[ok])
    assert ulps(values("float32", got), np.array([math.sqrt(v) for v in a[ok]])).max() <= 1


@pytest.mark.parametrize("mode, bound", [("APPROX", None), ("FULL", 2), (None, 2)])
@pytest.mark.parametrize(
    "op",
    [
        pytest.param("exp", marks=clause("RM-1.exp.FULL", "RM-1.exp.APPROX")),
        pytest.param("tanh", marks=clause("RM-1.tanh.FULL", "RM-1.tanh.APPROX")),
    ],
)
def test_approximate_functions(op, mode, bound):
    f, oracle = getattr(ct, op), getattr(math, op)
    x = encode("float32", np.concatenate([np.linspace(-80, 80, 3001), np.linspace(-1, 1, 1000)]))
    got = values("float32", apply(unary(lambda p: f(p, rounding_mode=mode), "float32", "float32"), "float32", x))
    want = np.array([oracle(v) for v in values("float32", x)])
    assert ulps(got, want).max() <= (bound or {"exp": 62, "tanh": 129}[op])


# ------------------------------------------------------------------ what there is not


@pytest.mark.parametrize(
    "op, modes",
    [
        *(
            pytest.param(op, ("RA", "FULL", "APPROX", "RZI"), marks=clause(f"RM-1.{op}.other"))
            for op in ("add", "sub", "mul")
        ),
        pytest.param("truediv", ("RA", "RZI"), marks=clause("RM-1.truediv.other")),
        pytest.param("sqrt", ("RA", "RZI", "FULL"), marks=clause("RM-1.sqrt.other")),
        pytest.param("exp", ("RA", "RZI", "RN", "RZ", "RM", "RP"), marks=clause("RM-1.exp.other")),
        pytest.param("tanh", ("RA", "RZI", "RN", "RZ", "RM", "RP"), marks=clause("RM-1.tanh.other")),
    ],
)
def test_other_modes(op, modes):
    f = getattr(ct, op)
    for mode in (*modes, "nearest_even", "rn", 0, True, ct.PaddingMode.ZERO):
        if op in BINARY:
            refused(lambda x: f(x, x, rounding_mode=mode), "float32")
        else:
            refused(lambda x: f(x, rounding_mode=mode), "float32")


@pytest.mark.parametrize("op", [pytest.param(op, marks=clause(f"RM-2.{op}.int")) for op in ("add", "sub", "mul")])
@pytest.mark.parametrize("name", [*INTEGRAL, "int16"])
def test_modes_need_a_float_result(op, name):
    f = getattr(ct, op)
    for mode in DIRECTED:
        refused(lambda x: f(x, x, rounding_mode=mode), name)
    typed(lambda x: f(x, x, rounding_mode=None), name, dtype=name)
    typed(lambda x: f(x, 1.5, rounding_mode="RZ"), name, dtype="float32")


@pytest.mark.parametrize(
    "op, mode",
    [
        pytest.param("truediv", "FULL", marks=clause("RM-2.truediv.FULL")),
        pytest.param("truediv", "APPROX", marks=clause("RM-2.truediv.APPROX")),
        pytest.param("sqrt", "APPROX", marks=clause("RM-2.sqrt")),
        pytest.param("exp", "FULL", marks=clause("RM-2.exp")),
        pytest.param("exp", "APPROX", marks=clause("RM-2.exp")),
        pytest.param("tanh", "FULL", marks=clause("RM-2.tanh")),
        pytest.param("tanh", "APPROX", marks=clause("RM-2.tanh")),
    ],
)
def test_approximations_need_float32(op, mode):
    f = getattr(ct, op)
    fn = (lambda x: f(x, x, rounding_mode=mode)) if op == "truediv" else (lambda x: f(x, rounding_mode=mode))
    for name in ("float16", "bfloat16", "float64"):
        refused(fn, name)
    for name in ("float32", "int8", "bool_"):
        typed(fn, name, dtype="float32")


@pytest.mark.parametrize("op", ["exp2", "rsqrt", "log", "sin", "floordiv", "mod", "minimum", "pow", "atan2", "cdiv"])
@clause("RM-1.none")
def test_operations_without_a_mode(op):
    f = getattr(ct, op)
    refused(
        lambda x: f(x, rounding_mode="RN") if op in ("exp2", "rsqrt", "log", "sin") else f(x, x, rounding_mode="RN"),
        "float32",
    )


@pytest.mark.parametrize("op", [pytest.param(op, marks=clause(f"RM-2.{op}.const")) for op in BINARY])
def test_options_do_not_count_for_constants(op):
    f = getattr(ct, op)
    nearest = float(np.float32(exact(op, "float32", float(np.float32(0.1)), float(np.float32(0.7)))))
    for mode in ("RZ", "RM", "RP", "RA", "APPROX"):
        folds(lambda: f(ct.float32(0.1), ct.float32(0.7), rounding_mode=mode), nearest, "float32")
    folds(lambda: f(6, 2, rounding_mode="RZ"), {"add": 8, "sub": 4, "mul": 12, "truediv": 3.0}[op])
    folds(lambda: f(ct.int8(6), 2, flush_to_zero=True), {"add": 8, "sub": 4, "mul": 12, "truediv": 3.0}[op])
    tiny = 2.0**-130
    folds(lambda: f(ct.float32(tiny), ct.float32(1), flush_to_zero=True) == f(ct.float32(tiny), 1), True)


@clause("FTZ-1.minimum.const", "FTZ-1.maximum.const")
def test_flushing_does_not_count_for_constants():
    folds(lambda: ct.minimum(ct.float32(2.0**-130), 1.0, flush_to_zero=True), 2.0**-130, "float32")
    folds(lambda: ct.maximum(ct.float32(2.0**-130), 0.0, flush_to_zero=True), 2.0**-130, "float32")
    folds(lambda: ct.maximum(3, 4, flush_to_zero=True, propagate_nan=True), 4, "int32")


# ------------------------------------------------------------------ flush_to_zero


def tiny_pairs():
    x, y = pairs("float32", 400)
    rng = np.random.default_rng(1)
    small = [
        encode("float32", np.ldexp(rng.uniform(0.5, 2, 600), rng.integers(-130, -120, 600)) * rng.choice([-1, 1], 600))
        for _ in range(2)
    ]
    halves = encode(
        "float32", np.ldexp(rng.uniform(0.5, 2, 600), rng.integers(-66, -60, 600)) * rng.choice([-1, 1], 600)
    )
    return np.concatenate([x, small[0], halves]), np.concatenate([y, small[1], halves[::-1]])


@pytest.mark.parametrize("op", [pytest.param(op, marks=clause(f"FTZ-1.{op}")) for op in BINARY])
@pytest.mark.parametrize("mode", [None, "RZ", "RP", "RM"])
def test_flush_to_zero(op, mode):
    f = getattr(ct, op)
    x, y = tiny_pairs()
    pairs_ = zip(values("float32", x).tolist(), values("float32", y).tolist(), strict=True)
    want = np.array([flushed(exact(op, "float32", flushed(a), flushed(b), mode=mode or "RN")) for a, b in pairs_])
    fn = lambda a, b: f(a, b, rounding_mode=mode, flush_to_zero=True)
    got = values("float32", apply(binary(fn, "float32", "float32", "float32"), "float32", x, y))
    same_numbers(
        np.where(np.abs(want) == 2.0**-126, want, got), want, op
    )  # an implementation may test the edge before or after rounding
    edge = np.abs(want) == 2.0**-126
    assert (np.isin(got[edge], [0, 2.0**-126, -(2.0**-126)])).all()


@pytest.mark.parametrize(
    "op",
    [pytest.param("minimum", marks=clause("FTZ-1.minimum")), pytest.param("maximum", marks=clause("FTZ-1.maximum"))],
)
def test_flushing_extremes(op):
    f = getattr(ct, op)
    rows = [
        (2.0**-130, 1.0),
        (-(2.0**-130), 1.0),
        (2.0**-130, 2.0**-140),
        (2.0**-130, -0.0),
        (-(2.0**-130), 0.0),
        (-(2.0**-126), 2.0**-126),
    ]
    want = []
    for a, b in rows:
        a, b = flushed(a), flushed(b)
        low = -0.0 if a == b == 0 and -1.0 in (math.copysign(1, a), math.copysign(1, b)) else min(a, b)
        high = 0.0 if a == b == 0 and 1.0 in (math.copysign(1, a), math.copysign(1, b)) else max(a, b)
        want.append(low if op == "minimum" else high)
    x, y = (encode("float32", [r[i] for r in rows]) for i in (0, 1))
    fn = lambda a, b: f(a, b, flush_to_zero=True)
    same_numbers(values("float32", apply(binary(fn, "float32", "float32", "float32"), "float32", x, y)), np.array(want))


@clause("FTZ-1.exp2", "FTZ-1.sqrt", "FTZ-1.rsqrt")
def test_flushing_functions():
    def run_(fn, xs):
        return values("float32", apply(unary(fn, "float32", "float32"), "float32", encode("float32", xs)))

    inf = math.inf
    same_numbers(
        run_(lambda x: ct.exp2(x, flush_to_zero=True), [-127.0, -149.0, -125.0, 2.0**-130, 3.0]),
        np.array([0, 0, 2.0**-125, 1, 8]),
    )
    kept = run_(lambda x: ct.exp2(x), [-127.0, -149.0])
    assert (np.abs(kept - [2.0**-127, 2.0**-149]) <= 3 * 2.0**-149).all() and kept[0] > 0  # within 3 ulp
    same_numbers(
        run_(lambda x: ct.sqrt(x, flush_to_zero=True), [2.0**-130, -(2.0**-130), 2.0**-126, 4.0]),
        np.array([0.0, -0.0, 2.0**-63, 2.0]),
    )
    same_numbers(run_(lambda x: ct.sqrt(x), [2.0**-130]), np.array([2.0**-65]))
    same_numbers(
        run_(lambda x: ct.sqrt(x, flush_to_zero=True, rounding_mode="RP"), [2.0**-130, 2.0]),
        np.array(
            [
                0.0,
                float(np.nextafter(np.float32(math.sqrt(2)), np.float32(2)))
                if float(np.float32(math.sqrt(2))) < math.sqrt(2)
                else float(np.float32(math.sqrt(2))),
            ]
        ),
    )
    same_numbers(
        run_(lambda x: ct.rsqrt(x, flush_to_zero=True), [2.0**-130, -(2.0**-130), 2.0**-126, 4.0]),
        np.array([inf, -inf, 2.0**63, 0.5]),
    )
    same_numbers(run_(lambda x: ct.rsqrt(x), [2.0**-130]), np.array([2.0**65]))


FLUSHING = {
    **{op: lambda f, x: f(x, x, flush_to_zero=True) for op in (*BINARY, "minimum", "maximum")},
    **{op: lambda f, x: f(x, flush_to_zero=True) for op in ("exp2", "sqrt", "rsqrt")},
}


@pytest.mark.parametrize("op", [pytest.param(op, marks=clause(f"FTZ-1.{op}.dtype")) for op in FLUSHING])
def test_flushing_needs_float32(op):
    f, form = getattr(ct, op), FLUSHING[op]
    for name in ("float16", "bfloat16", "float64", *(() if op in ("truediv", "exp2", "sqrt", "rsqrt") else INTEGRAL)):
        refused(lambda x: form(f, x), name)
    typed(lambda x: form(f, x), "float32", dtype="float32")
    for bad in (1, None, "True", 0.0):
        refused(
            lambda x: f(x, x, flush_to_zero=bad) if op in (*BINARY, "minimum", "maximum") else f(x, flush_to_zero=bad),
            "float32",
        )
    typed(
        lambda x: f(x, x, flush_to_zero=False) if op in (*BINARY, "minimum", "maximum") else f(x, flush_to_zero=False),
        "float16",
        dtype="float16",
    )
