"""Lowering of slices, sizes of views, raw memory and foreign pointers."""

from __future__ import annotations

from cutile.gpu.tileir import arrays
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.access import is_signed, load_pointers, offset_pointers, resized, store_pointers
from cutile.gpu.tileir.arrays import Array
from cutile.gpu.tileir.builder import Bounded, DivBy
from cutile.gpu.tileir.rules._rule import rule
from cutile.gpu.tileir.rules.grid import rounded_up
from cutile.ops import views


@rule(views.slice_)
def _slice(l, n):
    a: Array = l.array(n.operands[0])
    k, t = n.attrs["axis"], n.results[0].type
    start, stop = (resized(l, l.get(v), ty.i64, signed=is_signed(v.type.dtype)) for v in n.operands[1:])
    offset = start
    if a.strides[k] != 1:
        offset = l.op("muli", [start, arrays.wide_dim(l.b, a, a.strides[k])])
    size = t.static_shape[k]
    if size is None:
        length = resized(l, l.op("subi", [stop, start]), a.index.element, signed=True)
        size = l.b.assume(length, Bounded(0))
    sizes = (*a.sizes[:k], size, *a.sizes[k + 1:])
    base = l.op("offset", [a.base, offset])
    step = l.divisor(n.operands[1]) * (a.stride_divisors[k] if a.stride_divisors else 1)
    divisor = min(a.divisor, step * ty.in_memory(t.dtype).bits // 8)
    if divisor > 1:
        base = l.b.assume(base, DivBy(divisor))
    return Array(t, base, sizes, a.strides, a.wide, divisor, a.stride_divisors)


@rule(views.view_num_tiles)
def _tiles(l, n):
    a: Array = l.array(n.operands[0])
    return rounded_up(l, a, a.sizes[n.attrs["axis"]], n.attrs["step"])


# ------------------------------------------------------------------ raw memory


@rule(views.load_offset)
def _load_offset(l, n):
    array, offset, mask, padding = n.op.group(n.operands, n.layout)
    a = l.array(array)
    return load_pointers(l, n, offset_pointers(l, a, offset), mask and l.get(mask), padding and l.get(padding),
                         a.type.dtype)


@rule(views.store_offset)
def _store_offset(l, n):
    array, offset, value, mask = n.op.group(n.operands, n.layout)
    a = l.array(array)
    store_pointers(l, n, offset_pointers(l, a, offset), l.get(value), mask and l.get(mask), a.type.dtype)


# ------------------------------------------------------------------ foreign pointers


@rule(views.foreign_pointer)
def _pointer(l, n):
    return l.array(n.operands[0]).base


@rule(views.from_foreign)
def _from_foreign(l, n):
    pointer, shape, strides = n.op.group(n.operands, n.layout)
    t = n.results[0].type
    dims = [tuple(s if s is not None else resized(l, l.get(v), arrays.index_type(t).element, signed=True)
                  for v, s in zip(group, static, strict=True))
            for group, static in ((shape, t.static_shape), (strides, t.static_strides))]
    return Array(t, l.get(pointer), *dims, wide=any(s is None for s in t.static_strides))
