"""Lowering of ops that only move elements."""

from __future__ import annotations

from math import prod

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.access import broadcast_to, is_signed, reshaped, resized
from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.rules._rule import rule
from cutile.ops import shape


@rule(shape.reshape)
def _reshape(l, n):
    return reshaped(l, l.get(n.operands[0]), n.attrs["shape"])


@rule(shape.broadcast_to)
def _broadcast(l, n):
    l.broadcasts[n.results[0]] = n.operands[0]
    return broadcast_to(l, l.get(n.operands[0]), n.attrs["shape"])


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
    part, position = dims or (1,) * len(index), _position(l, index)
    if _is_column_part(part, whole.type.shape):
        whole, position = _in_rows(l, whole, part), _row(l, position, part, whole.type.shape)
        part = (1,) * (len(position) - 1) + (prod(part),)
    return reshaped(l, l.op("extract", [whole, position], result=ty.tile(whole.type.element, part)), dims)


@rule(shape.insert)
def _insert(l, n):
    x, *index, value = n.operands
    l.needs("insert", "insert")
    if not index:
        return l.get(value)
    part, whole, position = l.get(value), l.get(x), _position(l, index)
    size, dims = part.type.shape, whole.type.shape
    if not _is_column_part(size, dims):
        return l.op("insert", [part, whole, position])
    position = _row(l, position, size, dims)
    rows = l.op("insert", [reshaped(l, part, (1,) * (len(position) - 1) + (prod(size),)), _in_rows(l, whole, size),
                           position])
    return _out_of_rows(l, rows, size, dims)


# ------------------------------------------------------------------ parts of columns
#
# The assembler of release 13.5 takes some parts that are one element long in the last axis from a wrong position. So a
# part is extracted as a row of a tile of parts; as an element of a rank-1 tile if parts are single elements.


def _is_column_part(part: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    return len(whole) > 1 and part[-1] < whole[-1] and part[-1] == 1


def _counts(part: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(w // p for p, w in zip(part, whole, strict=True))


def _in_rows(l, x: Value, part: tuple[int, ...]) -> Value:
    """A tile whose rows are the parts of x, in row-major order of their positions."""
    whole = x.type.shape
    if prod(part) == 1:
        return reshaped(l, x, (prod(whole),))
    counts, rank = _counts(part, whole), len(whole)
    x = reshaped(l, x, tuple(n for pair in zip(counts, part, strict=True) for n in pair))
    x = l.op("permute", [x], result=ty.tile(x.type.element, counts + part),
             permutation=(*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)))
    return reshaped(l, x, (prod(counts), prod(part)))


def _out_of_rows(l, x: Value, part: tuple[int, ...], whole: tuple[int, ...]) -> Value:
    """The inverse of `_in_rows`."""
    if prod(part) == 1:
        return reshaped(l, x, whole)
    counts, rank = _counts(part, whole), len(whole)
    x = reshaped(l, x, counts + part)
    x = l.op("permute", [x], permutation=tuple(k + rank * half for k in range(rank) for half in (0, 1)),
             result=ty.tile(x.type.element, tuple(n for pair in zip(counts, part, strict=True) for n in pair)))
    return reshaped(l, x, whole)


def _row(l, position: list[Value], part: tuple[int, ...], whole: tuple[int, ...]) -> list[Value]:
    """The index of a part in the tile that `_in_rows` makes."""
    row = position[0]
    for i, n in zip(position[1:], _counts(part, whole)[1:], strict=True):
        row = l.op("addi", [l.op("muli", [row, l.b.constant(row.type, n)]), i])
    return [row] if prod(part) == 1 else [row, l.b.constant(row.type, 0)]
