"""Lowering of mathematical functions. Those that Tile IR lacks are made of other operations.

Some functions of 16-bit floats go through a coarser function of float32, which is still far inside their bound.
"""

from __future__ import annotations

from typing import Any

from cutile import settings
from cutile._support.structs import structure
from cutile.dtypes import bfloat16, float16, info
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.access import scalar_as_tile
from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.operations import OPS
from cutile.gpu.tileir.rules._regular import compare, elementwise, is_float
from cutile.gpu.tileir.rules._rule import rule
from cutile.gpu.tileir.rules.convert import float_to
from cutile.ops import math
from cutile.ops._op import is_plain

_INTEGER = {16: ty.i16, 32: ty.i32, 64: ty.i64}


@structure(frozen=True, slots=True)
class _Coarse:
    """A function of 16-bit floats as an operation on float32: `name` of x times `factor`, with attributes."""

    name: str
    attrs: dict[str, Any]
    factor: float = 1.0


_FLUSH, _APPROX, _LOG2_E = {"flush_to_zero": True}, {"rounding_mode": "approx"}, 1.4426950408889634

# The clauses of the operations bound their errors by 129 units in the last place of float32 (UN-4, RM-1), which is 0.02
# units of float16; that of exp comes from rounding the product, 2**-17 of the result at most. A result of float16 that
# flushing makes zero is zero in float16 anyway, and no operand is subnormal in float32. bfloat16 has the range of
# float32, so nothing may be flushed there. sqrt must be rounded correctly: the root of a bfloat16 is at least 32 units
# of float32 away from the middle between two of them, that of a float16 may be half a unit away.
_COARSE = {
    (math.exp, float16): _Coarse("exp2", _FLUSH, _LOG2_E), (math.exp, bfloat16): _Coarse("exp2", {}, _LOG2_E),
    (math.exp2, float16): _Coarse("exp2", _FLUSH), (math.rsqrt, float16): _Coarse("rsqrt", _FLUSH),
    (math.tanh, float16): _Coarse("tanh", _APPROX), (math.tanh, bfloat16): _Coarse("tanh", _APPROX),
    (math.sqrt, bfloat16): _Coarse("sqrt", _APPROX),
}


@rule(math.exp, math.exp2, math.rsqrt, math.tanh, math.sqrt)
def _function(l, n):
    v = n.operands[0]
    coarse = _COARSE.get((n.op, v.type.dtype)) if is_plain(n) and settings.get("HINTS") else None
    if coarse is None or any(OPS[coarse.name].attr(a).since > l.version for a in coarse.attrs):
        return elementwise(l, n)
    x = float_to(l, l.get(v), ty.f32)
    if coarse.factor != 1:
        x = l.op("mulf", [x, l.b.constant(x.type, coarse.factor)])
    return float_to(l, l.op(coarse.name, [x], **coarse.attrs), ty.of_dtype(v.type.dtype))


@rule(math.isnan)
def _isnan(l, n):
    x = l.get(n.operands[0])
    return compare(l, "not_equal", x, x, floating=True)


@rule(math.atan2)
def _atan2(l, n):
    """The assembler folds atan2 of two zeros to NaN. So where both are zero, x becomes 1 with the sign of x."""
    l.needs("atan2", "atan2")
    y, x = map(l.get, n.operands)
    zero, one = (l.b.constant(x.type, k) for k in (0, 1))
    both = l.op("andi", [compare(l, "equal", v, zero, floating=True) for v in (y, x)])
    bits = ty.tile(_INTEGER[x.type.element.bits], x.type.shape)
    signed = l.op("ori", [l.op("bitcast", [v], result=bits) for v in (x, one)])
    return l.op("atan2", [y, l.op("select", [both, l.op("bitcast", [signed], result=x.type), x])])


@rule(math.pow)
def _pow(l, n):
    x, y = n.operands
    if is_float(x):
        return elementwise(l, n)
    power = _by_squaring(l, l.get(x), l.get(y), "muli")
    return power if info(x.type.dtype).kind == "u" else _negative_exponent(l, l.get(x), l.get(y), power)


def _negative_exponent(l, x: Value, y: Value, power: Value) -> Value:
    """`power`, and for a negative exponent the truncated result: ±1 for the bases 1 and -1, else 0 [POW-3]."""
    zero, one, minus = (l.b.constant(x.type, k) for k in (0, 1, -1))
    is_one, is_minus = (compare(l, "equal", x, k, floating=False) for k in (one, minus))
    odd = compare(l, "not_equal", l.op("andi", [y, one]), zero, floating=False)
    of_minus = l.op("select", [odd, minus, one])
    truncated = l.op("select", [is_minus, of_minus, l.op("select", [is_one, one, zero])])
    return l.op("select", [compare(l, "less_than", y, zero, floating=False), truncated, power])


@rule(math.powi)
def _powi(l, n):
    x, e = map(l.get, n.operands)
    e = scalar_as_tile(l, e, x.type.shape)
    if l.version >= OPS["fpowi"].since:
        return l.op("fpowi", [x, e])
    wide = float_to(l, x, ty.f32) if x.type.element in (ty.f16, ty.bf16) else x  # [POW-1.wide]
    power = _by_squaring(l, wide, l.op("absi", [e]), "mulf")
    inverse = l.op("divf", [l.b.constant(wide.type, 1), power])
    negative = compare(l, "less_than", e, l.b.constant(e.type, 0), floating=False)
    return float_to(l, l.op("select", [negative, inverse, power]), x.type.element)


def _by_squaring(l, x: Value, e: Value, multiply: str) -> Value:
    """x to the power of e, read as unsigned, bit by bit from the lowest; products wrap, or each is rounded [POW-1]."""
    power, bits = l.b.constant(x.type, 1), e.type.element.bits
    if l.combining:  # the body of a reduction or scan takes no loops
        for _ in range(bits):
            power, x, e = _squared(l, power, x, e, multiply)
        return power
    start, stop, step = (l.b.constant(ty.tile(ty.i32), k) for k in (0, bits, 1))
    with l.b.for_(start, stop, step, [power, x, e]) as loop:
        l.op("continue", [_squared(l, *loop.arguments[1:], multiply)])
    return loop.results[0]


def _squared(l, power: Value, base: Value, rest: Value, multiply: str) -> tuple[Value, Value, Value]:
    """The next step, for the lowest bit of `rest`: the power, the base squared, and the exponent without that bit."""
    one, zero = l.b.constant(rest.type, 1), l.b.constant(rest.type, 0)
    odd = compare(l, "not_equal", l.op("andi", [rest, one]), zero, floating=False)
    power = l.op("select", [odd, l.op(multiply, [power, base]), power])
    rest = l.op("shri", [rest, one], signedness="unsigned")
    return power, l.op(multiply, [base, base]), rest
