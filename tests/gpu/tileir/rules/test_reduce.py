"""Reductions: every dtype, the operations of their regions, and what they start with."""

from __future__ import annotations

import math

import pytest

import cutile as ct
from cutile.gpu.tileir.rules.reduce import identity
from cutile.types import RoundingMode
from tests.gpu.tileir.rules.small_kernels import (
    FLOATS,
    NUMBERS,
    SINGLE,
    assemble,
    attributes,
    names,
    operations,
    sampled,
    scalar,
    tile,
)
from tests.gpu.tileir.tool import needs_tool

F48, I48, U48 = (tile(d, 4, 8) for d in (ct.float32, ct.int32, ct.uint8))


def folded(x):
    return (ct.sum(x, 0), ct.sum(x, (0, 1), keepdims=True), ct.prod(x, 1), ct.max(x, 1, keepdims=True), ct.min(x),
            ct.argmax(x, 1), ct.argmin(x), ct.argmin(x, 0, keepdims=True))


def with_nan(x):
    return (ct.max(x, 0, propagate_nan=True), ct.argmax(x, 1, propagate_nan=True), ct.argmin(x, propagate_nan=True),
            ct.sum(x, 0, rounding_mode=RoundingMode.RZ), ct.prod(x, 1, rounding_mode=RoundingMode.RP))


def own(x):
    return ct.reduce(x, 0, lambda a, b: ct.where(a > b, a, b), 0), ct.reduce(x, -1, ct.maximum, 1, keepdims=True)


def moving(x):
    return ct.reduce(x, 0, lambda a, b: b, 1)


def spelled_out(x):
    """Powers, which are loops elsewhere: regions take no loops."""
    return ct.reduce(x, 0, lambda a, b: a ** b, 1), ct.scan(x, 1, lambda a, b: a ** 3 // 7 + b % 5, 0)


def several(x, y, k):
    def f(a, b, c, d):
        return ct.where(a < c, a, c), b + d * k

    return ct.reduce((x, y), 1, f, (math.inf, 0))


CASES = [*((f, (tile(d, 4, 8),)) for d in NUMBERS for f in (folded, own)), (folded, (tile(ct.bool_, 4, 8),)),
         *((with_nan, (tile(d, 4, 8),)) for d in FLOATS),
         *((spelled_out, (tile(d, 4, 8),)) for d in NUMBERS), (several, (F48, I48, scalar(ct.int32))),
         *((moving, (tile(d, 4, 8),)) for d in SINGLE)]


@needs_tool
@sampled(CASES)
def test_every_dtype(target, cases):
    assemble(cases, target)


@pytest.mark.parametrize(("f", "of_int", "of_float"), [
    (ct.sum, "addi", "addf"), (ct.prod, "muli", "mulf"), (ct.max, "maxi", "maxf"), (ct.min, "mini", "minf")],
    ids=lambda x: getattr(x, "name", ""))
def test_one_operation_in_the_region(f, of_int, of_float):
    assert names(lambda x: f(x, 0), I48) == ["reduce", of_int]
    assert names(lambda x: f(x, 0), F48) == ["reduce", of_float]


def test_options_and_signs():
    def f(x):
        return ct.sum(x, 0, rounding_mode=RoundingMode.RZ, flush_to_zero=True)

    assert attributes("addf", f, F48) == [{"rounding_mode": "zero", "flush_to_zero": True}]
    assert attributes("maxi", lambda x: ct.max(x, 0), U48) == [{"signedness": "unsigned"}]
    assert attributes("maxf", lambda x: ct.max(x, 0, propagate_nan=True), F48)[0]["propagate_nan"]


@pytest.mark.parametrize("f", [ct.sum, ct.prod, ct.max, ct.min], ids=lambda f: f.name)
def test_a_single_element_is_flushed(f):
    """A step of the region would do it, but there is none."""
    def flushing(x):
        return f(x, 1, flush_to_zero=True)

    assert names(flushing, tile(ct.float32, 8, 1))[0] == "mulf"
    assert attributes("mulf", flushing, tile(ct.float32, 8, 1))[0]["flush_to_zero"]
    assert names(flushing, F48)[0] == "reduce"


@pytest.mark.parametrize(("f", "step"), [(ct.sum, "addf"), (ct.max, "maxf")], ids=["sum", "max"])
def test_the_element_comes_first(f, step):
    (fold,) = [o for o in operations(lambda x: f(x, 0), F48) if o.spec.name == "reduce"]
    (region,) = fold.regions
    assert region.ops[0].spec.name == step and region.ops[0].operands == region.args


def test_axes():
    def dims(f, t):
        return [a["dim"] for a in attributes("reduce", f, t)]

    assert dims(lambda x: ct.sum(x, -1), F48) == [1]
    assert dims(lambda x: ct.sum(x), F48) == [0, 0]  # the second axis is the first once that is gone


def test_formats_without_arithmetic_are_combined_as_their_bits():
    (fold,) = [o for o in operations(moving, tile(ct.float8_e5m2, 4, 8)) if o.spec.name == "reduce"]
    assert [(str(i.type), i.bits) for i in fold.attrs["identities"]] == [("i8", 0x3C)]
    (fold,) = [o for o in operations(moving, tile(ct.tfloat32, 4, 8)) if o.spec.name == "reduce"]
    assert [(str(i.type), i.bits) for i in fold.attrs["identities"]] == [("f32", 0x3F800000)]


def test_four_bits_are_refused():
    with pytest.raises(ct.TileUnsupportedFeatureError, match="float4_e2m1fn"):
        operations(moving, tile(ct.float4_e2m1fn, 4, 8), target="sm_100")


def test_identities():
    assert [identity(k, ct.int8) for k in ("add", "mul", "max", "min")] == [0, 1, -128, 127]
    assert [identity(k, ct.uint16) for k in ("max", "min")] == [0, 65535]
    assert [identity(k, ct.float16) for k in ("max", "min")] == [-math.inf, math.inf]
    (found,) = attributes("reduce", lambda x: ct.reduce(x, 0, lambda a, b: a * b, 5), I48)
    assert [i.bits for i in found["identities"]] == [5]


def test_what_was_combined_comes_first():
    """In the region as in the function; the other way round, scans on a GPU gave other results."""
    made = operations(lambda x: ct.reduce(x, 0, lambda a, b: a - b, 0), I48)
    (fold,) = [o for o in made if o.spec.name == "reduce"]
    (region,) = fold.regions
    before, element = region.args
    assert region.ops[0].spec.name == "subi" and region.ops[0].operands == (before, element)


@needs_tool
@pytest.mark.parametrize("dtype", [ct.float16, ct.float64], ids=lambda d: d.name)
def test_powers_of_floats_before_there_was_an_operation(dtype):
    assemble([(lambda x: ct.reduce(x, 0, lambda a, b: a ** 3 + b ** -2, 0), (tile(dtype, 4, 8),))], version="13.3")


def test_several_operands_are_paired():
    (fold,) = [o for o in operations(several, F48, I48, scalar(ct.int32)) if o.spec.name == "reduce"]
    assert [str(a.type.element) for a in fold.regions[0].args] == ["f32", "f32", "i32", "i32"]
    assert len(fold.results) == 2


def test_positions_start_behind_all():
    (found,) = attributes("reduce", lambda x: ct.argmax(x, 1), I48)
    assert [i.bits for i in found["identities"]] == [1 << 31, 2**31 - 1]
