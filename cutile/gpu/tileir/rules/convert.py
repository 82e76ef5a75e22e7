"""Lowering of conversions between dtypes and of bits.

tfloat32 has 32 bits in memory but 19 in Tile IR, so bitcasts go through f32.
"""

from __future__ import annotations

from cutile.dtypes import DType, bfloat16, bool_, float8_e8m0fnu, float16, info
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.access import is_signed, reshaped, resized
from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.rules._regular import compare, signedness
from cutile.gpu.tileir.rules._rule import rule
from cutile.ops import convert
from cutile.types import RoundingMode

BYTES = "pack and unpack of bytes"
TF32_BITS = 0xFFFFE000  # bits of a float32 that tfloat32 keeps


@rule(convert.astype)
def _astype(l, n):
    v, dst = n.operands[0], n.results[0].type.dtype
    x, src, mode = l.get(v), v.type.dtype, n.attrs["rounding_mode"]
    to = ty.of_dtype(dst)
    if dst is bool_:
        return _truth(l, x, info(src).floating)
    if info(src).floating and info(dst).floating:
        return _float_to_float(l, x, src, dst, mode)
    if info(src).floating:
        x = _calculable(l, x)
        return l.op("ftoi", [x], result=ty.tile(to, x.type.shape), signedness=signedness(n.results[0]))
    if info(dst).floating:
        return _int_to_float(l, x, to, signedness(v))
    return resized(l, x, to, signed=is_signed(src))


def _truth(l, x: Value, floating: bool) -> Value:
    x = _calculable(l, x) if floating else x
    return compare(l, "not_equal", x, l.b.constant(x.type, 0), floating=floating)


def _calculable(l, x: Value) -> Value:
    """The float itself, or as f32 if Tile IR does not compute in its format; f32 holds all those exactly."""
    return x if x.type.element in (ty.f16, ty.bf16, ty.f32, ty.f64) else float_to(l, x, ty.f32)


def float_to(l, x: Value, element: ty.Scalar, mode: str = "nearest_even") -> Value:
    if x.type.element is element:
        return x
    return l.op("ftof", [x], result=ty.tile(element, x.type.shape), rounding_mode=mode)


def _float_to_float(l, x: Value, src: DType, dst: DType, mode: RoundingMode | None) -> Value:
    if dst is float8_e8m0fnu:
        l.check("casts to float8_e8m0fnu")
    elif mode is not None:
        l.check("float casts with a rounding mode other than RN")
        if src is bfloat16 and dst is float16 and mode is not RoundingMode.RZ:
            l.unsupported(f"Tile IR has no cast of bfloat16 to float16 with RoundingMode.{mode.name}",
                          help="leave rounding_mode out, or use ct.RoundingMode.RZ")
    return float_to(l, x, ty.of_dtype(dst), "nearest_even" if mode is None else mode.value)


def _int_to_float(l, x: Value, to: ty.Scalar, sign: str) -> Value:
    """A cast, rounded once; to formats of 8 or fewer bits it goes through f16 [CAST-4]."""
    if x.type.element is ty.i1:
        x = resized(l, x, ty.i32, signed=False)
    near = ty.f16 if to.bits <= 8 else to
    return float_to(l, l.op("itof", [x], result=ty.tile(near, x.type.shape), signedness=sign), to)


# ------------------------------------------------------------------ bits


@rule(convert.bitcast)
def _bitcast(l, n):
    return _from_bits(l, _with_bits(l, l.get(n.operands[0])), ty.of_dtype(n.results[0].type.dtype))


def _with_bits(l, x: Value) -> Value:
    """The tile with all the bits that it has in memory: a tfloat32 as f32."""
    return float_to(l, x, ty.f32) if x.type.element is ty.tf32 else x


def replacement(element: ty.Scalar | ty.Pointer) -> ty.Scalar | ty.Pointer:
    """The element type in which Tile IR moves values of a format that it cannot compute with."""
    return {ty.tf32: ty.f32, ty.e4m3: ty.i8, ty.e5m2: ty.i8, ty.e8m0: ty.i8, ty.e5m3: ty.i8}.get(element, element)


def retyped(l, x: Value, element: ty.Scalar | ty.Pointer) -> Value:
    """A tile converted to its replacement type, or back."""
    if ty.tf32 in (x.type.element, element):
        return float_to(l, x, element)
    return _cast_bits(l, x, element)


def _from_bits(l, x: Value, to: ty.Scalar) -> Value:
    if to is not ty.tf32:
        return _cast_bits(l, x, to)
    bits = _cast_bits(l, x, ty.i32)
    bits = l.op("andi", [bits, l.b.constant(bits.type, TF32_BITS)])
    return float_to(l, _cast_bits(l, bits, ty.f32), ty.tf32)


def _cast_bits(l, x: Value, element: ty.Scalar) -> Value:
    return x if x.type.element is element else l.op("bitcast", [x], result=ty.tile(element, x.type.shape))


@rule(convert.pack_to_bytes)
def _pack(l, n):
    x = _with_bits(l, l.get(n.operands[0]))
    x = reshaped(l, x, (x.type.size,))
    if x.type.element.bits == 8:
        return _cast_bits(l, x, ty.i8)
    l.needs(BYTES, "pack")
    return l.op("pack", [x], result=l.type(n.results[0].type))


@rule(convert.unpack_from_bytes)
def _unpack(l, n):
    x, t = l.get(n.operands[0]), l.type(n.results[0].type)
    if t.element.bits == 8:
        return _cast_bits(l, x, t.element)
    l.needs(BYTES, "unpack")
    if t.element is ty.tf32:
        return _from_bits(l, l.op("unpack", [x], result=ty.tile(ty.f32, t.shape)), ty.tf32)
    return l.op("unpack", [x], result=t)
