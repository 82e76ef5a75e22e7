"""Move ops without effect out of loops if their operands come from outside: they compute the same value in every
iteration.

A loop may have no iteration, so what is moved must be harmless: integers are divided by 1 where their divisor is zero.
They could not stay in the loop either: the assembler moves them, takes it then for granted that the divisor is not
zero, and removes a test of that before the loop (docs/assembler-bugs.md).
"""

from __future__ import annotations

from cutile._support.structs import replace
from cutile.dtypes import DType, bool_, info
from cutile.ir.build import Builder
from cutile.ir.nodes import For, Kernel, Node, Op, Region, Value, While
from cutile.ir.walk import definitions, rewrite
from cutile.ops import arithmetic, compare, convert, create, select, shape
from cutile.passes.cse import key_of
from cutile.types import TileType

DIVISIONS = (arithmetic.floordiv, arithmetic.mod, arithmetic.cdiv)


def licm(kernel: Kernel) -> Kernel:
    """The kernel with invariant ops before their loops. Inner loops come first, so that an op can leave several."""
    source = definitions(kernel.body)
    harmless: set[Value] = set()  # quotients whose divisors are not zero
    return rewrite(kernel, lambda old, n: _hoisted(n, source, harmless) if isinstance(n, For | While) else None)


def _hoisted(n: For | While, source: dict[Value, Node], harmless: set[Value]) -> list[Node] | None:
    inside = {*definitions(n.body), *n.params}
    if isinstance(n, For):
        inside.add(n.iv)
    moved: list[Node] = []
    kept: list[Node] = []
    for inner in n.body.nodes:
        if isinstance(inner, Op) and inside.isdisjoint(inner.operands) and key_of(inner) is not None:
            moved += [inner] if _is_harmless(inner, source, harmless) else _made_harmless(inner)
            inside.difference_update(inner.results)
            harmless.update(inner.results)
        else:
            kept.append(inner)
    return [*moved, replace(n, body=Region(kept, n.body.params))] if moved else None


def _is_harmless(n: Op, source: dict[Value, Node], harmless: set[Value]) -> bool:
    if n.op not in DIVISIONS or not info(n.result.type.dtype).integral or n.result in harmless:
        return True
    divisor, dtypes = source.get(n.operands[1]), []
    while isinstance(divisor, Op) and _only_rearranges(divisor):
        dtypes.append(divisor.result.type.dtype)
        divisor = source.get(divisor.operand)
    return isinstance(divisor, Op) and divisor.op is create.constant and _is_nonzero(divisor.attrs["value"], dtypes)


def _only_rearranges(n: Op) -> bool:
    """Whether all elements of the result are elements of one operand, moved or cast."""
    return len(n.operands) == 1 and (n.op.moves_data or n.op is convert.astype)


def _is_nonzero(number: int | float, dtypes: list[DType]) -> bool:
    """Whether a constant is known to be other than zero after casts to these dtypes."""
    if not dtypes:
        return bool(number)
    bits = min(t.bitwidth for t in dtypes)
    return isinstance(number, int) and all(info(t).integral for t in dtypes) and number % (1 << bits) != 0


def _made_harmless(n: Op) -> list[Node]:
    """A division by 1 where the divisor is zero."""
    b, (x, divisor) = Builder(n.span), n.operands
    zero, one = (_filled(b, divisor.type, v) for v in (0, 1))
    is_zero = b.op1(compare.equal, divisor, zero, result=TileType(bool_, divisor.type.shape))
    b.append(replace(n, operands=(x, b.op1(select.where, is_zero, one, divisor, result=divisor.type))))
    return b.region.nodes


def _filled(b: Builder, t: TileType, number: int) -> Value:
    scalar = b.op1(create.constant, result=TileType(t.dtype), value=number)
    return scalar if t.shape == () else b.op1(shape.broadcast_to, scalar, result=t, shape=t.shape)
