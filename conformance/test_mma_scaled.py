"""Matrix products of block-scaled operands [MMA-8]."""

import itertools
import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run
from conformance.harness.code_kernels import dtype
from conformance.harness.matrix_products import exactly
from conformance.harness.number_formats import FORMATS, encode, value, values
from conformance.harness.operand_types import operand, refused, typed

inf, nan = math.inf, math.nan


# ------------------------------------------------------------------ mma_scaled


PAIRS = {
    ("float8_e4m3fn", "float8_e8m0fnu"): (32,),
    ("float8_e5m2", "float8_e8m0fnu"): (32,),
    ("float4_e2m1fn", "float8_e8m0fnu"): (16, 32),
    ("float4_e2m1fn", "float8_e4m3fn"): (16,),
    ("float4_e2m1fn", "float8_e5m3fnu"): (16, 32),
}
SHORT = {
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "float4_e2m1fn": "e2m1",
    "float8_e8m0fnu": "e8m0",
    "float8_e5m3fnu": "e5m3",
}


def scaled(d, s, xs, ss, ys, ts, seed=0):
    """The result for random codes, and the exact result."""
    rng = np.random.default_rng(seed)
    dd, sd, four = dtype(d), dtype(s), d == "float4_e2m1fn"
    finite = [c for c in range(1 << FORMATS[d].bits) if math.isfinite(value(d, c)) and abs(value(d, c)) <= 8]
    x, y = rng.choice(finite, xs).astype(np.uint8), rng.choice(finite, ys).astype(np.uint8)
    ones = int(encode(s, [1.0])[0])
    sx, sy = ((ones + rng.integers(-2, 3, q)).astype(np.uint8) for q in (ss, ts))
    zs = (*np.broadcast_shapes(xs[:-2], ys[:-2]), xs[-2], ys[-1])
    z = rng.integers(-8, 9, zs).astype(np.float32)

    def packed(c):
        flat = c.reshape(-1, 2)
        return (flat[:, 0] | flat[:, 1] << 4).astype(np.uint8) if four else c.reshape(-1)

    px, py = packed(x), packed(y)
    nx, ny, nz = px.size, py.size, z.size
    nsx, nsy = sx.size, sy.size

    @ct.kernel
    def k(x, sx, y, sy, z, out):
        a = ct.reshape(ct.unpack_from_bytes(ct.load(x, 0, nx), dd), xs)
        b = ct.reshape(ct.unpack_from_bytes(ct.load(y, 0, ny), dd), ys)
        p = ct.reshape(ct.bitcast(ct.load(sx, 0, nsx), sd), ss)
        q = ct.reshape(ct.bitcast(ct.load(sy, 0, nsy), sd), ts)
        r = ct.mma_scaled(a, p, b, q, ct.reshape(ct.load(z, 0, nz), zs))
        ct.store(out, 0, ct.reshape(r, (-1,)))

    got = run(k, px, sx.ravel(), py, sy.ravel(), z.ravel(), np.zeros(nz, np.float32)).reshape(zs)
    block = xs[-1] // ss[-1]
    vx = values(d, x) * np.repeat(values(s, sx), block, axis=-1)
    vy = values(d, y) * np.repeat(values(s, sy), block, axis=-2)
    return got, exactly(vx, vy, z), np.matmul(np.abs(vx), np.abs(vy)) + np.abs(z)


@pytest.mark.parametrize(
    "d, s, block",
    [pytest.param(d, s, b, marks=clause(f"MMA-8.{SHORT[d]}.{SHORT[s]}")) for (d, s), bs in PAIRS.items() for b in bs],
)
@clause("MMA-8.value", "MMA-8.batch")
@pytest.mark.parametrize("batch_x, batch_y", [((), ()), ((2,), (2,)), ((2,), ()), ((1,), (4,))])
def test_scaled_products(d, s, block, batch_x, batch_y):
    k = 64
    got, want, size = scaled(
        d, s, (*batch_x, 4, k), (*batch_x, 4, k // block), (*batch_y, k, 2), (*batch_y, k // block, 2)
    )
    error = np.abs(got.astype(float) - want.astype(float))
    assert (error <= 4 * size * 2.0 ** -(13 if d.startswith("float8") else 24)).all()


def scaled_call(
    d="float8_e5m2",
    s="float8_e8m0fnu",
    xs=(4, 64),
    ss=(4, 2),
    ys=(64, 8),
    ts=(2, 8),
    zs=(4, 8),
    e=None,
    t=None,
    a="float32",
):
    dx, sx, dy, sy, da = (dtype(n) for n in (d, s, e or d, t or s, a))

    def fn(p):
        return ct.mma_scaled(
            operand(p, dx, xs), operand(p, sx, ss), operand(p, dy, ys), operand(p, sy, ts), operand(p, da, zs)
        )

    return fn


def scaled_refused(**kw):
    refused(scaled_call(**kw), "int32 ()")


@clause("MMA-8.dtypes", "MMA-8.scales", "MMA-8.pair")
def test_scaled_dtypes():
    typed(scaled_call(), "int32 ()", dtype="float32", shape=(4, 8))
    scaled_refused(e="float8_e4m3fn")
    scaled_refused(e="float16")
    scaled_refused(d="float4_e2m1fn", t="float8_e4m3fn", ss=(4, 4), ts=(4, 8))
    for d, s in itertools.product(
        ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float16", "int8", "float8_e8m0fnu"),
        ("float8_e8m0fnu", "float8_e4m3fn", "float8_e5m3fnu", "float8_e5m2", "float32", "float16"),
    ):
        for block in (16, 32):
            call = {"d": d, "s": s, "ss": (4, 64 // block), "ts": (64 // block, 8)}
            if block in PAIRS.get((d, s), ()):
                typed(scaled_call(**call), "int32 ()", dtype="float32", shape=(4, 8))
            else:
                scaled_refused(**call)


@clause("MMA-8.block")
@pytest.mark.parametrize("d, s", PAIRS)
def test_scaled_blocks(d, s):
    for n in (1, 2, 4, 8, 16, 32, 64):
        call = {"d": d, "s": s, "ss": (4, 64 // n), "ts": (64 // n, 8)}
        if n in PAIRS[d, s]:
            typed(scaled_call(**call), "int32 ()", dtype="float32", shape=(4, 8))
        else:
            scaled_refused(**call)
    scaled_refused(d=d, s=s, xs=(4, 8), ss=(4, 1), ys=(8, 8), ts=(1, 8))
    if len(PAIRS[d, s]) == 2:
        scaled_refused(d=d, s=s, ss=(4, 4), ts=(2, 8))


@clause("MMA-8.acc", "MMA-8.acc.shape")
def test_scaled_accumulators():
    for a in ("float16", "float64", "bfloat16", "int32"):
        scaled_refused(a=a)
    for zs in ((), (8,), (1, 8), (4, 1), (8, 4), (1, 4, 8)):
        scaled_refused(zs=zs)


@clause("MMA-8.dims", "MMA-8.rank")
def test_scaled_shapes():
    for kw in (
        {"ss": (2, 2)},
        {"ss": (1, 2)},
        {"ss": (2,)},
        {"ss": (1, 4, 2)},
        {"ts": (2, 4)},
        {"ts": (2, 1)},
        {"ts": (8, 2)},
        {"ts": (2,)},
        {"ss": ()},
        {"xs": (64,), "ss": (2,), "zs": (8,)},
        {"xs": (1, 1, 4, 64), "ss": (1, 1, 4, 2), "zs": (1, 1, 4, 8)},
        {"ys": (32, 8), "ts": (1, 8)},
        {"ys": (64,), "ts": (2,), "zs": (4,)},
        {"xs": (2, 4, 64), "ss": (4, 2), "zs": (2, 4, 8)},
        {"xs": (2, 4, 64), "ss": (1, 4, 2), "zs": (2, 4, 8)},
        {"xs": (2, 4, 64), "ss": (2, 4, 2), "ys": (4, 64, 8), "ts": (4, 2, 8), "zs": (4, 4, 8)},
    ):
        scaled_refused(**kw)
    typed(scaled_call(xs=(2, 4, 64), ss=(2, 4, 2), zs=(2, 4, 8)), "int32 ()", dtype="float32", shape=(2, 4, 8))
