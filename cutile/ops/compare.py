"""Comparisons, and what counts as true [CMP-*, COND-*]."""

from __future__ import annotations

import operator

import numpy as np

from cutile.dtypes import bool_, info
from cutile.ir.build import Builder
from cutile.ir.terms import Const, Leaf, Term
from cutile.ops._arguments import invalid, tile_arg
from cutile.ops._constants import fold, is_const
from cutile.ops._error_bounds import of_comparison
from cutile.ops._op import OpDef, op, typing_rule
from cutile.ops._promotion import cast, common_dtype, meet

# ------------------------------------------------------------------ typing rules


@typing_rule(elementwise=True, clauses="""
[CMP-1.{short}]  the operands promote and broadcast; the result is bool_
[CMP-1.{short}.operator]  the operator equals the function
[CMP-1.{short}.const]  constants compare at compile time
[CMP-3.{short}.restricted]  restricted floats: TileTypeError
[CMP-3.{short}.range]  an integer tile against a literal beyond its range: TileValueError
[CMP-3.{short}.float]  an integer tile against a float literal compares in float32
""")
def comparison_rule(b: Builder, op, x: Term, y: Term) -> Term:
    """Rule of the comparisons: operands promote and broadcast, the result is bool_ [CMP-1]."""
    x, y = _ordered_arg(op, "x", x), _ordered_arg(op, "y", y)
    if is_const(x, y) and x.loose and y.loose:
        return fold(op, [x, y])
    dtype = common_dtype(x, y, what=f"{op.name}()")
    if is_const(x, y):
        return fold(op, [x, y], bool_, in_dtype=dtype)
    values, result = meet(b, dtype, f"{op.name}()", x, y)
    return Leaf(b.op1(op, *values, result=result.with_dtype(bool_)))


def _ordered_arg(op, name: str, t: Term) -> Const | Leaf:
    t = tile_arg(op, name, t)
    d = t.type.dtype
    if not info(d).arithmetic:
        hint = "convert it first, for example with .astype(ct.float32)" if info(d).restricted else None
        invalid(op, name, f"{d.name} values cannot be compared", help=hint)
    return t


def as_bool(b: Builder, term: Term, *, op: OpDef | str = "bool", name: str = "x") -> Const | Leaf:
    """A tile as bool_: non-zero is true, NaN too, -0.0 is not [COND-1]. Constants stay constant, loose or strict."""
    t = tile_arg(op, name, term)
    if info(t.type.dtype).kind == "p":
        invalid(op, name, f"a {t.type.dtype.name} has no truth value")
    if isinstance(t, Const):
        return Const(bool(t.value), bool_, t.loose)
    return cast(b, t, bool_)


@typing_rule(elementwise=True)
def logical_not_rule(b: Builder, op, x: Term) -> Term:
    """Rule of `not x` [COND-3]."""
    t = as_bool(b, x, op="not", name="x")
    if isinstance(t, Const):
        return Const(not t.value, bool_, t.loose)
    return Leaf(b.op1(op, t.value, result=t.type))


# ------------------------------------------------------------------ meanings


@op(comparison_rule, short="eq", loose=operator.eq, exact=True, tileir="equal", error_bound=of_comparison)
def equal(x, y, /, *, out=None):
    """`x == y`, element by element.

    [CMP-2.eq.nan]  NaN equals nothing
    [CMP-2.eq.zero]  -0.0 == +0.0
    [CMP-2.eq.int]  integers and bools compare by value
    """
    return np.equal(x, y, out=out)


@op(comparison_rule, short="ne", loose=operator.ne, exact=True, tileir="not_equal", error_bound=of_comparison)
def not_equal(x, y, /, *, out=None):
    """`x != y`, element by element.

    [CMP-2.ne.nan]  NaN differs from everything, itself too
    [CMP-2.ne.zero]  -0.0 does not differ from +0.0
    [CMP-2.ne.int]  integers and bools compare by value
    """
    return np.not_equal(x, y, out=out)


@op(comparison_rule, short="lt", loose=operator.lt, exact=True, tileir="less_than", error_bound=of_comparison)
def less(x, y, /, *, out=None):
    """`x < y`, element by element.

    [CMP-2.lt.nan]  false where an operand is NaN
    [CMP-2.lt.zero]  -0.0 and +0.0 are equal
    [CMP-2.lt.sign]  integers compare by their signedness, False < True
    """
    return np.less(x, y, out=out)


@op(comparison_rule, short="le", loose=operator.le, exact=True, tileir="less_than_or_equal", error_bound=of_comparison)
def less_equal(x, y, /, *, out=None):
    """`x <= y`, element by element.

    [CMP-2.le.nan]  false where an operand is NaN
    [CMP-2.le.zero]  -0.0 and +0.0 are equal
    [CMP-2.le.sign]  integers compare by their signedness, False < True
    """
    return np.less_equal(x, y, out=out)


@op(comparison_rule, short="gt", loose=operator.gt, exact=True, tileir="greater_than", error_bound=of_comparison)
def greater(x, y, /, *, out=None):
    """`x > y`, element by element.

    [CMP-2.gt.nan]  false where an operand is NaN
    [CMP-2.gt.zero]  -0.0 and +0.0 are equal
    [CMP-2.gt.sign]  integers compare by their signedness, False < True
    """
    return np.greater(x, y, out=out)


@op(comparison_rule, short="ge", loose=operator.ge, exact=True, tileir="greater_than_or_equal",
    error_bound=of_comparison)
def greater_equal(x, y, /, *, out=None):
    """`x >= y`, element by element.

    [CMP-2.ge.nan]  false where an operand is NaN
    [CMP-2.ge.zero]  -0.0 and +0.0 are equal
    [CMP-2.ge.sign]  integers compare by their signedness, False < True
    """
    return np.greater_equal(x, y, out=out)


@op(logical_not_rule, exact=True, public=False)
def logical_not(x, /, *, out=None):
    """`not x`, element by element.

    [COND-3.tile]  the result is a bool_ tile of the same shape
    [COND-3.number]  non-zero elements count as true, NaN too
    [COND-3.other]  anything but a numeric tile: TileTypeError
    """
    return np.logical_not(x, out=out)
