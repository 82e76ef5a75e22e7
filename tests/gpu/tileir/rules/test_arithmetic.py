"""Arithmetic of every dtype assembles; rounding, sign and overflow stand in the operations."""

from __future__ import annotations

import cutile as ct
from cutile.types import RoundingMode
from tests.gpu.tileir.rules.small_kernels import FLOATS, INTEGERS, NUMBERS, assemble, attributes, names, sampled, tile
from tests.gpu.tileir.tool import needs_tool

F32, I32, U8, F16 = tile(ct.float32), tile(ct.int32), tile(ct.uint8), tile(ct.float16)


def common(x, y):
    return x + y, x - y, x * y, x / y, x // y, x % y, ct.cdiv(x, y), ct.minimum(x, y), ct.maximum(x, y), -x, abs(x)


def pairs(x, y):
    return divmod(x, y)


def rounded(x, y):
    return (ct.add(x, y, rounding_mode=RoundingMode.RZ), ct.sub(x, y, rounding_mode=RoundingMode.RM),
            ct.mul(x, y, rounding_mode=RoundingMode.RP), ct.truediv(x, y, rounding_mode=RoundingMode.RZ))


def of_float32(x, y):
    return (ct.add(x, y, flush_to_zero=True), ct.truediv(x, y, rounding_mode=RoundingMode.APPROX, flush_to_zero=True),
            ct.truediv(x, y, rounding_mode=RoundingMode.FULL),
            ct.minimum(x, y, flush_to_zero=True, propagate_nan=True), ct.maximum(x, y, propagate_nan=True))


def fused(x, y):
    return x * y + x, x * y - y, y - x * y


CASES = [*((common, (tile(d), tile(d))) for d in NUMBERS), *((pairs, (tile(d), tile(d))) for d in INTEGERS),
         *((f, (tile(d), tile(d))) for d in FLOATS for f in (rounded, fused)), (of_float32, (F32, F32)),
         (common, (tile(ct.bool_), I32))]


@needs_tool
@sampled(CASES)
def test_every_dtype(target, cases):
    assemble(cases, target)


def test_one_operation_where_there_is_one():
    for f, i, x in ((lambda x, y: x + y, "addi", "addf"), (lambda x, y: x - y, "subi", "subf"),
                    (lambda x, y: x * y, "muli", "mulf"), (ct.minimum, "mini", "minf"), (ct.maximum, "maxi", "maxf")):
        assert names(f, I32, I32) == [i]
        assert names(f, F16, F16) == [x]
    assert names(lambda x: -x, I32) == ["negi"] and names(lambda x: abs(x), F32) == ["absf"]
    assert names(lambda x, y: x * y + x, F32, F32) == ["fma"]


def test_options():
    def f(x, y):
        return ct.add(x, y, rounding_mode=RoundingMode.RM, flush_to_zero=True)

    assert attributes("addf", f, F32, F32) == [{"rounding_mode": "negative_inf", "flush_to_zero": True}]
    (found,) = attributes("minf", lambda x, y: ct.minimum(x, y, propagate_nan=True), F32, F32)
    assert found["propagate_nan"] and not found["flush_to_zero"]
    assert attributes("addf", lambda x, y: x + y, F16, F16)[0]["rounding_mode"] == "nearest_even"


def test_signs():
    for t, sign in ((I32, "signed"), (U8, "unsigned")):
        assert attributes("maxi", ct.maximum, t, t) == [{"signedness": sign}]
    (signed,) = attributes("divi", lambda x, y: x // y, I32, I32)
    assert signed == {"signedness": "signed", "rounding": "negative_inf"}
    (unsigned,) = attributes("divi", lambda x, y: x // y, U8, U8)  # to minus infinity is no mode of unsigned ones
    assert unsigned == {"signedness": "unsigned", "rounding": "zero"}
    assert attributes("divi", ct.cdiv, U8, U8) == [{"signedness": "unsigned", "rounding": "positive_inf"}]


def test_remainders_get_the_sign_of_the_divisor():
    assert names(lambda x, y: x % y, U8, U8) == ["remi"]
    assert names(lambda x, y: x % y, I32, I32) == ["remi", "cmpi", "cmpi", "xori", "cmpi", "andi", "addi", "select"]
    assert names(lambda x, y: x % y, F32, F32) == ["remf", "cmpf", "cmpf", "xori", "cmpf", "andi", "addf", "select"]


def test_quotients_of_floats_round_first():
    assert names(lambda x, y: x // y, F32, F32) == ["divf", "floor"]
    assert names(ct.cdiv, F32, F32) == ["divf", "ceil"]
