"""Matrix products: mma, mma_scaled, matmul [MMA]."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from conformance.api import clause, ct, refuses, run
from conformance.numbers import (
    FORMATS, INTEGERS, apply, codes, dtype, encode, numbers_of, rounded, sample, unary, value, values, width,
)
from conformance.typing import refused, typed

inf, nan = math.inf, math.nan
FLOATS = ("float16", "bfloat16", "float32", "float64", "tfloat32", "float8_e4m3fn", "float8_e5m2")
ROWS = {"float8_e4m3fn": ("float16", "float32"), "float8_e5m2": ("float16", "float32"), "float16": ("float16", "float32"),
        "bfloat16": ("float32",), "float32": ("float32",), "tfloat32": ("float32",), "float64": ("float64",)}
CELLS = [(d, a) for d, accs in ROWS.items() for a in accs]
INT_CELLS = [(x, y) for x in ("int8", "uint8") for y in ("int8", "uint8")]
ALL = (*INTEGERS, "bool_", *FORMATS)


def product(fn, d, e, a, x, y, z, o=None):
    """The numbers of fn(x, y, z), given codes of matrices of dtypes d, e, a; the result has dtype o or a, and z's shape."""
    dd, ee, aa, oo = dtype(d), dtype(e), dtype(a), dtype(o or a)
    WORD = getattr(ct, f"uint{width(o or a)}")
    xs, ys, zs = x.shape, y.shape, z.shape
    zero = [(0,) * len(s) for s in (xs, ys, zs)]
    i, j, k_ = zero

    @ct.kernel
    def k(x, y, z, out):
        r = fn(ct.bitcast(ct.load(x, i, xs), dd), ct.bitcast(ct.load(y, j, ys), ee), ct.bitcast(ct.load(z, k_, zs), aa))
        right = r.dtype == oo
        ct.static_assert(right and r.shape == zs)
        ct.store(out, k_, ct.bitcast(r, WORD))

    return numbers_of(o or a, run(k, x, y, z, np.zeros(zs, f"u{width(o or a) // 8}")))


def small(name, shape, seed, high=3):
    """Codes of small integers, whose products and sums are exact everywhere."""
    v = np.random.default_rng(seed).integers(-high, high + 1, shape)
    if name in FORMATS:
        return encode(name, v.astype(float).ravel()).reshape(shape)
    return (np.abs(v) if name[0] == "u" else v).astype(name).view(f"u{width(name) // 8}")


def exactly(x, y, z):
    """x @ y + z by Python's numbers, batched."""
    x, y = np.asarray(x), np.asarray(y)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = np.broadcast_to(x, batch + x.shape[-2:]), np.broadcast_to(y, batch + y.shape[-2:])
    out = np.empty(np.shape(z), object)
    for b in itertools.product(*map(range, batch)):
        for m, n in itertools.product(range(x.shape[-2]), range(y.shape[-1])):
            out[(*b, m, n)] = sum(Fraction(p) * Fraction(q) for p, q in zip(x[b][m].tolist(), y[b][:, n].tolist(), strict=True)) \
                + Fraction(z[(*b, m, n)].item())
    return out


# ------------------------------------------------------------------ mma: values


SIZES = [((4, 8), (8, 16)), ((1, 1), (1, 1)), ((16, 2), (2, 1)), ((2, 4, 8), (2, 8, 4)), ((2, 4, 8), (8, 4)), ((4, 8), (2, 8, 4)),
         ((1, 4, 8), (4, 8, 2)), ((4, 4, 2), (1, 2, 8))]


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
    assert got.tolist() == np.vectorize(lambda v: (int(v) + (1 << 31)) % (1 << 32) - (1 << 31), otypes=[object])(want).tolist()


@clause("MMA-4.int")
@pytest.mark.parametrize("d, e", INT_CELLS)
def test_large_integer_products_are_exact(d, e):
    k = 2048
    x, y = np.full((1, k), 128 if d == "int8" else 255, np.uint8), np.full((k, 1), 128 if e == "int8" else 255, np.uint8)
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
    bound = 4 * size * 2.0**-bits * (n // 16 if a == "float16" else 1)
    error = np.array([[abs(float(Fraction(g) - w)) for g, w in zip(gr, wr, strict=True)] for gr, wr in zip(got.tolist(), want.tolist(), strict=True)])
    assert (error <= bound).all()


@clause("MMA-4.float32")
def test_float32_keeps_its_bits():
    x = encode("float32", [[1 + 2.0**-20, 0.0]][0]).reshape(1, 2)
    y = encode("float32", [1.0, 0.0]).reshape(2, 1)
    got = product(lambda p, q, r: ct.mma(p, q, r), "float32", "float32", "float32", x, y, np.zeros((1, 1), np.uint32))
    assert got.item() == 1 + 2.0**-20
    y = encode("float32", [-1.0, 0.0]).reshape(2, 1)
    got = product(lambda p, q, r: ct.mma(p, q, r), "float32", "float32", "float32", x, y, encode("float32", [1.0]).reshape(1, 1))
    assert got.item() == -(2.0**-20)


@clause("MMA-4.product")
@pytest.mark.parametrize("d", ["float8_e4m3fn", "float8_e5m2"])
def test_every_pair_of_float8(d):
    """The outer product of all codes by all codes, exact in float32."""
    c = codes(d)
    v = values(d, c)
    got = product(lambda p, q, r: ct.mma(p, q, r), d, d, "float32", c.reshape(256, 1), c.reshape(1, 256), np.zeros((256, 256), np.uint32))
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
    for xs, ys, zs in (((8,), (8, 16), (16,)), ((4, 8), (8,), (4,)), ((8,), (8,), ()), ((), (), ()), ((8,), (8, 16), (1, 16)),
                       ((1, 2, 4, 8), (8, 16), (1, 2, 4, 16)), ((4, 8), (1, 1, 8, 16), (1, 1, 4, 16))):
        mma_refused("float32", "float32", "float32", xs, ys, zs)


@clause("MMA-1.k")
def test_inner_dimensions():
    for xs, ys, zs in (((4, 8), (4, 16), (4, 16)), ((4, 8), (16, 8), (4, 16)), ((4, 1), (8, 16), (4, 16)), ((4, 8), (1, 16), (4, 16)),
                       ((2, 4, 8), (2, 4, 8), (2, 4, 8))):
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
        fn = lambda x, y, z: ct.mma(x, y, z, use_fast_acc=True)  # noqa: E731
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


# ------------------------------------------------------------------ mma_scaled


PAIRS = {("float8_e4m3fn", "float8_e8m0fnu"): (32,), ("float8_e5m2", "float8_e8m0fnu"): (32,), ("float4_e2m1fn", "float8_e8m0fnu"): (16, 32),
         ("float4_e2m1fn", "float8_e4m3fn"): (16,), ("float4_e2m1fn", "float8_e5m3fnu"): (16, 32)}
SHORT = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float4_e2m1fn": "e2m1", "float8_e8m0fnu": "e8m0", "float8_e5m3fnu": "e5m3"}


def scaled(d, s, xs, ss, ys, ts, seed=0):
    """The result for random codes, and what it must be exactly."""
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


@pytest.mark.parametrize("d, s, block", [pytest.param(d, s, b, marks=clause(f"MMA-8.{SHORT[d]}.{SHORT[s]}")) for (d, s), bs in PAIRS.items() for b in bs])
@clause("MMA-8.value", "MMA-8.batch")
@pytest.mark.parametrize("batch_x, batch_y", [((), ()), ((2,), (2,)), ((2,), ()), ((1,), (4,))])
def test_scaled_products(d, s, block, batch_x, batch_y):
    k = 64
    got, want, size = scaled(d, s, (*batch_x, 4, k), (*batch_x, 4, k // block), (*batch_y, k, 2), (*batch_y, k // block, 2))
    error = np.abs(got.astype(float) - want.astype(float))
    assert (error <= 4 * size * 2.0 ** -(13 if d.startswith("float8") else 24)).all()


def scaled_call(d="float8_e5m2", s="float8_e8m0fnu", xs=(4, 64), ss=(4, 2), ys=(64, 8), ts=(2, 8), zs=(4, 8), e=None, t=None, a="float32"):
    dx, sx, dy, sy, da = (dtype(n) for n in (d, s, e or d, t or s, a))
    from conformance.typing import operand

    def fn(p):
        return ct.mma_scaled(operand(p, dx, xs), operand(p, sx, ss), operand(p, dy, ys), operand(p, sy, ts), operand(p, da, zs))

    return fn


def scaled_refused(**kw):
    refused(scaled_call(**kw), "int32 ()")


@clause("MMA-8.dtypes", "MMA-8.scales", "MMA-8.pair")
def test_scaled_dtypes():
    typed(scaled_call(), "int32 ()", dtype="float32", shape=(4, 8))
    scaled_refused(e="float8_e4m3fn")
    scaled_refused(e="float16")
    scaled_refused(d="float4_e2m1fn", t="float8_e4m3fn", ss=(4, 4), ts=(4, 8))
    for d, s in itertools.product(("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float16", "int8", "float8_e8m0fnu"),
                                  ("float8_e8m0fnu", "float8_e4m3fn", "float8_e5m3fnu", "float8_e5m2", "float32", "float16")):
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
    for kw in ({"ss": (2, 2)}, {"ss": (1, 2)}, {"ss": (2,)}, {"ss": (1, 4, 2)}, {"ts": (2, 4)}, {"ts": (2, 1)}, {"ts": (8, 2)}, {"ts": (2,)},
               {"ss": ()}, {"xs": (64,), "ss": (2,), "zs": (8,)}, {"xs": (1, 1, 4, 64), "ss": (1, 1, 4, 2), "zs": (1, 1, 4, 8)},
               {"ys": (32, 8), "ts": (1, 8)}, {"ys": (64,), "ts": (2,), "zs": (4,)},
               {"xs": (2, 4, 64), "ss": (4, 2), "zs": (2, 4, 8)}, {"xs": (2, 4, 64), "ss": (1, 4, 2), "zs": (2, 4, 8)},
               {"xs": (2, 4, 64), "ss": (2, 4, 2), "ys": (4, 64, 8), "ts": (4, 2, 8), "zs": (4, 4, 8)}):
        scaled_refused(**kw)
    typed(scaled_call(xs=(2, 4, 64), ss=(2, 4, 2), zs=(2, 4, 8)), "int32 ()", dtype="float32", shape=(2, 4, 8))


# ------------------------------------------------------------------ matmul


MATMUL = [((4, 8), (8, 2), (4, 2)), ((8,), (8, 2), (2,)), ((4, 8), (8,), (4,)), ((8,), (8,), ()), ((2, 4, 8), (2, 8, 2), (2, 4, 2)),
          ((2, 4, 8), (8, 2), (2, 4, 2)), ((4, 8), (2, 8, 2), (2, 4, 2)), ((8,), (2, 8, 4), (2, 4)), ((2, 4, 8), (8,), (2, 4)),
          ((1, 4, 8), (4, 8, 2), (4, 4, 2)), ((1, 1), (1, 1), (1, 1))]


@pytest.mark.parametrize("xs, ys, zs", MATMUL)
@pytest.mark.parametrize("name", ["int8", "float16", "bfloat16", "float32", "float64", "tfloat32", "float8_e5m2"])
@clause("MMA-6.row", "MMA-6.column", "MMA-6.value", "MMA-6.batch", "MMA-6.operator")
def test_matmul(xs, ys, zs, name):
    x, y = small(name, xs, 1, 1), small(name, ys, 2, 1)
    z = np.zeros(zs, f"u{width(name) // 8}")
    a, b = (numbers_of(name, v.reshape(-1)).reshape(v.shape).astype(float) for v in (x, y))
    a, b = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    full = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    want = exactly(a, b, np.zeros(full)).astype(float).reshape(zs)
    for fn in (lambda p, q, r: p @ q, lambda p, q, r: ct.matmul(p, q)):
        assert (product(fn, name, name, name, x, y, z) == want).all()


@clause("MMA-6.promote", "MMA-6.dtype")
def test_matmul_dtypes():
    for a, b, d in (("int8", "float16", "float16"), ("bool_", "int8", "int8"), ("float16", "float32", "float32"), ("int64", "float32", "float32"),
                    ("bfloat16", "float64", "float64"), ("uint8", "uint8", "uint8"), ("bool_", "uint8", "uint8"), ("bool_", "bfloat16", "bfloat16"),
                    *((n, n, n) for n in FLOATS)):
        typed(lambda x, y: x @ y, f"{a} (4, 8)", f"{b} (8, 2)", dtype=d, shape=(4, 2))
        typed(ct.matmul, f"{b} (4, 8)", f"{a} (8, 2)", dtype=d, shape=(4, 2))
    for a, b in (("int16", "int16"), ("int32", "int32"), ("int64", "int8"), ("bool_", "bool_"), ("int8", "int16"), ("int8", "uint8"), ("float16", "bfloat16"),
                 ("uint16", "uint16"), ("float8_e5m2", "float8_e4m3fn"), ("float8_e5m2", "float16"), ("float8_e8m0fnu", "float8_e8m0fnu"),
                 ("float4_e2m1fn", "float4_e2m1fn"), ("float8_e5m3fnu", "float8_e5m3fnu"), ("tfloat32", "float32")):
        refused(lambda x, y: x @ y, f"{a} (4, 8)", f"{b} (8, 2)")
        refused(ct.matmul, f"{a} (4, 8)", f"{b} (8, 2)")
    x, y = small("int8", (4, 8), 1), small("float16", (8, 2), 2)
    got = product(lambda p, q, r: p @ q, "int8", "float16", "float16", x, y, np.zeros((4, 2), np.uint16))
    assert (got == exactly(x.view(np.int8), values("float16", y), np.zeros((4, 2))).astype(float)).all()


@clause("MMA-6.rank", "MMA-7.scalar", "MMA-6.k", "MMA-6.batch")
def test_matmul_shapes():
    for xs, ys in (((), (8, 2)), ((4, 8), ()), ((), ()), ((1, 1, 4, 8), (8, 2)), ((8,), (1, 1, 8, 2)), ((4, 8), (4, 8)), ((8,), (4,)), ((4, 8), (2,)), ((2,), (8, 2)),
                   ((2, 4, 8), (4, 8, 2)), ((4, 8), (1, 2))):
        refused(lambda x, y: x @ y, f"float32 {xs}", f"float32 {ys}")
        refused(ct.matmul, f"float32 {xs}", f"float32 {ys}")
    for bad in (1, 2.0):
        refused(lambda x: x @ bad, "float32 (4, 4)")
        refused(lambda x: ct.matmul(bad, x), "float32 (4, 4)")


@clause("MMA-7.array")
def test_matmul_of_arrays():
    @ct.kernel
    def left(a):
        a @ ct.zeros((4, 4), ct.float32)  # noqa: B018

    @ct.kernel
    def right(a):
        ct.matmul(ct.zeros((4, 4), ct.float32), a)

    @ct.kernel
    def multiply_add(a):
        ct.mma(a, a, ct.zeros((4, 4), ct.float32))

    for k in (left, right, multiply_add):
        refuses("TileTypeError", k, np.zeros((4, 4), np.float32))
    for bad in (None, "1", (1, 2)):
        refused(lambda x: ct.matmul(x, bad), "float32 (4, 4)")


def matmul_row(name, x, y):
    x, y = encode(name, x) if name in FORMATS else np.array(x, name).view(np.uint8), encode(name, y) if name in FORMATS else np.array(y, name).view(np.uint8)
    return product(lambda p, q, r: p @ q, name, name, name, x.reshape(1, -1), y.reshape(-1, 1), np.zeros((1, 1), f"u{width(name) // 8}")).item()


@clause("MMA-6.float16")
def test_matmul_of_float16_accumulates_in_float16():
    assert matmul_row("float16", [2048.0, 1.0, 0.0, 0.0], [1.0] * 4) == 2048.0
    assert matmul_row("float16", [255.0, 255.0], [255.0, 255.0]) == inf
    typed(lambda x, y: x @ y, "float16 (4, 8)", "float16 (8, 2)", dtype="float16", shape=(4, 2))


@clause("MMA-6.float8")
@pytest.mark.parametrize("name, top", [("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0)])
def test_matmul_of_float8_saturates(name, top):
    assert matmul_row(name, [top, 0], [2.0, 0]) == top
    assert matmul_row(name, [top, 0], [-2.0, 0]) == -top
    big = [20.0, 20.0] if top == 448 else [256.0, 192.0]
    assert matmul_row(name, big, [20.0, 20.0] if top == 448 else [192.0, 256.0]) == top  # float16 holds the sum, or overflows
    assert matmul_row(name, [1.5, 1.0], [1.25, 1.0]) == float(rounded(name, np.array([2.875]), saturate=True)[0])


@clause("MMA-6.bfloat16")
def test_matmul_of_bfloat16_accumulates_in_float32():
    # 256 + 1 + 1 + … would stay 256 in bfloat16
    assert matmul_row("bfloat16", [256.0, *[1.0] * 7], [1.0] * 8) == 264.0
    assert matmul_row("bfloat16", [257.0, 1.0], [1.0, 0.5]) in (256.0, 258.0)


@clause("MMA-6.int8")
def test_matmul_of_int8_wraps():
    assert matmul_row("int8", [100, 100], [2, 2]) == (400 + 128) % 256 - 128
    assert matmul_row("int8", [100, -100], [100, 100]) == 0
    assert matmul_row("uint8", [200, 100], [2, 1]) == 500 % 256


@clause("MMA-6.value")
def test_operators_need_two_tiles():
    assert apply(unary(lambda x: ct.reshape(ct.reshape(x, (2, 2)) @ ct.reshape(x, (2, 2)), (4,)), "float32", "float32"), "float32",
                 encode("float32", [1.0, 2.0, 3.0, 4.0])).view(np.float32).tolist() == [7, 10, 15, 22]
