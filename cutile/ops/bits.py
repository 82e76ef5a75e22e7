"""Bitwise operations and shifts of integers and masks [BIT-*]."""

from __future__ import annotations

import operator

import numpy as np

from cutile.dtypes import bool_, info, int_range
from cutile.errors import TileValueError
from cutile.ir.build import Builder
from cutile.ir.terms import Const, Leaf, Term, describe
from cutile.ops import _numeric
from cutile.ops._arguments import invalid, refuse, tile_arg
from cutile.ops._constants import fold, is_const
from cutile.ops._freedom import any_
from cutile.ops._op import op, typing_rule
from cutile.ops._promotion import common_dtype, meet

# ------------------------------------------------------------------ typing rules


def _bits_arg(op, name: str, t: Term, *, bool_ok: bool = True) -> Const | Leaf:
    t = tile_arg(op, name, t)
    i = info(t.type.dtype)
    if i.integral or bool_ok and i.kind == "b":
        return t
    hint = None
    if i.floating:
        hint = ("comparisons need parentheses, as in (x > 0) & (x < 1); to work on the bits of a float, x = "
                "ct.bitcast(x, ct.int32) (an integer dtype of the same width) first")
    elif i.kind == "b":
        hint = "convert the mask first: mask.astype(ct.int32)"
    invalid(op, name, f"expected integer{' or bool_' if bool_ok else ''} operands, got {describe(t)}", help=hint)


def _loose(t: Term) -> bool:
    return isinstance(t, Const) and t.loose


@typing_rule(elementwise=True, clauses="""
[BIT-1.{short}.int]  integers: bit by bit
[BIT-1.{short}.float]  a float operand: TileTypeError
[BIT-1.{short}.operator]  the operator equals the function
[BIT-1.{short}.const]  constants fold; literals as in Python
[PROMO-8.{short}]  two tiles of different dtypes: TileTypeError
[PROMO-8.{short}.literal]  a literal takes the dtype of the tile; bool_ with an integer gives an integer
""")
def bitwise_rule(b: Builder, op, x: Term, y: Term) -> Term:
    """Rule of and, or, xor: two tiles must have one dtype, a literal adapts [PROMO-8]."""
    x, y = tile_arg(op, "x", x), tile_arg(op, "y", y)
    if _loose(x) and _loose(y):
        return fold(op, [x, y])
    x, y = _bits_arg(op, "x", x), _bits_arg(op, "y", y)
    dx, dy = x.type.dtype, y.type.dtype
    if dx is not dy and not (_loose(x) or _loose(y)):
        refuse(f"{op.name}() needs operands of the same dtype, got {dx.name} and {dy.name}",
               help=f"convert one side: x.astype(ct.{dy.name}) or y.astype(ct.{dx.name})")
    dtype = common_dtype(x, y, what=f"{op.name}()")
    if is_const(x, y):
        return fold(op, [x, y], dtype)
    values, result = meet(b, dtype, f"{op.name}()", x, y)
    return Leaf(b.op1(op, *values, result=result))


@typing_rule(elementwise=True, clauses="""
[BIT-3.{short}.wide]  an amount of the width or more, taken as unsigned, is undefined: any value
[BIT-3.{short}.int64.measured]  as measured, of a 64-bit amount only the low 32 bits count
[BIT-3.{short}.negative]  a constant negative amount of a signed tile is accepted
[BIT-3.{short}.const]  a negative amount in a constant expression: TileValueError
[BIT-3.{short}.range]  a negative literal as the amount of an unsigned tile: TileValueError
[BIT-3.{short}.strict]  strict constants fold in their common dtype
[BIT-4.{short}.bool]  a bool_ operand: TileTypeError
[BIT-4.{short}.float]  a float operand: TileTypeError
[BIT-4.{short}.operator]  the operator equals the function
[PROMO-9.{short}]  the result has the promoted dtype of both operands
""")
def shift_rule(b: Builder, op, x: Term, y: Term) -> Term:
    """Rule of the shifts: both operands promote together [PROMO-9]."""
    x, y = tile_arg(op, "x", x), tile_arg(op, "y", y)
    if _loose(x) and _loose(y):
        return fold(op, [x, y])
    x, y = _bits_arg(op, "x", x, bool_ok=False), _bits_arg(op, "y", y, bool_ok=False)
    dtype = common_dtype(x, y, what=f"{op.name}()")
    if is_const(x, y):
        if y.value < 0:
            refuse(f"negative shift amount {y.value} in a constant {op.name}", cls=TileValueError)
        return fold(op, [x, y], dtype)
    values, result = meet(b, dtype, f"{op.name}()", x, y)
    return Leaf(b.op1(op, *values, result=result))


@typing_rule(elementwise=True)
def bitwise_not_rule(b: Builder, op, x: Term) -> Term:
    """Rule of bitwise_not."""
    x = _bits_arg(op, "x", x)
    if is_const(x):
        return fold(op, [x], None if x.loose else x.dtype)
    return Leaf(b.op1(op, x.value, result=x.type))


def _loose_not(x):
    return not x if isinstance(x, bool) else ~x


def _loose_lshift(x, y):
    """Python's <<, refused if the result would be too large."""
    if y > 128 and x:
        raise OverflowError
    return x << y


# ------------------------------------------------------------------ meanings


@op(bitwise_rule, short="and", loose=operator.and_, exact=True, tileir="andi", absorbing=lambda d: 0)
def bitwise_and(x, y, /, *, out=None):
    """Bitwise and: `x & y`.

    [BIT-1.and.bool]  bool_ operands: logical and, a bool_ result
    """
    return np.bitwise_and(x, y, out=out)


@op(bitwise_rule, short="or", loose=operator.or_, exact=True, tileir="ori",
    absorbing=lambda d: True if d is bool_ else -1 if info(d).kind == "i" else int_range(d)[1])
def bitwise_or(x, y, /, *, out=None):
    """Bitwise or: `x | y`.

    [BIT-1.or.bool]  bool_ operands: logical or, a bool_ result
    """
    return np.bitwise_or(x, y, out=out)


@op(bitwise_rule, short="xor", loose=operator.xor, exact=True, tileir="xori")
def bitwise_xor(x, y, /, *, out=None):
    """Bitwise exclusive or: `x ^ y`.

    [BIT-1.xor.bool]  bool_ operands: true where they differ, a bool_ result
    """
    return np.bitwise_xor(x, y, out=out)


@op(bitwise_not_rule, loose=_loose_not, exact=True)
def bitwise_not(x, /, *, out=None):
    """Bitwise complement: `~x`.

    [BIT-2.int]  integers: every bit flips
    [BIT-2.operator]  the operator equals the function
    [BIT-2.bool]  bool_ tiles: logical not
    [BIT-2.const]  ct.bitwise_not(True) is False; the operator refuses bool constants, because Python's ~True is -2
    [BIT-2.strict]  a strict constant is complemented in its dtype
    [BIT-2.float]  a float operand: TileTypeError
    """
    return np.invert(x, out=out)


@op(shift_rule, short="left", loose=_loose_lshift, exact=True, tileir="shli",
    freedom=any_("amounts of the width or more, or negative"))
def bitwise_lshift(x, y, /, *, out=None):
    """Shift to the left: `x << y`.

    [BIT-3.left]  bits shifted out are lost
    [BIT-3.left.wide.measured]  as measured, amounts of the width or more give 0
    """
    return _numeric.shift_left(x, y, out)


@op(shift_rule, short="right", loose=operator.rshift, exact=True, tileir="shri",
    freedom=any_("amounts of the width or more, or negative"))
def bitwise_rshift(x, y, /, *, out=None):
    """Shift to the right: `x >> y`.

    [BIT-3.right.signed]  signed integers fill with the sign
    [BIT-3.right.unsigned]  unsigned integers fill with zeros
    [BIT-3.right.wide.measured]  as measured, amounts of the width or more give 0, or -1 for negative integers
    """
    return _numeric.shift_right(x, y, out)
