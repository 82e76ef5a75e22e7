"""Lowering of what only moves elements."""

from __future__ import annotations

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.access import is_signed, reshaped, resized
from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.rules._rule import rule
from cutile.ops import shape


@rule(shape.reshape)
def _reshape(l, n):
    return reshaped(l, l.get(n.operands[0]), n.attrs["shape"])


@rule(shape.broadcast_to)
def _broadcast(l, n):
    return spread(l, l.get(n.operands[0]), n.attrs["shape"])


def spread(l, x: Value, dims: tuple[int, ...]) -> Value:
    """x at a shape that it broadcasts to: new axes in front, then axes of size 1 repeated."""
    x = reshaped(l, x, (1,) * (len(dims) - len(x.type.shape)) + x.type.shape)
    return x if x.type.shape == dims else l.op("broadcast", [x], result=ty.tile(x.type.element, dims))


@rule(shape.permute)
def _permute(l, n):
    return l.op("permute", [l.get(n.operands[0])], result=l.type(n.results[0].type), permutation=n.attrs["axes"])


@rule(shape.cat)
def _cat(l, n):
    return l.op("cat", [l.get(v) for v in n.operands], dim=n.attrs["axis"], result=l.type(n.results[0].type))


def _position(l, index) -> list[Value]:
    return [resized(l, l.get(v), ty.i32, signed=is_signed(v.type.dtype)) for v in index]


@rule(shape.extract)
def _extract(l, n):
    x, *index = n.operands
    whole, dims = l.get(x), n.attrs["shape"]
    if not index:
        return whole
    part = ty.tile(whole.type.element, dims or (1,) * len(index))
    return reshaped(l, l.op("extract", [whole, _position(l, index)], result=part), dims)


@rule(shape.insert)
def _insert(l, n):
    x, *index, value = n.operands
    l.check("insert")
    if not index:
        return l.get(value)
    return l.op("insert", [l.get(value), l.get(x), _position(l, index)])
