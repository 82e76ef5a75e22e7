"""Matrix products with an accumulator [MMA-1 … MMA-5]."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from conformance.harness.api import clause, ct
from conformance.harness.matrix_products import exactly, product, small
from conformance.harness.number_formats import FORMATS, INTEGERS, codes, encode, values
from conformance.harness.number_samples import sample
from conformance.harness.operand_types import refused, typed

inf, nan = math.inf, math.nan


ROWS = {
    "float8_e4m3fn": ("float16", "float32"),
    "float8_e5m2": ("float16", "float32"),
    "float16": ("float16", "float32"),
    "bfloat16": ("float32",),
    "float32": ("float32",),
    "tfloat32": ("float32",),
    "float64": ("float64",),
}


CELLS = [(d, a) for d, accs in ROWS.items() for a in accs]


INT_CELLS = [(x, y) for x in ("int8", "uint8") for y in ("int8", "uint8")]


ALL = (*INTEGERS, "bool_", *FORMATS)


# ------------------------------------------------------------------ mma: values


SIZES = [
    ((4, 8), (8, 16)),
    ((1, 1), (1, 1)),
    ((16, 2), (2, 1)),
    ((2, 4, 8), (2, 8, 4)),
    ((2, 4, 8), (8, 4)),
    ((4, 8), (2, 8, 4)),
    ((1, 4, 8), (4, 8, 2)),
    ((4, 4, 2), (1, 2, 8)),
]


@pytest.mark.parametrize("d, a", [pytest.param(d, a, marks=clause(f"MMA-2.{d}.{a}")) for d, a in CELLS])
@clause("MMA-1.result", "MMA-1.small", "MMA-1.batch", "MMA-4.product")
@pytest.mark.parametrize("xs, ys", SIZES)
def test_small_float_products(d, a, xs, ys):
    zs = (*np.broadcast_shapes(xs[:-2], ys[:-2]), xs[-2], ys[-1])
    x, y, z = small(d, xs, 1), small(d, ys, 2), small(a, zs, 3, 9)
    got = product(lambda p, q, r: ct.mma(p, q, r), d, d, a, x, y, z)
    want = exactly(values(d, x), values(d, y), values(a, z))
    assert (got == want.astype(float)).all()


@pytest.mark.parametrize("d, e", [pytest.param(d, e, marks=clause(f"MMA-2.{d}.{e}")) for d, e in INT_CELLS])
@clause("MMA-4.int", "MMA-1.batch", "MMA-1.small")
@pytest.mark.parametrize("xs, ys", SIZES)
def test_integer_products(d, e, xs, ys):
    zs = (*np.broadcast_shapes(xs[:-2], ys[:-2]), xs[-2], ys[-1])
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 256, xs, np.uint8), rng.integers(0, 256, ys, np.uint8)
    z = rng.integers(0, 1 << 32, zs, np.uint32)
    got = product(lambda p, q, r: ct.mma(p, q, acc=r), d, e, "int32", x, y, z)
    want = exactly(x.view(d), y.view(e), z.view(np.int32))
    assert (
        got.tolist()
        == np.vectorize(lambda v: (int(v) + (1 << 31)) % (1 << 32) - (1 << 31), otypes=[object])(want).tolist()
    )


@clause("MMA-4.int")
@pytest.mark.parametrize("d, e", INT_CELLS)
def test_large_integer_products_are_exact(d, e):
    k = 2048
    x, y = (
        np.full((1, k), 128 if d == "int8" else 255, np.uint8),
        np.full((k, 1), 128 if e == "int8" else 255, np.uint8),
    )
    x[0, ::7], y[::5, 0] = 127, 127
    z = np.array([[(1 << 31) - 1]], np.uint32)
    got = product(lambda p, q, r: ct.mma(p, q, r), d, e, "int32", x, y, z).item()
    want = sum(int(a) * int(b) for a, b in zip(x.view(d)[0], y.view(e)[:, 0], strict=True)) + (1 << 31) - 1
    assert got == (want + (1 << 31)) % (1 << 32) - (1 << 31)


@clause("MMA-4.float", "MMA-4.float8", "MMA-4.float16")
@pytest.mark.parametrize("d, a", CELLS)
@pytest.mark.parametrize("n", [16, 64, 128])
def test_float_products(d, a, n):
    x, y = (sample(d, 8 * n, s, near=True) for s in (1, 2))
    if d.startswith("float8") and a == "float16" or d == "float16" == a:
        x, y = (encode(d, np.random.default_rng(s).uniform(-1, 1, 8 * n)) for s in (1, 2))
    x, y, z = x.reshape(8, n), y.reshape(n, 8), sample(a, 64, 3, near=True).reshape(8, 8)
    got = product(lambda p, q, r: ct.mma(p, q, r), d, d, a, x, y, z)
    vx, vy, vz = values(d, x), values(d, y), values(a, z)
    want = exactly(vx, vy, vz)
    size = np.abs(vx) @ np.abs(vy) + np.abs(vz)
    bits = 13 if d.startswith("float8") else 24 if d == "tfloat32" else FORMATS[a].fraction + 1
    bound = size * 2.0**-bits * (n / 4 if a == "float16" else max(4, n / 8))
    error = np.array(
        [
            [abs(float(Fraction(g) - w)) for g, w in zip(gr, wr, strict=True)]
            for gr, wr in zip(got.tolist(), want.tolist(), strict=True)
        ]
    )
    assert (error <= bound).all()


@clause("MMA-4.float32")
def test_float32_keeps_its_bits():
    x = encode("float32", [[1 + 2.0**-20, 0.0]][0]).reshape(1, 2)
    y = encode("float32", [1.0, 0.0]).reshape(2, 1)
    got = product(lambda p, q, r: ct.mma(p, q, r), "float32", "float32", "float32", x, y, np.zeros((1, 1), np.uint32))
    assert got.item() == 1 + 2.0**-20
    y = encode("float32", [-1.0, 0.0]).reshape(2, 1)
    got = product(
        lambda p, q, r: ct.mma(p, q, r), "float32", "float32", "float32", x, y, encode("float32", [1.0]).reshape(1, 1)
    )
    assert got.item() == -(2.0**-20)


@clause("MMA-4.product")
@pytest.mark.parametrize("d", ["float8_e4m3fn", "float8_e5m2"])
def test_every_pair_of_float8(d):
    """The outer product of all codes by all codes, exact in float32."""
    c = codes(d)
    v = values(d, c)
    got = product(
        lambda p, q, r: ct.mma(p, q, r),
        d,
        d,
        "float32",
        c.reshape(256, 1),
        c.reshape(1, 256),
        np.zeros((256, 256), np.uint32),
    )
    with np.errstate(all="ignore"):
        want = v[:, None] * v[None, :]
    nans = np.isnan(want)
    assert (np.isnan(got) == nans).all() and (got[~nans] == want[~nans]).all()


@clause("MMA-1.result")
def test_infinities_and_nan():
    x, y = encode("float32", [inf, 1.0, nan, 0.0]).reshape(2, 2), encode("float32", [1.0, 0.0, 1.0, 1.0]).reshape(2, 2)
    got = product(lambda p, q, r: ct.mma(p, q, r), "float32", "float32", "float32", x, y, np.zeros((2, 2), np.uint32))
    assert got[0, 0] == inf and np.isnan(got[0, 1]) and np.isnan(got[1]).all()


@clause("MMA-5.value")
@pytest.mark.parametrize("d, a", [c for c in CELLS if c[0].startswith("float8")])
def test_fast_accumulation(d, a):
    x, y, z = small(d, (4, 16), 1), small(d, (16, 4), 2), small(a, (4, 4), 3)
    got = product(lambda p, q, r: ct.mma(p, q, r, use_fast_acc=True), d, d, a, x, y, z)
    want = exactly(values(d, x), values(d, y), values(a, z)).astype(float)
    size = np.abs(values(d, x)) @ np.abs(values(d, y)) + np.abs(values(a, z))
    assert (np.abs(got - want) <= 4 * size * 2.0**-13 + 2.0**-10 * (a == "float16") * size).all()


# ------------------------------------------------------------------ mma: typing


def mma_typed(d, e, a, xs=(4, 8), ys=(8, 16), zs=(4, 16)):
    typed(lambda x, y, z: ct.mma(x, y, z), f"{d} {xs}", f"{e} {ys}", f"{a} {zs}", dtype=a, shape=zs)


def mma_refused(d, e, a, xs=(4, 8), ys=(8, 16), zs=(4, 16), **kw):
    refused(lambda x, y, z: ct.mma(x, y, z), f"{d} {xs}", f"{e} {ys}", f"{a} {zs}")


@clause("MMA-3.acc")
@pytest.mark.parametrize("d", [*ROWS, "int8", "uint8"])
def test_accumulators(d):
    for a in ALL:
        if a in ROWS.get(d, ("int32",)):
            mma_typed(d, d, a)
        else:
            mma_refused(d, d, a)


@clause("MMA-3.mixed", "MMA-3.dtype")
def test_operands_of_two_dtypes():
    for d, e in itertools.product(ALL, ALL):
        if d != e and not {d, e} <= {"int8", "uint8"} and (d in ROWS or e in ROWS or "int8" in (d, e)):
            mma_refused(d, e, "int32" if "int8" in (d, e) else "float32")
    for d in ALL:
        if d not in ROWS and d not in ("int8", "uint8"):
            for a in ("float32", "int32", "float64"):
                mma_refused(d, d, a)


@clause("MMA-1.rank")
def test_ranks():
    for xs, ys, zs in (
        ((8,), (8, 16), (16,)),
        ((4, 8), (8,), (4,)),
        ((8,), (8,), ()),
        ((), (), ()),
        ((8,), (8, 16), (1, 16)),
        ((1, 2, 4, 8), (8, 16), (1, 2, 4, 16)),
        ((4, 8), (1, 1, 8, 16), (1, 1, 4, 16)),
    ):
        mma_refused("float32", "float32", "float32", xs, ys, zs)


@clause("MMA-1.k")
def test_inner_dimensions():
    for xs, ys, zs in (
        ((4, 8), (4, 16), (4, 16)),
        ((4, 8), (16, 8), (4, 16)),
        ((4, 1), (8, 16), (4, 16)),
        ((4, 8), (1, 16), (4, 16)),
        ((2, 4, 8), (2, 4, 8), (2, 4, 8)),
    ):
        mma_refused("float32", "float32", "float32", xs, ys, zs)


@clause("MMA-1.batch")
def test_batches():
    mma_typed("float16", "float16", "float32", (2, 4, 8), (2, 8, 16), (2, 4, 16))
    mma_typed("float16", "float16", "float32", (2, 4, 8), (8, 16), (2, 4, 16))
    mma_typed("float16", "float16", "float32", (4, 8), (4, 8, 16), (4, 4, 16))
    mma_refused("float16", "float16", "float32", (2, 4, 8), (4, 8, 16), (2, 4, 16))
    mma_refused("float16", "float16", "float32", (2, 4, 8), (4, 8, 16), (4, 4, 16))


@clause("MMA-1.acc")
def test_the_accumulator_has_the_shape():
    for zs in ((), (1,), (16,), (1, 16), (4, 1), (16, 4), (1, 4, 16), (8, 16)):
        mma_refused("float32", "float32", "float32", zs=zs)
    refused(lambda x, y: ct.mma(x, y, 0.0), "float32 (4, 8)", "float32 (8, 16)")
    refused(lambda x, y: ct.mma(x, y), "float32 (4, 8)", "float32 (8, 16)")
    refused(lambda x, y: ct.mma(x, y, None), "float32 (4, 8)", "float32 (8, 16)")


@clause("MMA-5.float8", "MMA-5.const")
def test_fast_accumulation_typing():
    for d, a in CELLS:
        fn = lambda x, y, z: ct.mma(x, y, z, use_fast_acc=True)
        args = f"{d} (4, 8)", f"{d} (8, 16)", f"{a} (4, 16)"
        if d.startswith("float8"):
            typed(fn, *args, dtype=a, shape=(4, 16))
        else:
            refused(fn, *args)
        typed(lambda x, y, z: ct.mma(x, y, z, use_fast_acc=False), *args, dtype=a, shape=(4, 16))
    args = "float8_e5m2 (4, 8)", "float8_e5m2 (8, 16)", "float32 (4, 16)"
    for bad in (1, None, "True", 0.0):
        refused(lambda x, y, z: ct.mma(x, y, z, use_fast_acc=bad), *args)
    refused(lambda x, y, z: ct.mma(x, y, z, use_fast_acc=ct.bid(0) == 0), *args)
    refused(lambda x, y, z: ct.mma(x, y, z, True), *args)
    refused(lambda x, y, z: ct.mma(x, y, z, use_fast_acc=True), "int8 (4, 8)", "int8 (8, 16)", "int32 (4, 16)")
