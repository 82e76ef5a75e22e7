"""Choosing between two tiles [WHERE-*]."""

from __future__ import annotations

from cutile.ir.build import Builder
from cutile.ir.terms import Leaf, Term
from cutile.ops import _numeric
from cutile.ops._arguments import tile_arg
from cutile.ops._error_bounds import of_choice
from cutile.ops._op import op, typing_rule
from cutile.ops._promotion import broadcast, cast, common_dtype, common_shape, value_of
from cutile.ops.compare import as_bool
from cutile.types import tile_type


@typing_rule(elementwise=True, selects=True)
def where_rule(b: Builder, op, cond: Term, x: Term, y: Term) -> Term:
    """Rule of where: x and y promote together, all three broadcast."""
    cond, x, y = tile_arg(op, "cond", cond), tile_arg(op, "x", x), tile_arg(op, "y", y)
    dtype = common_dtype(x, y, what="where()")
    shape = common_shape("where()", cond, x, y)
    cond, x, y = as_bool(b, cond, op=op, name="cond"), cast(b, x, dtype), cast(b, y, dtype)
    values = [value_of(b, broadcast(b, t, shape)) for t in (cond, x, y)]
    return Leaf(b.op1(op, *values, result=tile_type(dtype, shape)))


@op(where_rule, exact=True, tileir="select", error_bound=of_choice)
def where(cond, x, y, /, *, out=None):
    """x where cond is true, y elsewhere.

    [WHERE-1.cond]  x where cond is true, y elsewhere
    [WHERE-1.cond.int]  an integer condition is true where it is not zero
    [WHERE-1.cond.float]  a float condition is true where it is not zero, NaN included
    [WHERE-1.dtype]  x and y promote together; dtypes without a common one: TileTypeError
    [WHERE-1.literal]  a literal takes the dtype of the other side, or its own if that is of a higher category
    [WHERE-1.literals]  two literals give the dtype of the higher category
    [WHERE-1.range]  a literal beyond the range of the other side's integer dtype: TileValueError
    [WHERE-1.bool]  two bool_ operands give bool_
    [WHERE-1.shape]  the result has the broadcast shape of all three
    [WHERE-1.mismatch]  shapes that do not broadcast: TileTypeError
    [WHERE-2.restricted]  restricted floats of one dtype may be chosen between, also against a literal
    [WHERE-2.pointer]  foreign pointers of one dtype may be chosen between
    [WHERE-2.other]  an array, None or a tuple: TileTypeError
    [WHERE-2.both]  both sides are always evaluated
    [WHERE-2.runtime]  the result is never constant
    """
    return _numeric.choice(cond, x, y, out)
