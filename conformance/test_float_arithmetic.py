"""Floats at the default rounding [ARITH], and the fused multiply-add [MACH-7]."""

import math
from fractions import Fraction

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run
from conformance.harness.code_kernels import apply, binary, ternary
from conformance.harness.exact_arithmetic import chosen, exact, nearest
from conformance.harness.number_comparison import same_numbers
from conformance.harness.number_formats import FORMATS, decoded, encode, values
from conformance.harness.number_samples import pairs, sample, specials

inf, nan = math.inf, math.nan


FLOATS = ("float16", "bfloat16", "float32", "float64")


# ------------------------------------------------------------------ floats


def of_floats(fn, name, x, y):
    return values(name, apply(binary(fn, name, name, name), name, x, y))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    "op, fn",
    [
        pytest.param("add", lambda x, y: x + y, marks=clause("ARITH-1.float")),
        pytest.param("sub", lambda x, y: x - y, marks=clause("ARITH-2.float")),
        pytest.param("mul", lambda x, y: x * y, marks=clause("ARITH-3.float")),
        pytest.param(
            "truediv",
            lambda x, y: x / y,
            marks=clause("ARITH-4.float", "ARITH-4.zero", "ARITH-4.zeros", "ARITH-4.operator"),
        ),
    ],
)
def test_floats(op, fn, name):
    x, y = pairs(name)
    want = [exact(op, name, a, b) for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)]
    for form in (fn, getattr(ct, op)):
        same_numbers(of_floats(form, name, x, y), np.array(want), f"{op} of {name}", decoded(name, x, y))


def floored(x):
    return x if not math.isfinite(x) or x == 0 else float(math.floor(x)) if x >= 1 or x < 0 else 0.0


@clause("ARITH-5.float", "ARITH-5.operator")
@pytest.mark.parametrize("name", FLOATS)
def test_float_floordiv(name):
    x, y = pairs(name)
    q = [exact("truediv", name, a, b) for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)]
    for form in (ct.floordiv, lambda a, b: a // b):
        same_numbers(of_floats(form, name, x, y), np.array(list(map(floored, q))), name, decoded(name, x, y))


@clause("ARITH-6.float")
@pytest.mark.parametrize("name", FLOATS)
def test_float_cdiv(name):
    x, y = pairs(name)
    q = [exact("truediv", name, a, b) for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)]
    want = np.array([-floored(-v) if v == v else v for v in q])
    same_numbers(of_floats(ct.cdiv, name, x, y), want, name, decoded(name, x, y))


def exact_mod(name, a, b):
    if a != a or b != b or math.isinf(a) or b == 0:
        return nan
    if math.isinf(b):
        return a if a == 0 or (a < 0) == (b < 0) else b
    q = Fraction(a) / Fraction(b)
    r = Fraction(a) - Fraction(b) * math.trunc(q)
    if r == 0:
        return math.copysign(0.0, a)
    return nearest(name, r if (r < 0) == (b < 0) else r + Fraction(b))


@clause("ARITH-7.float", "ARITH-7.float.zero", "ARITH-7.float.inf", "ARITH-7.float.mod_inf", "ARITH-7.operator")
@pytest.mark.parametrize("name", FLOATS)
def test_float_mod(name):
    x, y = pairs(name, 300)
    want = [exact_mod(name, a, b) for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)]
    for form in (ct.mod, lambda a, b: a % b):
        same_numbers(of_floats(form, name, x, y), np.array(want), name, decoded(name, x, y))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    "op, forms, smaller, propagate",
    [
        pytest.param(
            "min",
            (ct.minimum, lambda x, y: min(x, y)),
            True,
            False,
            marks=clause("ARITH-9.min.float", "ARITH-9.min.nan", "ARITH-9.min.zero", "ARITH-9.min.builtin"),
        ),
        pytest.param(
            "max",
            (ct.maximum, lambda x, y: max(x, y)),
            False,
            False,
            marks=clause("ARITH-9.max.float", "ARITH-9.max.nan", "ARITH-9.max.zero", "ARITH-9.max.builtin"),
        ),
        pytest.param(
            "min",
            (lambda x, y: ct.minimum(x, y, propagate_nan=True),),
            True,
            True,
            marks=clause("ARITH-9.min.propagate", "ARITH-9.min.zero"),
        ),
        pytest.param(
            "max",
            (lambda x, y: ct.maximum(x, y, propagate_nan=True),),
            False,
            True,
            marks=clause("ARITH-9.max.propagate", "ARITH-9.max.zero"),
        ),
    ],
)
def test_minimum_and_maximum(op, forms, smaller, propagate, name):
    x, y = pairs(name)
    want = [
        chosen(a, b, smaller, propagate)
        for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)
    ]
    for fn in forms:
        same_numbers(of_floats(fn, name, x, y), np.array(want), f"{op} of {name}", decoded(name, x, y))


# ------------------------------------------------------------------ fused multiply-add


@clause("MACH-7.once")
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    "fn, signs",
    [
        (lambda x, y, z: x * y + z, (1, 1)),
        (lambda x, y, z: x * y - z, (1, -1)),
        (lambda x, y, z: z - x * y, (-1, 1)),
        (lambda x, y, z: z + x * y, (1, 1)),
    ],
)
def test_fused_multiply_add(fn, signs, name):
    n = 400
    rng = np.random.default_rng(11)
    s = encode(name, np.array(specials(name)))
    x = np.concatenate([sample(name, n, 1, near=True), sample(name, n, 2), rng.choice(s, n)])
    y = np.concatenate([sample(name, n, 3, near=True), sample(name, n, 4)[::-1], rng.choice(s, n)])
    product = [
        exact("mul", name, a, b) for a, b in zip(values(name, x).tolist(), values(name, y).tolist(), strict=True)
    ]
    cancelling = encode(name, -np.array(product))  # where the rounding of the product shows
    z = np.concatenate(
        [
            cancelling[: n // 2],
            sample(name, n - n // 2, 5, near=True),
            cancelling[n : n + n // 2],
            sample(name, n - n // 2, 6),
            rng.choice(s, n),
        ]
    )
    want = [
        exact("fma", name, signs[0] * a, b, signs[1] * c)
        for a, b, c in zip(*(values(name, v).tolist() for v in (x, y, z)), strict=True)
    ]
    got = values(name, apply(ternary(fn, name), name, x, y, z))
    same_numbers(got, np.array(want), name, decoded(name, x, y, z))


@clause("MACH-7.once")
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("up", [True, False])
def test_fused_multiply_add_beside_ties_of_subnormals(name, up):
    """The sum lies so close to the middle of two subnormals that double the precision cannot tell the side."""
    f = FORMATS[name]
    unit, m = Fraction(2) ** (f.emin - f.fraction), f.fraction
    k = np.array([2**i + 1 for i in range(1, m)] + [2**i for i in range(2, m)])
    z = [float(int(i) * unit) for i in k]
    half = 2.0 ** (f.emin + 1)
    x, y = (1 + 2.0**-m) * half, (1 - 2.0**-m) * 2.0 ** (-m - 2)  # their product: just below half a unit
    if up:
        y = (1 + 2.0**-m) * 2.0 ** (-m - 2)
    for sign in (1, -1):
        a, b, c = (encode(name, np.array(v)) for v in ([sign * x] * len(k), [y] * len(k), [sign * v for v in z]))
        want = [exact("fma", name, sign * x, y, sign * v) for v in z]
        got = values(name, apply(ternary(lambda p, q, r: p * q + r, name), name, a, b, c))
        same_numbers(got, np.array(want), name, decoded(name, a, b, c))


@clause("MACH-7.once")
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("mode", ["RZ", "RM", "RP"])
def test_fused_multiply_add_with_a_mode(name, mode):
    def fn(x, y, z):
        return ct.add(ct.mul(x, y, rounding_mode=mode), z, rounding_mode=mode)

    n = 200
    x, y = sample(name, n, 1, near=True), sample(name, n, 3, near=True)
    x = np.concatenate([x, sample(name, n, 8)])
    y = np.concatenate([y, sample(name, n, 9)[::-1]])
    a, b = values(name, x).tolist(), values(name, y).tolist()
    product = encode(name, [-exact("mul", name, p, q) for p, q in zip(a, b, strict=True)])
    z = np.where(np.arange(2 * n) % 2, product, sample(name, 2 * n, 7))
    want = [exact("fma", name, p, q, r, mode=mode) for p, q, r in zip(a, b, values(name, z).tolist(), strict=True)]
    got = values(name, apply(ternary(fn, name), name, x, y, z))
    same_numbers(got, np.array(want), f"{name} {mode}", decoded(name, x, y, z))


@clause("MACH-7.once")
@pytest.mark.parametrize("e", [400, 498, 502, 990, 995, 998, 1010, 1021])
def test_fused_multiply_add_of_large_and_small(e):
    """The error of the rounded product counts, even if one factor is too large to be split into halves."""
    x, y = (1 + 2.0**-52) * 2.0**e, (1 + 2.0**-52) * 2.0**-e
    rows = [(p, q, -(p * q) * s) for p, q in ((x, y), (y, x), (-x, y)) for s in (1.0, 1 + 2.0**-52, 0.5)]
    a, b, c = (encode("float64", np.array(v)) for v in zip(*rows, strict=True))
    got = values("float64", apply(ternary(lambda p, q, r: p * q + r, "float64"), "float64", a, b, c))
    same_numbers(got, np.array([exact("fma", "float64", *r) for r in rows]), f"2**{e}")


@clause("MACH-7.once")
def test_fused_multiply_add_with_flushing():
    def fn(x, y, z):
        return ct.add(ct.mul(x, y, flush_to_zero=True), z, flush_to_zero=True)

    tiny = 2.0**-127
    rows = [
        (tiny, 2.0, 0.0, 0.0),
        (2.0**-126, 0.5, 0.0, 0.0),
        (1.0, 1.0, tiny, 1.0),
        (2.0**-100, -(2.0**-27), 0.0, -0.0),
        (3.0, 5.0, 7.0, 22.0),
        (2.0**-126, 1.0, -tiny, 2.0**-126),
    ]
    x, y, z, want = (np.array(c) for c in zip(*rows, strict=True))
    got = apply(ternary(fn, "float32"), "float32", *(encode("float32", v) for v in (x, y, z)))
    same_numbers(values("float32", got), want)


@clause("ARITH-1.dtype")
def test_operators_of_scalars_and_arrays():
    @ct.kernel
    def k(a, out, i, f: float):
        x = ct.load(a, 0, 4)
        ct.store(out, 0, i - x)
        ct.store(out, 1, x * f)

    out = run(k, np.arange(4, dtype=np.float32), np.zeros(8, np.float32), 10, 0.5)
    assert list(out) == [10, 9, 8, 7, 0, 0.5, 1, 1.5]
