"""Lowering of bitwise_not. The other bitwise operations and shifts are operations of Tile IR."""

from __future__ import annotations

from cutile.gpu.tileir.rules._regular import negated
from cutile.gpu.tileir.rules._rule import rule
from cutile.ops import bits


@rule(bits.bitwise_not)
def _not(l, n):
    return negated(l, l.get(n.operands[0]))
