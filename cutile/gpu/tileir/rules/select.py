"""Lowering of the choice between two tiles."""

from __future__ import annotations

from cutile.dtypes import float4_e2m1fn
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.rules._regular import elementwise
from cutile.gpu.tileir.rules._rule import rule
from cutile.gpu.tileir.rules.convert import float_to
from cutile.ops import select


@rule(select.where)
def _where(l, n):
    if n.results[0].type.dtype is not float4_e2m1fn:
        return elementwise(l, n)
    cond, *sides = map(l.get, n.operands)  # Tile IR moves no 4-bit elements; all of them are exact in f16
    chosen = l.op("select", [cond, *(float_to(l, x, ty.f16) for x in sides)])
    return float_to(l, chosen, ty.e2m1)
