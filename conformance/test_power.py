"""The power operator [POW]."""

import math

import mpmath
import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, run
from conformance.harness.code_kernels import apply, binary, made, numbers_of, unary
from conformance.harness.exact_arithmetic import exact
from conformance.harness.integer_arithmetic import limits, wrap
from conformance.harness.number_comparison import assert_within, same_numbers
from conformance.harness.number_formats import INTEGERS, decoded, encode, values
from conformance.harness.number_samples import sample, specials
from conformance.harness.operand_types import folds, refused, strict, typed, varies

inf, nan = math.inf, math.nan
FLOATS = ("float16", "bfloat16", "float32", "float64")
RESTRICTED = ("tfloat32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu", "float4_e2m1fn")


# ------------------------------------------------------------------ float ** integer


def squared(name, x, n):
    """The steps of POW-1, each rounded."""
    if name in ("float16", "bfloat16"):
        wide = squared("float32", x, n)
        return values(name, encode(name, np.array([wide]))).item()
    e = abs(n)
    r = x if e & 1 else 1.0
    e >>= 1
    while e:
        x = exact("mul", name, x, x)
        if e & 1:
            r = exact("mul", name, x, r)
        e >>= 1
    return exact("truediv", name, 1.0, r) if n < 0 else r


EXPONENTS = (0, 1, 2, 3, 4, 5, 6, 7, 10, 13, 31, 100, 127, -1, -2, -3, -4, -7, -10, -127, -128)


@clause("POW-1.square", "POW-1.zero", "POW-1.steps", "POW-1.wide", "POW-1.negative", "POW-1.overflow", "POW-1.operator")
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("exponent", ["int8", "int16", "int32"])
def test_integer_power(name, exponent):
    x = np.concatenate([encode(name, np.array(specials(name))), sample(name, 30, 1, near=True)])
    x, n = np.repeat(x, len(EXPONENTS)), np.tile(np.array(EXPONENTS, exponent), len(x))
    want = np.array([squared(name, a, b) for a, b in zip(values(name, x).tolist(), n.tolist(), strict=True)])
    for fn in (lambda a, b: a**b, ct.pow):
        got = apply(binary(fn, name, exponent, name), name, x, n.view(f"u{n.itemsize}"))
        same_numbers(values(name, got), want, f"{name} ** {exponent}", [*decoded(name, x), n])


@clause("POW-1.zero", "POW-1.overflow", "POW-1.square")
def test_integer_power_by_hand():
    x = encode("float32", [nan, inf, -inf, 0.0, 2.0**100, -3.0, 0.1])
    for n, want in (
        (0, [1] * 7),
        (2, [nan, inf, inf, 0.0, inf, 9.0, float(np.float32(0.1) * np.float32(0.1))]),
        (-2, [nan, 0.0, 0.0, inf, 0.0, None, None]),
        (-1, [nan, 0.0, -0.0, inf, 2.0**-100, None, 10.0]),
        (3, [nan, inf, -inf, 0.0, inf, -27.0, None]),
    ):
        k = binary(lambda a, b: a**b, "float32", "int32", "float32")
        got = values("float32", apply(k, "float32", x, np.full(7, n, np.int32).view(np.uint32)))
        keep = [i for i, w in enumerate(want) if w is not None]
        same_numbers(got[keep], np.array([want[i] for i in keep], float), str(n))


@clause("POW-1.choice", "POW-1.steps")
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("exponent", ["uint8", "uint16"])
def test_integer_power_without_sign(name, exponent):
    """Exponents of the upper half are not negative."""
    most = np.iinfo(exponent).max
    n = np.array([0, 1, most // 2, most // 2 + 1, most], exponent)
    for base in (1 + 2.0**-7, -1.0, 0.5):
        x = np.repeat(encode(name, [base]), len(n))
        want = np.array([squared(name, base, int(e)) for e in n])
        got = apply(binary(lambda a, b: a**b, name, exponent, name), name, x, n.view(f"u{n.itemsize}"))
        same_numbers(values(name, got), want, f"{base} ** {exponent}", [*decoded(name, x), n])


@clause("POW-1.square")
def test_exponents_that_differ_by_block_are_repeated():
    @ct.kernel
    def k(x, n, out):
        b = ct.bid(0)
        ct.store(out, (b, 0, 0), (ct.load(x, (0, 0), (2, 4)) ** ct.load(n, b, 4)).reshape((1, 2, 4)))

    x, n = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32), np.arange(12, dtype=np.int32) % 5
    got = run(k, x, n, np.zeros((3, 2, 4), np.float32), grid=(3,))
    assert got.tolist() == [[[float(a**b) for a, b in zip(r, e)] for r in x.tolist()] for e in n.reshape(3, 4).tolist()]


@clause("POW-1.choice", "POW-1.literal")
def test_which_powers_are_integer_powers():
    """x ** 3 by squaring has two visible roundings."""
    for name in FLOATS:
        x = sample(name, 300, 4, near=True)
        v = values(name, x).tolist()
        by_steps = np.array([squared(name, a, 3) for a in v])
        for power in (
            lambda a: a**3,
            lambda a: a ** ct.int8(3),
            lambda a: a ** ct.uint16(3),
            lambda a: ct.pow(a, ct.uint8(3)),
            lambda a: a ** (3 + 0 * ct.bid(0)),
        ):
            same_numbers(values(name, apply(unary(power, name, name), name, x)), by_steps, name, decoded(name, x))
        for other in ("int8 ()", "int32", "uint8", "uint16", "int16"):
            typed(lambda a, b: a**b, name, other, dtype=name)
    typed(lambda a, b: a**b, "float16 (2, 1)", "int32 (4,)", dtype="float16", shape=(2, 4))
    typed(lambda a, b: a**b, "float16 ()", "int32 (4,)", dtype="float16")
    typed(lambda a: a ** (1 << 40), "float32", dtype="float32")
    refused(lambda a, b: a**b, "float16 (4,)", "int32 (8,)")


@clause("POW-1.nofold")
def test_integer_powers_of_constants_are_runtime_values():
    varies(lambda: ct.float32(2) ** 3)
    varies(lambda: ct.float16(2) ** ct.int8(3))
    varies(lambda: 2.0 ** ct.int8(3))
    folds(lambda: 2.0**3, 8.0, "float32")
    folds(lambda: ct.float32(2) ** 3.0, 8.0, "float32")
    assert made(lambda: ct.full(4, ct.float32(2) ** 3, ct.float32), "float32", 4)[0] == 8


# ------------------------------------------------------------------ float powers


def c_pow(a, b):
    """C's pow of doubles."""
    if b == 0 or a == 1:
        return 1.0
    try:
        return math.pow(a, b)
    except OverflowError:
        return -inf if a < 0 and b % 2 == 1 else inf
    except ValueError:
        return nan if a < 0 and math.isfinite(a) else -inf if math.copysign(1, a) < 0 and b % 2 == 1 else inf


@clause("POW-2.error", "POW-2.zero", "POW-2.one", "POW-2.negative", "POW-2.pole", "POW-2.inf")
@pytest.mark.parametrize("name", FLOATS)
def test_float_power(name):
    s = encode(name, np.array([*specials(name), -2.0, -3.0, 2.5]))
    x = np.concatenate(
        [np.repeat(s, len(s)), sample(name, 2000, 1, near=True) & ~np.array(1 << (8 * s.itemsize - 1), s.dtype)]
    )
    y = np.concatenate([np.tile(s, len(s)), sample(name, 2000, 2, near=True)])
    a, b = values(name, x).tolist(), values(name, y).tolist()
    want = np.array([c_pow(p, q) for p, q in zip(a, b, strict=True)])
    if name == "float64":
        with mpmath.workdps(40):
            near = [float(mpmath.mpf(p) ** mpmath.mpf(q)) for p, q in zip(a[-2000:], b[-2000:], strict=True)]
        want[-2000:] = near
    for fn in (lambda p, q: p**q, ct.pow):
        got = values(name, apply(binary(fn, name, name, name), name, x, y))
        assert_within(got, want, 1.01, name)


@pytest.mark.parametrize(
    "x, y, want",
    [
        *(pytest.param(x, 0.0, 1.0, marks=clause("POW-2.zero")) for x in (nan, inf, -inf, 0.0, -3.0)),
        *(pytest.param(1.0, y, 1.0, marks=clause("POW-2.one")) for y in (nan, inf, -inf, 0.5)),
        *(
            pytest.param(x, y, nan, marks=clause("POW-2.negative"))
            for x, y in ((-2.0, 0.5), (-1.0, -1.5), (-0.5, 2.25))
        ),
        *(pytest.param(x, y, inf, marks=clause("POW-2.pole")) for x, y in ((0.0, -1.0), (0.0, -0.5), (-0.0, -2.0))),
        *(
            pytest.param(x, y, w, marks=clause("POW-2.inf"))
            for x, y, w in (
                (inf, 2.0, inf),
                (inf, -2.0, 0.0),
                (0.5, inf, 0.0),
                (2.0, inf, inf),
                (2.0, -inf, 0.0),
                (-inf, 3.0, -inf),
                (-1.0, inf, 1.0),
            )
        ),
    ],
)
def test_special_powers(x, y, want):
    for name in FLOATS:
        got = apply(binary(lambda p, q: p**q, name, name, name), name, encode(name, [x]), encode(name, [y]))
        same_numbers(values(name, got), np.array([want]), name)


@clause("POW-2.zero", "POW-2.one", "POW-2.negative", "POW-2.pole", "POW-2.inf", "POW-2.error")
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (8,), (2, 4)])
@pytest.mark.parametrize("name", FLOATS)
def test_one_exponent_for_all(name, shape):
    """Roots, squares and reciprocals are powers, with the special values of powers."""
    d, bases = getattr(ct, name), (-0.0, 0.0, -inf, inf, nan, -1.0, 1.0, 2.5)
    exponents = (0.5, -0.5, 2.0, -1.0, 1.0, 0.0, 3.0, 1.5)

    @ct.kernel
    def k(x, y, known, loaded):
        for i in ct.static_iter(range(8)):
            base = ct.broadcast_to(ct.load(x, i, ()).astype(d), shape)
            for j, e in ct.static_iter(enumerate(exponents)):
                n = ct.full(shape, e, d)
                ct.store(known, (i, j, 0), (base**n).astype(ct.float64).reshape((1, 1, -1)))
                n = ct.broadcast_to(ct.load(y, j, ()).astype(d), shape)
                ct.store(loaded, (i, j, 0), ct.pow(base, n).astype(ct.float64).reshape((1, 1, -1)))

    size = int(np.prod(shape))
    x, y, known, loaded = np.array(bases), np.array(exponents), np.zeros((8, 8, size)), np.zeros((8, 8, size))
    launch(k, x, y, known, loaded)
    want = [[c_pow(x, e) for e in exponents] for x in bases]
    want = np.broadcast_to(np.array(want)[..., None], known.shape)
    for got in (known, loaded):
        assert_within(got.ravel(), want.ravel(), 1.01, name)


@clause("POW-2.dtype", "POW-2.wide")
def test_dtypes_of_powers():
    power = lambda a, b: a**b
    for a, b, d in (
        ("float16", "float32", "float32"),
        ("int8", "float16", "float16"),
        ("float32", "int64", "float32"),
        ("float16", "uint32", "float16"),
        ("bfloat16", "uint64", "bfloat16"),
        ("bool_", "float32", "float32"),
        ("float32", "bool_", "float32"),
        ("int64", "float64", "float64"),
        ("int8", "int16", "int16"),
    ):
        typed(power, a, b, dtype=d)
        typed(ct.pow, a, b, dtype=d)
    typed(lambda a: a**2.0, "int32", dtype="float32")
    typed(lambda a: 2**a, "float16", dtype="float16")
    typed(lambda a: 2**a, "int8", dtype="int8")
    typed(lambda a: a**2, "int64", dtype="int64")
    refused(power, "float16", "bfloat16")
    refused(power, "int8", "uint8")
    refused(lambda a: a**300, "int8", error="TileValueError")
    x = encode("float32", [1.1, -2.0, 3.0])
    for exponent in ("int64", "uint32", "uint64"):
        n = np.array([100, 2, 5], exponent)  # 1.1 ** 100 in steps has an error of several ulp
        got = values(
            "float32", apply(binary(power, "float32", exponent, "float32"), "float32", x, n.view(f"u{n.itemsize}"))
        )
        assert_within(got, np.array([float(np.float32(1.1)) ** 100, 4, 243]), 1, "float32")


@clause("POW-2.restricted")
@pytest.mark.parametrize("name", RESTRICTED)
def test_restricted_floats(name):
    refused(lambda a: a**2, name)
    refused(lambda a: a**2.0, name)
    refused(lambda a: ct.pow(2, a), name)
    refused(lambda a: a**a, name)


@clause("POW-2.dtype")
def test_powers_refuse_other_things():
    for bad in (None, "1", (1, 2), ct.int32):
        refused(lambda a: ct.pow(a, bad), "float32")
        refused(lambda a: ct.pow(bad, a), "float32")


# ------------------------------------------------------------------ integer ** integer


def integer_power(a, n, name):
    if n >= 0:
        return wrap(a**n, name)
    return {1: 1, -1: -1 if n % 2 else 1}.get(a, 0)


@clause("POW-3.wrap", "POW-3.negative", "POW-3.zero")
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_to_integer(name):
    low, high = limits(name)
    bases = [v for v in (0, 1, 2, 3, 5, 7, 10, -1, -2, -3, -7, low, low + 1, high, high - 1) if low <= v <= high]
    exponents = [v for v in (0, 1, 2, 3, 4, 5, 8, 15, 63, 100, high, -1, -2, -3, low) if low <= v <= high]
    exponents = [v for v in exponents if v <= 1 << 16] + [127]
    x, n = np.repeat(np.array(bases, name), len(exponents)), np.tile(np.array(exponents, name), len(bases))
    want = [integer_power(a, b, name) for a, b in zip(x.tolist(), n.tolist(), strict=True)]
    for fn in (lambda a, b: a**b, ct.pow):
        got = apply(binary(fn, name, name, name), name, x.view(f"u{x.itemsize}"), n.view(f"u{n.itemsize}"))
        assert numbers_of(name, got).tolist() == want


@clause("POW-3.bool")
def test_masks():
    refused(lambda a, b: a**b, "bool_", "bool_")
    refused(lambda a: a**True, "bool_")
    typed(lambda a, b: a**b, "bool_", "int8", dtype="int8")
    typed(lambda a: a**2, "bool_", dtype="int32")


@clause("POW-3.loose", "POW-3.complex", "POW-3.pole", "POW-3.strict")
def test_constants():
    folds(lambda: 2**10, 1024, "int32")
    folds(lambda: 2**-1, 0.5, "float32")
    folds(lambda: (-2) ** 3, -8, "int32")
    folds(lambda: 2.0**0.5, 2.0**0.5, "float32")
    folds(lambda: ct.pow(3, 4), 81, "int32")
    folds(lambda: True**2, 1, "int32")
    refused(lambda: (-8) ** 0.5)
    refused(lambda: 0**-1, error="TileValueError")
    refused(lambda: 0.0**-1, error="TileValueError")
    refused(lambda: 2**64, error="TileValueError")
    refused(lambda: 10.0**400, error="TileValueError")
    strict(lambda: ct.int32(2) ** -1, "int32", 0)
    strict(lambda: ct.int32(0) ** 2, "int32", 0)
    strict(lambda: ct.int8(0) ** ct.int8(0), "int8", 1)
    strict(lambda: ct.int8(-1) ** -3, "int8", -1)
    strict(lambda: ct.int8(3) ** 5, "int8", wrap(243, "int8"))
    strict(lambda: 2 ** ct.int16(3), "int16", 8)
    folds(lambda: ct.float64(2) ** ct.float64(0.5), 2.0**0.5, "float64")
    refused(lambda: ct.int8(3) ** ct.uint8(2))
