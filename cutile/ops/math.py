"""Mathematical functions of floats, and the power operator [UN-*, ARITH-11, POW-*].

A meaning uses `wide` if NumPy does not round the function correctly: NumPy's float32 routines differ between
processors, so `wide` computes in float64 and the framework rounds once. A function that NumPy rounds correctly (sqrt)
or computes exactly (floor) is called on the carriers directly. `freedom` says how far an implementation may be from the
exact value, in units in the last place.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from cutile.dtypes import DType, bool_, float16, float32, float64, info, int16, int32, int_range, uint8, uint16
from cutile.errors import TileValueError
from cutile.ir.build import Builder
from cutile.ir.terms import Const, Leaf, Term
from cutile.ops import _hyperbolic, _numeric
from cutile.ops._arguments import invalid, refuse, tile_arg
from cutile.ops._constants import encode, fold, integer_power, is_const, loose, strict
from cutile.ops._error_bounds import monotone, monotone_in_each, of_cosh, of_nan_test, of_tan, of_wave
from cutile.ops._freedom import ulp, ulp_of, when
from cutile.ops._numeric import wide
from cutile.ops._op import OpDef, op, typing_rule
from cutile.ops._options import (
    APPROX,
    FLUSHING,
    FULL,
    IEEE_CLAUSES,
    IEEE_MODES,
    OTHER_MODES,
    RN,
    check_flush,
    check_rounding,
    flush_arg,
    rounding_arg,
)
from cutile.ops._promotion import broadcast, cast, common_dtype, common_shape, meet, value_of
from cutile.types import tile_type

# ------------------------------------------------------------------ typing rules


def number_arg(op, name: str, t: Term) -> Const | Leaf:
    """A tile or scalar of an arithmetic dtype; a float of 8 or 4 bits has no arithmetic [DT-5]."""
    t = tile_arg(op, name, t)
    i = info(t.type.dtype)
    if not i.arithmetic:
        invalid(op, name, f"{t.type.dtype.name} has no arithmetic",
                help="convert it first: x.astype(ct.float32)" if i.restricted else None)
    return t


def _float_clauses(o: OpDef) -> str:
    """The clauses of a function that returns a float: its units in the last place, and its options."""
    lines = ["[UN-1.{name}.dtype]  integers and bool_ are converted to float32; floats keep their dtype",
             "[UN-1.{name}.restricted]  a restricted float: TileTypeError"]
    if free := ulp_of(o.freedom):
        lines += [f"[UN-4.{{name}}.f32]  float32: within {free.limit[float32]} ulp of the exact value",
                  f"[UN-4.{{name}}.f64]  float64: within {free.limit[float64]} ulp",
                  f"[UN-4.{{name}}.f16]  float16 and bfloat16: within {free.limit[float16]} ulp"]
    lines += ["[UN-4.{name}.const]  constants fold", "[UN-4.{name}.nan]  {name}(nan) is NaN"]
    if FULL in o.modes:
        lines.append("[RM-1.{name}.FULL]  FULL is the default")
    if RN in o.modes:
        lines.append(IEEE_CLAUSES)
    if approximate := ulp_of(o.freedom, APPROX) if APPROX in o.modes else None:
        lines.append(f"[RM-1.{{name}}.APPROX]  APPROX: within {approximate.limit[float32]} ulp")
    if o.modes:
        lines += [OTHER_MODES, "[RM-2.{name}]  a rounding mode with a result other than float32: TileTypeError"]
    if "flush_to_zero" in o.__signature__.parameters:
        lines.append(FLUSHING)
    return "\n".join(lines)


@typing_rule(elementwise=True, clauses=_float_clauses)
def float_unary(b: Builder, op, x: Term, **options: Term) -> Term:
    """Rule of functions of one float that return a float. Integers and bool_ are converted to float32 first [UN-1].

    It reads rounding_mode and flush_to_zero if the op has them.
    """
    x = number_arg(op, "x", x)
    attrs = {}
    if "rounding_mode" in options:
        attrs["rounding_mode"] = rounding_arg(op, options["rounding_mode"])
    if "flush_to_zero" in options:
        attrs["flush_to_zero"] = flush_arg(op, options["flush_to_zero"])
    dtype = x.type.dtype if info(x.type.dtype).floating else float32
    if is_const(x):
        return _fold_float(op, [x], dtype)
    check_rounding(op, attrs.get("rounding_mode"), dtype)
    check_flush(op, attrs.get("flush_to_zero", False), dtype)
    if attrs.get("rounding_mode") in (RN, FULL):  # RN and FULL are what None means
        attrs["rounding_mode"] = None
    x = cast(b, x, dtype)
    return Leaf(b.op1(op, value_of(b, x), result=x.type, **attrs))


def _fold_float(op, xs: list[Const], dtype: DType) -> Const:
    """Fold. Strict constants are refused where Python's math has no value, as loose ones are [LOOSE-5, D-24]."""
    if not all(x.loose for x in xs):
        fold(op, [loose(float(encode(x.value, dtype))) for x in xs])
    return fold(op, xs, dtype)


@typing_rule(elementwise=True, clauses="""
[UN-2.{name}.dtype]  the dtype is kept
[UN-2.{name}.restricted]  a restricted float: TileTypeError
[UN-2.{name}.strict]  a strict constant keeps its dtype
[UN-2.{name}.int]  an integer or bool_ tile: TileTypeError
[UN-2.{name}.special]  infinities, NaN and zeros of either sign stay as they are
""")
def to_integral_rule(b: Builder, op, x: Term) -> Term:
    """Rule of floor and ceil: floats only; loose constants give an int [UN-2, LOOSE-5]."""
    x = number_arg(op, "x", x)
    if is_const(x) and x.loose:
        return fold(op, [x])
    _need_float(op, x)
    return fold(op, [x], x.dtype) if is_const(x) else Leaf(b.op1(op, x.value, result=x.type))


@typing_rule(elementwise=True)
def isnan_rule(b: Builder, op, x: Term) -> Term:
    """Rule of isnan: floats only, and loose integers, which are no NaN [UN-3]."""
    x = number_arg(op, "x", x)
    if is_const(x) and x.loose:
        return fold(op, [x])
    _need_float(op, x)
    if is_const(x):
        return fold(op, [x], bool_, in_dtype=x.dtype)
    return Leaf(b.op1(op, x.value, result=x.type.with_dtype(bool_)))


def _need_float(op, x: Const | Leaf) -> None:
    d = x.type.dtype
    if not info(d).floating:
        invalid(op, "x", f"expected a float tile, got {d.name}",
                help="an integer needs no rounding: leave the call out, or convert with x.astype(ct.float32)")


@typing_rule(elementwise=True)
def float_binary(b: Builder, op, x1: Term, x2: Term) -> Term:
    """Rule of functions of two floats that return a float: the operands meet in a float dtype."""
    x1, x2 = number_arg(op, "x1", x1), number_arg(op, "x2", x2)
    if is_const(x1, x2) and x1.loose and x2.loose:
        return fold(op, [x1, x2])
    dtype = common_dtype(x1, x2, what=f"{op.name}()")
    if not info(dtype).floating:
        refuse(f"{op.name}() needs floats, but its operands meet in {dtype.name}",
               help="convert them first: y.astype(ct.float32)")
    if is_const(x1, x2):
        return _fold_float(op, [x1, x2], dtype)
    values, result = meet(b, dtype, f"{op.name}()", x1, x2)
    return Leaf(b.op1(op, *values, result=result))


@typing_rule(elementwise=True)
def pow_rule(b: Builder, op, x: Term, y: Term) -> Term:
    """Rule of pow: an integer power of a float, or a power in the common dtype [POW-1…3]."""
    x, y = number_arg(op, "x", x), number_arg(op, "y", y)
    if is_const(x, y) and x.loose and y.loose:
        return fold(op, [x, y])
    exponent = _integer_exponent(b, y) if info(x.type.dtype).floating else None
    if exponent is not None:
        return _integer_power_of(b, x, exponent)
    dtype = common_dtype(x, y, what="pow()")
    if dtype is bool_:
        refuse("pow() is not defined for two bool_ operands", help="convert one side: x.astype(ct.int32)")
    if not is_const(x, y):
        values, result = meet(b, dtype, "pow()", x, y)
        return Leaf(b.op1(op, *values, result=result))
    if info(dtype).floating:
        return _fold_float(op, [x, y], dtype)
    if encode(x.value, dtype) == 0 and encode(y.value, dtype) < 0:
        refuse("a constant zero to a negative power has no value", cls=TileValueError)
    return fold(op, [x, y], dtype)


def _integer_exponent(b: Builder, y: Const | Leaf) -> Const | Leaf | None:
    """The exponent in a signed dtype of at most 32 bits, or None if it is not such an integer."""
    d = y.type.dtype
    if not info(d).integral:
        return None
    if isinstance(y, Const) and y.loose:
        return strict(y.value, int32) if d is int32 else None
    low, high = int_range(int32)
    if int_range(d)[0] < low or int_range(d)[1] > high:
        return None
    return cast(b, y, {uint8: int16, uint16: int32}.get(d, d))


def _integer_power_of(b: Builder, x: Const | Leaf, n: Const | Leaf) -> Term:
    """x ** n by powi. It is never folded [STRICT-6]. A scalar exponent stays a scalar."""
    shape = common_shape("pow()", x, n)
    result = tile_type(x.type.dtype, shape)
    base = value_of(b, broadcast(b, x, shape))
    if n.type.shape != ():
        n = broadcast(b, n, shape)
    return Leaf(b.op1(powi, base, value_of(b, n), result=result))


@typing_rule(elementwise=True)
def integer_power_rule(b: Builder, op, x: Term, n: Term) -> Term:
    """Rule of powi. No kernel calls powi; pow makes its nodes. Tests and tools do call it."""
    return pow_rule(b, pow, x, n)


# ------------------------------------------------------------------ constants


def _loose_exp2(x):
    return integer_power(2, x) if isinstance(x, int) else 2**x


def _loose_pow(x, y):
    return integer_power(x, y) if isinstance(x, int) and isinstance(y, int) else operator.pow(x, y)


def _loose_rsqrt(x):
    return x**-0.5


# ------------------------------------------------------------------ meanings


@op(float_unary, loose=math.exp, tileir="exp", modes=(FULL, APPROX),
    freedom=(ulp(2), when(APPROX, ulp(62))), error_bound=monotone(np.exp))
def exp(x, /, *, rounding_mode=None, sig, out=None):
    """e to the power of each element.

    [UN-4.exp.ninf]  exp(-inf) == +0
    [UN-4.exp.inf]  exp(inf) == inf
    [UN-4.exp.overflow]  beyond the range: inf
    [LOOSE-5.exp]  a constant beyond the range of double precision: TileValueError
    """
    return wide(np.exp, x, out=out, dtype=sig.result.dtype)


@op(float_unary, loose=_loose_exp2, freedom=ulp(3), tileir="exp2", error_bound=monotone(np.exp2))
def exp2(x, /, *, flush_to_zero=False, sig, out=None):
    """2 to the power of each element.

    [UN-4.exp2.ninf]  exp2(-inf) == +0
    [UN-4.exp2.inf]  exp2(inf) == inf
    [UN-4.exp2.overflow]  beyond the range: inf
    [LOOSE-5.exp2]  a literal integer exponent of at least 0 gives an integer: exp2(3) == 8
    [FTZ-1.exp2]  flush_to_zero makes subnormal inputs and results zeros
    """
    if not flush_to_zero:
        return wide(np.exp2, x, out=out, dtype=sig.result.dtype)
    return _numeric.flush(_numeric.round_to(float32, wide(np.exp2, _numeric.flush(x), dtype=float32)))


@op(float_unary, loose=math.log, freedom=ulp(1), tileir="log", error_bound=monotone(np.log, least=0))
def log(x, /, *, sig, out=None):
    """Natural logarithm of each element.

    [UN-4.log.zero]  log(0) == log(-0.0) == -inf
    [UN-4.log.negative]  log(x) is NaN for x < 0
    [UN-4.log.inf]  log(inf) == inf
    [UN-4.log.one]  log(1) is +0
    [LOOSE-5.log]  a constant of 0 or less: TileValueError
    """
    return wide(np.log, x, out=out, dtype=sig.result.dtype)


@op(float_unary, loose=math.log2, freedom=ulp(1, 2), tileir="log2", error_bound=monotone(np.log2, least=0))
def log2(x, /, *, sig, out=None):
    """Base-2 logarithm of each element.

    [UN-4.log2.zero]  log2(0) == log2(-0.0) == -inf
    [UN-4.log2.negative]  log2(x) is NaN for x < 0
    [UN-4.log2.inf]  log2(inf) == inf
    [UN-4.log2.one]  log2(1) is +0
    [LOOSE-5.log2]  a constant of 0 or less: TileValueError
    """
    return wide(np.log2, x, out=out, dtype=sig.result.dtype)


@op(float_unary, loose=math.sin, freedom=ulp(2, 2, exact_at_zero=True), tileir="sin", error_bound=of_wave)
def sin(x, /, *, sig, out=None):
    """Sine of each element, in radians.

    [UN-4.sin.inf]  sin(inf) is NaN
    [UN-4.sin.zero]  sin(-0.0) is -0.0
    [LOOSE-5.sin]  an infinite constant: TileValueError
    """
    return wide(np.sin, x, out=out, dtype=sig.result.dtype)


@op(float_unary, loose=math.cos, freedom=ulp(2, 2), tileir="cos", error_bound=of_wave)
def cos(x, /, *, sig, out=None):
    """Cosine of each element, in radians.

    [UN-4.cos.inf]  cos(inf) is NaN
    [UN-4.cos.zero]  cos(0) == 1
    [LOOSE-5.cos]  an infinite constant: TileValueError
    """
    return wide(np.cos, x, out=out, dtype=sig.result.dtype)


@op(float_unary, loose=math.tan, freedom=ulp(3, 2, exact_at_zero=True), tileir="tan", error_bound=of_tan)
def tan(x, /, *, sig, out=None):
    """Tangent of each element, in radians.

    [UN-4.tan.inf]  tan(inf) is NaN
    [UN-4.tan.zero]  tan(-0.0) is -0.0
    [LOOSE-5.tan]  an infinite constant: TileValueError
    """
    return wide(np.tan, x, out=out, dtype=sig.result.dtype)


@op(float_unary, loose=math.sinh, freedom=ulp(3, 2, exact_at_zero=True), tileir="sinh", error_bound=monotone(np.sinh))
def sinh(x, /, *, sig, out=None):
    """Hyperbolic sine of each element.

    [UN-4.sinh.inf]  sinh(inf) == inf and sinh(-inf) == -inf
    [UN-4.sinh.zero]  sinh(-0.0) is -0.0
    [LOOSE-5.sinh]  a constant whose result is beyond double precision: TileValueError
    """
    if info(sig.result.dtype).carrier == np.float64:  # NumPy's is not exact enough
        return _hyperbolic.sinh(x, out)
    return wide(np.sinh, x, out=out, dtype=sig.result.dtype)


@op(float_unary, loose=math.cosh, freedom=ulp(3, 2), tileir="cosh", error_bound=of_cosh)
def cosh(x, /, *, sig, out=None):
    """Hyperbolic cosine of each element.

    [UN-4.cosh.inf]  cosh(inf) == cosh(-inf) == inf
    [UN-4.cosh.zero]  cosh(0) == 1
    [LOOSE-5.cosh]  a constant whose result is beyond double precision: TileValueError
    """
    return wide(np.cosh, x, out=out, dtype=sig.result.dtype)


@op(float_unary, loose=math.tanh, tileir="tanh", modes=(FULL, APPROX),
    freedom=(ulp(2, 2, exact_at_zero=True), when(APPROX, ulp(129, exact_at_zero=True))), error_bound=monotone(np.tanh))
def tanh(x, /, *, rounding_mode=None, sig, out=None):
    """Hyperbolic tangent of each element.

    [UN-4.tanh.inf]  tanh(inf) == 1 and tanh(-inf) == -1
    [UN-4.tanh.zero]  tanh(-0.0) is -0.0
    """
    if info(sig.result.dtype).carrier == np.float64:  # NumPy's is not exact enough
        return _hyperbolic.tanh(x, out)
    return wide(np.tanh, x, out=out, dtype=sig.result.dtype)


@op(float_unary, loose=math.sqrt, tileir="sqrt", modes=(*IEEE_MODES, APPROX),
    freedom=when(APPROX, ulp(1, exact_at_zero=True)), error_bound=monotone(np.sqrt, least=0))
def sqrt(x, /, *, rounding_mode=None, flush_to_zero=False, sig, out=None):
    """Square root of each element.

    [UN-4.sqrt.nearest]  correctly rounded, to nearest, ties to even
    [RM-1.none]  operations other than add, sub, mul, truediv, sqrt, exp, tanh have no rounding_mode: TileTypeError
    [UN-4.sqrt.negative]  sqrt(x) is NaN for x < 0
    [UN-4.sqrt.zero]  sqrt(-0.0) is -0.0
    [UN-4.sqrt.inf]  sqrt(inf) == inf
    [LOOSE-5.sqrt]  a negative constant: TileValueError
    [RM-2.sqrt]  APPROX with a result other than float32: TileTypeError
    [FTZ-1.sqrt]  flush_to_zero makes subnormal inputs zeros
    """
    if flush_to_zero:
        x = _numeric.flush(x)  # no root of a normal number is subnormal
    if rounding_mode in (None, RN, APPROX):
        return np.sqrt(x, out)
    return _numeric.directed("sqrt", rounding_mode, sig.result.dtype, x)


@op(float_unary, loose=_loose_rsqrt, freedom=ulp(2), tileir="rsqrt",
    error_bound=monotone(lambda x: 1 / np.sqrt(x), least=np.nextafter(0, 1)))
def rsqrt(x, /, *, flush_to_zero=False, sig):
    """1 / sqrt of each element.

    [UN-4.rsqrt.zero]  rsqrt(0) == inf
    [UN-4.rsqrt.nzero]  rsqrt(-0.0) == -inf
    [UN-4.rsqrt.negative]  rsqrt(x) is NaN for x < 0
    [UN-4.rsqrt.inf]  rsqrt(inf) == +0
    [LOOSE-5.rsqrt]  a constant zero: TileValueError
    [FTZ-1.rsqrt]  flush_to_zero makes subnormal inputs zeros, so that their result is infinite
    """
    x = _numeric.flush(x) if flush_to_zero else x
    if x.dtype == np.float64:
        return _numeric.rsqrt(x)
    return wide(_numeric.inverse_root, x, dtype=sig.result.dtype)


@op(to_integral_rule, loose=math.floor, exact=True, tileir="floor", error_bound=monotone(np.floor))
def floor(x, /):
    """The largest integral value that is not greater, for each element.

    [UN-2.floor.value]  the largest integer that is not greater, exactly
    [LOOSE-5.floor]  a loose constant gives an integer: floor(2.5) == 2
    """
    return np.floor(x)


@op(to_integral_rule, loose=math.ceil, exact=True, tileir="ceil", error_bound=monotone(np.ceil))
def ceil(x, /):
    """The smallest integral value that is not less, for each element.

    [UN-2.ceil.value]  the smallest integer that is not less, exactly
    [UN-2.ceil.nzero]  between -1 and 0 the result is -0.0
    [LOOSE-5.ceil]  a loose constant gives an integer: ceil(2.5) == 3
    """
    return np.ceil(x)


@op(isnan_rule, loose=math.isnan, exact=True, error_bound=of_nan_test)
def isnan(x, /, *, out=None):
    """Whether each element is NaN.

    [UN-3.isnan]  the result is bool_: True for NaN, False for everything else
    [UN-3.isnan.restricted]  a restricted float: TileTypeError
    [UN-3.isnan.strict]  a strict float constant: a constant
    [UN-3.isnan.int]  an integer or bool_ tile, or a strict integer constant: TileTypeError
    [UN-3.isnan.loose]  a loose integer constant: False
    """
    return np.isnan(x, out=out)


@op(float_binary, loose=math.atan2, freedom=ulp(2),
    error_bound=monotone_in_each(np.arctan2, lambda y, x, ey, ex: (x - ex > 0) | (np.abs(y) > ey)))
def atan2(x1, x2, /):
    """The angle, in radians, of the point with ordinate x1 and abscissa x2.

    [ARITH-11.dtype]  the operands promote and broadcast
    [ARITH-11.int]  operands that meet in an integer dtype: TileTypeError
    [ARITH-11.range]  results lie in [-pi, pi]
    [ARITH-11.error]  within 2 ulp in float32, 1 in float16, bfloat16 and float64
    [ARITH-11.const]  constants fold
    [ARITH-11.restricted]  a restricted float: TileTypeError
    [ARITH-11.zero]  atan2(0, -1) is pi and atan2(-0.0, -1) is -pi
    [ARITH-11.inf]  atan2(inf, -inf) is 3 pi / 4
    [ARITH-11.nan]  NaN if either operand is NaN
    """
    return wide(np.arctan2, x1, x2)


@op(pow_rule, loose=_loose_pow, freedom=ulp(1), tileir="pow",
    error_bound=monotone_in_each(np.power, lambda x, y, ex, ey: x - ex > 0))
def pow(x, y, /, *, sig):
    """x to the power of y, element by element: `x ** y`.

    [POW-1.choice]  a float to the power of an integer of at most 32 bits: repeated multiplication, in the dtype of x
    [POW-1.operator]  the operator equals the function
    [POW-1.literal]  an integer literal that fits int32 counts as such an exponent
    [POW-2.dtype]  otherwise the operands promote to a common dtype
    [POW-2.error]  within 1 ulp of the exact value
    [POW-2.wide]  an exponent of int64, uint32 or uint64 is promoted
    [POW-2.restricted]  a restricted float: TileTypeError
    [POW-2.inf]  infinities as in C: inf ** y and x ** inf are 0, 1 or inf by magnitude and sign
    [POW-2.zero]  x ** 0.0 == 1 for every x, NaN included
    [POW-2.one]  1.0 ** y == 1 for every y, NaN included
    [POW-2.negative]  NaN for x < 0 and a y that is finite and not integral
    [POW-2.pole]  0.0 ** y == inf for y < 0
    [POW-3.wrap]  integer ** integer wraps modulo 2**width
    [POW-3.zero]  integer ** 0 is 1
    [POW-3.negative]  a negative exponent gives the truncated quotient: 0 unless x is 1 or -1; 0 for x == 0
    [POW-3.bool]  two bool_ operands: TileTypeError
    [POW-3.loose]  literals follow Python: 2 ** -1 == 0.5
    [POW-3.complex]  a negative literal to a fractional power: TileTypeError
    [POW-3.pole]  a literal 0 to a negative power: TileValueError
    [POW-3.strict]  strict integer constants truncate: ct.int32(2) ** -1 == 0
    """
    if info(sig.result.dtype).floating:
        return _numeric.float_pow(x, y)
    return _numeric.int_pow(x, y)


@op(integer_power_rule, exact=True, public=False)
def powi(x, n, /, *, sig):
    """x to the power of an integer n of at most 32 bits: what pow builds for float bases. A scalar n stays a scalar.

    [POW-1.square]  x ** 2 is x * x, rounded once
    [POW-1.zero]  x ** 0 == 1 for every x, NaN included
    [POW-1.steps]  |n| is taken from its lowest bit: each step squares x, and multiplies it to the result where the bit
        is set, each product rounded
    [POW-1.wide]  the steps for float16 and bfloat16 are those of float32, and only the result is rounded to the dtype
    [POW-1.negative]  for n < 0 the result is 1 / x ** |n|, that quotient rounded
    [POW-1.overflow]  so where x ** |n| overflows the result for -|n| is 0
    [POW-1.nofold]  constants give a run-time value
    """
    n = np.asarray(n)
    rank = sig.result.ndim
    if sig.operands[1].ndim < rank:
        n = n.reshape(n.shape + (1,) * rank)
    return _numeric.pow_by_squaring(np.asarray(x), n, sig.result.dtype)
