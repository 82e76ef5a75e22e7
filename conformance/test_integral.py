"""floor, ceil, isnan and atan2 [UN-2, UN-3, ARITH-11]."""

import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch
from conformance.harness.code_kernels import apply, binary, dtype, unary
from conformance.harness.number_comparison import assert_within, same_numbers
from conformance.harness.number_formats import FLOATS as ALL_FLOATS
from conformance.harness.number_formats import FORMATS, codes, decoded, encode, values
from conformance.harness.number_samples import sample, specials
from conformance.harness.operand_types import folds, refused, typed

inf, nan = math.inf, math.nan


FLOATS = ("float16", "bfloat16", "float32", "float64")


RESTRICTED = tuple(n for n in ALL_FLOATS if n not in FLOATS)


def inputs(name):
    """Every value of a 16-bit format; for wider ones specials, any magnitudes, and magnitudes near one."""
    if FORMATS[name].bits == 16:
        return codes(name)
    n = 3000 if name == "float32" else 300
    spread = np.concatenate([np.linspace(-100, 100, n), np.linspace(-3, 3, n), np.linspace(0.9, 1.1, 100)])
    return np.concatenate(
        [
            encode(name, np.array(specials(name))),
            sample(name, n, 1),
            sample(name, n, 2, near=True),
            encode(name, spread),
        ]
    )


# ------------------------------------------------------------------ floor, ceil, isnan


@pytest.mark.parametrize(
    "op, oracle",
    [
        pytest.param("floor", math.floor, marks=clause("UN-2.floor.value", "UN-2.floor.special")),
        pytest.param("ceil", math.ceil, marks=clause("UN-2.ceil.value", "UN-2.ceil.special", "UN-2.ceil.nzero")),
    ],
)
@pytest.mark.parametrize("name", FLOATS)
def test_floor_and_ceil(op, oracle, name):
    x = inputs(name)
    v = values(name, x)
    want = np.array([a if not math.isfinite(a) else math.copysign(float(oracle(a)), a) for a in v.tolist()])
    same_numbers(values(name, apply(unary(getattr(ct, op), name, name), name, x)), want, name, decoded(name, x))


@pytest.mark.parametrize(
    "op",
    [
        pytest.param("floor", marks=clause("UN-2.floor.dtype", "UN-2.floor.int", "UN-2.floor.strict", "LOOSE-5.floor")),
        pytest.param("ceil", marks=clause("UN-2.ceil.dtype", "UN-2.ceil.int", "UN-2.ceil.strict", "LOOSE-5.ceil")),
    ],
)
def test_floor_and_ceil_dtypes(op):
    f = getattr(ct, op)
    for name in FLOATS:
        typed(f, name, dtype=name)
        folds(lambda: f(dtype(name)(2.5)), {"floor": 2, "ceil": 3}[op], name)
    for name in ("int8", "int64", "uint32", "bool_"):
        refused(f, name)
    refused(lambda: f(ct.int32(2)))
    folds(lambda: f(2.5), {"floor": 2, "ceil": 3}[op], "int32")
    folds(lambda: f(-2.5), {"floor": -3, "ceil": -2}[op], "int32")
    folds(lambda: f(7), 7, "int32")
    refused(lambda: f(nan), error="TileValueError")
    refused(lambda: f(None))


@clause("UN-3.isnan")
@pytest.mark.parametrize("name", FLOATS)
def test_isnan(name):
    x = inputs(name)
    got = apply(unary(ct.isnan, name, "bool_"), "bool_", x)
    assert (got == (values(name, x) != values(name, x))).all()
    typed(ct.isnan, f"{name} (2, 2)", dtype="bool_", shape=(2, 2))


@clause("UN-3.isnan.int", "UN-3.isnan.loose", "UN-3.isnan.strict")
def test_isnan_of_other_things():
    for name in ("int8", "int64", "uint32", "bool_"):
        refused(ct.isnan, name)
    refused(lambda: ct.isnan(ct.int32(2)))
    folds(lambda: ct.isnan(5), False, "bool_")
    folds(lambda: ct.isnan(nan), True, "bool_")
    folds(lambda: ct.isnan(2.5), False, "bool_")
    folds(lambda: ct.isnan(ct.float16(nan)), True, "bool_")
    folds(lambda: ct.isnan(ct.float64(1)), False, "bool_")


# ------------------------------------------------------------------ atan2


@clause("ARITH-11.error", "ARITH-11.range", "ARITH-11.zero", "ARITH-11.inf", "ARITH-11.nan")
@pytest.mark.parametrize("name", FLOATS)
def test_atan2(name):
    s = encode(name, np.array(specials(name)))
    y = np.concatenate([np.repeat(s, len(s)), sample(name, 2000, 1, near=True), sample(name, 2000, 2)])
    x = np.concatenate([np.tile(s, len(s)), sample(name, 2000, 3, near=True), sample(name, 2000, 4)])
    want = np.array(
        [
            nan if a != a or b != b else math.atan2(a, b)
            for a, b in zip(values(name, y).tolist(), values(name, x).tolist(), strict=True)
        ]
    )
    got = values(name, apply(binary(ct.atan2, name, name, name), name, y, x))
    assert_within(got, want, 2 if name == "float32" else 1, name, decoded(name, y, x))
    assert (np.abs(got[~np.isnan(got)]) <= float(values(name, encode(name, [math.pi]))[0])).all()


@clause("ARITH-11.zero", "ARITH-11.inf")
def test_atan2_special_values():
    rows = [
        (0.0, -1.0, math.pi),
        (-0.0, -1.0, -math.pi),
        (0.0, 1.0, 0.0),
        (-0.0, 1.0, -0.0),
        (inf, -inf, 3 * math.pi / 4),
        (-inf, inf, -math.pi / 4),
        (1.0, 0.0, math.pi / 2),
        (-1.0, 0.0, -math.pi / 2),
        (1.0, inf, 0.0),
    ]
    y, x, want = (np.array(c) for c in zip(*rows, strict=True))
    got = values(
        "float64",
        apply(binary(ct.atan2, "float64", "float64", "float64"), "float64", encode("float64", y), encode("float64", x)),
    )
    same_numbers(got, want)


@clause("ARITH-11.zero", "ARITH-11.error")
@pytest.mark.parametrize("name", FLOATS)
def test_atan2_of_zeros_known_beforehand(name):
    """A compiler may see that a tile is zero, from a constant or a difference, and must then compute the function."""
    d = getattr(ct, name)

    @ct.kernel
    def k(n, out):
        plus, minus, same = ct.full((8,), 0.0, d), ct.full((8,), -0.0, d), ct.full((8,), n - n, ct.int32).astype(d)
        ct.store(out, (0, 0), ct.atan2(plus, plus).astype(ct.float64)[None])
        ct.store(out, (1, 0), ct.atan2(plus, minus).astype(ct.float64)[None])
        ct.store(out, (2, 0), ct.atan2(minus, plus).astype(ct.float64)[None])
        ct.store(out, (3, 0), ct.atan2(minus, minus).astype(ct.float64)[None])
        ct.store(out, (4, 0), ct.atan2(same, same).astype(ct.float64)[None])

    out = np.ones((5, 8))
    launch(k, 5, out)
    pi = float(values(name, encode(name, [math.pi]))[0])
    same_numbers(out, np.broadcast_to(np.array([[0.0], [pi], [-0.0], [-pi], [0.0]]), (5, 8)))


@clause("ARITH-11.dtype", "ARITH-11.int", "ARITH-11.restricted", "ARITH-11.const")
def test_atan2_dtypes():
    typed(ct.atan2, "float16 (2, 1)", "float32 (4,)", dtype="float32", shape=(2, 4))
    typed(ct.atan2, "int32", "float16", dtype="float16")
    typed(lambda y: ct.atan2(y, 1), "bfloat16", dtype="bfloat16")
    typed(lambda y: ct.atan2(y, 1.0), "int8", dtype="float32")
    for a, b in (("int32", "int32"), ("int8", "bool_"), ("float16", "bfloat16"), ("bool_", "bool_")):
        refused(ct.atan2, a, b)
    refused(lambda y: ct.atan2(y, 1), "int32")
    for name in RESTRICTED:
        refused(ct.atan2, name, name)
    folds(lambda: ct.atan2(1.0, 1.0), math.atan2(1, 1), "float32")
    folds(lambda: ct.atan2(1, 2), math.atan2(1, 2), "float32")
    folds(lambda: ct.atan2(ct.float64(1), 2.0), math.atan2(1, 2), "float64")
    refused(lambda: ct.atan2(ct.int32(1), ct.int32(2)))
    refused(lambda y: ct.atan2(y, None), "float32")
