"""Lowering of quotients and remainders, whose rounding differs from that of Tile IR's operations.

By a constant power of two, shifts and masks take the place of divisions, for which the assembler has no short code if
the dividend may be negative. But it knows more of the quotients and remainders of places than of such bits: which
elements of an index follow each other, so that several are moved at once. So what indices are made of is divided.
"""

from __future__ import annotations

from cutile.gpu.tileir.access import resized
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


def _exponent(l, n) -> int | None:
    """k, where the divisor is 2**k in all elements and the dividend is data; None elsewhere."""
    x, y = n.operands
    d = l.number(y)
    return d.bit_length() - 1 if d is not None and d > 0 and d & (d - 1) == 0 and l.is_data(x) else None


def _low_bits(l, x: Value, k: int) -> Value:
    return l.op("andi", [x, l.b.constant(x.type, (1 << k) - 1)])


def _shifted(l, x: Value, k: int, sign: str) -> Value:
    return l.op("shri", [x, l.b.constant(x.type, k)], signedness=sign) if k else x


def _shifted_up(l, x: Value, k: int, sign: str) -> Value:
    """x / 2**k rounded up: one more than rounded down where bits are lost. A sum before the shift might overflow."""
    if k == 0:
        return x
    lost = _low_bits(l, x, k)
    if k > 1:
        some = compare(l, "not_equal", lost, l.b.constant(x.type, 0), floating=False)
        lost = resized(l, some, x.type.element, signed=False)
    return l.op("addi", [_shifted(l, x, k, sign), lost])


@rule(arithmetic.floordiv)
def _floordiv(l, n):
    x, y = map(l.get, n.operands)
    if is_float(n.operands[0]):
        return l.op("floor", [l.op("divf", [x, y])])
    return _quotient(l, n, x, y, _exponent(l, n))


def _quotient(l, n, x: Value, y: Value, k: int | None) -> Value:
    sign = signedness(n.operands[0])
    return _floor(l, x, y, sign) if k is None or sign == "unsigned" else _shifted(l, x, k, sign)


@rule(arithmetic.cdiv)
def _cdiv(l, n):
    x, y = map(l.get, n.operands)
    if is_float(n.operands[0]):
        return l.op("ceil", [l.op("divf", [x, y])])
    sign, k = signedness(n.operands[0]), _exponent(l, n)
    if k is not None:
        return _shifted_up(l, x, k, sign)
    return l.op("divi", [x, y], signedness=sign, rounding="positive_inf")


@rule(arithmetic.mod)
def _mod(l, n):
    x, y = map(l.get, n.operands)
    if is_float(n.operands[0]):
        return _with_sign_of_divisor(l, l.op("remf", [x, y]), y, True)
    return _rest(l, n, x, y, _exponent(l, n))


def _rest(l, n, x: Value, y: Value, k: int | None) -> Value:
    sign = signedness(n.operands[0])
    return _remainder(l, x, y, sign) if k is None or sign == "unsigned" else _low_bits(l, x, k)


@rule(arithmetic.divmod)
def _divmod(l, n):
    x, y = map(l.get, n.operands)
    k = _exponent(l, n)
    return _quotient(l, n, x, y, k), _rest(l, n, x, y, k)
