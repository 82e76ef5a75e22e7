"""Lowering of ops that make tiles of constants and scalars."""

from __future__ import annotations

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.access import reshaped, scalar_as_tile
from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.rules._rule import rule
from cutile.ops import create


@rule(create.constant)
def _constant(l, n):
    return l.const(n.results[0].type.dtype, n.attrs["value"])


@rule(create.full)
def _full(l, n):
    return scalar_as_tile(l, l.get(n.operands[0]), n.attrs["shape"])


@rule(create.iota)
def _iota(l, n):
    return l.op("iota", result=l.type(n.results[0].type))


@rule(create.stack_scalars)
def _stack(l, n):
    return reshaped(l, _concatenated(l, [reshaped(l, l.get(v), (1,)) for v in n.operands]), n.attrs["shape"])


def _concatenated(l, tiles: list[Value]) -> Value:
    """Tiles of one type joined end to end, by `cat` of pairs of pairs. Their number is a power of two."""
    if len(tiles) == 1:
        return tiles[0]
    half = len(tiles) // 2
    x, y = _concatenated(l, tiles[:half]), _concatenated(l, tiles[half:])
    return l.op("cat", [x, y], dim=0, result=ty.tile(x.type.element, (2 * x.type.shape[0],)))
