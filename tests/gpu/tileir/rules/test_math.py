"""Functions of floats and powers assemble for every dtype; what a version lacks is spelled out or refused."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.dtypes import info
from cutile.gpu.tileir.rules.math import _COARSE
from cutile.types import RoundingMode
from tests.gpu.tileir.rules.small_kernels import (
    FLOATS,
    INTEGERS,
    assemble,
    attributes,
    names,
    refused,
    sampled,
    scalar,
    tile,
)
from tests.gpu.tileir.tool import needs_tool
from tests.tileir_eval.kernels import instead_of_interpreter

F32, F64, I8, I32, U64 = (tile(d) for d in (ct.float32, ct.float64, ct.int8, ct.int32, ct.uint64))
UNARY = (ct.exp, ct.exp2, ct.log, ct.log2, ct.sin, ct.cos, ct.tan, ct.sinh, ct.cosh, ct.tanh, ct.sqrt, ct.rsqrt,
         ct.floor, ct.ceil)


def some(x):
    return (ct.exp(x), ct.exp2(x), ct.log(x), ct.log2(x), ct.sqrt(x), ct.rsqrt(x), ct.floor(x), ct.ceil(x),
            ct.isnan(x))


def others(x):
    return ct.sin(x), ct.cos(x), ct.tan(x), ct.sinh(x), ct.cosh(x), ct.tanh(x), ct.atan2(x, x)


def directed(x):
    return ct.sqrt(x, rounding_mode=RoundingMode.RZ), ct.sqrt(x, rounding_mode=RoundingMode.RP)


def of_float32(x):
    return (ct.exp(x, rounding_mode=RoundingMode.APPROX), ct.tanh(x, rounding_mode=RoundingMode.APPROX),
            ct.sqrt(x, rounding_mode=RoundingMode.APPROX, flush_to_zero=True), ct.exp2(x, flush_to_zero=True),
            ct.rsqrt(x, flush_to_zero=True))


def power(x, y):
    return x ** y


def powers(x, n):
    return x ** 3, x ** -2, x ** n, x ** 2.5


CASES = [*((f, (tile(d),)) for d in FLOATS for f in (some, others, directed)), (of_float32, (F32,)), (some, (F32,)),
         *((power, (tile(d), tile(d))) for d in FLOATS + INTEGERS), *((powers, (tile(d), I8)) for d in FLOATS),
         (power, (F32, scalar(ct.int16))), (power, (F32, U64))]


@needs_tool
@sampled(CASES)
def test_every_dtype(target, cases):
    assemble(cases, target)


@pytest.mark.parametrize("f", UNARY, ids=lambda f: f.name)
def test_one_operation(f):
    assert names(lambda x: f(x), F32) == [f.tileir]


@pytest.mark.parametrize("f, dtype", _COARSE, ids=lambda x: x.name)
def test_functions_of_16_bit_floats(f, dtype):
    """All 65,536 operands: results are the interpreter's or next to them, square roots are equal."""
    coarse = _COARSE[f, dtype]
    scaled = ["mulf"] if coarse.factor != 1 else []
    assert names(lambda x: f(x), tile(dtype)) == ["ftof", *scaled, coarse.name, "ftof"]
    with settings.override(HINTS=False):
        assert names(lambda x: f(x), tile(dtype)) == [f.tileir]

    @ct.kernel
    def kernel(x, y):
        ct.store(y, ct.bid(0), f(ct.load(x, ct.bid(0), 1024)))

    x = np.arange(1 << 16, dtype=np.uint16).view(info(dtype).storage)
    y, z = np.zeros_like(x), np.zeros_like(x)
    ct.launch(None, (64,), kernel, (x, y))
    with instead_of_interpreter():
        ct.launch(None, (64,), kernel, (x, z))
    assert np.array_equal(np.isnan(y), np.isnan(z))
    steps = abs(y.view(np.int16).astype(int) - z.view(np.int16).astype(int))[~np.isnan(y)]
    assert steps.max() <= (f is not ct.sqrt)


def test_square_roots_of_bfloat16_are_far_from_the_middle():
    """So far that the 1 ulp of float32 of an approximate root, doubled, does not change the rounded one."""
    x = np.arange(0x7F80, dtype=np.uint16).view(info(ct.bfloat16).storage).astype(np.float64)
    root = np.sqrt(x[1:])
    for error in (-(2.0**-22), 2.0**-22):
        near = (root * (1 + error)).astype(np.float32).astype(info(ct.bfloat16).storage)
        assert np.array_equal(near, root.astype(np.float32).astype(near.dtype))


def test_rounding_modes_of_16_bit_floats_are_kept():
    for f in (lambda x: ct.sqrt(x, rounding_mode=RoundingMode.RZ), lambda x: ct.sqrt(x, rounding_mode=RoundingMode.RP)):
        assert names(f, tile(ct.bfloat16)) == ["sqrt"]


def test_coarse_functions_need_their_version():
    assert names(lambda x: ct.tanh(x), tile(ct.float16), version="13.1") == ["tanh"]
    assert names(lambda x: ct.exp(x), tile(ct.float16), version="13.1") == ["ftof", "mulf", "exp2", "ftof"]


def test_isnan_is_an_unordered_comparison():
    (found,) = attributes("cmpf", lambda x: ct.isnan(x), F32)
    assert found == {"comparison_predicate": "not_equal", "comparison_ordering": "unordered"}


def test_modes():
    for name, mode in (("exp", "approx"), ("tanh", "approx"), ("sqrt", "approx")):
        assert attributes(name, of_float32, F32)[0]["rounding_mode"] == mode
    assert attributes("exp", some, F32)[0]["rounding_mode"] == "full"
    assert [a["rounding_mode"] for a in attributes("sqrt", directed, F64)] == ["zero", "positive_inf"]


def test_powers():
    assert names(power, F32, F32) == ["pow"]
    assert names(lambda x: x ** 2, F32)[-1] == "fpowi" and "for" not in names(lambda x: x ** 2, F32)
    assert names(power, F32, scalar(ct.int32)) [-3:] == ["reshape", "broadcast", "fpowi"]
    assert names(power, U64, U64) == ["for", "andi", "cmpi", "muli", "select", "shri", "muli"]


@needs_tool
def test_older_versions_multiply_themselves():
    assert "fpowi" not in names(powers, F32, I8, version="13.3")
    for version in ("13.1", "13.3"):
        assemble([(powers, (tile(d), I8)) for d in FLOATS], "sm_90", version)


@needs_tool
def test_atan2_of_zeros_that_the_assembler_sees():
    """It folds them to NaN: code that lacks this constant lacks the mistake."""
    def zeros(x):
        return ct.atan2((x - x).astype(ct.float32), ct.zeros((16,), ct.float32))

    cubin = assemble([(zeros, (tile(ct.int32),))])
    assert b"\x00\x00\xc0\x7f" not in cubin  # float32 NaN


def test_what_older_versions_lack():
    refused("exp approx", "13.2", lambda x: ct.exp(x, rounding_mode=RoundingMode.APPROX), F32)
    refused("tanh approx", "13.1", lambda x: ct.tanh(x, rounding_mode=RoundingMode.APPROX), F32)
    refused("atan2", "13.1", lambda x: ct.atan2(x, x), F32)
