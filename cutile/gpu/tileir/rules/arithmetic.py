"""Lowering of quotients and remainders, whose rounding differs from that of Tile IR's operations."""

from __future__ import annotations

from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.rules._regular import compare, is_float, signedness
from cutile.gpu.tileir.rules._rule import rule
from cutile.ops import arithmetic


def _floor(l, x: Value, y: Value, sign: str) -> Value:
    return l.op("divi", [x, y], signedness=sign, rounding="negative_inf" if sign == "signed" else "zero")


def _with_sign_of_divisor(l, r: Value, y: Value, floating: bool) -> Value:
    """The remainder of floor division. r is that of truncated division; y is added where r is not zero and its sign is
    not that of y."""
    zero = l.b.constant(r.type, 0)
    signs = [compare(l, "less_than", v, zero, floating=floating) for v in (r, y)]
    wrong = l.op("andi", [l.op("xori", signs), compare(l, "not_equal", r, zero, floating=floating)])
    return l.op("select", [wrong, l.op("addf" if floating else "addi", [r, y]), r])


def _remainder(l, x: Value, y: Value, sign: str) -> Value:
    r = l.op("remi", [x, y], signedness=sign)
    return _with_sign_of_divisor(l, r, y, False) if sign == "signed" else r


@rule(arithmetic.floordiv)
def _floordiv(l, n):
    x, y = map(l.get, n.operands)
    if is_float(n.operands[0]):
        return l.op("floor", [l.op("divf", [x, y])])
    return _floor(l, x, y, signedness(n.operands[0]))


@rule(arithmetic.cdiv)
def _cdiv(l, n):
    x, y = map(l.get, n.operands)
    if is_float(n.operands[0]):
        return l.op("ceil", [l.op("divf", [x, y])])
    return l.op("divi", [x, y], signedness=signedness(n.operands[0]), rounding="positive_inf")


@rule(arithmetic.mod)
def _mod(l, n):
    x, y = map(l.get, n.operands)
    if is_float(n.operands[0]):
        return _with_sign_of_divisor(l, l.op("remf", [x, y]), y, True)
    return _remainder(l, x, y, signedness(n.operands[0]))


@rule(arithmetic.divmod)
def _divmod(l, n):
    x, y = map(l.get, n.operands)
    sign = signedness(n.operands[0])
    return _floor(l, x, y, sign), _remainder(l, x, y, sign)
