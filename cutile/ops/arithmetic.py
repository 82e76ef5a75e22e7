"""Elementwise arithmetic: the operators + - * / // % and functions like them [ARITH-*].

Both operands meet in one dtype and shape. Floats round once, integers wrap. `tileir=(integer, float)` names the
operations of Tile IR.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable

import numpy as np

from cutile.dtypes import DType, bool_, float32, float64, info, int32, int_range
from cutile.errors import TileValueError
from cutile.ir.build import Builder
from cutile.ir.terms import Const, Leaf, Term, Tuple
from cutile.ops import _numeric
from cutile.ops._arguments import const_bool, invalid, refuse, tile_arg
from cutile.ops._constants import encode, fold, is_const
from cutile.ops._error_bounds import of_fma, of_larger, of_product, of_quotient, of_sign, of_sum
from cutile.ops._fma64 import fma64_directed
from cutile.ops._freedom import any_, ulp, when
from cutile.ops._op import Sig, made_elsewhere, op, typing_rule
from cutile.ops._options import (
    APPROX,
    FLUSHING,
    FULL,
    IEEE_CLAUSES,
    IEEE_MODES,
    OTHER_MODES,
    RN,
    check_flush,
    float_options,
    flush_arg,
    rounding_arg,
)
from cutile.ops._promotion import cast, common_dtype, meet, value_of
from cutile.types import RoundingMode

# ------------------------------------------------------------------ typing rules

_NOT_BOTH_BOOL = """
[ARITH-15.{name}]  two bool_ operands: TileTypeError
"""


def arithmetic_arg(op, name: str, t: Term, side: str = "operand") -> Const | Leaf:
    """A tile or scalar of an arithmetic dtype [DT-4, DT-5]."""
    t = tile_arg(op, name, t)
    d = t.type.dtype
    if not info(d).arithmetic:
        hint = "convert it first, for example with .astype(ct.float32)" if info(d).restricted else None
        invalid(op, name, f"{side} has non-arithmetic dtype {d.name}", help=hint)
    return t


def operand_pair(op, x: Term, y: Term) -> tuple[Const | Leaf, Const | Leaf]:
    return arithmetic_arg(op, "x", x, "Left-hand side"), arithmetic_arg(op, "y", y, "Right-hand side")


def not_both_bool(op, dtype: DType) -> None:
    if dtype is bool_:
        refuse(f"{op.name}() is not defined for two bool_ operands",
               help=_INSTEAD_OF_BOOL.get(op, "convert one side: a.astype(ct.int32)"))


def fold_pair(op, x: Const, y: Const, dtype: DType | None, **attrs) -> Const:
    """Fold two constants; a zero divisor has no value as a constant [LOOSE-5, D-24]."""
    if dtype is not None and op.divides and encode(y.value, dtype) == 0:
        refuse(f"division by zero in a constant {op.name}", cls=TileValueError)
    return fold(op, [x, y], dtype, **attrs)


def both_loose(x: Term, y: Term) -> bool:
    return is_const(x, y) and x.loose and y.loose


@typing_rule(elementwise=True, divides=True, clauses=_NOT_BOTH_BOOL)
def division_rule(b: Builder, op, x: Term, y: Term) -> Term:
    """Rule of quotients and remainders without options."""
    return _pair(b, op, x, y, {}, lambda dtype: None)


@typing_rule(elementwise=True, modes=IEEE_MODES, clauses=f"""
{_NOT_BOTH_BOOL}{IEEE_CLAUSES}{OTHER_MODES}
[RM-2.{{name}}.int]  a rounding mode with an integer result: TileTypeError
[RM-2.{{name}}.const]  between constants the options do not count: they fold as without
{FLUSHING}""")
def rounded_rule(b: Builder, op, x: Term, y: Term, rounding_mode: Term, flush_to_zero: Term) -> Term:
    """Rule of ops of two operands with a rounding mode and flush_to_zero."""
    mode, flush = rounding_arg(op, rounding_mode), flush_arg(op, flush_to_zero)
    attrs = {"rounding_mode": None if mode is RN else mode, "flush_to_zero": flush}
    return _pair(b, op, x, y, attrs, lambda dtype: float_options(op, dtype, mode, flush))


@typing_rule(elementwise=True, clauses=f"""
[ARITH-9.{{short}}.dtype]  the result has the promoted dtype and the broadcast shape
[ARITH-9.{{short}}.builtin]  the built-in {{short}}(x, y) is the same
[ARITH-9.{{short}}.restricted]  a restricted float: TileTypeError
[ARITH-9.{{short}}.int]  integers compare by their signedness
[ARITH-9.{{short}}.nan]  where one operand is NaN the result is the other; where both are, NaN
[ARITH-9.{{short}}.propagate]  with propagate_nan=True a NaN in either gives NaN
{_NOT_BOTH_BOOL}
[FTZ-1.{{name}}]  flush_to_zero makes subnormal inputs zeros of their sign
{FLUSHING}
[FTZ-1.{{name}}.const]  between constants the options do not count: they fold as without
""")
def extremum_rule(b: Builder, op, x: Term, y: Term, flush_to_zero: Term, propagate_nan: Term) -> Term:
    """Rule of ops that pick one of two operands, with flush_to_zero and propagate_nan."""
    flush, propagate = flush_arg(op, flush_to_zero), const_bool(op, "propagate_nan", propagate_nan)
    attrs = {"flush_to_zero": flush, "propagate_nan": propagate}
    return _pair(b, op, x, y, attrs, lambda dtype: check_flush(op, flush, dtype))


def _pair(b: Builder, op, x: Term, y: Term, attrs: dict, check: Callable[[DType], None]) -> Term:
    x, y = operand_pair(op, x, y)
    if both_loose(x, y):
        return fold_pair(op, x, y, None)
    dtype = common_dtype(x, y, what=f"{op.name}()")
    not_both_bool(op, dtype)
    if is_const(x, y):
        return fold_pair(op, x, y, dtype, **_defaults(attrs))
    check(dtype)
    values, result = meet(b, dtype, f"{op.name}()", x, y)
    return Leaf(b.op1(op, *values, result=result, **attrs))


def _defaults(attrs: dict) -> dict:
    """The options as if none were given: folding ignores them [GEN-7]."""
    return {name: None if name == "rounding_mode" else False for name in attrs}


@typing_rule(elementwise=True, divides=True, modes=(*IEEE_MODES, FULL, APPROX), clauses=IEEE_CLAUSES + FLUSHING)
def truediv_rule(b: Builder, op, x: Term, y: Term, rounding_mode: Term, flush_to_zero: Term) -> Term:
    """Rule of truediv: the result is a float [PROMO-6]."""
    mode, flush = rounding_arg(op, rounding_mode), flush_arg(op, flush_to_zero)
    x, y = operand_pair(op, x, y)
    if both_loose(x, y):
        return fold_pair(op, x, y, None)
    dtype = common_dtype(x, y, check_range=False, what="truediv()")
    dtype = dtype if info(dtype).floating else float32
    if is_const(x, y):
        return fold_pair(op, x, y, dtype, rounding_mode=None, flush_to_zero=False)
    float_options(op, dtype, mode, flush)
    values, result = meet(b, dtype, "truediv()", x, y)
    return Leaf(b.op1(op, *values, result=result, rounding_mode=None if mode is RN else mode, flush_to_zero=flush))


@typing_rule(elementwise=True, divides=True, clauses=_NOT_BOTH_BOOL)
def divmod_rule(b: Builder, op, x: Term, y: Term) -> Term:
    """Rule of divmod."""
    x, y = operand_pair(op, x, y)
    dtype = None if both_loose(x, y) else common_dtype(x, y, what="divmod()")
    if dtype is not None:
        not_both_bool(op, dtype)
    if is_const(x, y):
        return Tuple((fold_pair(floordiv, x, y, dtype), fold_pair(mod, x, y, dtype)))
    if info(dtype).floating:
        refuse(f"divmod() is for integers only, but the operands meet in {dtype.name}",
               help="write x // y and x % y")
    values, result = meet(b, dtype, "divmod()", x, y)
    return Tuple(tuple(map(Leaf, b.op(op, *values, results=(result, result)))))


@typing_rule(elementwise=True)
def negative_rule(b: Builder, op, x: Term) -> Term:
    """Rule of negative: bool becomes int32 first."""
    x = arithmetic_arg(op, "x", x)
    if is_const(x) and x.loose:
        return fold(op, [x])
    x = _without_bool(b, x)
    if is_const(x):
        return fold(op, [x], x.dtype)
    return Leaf(b.op1(op, value_of(b, x), result=x.type))


@typing_rule(elementwise=True)
def positive_rule(b: Builder, op, x: Term) -> Term:
    """Rule of unary plus, which at most converts a mask."""
    x = arithmetic_arg(op, "x", x)
    return fold(op, [x]) if is_const(x) and x.loose else _without_bool(b, x)


def _without_bool(b: Builder, x: Const | Leaf) -> Const | Leaf:
    return cast(b, x, int32) if x.type.dtype is bool_ else x


@typing_rule(elementwise=True)
def abs_rule(b: Builder, op, x: Term) -> Term:
    """Rule of abs: unsigned integers and masks come back as they are."""
    x = arithmetic_arg(op, "x", x)
    dtype = x.type.dtype
    if is_const(x):
        return fold(op, [x], None if x.loose else dtype)
    if info(dtype).kind in "bu":
        return x
    return Leaf(b.op1(op, x.value, result=x.type))


# ------------------------------------------------------------------ meanings


def _rounded(name: str, plain: Callable, x, y, mode: RoundingMode | None, flush: bool, sig: Sig, out):
    """plain(x, y), rounded to nearest by the framework, or here in another direction; flushed if `flush`."""
    if flush:
        x, y = _numeric.flush(x), _numeric.flush(y)
    if mode is None or mode in (RN, FULL, APPROX):
        z = plain(x, y, out)
    else:
        z = _numeric.directed(name, mode, sig.result.dtype, x, y)
    return _numeric.flush(z) if flush else z


@op(rounded_rule, loose=operator.add, tileir=("addi", "addf"), error_bound=of_sum)
def add(x, y, /, *, rounding_mode=None, flush_to_zero=False, sig, out=None):
    """Sum of two tiles, element by element: `x + y`.

    [ARITH-1.dtype]  the result has the promoted dtype and the broadcast shape
    [ARITH-1.restricted]  a restricted float: TileTypeError
    [ARITH-1.operator]  the operator equals the function
    [ARITH-1.int]  integers wrap modulo 2**width
    [ARITH-1.float]  floats round to nearest, ties to even
    [FTZ-1.add]  flush_to_zero makes subnormal inputs and results zeros of their sign
    """
    return _rounded("add", np.add, x, y, rounding_mode, flush_to_zero, sig, out)


@op(rounded_rule, loose=operator.sub, tileir=("subi", "subf"), error_bound=of_sum)
def sub(x, y, /, *, rounding_mode=None, flush_to_zero=False, sig, out=None):
    """Difference of two tiles, element by element: `x - y`.

    [ARITH-2.dtype]  the result has the promoted dtype and the broadcast shape
    [ARITH-2.restricted]  a restricted float: TileTypeError
    [ARITH-2.operator]  the operator equals the function
    [ARITH-2.int]  integers wrap modulo 2**width
    [ARITH-2.float]  floats round to nearest, ties to even
    [FTZ-1.sub]  flush_to_zero makes subnormal inputs and results zeros of their sign
    """
    return _rounded("sub", np.subtract, x, y, rounding_mode, flush_to_zero, sig, out)


@op(rounded_rule, loose=operator.mul, tileir=("muli", "mulf"), error_bound=of_product,
    absorbing=lambda d: 0 if info(d).integral else None)
def mul(x, y, /, *, rounding_mode=None, flush_to_zero=False, sig, out=None):
    """Product of two tiles, element by element: `x * y`.

    A float product that one sum or difference uses, and nothing else, is fused with it [MACH-7]: only the sum is
    rounded. A `print` or an `assert_` of the product is a use too.

    [ARITH-3.dtype]  the result has the promoted dtype and the broadcast shape
    [ARITH-3.restricted]  a restricted float: TileTypeError
    [ARITH-3.operator]  the operator equals the function
    [ARITH-3.int]  integers wrap modulo 2**width
    [ARITH-3.float]  floats round to nearest, ties to even
    [ARITH-3.mask]  a bool_ tile times a number counts as 0 or 1
    [FTZ-1.mul]  flush_to_zero makes subnormal inputs and results zeros of their sign
    """
    return _rounded("mul", np.multiply, x, y, rounding_mode, flush_to_zero, sig, out)


@op(truediv_rule, loose=operator.truediv, tileir="divf",
    freedom=(when(FULL, ulp(2)), when(APPROX, ulp(2), any_("a divisor beyond 2**126"))), error_bound=of_quotient)
def truediv(x, y, /, *, rounding_mode=None, flush_to_zero=False, sig, out=None):
    """Quotient of two tiles, element by element: `x / y`.

    [ARITH-4.dtype]  the result is a float: the promoted dtype if it is one, float32 otherwise
    [ARITH-4.restricted]  a restricted float: TileTypeError
    [ARITH-4.operator]  the operator equals the function
    [ARITH-4.int]  integers are converted to the float dtype before they are divided
    [ARITH-4.float]  the quotient rounds to nearest, ties to even
    [ARITH-4.zero]  at run time x / 0 is an infinity with the product of the signs
    [ARITH-4.zeros]  at run time 0 / 0 is NaN
    [ARITH-4.const]  a constant divided by a constant zero: TileValueError
    [ARITH-15.truediv]  two bool_ operands give float32
    [RM-1.truediv.FULL]  FULL: within 2 ulp over the whole range
    [RM-1.truediv.APPROX]  APPROX: within 2 ulp where the divisor is at most 2**126 in magnitude
    [RM-1.truediv.other]  RA and RZI: TileTypeError
    [RM-2.truediv.FULL]  FULL with a result other than float32: TileTypeError
    [RM-2.truediv.APPROX]  APPROX with a result other than float32: TileTypeError
    [RM-2.truediv.const]  between constants the options do not count: they fold as without
    [FTZ-1.truediv]  flush_to_zero makes subnormal inputs and results zeros of their sign
    """
    return _rounded("truediv", np.divide, x, y, rounding_mode, flush_to_zero, sig, out)


@op(division_rule, loose=operator.floordiv, freedom=any_("integers, y == 0"))
def floordiv(x, y, /, *, sig):
    """Quotient rounded toward minus infinity: `x // y`.

    [ARITH-5.dtype]  the result has the promoted dtype and the broadcast shape
    [ARITH-5.restricted]  a restricted float: TileTypeError
    [ARITH-5.operator]  the operator equals the function
    [ARITH-5.signed]  signed integers: the floor of the exact quotient
    [ARITH-5.unsigned]  unsigned integers: the floor of the exact quotient
    [ARITH-5.wrap]  the smallest integer // -1 wraps to itself
    [ARITH-5.zero]  an integer // 0 is undefined: any value
    [ARITH-5.zero.measured]  as measured, -1 for x >= 0 and -2 for x < 0; all ones if unsigned
    [ARITH-5.float]  floats: the floor of the rounded quotient, so x // 0.0 is what x / 0.0 is
    [ARITH-5.const]  a constant // a constant zero: TileValueError
    """
    dtype = sig.result.dtype
    return _numeric.float_floordiv(x, y, dtype) if info(dtype).floating else _numeric.floordiv(x, y)


@op(division_rule, loose=operator.mod, freedom=any_("integers, y == 0"))
def mod(x, y, /, *, sig):
    """Remainder with the sign of the divisor: `x % y`.

    [ARITH-7.dtype]  the result has the promoted dtype and the broadcast shape
    [ARITH-7.restricted]  a restricted float: TileTypeError
    [ARITH-7.operator]  the operator equals the function
    [ARITH-7.signed]  signed integers: x - (x // y) * y, which has the sign of y
    [ARITH-7.unsigned]  unsigned integers: the remainder of the exact quotient
    [ARITH-7.zero]  an integer % 0 is undefined: any value
    [ARITH-7.zero.measured]  as measured, -1; all ones if unsigned
    [ARITH-7.float]  floats: the remainder of truncated division; if it is not zero and its sign differs from y's, y is
        added, rounded once
    [ARITH-7.float.zero]  x % 0.0 is NaN
    [ARITH-7.float.inf]  inf % y is NaN
    [ARITH-7.float.mod_inf]  x % inf is x, or inf where the signs differ
    [ARITH-7.const]  a constant % a constant zero: TileValueError
    """
    dtype = sig.result.dtype
    return _numeric.float_mod(x, y) if info(dtype).floating else _numeric.mod(x, y)


def _cdiv(x, y):
    """cdiv of Python numbers: on the host, and of loose constants."""
    return -(-x // y)


@op(division_rule, loose=_cdiv, host=_cdiv, freedom=any_("integers, y == 0"))
def cdiv(x, y, /, *, sig):
    """Quotient rounded toward plus infinity. On the host, plain Python: `-(-x // y)`.

    [ARITH-6.dtype]  the result has the promoted dtype and the broadcast shape
    [ARITH-6.restricted]  a restricted float: TileTypeError
    [ARITH-6.signed]  signed integers: the ceiling of the exact quotient
    [ARITH-6.unsigned]  unsigned integers: the ceiling of the exact quotient
    [ARITH-6.zero]  an integer divisor of 0 is undefined: any value
    [ARITH-6.zero.measured]  as measured, one more than x // 0 gives, 0 or -1
    [ARITH-6.float]  floats: the ceiling of the rounded quotient
    [ARITH-6.const]  a constant divided by a constant zero: TileValueError
    [ARITH-6.host]  on the host it divides Python numbers
    """
    dtype = sig.result.dtype
    if info(dtype).floating:
        return np.ceil(_numeric.round_to(dtype, np.divide(x, y)))
    return _numeric.cdiv(x, y)


@op(divmod_rule, freedom=any_("y == 0"))
def divmod(x, y, /):
    """The pair (x // y, x % y) of integers.

    [ARITH-8.pair]  the result is a tuple of the two, each of the promoted dtype and the broadcast shape
    [ARITH-8.signed]  the quotient rounds down and the remainder has the sign of y, so q * y + r == x
    [ARITH-8.unsigned]  unsigned integers: the exact quotient and remainder
    [ARITH-8.builtin]  the built-in divmod(x, y) is the same
    [ARITH-8.restricted]  a restricted float: TileTypeError
    [ARITH-8.float]  run-time floats: TileTypeError
    [ARITH-8.const]  constants fold, floats included
    [ARITH-8.const.zero]  a constant divided by a constant zero: TileValueError
    """
    return _numeric.floordiv(x, y), _numeric.mod(x, y)


def _chosen(choose: Callable, x, y, flush: bool, propagate_nan: bool, out):
    if flush:
        x, y = _numeric.flush(x), _numeric.flush(y)
    return choose(x, y, propagate_nan, out)


@op(extremum_rule, short="min", loose=builtins.min, exact=True, tileir=("mini", "minf"), error_bound=of_larger,
    absorbing=lambda d: int_range(d)[0] if info(d).integral else None)
def minimum(x, y, /, *, flush_to_zero=False, propagate_nan=False, out=None):
    """The smaller of two tiles, element by element; `min(x, y)` in tile code.

    [ARITH-9.min.float]  floats: the smaller, infinities included
    [ARITH-9.min.zero]  minimum(0.0, -0.0) and minimum(-0.0, 0.0) are -0.0
    """
    return _chosen(_numeric.minimum, x, y, flush_to_zero, propagate_nan, out)


@op(extremum_rule, short="max", loose=builtins.max, exact=True, tileir=("maxi", "maxf"), error_bound=of_larger,
    absorbing=lambda d: int_range(d)[1] if info(d).integral else None)
def maximum(x, y, /, *, flush_to_zero=False, propagate_nan=False, out=None):
    """The greater of two tiles, element by element; `max(x, y)` in tile code.

    [ARITH-9.max.float]  floats: the greater, infinities included
    [ARITH-9.max.zero]  maximum(0.0, -0.0) and maximum(-0.0, 0.0) are +0.0
    """
    return _chosen(_numeric.maximum, x, y, flush_to_zero, propagate_nan, out)


@op(negative_rule, loose=operator.neg, exact=True, tileir=("negi", "negf"), error_bound=of_sign)
def negative(x, /, *, out=None):
    """`-x`.

    [ARITH-12.bool]  a bool_ tile becomes int32 first
    [ARITH-12.int]  integers wrap: the smallest signed integer stays, unsigned ones are taken modulo 2**width
    [ARITH-12.float]  floats flip their sign, that of zeros too; NaN stays NaN, of either sign
    [ARITH-12.restricted]  a restricted float: TileTypeError
    [ARITH-12.const]  constants stay constant: a literal is Python's, a strict one wraps in its dtype
    """
    return np.negative(x, out=out)


@op(positive_rule, loose=operator.pos, exact=True, public=False, error_bound=of_sign)
def positive(x, /):
    """`+x`.

    [ARITH-13.bool]  a bool_ tile becomes int32
    [ARITH-13.other]  anything else stays as it is
    [ARITH-13.restricted]  a restricted float: TileTypeError
    [ARITH-13.const]  constants stay constant
    """
    return x


@op(abs_rule, loose=builtins.abs, exact=True, tileir=("absi", "absf"), error_bound=of_sign)
def abs(x, /, *, out=None):
    """Absolute value; `abs(x)` in tile code.

    [ARITH-14.dtype]  the dtype stays, bool_ included
    [ARITH-14.signed]  signed integers wrap: the smallest one stays
    [ARITH-14.unsigned]  unsigned integers come back as they are
    [ARITH-14.float]  floats lose their sign, zeros and infinities included
    [ARITH-14.builtin]  the built-in abs(x) is the same
    [ARITH-14.restricted]  a restricted float: TileTypeError
    [ARITH-14.const]  constants stay constant: a literal is Python's, a strict one wraps in its dtype
    """
    return np.abs(x, out=out)


@op(made_elsewhere, elementwise=True, public=False, tileir="fma", error_bound=of_fma)
def fma(x, y, z, /, *, rounding_mode=None, flush_to_zero=False, sig, out=None):
    """x * y + z rounded once; formed by the fma pass.

    [MACH-7.once]  the exact product and sum are rounded once
    """
    if flush_to_zero:
        x, y, z = map(_numeric.flush, (x, y, z))
    dtype = sig.result.dtype
    if rounding_mode is None:
        w = _numeric.fma(x, y, z, dtype, out)
    elif dtype is float64:
        w = fma64_directed(rounding_mode, x, y, z)
    else:  # float64 holds the product exactly
        w = _numeric.directed("add", rounding_mode, dtype, _numeric.wide(np.multiply, x, y), z)
    return _numeric.flush(w) if flush_to_zero else w


_INSTEAD_OF_BOOL = {  # what to write where both operands are masks [ARITH-15]
    add: "a | b joins two masks; to count, convert first: a.astype(ct.int32) + b",
    sub: "a ^ b, or a & ~b; to subtract numbers, convert first: a.astype(ct.int32) - b",
    mul: "a & b joins two masks; to keep x where a mask holds, ct.where(mask, x, 0); "
           "to multiply numbers, a.astype(ct.int32) * b",
    minimum: "a & b", maximum: "a | b",
}
