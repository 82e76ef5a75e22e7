"""full, ones, zeros [FACT-1, FACT-2]."""

import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run
from conformance.harness.code_kernels import dtype, made, write
from conformance.harness.number_comparison import same_numbers
from conformance.harness.number_formats import FLOATS, INTEGERS, values
from conformance.harness.operand_types import refused, strict, typed, varies

ALL = (*INTEGERS, "bool_", *FLOATS)


inf, nan = math.inf, math.nan


def filled(value, name, n=4):
    """The first number of ct.full(n, value, dtype), all being equal."""
    d = dtype(name)
    y = made(lambda: ct.full(n, value, d), name, n)
    assert all(v == y[0] or v != v for v in y)
    return y[0]


# ------------------------------------------------------------------ full


@clause("FACT-1.shape")
@pytest.mark.parametrize("shape", [(), (1,), (8,), (2, 4), (1, 2, 1, 4)])
@pytest.mark.parametrize("name", ALL)
def test_full_shape(shape, name):
    d = dtype(name)
    typed(lambda: ct.full(shape, 1, d), dtype=name, shape=shape)


@clause("FACT-1.shape.int")
def test_full_of_an_int_has_rank_one():
    typed(lambda: ct.full(8, 1, ct.int32), dtype="int32", shape=(8,))


@clause("FACT-1.shape.power", "FACT-1.shape.const")
def test_full_refuses_shapes():
    for bad in (0, 3, -4, (4, 6), (2, 0), (2, -1)):
        refused(lambda: ct.full(bad, 1, ct.int32))
    for bad in (2.0, True, "4", None, (2, 2.0), ((2,), 2)):
        refused(lambda: ct.full(bad, 1, ct.int32))
    refused(lambda n: ct.full(n, 1, ct.int32), "int32 ()")
    refused(lambda n: ct.full((4, n), 1, ct.int32), "int32 ()")


@clause("FACT-1.scalar")
def test_full_of_no_shape_is_a_strict_constant():
    strict(lambda: ct.full((), 5, ct.int8), "int8", 5)
    strict(lambda: ct.full((), 0.5, ct.float16), "float16", 0.5)
    varies(lambda x: ct.full((), x, ct.int8), "int32 ()")
    typed(lambda x: ct.full((), x, ct.int8), "int32 ()", dtype="int8", shape=())


@clause("FACT-1.fill")
@pytest.mark.parametrize("bad", ["1", None, (1, 2), ct.int32])
def test_full_refuses_fills(bad):
    refused(lambda: ct.full(4, bad, ct.int32))


@clause("FACT-1.fill")
@pytest.mark.parametrize("shape", ["(1,)", "(4,)", "(2, 2)"])
def test_full_refuses_tiles(shape):
    refused(lambda x: ct.full(4, x, ct.int32), f"int32 {shape}")


@clause("FACT-1.dtype")
@pytest.mark.parametrize("bad", [5, "int32", None, int, float, bool, (ct.int32,)])
def test_full_refuses_dtypes(bad):
    refused(lambda: ct.full(4, 1, bad))


@clause("FACT-1.wrap")
@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize(
    "value", [0, 1, -1, 127, 128, 255, 256, 300, -129, -32769, 65536 + 5, (1 << 31), 1 << 40, (1 << 63) - 1]
)
def test_full_wraps(name, value):
    w = dtype(name).bitwidth
    want = value % (1 << w)
    if name[0] == "i" and want >> (w - 1):
        want -= 1 << w
    assert int(filled(value, name)) == want


@clause("FACT-1.trunc")
@pytest.mark.parametrize(
    "value, name, want",
    [
        (1.9, "int32", 1),
        (-1.9, "int32", -1),
        (0.99, "int8", 0),
        (-0.99, "int8", 0),
        (300.7, "uint8", 44),
        (-1.5, "uint16", 65535),
        (128.5, "int8", -128),
        (1e10, "int64", 10**10),
        (4294967298.5, "int32", 2),
    ],
)
def test_full_truncates(value, name, want):
    assert int(filled(value, name)) == want


@clause("FACT-1.nan")
@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_full_refuses_nan_for_integers(name, value):
    d = dtype(name)
    refused(lambda: ct.full(4, value, d), error="TileValueError")


@clause("FACT-1.float")
@pytest.mark.parametrize(
    "name, value, want",
    [
        ("float16", 2049, 2048.0),
        ("float16", 2051, 2052.0),
        ("float16", 65519.0, 65504.0),
        ("float16", 65520.0, inf),
        ("float16", -1e9, -inf),
        ("float16", 3e-8, 2.0**-24),
        ("float16", 2.0**-25, 0.0),
        ("float16", -0.0, -0.0),
        ("bfloat16", 257, 256.0),
        ("bfloat16", 259, 260.0),
        ("bfloat16", 1e39, inf),
        ("float32", 16777217, 16777216.0),
        ("float32", 16777219, 16777220.0),
        ("float32", 1e39, inf),
        ("float32", 1e-46, 0.0),
        ("float64", 0.1, 0.1),
        ("float64", (1 << 53) + 1, 2.0**53),
        ("tfloat32", 2049, 2048.0),
        ("tfloat32", 2051, 2052.0),
        ("float8_e4m3fn", 464.0, 448.0),
        ("float8_e4m3fn", 465.0, nan),
        ("float8_e4m3fn", inf, nan),
        ("float8_e4m3fn", 17, 16.0),
        ("float8_e4m3fn", 19, 20.0),
        ("float8_e5m2", 61439.0, 57344.0),
        ("float8_e5m2", 61440.0, inf),
        ("float8_e5m2", -inf, -inf),
        ("float8_e8m0fnu", 3, 4.0),
        ("float8_e8m0fnu", 0, 2.0**-127),
        ("float8_e8m0fnu", inf, nan),
        ("float8_e8m0fnu", 2.5, 2.0),
        ("float8_e5m3fnu", 3, 3.0),
        ("float8_e5m3fnu", 114688.0, 114688.0),
        ("float8_e5m3fnu", 1e6, nan),
        ("float8_e5m3fnu", 0, 0.0),
        ("float4_e2m1fn", 5, 4.0),
        ("float4_e2m1fn", inf, 6.0),
        ("float4_e2m1fn", -100, -6.0),
        ("float4_e2m1fn", 0.25, 0.0),
        ("float4_e2m1fn", 0.75, 1.0),
        ("float4_e2m1fn", -0.0, -0.0),
    ],
)
def test_full_rounds(name, value, want):
    same_numbers(np.array([filled(value, name)]), np.array([want]), name)


@clause("FACT-1.float")
@pytest.mark.parametrize("name", [n for n in FLOATS if n != "float4_e2m1fn"])
def test_full_of_nan(name):
    assert math.isnan(filled(nan, name))


@clause("FACT-1.bool")
@pytest.mark.parametrize(
    "value, want",
    [
        (0, False),
        (1, True),
        (2, True),
        (-1, True),
        (0.0, False),
        (-0.0, False),
        (0.5, True),
        (nan, True),
        (1 << 40, True),
        (True, True),
        (False, False),
    ],
)
def test_full_of_bool(value, want):
    assert filled(value, "bool_") == want


@clause("FACT-1.negative")
@pytest.mark.parametrize("name", ["float8_e8m0fnu", "float8_e5m3fnu"])
@pytest.mark.parametrize("value", [-1.0, -0.0, -1, -inf])
def test_full_refuses_negatives(name, value):
    d = dtype(name)
    refused(lambda: ct.full(4, value, d), error="TileValueError")


@clause("FACT-1.cast")
@pytest.mark.parametrize(
    "name, value, want",
    [
        ("int32", 2.75, 2),
        ("int32", -2.75, -2),
        ("float16", 1e6, inf),
        ("float8_e4m3fn", 1000.0, 448.0),
        ("float64", 0.1, None),
        ("bool_", 0.5, True),
        ("bool_", 0.0, False),
        ("float8_e5m2", -1e9, -57344.0),
        ("float4_e2m1fn", 5.0, 4.0),
    ],
)
def test_full_casts_runtime_values(name, value, want):
    d = dtype(name)

    @ct.kernel
    def k(a, out):
        x = ct.load(a, 0, ())
        write(out, ct.full(4, x, d), 4, d)

    a = np.array([value], np.float32)
    want = float(a[0]) if want is None else want
    out = run(k, a, np.zeros(4, np.bool_ if name == "bool_" else f"u{max(d.bitwidth, 8) // 8}"))
    got = out if name == "bool_" else out.view(name) if name in INTEGERS else values(name, out)
    assert list(got) == [want] * 4


@clause("FACT-1.nocast")
@pytest.mark.parametrize("source", ["int32 ()", "float32 ()"])
def test_full_refuses_what_astype_does(source):
    refused(lambda x: ct.full(4, x, ct.float8_e8m0fnu), source)
    refused(lambda x: ct.astile(x, dtype=ct.float8_e8m0fnu), source)
    refused(lambda x: ct.astile((x, x), dtype=ct.float8_e8m0fnu), source)


# ------------------------------------------------------------------ ones, zeros


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "number, make",
    [
        pytest.param(1, lambda s, d: ct.ones(s, d), marks=clause("FACT-2.ones"), id="ones"),
        pytest.param(0, lambda s, d: ct.zeros(s, d), marks=clause("FACT-2.zeros"), id="zeros"),
    ],
)
def test_ones_and_zeros(name, number, make):
    d = dtype(name)
    want = 2.0**-127 if (name, number) == ("float8_e8m0fnu", 0) else number
    assert list(made(lambda: ct.reshape(make((2, 2), d), (4,)), name, 4)) == [want] * 4


@clause("FACT-2.zeros.e8m0")
def test_zero_of_e8m0():
    assert made(lambda: ct.zeros(4, ct.float8_e8m0fnu), "float8_e8m0fnu", 4)[0] == 2.0**-127


@clause("FACT-2.ones.shape", "FACT-2.zeros.shape")
def test_ones_and_zeros_shapes():
    for make, number in ((ct.ones, 1), (ct.zeros, 0)):
        typed(lambda: make((2, 8), ct.int8), dtype="int8", shape=(2, 8))
        typed(lambda: make(8, ct.int8), dtype="int8", shape=(8,))
        strict(lambda: make((), ct.int8), "int8", number)
        for bad in (3, 0, (2, 3), 2.0, None):
            refused(lambda: make(bad, ct.int8))


@clause("FACT-2.ones.required", "FACT-2.zeros.required")
def test_ones_and_zeros_require_both():
    for make in (ct.ones, ct.zeros):
        refused(lambda: make(4))
        refused(lambda: make())
        refused(lambda: make(4, "int32"))
        refused(lambda: make(4, 1, ct.int32))
