"""Conversions between dtypes: astype, dtype constructors, the built-ins int() and float(), and the bits of numbers."""

from __future__ import annotations

import numpy as np

from cutile.dtypes import (
    INFO,
    DType,
    bfloat16,
    bool_,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e5m2,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    info,
    tfloat32,
    uint8,
)
from cutile.errors import TileValueError
from cutile.ir.build import Builder
from cutile.ir.terms import Const, Leaf, Static, Term, describe, is_tile
from cutile.ops import _numeric
from cutile.ops._arguments import invalid, numeric_dtype_arg, refuse, tile_arg
from cutile.ops._constants import loose, strict
from cutile.ops._freedom import any_
from cutile.ops._op import op, typing_rule
from cutile.ops._options import RM, RN, RP, RZ, rounding_arg
from cutile.ops._promotion import value_of
from cutile.types import RoundingMode, tile_type

RA = RoundingMode.RA

# ------------------------------------------------------------------ which casts there are

_FLOATS = frozenset(d for d, i in INFO.items() if i.floating)
_TO_HALF = frozenset({bfloat16, float8_e5m2, float8_e4m3fn, float4_e2m1fn})
_AWAY = _FLOATS - {float64, float8_e8m0fnu}

# For each target and rounding mode, the float dtypes that can be cast to it [CAST-9]; for other targets, RN from every
# float.
_SOURCES: dict[DType, dict[RoundingMode, frozenset[DType]]] = {
    float64: dict.fromkeys((RN, RZ, RM, RP, RA), _FLOATS),
    float32: {RN: _FLOATS, RZ: _FLOATS, RM: _FLOATS - {float8_e8m0fnu}, RP: _FLOATS - {float8_e8m0fnu}, RA: _AWAY},
    tfloat32: {RN: _FLOATS, RZ: _FLOATS, RA: _AWAY},
    float16: {RN: _FLOATS, RZ: _FLOATS, RM: _TO_HALF, RP: _TO_HALF, RA: _TO_HALF},
    bfloat16: {RN: _FLOATS, RZ: _FLOATS},
    float8_e8m0fnu: {RZ: _FLOATS, RP: _FLOATS},
}
_NEAREST_ONLY = {RN: _FLOATS}


def check_cast(op_name: str, src: DType, dst: DType, mode: RoundingMode | None) -> None:
    """Refuse a run-time cast that the language does not have [CAST-1, CAST-8…10]."""
    s, d = info(src), info(dst)
    if s.kind == "p" and src is not dst:
        invalid(op_name, "x", f"a {src.name} cannot be converted to {dst.name}")
    if mode is not None and not (s.floating and d.floating):
        invalid(op_name, "rounding_mode", f"a rounding mode needs a float source and target, but this converts "
                                          f"{src.name} to {dst.name}", help="leave rounding_mode out")
    if src is dst or not d.floating:
        return
    if not s.floating:
        if dst is float8_e8m0fnu:
            refuse(f"{src.name} cannot be converted to {dst.name}",
                   help=f"go by way of a float: x.astype(ct.float32)"
                        f".astype(ct.{dst.name}, rounding_mode=ct.RoundingMode.RZ)")
        return
    modes = _SOURCES.get(dst, _NEAREST_ONLY)
    if src not in modes.get(mode or RN, ()):
        given = f"with RoundingMode.{mode.name}" if mode is not None else "without a rounding mode"
        possible = [f"ct.RoundingMode.{m.name}" for m, sources in modes.items() if src in sources]
        invalid(op_name, "rounding_mode", f"{src.name} cannot be converted to {dst.name} {given}",
                help="one of " + ", ".join(possible))


# ------------------------------------------------------------------ typing rules


@typing_rule(elementwise=True)
def astype_rule(b: Builder, op, x: Term, dtype: Term, rounding_mode: Term) -> Term:
    """Rule of astype. Constants fold where they round to nearest [CAST-11]."""
    x = tile_arg(op, "x", x)
    dst, mode = numeric_dtype_arg(op, "dtype", dtype), rounding_arg(op, rounding_mode)
    check_cast(op.name, x.type.dtype, dst, mode)
    if x.type.dtype is dst:
        return strict(x.value, dst) if isinstance(x, Const) else x
    if isinstance(x, Const) and mode in (None, RN):
        return strict(x.value, dst)
    return Leaf(b.op1(op, value_of(b, x), result=x.type.with_dtype(dst), rounding_mode=None if mode is RN else mode))


@typing_rule(elementwise=True)
def bitcast_rule(b: Builder, op, x: Term, dtype: Term) -> Term:
    """Rule of bitcast; the result is never constant [BITC-1]."""
    x = _has_bits(op, tile_arg(op, "x", x))
    src, dst = x.type.dtype, _dtype_with_bits(op, dtype)
    if src.bitwidth != dst.bitwidth:
        invalid(op, "dtype", f"{src.name} has {src.bitwidth} bits and {dst.name} has {dst.bitwidth}",
                help="choose a dtype of the same width, or use ct.pack_to_bytes and ct.unpack_from_bytes")
    return Leaf(b.op1(op, value_of(b, x), result=x.type.with_dtype(dst)))


def pack_rule(b: Builder, op, x: Term) -> Term:
    """Rule of pack_to_bytes."""
    x = _has_bits(op, tile_arg(op, "x", x))
    bits = x.type.size * x.type.dtype.bitwidth
    if bits % 8:
        invalid(op, "x", f"a {x.type.describe()} has {bits} bits, which is no whole number of bytes")
    return Leaf(b.op1(op, value_of(b, x), result=tile_type(uint8, (bits // 8,))))


def unpack_rule(b: Builder, op, x: Term, dtype: Term) -> Term:
    """Rule of unpack_from_bytes."""
    x = tile_arg(op, "x", x)
    if x.type.dtype is not uint8 or x.type.ndim != 1:
        invalid(op, "x", f"expected a uint8 tile of rank 1, got {describe(x)}",
                help="bring it to that form with ct.pack_to_bytes")
    dst = _dtype_with_bits(op, dtype)
    bits = 8 * x.type.size
    if bits % dst.bitwidth:
        invalid(op, "dtype", f"{x.type.size} bytes do not divide into elements of {dst.name}, "
                             f"which has {dst.bitwidth} bits")
    return Leaf(b.op1(op, value_of(b, x), result=tile_type(dst, (bits // dst.bitwidth,))))


def _has_bits(op, x: Const | Leaf) -> Const | Leaf:
    d = x.type.dtype
    if d is bool_ or info(d).kind == "p":
        invalid(op, "x", f"the bits of a {d.name} are not accessible",
                help="convert it first: x.astype(ct.uint8)" if d is bool_ else None)
    return x


def _dtype_with_bits(op, t: Term) -> DType:
    d = numeric_dtype_arg(op, "dtype", t)
    if d is bool_:
        invalid(op, "dtype", "bool_ has no bit representation", help="use ct.uint8, then compare: bits != 0")
    return d


# ------------------------------------------------------------------ constructors and built-ins


def construct(b: Builder, dtype: DType, args: tuple[Term, ...]) -> Term:
    """`ct.int16(x)`: a strictly typed constant, or the cast of a run-time scalar [STRICT-1, STRICT-2]."""
    if dtype is float4_e2m1fn or info(dtype).kind == "p":
        refuse(f"{dtype.name} cannot be called", help=f"convert a tile: x.astype(ct.{dtype.name})"
               if dtype is float4_e2m1fn else None)
    if len(args) > 1:
        refuse(f"{dtype.name}() takes at most one argument, got {len(args)}")
    if not args:
        return strict(0, dtype)
    x = args[0]
    if isinstance(x, Static) and isinstance(x.obj, str):
        return strict(_parse(dtype.name, _PYTHON[info(dtype).kind], x.obj), dtype)
    if not is_tile(x) or x.type.shape != ():
        invalid(dtype.name, "x", f"expected a scalar, got {describe(x)}",
                help=f"convert a tile with x.astype(ct.{dtype.name})" if is_tile(x) else None)
    if isinstance(x, Const):
        return strict(x.value, dtype)
    check_cast(dtype.name, x.type.dtype, dtype, None)
    if x.type.dtype is dtype:
        return x
    return Leaf(b.op1(astype, x.value, result=tile_type(dtype), rounding_mode=None))


_PYTHON = {"b": bool, "i": int, "u": int, "f": float}


def _parse(name: str, python: type, text: str) -> bool | int | float:
    try:
        return python(text)
    except ValueError:
        refuse(f"{name}({text!r}): the string is no {python.__name__}")


def builtin_int(b: Builder, x: Term) -> Term:
    """`int(x)` of a constant or a string [CV-9]."""
    return _builtin(int, x, "convert a run-time value with x.astype(ct.int32)")


def builtin_float(b: Builder, x: Term) -> Term:
    """`float(x)` of a constant or a string [CV-9]."""
    return _builtin(float, x, "convert a run-time value with x.astype(ct.float32)")


def _builtin(python: type, x: Term, help: str) -> Term:
    name = python.__name__
    if isinstance(x, Static) and isinstance(x.obj, str):
        return loose(_parse(name, python, x.obj))
    if not isinstance(x, Const):
        refuse(f"{name}() takes a constant or a string, got {describe(x)}", help=help if is_tile(x) else None)
    try:
        return loose(python(x.value))
    except (OverflowError, ValueError) as e:
        refuse(f"{name}({x.value!r}) has no value: {e}", cls=TileValueError)


# ------------------------------------------------------------------ meanings


@op(astype_rule, operands="x", exact=True, method=("tile", "astype"),
    since={"casts to float8_e8m0fnu": (13, 3), "float casts with a rounding mode other than RN": (13, 4)},
    signature=lambda x, dtype, /, *, rounding_mode=None: None,
    freedom=any_("float to integer out of range, NaN to integer, and zero or negative numbers to float8_e8m0fnu"))
def astype(x, *, rounding_mode=None, sig, out=None):
    """The elements converted to another dtype.

    [CAST-1.same]  to the same dtype: x itself
    [CAST-1.e8m0.int]  an integer or bool_ to float8_e8m0fnu: TileTypeError
    [CAST-1.method]  x.astype(dtype) is the same
    [CAST-1.constructor]  ct.float32(x) of a run-time scalar is the same
    [CAST-1.dtype]  dtype: a numeric dtype; anything else is a TileTypeError
    [CAST-2.narrow]  integer to a narrower integer: the low bits
    [CAST-2.wide]  integer to a wider integer: extended by the signedness of the source
    [CAST-2.same]  integer to an integer of the same width: the same bits
    [CAST-3.int]  integer to bool_: x != 0
    [CAST-3.float]  float to bool_: x != 0, so NaN is True and -0.0 False
    [CAST-3.bool]  bool_ to a number: 0 or 1
    [CAST-4.nearest]  integer to float: rounded once, to nearest, ties to even
    [CAST-4.inf]  integer to float beyond the range: infinity
    [CAST-4.f8]  integer to a float of 8 or 4 bits: by way of float16, saturating
    [CAST-5.truncate]  float to integer: truncated toward zero
    [CAST-5.undefined]  beyond the range, or NaN: any value
    [CAST-5.saturate.measured]  as measured, beyond the range of 16 or more bits: the nearest end of the range
    [CAST-5.byte.measured]  as measured, beyond the range of 8 bits: the low byte of the number saturated to 16 bits
    [CAST-5.nan.measured]  as measured, NaN gives 0; for 64-bit targets, and from float64, only the highest bit is set
    [CAST-6.wide]  float to a wider float: exact
    [CAST-6.nearest]  float to a narrower float: rounded once, to nearest, ties to even
    [CAST-6.inf]  to float16, bfloat16, float32 beyond the range: infinity
    [CAST-7.max]  to float8_e4m3fn, float8_e5m2, float4_e2m1fn beyond the range: the largest value of the sign
    [CAST-7.inf]  an infinity, too, becomes the largest value of its sign there
    [CAST-7.nan]  NaN stays NaN in float8_e4m3fn and float8_e5m2
    [CAST-7.f4.nan]  NaN to float4_e2m1fn, which has none: any value
    [CAST-8.kind]  rounding_mode with an integer or bool_ on either side: TileTypeError
    [CAST-8.same]  rounding_mode with equal float dtypes is ignored
    [CAST-9.RZ]  RZ rounds toward zero; what exceeds the range becomes the largest finite value
    [CAST-9.inf]  infinities stay infinite in every mode where the format has them
    [CAST-9.RM]  RM rounds toward minus infinity
    [CAST-9.RP]  RP rounds toward plus infinity
    [CAST-9.RA]  RA rounds to nearest, ties away from zero
    [CAST-9.f8e8m0]  to float8_e8m0fnu, positive numbers round by RZ or RP, and beyond the range become 2**127
    [CAST-10.pair]  a mode that the pair of dtypes does not have: TileTypeError
    [CAST-10.mode]  FULL, APPROX and RZI: TileTypeError
    [CAST-11.fold]  constants without a mode, or with RN, give constants, converted by ENC-1…3
    [CAST-11.runtime]  constants with another mode give run-time values
    [CAST-12.undefined]  zeros and negative numbers to float8_e8m0fnu: any value
    [CAST-12.e5m3]  negative numbers to float8_e5m3fnu: any value
    [CAST-13]  to tfloat32: ten fraction bits
    """
    return _numeric.convert(x, sig.x.dtype, sig.result.dtype, rounding_mode or RN, out)


@op(bitcast_rule, operands="x", exact=True, signature=lambda x, /, dtype: None)
def bitcast(x, *, sig):
    """The bits of the elements read as another dtype of the same width.

    [BITC-1.bits]  the bits of each element stay, the shape too
    [BITC-1.width]  dtypes of different widths: TileTypeError
    [BITC-1.bool]  bool_ on either side: TileTypeError
    [BITC-1.pointer]  a foreign pointer on either side: TileTypeError
    [BITC-1.literal]  a literal counts as its dtype: int32, float32
    [BITC-1.runtime]  the result is no constant
    [BITC-1.tf32]  float32 to tfloat32 is allowed; the low 13 bits do not count
    [BITC-1.nan]  NaN payloads stay
    """
    return _numeric.from_bits(_numeric.to_bits(x, sig.x.dtype), sig.result.dtype)


@op(pack_rule, exact=True)
def pack_to_bytes(x, /, *, sig):
    """The elements as bytes.

    [PACK-1.order]  elements in row-major order, each in little-endian bytes
    [PACK-1.shape]  the result is a uint8 tile of rank 1
    [PACK-1.f4]  of two 4-bit elements the first is in the low half of the byte
    [PACK-1.bool]  bool_: TileTypeError
    [PACK-1.bits]  no whole number of bytes: TileTypeError
    """
    x = np.asarray(x)
    t = sig.x
    x = x.reshape(*x.shape[:x.ndim - t.ndim], t.size)
    if t.dtype is float4_e2m1fn:
        return _numeric.pack_f4(x)
    bits = _numeric.to_bits(x, t.dtype)
    return np.ascontiguousarray(bits, bits.dtype.newbyteorder("<")).view(np.uint8)


@op(unpack_rule, operands="x", exact=True, signature=lambda x, /, dtype: None)
def unpack_from_bytes(x, *, sig):
    """Elements from their bytes: the inverse of pack_to_bytes.

    [PACK-2.inverse]  unpack_from_bytes(pack_to_bytes(x), x.dtype) has the elements of x in row-major order
    [PACK-2.shape]  the result has rank 1
    [PACK-2.arg]  x other than a uint8 tile of rank 1: TileTypeError
    [PACK-2.bool]  dtype bool_: TileTypeError
    [PACK-2.bits]  a number of bytes that the dtype does not divide: TileTypeError
    """
    dtype = sig.result.dtype
    if dtype is float4_e2m1fn:
        return _numeric.unpack_f4(x)
    word = np.dtype(f"<u{dtype.bitwidth // 8}")
    bits = np.ascontiguousarray(x).view(word)
    return _numeric.from_bits(bits.astype(word.newbyteorder("="), copy=False), dtype)
