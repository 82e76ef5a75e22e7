"""Bits of numbers [BITC] and bytes of tiles [PACK]."""

import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct, refuses, run
from conformance.harness.code_kernels import apply, dtype, made, unary
from conformance.harness.number_comparison import same_numbers
from conformance.harness.number_formats import FLOATS, FORMATS, INTEGERS, SMALL, codes, value, values, width
from conformance.harness.number_samples import sample
from conformance.harness.operand_types import refused, typed, varies

inf, nan = math.inf, math.nan


# ------------------------------------------------------------------ bitcast


def some_codes(name, n):
    """Codes of any dtype."""
    if name in FORMATS:
        return sample(name, n)
    return np.random.default_rng(4).integers(0, 256, n * width(name) // 8, np.uint8).view(f"u{width(name) // 8}")


@clause("BITC-1.bits")
@pytest.mark.parametrize(
    "names",
    [
        ("int8", "uint8", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu"),
        ("int16", "uint16", "float16", "bfloat16"),
        ("int32", "uint32", "float32"),
        ("int64", "uint64", "float64"),
    ],
)
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
    for src, dst in (
        ("int8", "int16"),
        ("float32", "int64"),
        ("float16", "float32"),
        ("float4_e2m1fn", "int8"),
        ("int8", "float4_e2m1fn"),
        ("float64", "float32"),
        ("bfloat16", "uint8"),
    ):
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
    assert made(lambda: ct.full(4, ct.bitcast(0x40490FDB, ct.float32), ct.float32), "float32", 4)[0] == np.float32(
        math.pi
    )


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
    c = some_codes(name, 8)
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
    c = some_codes(name, 16)

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
    fn = lambda x: ct.unpack_from_bytes(ct.pack_to_bytes(x), ct.tfloat32)
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
