"""arange and astile [FACT-3, FACT-4]."""

import math
from fractions import Fraction

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run
from conformance.harness.code_kernels import dtype, made, write
from conformance.harness.exact_arithmetic import nearest
from conformance.harness.number_comparison import same_numbers
from conformance.harness.number_formats import INTEGERS, encode, values
from conformance.harness.operand_types import folds, refused, strict, typed, varies

inf, nan = math.inf, math.nan


# ------------------------------------------------------------------ arange


@clause("FACT-3.size")
def test_arange_sizes():
    for n in (1, 2, 64):
        typed(lambda: ct.arange(n, dtype=ct.int32), dtype="int32", shape=(n,))
    for bad in (0, 3, -4, 2.0, True, (4,), None):
        refused(lambda: ct.arange(bad, dtype=ct.int32))
    refused(lambda n: ct.arange(n, dtype=ct.int32), "int32 ()")
    refused(lambda: ct.arange(4))
    refused(lambda: ct.arange(4, ct.int32))


@clause("FACT-3.int", "FACT-3.iota")
@pytest.mark.parametrize("name", INTEGERS)
def test_arange_counts_modulo(name):
    d, w = dtype(name), dtype(name).bitwidth
    n = 256
    got = made(lambda: ct.arange(n, dtype=d), name, n)
    assert list(got) == [i - (1 << w) if name[0] == "i" and i >> (w - 1) else i for i in range(n)]
    start = (1 << (w - 1)) - 2
    got = made(lambda: ct.arange(8, dtype=d, start=start, step=3), name, 8)
    exact = [(start + 3 * i) % (1 << w) for i in range(8)]
    assert list(got) == [v - (1 << w) if name[0] == "i" and v >> (w - 1) else v for v in exact]


@clause("FACT-3.other")
@pytest.mark.parametrize(
    "name",
    [
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "tfloat32",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e5m3fnu",
        "float4_e2m1fn",
    ],
)
def test_arange_of_floats_casts_the_count(name):
    d = dtype(name)
    n = 4096 if d.bitwidth > 8 else 16
    got = made(lambda: ct.arange(n, dtype=d), name, n)
    cast = made(lambda: ct.arange(n, dtype=ct.int32).astype(d), name, n)
    same_numbers(got, cast, name)
    assert list(got[:5]) == [0, 1, 2, 3, 4]
    assert n == 16 or got[2049] == (2049 if name in ("float32", "float64") else 2048)


@clause("FACT-3.other")
def test_arange_of_e8m0_is_refused_as_the_cast_is():
    refused(lambda: ct.arange(4, dtype=ct.float8_e8m0fnu))


@clause("FACT-3.bool")
def test_arange_of_bool():
    assert list(made(lambda: ct.arange(8, dtype=ct.bool_), "bool_", 8)) == [False] + [True] * 7


@clause("FACT-3.start")
@pytest.mark.parametrize("start, step", [(0, 1), (5, 1), (0, 3), (5, 3), (-7, -2), (1, 0), (0, -1), (0, 0)])
@pytest.mark.parametrize("name", ["int32", "int64", "float32", "float64", "float16", "bfloat16"])
def test_arange_start_and_step(start, step, name):
    d = dtype(name)
    got = made(lambda: ct.arange(8, dtype=d, start=start, step=step), name, 8)
    assert list(got) == [start + i * step for i in range(8)]


@clause("FACT-3.convert")
def test_arange_converts_constants():
    assert list(made(lambda: ct.arange(4, dtype=ct.int32, start=1.5, step=2.9), "int32", 4)) == [1, 3, 5, 7]
    assert list(made(lambda: ct.arange(4, dtype=ct.uint8, start=-1, step=257), "uint8", 4)) == [255, 0, 1, 2]
    assert list(made(lambda: ct.arange(4, dtype=ct.float16, start=2049, step=True), "float16", 4)) == [
        2048,
        2048,
        2050,
        2052,
    ]
    refused(lambda: ct.arange(4, dtype=ct.int32, start=math.nan), error="TileValueError")
    for bad in ("1", None, (1,), ct.int32):
        refused(lambda: ct.arange(4, dtype=ct.int32, start=bad))
        refused(lambda: ct.arange(4, dtype=ct.int32, step=bad))


def runtime_arange(fn, name, *scalars):
    d = dtype(name)

    @ct.kernel
    def k(a, out):
        write(out, fn(ct.load(a, 0, ()), ct.load(a, 1, ())), 4, d)

    return values(name, run(k, np.array(scalars, np.float64), np.zeros(4, f"u{d.bitwidth // 8}")))


@clause("FACT-3.runtime")
def test_arange_of_runtime_scalars():
    got = runtime_arange(lambda s, t: ct.arange(4, dtype=ct.float32, start=s, step=t), "float32", 0.5, 1.25)
    assert list(got) == [0.5, 1.75, 3.0, 4.25]
    got = runtime_arange(
        lambda s, t: ct.arange(4, dtype=ct.int32, start=s, step=t).astype(ct.float32), "float32", 2.9, -3.9
    )
    assert list(got) == [2, -1, -4, -7]


@clause("FACT-3.tile")
def test_arange_of_tiles():
    got = made(
        lambda: ct.arange(
            4, dtype=ct.int32, start=ct.astile((10, 0, 30, 0), dtype=ct.int32), step=ct.astile((2,), dtype=ct.int32)
        ),
        "int32",
        4,
    )
    assert list(got) == [10, 2, 34, 6]
    refused(lambda s: ct.arange(4, dtype=ct.int32, start=s), "int32 (8,)")
    refused(lambda s: ct.arange(4, dtype=ct.int32, step=s), "int32 (2,)")


@clause("FACT-3.order", "FACT-3.fused")
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_arange_multiplies_then_adds_in_one_rounding(name):
    step = float(values(name, np.array([nearest_code(name, 1 / 3)]))[0])
    start = -nearest(name, Fraction(step) * 3)
    got = runtime_arange(lambda s, t: ct.arange(4, dtype=dtype(name), start=s, step=t), name, start, step)
    want = [nearest(name, Fraction(start) + i * Fraction(step)) for i in range(4)]
    assert want[3] != 0  # two roundings would give 0
    assert list(got) == want


def nearest_code(name, x):

    return encode(name, np.array([x]))[0]


@clause("FACT-3.plain")
@pytest.mark.parametrize(
    "name", ["bool_", "tfloat32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu", "float4_e2m1fn"]
)
def test_arange_without_arithmetic(name):
    d = dtype(name)
    refused(lambda: ct.arange(4, dtype=d, start=1))
    refused(lambda: ct.arange(4, dtype=d, step=2))
    refused(lambda s: ct.arange(4, dtype=d, start=s), "int32 ()")


@clause("FACT-3.range")
def test_arange_beyond_the_dtype():
    for d in (ct.int8, ct.uint8):
        refused(lambda: ct.arange(512, dtype=d), error="TileValueError")
    typed(lambda: ct.arange(256, dtype=ct.uint8), dtype="uint8", shape=(256,))
    typed(lambda: ct.arange(512, dtype=ct.uint16), dtype="uint16", shape=(512,))


# ------------------------------------------------------------------ astile


@clause("FACT-4.scalar")
def test_astile_of_scalars():
    strict(lambda: ct.astile(300, dtype=ct.uint8), "uint8", 44)
    folds(lambda: ct.astile(2.5, dtype=ct.float16), 2.5, "float16")
    typed(lambda x: ct.astile(x, dtype=ct.int8), "float32 ()", dtype="int8", shape=())
    varies(lambda x: ct.astile(x, dtype=ct.int8), "int32 ()")


@clause("FACT-4.tuple", "FACT-4.order")
def test_astile_of_tuples():
    typed(lambda: ct.astile((1, 2), dtype=ct.int16), dtype="int16", shape=(2,))
    typed(lambda: ct.astile(((1, 2, 3, 4), (5, 6, 7, 8)), dtype=ct.int16), dtype="int16", shape=(2, 4))
    typed(lambda: ct.astile((((1,), (2,)),), dtype=ct.int8), dtype="int8", shape=(1, 2, 1))
    got = made(lambda: ct.reshape(ct.astile(((1, 2, 3, 4), (5, 6, 7, 8)), dtype=ct.int16), (8,)), "int16", 8)
    assert list(got) == [1, 2, 3, 4, 5, 6, 7, 8]
    got = made(lambda: ct.reshape(ct.astile((((1, 2), (3, 4)), ((5, 6), (7, 8))), dtype=ct.int16), (8,)), "int16", 8)
    assert list(got) == [1, 2, 3, 4, 5, 6, 7, 8]


@clause("FACT-4.cast")
def test_astile_casts():
    assert list(made(lambda: ct.astile((1.9, -1, True, 300), dtype=ct.uint8), "uint8", 4)) == [1, 255, 1, 44]
    got = made(lambda: ct.astile((ct.bid(0) + 1, 2.5, ct.int8(-3), ct.num_blocks(0)), dtype=ct.float32), "float32", 4)
    assert list(got) == [1, 2.5, -3, 1]
    assert list(made(lambda: ct.astile((0, 0.5, -1, 0.0), dtype=ct.bool_), "bool_", 4)) == [False, True, True, False]


@clause("FACT-4.length")
@pytest.mark.parametrize("bad", [(), (1, 2, 3), ((1, 2, 3), (4, 5, 6)), ((), ())])
def test_astile_lengths(bad):
    refused(lambda: ct.astile(bad, dtype=ct.int32))


@clause("FACT-4.uniform")
@pytest.mark.parametrize(
    "bad", [((1, 2), (3,)), ((1,), (3, 4)), (1, (2,)), ((2,), 1), ((1, 2), 3), (((1,), (2,)), ((3,), 4))]
)
def test_astile_uniform(bad):
    refused(lambda: ct.astile(bad, dtype=ct.int32))


@clause("FACT-4.element")
def test_astile_elements():
    refused(lambda x: ct.astile((x, x), dtype=ct.int32), "int32 (1,)")
    refused(lambda x: ct.astile(x, dtype=ct.int32), "int32 (4,)")
    for bad in (None, "1", ct.int32, (None, 1), ("1", 1)):
        refused(lambda: ct.astile(bad, dtype=ct.int32))
    refused(lambda: ct.astile((1, 2), dtype="int32"))
    refused(lambda: ct.astile((1, 2)))


@clause("STRICT-2.constant")
def test_a_constant_operand_is_converted_to_its_dtype():
    got = made(lambda: ct.zeros(4, ct.int8) + ct.int8(300), "int8", 4)
    assert list(got) == [44] * 4
    got = made(lambda: ct.zeros(4, ct.float16) + 2049.0, "float16", 4)
    assert list(got) == [2048.0] * 4
    got = made(lambda: ct.zeros(4, ct.float64) + 0.1, "float64", 4)
    assert list(got) == [0.1] * 4
