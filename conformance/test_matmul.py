"""matmul and @ [MMA-6, MMA-7]."""

import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct, refuses
from conformance.harness.code_kernels import apply, numbers_of, unary
from conformance.harness.matrix_products import exactly, product, small
from conformance.harness.number_formats import FORMATS, encode, rounded, values, width
from conformance.harness.operand_types import refused, typed

inf, nan = math.inf, math.nan


FLOATS = ("float16", "bfloat16", "float32", "float64", "tfloat32", "float8_e4m3fn", "float8_e5m2")


# ------------------------------------------------------------------ matmul


MATMUL = [
    ((4, 8), (8, 2), (4, 2)),
    ((8,), (8, 2), (2,)),
    ((4, 8), (8,), (4,)),
    ((8,), (8,), ()),
    ((2, 4, 8), (2, 8, 2), (2, 4, 2)),
    ((2, 4, 8), (8, 2), (2, 4, 2)),
    ((4, 8), (2, 8, 2), (2, 4, 2)),
    ((8,), (2, 8, 4), (2, 4)),
    ((2, 4, 8), (8,), (2, 4)),
    ((1, 4, 8), (4, 8, 2), (4, 4, 2)),
    ((1, 1), (1, 1), (1, 1)),
]


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
    for a, b, d in (
        ("int8", "float16", "float16"),
        ("bool_", "int8", "int8"),
        ("float16", "float32", "float32"),
        ("int64", "float32", "float32"),
        ("bfloat16", "float64", "float64"),
        ("uint8", "uint8", "uint8"),
        ("bool_", "uint8", "uint8"),
        ("bool_", "bfloat16", "bfloat16"),
        *((n, n, n) for n in FLOATS),
    ):
        typed(lambda x, y: x @ y, f"{a} (4, 8)", f"{b} (8, 2)", dtype=d, shape=(4, 2))
        typed(ct.matmul, f"{b} (4, 8)", f"{a} (8, 2)", dtype=d, shape=(4, 2))
    for a, b in (
        ("int16", "int16"),
        ("int32", "int32"),
        ("int64", "int8"),
        ("bool_", "bool_"),
        ("int8", "int16"),
        ("int8", "uint8"),
        ("float16", "bfloat16"),
        ("uint16", "uint16"),
        ("float8_e5m2", "float8_e4m3fn"),
        ("float8_e5m2", "float16"),
        ("float8_e8m0fnu", "float8_e8m0fnu"),
        ("float4_e2m1fn", "float4_e2m1fn"),
        ("float8_e5m3fnu", "float8_e5m3fnu"),
        ("tfloat32", "float32"),
    ):
        refused(lambda x, y: x @ y, f"{a} (4, 8)", f"{b} (8, 2)")
        refused(ct.matmul, f"{a} (4, 8)", f"{b} (8, 2)")
    x, y = small("int8", (4, 8), 1), small("float16", (8, 2), 2)
    got = product(lambda p, q, r: p @ q, "int8", "float16", "float16", x, y, np.zeros((4, 2), np.uint16))
    assert (got == exactly(x.view(np.int8), values("float16", y), np.zeros((4, 2))).astype(float)).all()


@clause("MMA-6.rank", "MMA-7.scalar", "MMA-6.k", "MMA-6.batch")
def test_matmul_shapes():
    for xs, ys in (
        ((), (8, 2)),
        ((4, 8), ()),
        ((), ()),
        ((1, 1, 4, 8), (8, 2)),
        ((8,), (1, 1, 8, 2)),
        ((4, 8), (4, 8)),
        ((8,), (4,)),
        ((4, 8), (2,)),
        ((2,), (8, 2)),
        ((2, 4, 8), (4, 8, 2)),
        ((4, 8), (1, 2)),
    ):
        refused(lambda x, y: x @ y, f"float32 {xs}", f"float32 {ys}")
        refused(ct.matmul, f"float32 {xs}", f"float32 {ys}")
    for bad in (1, 2.0):
        refused(lambda x: x @ bad, "float32 (4, 4)")
        refused(lambda x: ct.matmul(bad, x), "float32 (4, 4)")


@clause("MMA-7.array")
def test_matmul_of_arrays():
    @ct.kernel
    def left(a):
        a @ ct.zeros((4, 4), ct.float32)

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
    x, y = (
        encode(name, x) if name in FORMATS else np.array(x, name).view(np.uint8),
        encode(name, y) if name in FORMATS else np.array(y, name).view(np.uint8),
    )
    return product(
        lambda p, q, r: p @ q,
        name,
        name,
        name,
        x.reshape(1, -1),
        y.reshape(-1, 1),
        np.zeros((1, 1), f"u{width(name) // 8}"),
    ).item()


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
    assert (
        matmul_row(name, big, [20.0, 20.0] if top == 448 else [192.0, 256.0]) == top
    )  # float16 holds the sum, or overflows
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
    assert apply(
        unary(lambda x: ct.reshape(ct.reshape(x, (2, 2)) @ ct.reshape(x, (2, 2)), (4,)), "float32", "float32"),
        "float32",
        encode("float32", [1.0, 2.0, 3.0, 4.0]),
    ).view(np.float32).tolist() == [7, 10, 15, 22]
