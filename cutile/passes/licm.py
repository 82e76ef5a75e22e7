"""Move ops without effect out of loops if their operands come from outside: they compute the same value in every
iteration.

A loop may have no iteration, so what is moved must be harmless: an integer division stays unless its divisor is a
constant other than zero.
"""

from __future__ import annotations

from cutile._support.structs import replace
from cutile.dtypes import info
from cutile.ir.nodes import For, Kernel, Node, Op, Region, Value, While
from cutile.ir.walk import definitions, rewrite
from cutile.ops import arithmetic, convert, create
from cutile.passes.cse import key_of

DIVISIONS = (arithmetic.floordiv, arithmetic.mod, arithmetic.cdiv)


def licm(kernel: Kernel) -> Kernel:
    """The kernel with invariant ops before their loops. Inner loops come first, so that an op can leave several."""
    source = definitions(kernel.body)
    return rewrite(kernel, lambda old, n: _hoisted(n, source) if isinstance(n, For | While) else None)


def _hoisted(n: For | While, source: dict[Value, Node]) -> list[Node] | None:
    inside = {*definitions(n.body), *n.params}
    if isinstance(n, For):
        inside.add(n.iv)
    moved: list[Node] = []
    kept: list[Node] = []
    for inner in n.body.nodes:
        if isinstance(inner, Op) and _harmless(inner, source) and inside.isdisjoint(inner.operands):
            moved.append(inner)
            inside.difference_update(inner.results)
        else:
            kept.append(inner)
    return [*moved, replace(n, body=Region(kept, n.body.params))] if moved else None


def _harmless(n: Op, source: dict[Value, Node]) -> bool:
    if key_of(n) is None:
        return False
    if n.op in DIVISIONS and info(n.results[0].type.dtype).integral:
        divisor = source.get(n.operands[1])
        while isinstance(divisor, Op) and _only_rearranges(divisor):
            divisor = source.get(divisor.operands[0])
        return isinstance(divisor, Op) and divisor.op is create.constant and bool(divisor.attrs["value"])
    return True


def _only_rearranges(n: Op) -> bool:
    """Whether all elements of the result are elements of one operand, moved or cast."""
    return len(n.operands) == 1 and (n.op.moves_data or n.op is convert.astype)
